// SPDX-License-Identifier: MIT OR Apache-2.0
//! The adaptation interval (section III-C2): the extremes of the delay in it, when they occurred, and the length of the
//! next.

use crate::{Time, time::millis};
use std::time::Duration;

/// Delays in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    start: Time,
    /// Delay and time since the start.
    min: (f64, Duration),
    max: (f64, Duration),
}

impl Interval {
    pub(super) const fn new(start: Time, tau: f64) -> Self {
        Self { start, min: (tau, Duration::ZERO), max: (tau, Duration::ZERO) }
    }

    pub(super) fn on_sample(&mut self, now: Time, tau: f64) {
        if tau < self.min.0 {
            self.min = (tau, now - self.start);
        }
        if tau > self.max.0 {
            self.max = (tau, now - self.start);
        }
    }

    /// Milliseconds.
    pub(super) fn length(&self, now: Time) -> f64 {
        millis(now - self.start)
    }

    /// min_μ.
    pub(super) const fn min(&self) -> f64 {
        self.min.0
    }

    /// max_μ.
    pub(super) const fn max(&self) -> f64 {
        self.max.0
    }

    /// From the least to the greatest delay; negative if that came first.
    pub(super) fn distance(&self) -> f64 {
        millis(self.max.1.saturating_sub(self.min.1)) - millis(self.min.1.saturating_sub(self.max.1))
    }

    /// The next interval, before its bounds: half of this one if the delay was stable, twice this one if a trend runs
    /// through it, else the rise of the delay, which the next period may complete; but not much shorter than this one.
    pub(super) fn next_mu(&self, now: Time, mu: f64, stable: f64) -> f64 {
        if self.max.0 - self.min.0 < stable {
            return mu / 2.0;
        }
        let length = now - self.start;
        let (first, last) = (self.min.1.min(self.max.1), self.min.1.max(self.max.1));
        if first * 10 <= length && last * 10 >= length * 9 {
            return 2.0 * mu;
        }
        let whole = if self.max.1 < self.min.1 { length } else { Duration::ZERO };
        millis(self.max.1 + whole - self.min.1).max(0.875 * mu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// The μ that follows 1000 ms with these delays at these times.
    fn after(samples: &[(u64, f64)]) -> f64 {
        let mut interval = Interval::new(at(0), samples[0].1);
        for (ms, tau) in samples {
            interval.on_sample(at(*ms), *tau);
        }
        interval.next_mu(at(1000), 1000.0, 2.0)
    }

    #[test]
    fn the_rule_of_the_interval() {
        assert_eq!(after(&[(0, 5.0), (500, 6.9)]), 500.0); // stable
        assert_eq!(after(&[(0, 5.0), (950, 9.0)]), 2000.0); // still rising
        assert_eq!(after(&[(50, 9.0), (990, 5.0)]), 2000.0); // still falling
        assert_eq!(after(&[(0, 5.0), (500, 9.0)]), 875.0); // no more than an eighth shorter
        assert_eq!(after(&[(0, 5.0), (890, 9.0)]), 890.0);
        assert_eq!(after(&[(0, 5.0), (500, 9.0), (550, 4.0)]), 950.0); // maximum first: the period wraps
    }

    #[test]
    fn the_first_of_equal_extremes_counts() {
        let mut interval = Interval::new(at(0), 5.0);
        for (ms, tau) in [(100, 9.0), (200, 5.0), (300, 9.0)] {
            interval.on_sample(at(ms), tau);
        }
        assert_eq!((interval.min(), interval.max(), interval.distance()), (5.0, 9.0, 100.0));
    }
}
