// SPDX-License-Identifier: MIT OR Apache-2.0
//! Between the hosts: links with queues, then a pipe that only takes time.

use super::{
    connection::Connection,
    events::{Event, Events, Wake},
};
use crate::observe::Content;
use lowtide_net::{Delivery, Link, LinkConfig, Packet, Time};
use std::{collections::VecDeque, time::Duration};

/// What travels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traveller {
    /// The connection's place in the list of connections.
    pub(super) connection: u32,
    /// The connection's own number: its place may be another's by the time that a late packet arrives.
    pub(super) serial: u32,
    /// The connection's flow, and its number within that.
    pub(super) flow: u32,
    pub(super) number: u32,
    /// Its route.
    pub(super) route: u32,
    /// How many links of it lie behind.
    hop: u32,
    /// Time spent in queues.
    pub(super) queued: Duration,
    /// When it left its host.
    pub(super) sent: Time,
    pub(super) content: Content,
}

impl Traveller {
    /// A packet of a connection.
    pub(super) fn of(connection: &Connection, place: u32, route: u32, now: Time, content: Content) -> Self {
        let &Connection { serial, flow, number, .. } = connection;
        Self { connection: place, serial, flow, number, route, hop: 0, queued: Duration::ZERO, sent: now, content }
    }

    /// A datagram of a flow.
    pub(super) fn datagram(flow: u32, route: u32, now: Time, content: Content) -> Self {
        Self { connection: 0, serial: 0, flow, number: 0, route, hop: 0, queued: Duration::ZERO, sent: now, content }
    }
}

/// One direction from a host to the other.
pub(super) struct Route {
    /// The links that it passes.
    links: Vec<u32>,
    /// Propagation after the last of them.
    delay: Duration,
    /// What propagates, in order of arrival.
    pipe: VecDeque<(Time, Packet<Traveller>)>,
    wake: Wake,
}

struct Node {
    link: Link<Traveller>,
    wake: Wake,
}

/// All links and routes.
#[derive(Default)]
pub(super) struct Network {
    nodes: Vec<Node>,
    routes: Vec<Route>,
}

impl Network {
    /// Adds a link; gives its index.
    pub(super) fn add_link(&mut self, config: &LinkConfig) -> u32 {
        self.nodes.push(Node { link: Link::new(config), wake: Wake::default() });
        self.nodes.len() as u32 - 1
    }

    /// Adds a route over these links, then `delay`; gives its index.
    pub(super) fn add_route(&mut self, links: Vec<u32>, delay: Duration) -> u32 {
        self.routes.push(Route { links, delay, pipe: VecDeque::new(), wake: Wake::default() });
        self.routes.len() as u32 - 1
    }

    pub(super) fn link(&self, index: u32) -> &Link<Traveller> {
        &self.nodes[index as usize].link
    }

    /// A packet leaves its host, or a link: to the next link of its route, or onto the wire after the last.
    pub(super) fn forward(&mut self, now: Time, packet: Packet<Traveller>, events: &mut Events) {
        let index = packet.payload.route;
        let route = &mut self.routes[index as usize];
        let Some(&link) = route.links.get(packet.payload.hop as usize) else {
            route.pipe.push_back((now + route.delay, packet));
            route.wake.arm(route.pipe.front().map(|head| head.0), now, Event::Pipe(index), events);
            return;
        };
        let node = &mut self.nodes[link as usize];
        node.link.arrive(now, packet); // what is dropped shows in the link's statistics
        node.wake.arm(node.link.next_event(), now, Event::Link(link), events);
    }

    /// A link may have something to deliver: tells `delivered` of each packet, and sends it on.
    pub(super) fn on_link(
        &mut self,
        now: Time,
        index: u32,
        events: &mut Events,
        mut delivered: impl FnMut(&Delivery<Traveller>),
    ) {
        if !self.nodes[index as usize].wake.due(now) {
            return;
        }
        while let Some(mut delivery) = self.nodes[index as usize].link.poll(now) {
            delivered(&delivery);
            delivery.packet.payload.hop += 1;
            delivery.packet.payload.queued += delivery.queueing_delay;
            self.forward(now, delivery.packet, events);
        }
        let node = &mut self.nodes[index as usize];
        node.wake.arm(node.link.next_event(), now, Event::Link(index), events);
    }

    /// Whether the event of this pipe is the one that it waits for; then [`Network::arrived`] gives the packets.
    pub(super) fn pipe_is_due(&mut self, now: Time, route: u32) -> bool {
        self.routes[route as usize].wake.due(now)
    }

    /// The next packet that has come out of a pipe.
    pub(super) fn arrived(&mut self, now: Time, route: u32, events: &mut Events) -> Option<Packet<Traveller>> {
        let it = &mut self.routes[route as usize];
        if it.pipe.front().is_some_and(|head| head.0 <= now) {
            return it.pipe.pop_front().map(|head| head.1);
        }
        it.wake.arm(it.pipe.front().map(|head| head.0), now, Event::Pipe(route), events);
        None
    }
}
