// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cells of the matrix, their names, and the scenario of each.

use lowtide_cc::Random;
use std::fmt::{self, Write};

/// Laws that carry the transfer. Each takes its weight by its usual actuator.
pub(crate) const HOSTS: [&str; 7] = ["cubic", "reno", "vegas", "cdg", "dctcp", "eclipse", "tide"];
/// What moves the weight.
pub(crate) const CONTROLS: [&str; 2] = ["pid", "mbc"];
/// Base round-trip times, ms.
pub(crate) const RTTS: [u64; 4] = [10, 50, 150, 300];
/// Capacities, Mbit/s.
pub(crate) const RATES: [u64; 3] = [5, 50, 500];
/// Per cent of the feasible bound.
pub(crate) const DEMANDS: [u64; 4] = [10, 30, 60, 90];

/// A queue: its name here, and what a scenario calls it. The two that keep their delay by themselves have Linux' 10240
/// packets of room. CoDel marks what is ECN-capable, or DCTCP would find nothing that marks but FQ-CoDel.
pub(crate) struct QueueKind {
    pub(crate) name: &'static str,
    buffer: &'static str,
    queue: &'static str,
}

pub(crate) const QUEUES: [QueueKind; 5] = [
    QueueKind { name: "droptail0.5", buffer: "0.5bdp", queue: "droptail" },
    QueueKind { name: "droptail1", buffer: "1bdp", queue: "droptail" },
    QueueKind { name: "droptail4", buffer: "4bdp", queue: "droptail" },
    QueueKind { name: "codel", buffer: "10240p", queue: "codel:ecn=on" },
    QueueKind { name: "fq_codel", buffer: "10240p", queue: "fq_codel" },
];

/// Who shares the link: a name, the law, how many flows (web: one source of sessions).
pub(crate) struct Competitors {
    pub(crate) name: &'static str,
    law: &'static str,
    pub(crate) flows: u64,
    pub(crate) web: bool,
}

pub(crate) const COMPETITORS: [Competitors; 5] = [
    Competitors { name: "none", law: "", flows: 0, web: false },
    Competitors { name: "cubic", law: "cubic", flows: 1, web: false },
    Competitors { name: "cubic3", law: "cubic", flows: 3, web: false },
    Competitors { name: "bbr3", law: "bbr3", flows: 1, web: false },
    Competitors { name: "web", law: "cubic", flows: 1, web: true },
];

/// Part of the link that web sessions ask for.
const WEB_LOAD: f64 = 0.5;
/// Payload of a full packet, and the packet.
const PAYLOAD: f64 = 1448.0 / 1500.0;
/// The flows beside the transfer begin so far apart, or they would move in step.
const STAGGER_S: f64 = 1.3;
/// A transfer that is late is followed for so much longer, in parts of its time.
pub(crate) const OVERTIME: f64 = 0.5;

/// Where a transfer runs: everything but the transfer itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) rtt: u64,
    pub(crate) rate: u64,
    pub(crate) queue: usize,
    pub(crate) competitors: usize,
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) host: &'static str,
    pub(crate) control: &'static str,
    pub(crate) demand: u64,
    pub(crate) place: Place,
}

impl Place {
    pub(crate) fn queue(&self) -> &'static QueueKind {
        &QUEUES[self.queue]
    }

    pub(crate) fn competitors(&self) -> &'static Competitors {
        &COMPETITORS[self.competitors]
    }

    /// When the transfer begins: competitors have found their rates, as far as they ever do.
    pub(crate) const fn begin(&self) -> f64 {
        if self.is_long() { 60.0 } else { 30.0 }
    }

    /// How long it has: see the head of `main.rs`.
    pub(crate) const fn time(&self) -> f64 {
        if self.is_long() { 600.0 } else { 300.0 }
    }

    const fn is_long(&self) -> bool {
        self.rtt > 100
    }

    /// Payload that the link can carry, bits per second.
    pub(crate) fn capacity(&self) -> f64 {
        self.rate as f64 * 1e6 * PAYLOAD
    }

    /// Full packets in a bandwidth-delay product.
    const fn bdp(&self) -> u64 {
        self.rate * 1_000_000 * self.rtt / 1000 / 12_000
    }

    /// A fair share of it. Web sessions count as one flow, as they would have if they were one.
    pub(crate) fn fair_share(&self) -> f64 {
        self.capacity() / (self.competitors().flows + 1) as f64
    }

    /// The yardstick: a greedy flow in the lower class of a queue with strict priority.
    pub(crate) fn ideal(&self) -> String {
        let flow = format!("cc = \"cubic\"\nstart = \"{}s\"\nclass = \"background\"\n", self.begin());
        self.scenario(&format!("priority:{}", self.queue().queue), self.begin() + self.time(), &flow)
    }

    /// The same seed for all that happens in a place: cells of a place differ in the transfer alone.
    fn seed(&self) -> u64 {
        let number = (self.rtt * 1000 + self.rate) * 100 + (self.queue * 10 + self.competitors) as u64;
        Random::new(number).bits() >> 32
    }

    fn scenario(&self, queue: &str, duration: f64, transfer: &str) -> String {
        let mut text = format!("seed = {}\nduration = \"{duration}s\"\nsample = \"1s\"\n\n", self.seed());
        // A host tuned for its path, or its receive window would be the bottleneck: two bandwidth-delay products beside
        // the queue's four. Linux' usual 6 MiB at the least.
        let window = (6 * 1500 * self.bdp()).max(6 << 20);
        write!(text, "[tcp]\nreceive_window = \"{window}B\"\n\n").expect("a string");
        let (rtt, rate, buffer) = (self.rtt, self.rate, self.queue().buffer);
        write!(
            text,
            "[bottleneck]\nrate = \"{rate}mbit\"\nrtt = \"{rtt}ms\"\nbuffer = \"{buffer}\"\nqueue = \"{queue}\"\n"
        )
        .expect("a string");
        let &Competitors { law, flows, web, .. } = self.competitors();
        for number in 0..flows {
            let start = STAGGER_S * number as f64;
            write!(text, "\n[[flow]]\nname = \"fg-{}\"\ncc = \"{law}\"\nstart = \"{start}s\"\n", number + 1)
                .expect("a string");
            if web {
                let load = WEB_LOAD * self.capacity();
                writeln!(text, "source = \"web:load={load:.0}bit\"").expect("a string");
            }
        }
        text + "\n[[flow]]\nname = \"transfer\"\n" + transfer
    }
}

impl Cell {
    /// The cell as a scenario, where a rate of `bound` bits per second is feasible.
    pub(crate) fn scenario(&self, bound: f64) -> String {
        let &Self { host, control, place, .. } = self;
        let (begin, time, bytes) = (place.begin(), place.time(), self.bytes(bound));
        // The framework gives Vegas an α of up to half a bandwidth-delay product; that of weight 1 is 15.
        let parameters =
            if host == "vegas" { format!(":alpha_max={}", (place.bdp() / 2).max(15)) } else { String::new() };
        let flow = format!(
            "cc = \"{host}{parameters}\"\ncontrol = \"{control}\"\nsize = \"{bytes}B\"\nstart = \"{begin}s\"\ndeadline = \"{time}s\"\n"
        );
        place.scenario(place.queue().queue, begin + (1.0 + OVERTIME) * time, &flow)
    }

    /// What the transfer has to move where a rate of `bound` bits per second is feasible.
    fn bytes(&self, bound: f64) -> u64 {
        (self.demand as f64 / 100.0 * bound * self.place.time() / 8.0) as u64
    }

    /// The same with a plain CUBIC flow in the transfer's place, until the deadline. Cells that differ in host or
    /// control alone have this in common.
    pub(crate) fn plain(&self, bound: f64) -> String {
        let (place, bytes) = (self.place, self.bytes(bound));
        let flow = format!("cc = \"cubic\"\nsize = \"{bytes}B\"\nstart = \"{}s\"\n", place.begin());
        place.scenario(place.queue().queue, place.begin() + place.time(), &flow)
    }

    /// What that run is called.
    pub(crate) fn plain_name(&self) -> String {
        format!("plain-cubic-d{}-{}", self.demand, self.place)
    }

    /// The cell that is called so.
    pub(crate) fn named(name: &str) -> Option<Self> {
        pairs().into_iter().flatten().find(|cell| cell.to_string() == name)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms-{}mbit-{}-{}", self.rtt, self.rate, self.queue().name, self.competitors().name)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-d{}-{}", self.host, self.control, self.demand, self.place)
    }
}

/// All cells; those of a pair differ in their control alone.
pub(crate) fn pairs() -> Vec<[Cell; 2]> {
    let mut pairs = Vec::new();
    for rtt in RTTS {
        for rate in RATES {
            for queue in 0..QUEUES.len() {
                for competitors in 0..COMPETITORS.len() {
                    let place = Place { rtt, rate, queue, competitors };
                    for demand in DEMANDS {
                        for host in HOSTS {
                            pairs.push(CONTROLS.map(|control| Cell { host, control, demand, place }));
                        }
                    }
                }
            }
        }
    }
    pairs
}

/// So many pairs by chance, always the same ones; fewer of them are the first of more.
pub(crate) fn sample(number: usize) -> Vec<[Cell; 2]> {
    let mut pairs = pairs();
    let mut random = Random::new(1);
    let number = number.min(pairs.len());
    for chosen in 0..number {
        let other = chosen + (random.bits() % (pairs.len() - chosen) as u64) as usize;
        pairs.swap(chosen, other);
    }
    pairs.truncate(number);
    pairs
}
