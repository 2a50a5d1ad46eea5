// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a law's window may do.

use crate::transport::MSS;
use lowtide_cc::{Ack, Law, Reaction};

/// How far a law's window may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Segments of growth for each segment acknowledged, and at most once per ACK.
    growth: (f64, f64),
    /// Whether it grows in a reduction episode or while it is not used, since it follows a model of the path.
    free: bool,
}

/// As slow start, plus a segment that is added once per round trip.
const USUAL: Limits = Limits { growth: (1.0, 1.0), free: false };

/// The laws that need other limits, by name, with the reason.
const OTHERS: &[(&str, Limits)] = &[
    // `alpha_inc=1` adds in the n-th round without a reduction n segments in one step.
    ("cdg", Limits { growth: (1.0, 300.0), free: false }),
];

impl Limits {
    pub(crate) fn of(law: &Law) -> Self {
        OTHERS.iter().find(|(name, _)| *name == law.name()).map_or(USUAL, |(_, limits)| *limits)
    }

    pub(crate) fn check_ack(&self, ack: &Ack, reaction: Reaction, before: u64, after: u64) {
        let packets = f64::from(ack.packets);
        let most = before as f64 + MSS as f64 * (self.growth.0 * packets + self.growth.1);
        assert!(after as f64 <= most, "{packets} segments acknowledged, window {before} → {after}");
        if (ack.reducing || !ack.window_limited) && !self.free {
            assert!(after <= before, "grown in an episode or without use: {before} → {after}");
        }
        if reaction == Reaction::Reduced {
            assert!(!ack.reducing, "a second reduction in one episode");
            assert!(after <= before, "a reduction to more: {before} → {after}");
        }
    }

    /// Only a window of almost nothing may rise, to the minimum that a reduction leaves.
    pub(crate) fn check_congestion(&self, before: u64, after: u64) {
        assert!(after <= before.max(4 * MSS), "congestion, and the window grew: {before} → {after}");
    }
}
