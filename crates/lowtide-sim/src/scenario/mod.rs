// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is simulated, and its form as a text in TOML.
//!
//! [`ScenarioFile::read`] and [`ScenarioFile::parse`] accept only what can be simulated. [`ScenarioFile::to_toml`]
//! prints it with all its values, and what it prints reads back as the same.

mod deadline;
mod error;
mod flow;
mod fluid;
mod frame;
mod link;
mod model;
mod overrides;
mod pareto;
mod print;
mod read;
mod scenario_file;
mod source;
mod steering;
mod trace;
mod tree;
mod values;

pub use deadline::{Deadline, Ratio};
pub use error::ScenarioError;
pub use model::model_of;
pub use pareto::BoundedPareto;
pub use scenario_file::ScenarioFile;
pub use source::{Arrivals, Connections, Source, Web};
pub use steering::{Control, RatioKind, Steering};
pub use values::SourceError;

use lowtide_cc::{Actuator, Law};
use lowtide_net::{
    BufferSize, Class, DelaySchedule, Discipline, Jitter, LinkConfig, LossModel, Police, Rate, Reordering, Schedule,
};
use std::time::Duration;

/// Bytes of the largest IP packet; a datagram source cuts its frames to fit.
pub const MTU: u32 = 1500;

/// Bytes of IPv4 and UDP header on each datagram.
pub const UDP_HEADER: u32 = 28;

/// A whole experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Seed of all chance.
    pub seed: u64,
    /// Simulated time.
    pub duration: Duration,
    /// Means are taken from here to the end.
    pub measure_from: Duration,
    /// The bottlenecks in the order in which the forward direction passes them; at least one.
    pub bottlenecks: Vec<Bottleneck>,
    /// The bottleneck of the reverse direction; `None`: the reverse path has unlimited capacity.
    pub reverse: Option<Bottleneck>,
    /// The flows, in the order of their declaration.
    pub flows: Vec<Flow>,
    /// Time between two samples of the time series.
    pub sample_interval: Duration,
    /// Spans of time of which means are wanted.
    pub spans: Vec<Span>,
}

/// A span of the simulated time, not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub from: Duration,
    /// Where it ends.
    pub to: Duration,
}

/// One direction of a link with a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// Its name.
    pub name: String,
    /// Its capacity, counted in IP bytes; what `bdp` in `buffer` refers to.
    pub rate: Rate,
    /// Its capacity over time, where that changes; then `rate` serves only for `buffer`.
    pub schedule: Option<Schedule>,
    /// What it adds to the base round-trip time of flows that set none of their own; what `bdp` in `buffer` refers to.
    pub rtt: Duration,
    /// What it adds over time, where that changes, half of it either way; then `rtt` is a part of what flows set for
    /// their own. Only of the forward direction.
    pub rtt_schedule: Option<DelaySchedule>,
    /// The buffer.
    pub buffer: BufferSize,
    /// The queue discipline.
    pub queue: Discipline,
    /// Random loss before the queue.
    pub loss: LossModel,
    /// Random delay that keeps the order.
    pub jitter: Jitter,
    /// The same for what goes the other way, where there is no `reverse` bottleneck. Only of the forward direction.
    pub reverse_jitter: Jitter,
    /// Packets that fall back behind others.
    pub reordering: Reordering,
    /// What exceeds a rate is dropped before the queue.
    pub police: Option<Police>,
    /// Bytes that the link saves while idle and then sends at once.
    pub burst: u64,
}

impl Bottleneck {
    /// A link with tail drop and a buffer of one bandwidth-delay product.
    pub fn new(name: &str, rate: Rate, rtt: Duration) -> Self {
        Self {
            name: name.to_owned(),
            rate,
            schedule: None,
            rtt,
            rtt_schedule: None,
            buffer: BufferSize::Bdp(1.0),
            queue: Discipline::DropTail,
            loss: LossModel::NONE,
            jitter: Jitter::NONE,
            reverse_jitter: Jitter::NONE,
            reordering: Reordering::NONE,
            police: None,
            burst: 0,
        }
    }

    /// What it can carry, and when.
    pub fn capacity(&self) -> Schedule {
        self.schedule.clone().unwrap_or(Schedule::constant(self.rate))
    }

    /// What lies behind the link, and what on the way back, where that takes a time of its own: no packet waits for
    /// another one there. With this seed of its chance.
    pub fn wires(&self, seed: u64) -> [Option<LinkConfig>; 2] {
        let there = self.rtt_schedule.as_ref().map(|rtt| rtt.map(|rtt| rtt / 2));
        let back = self.rtt_schedule.as_ref().map(|rtt| rtt.map(|rtt| rtt - rtt / 2));
        let back = back.or_else(|| (self.reverse_jitter != Jitter::NONE).then(|| Duration::ZERO.into()));
        let back = back.map(|back| LinkConfig { jitter: self.reverse_jitter, seed, ..LinkConfig::wire(back) });
        [there.map(LinkConfig::wire), back]
    }

    /// The link, with this one-way propagation delay after it and this seed of its chance.
    pub fn link(&self, delay: Duration, seed: u64) -> LinkConfig {
        LinkConfig {
            burst: self.burst,
            jitter: self.jitter,
            reordering: self.reordering,
            discipline: self.queue.clone(),
            loss: self.loss,
            police: self.police,
            seed,
            ..LinkConfig::new(self.capacity(), delay, self.buffer.resolve(self.rate, self.rtt, MTU))
        }
    }
}

/// Which way a flow's data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Through the bottlenecks.
    #[default]
    Forward,
    /// Through the reverse bottleneck; its ACKs go through the bottlenecks.
    Reverse,
}

/// A flow. Where a file says `count = 3`, three of them are made, `name-1` to `name-3`.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its transport.
    pub transport: Transport,
    /// The law by which its receiver chooses the windows that it offers; `None`: they are as large as they can be.
    pub receiver: Option<Law>,
    /// What it sends.
    pub source: Source,
    /// When it begins.
    pub start: Duration,
    /// When it ends, whatever is left; `None`: with the simulation.
    pub stop: Option<Duration>,
    /// When the whole of a sized transfer is to be done: its law gets the weight that this calls for. `None`: no
    /// deadline, the law is as published.
    pub deadline: Option<Deadline>,
    /// A price weight that stays the same; `None`: none, or what the deadline calls for. It is that of the receiver's
    /// law if there is one.
    pub weight: Option<f64>,
    /// How its law takes a weight; `None`: by the law's usual actuator, if there is a weight to take.
    pub actuator: Option<Actuator>,
    /// Base round-trip time without queues and serialisation.
    pub rtt: Duration,
    /// Rate of its access link; `None`: unlimited.
    pub access: Option<Rate>,
    /// The bottlenecks that it passes, by index; ascending.
    pub path: Vec<usize>,
    /// Which way its data goes.
    pub direction: Direction,
    /// Whether its data is background to a queue with priorities; no other looks at it.
    pub class: Class,
}

impl Flow {
    /// A greedy TCP flow over the first bottleneck, from the beginning to the end.
    pub fn greedy(name: &str, law: Law, rtt: Duration) -> Self {
        Self {
            name: name.to_owned(),
            transport: Transport::Tcp(Box::new(Tcp::new(law))),
            receiver: None,
            source: Source::Greedy,
            start: Duration::ZERO,
            stop: None,
            deadline: None,
            weight: None,
            actuator: None,
            rtt,
            access: None,
            path: vec![0],
            direction: Direction::Forward,
            class: Class::Foreground,
        }
    }

    /// The actuator that its law goes with; `None`: its law is as published.
    pub fn steered_by(&self) -> Option<Actuator> {
        let Transport::Tcp(tcp) = &self.transport else { return None };
        let steered = self.deadline.is_some() || self.weight.is_some();
        self.actuator.clone().or_else(|| steered.then(|| tcp.law.default_actuator()).flatten())
    }
}

/// How a flow's data is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// TCP under a control law.
    Tcp(Box<Tcp>),
    /// Datagrams, sent as they come.
    Udp,
}

/// The settings of a TCP connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// The control law.
    pub law: Law,
    /// Whether it is the port that runs in the kernel (`port=kernel`), and not the reference.
    pub port: bool,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Bytes of IP and TCP header on each segment.
    pub header: u32,
    /// Segments of the initial window.
    pub initial_window: u32,
    /// The receiver's window in bytes.
    pub receive_window: u64,
    /// An ACK is sent for so many full segments at the latest; 1: no delayed ACKs. More than 2: stretch ACKs.
    pub ack_every: u32,
    /// And after so long at the latest.
    pub ack_delay: Duration,
    /// So many ACKs at the start are not delayed, so that slow start is not held up (Linux: 16).
    pub quick_acks: u32,
    /// The least time that the retransmission timer adds to the smoothed round-trip time (Linux: 200 ms; RFC 6298: 1
    /// s).
    pub rto_min: Duration,
    /// Whether to spread segments over the round trip where the law gives no rate of its own.
    pub pacing: bool,
    /// Whether the window is validated after idle times (RFC 2861).
    pub validate_window: bool,
}

impl Tcp {
    /// A host as Linux has it today, with full Ethernet packets and a timestamp option: 1448 bytes of payload in 1500.
    pub const fn new(law: Law) -> Self {
        Self {
            law,
            port: false,
            mss: 1448,
            header: 52,
            initial_window: 10,
            // net.ipv4.tcp_rmem[2]: as far as the window grows by itself
            receive_window: 6 << 20,
            ack_every: 2,
            ack_delay: Duration::from_millis(40),
            quick_acks: 16,
            rto_min: Duration::from_millis(200),
            pacing: false,
            validate_window: true,
        }
    }
}
