// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cells of the table: a seeded sample of all links, and the noisy links.

use lowtide_cc::Random;
use std::fmt;

const RATES_MBIT: [u32; 4] = [5, 10, 20, 100];
const RTTS_MS: [u32; 4] = [10, 20, 40, 100];
const BUFFERS_BDP: [f64; 3] = [0.5, 1.0, 4.0];

/// Of the sample. Another one draws other cells.
const SEED: u64 = 32;

/// A link, and whether a CUBIC flow competes on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) rate_mbit: u32,
    /// Base RTT.
    pub(crate) rtt_ms: u32,
    /// Size of the droptail buffer.
    pub(crate) buffer_bdp: f64,
    /// Jitter of either direction. With jitter the transfer is alone on the link.
    pub(crate) jitter_ms: Option<u32>,
}

impl Cell {
    /// The link of 20 Mbit/s and 40 ms, with this jitter in both directions and without a competing flow.
    pub(crate) const fn noisy(jitter_ms: u32) -> Self {
        Self { rate_mbit: 20, rtt_ms: 40, buffer_bdp: 1.0, jitter_ms: Some(jitter_ms) }
    }

    /// Whether no CUBIC flow competes.
    pub(crate) const fn alone(&self) -> bool {
        self.jitter_ms.is_some()
    }

    /// Whether its emulator takes a large part of a processor.
    pub(crate) const fn heavy(&self) -> bool {
        self.rate_mbit >= 100
    }

    /// Whether its BDP is about four segments, so that a single one in flight is a large share.
    pub(crate) const fn tiny(&self) -> bool {
        self.rate_mbit <= 5 && self.rtt_ms <= 10
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Mbit/s, {} ms, {} BDP", self.rate_mbit, self.rtt_ms, self.buffer_bdp)?;
        self.jitter_ms.map_or(Ok(()), |jitter| write!(f, ", jitter {jitter} ms, alone"))
    }
}

/// So many cells beside a CUBIC flow. A smaller sample is the beginning of a larger one. From four on each value is in
/// it, from sixteen on each pair of a rate and an RTT.
pub(crate) fn sample(number: usize) -> Vec<Cell> {
    let mut left = shuffled(all());
    let mut chosen: Vec<Cell> = Vec::new();
    while chosen.len() < number && !left.is_empty() {
        // The cell whose values have been drawn least often so far, and of those the first one.
        let drawn = |cell: &Cell| {
            let times = |same: fn(&Cell, &Cell) -> bool| chosen.iter().filter(|other| same(cell, other)).count();
            let pair = times(|a, b| a.rate_mbit == b.rate_mbit && a.rtt_ms == b.rtt_ms);
            let values = times(|a, b| a.rate_mbit == b.rate_mbit)
                + times(|a, b| a.rtt_ms == b.rtt_ms)
                + times(|a, b| a.buffer_bdp == b.buffer_bdp);
            (pair, values)
        };
        let next = (0..left.len()).min_by_key(|index| drawn(&left[*index])).expect("some are left");
        chosen.push(left.remove(next));
    }
    chosen
}

/// All cells beside a CUBIC flow.
pub(crate) fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    for rate_mbit in RATES_MBIT {
        for rtt_ms in RTTS_MS {
            cells.extend(BUFFERS_BDP.map(|buffer_bdp| Cell { rate_mbit, rtt_ms, buffer_bdp, jitter_ms: None }));
        }
    }
    cells
}

/// The shuffle of Fisher and Yates.
fn shuffled(mut cells: Vec<Cell>) -> Vec<Cell> {
    let mut random = Random::new(SEED);
    for last in (1..cells.len()).rev() {
        cells.swap(last, (random.uniform() * (last + 1) as f64) as usize);
    }
    cells
}
