// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a law's window may do.

use crate::transport::MSS;
use lowtide_cc::{Ack, Law, Reaction};

/// How far a law's window may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Segments of growth for each segment acknowledged, and at most once per ACK.
    growth: (f64, f64),
    /// Whether it grows in a reduction episode.
    in_episodes: bool,
    /// Whether it grows while it is not used.
    unused: bool,
    /// Whether it may return to a window that it had before.
    returns: bool,
    /// Whether it may be reduced by the law inside an episode: overload mode takes what a mark has left.
    deeper: bool,
    /// Up to this many bytes it may rise at any time, since that is the law's minimum.
    minimum: u64,
}

/// As slow start, plus a segment that is added once per round trip.
const USUAL: Limits =
    Limits { growth: (1.0, 1.0), in_episodes: false, unused: false, returns: false, deeper: false, minimum: 4 * MSS };

/// Of a law that grows towards a model of the path whatever happens, and probes with a small window in between.
const MODEL: Limits = Limits { in_episodes: true, unused: true, returns: true, ..USUAL };

/// The laws that need other limits, by name, with the reason. Minimum and gain follow from parameters of these names.
const OTHERS: &[(&str, Limits)] = &[
    // Grow on every ACK without a mark, those of an episode too.
    ("dctcp", Limits { in_episodes: true, ..USUAL }),
    ("prague", Limits { in_episodes: true, ..USUAL }),
    ("bbr1", MODEL),
    ("bbr2", MODEL),
    ("bbr3", MODEL),
    // Its window only has to be out of the way of its rate.
    ("proteus", MODEL),
    // Grows by rounds that were used at some time. Whatever was before, it begins with ten packets where its probes
    // have found the link free.
    ("tide", Limits { unused: true, minimum: 10 * MSS, ..USUAL }),
    // Has a bound of its own on an unused window: the amount in flight and a segment more (RFC 6817, section 2.4.2).
    ("ledbat", Limits { unused: true, ..USUAL }),
    // `alpha_inc=1` adds in the n-th round without a reduction n segments in one step.
    ("cdg", Limits { growth: (1.0, 300.0), ..USUAL }),
];

impl Limits {
    pub(crate) fn of(law: &Law) -> Self {
        let limits = OTHERS.iter().find(|(name, _)| *name == law.name()).map_or(USUAL, |(_, limits)| *limits);
        let parameters = law.parameters();
        let parameter = |names: &[&str]| {
            let found = parameters.iter().find(|(key, _)| names.contains(key));
            found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0.0)
        };
        let minimum = (parameter(&["min_cwnd", "min_pipe_cwnd"]) * MSS as f64) as u64;
        let growth = limits.growth.0.max(parameter(&["gain"]));
        let deeper = parameters.iter().any(|(key, value)| *key == "overload" && value == "on");
        Self { minimum: limits.minimum.max(minimum), growth: (growth, limits.growth.1), deeper, ..limits }
    }

    /// After an ACK. `greatest` is the greatest window so far.
    pub(crate) fn check_ack(&self, ack: &Ack, reaction: Reaction, before: u64, after: u64, greatest: u64) {
        if after <= self.usual(before, greatest) {
            assert!(reaction == Reaction::None || !ack.reducing || self.deeper, "a second reduction in one episode");
            return;
        }
        let packets = f64::from(ack.packets);
        let most = self.usual(before, greatest) as f64 + MSS as f64 * (self.growth.0 * packets + self.growth.1);
        // a phantom signal may come with the ACK that a small window grows by, and leave nine tenths of it
        assert!(reaction == Reaction::None || (after as f64) < most, "a reduction to more: {before} → {after}");
        assert!(after as f64 <= most, "{packets} segments acknowledged, window {before} → {after}");
        assert!(self.in_episodes || !ack.reducing, "grown in an episode: {before} → {after}");
        assert!(self.unused || ack.window_limited, "grown without use: {before} → {after}");
    }

    /// After anything else, which may be no reason to grow.
    pub(crate) fn check_other(&self, before: u64, after: u64, greatest: u64) {
        assert!(after <= self.usual(before, greatest), "grown without an ACK: {before} → {after}");
    }

    /// What the window may be at any time: as before, or the minimum if it was below.
    fn usual(&self, before: u64, greatest: u64) -> u64 {
        let before = if self.returns { greatest } else { before };
        before.max(self.minimum)
    }
}
