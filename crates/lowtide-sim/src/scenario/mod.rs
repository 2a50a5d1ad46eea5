// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is simulated.

use lowtide_cc::Law;
use lowtide_net::{BufferSize, Discipline, Rate};
use std::{path::PathBuf, time::Duration};

/// A whole experiment.
#[derive(Clone, Debug)]
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
}

/// One direction of a link with a queue.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    /// Its name.
    pub name: String,
    /// Its capacity, counted in IP bytes.
    pub rate: Rate,
    /// Base round-trip time of flows that set none of their own; what `bdp` in `buffer` refers to.
    pub rtt: Duration,
    /// The buffer.
    pub buffer: BufferSize,
    /// The queue discipline.
    pub queue: Discipline,
    // the rest of LinkConfig: schedule, loss, jitter, reordering, policing, shaper burst
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

/// A flow, or `count` flows that are alike.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its transport.
    pub transport: Transport,
    /// What it sends.
    pub source: Source,
    /// When it begins.
    pub start: Duration,
    /// When it ends, whatever is left; `None`: with the simulation.
    pub stop: Option<Duration>,
    /// Base round-trip time without queues and serialisation.
    pub rtt: Duration,
    /// Rate of its access link; `None`: unlimited.
    pub access: Option<Rate>,
    /// The bottlenecks that it passes, by index; ascending.
    pub path: Vec<usize>,
    /// Which way its data goes.
    pub direction: Direction,
}

/// How a flow's data is sent.
#[derive(Clone, Debug)]
pub enum Transport {
    /// TCP under a control law.
    Tcp(Box<Tcp>),
    /// Datagrams, sent as they come.
    Udp,
}

/// The settings of a TCP connection.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// The control law.
    pub law: Law,
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
    /// The least time that the retransmission timer adds to the smoothed round-trip time (Linux: 200 ms; RFC 6298: 1 s).
    pub rto_min: Duration,
    /// Whether to spread segments over the round trip where the law gives no rate of its own.
    pub pacing: bool,
    /// Whether the window is validated after idle times (RFC 2861).
    pub validate_window: bool,
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// As much as it can.
    Greedy,
    /// So many bytes.
    Sized(u64),
    /// Frames at a constant rate: `bytes` each, one every `interval`, sent as one burst of packets.
    Constant {
        /// Payload bytes of a frame.
        bytes: u64,
        /// Time between frames.
        interval: Duration,
    },
    /// Packets of `bytes` payload with exponentially distributed gaps.
    Poisson {
        /// Payload bytes.
        bytes: u64,
        /// Mean gap.
        mean: Duration,
    },
    /// Greedy while on, with exponentially distributed times.
    OnOff {
        /// Mean time on.
        on: Duration,
        /// Mean time off.
        off: Duration,
    },
    /// Web-like sessions: each a new connection with a heavy-tailed (bounded Pareto) size.
    Web {
        /// Mean offered load.
        load: Rate,
    },
    /// Replay of a file with lines `time,bytes`.
    Trace(PathBuf),
}
