// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a network tells a sender: indications of congestion, counted.

use std::time::Duration;

/// Indications of congestion of one kind: running totals, or what an interval added to them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signal {
    /// I_z of the framework, eq. 22: indications that the law reacts to, **real ones only**, phantom signals excluded.
    /// Events, not packets, where a law reacts once per event. A price that is a quantity rather than a count is
    /// added up all the same: CDG's gradient g⁺/G₀ of each round, or an expected number. Finite, >= 0.
    pub indications: f64,
    /// Σκ of the framework, eq. 23: the parts of the window that the law took off for these indications, added up
    /// (0.5 for each loss with Reno, 1/cwnd for each step down with Vegas). Finite, >= 0. Only the literal ratio
    /// of prices ([`RatioRule::Literal`](crate::RatioRule)) needs it.
    pub reduction: f64,
}

/// All kinds of indications, and the packets that they came on: running totals over the life of a transfer, all
/// its connections together, so that a caller need not know when an update interval ends.
///
/// A kernel fills `packets` with the segments sent and `loss` with recoveries begun and marks answered; a
/// simulator has the same counts, and the delay of laws that report it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signals {
    /// N of the framework, eq. 22: packets sent, each transmission counted. Finite, >= 0.
    pub packets: f64,
    /// Loss events. Classic ECN marks count here too, since a law answers them as it answers losses.
    pub loss: Signal,
    /// Marked packets of a law that answers their fraction (DCTCP, Prague).
    pub mark: Signal,
    /// Indications by delay.
    pub delay: Signal,
}

/// A kind of indication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalKind {
    /// Loss events.
    Loss,
    /// Marked packets.
    Mark,
    /// Delay.
    Delay,
}

impl Signal {
    fn map(self, other: Signal, f: impl Fn(f64, f64) -> f64) -> Signal {
        Signal { indications: f(self.indications, other.indications), reduction: f(self.reduction, other.reduction) }
    }
}

impl Signals {
    fn map(self, other: Signals, f: impl Fn(f64, f64) -> f64 + Copy) -> Signals {
        Signals {
            packets: f(self.packets, other.packets),
            loss: self.loss.map(other.loss, f),
            mark: self.mark.map(other.mark, f),
            delay: self.delay.map(other.delay, f),
        }
    }

    /// These totals, but none smaller than in `before`; what is no finite number counts as the one before.
    pub(crate) fn not_below(self, before: Signals) -> Signals {
        self.map(before, |new, old| if new.is_finite() { new.max(old) } else { old })
    }

    /// What was added since `earlier`; never negative.
    #[must_use]
    pub fn since(self, earlier: Signals) -> Signals {
        self.map(earlier, |new, old| (new - old).max(0.0))
    }

    /// `factor` times these, and `other`.
    pub(crate) fn scaled_plus(self, factor: f64, other: Signals) -> Signals {
        self.map(other, |old, new| factor * old + new)
    }

    /// One kind of them.
    #[must_use]
    pub const fn kind(&self, kind: SignalKind) -> Signal {
        match kind {
            SignalKind::Loss => self.loss,
            SignalKind::Mark => self.mark,
            SignalKind::Delay => self.delay,
        }
    }
}

/// What is known of the path.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PathState {
    /// The mean of the smoothed round-trip times seen in the interval.
    pub rtt: Option<Duration>,
    /// The smallest round-trip time seen at all.
    pub min_rtt: Option<Duration>,
    /// Payload bytes of a full segment; 0 or less counts as unknown, and that as 1448: Ethernet, IPv4, timestamps.
    pub segment_bytes: f64,
}

/// What a model of a law's rate is evaluated for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// The path.
    pub path: PathState,
    /// The signals of the time looked at.
    pub signals: Signals,
    /// That time, in seconds; greater than 0.
    pub seconds: f64,
}

const USUAL_SEGMENT: f64 = 1448.0;

impl Conditions {
    /// Indications of one kind per packet: P_z of the framework, eq. 22; 0 where nothing was sent.
    #[must_use]
    pub fn price(&self, kind: SignalKind) -> f64 {
        let indications = self.signals.kind(kind).indications;
        if self.signals.packets > 0.0 { indications / self.signals.packets } else { 0.0 }
    }

    /// Indications of one kind per round trip, where the round-trip time is known.
    #[must_use]
    pub fn price_of_a_round(&self, kind: SignalKind) -> Option<f64> {
        let rounds = self.seconds / self.rtt()?;
        (rounds > 0.0).then(|| self.signals.kind(kind).indications / rounds)
    }

    /// The mean round-trip time in seconds; `None` where it is unknown or zero.
    #[must_use]
    pub fn rtt(&self) -> Option<f64> {
        self.path.rtt.map(|rtt| rtt.as_secs_f64()).filter(|&rtt| rtt > 0.0)
    }

    /// The mean queueing delay in seconds, where both round-trip times are known.
    #[must_use]
    pub fn queueing(&self) -> Option<f64> {
        Some(self.path.rtt?.saturating_sub(self.path.min_rtt?).as_secs_f64())
    }

    /// Payload bytes of a segment.
    #[must_use]
    pub fn segment(&self) -> f64 {
        let bytes = self.path.segment_bytes;
        if bytes.is_finite() && bytes > 0.0 { bytes } else { USUAL_SEGMENT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_never_shrink() {
        let signals = |n: f64| Signals {
            packets: n,
            loss: Signal { indications: n / 10.0, reduction: n / 20.0 },
            ..Signals::default()
        };
        assert_eq!(signals(7.0).since(signals(5.0)).packets, 2.0);
        assert_eq!(signals(5.0).since(signals(7.0)), Signals::default());
        assert_eq!(signals(5.0).not_below(signals(7.0)), signals(7.0));
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(signals(odd).not_below(signals(7.0)), signals(7.0));
        }
    }

    #[test]
    fn prices_per_packet_and_per_round() {
        let signals =
            Signals { packets: 1000.0, delay: Signal { indications: 20.0, reduction: 0.0 }, ..Signals::default() };
        let path = PathState { rtt: Some(Duration::from_millis(50)), ..PathState::default() };
        let c = Conditions { path, signals, seconds: 10.0 };
        assert_eq!(c.price(SignalKind::Delay), 0.02);
        assert_eq!(c.price(SignalKind::Loss), 0.0);
        assert!((c.price_of_a_round(SignalKind::Delay).unwrap() - 0.1).abs() < 1e-12);
        assert_eq!((c.segment(), c.queueing()), (1448.0, None));
        let silent = Conditions { signals: Signals::default(), ..c };
        assert_eq!(silent.price(SignalKind::Loss), 0.0);
    }
}
