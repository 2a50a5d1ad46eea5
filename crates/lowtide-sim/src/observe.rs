// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watching a simulation while it runs.

use lowtide_deadline::Basis;
use lowtide_net::{Ecn, Time};

/// An observer of a simulation. Every method is empty by default, and costs nothing then.
pub trait Observer {
    /// Whether [`Observer::packet`] wants to be called.
    fn wants_packets(&self) -> bool {
        false
    }

    /// Whether [`Observer::flow`] and [`Observer::bottleneck`] want to be called.
    fn wants_samples(&self) -> bool {
        false
    }

    /// A sample of a flow, at every sample interval.
    fn flow(&mut self, _sample: &FlowSample<'_>) {}

    /// A sample of a bottleneck, at every sample interval.
    fn bottleneck(&mut self, _sample: &BottleneckSample) {}

    /// Asked after all samples of a time: whether the run may end there. Its outcome is then that of a scenario so
    /// long.
    fn has_seen_enough(&self) -> bool {
        false
    }

    /// A host sent or received a packet.
    fn packet(&mut self, _packet: &PacketEvent) {}

    /// The simulation has come so far; called about a thousand times in a run.
    fn progress(&mut self, _now: Time) {}
}

/// The observer of a simulation that is not observed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Observer for Nobody {}

/// The state of a flow. Rates are over the interval since the sample before.
#[derive(Clone, Debug)]
pub struct FlowSample<'a> {
    /// When.
    pub now: Time,
    /// Which flow: its index in [`Outcome::flows`](crate::Outcome::flows).
    pub flow: usize,
    /// Payload bytes delivered so far.
    pub delivered: u64,
    /// Payload delivered, bits per second.
    pub rate_bps: f64,
    /// Window in segments; `None` for UDP.
    pub cwnd: Option<f64>,
    /// Slow-start threshold in segments, if set.
    pub ssthresh: Option<f64>,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Newest round-trip sample, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Newest true one-way delay, milliseconds.
    pub one_way_delay_ms: Option<f64>,
    /// Retransmissions so far.
    pub retransmits: u64,
    /// Window reductions so far.
    pub reductions: u64,
    /// The law's inner values, by name.
    pub inner: &'a [(&'static str, f64)],
    /// What steers it, while a transfer with a deadline is under way.
    pub control: Option<ControlSample>,
}

/// The state of the control of a weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlSample {
    /// w.
    pub weight: f64,
    /// ζ, bits per second; `None` past the deadline.
    pub target_bps: Option<f64>,
    /// x̄ of the latest update interval, bits per second.
    pub achieved_bps: f64,
    /// φ.
    pub price_ratio: f64,
    /// What w rests on.
    pub basis: Basis,
}

/// The state of a bottleneck. Counts are over the interval since the sample before.
#[derive(Clone, Debug)]
pub struct BottleneckSample {
    /// When.
    pub now: Time,
    /// Which: its index in [`Outcome::bottlenecks`](crate::Outcome::bottlenecks).
    pub bottleneck: usize,
    /// Packets in the buffer now.
    pub queue_packets: u64,
    /// Bytes in the buffer now.
    pub queue_bytes: u64,
    /// Mean queueing delay of the packets delivered in the interval, milliseconds.
    pub queue_ms: f64,
    /// Packets delivered.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Share of the capacity used.
    pub utilisation: f64,
}

/// A packet at a host's interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketEvent {
    /// When it passed.
    pub now: Time,
    /// The flow's index in [`Outcome::flows`](crate::Outcome::flows).
    pub flow: usize,
    /// The number of the connection within the flow, from 0 (a web source makes many).
    pub connection: u32,
    /// Whether the flow's sender sends it (data direction), or its receiver (ACKs).
    pub from_sender: bool,
    /// Whether it is seen leaving its host (`true`) or arriving at the other (`false`).
    pub leaving: bool,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// What it is.
    pub content: Content,
}

/// What a packet holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// A TCP segment of the sender.
    Segment(crate::tcp::Segment),
    /// A TCP acknowledgement of the receiver.
    Acknowledgement(crate::tcp::Acknowledgement),
    /// A datagram with its number.
    Datagram(u64),
}
