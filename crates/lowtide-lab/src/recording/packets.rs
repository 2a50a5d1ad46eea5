// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of single flows, for what samples cannot show.

use lowtide_net::Time;
use lowtide_sim::observe::{Content, PacketEvent};
use std::collections::HashMap;

/// The packets of a flow.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    /// The data packets that arrived, in the order of their arrival.
    pub arrivals: Vec<Arrival>,
    /// The round-trip samples of the acknowledgements that reached the sender: when, in seconds, and in milliseconds.
    pub round_trips: Vec<(f64, f64)>,
    /// The datagrams on their way, and when they were sent.
    sent: HashMap<u64, Time>,
    /// The data acknowledged of each connection.
    acknowledged: HashMap<u32, u64>,
}

/// A data packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When it was sent, in seconds.
    pub sent: f64,
    /// When it arrived, in seconds.
    pub arrived: f64,
}

impl From<Vec<Arrival>> for Packets {
    fn from(arrivals: Vec<Arrival>) -> Self {
        Self { arrivals, ..Self::default() }
    }
}

impl Packets {
    /// A packet passed a host of the flow.
    pub(super) fn record(&mut self, event: &PacketEvent) {
        match (event.content, event.leaving) {
            (Content::Datagram(number), true) => {
                self.sent.insert(number, event.now);
            }
            (Content::Datagram(number), false) => {
                if let Some(sent) = self.sent.remove(&number) {
                    self.arrived(sent, event.now);
                }
            }
            (Content::Segment(segment), false) if segment.bytes > 0 => self.arrived(segment.sent, event.now),
            (Content::Acknowledgement(acknowledgement), false) if !acknowledgement.syn => {
                let before = self.acknowledged.entry(event.connection).or_default();
                if acknowledgement.ack > *before {
                    *before = acknowledgement.ack;
                    let rtt = event.now - acknowledgement.echo;
                    self.round_trips.push((seconds(event.now), rtt.as_secs_f64() * 1e3));
                }
            }
            _ => {}
        }
    }

    fn arrived(&mut self, sent: Time, now: Time) {
        self.arrivals.push(Arrival { sent: seconds(sent), arrived: seconds(now) });
    }

    /// The arrivals after one point in time and not after another.
    pub(crate) fn between(&self, from: f64, to: f64) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter().filter(move |it| it.arrived > from && it.arrived <= to)
    }

    /// The frames: what was sent at the same instant, as it was sent and with the arrival of its last packet.
    pub(crate) fn frames(&self, from: f64, to: f64) -> Vec<Arrival> {
        let mut frames: Vec<Arrival> = Vec::new();
        for packet in self.between(from, to) {
            match frames.iter_mut().rev().take(8).find(|frame| frame.sent.total_cmp(&packet.sent).is_eq()) {
                Some(frame) => frame.arrived = packet.arrived,
                None => frames.push(*packet),
            }
        }
        frames
    }
}

fn seconds(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}
