// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event loop.

use super::{
    connection::Connection,
    control::{self, Control},
    events::{Event, Events},
    flow::FlowState,
    group,
    measure::Times,
    network::{Network, Traveller},
    spans::Spans,
    traffic::Demand,
};
use crate::{
    CompletedTransfer, Outcome,
    observe::{Content, Observer, PacketEvent},
    scenario::{Bottleneck, Direction, Flow, MTU, Scenario, Transport, UDP_HEADER},
    tcp::{Acknowledgement, Segment},
};
use lowtide_cc::Random;
use lowtide_net::{Class, Ecn, Limit, LinkConfig, Packet, Schedule, Statistics, Time};
use std::time::Duration;

mod report;

/// Runs a scenario to its end. The same scenario gives the same outcome with any observer.
pub fn run(scenario: &Scenario, observer: &mut dyn Observer) -> Outcome {
    let mut simulation = Simulation::new(scenario, observer);
    simulation.run();
    simulation.outcome()
}

/// Largest payload of a datagram.
const DATAGRAM_PAYLOAD: u64 = (MTU - UDP_HEADER) as u64;
/// Packets that an access link holds: Linux' default length of a device's queue.
const ACCESS_QUEUE: u64 = 1000;
/// How often the progress is reported to the observer.
const PROGRESS_STEPS: u32 = 1000;

/// A bottleneck and what is measured at it.
struct Meter<'a> {
    bottleneck: &'a Bottleneck,
    capacity: Schedule,
    link: u32,
    queue: Times,
    /// Counts when the measured span began.
    before: Statistics,
    /// Counts at the latest sample.
    sampled: Statistics,
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    observer: &'a mut dyn Observer,
    wants_packets: bool,
    now: Time,
    end: Time,
    measure_from: Time,
    events: Events,
    network: Network,
    meters: Vec<Meter<'a>>,
    spans: Spans,
    flows: Vec<FlowState<'a>>,
    connections: Vec<Connection>,
    /// Places in `connections` whose connection is over.
    free: Vec<u32>,
    opened: u32,
    packets: u64,
    sampled_at: Time,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario, observer: &'a mut dyn Observer) -> Self {
        let mut seeds = Random::new(scenario.seed);
        let (mut network, mut events) = (Network::default(), Events::default());
        let (mut meters, mut wires) = (Vec::new(), Vec::new());
        for bottleneck in scenario.bottlenecks.iter().chain(&scenario.reverse) {
            let seed = seeds.bits();
            let config = bottleneck.link(Duration::ZERO, seed);
            let link = network.add_link(&config);
            let (queue, before, sampled) = (Times::new(), Statistics::default(), Statistics::default());
            meters.push(Meter { bottleneck, capacity: config.capacity, link, queue, before, sampled });
            // the chance of the way back is another one
            wires.push(bottleneck.wires(seed.wrapping_add(1)));
        }
        // behind the bottlenecks, which are the first links
        let wires: Vec<Wires> =
            wires.iter().map(|both| both.each_ref().map(|it| it.as_ref().map(|it| network.add_link(it)))).collect();
        let mut flows = Vec::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let (data, back) = routes(&mut network, scenario, flow, &wires);
            let mut state = FlowState::new(flow, data, back, seeds.bits());
            state.wake.arm(state.application.next(), Time::ZERO, Event::Source(index as u32), &mut events);
            flows.push(state);
            if let Some(stop) = flow.stop {
                events.plan(Time::ZERO + stop, Event::Stop(index as u32));
            }
        }
        events.plan(Time::ZERO + scenario.measure_from, Event::Measure);
        let spans = Spans::new(scenario, &mut events);
        events.plan(Time::ZERO, Event::Progress);
        if observer.wants_samples() {
            events.plan(Time::ZERO + scenario.sample_interval, Event::Sample);
        }
        Self {
            scenario,
            wants_packets: observer.wants_packets(),
            observer,
            now: Time::ZERO,
            end: Time::ZERO + scenario.duration,
            measure_from: Time::ZERO + scenario.measure_from,
            events,
            network,
            meters,
            spans,
            flows,
            connections: Vec::new(),
            free: Vec::new(),
            opened: 0,
            packets: 0,
            sampled_at: Time::ZERO,
        }
    }

    fn run(&mut self) {
        while let Some((now, event)) = self.events.next(self.end) {
            self.handle(now, event);
        }
        self.now = self.end;
        self.observer.progress(self.end);
    }

    fn handle(&mut self, now: Time, event: Event) {
        self.now = now;
        match event {
            Event::Link(link) => self.on_link(link),
            Event::Pipe(route) => self.on_pipe(route),
            Event::Sender(connection) => self.on_sender_timer(connection),
            Event::Receiver(connection) => self.on_receiver_timer(connection),
            Event::Source(flow) => self.on_source(flow),
            Event::Stop(flow) => self.on_stop(flow),
            Event::Control(flow) => self.on_control(flow),
            Event::Measure => self.on_measure(),
            Event::Bound => self.on_bound(),
            Event::Sample => self.on_sample(),
            Event::Progress => {
                self.observer.progress(now);
                let step = (self.scenario.duration / PROGRESS_STEPS).max(Duration::from_nanos(1));
                self.events.plan(now + step, Event::Progress);
            }
        }
    }

    fn on_link(&mut self, link: u32) {
        // the bottlenecks are the first links
        let meter = self.meters.get_mut(link as usize);
        match meter.filter(|_| self.now >= self.measure_from) {
            Some(meter) => {
                let record = |delivery: &lowtide_net::Delivery<_>| meter.queue.record(delivery.queueing_delay);
                self.network.on_link(self.now, link, &mut self.events, record);
            }
            None => self.network.on_link(self.now, link, &mut self.events, |_| ()),
        }
    }

    fn on_pipe(&mut self, route: u32) {
        if self.network.pipe_is_due(self.now, route) {
            while let Some(packet) = self.network.arrived(self.now, route, &mut self.events) {
                self.on_arrival(&packet);
            }
        }
    }

    /// A packet has reached the host at the end of its route.
    fn on_arrival(&mut self, packet: &Packet<Traveller>) {
        let traveller = &packet.payload;
        let flow = &mut self.flows[traveller.flow as usize];
        let is_data = match traveller.content {
            Content::Segment(segment) => segment.bytes > 0,
            Content::Datagram(_) => true,
            Content::Acknowledgement(_) => false,
        };
        if is_data {
            self.packets += 1;
            flow.record_delay(traveller, self.now, self.measure_from);
        }
        if let Content::Datagram(_) = traveller.content {
            flow.delivered += u64::from(packet.bytes - UDP_HEADER);
            flow.received += u64::from(packet.bytes);
        }
        self.show(false, packet);
        let index = traveller.connection;
        match traveller.content {
            Content::Segment(segment) if self.is_live(traveller) => {
                self.on_segment(index, &segment, packet.ecn == Ecn::Ce);
            }
            Content::Acknowledgement(acknowledgement) if self.is_live(traveller) => {
                self.on_acknowledgement(index, &acknowledgement);
            }
            _ => (),
        }
    }

    /// Whether a packet's connection is still there.
    fn is_live(&self, traveller: &Traveller) -> bool {
        self.connections[traveller.connection as usize].serial == traveller.serial
    }

    fn on_segment(&mut self, index: u32, segment: &Segment, ce: bool) {
        let connection = &mut self.connections[index as usize];
        if let Some(acknowledgement) = connection.receiver.on_segment(self.now, segment, ce) {
            self.send_acknowledgement(index, acknowledgement);
        }
        self.arm_receiver(index);
    }

    fn on_receiver_timer(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if connection.receiver_wake.due(self.now) && connection.is_open() {
            if let Some(acknowledgement) = connection.receiver.on_timer(self.now) {
                self.send_acknowledgement(index, acknowledgement);
            }
            self.arm_receiver(index);
        }
    }

    fn arm_receiver(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let next = connection.receiver.next_timer();
        connection.receiver_wake.arm(next, self.now, Event::Receiver(index), &mut self.events);
    }

    fn on_acknowledgement(&mut self, index: u32, acknowledgement: &Acknowledgement) {
        let connection = &mut self.connections[index as usize];
        let acked = connection.sender.on_acknowledgement(self.now, acknowledgement);
        if self.now >= self.measure_from
            && let Some(rtt) = acked.rtt
        {
            self.flows[connection.flow as usize].rtt.record(rtt);
        }
        self.pump(index);
    }

    fn on_sender_timer(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if connection.sender_wake.due(self.now) && connection.is_open() {
            connection.sender.on_timer(self.now);
            self.pump(index);
        }
    }

    /// Sends what the sender may send now, and plans its next call.
    fn pump(&mut self, index: u32) {
        let header = self.flows[self.connections[index as usize].flow as usize].header;
        while let Some((segment, ecn)) = self.connections[index as usize].sender.transmit(self.now) {
            self.send(index, header + segment.bytes, ecn, Content::Segment(segment));
        }
        let connection = &mut self.connections[index as usize];
        if connection.sender.is_finished() {
            return self.close(index);
        }
        let next = connection.sender.next_timer();
        connection.sender_wake.arm(next, self.now, Event::Sender(index), &mut self.events);
    }

    fn send_acknowledgement(&mut self, index: u32, acknowledgement: Acknowledgement) {
        let header = self.flows[self.connections[index as usize].flow as usize].header;
        let bytes = header + sack_option(&acknowledgement);
        self.send(index, bytes, Ecn::NotEct, Content::Acknowledgement(acknowledgement));
    }

    /// A host of a connection sends a packet.
    fn send(&mut self, index: u32, bytes: u32, ecn: Ecn, content: Content) {
        let connection = &self.connections[index as usize];
        let state = &self.flows[connection.flow as usize];
        let route = if let Content::Segment(_) = content { state.data_route } else { state.ack_route };
        let traveller = Traveller::of(connection, index, route, self.now, content);
        self.forward(bytes, ecn, traveller);
    }

    /// A packet leaves its host.
    fn forward(&mut self, bytes: u32, ecn: Ecn, payload: Traveller) {
        // a flow for the queues that tell flows apart: one direction of one connection
        let flow = u64::from(payload.serial) << 32 | u64::from(payload.route);
        // ACKs of background flows are not marked as background
        let class = match payload.content {
            Content::Acknowledgement(_) => Class::Foreground,
            _ => self.flows[payload.flow as usize].flow.class,
        };
        let packet = Packet { bytes, ecn, class, flow, payload };
        self.show(true, &packet);
        self.network.forward(self.now, packet, &mut self.events);
    }

    /// Shows a packet to the observer.
    fn show(&mut self, leaving: bool, packet: &Packet<Traveller>) {
        if self.wants_packets {
            let &Packet { bytes, ecn, payload: Traveller { content, flow, number: connection, .. }, .. } = packet;
            let (flow, from_sender) = (flow as usize, !matches!(content, Content::Acknowledgement(_)));
            self.observer.packet(&PacketEvent {
                now: self.now,
                flow,
                connection,
                from_sender,
                leaving,
                bytes,
                ecn,
                content,
            });
        }
    }

    /// An application does something.
    fn on_source(&mut self, index: u32) {
        self.flows[index as usize].wake.due(self.now);
        while let Some(demand) = self.flows[index as usize].application.take(self.now) {
            match (demand, &self.flows[index as usize].flow.transport) {
                (Demand::Write(bytes), Transport::Udp) => self.send_datagrams(index, bytes),
                (_, Transport::Udp) => (),
                (Demand::Open { bytes, task }, _) => {
                    self.begin_transfer(index);
                    let connection = self.open(index);
                    let it = &mut self.connections[connection as usize];
                    it.task = Some(task);
                    it.sender.write(bytes);
                    it.sender.close();
                    self.pump(connection);
                }
                (demand, _) => {
                    let connection = self.standing_connection(index);
                    let sender = &mut self.connections[connection as usize].sender;
                    match demand {
                        Demand::Write(bytes) => sender.write(bytes),
                        Demand::Unlimited => sender.write(u64::MAX),
                        Demand::Withhold => sender.discard_unsent(),
                        Demand::Close => sender.close(),
                        Demand::Open { .. } => unreachable!("handled above"),
                    }
                    self.pump(connection);
                }
            }
        }
        self.arm_source(index);
    }

    fn arm_source(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        flow.wake.arm(flow.application.next(), self.now, Event::Source(index), &mut self.events);
    }

    fn send_datagrams(&mut self, index: u32, mut bytes: u64) {
        while bytes > 0 {
            let payload = bytes.min(DATAGRAM_PAYLOAD);
            bytes -= payload;
            let flow = &mut self.flows[index as usize];
            flow.datagrams += 1;
            let content = Content::Datagram(flow.datagrams);
            let traveller = Traveller::datagram(index, flow.data_route, self.now, content);
            self.forward(payload as u32 + UDP_HEADER, Ecn::NotEct, traveller);
        }
    }

    /// The connection of a flow that has one for all its time.
    fn standing_connection(&mut self, flow: u32) -> u32 {
        if let Some(connection) = self.flows[flow as usize].connection {
            return connection;
        }
        self.begin_transfer(flow);
        let connection = self.open(flow);
        self.flows[flow as usize].connection = Some(connection);
        connection
    }

    /// The next connection of a flow is the first one of a transfer, unless one is under way: with a deadline it is
    /// steered from here on.
    fn begin_transfer(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if let (None, Some(deadline), Some(size), Transport::Tcp(tcp), Some(actuator)) = (
            &state.control,
            &state.flow.deadline,
            state.flow.source.size(),
            &state.flow.transport,
            state.actuator.as_ref(),
        ) {
            state.control = Some(Control::new(size, deadline, (tcp, actuator), self.now));
            self.arm_control(flow);
        }
    }

    fn arm_control(&mut self, flow: u32) {
        let next = Some(self.now + control::TICK);
        self.flows[flow as usize].control_wake.arm(next, self.now, Event::Control(flow), &mut self.events);
    }

    /// Opens a connection: the only place where one is made, with its law.
    fn open(&mut self, flow: u32) -> u32 {
        let state = &mut self.flows[flow as usize];
        let Transport::Tcp(tcp) = &state.flow.transport else { unreachable!("only TCP opens connections") };
        let (law, download) = (state.law(tcp), state.download());
        let connection = Connection::new(self.opened, flow, state.connections, (tcp, law, download), self.now);
        self.opened += 1;
        state.connections += 1;
        match self.free.pop() {
            Some(place) => {
                self.connections[place as usize] = connection;
                place
            }
            None => {
                self.connections.push(connection);
                self.connections.len() as u32 - 1
            }
        }
    }

    /// A connection has had everything acknowledged: the only place where one ends.
    fn close(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let (flow, now) = (connection.flow, self.now);
        let state = &mut self.flows[flow as usize];
        if connection.task.is_none() && state.finished.is_some() {
            return;
        }
        connection.sender.leave();
        connection.receiver.leave();
        if let Some(control) = &mut state.control {
            control.leave(&connection.sender);
        }
        match connection.task {
            None => {
                if !state.goes_on(now) {
                    state.finished = Some(now);
                    return;
                }
            }
            Some(task) => {
                state.transfers.push(CompletedTransfer {
                    start_s: (connection.opened - Time::ZERO).as_secs_f64(),
                    bytes: connection.sender.acked_bytes(),
                    completion_s: (now - connection.opened).as_secs_f64(),
                });
                state.application.task_done(now, task);
                state.end_if_over(now);
            }
        }
        state.past.add(&connection.sender);
        self.free.push(index);
        self.connections[index as usize].retire();
        self.arm_source(flow);
    }

    fn on_stop(&mut self, index: u32) {
        self.flows[index as usize].application.stop();
        for connection in 0..self.connections.len() as u32 {
            let it = &mut self.connections[connection as usize];
            if it.flow == index && it.is_open() && !it.sender.is_finished() {
                it.sender.discard_unsent();
                it.sender.close();
                self.pump(connection);
            }
        }
        // one that has a task and no connection just now
        self.flows[index as usize].end_if_over(self.now);
    }

    /// A look at the progress of a transfer with a deadline.
    fn on_control(&mut self, index: u32) {
        let state = &mut self.flows[index as usize];
        if !state.control_wake.due(self.now) {
            return;
        }
        group::take_turn(&mut self.flows, index as usize, self.now);
        let state = &mut self.flows[index as usize];
        let Some(control) = &mut state.control else { return };
        let open = self.connections.iter().filter(|it| it.flow == index && it.is_open());
        control.tick(self.now, open.map(|it| &it.sender), &mut state.steered);
        self.arm_control(index);
        for place in 0..self.connections.len() as u32 {
            let it = &mut self.connections[place as usize];
            if it.flow == index && it.is_open() {
                if let Some(control) = &self.flows[index as usize].control {
                    control.steer(&mut it.sender);
                }
                self.pump(place);
            }
        }
    }

    /// Payload bytes that a flow has had delivered: acknowledged, or received as datagrams.
    fn delivered(&self, index: usize) -> u64 {
        let state = &self.flows[index];
        let live = self.live_connections(index);
        state.delivered + state.past.delivered + live.map(|it| it.sender.acked_bytes()).sum::<u64>()
    }

    fn live_connections(&self, flow: usize) -> impl Iterator<Item = &Connection> {
        self.connections.iter().filter(move |it| it.flow as usize == flow && it.is_open())
    }
}

/// Bytes of the SACK option (RFC 2018), filled up to a multiple of four.
fn sack_option(acknowledgement: &Acknowledgement) -> u32 {
    match acknowledgement.sack.as_slice().len() as u32 {
        0 => 0,
        blocks => 4 + 8 * blocks,
    }
}

/// What lies behind a bottleneck, and what on the way back, by the number of the link.
type Wires = [Option<u32>; 2];

/// The ways of a flow's data and of its acknowledgements. `wires` are those of the bottlenecks, in their order.
fn routes(network: &mut Network, scenario: &Scenario, flow: &Flow, wires: &[Wires]) -> (u32, u32) {
    let there = flow.path.iter().flat_map(|&index| [Some(index as u32), wires[index][0]]);
    let reverse = scenario.reverse.iter().map(|_| Some(scenario.bottlenecks.len() as u32));
    let back = reverse.chain(flow.path.iter().rev().map(|&index| wires[index][1]));
    let (there, back): (Vec<u32>, Vec<u32>) = (there.flatten().collect(), back.flatten().collect());
    let (mut data, back) = match flow.direction {
        Direction::Forward => (there, back),
        Direction::Reverse => (back, there),
    };
    if let Some(access) = flow.access {
        let link = network.add_link(&LinkConfig::new(access, Duration::ZERO, Limit::Packets(ACCESS_QUEUE)));
        data.insert(0, link);
    }
    // the wires of a schedule have the part of their bottleneck
    let path = flow.path.iter().map(|&index| &scenario.bottlenecks[index]);
    let scheduled: Duration = path.filter(|link| link.rtt_schedule.is_some()).map(|link| link.rtt).sum();
    let rest = flow.rtt.saturating_sub(scheduled);
    let half = rest / 2;
    (network.add_route(data, half), network.add_route(back, rest - half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Nobody;

    #[test]
    fn what_is_planned_and_remembered_does_not_grow_with_time() {
        let text = "duration = \"400s\"\n[bottleneck]\nrate = \"5mbit\"\nrtt = \"20ms\"\n\
                    [[flow]]\nname = \"paced\"\ncc = \"bbr3\"\n\
                    [[flow]]\nname = \"bulk\"\ncc = \"cubic\"\ntcp = { pacing = true }\n\
                    [[flow]]\nname = \"web\"\ncc = \"cubic\"\nsource = \"web:load=1mbit\"\n";
        let scenario = Scenario::parse(text, std::path::Path::new("test.toml"), &[]).expect("a scenario");
        let mut nobody = Nobody;
        let mut simulation = Simulation::new(&scenario, &mut nobody);
        let mut peaks = [(0, 0); 4];
        while let Some((now, event)) = simulation.events.next(simulation.end) {
            simulation.handle(now, event);
            let peak = &mut peaks[(now.as_nanos() / 100_000_000_001) as usize];
            *peak = (peak.0.max(simulation.events.len()), peak.1.max(simulation.connections.len()));
        }
        assert!(simulation.opened > 2000, "{} connections", simulation.opened);
        // Timers that an earlier one replaced stay planned until their time: at most a timeout's worth for each packet.
        assert!(peaks.iter().all(|peak| peak.0 < 200 && peak.1 < 50), "{peaks:?}");
        assert!(peaks[3].0 < 2 * peaks[0].0, "{peaks:?}");
    }
}
