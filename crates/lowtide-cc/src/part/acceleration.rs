// SPDX-License-Identifier: MIT OR Apache-2.0
//! Acceleration mode: faster additive increase when congestion signals stay away (J. Misund, "Delay based additive
//! increase for scalable congestion controls", section 3).
//!
//! In steady state a scalable law gets its signals regularly. Once they stay away for longer than the usual cycle and
//! twice its deviation, the flow is in open loop, and grows as fast as lets the queue overshoot by `Q`: by `Q/R` of its
//! window per round trip.
//!
//! Notable differences from the paper, each the paper's own way with `literal`:
//! - The increment just made is subtracted from the window; the paper sets `a` to 1 before it subtracts it.
//! - `a` is never below 1: for windows below `R/Q` segments the formula would be slower than plain additive increase.
//! - The first cycle sets the averages (`I_m` to half of `I_a`) instead of moving them from zero.
//!
//! And in any case:
//! - Some cycles (4) must have been seen first, as zero averages look like open loop. A number of 0 is the paper's way.
//! - `a` is at most the window: no faster than slow start, whatever `Q` and `R` are.
//! - Rounds that the window did not limit do not count: no signal was to be expected.

use super::Overshoot;
use std::time::Duration;

/// The state of acceleration mode, by the names of the paper's section 3.3.
#[derive(Clone, Debug)]
pub struct Acceleration {
    q: Overshoot,
    g: f64,
    guard: u32,
    literal: bool,
    /// Rounds since the last reaction (`C`).
    c: f64,
    /// Increments since the last reaction (`I`).
    i: f64,
    /// Average of `I` (`I_a`).
    i_a: f64,
    /// Mean absolute deviation of `I` (`I_m`).
    i_m: f64,
    /// Scale of the additive increase (`a`).
    a: f64,
    cycles: u32,
}

impl Acceleration {
    /// Acceleration that overshoots by `q`, with averages that move by `g`, after `guard` cycles.
    pub const fn new(q: Overshoot, g: f64, guard: u32, literal: bool) -> Self {
        Self { q, g, guard, literal, c: 0.0, i: 0.0, i_a: 0.0, i_m: 0.0, a: 1.0, cycles: 0 }
    }

    /// What the additive increase is multiplied by, segments per round trip for a law that adds one.
    pub const fn scale(&self) -> f64 {
        self.a
    }

    /// Whether the signals have stayed away for longer than usual.
    pub fn is_open_loop(&self) -> bool {
        self.cycles >= self.guard && self.c > self.i_a + 2.0 * self.i_m
    }

    /// A round of congestion avoidance ended without a reaction, with a window of `w` segments and a smoothed
    /// round-trip time `r`.
    pub fn on_round(&mut self, w: f64, r: Duration) {
        self.c += 1.0;
        self.i += self.a;
        let tested = w - if self.literal { 1.0 } else { self.a };
        self.a = 1.0;
        let r = r.as_secs_f64();
        if self.is_open_loop() && r > 0.0 {
            let least = if self.literal { 0.0 } else { 1.0 };
            self.a = (tested * self.q.seconds(r) / r).min(w).max(least);
        }
    }

    /// The window is reduced: a cycle is over.
    pub fn on_reaction(&mut self) {
        if self.cycles == 0 && !self.literal {
            (self.i_a, self.i_m) = (self.i, self.i / 2.0);
        } else {
            self.i_m += self.g * ((self.i_a - self.i).abs() - self.i_m);
            self.i_a += self.g * (self.i - self.i_a);
        }
        self.cycles = self.cycles.saturating_add(1);
        self.reset();
    }

    /// A cycle is broken off, by slow start or by idleness: it teaches nothing.
    pub const fn reset(&mut self) {
        (self.c, self.i, self.a) = (0.0, 0.0, 1.0);
    }

    /// Shows the state to a probe.
    pub fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("accel_a", self.a);
        show("accel_c", self.c);
        show("accel_i", self.i);
        show("accel_i_a", self.i_a);
        show("accel_i_m", self.i_m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use proptest::prelude::*;

    const R: Duration = Duration::from_millis(15);

    fn accelerated(guard: u32, literal: bool) -> Acceleration {
        Acceleration::new(Overshoot::MILLISECOND, 1.0 / 16.0, guard, literal)
    }

    /// After `cycles` cycles of `rounds` rounds each.
    fn settled(rounds: u32, cycles: u32, literal: bool) -> Acceleration {
        let mut accel = accelerated(4, literal);
        for _ in 0..cycles {
            for _ in 0..rounds {
                accel.on_round(100.0, R);
            }
            accel.on_reaction();
        }
        accel
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn counts_and_averages() {
        let mut accel = settled(8, 1, false);
        assert_eq!((accel.c, accel.i, accel.i_a, accel.i_m), (0.0, 0.0, 8.0, 4.0));
        for _ in 0..4 {
            accel.on_round(100.0, R);
        }
        assert_eq!((accel.c, accel.i), (4.0, 4.0));
        accel.on_reaction();
        assert_eq!(accel.i_m, 4.0); // 4 + (|8 - 4| - 4) / 16, with the old average
        assert_eq!(accel.i_a, 7.75); // 8 + (4 - 8) / 16
        accel.on_round(100.0, R);
        accel.reset();
        assert_eq!((accel.c, accel.i, accel.a, accel.i_a, accel.cycles), (0.0, 0.0, 1.0, 7.75, 2));
    }

    #[test]
    fn literal_averages_start_at_zero() {
        let accel = settled(8, 2, true);
        assert_eq!(accel.i_a, 0.5 + (8.0 - 0.5) / 16.0);
        assert_eq!(accel.i_m, 0.5 + (7.5 - 0.5) / 16.0);
    }

    #[test]
    fn opens_after_the_usual_cycle_and_twice_its_deviation() {
        let mut accel = settled(8, 40, false);
        let threshold = accel.i_a + 2.0 * accel.i_m;
        assert!((8.0..9.0).contains(&threshold), "{threshold}");
        for round in 1..=9 {
            accel.on_round(100.0, R);
            assert_eq!(accel.is_open_loop(), f64::from(round) > threshold);
        }
        assert!(near(accel.scale(), (100.0 - 1.0) / 15.0)); // (W - a) Q / R
        accel.on_round(106.6, R);
        assert!(near(accel.scale(), (106.6 - 6.6) / 15.0)); // the increment just made is subtracted
        accel.on_round(113.3, R);
        let increments = 9.0 + 6.6 + 100.0 / 15.0;
        assert!(near(accel.i, increments)); // not rounds: a fast cycle raises the threshold more
        assert_eq!(accel.c, 11.0);
        accel.on_reaction();
        assert_eq!(accel.scale(), 1.0);
    }

    #[test]
    fn twice_the_deviation_are_waited_for() {
        // I_m = 4 (15/16)^9 = 2.24 after ten equal cycles: 8 + 4.48 rounds, where once it would be 10.24.
        let mut accel = settled(8, 10, false);
        for round in 1..=14 {
            accel.on_round(100.0, R);
            assert_eq!(accel.is_open_loop(), round >= 13, "{round}");
        }
    }

    #[test]
    fn waits_for_some_cycles() {
        let mut accel = settled(1, 3, false);
        for _ in 0..100 {
            accel.on_round(100.0, R);
        }
        assert_eq!(accel.scale(), 1.0);
        let mut paper = accelerated(0, true);
        paper.on_round(100.0, R);
        assert!(near(paper.scale(), 99.0 / 15.0)); // zero averages: open from the first round on
    }

    #[test]
    fn never_slower_than_plain_increase_nor_faster_than_slow_start() {
        let open = |w: f64, q: &str, literal| {
            let mut accel = settled(1, 20, literal);
            accel.q = Overshoot::read(q).unwrap();
            for _ in 0..2 {
                accel.on_round(w, R); // the average cycle is one round
            }
            accel.scale()
        };
        assert_eq!(open(10.0, "1ms", false), 1.0);
        assert!(near(open(10.0, "1ms", true), 9.0 / 15.0));
        assert_eq!(open(100.0, "1s", false), 100.0);
        // A part of the round-trip time: it cancels, and the increase is multiplicative.
        assert!(near(open(100.0, "10%", true), 9.9));
    }

    /// Rounds from one window to another, each adding `a`.
    fn rounds(mut w: f64, to: f64) -> u32 {
        let mut accel = settled(1, 20, false);
        for _ in 0..3 {
            accel.on_round(w, R); // opens: the average cycle is one round
        }
        let mut rounds = 0;
        while w < to {
            let before = w;
            w += accel.scale();
            accel.on_round(w, R);
            assert!(w / before <= 1.0 + 1.0 / 15.0 + 1e-12); // at most (1 + Q/R)
            rounds += 1;
        }
        rounds
    }

    #[test]
    fn grows_by_q_over_r_per_round() {
        assert_eq!(rounds(62.0, 125.0), 12); // target A-02; 63 rounds by plain increase
        assert!((37..=39).contains(&rounds(25.0, 250.0))); // target A-07: 38; 225 by plain increase
    }

    proptest! {
        #[test]
        fn the_scale_is_bounded(
            events in prop::collection::vec((0u32..10, 0.1f64..1e6, 0u64..1_000_000_000), 0..300),
            literal: bool, percent in 0.0f64..100.0,
        ) {
            let mut accel = Acceleration::new(Overshoot::percent(percent).unwrap(), 1.0 / 16.0, 2, literal);
            for (event, w, r) in events {
                match event {
                    0 => accel.on_reaction(),
                    1 => accel.reset(),
                    _ => accel.on_round(w, Duration::from_nanos(r)),
                }
                let least = if literal { 0.0 } else { 1.0 };
                prop_assert!(accel.scale() >= least && accel.scale() <= w.max(1.0));
                prop_assert!(accel.i_a >= 0.0 && accel.i_m >= 0.0 && accel.i_m.is_finite() && accel.i_a.is_finite());
            }
        }
    }
}
