// SPDX-License-Identifier: MIT OR Apache-2.0
//! When links of radio and cable deliver packets: generated traces in the format of Mahimahi, a line with a time in
//! milliseconds for each 1500 bytes. Public traces of such links have about these bursts, gaps and changes of rate;
//! none of them was copied.

use lowtide_cc::Random;
use std::fmt::Write;

/// Writes one.
pub(crate) type Trace = fn(&mut Random) -> String;

/// Then it repeats, milliseconds.
const LENGTH: f64 = 100_000.0;
/// Bits that a line stands for.
const PACKET: f64 = 12_000.0;

/// Times at which whatever has come together by then is delivered.
#[derive(Default)]
struct Lines {
    text: String,
    left: f64,
}

impl Lines {
    fn packets(&mut self, ms: f64, packets: f64) {
        self.left += packets;
        while self.left >= 1.0 {
            self.left -= 1.0;
            let _ = writeln!(self.text, "{}", ms as u64); // writing to a String cannot fail
        }
    }

    /// What has been carried for so long at this rate.
    fn carried(&mut self, ms: f64, long: f64, mbit: f64) {
        self.packets(ms, mbit * 1e3 * long / PACKET);
    }
}

fn between(random: &mut Random, least: f64, most: f64) -> f64 {
    least + (most - least) * random.uniform()
}

fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * libm::log(1.0 - random.uniform())
}

/// 20 Mbit/s, granted every 4 to 6 ms.
pub(crate) fn docsis(random: &mut Random) -> String {
    let (mut lines, mut now) = (Lines::default(), 0.0);
    while now < LENGTH {
        let gap = between(random, 4.0, 6.0);
        now += gap;
        lines.carried(now, gap, 20.0);
    }
    lines.text
}

/// 5 to 40 packets at a time, 2 to 30 ms apart: other stations have the channel meanwhile.
pub(crate) fn wifi(random: &mut Random) -> String {
    let (mut lines, mut now) = (Lines::default(), 0.0);
    while now < LENGTH {
        now += (2.0 + exponential(random, 7.4)).min(30.0);
        lines.packets(now, between(random, 5.0, 41.0).floor());
    }
    lines.text
}

/// Slots of 2.5 ms at 50 to 150 Mbit/s, another rate after 50 to 200 ms.
pub(crate) fn tdd(random: &mut Random) -> String {
    let (mut lines, mut now, mut next, mut rate) = (Lines::default(), 0.0, 0.0, 0.0);
    while now < LENGTH {
        if now >= next {
            rate = between(random, 50.0, 150.0);
            next = now + between(random, 50.0, 200.0);
        }
        now += 2.5;
        lines.carried(now, 2.5, rate);
    }
    lines.text
}

/// A rate that moves by a factor of two about 7.5 Mbit/s within seconds, and 100 to 400 ms without any every 20 s.
pub(crate) fn lte(random: &mut Random) -> String {
    /// Standard deviation of the logarithm of the rate.
    const SPREAD: f64 = 0.6;
    /// For which the rate remembers its past, ms.
    const MEMORY: f64 = 1000.0;
    let (mut lines, mut now, mut log) = (Lines::default(), 0.0, 0.0);
    let (mut outage, mut over) = (exponential(random, 20_000.0), 0.0);
    while now < LENGTH {
        now += 1.0;
        // the sum of twelve has about a normal distribution of variance 1
        let normal = (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
        log += -log / MEMORY + SPREAD * (2.0 / MEMORY).sqrt() * normal;
        if now >= outage {
            over = now + between(random, 100.0, 400.0);
            outage = now + exponential(random, 20_000.0);
        }
        if now >= over {
            lines.carried(now, 1.0, (7.5 * libm::exp(log)).clamp(0.5, 40.0));
        }
    }
    lines.text
}

/// 8 to 40 Mbit/s, another rate every 15 s.
pub(crate) fn starlink(random: &mut Random) -> String {
    let (mut lines, mut now, mut next, mut rate) = (Lines::default(), 0.0, 0.0, 0.0);
    while now < LENGTH {
        if now >= next {
            rate = between(random, 8.0, 40.0);
            next += 15_000.0;
        }
        now += 1.0;
        lines.carried(now, 1.0, rate);
    }
    lines.text
}
