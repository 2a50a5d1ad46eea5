// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paths.

use super::traces::{self, Trace};
use std::time::Duration;

/// What is asked of a law there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The RTT of the idle path is constant.
    Clean,
    /// Jitter of up to 5 ms in both directions, or random loss.
    Noisy,
    /// More jitter, or a rate that varies within a round trip or over seconds.
    Rough,
}

/// A bottleneck between two hosts.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) class: Class,
    /// Mean, Mbit/s.
    pub(crate) rate_mbit: u32,
    pub(crate) rtt_ms: u32,
    /// What makes it differ from a droptail buffer of one BDP, for people. Empty: nothing.
    pub(crate) what: &'static str,
    /// The same for a scenario: keys of its bottleneck.
    keys: &'static str,
    /// Whether data and ACKs have the same bottleneck, as the emulator has it for random loss.
    both_ways: bool,
    /// When it delivers packets.
    pub(crate) trace: Option<Trace>,
    /// Whether as many processes as there are processors keep them busy.
    pub(crate) busy: bool,
}

/// A buffer has room for so many packets at least. On a slow link of a short RTT the BDP is less than one.
const LEAST_BUFFER: u32 = 16;
/// Bits of the IP packets that fill it.
const PACKET: f64 = 8.0 * 1500.0;

impl Link {
    const fn new(class: Class, rate_mbit: u32, rtt_ms: u32, what: &'static str, keys: &'static str) -> Self {
        Self { class, rate_mbit, rtt_ms, what, keys, both_ways: false, trace: None, busy: false }
    }

    /// The name of this path, by which it is chosen and kept.
    pub(crate) fn name(&self) -> String {
        let comma = if self.what.is_empty() { "" } else { ", " };
        format!("{} Mbit/s, {} ms{comma}{}", self.rate_mbit, self.rtt_ms, self.what)
    }

    pub(crate) fn rtt(&self) -> Duration {
        Duration::from_millis(self.rtt_ms.into())
    }

    /// Whether it is the link of the README.
    pub(crate) const fn is_usual(&self) -> bool {
        self.rate_mbit == 20 && self.rtt_ms == 40 && self.what.is_empty()
    }

    /// Whether its emulator takes a large part of a processor.
    pub(crate) const fn is_heavy(&self) -> bool {
        self.rate_mbit >= 100 || self.busy
    }

    /// The bottleneck's tables in a scenario. A trace is looked for in `trace`, beside the scenario.
    pub(crate) fn tables(&self, trace: &str) -> String {
        let bdp = f64::from(self.rate_mbit) * 1e3 * f64::from(self.rtt_ms) / PACKET;
        let buffer = match self.keys.contains("buffer") {
            true => String::new(),
            false if bdp < f64::from(LEAST_BUFFER) => format!("buffer = \"{LEAST_BUFFER}p\"\n"),
            false => "buffer = \"1bdp\"\n".to_owned(),
        };
        let schedule = self.trace.as_ref().map_or(String::new(), |_| format!("schedule = \"mahimahi:{trace}\"\n"));
        let (rate, rtt, keys) = (self.rate_mbit, self.rtt_ms, self.keys);
        let table = format!("rate = \"{rate}mbit\"\nrtt = \"{rtt}ms\"\n{buffer}{schedule}{keys}\n");
        let reverse = if self.both_ways { format!("[reverse]\n{table}") } else { String::new() };
        format!("[bottleneck]\n{table}{reverse}")
    }
}

/// All paths, in the order of the page.
pub(crate) fn all() -> Vec<Link> {
    use Class::{Clean, Noisy, Rough};
    let mut links = Vec::new();
    for (rates, rtts) in [(&[1, 2, 5, 10][..], [10, 30, 100]), (&[20, 100, 500], [5, 20, 200])] {
        for rate in rates {
            links.extend(rtts.map(|rtt| Link::new(Clean, *rate, rtt, "", "")));
        }
    }
    links.push(Link::new(Clean, 20, 40, "", ""));
    links.extend(
        [
            ("0.5 BDP", "buffer = \"0.5bdp\""),
            ("2 BDP", "buffer = \"2bdp\""),
            ("4 BDP", "buffer = \"4bdp\""),
            ("CoDel", "buffer = \"4bdp\"\nqueue = \"codel\""),
            ("FQ-CoDel", "buffer = \"4bdp\"\nqueue = \"fq_codel\""),
        ]
        .map(|(what, keys)| Link::new(Clean, 20, 40, what, keys)),
    );
    links.extend(
        [
            (Noisy, "jitter 1 ms", "jitter = \"1ms\"\nreverse_jitter = \"1ms\""),
            (Noisy, "jitter 2 ms", "jitter = \"2ms\"\nreverse_jitter = \"2ms\""),
            (Noisy, "jitter 5 ms", "jitter = \"5ms\"\nreverse_jitter = \"5ms\""),
            (Rough, "jitter 10 ms", "jitter = \"10ms\"\nreverse_jitter = \"10ms\""),
            (Rough, "jitter 20 ms", "jitter = \"20ms\"\nreverse_jitter = \"20ms\""),
        ]
        .map(|(class, what, keys)| Link::new(class, 20, 40, what, keys)),
    );
    links.extend(
        [("loss 0.1 %", "loss = \"0.1%\""), ("loss 1 %", "loss = \"1%\"")]
            .map(|(what, keys)| Link { both_ways: true, ..Link::new(Noisy, 20, 40, what, keys) }),
    );
    let traced = |rate, what, keys, trace| Link { trace: Some(trace), ..Link::new(Rough, rate, 40, what, keys) };
    links.extend([
        traced(20, "bursts as DOCSIS", "", traces::docsis as Trace),
        traced(28, "bursts as Wi-Fi", "", traces::wifi),
        traced(100, "bursts as 5G TDD", "", traces::tdd),
        traced(9, "rate as LTE", "buffer = \"250ms\"", traces::lte),
        traced(
            24,
            "steps as Starlink",
            "rtt_schedule = \"0s:40ms,15s:32ms,30s:47ms,45s:36ms,60s:50ms,75s:38ms,every:90s\"",
            traces::starlink,
        ),
    ]);
    links.push(Link { busy: true, ..Link::new(Clean, 20, 40, "busy host", "") });
    links
}
