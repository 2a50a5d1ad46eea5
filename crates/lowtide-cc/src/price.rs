// SPDX-License-Identifier: MIT OR Apache-2.0
//! What congestion costs a flow: the real signals that it met, by kind, and how much of the window they took.
//!
//! Model-based control and the exchange of prices between kinds of signals (section IV of the DA-LBE paper) need these:
//!
//! ```text
//! φ = Σ W_z·P_z / (W_std·P_loss)      P_z = indications per packet      W_z = mean part of the window that one removes
//! ```
//!
//! Signals that a sender made up are not among them, nor is what a weight makes of a real one: prices are the
//! network's.

use crate::{Ack, Reaction, Signal};

/// Signals of one kind since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// How many. An expected number where the law reacts by chance or by degrees.
    pub indications: f64,
    /// The sum of the parts (κ, from 0 to 1) of the window that each removed, or would have removed at a weight of 1.
    pub removed: f64,
}

impl Price {
    /// The mean part of the window that one indication removes (W); 0 if there was none.
    pub fn weight(&self) -> f64 {
        if self.indications > 0.0 { self.removed / self.indications } else { 0.0 }
    }

    fn add(&mut self, indications: f64, removed: f64) {
        self.indications += indications;
        self.removed += removed;
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            indications: (self.indications - earlier.indications).max(0.0),
            removed: (self.removed - earlier.removed).max(0.0),
        }
    }
}

/// Real congestion since the start, by kind. For a span of time take the difference of two looks, [`Prices::since`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Packets delivered.
    pub packets: u64,
    /// Loss episodes and timeouts.
    pub loss: Price,
    /// Reductions that a law made because of delay. For CDG and Eclipse: what a round's delay costs, added up over
    /// rounds.
    pub delay: Price,
    /// Marks: episodes with classic ECN, packets with accurate ECN (where a marked packet takes half a packet of the
    /// window, as in DCTCP).
    pub mark: Price,
}

impl Prices {
    /// What came after an earlier look at the same flow. Where a loss has turned out to be none since, zero at least.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            loss: self.loss.since(&earlier.loss),
            delay: self.delay.since(&earlier.delay),
            mark: self.mark.since(&earlier.mark),
        }
    }

    /// Indications of a kind per packet (P).
    pub fn per_packet(&self, price: &Price) -> f64 {
        price.indications / self.packets.max(1) as f64
    }

    /// The whole price, Σ W·P: the part of the window that congestion took, per packet.
    pub fn total(&self) -> f64 {
        (self.loss.removed + self.delay.removed + self.mark.removed) / self.packets.max(1) as f64
    }
}

/// Sees a law's reactions from outside.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    seen: Prices,
    /// Whether marks are counted in packets.
    accurate: bool,
    mss: f64,
    /// What the latest loss removed, as long as it may turn out to have been none.
    doubtful: Option<f64>,
}

impl Meter {
    pub(crate) fn new(accurate: bool, mss: u32) -> Self {
        Self { seen: Prices::default(), accurate, mss: f64::from(mss), doubtful: None }
    }

    pub(crate) const fn seen(&self) -> &Prices {
        &self.seen
    }

    /// An ACK took the window from `before` to `after`, bytes.
    pub(crate) fn on_ack(&mut self, ack: &Ack, reaction: Reaction, before: u64, after: u64) {
        self.seen.packets += u64::from(ack.packets);
        if self.accurate && ack.marked > 0 {
            let marked = f64::from(ack.marked);
            self.seen.mark.add(marked, (marked * 0.5 * self.mss / before.max(1) as f64).min(1.0));
        }
        if after < before || reaction == Reaction::Reduced {
            self.seen.delay.add(1.0, removed(before, after));
        }
    }

    /// A signal took the window from `before` to `after`. After a timeout, `after` is where slow start leads back to.
    pub(crate) fn on_congestion(&mut self, signal: Signal, before: u64, after: u64) {
        let part = removed(before, after);
        match signal {
            Signal::Loss | Signal::Timeout => {
                self.seen.loss.add(1.0, part);
                self.doubtful = Some(part);
            }
            Signal::Ecn if !self.accurate => self.seen.mark.add(1.0, part),
            Signal::Ecn | Signal::Phantom => {}
        }
    }

    /// The latest loss was none.
    pub(crate) fn on_spurious(&mut self) {
        if let Some(part) = self.doubtful.take() {
            self.seen.loss.add(-1.0, -part);
        }
    }
}

fn removed(before: u64, after: u64) -> f64 {
    1.0 - after.min(before) as f64 / before.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_and_phantoms_are_no_price() {
        let mut meter = Meter::new(false, 1000);
        let ack = Ack { packets: 2, ..Ack::default() };
        for _ in 0..50 {
            meter.on_ack(&ack, Reaction::None, 10_000, 10_200);
        }
        meter.on_ack(&Ack::default(), Reaction::None, 10_000, 9_000);
        meter.on_congestion(Signal::Loss, 10_000, 5_000);
        meter.on_congestion(Signal::Ecn, 10_000, 8_000);
        meter.on_congestion(Signal::Phantom, 10_000, 5_000);
        let seen = *meter.seen();
        assert_eq!((seen.packets, seen.loss.indications, seen.loss.weight()), (100, 1.0, 0.5));
        assert!((seen.delay.removed - 0.1).abs() < 1e-12 && (seen.mark.removed - 0.2).abs() < 1e-12);
        assert_eq!(seen.per_packet(&seen.loss), 0.01);
        assert!((seen.total() - 0.008).abs() < 1e-12);
        assert_eq!(seen.since(&seen), Prices::default());
    }

    #[test]
    fn a_loss_that_was_none_costs_nothing() {
        let mut meter = Meter::new(false, 1000);
        meter.on_congestion(Signal::Timeout, 10_000, 5_000);
        let look = *meter.seen();
        meter.on_spurious();
        meter.on_spurious();
        assert_eq!(meter.seen().loss, Price::default());
        assert_eq!(meter.seen().since(&look).loss, Price::default(), "not negative");
    }

    #[test]
    fn accurate_marks_count_in_packets() {
        let mut meter = Meter::new(true, 1000);
        meter.on_ack(&Ack { packets: 10, marked: 4, ..Ack::default() }, Reaction::None, 20_000, 20_000);
        meter.on_congestion(Signal::Ecn, 20_000, 15_000);
        assert_eq!((meter.seen().mark.indications, meter.seen().mark.removed), (4.0, 0.1));
    }
}
