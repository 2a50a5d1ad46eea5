// SPDX-License-Identifier: MIT OR Apache-2.0
//! Eclipse with a price weight.
//!
//! The law grows by `1 - d/δ` segments per RTT, with d the delay above the minimum: one segment, which is any ordinary
//! flow's growth, less a congestion price. At the published `δ = β·R`, with R the range of delays, that price is
//! `(1/β)·d/R`. So the natural price of delay is `d/R`, which is 1 if the buffer is full, and 1/β is its inflation. In
//! the framework a source gets `q/w`, that is, adds `q(1/w - 1)` to what an ordinary flow reacts to. To that flow delay
//! has no price, so
//!
//! ```text
//! growth = 1 - (1/w - 1)·d/R      or      δ = R·w/(1 - w)
//! ```
//!
//! as CDG's `G = G₀·w/(1 - w)`. The published β = 0.15 is w = 0.13. From w = 1/2 on the window never shrinks but by
//! losses. At w = 1 the law is Reno. What else has to differ from the law without weight:
//!
//! - An empty queue has no price: δ is at least 2 ms or a sixteenth of the minimum RTT (the bound of CDG's `floor`).
//!   Else a small w gives a δ below the ripple of the flow's own packets, and the link is not filled.
//! - Such a floor can make `s_min` climb, as can any above half of that ripple. So it rises only by delays that the
//!   self-induced queue cannot explain (`guard`).
//! - With a small δ the bound on the decrease, (1/β - 1) segments per RTT, would be hundreds. It is half of the window,
//!   as for any other signal.

/// The minimum of δ, milliseconds: below the 5 ms that CoDel and PIE aim at, above the noise of a minimum delay.
const FLOOR: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    weight: f64,
}

impl Threshold {
    pub(super) const fn new(weight: f64) -> Self {
        Self { weight: weight.clamp(f64::MIN_POSITIVE, 1.0) }
    }

    /// δ for this range of delays; all in milliseconds. `least` is its minimum in any case.
    pub(super) fn delta(self, range: f64, least: f64, base_rtt: f64) -> f64 {
        let sixteenth = if base_rtt.is_finite() { base_rtt / 16.0 } else { 0.0 };
        let floor = least.max(FLOOR).max(sixteenth);
        if self.weight >= 1.0 { f64::INFINITY } else { floor.max(range * self.weight / (1.0 - self.weight)) }
    }

    /// The price of this delay per RTT, segments, for a flow of weight 1/2, whose price is added once.
    pub(super) fn price(self, delay: f64, range: f64) -> f64 {
        if range > 0.0 { (delay / range).clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delta_follows_the_weight_from_the_floor_to_nothing_at_all() {
        let delta = |weight: f64| Threshold::new(weight).delta(100.0, 0.1, 20.0);
        assert_eq!(delta(0.5), 100.0);
        assert_eq!(delta(0.2), 25.0);
        assert!((delta(0.15 / 1.15) - 15.0).abs() < 1e-9, "the published one");
        assert_eq!(delta(0.001), 2.0);
        assert_eq!(Threshold::new(0.001).delta(100.0, 0.1, 160.0), 10.0);
        assert_eq!(delta(1.0), f64::INFINITY);
        let weights = (1..=1000).map(|n| delta(f64::from(n) / 1000.0));
        assert!(weights.is_sorted());
    }

    #[test]
    fn a_full_buffer_costs_one() {
        let threshold = Threshold::new(0.1);
        assert_eq!(
            (threshold.price(0.0, 50.0), threshold.price(25.0, 50.0), threshold.price(50.0, 50.0)),
            (0.0, 0.5, 1.0)
        );
        assert_eq!(threshold.price(0.0, 0.0), 0.0);
    }
}
