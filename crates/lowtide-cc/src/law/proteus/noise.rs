// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proteus' noise tolerance: RTTs that bursts of ACKs have distorted, slopes that are less than their error, and the
//! usual values of the path.

use super::interval::Measured;
use crate::Time;
use std::time::Duration;

/// Leaves out RTT samples after ACKs were held up: those from a pair of unlike gaps on, until one is below the average.
#[derive(Clone, Debug, Default)]
pub(super) struct AckFilter {
    latest: Option<Time>,
    gap: Duration,
    /// Since when samples are left out.
    since: Option<Time>,
}

impl AckFilter {
    /// Whether this RTT sample counts. Two gaps between ACKs are unlike when one is more than `ratio` times the other.
    pub(super) fn trusts(&mut self, now: Time, rtt: Duration, srtt: Duration, ratio: f64) -> bool {
        let gap = self.latest.map_or(Duration::ZERO, |latest| now - latest);
        self.latest = Some(now);
        let (shorter, longer) = (self.gap.min(gap), self.gap.max(gap));
        // ACKs that arrive at once are one.
        if !gap.is_zero() {
            self.gap = gap;
        }
        if !shorter.is_zero() && longer.as_secs_f64() > ratio * shorter.as_secs_f64() {
            self.since = Some(now);
        } else if self.since.is_some_and(|since| rtt <= srtt || now - since > srtt) {
            self.since = None;
        }
        self.since.is_none()
    }

    /// Nothing was sent for a while, so that gap does not count.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }
}

/// Intervals in the history, `k`.
const HISTORY: usize = 6;
/// Weight of the newest value in an average.
const ALPHA: f64 = 0.1;
/// An average starts over when so large a part of the latest values was unusual.
const MOSTLY: f64 = 0.95;
/// A deviation below is never unusual, seconds.
const LEAST_DEVIATION: f64 = 0.001;

/// The usual value, and its usual deviation. Learns from usual values only.
#[derive(Clone, Debug, Default)]
struct Usual {
    mean: f64,
    deviation: f64,
    known: bool,
    /// The part of the latest values that was not usual.
    unusual: f64,
}

impl Usual {
    /// Begins from one value.
    fn begin(&mut self, mean: f64, deviation: f64) {
        *self = Self { mean, deviation, known: true, unusual: 0.0 };
    }

    /// Takes a value. The caller says whether it is usual, and how far it is from what was expected.
    fn take(&mut self, value: f64, far: f64, usual: bool) {
        self.unusual *= 1.0 - ALPHA;
        if usual {
            self.mean += ALPHA * (value - self.mean);
            self.deviation += ALPHA * (far.abs() - self.deviation);
        } else {
            self.unusual += ALPHA;
            self.known = self.unusual <= MOSTLY;
        }
    }
}

/// Which parts of an interval's delay count; the rest is noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Whether the slope does.
    pub(super) gradient: bool,
    /// Whether the deviation does.
    pub(super) deviation: bool,
}

/// The latest intervals of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Mean RTTs, the oldest first, seconds.
    means: [f64; HISTORY],
    number: usize,
    trend: Usual,
    latest_trend: f64,
    deviation: Usual,
}

impl History {
    /// Takes the next interval, and returns what of it counts: all of it if the slope is greater than its error; else
    /// what is unusual by more than `g1` or `g2` mean deviations.
    pub(super) fn judge(&mut self, measured: &Measured, g1: f64, g2: f64) -> Counts {
        let significant = measured.gradient.abs() > measured.error;
        let mut counts = Counts { gradient: significant, deviation: significant };
        self.means.rotate_left(1);
        self.means[HISTORY - 1] = measured.mean;
        self.number = (self.number + 1).min(HISTORY);
        if self.number < HISTORY {
            return counts;
        }
        let trend = slope(&self.means);
        if self.trend.known {
            let usual = (trend - self.trend.mean).abs() <= g1 * self.trend.deviation;
            self.trend.take(trend, trend - self.latest_trend, usual);
            if usual {
                self.latest_trend = trend;
            }
            counts.gradient |= !usual && trend > 0.0;
            counts.deviation |= !usual;
        } else {
            self.trend.begin(0.0, trend.abs());
            self.latest_trend = trend;
        }
        let value = measured.deviation;
        if self.deviation.known {
            let far = value - self.deviation.mean;
            let usual = far <= g2 * self.deviation.deviation || value <= LEAST_DEVIATION;
            self.deviation.take(value, far, usual);
            counts.deviation |= !usual;
        } else {
            self.deviation.begin(value, 0.5 * value);
        }
        counts
    }
}

/// The slope of the regression of equidistant values.
fn slope(values: &[f64; HISTORY]) -> f64 {
    let middle = (HISTORY as f64 - 1.0) / 2.0;
    let (mut together, mut spread) = (0.0, 0.0);
    for (n, value) in values.iter().enumerate() {
        let x = n as f64 - middle;
        together += x * (value - values[0]);
        spread += x * x;
    }
    together / spread
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRTT: Duration = Duration::from_millis(40);

    fn at(us: u64) -> Time {
        Time::from_nanos(1000 * us)
    }

    #[test]
    fn a_burst_of_acks_is_left_out_until_the_delay_is_below_its_average() {
        let mut filter = AckFilter::default();
        let longer = SRTT + Duration::from_micros(1);
        for n in 0..5 {
            assert!(filter.trusts(at(100 * n), longer, SRTT, 50.0), "ACK {n}");
        }
        assert!(filter.trusts(at(400 + 4999), longer, SRTT, 50.0), "a gap 50 times as long is still well");
        assert!(!filter.trusts(at(5399 + 99), longer, SRTT, 50.0));
        assert!(!filter.trusts(at(5398 + 200), longer, SRTT, 50.0));
        assert!(filter.trusts(at(5398 + 300), SRTT, SRTT, 50.0));
        assert!(filter.trusts(at(5398 + 300), longer, SRTT, 50.0), "at once: no gap");
    }

    #[test]
    fn a_delay_that_only_grows_is_heard_again_after_a_round_trip() {
        let mut filter = AckFilter::default();
        let longer = 2 * SRTT;
        for time in [0, 100, 10_000] {
            let _ = filter.trusts(at(time), longer, SRTT, 50.0);
        }
        let heard = (1..100).find(|n| filter.trusts(at(10_000 + 1000 * n), longer, SRTT, 50.0));
        assert_eq!(heard, Some(41));
    }

    const fn quiet() -> Measured {
        Measured { loss: 0.0, mean: 0.04, deviation: 0.002, gradient: 0.001, error: 0.01 }
    }

    #[test]
    fn a_slope_counts_where_it_is_greater_than_its_error() {
        let mut history = History::default();
        let all = Counts { gradient: true, deviation: true };
        assert_eq!(history.judge(&quiet(), 2.0, 4.0), Counts::default());
        assert_eq!(history.judge(&Measured { gradient: -0.011, ..quiet() }, 2.0, 4.0), all);
        assert_eq!(history.judge(&Measured { gradient: 0.011, ..quiet() }, 2.0, 4.0), all);
    }

    /// A history of intervals whose mean varies by 0.1 ms.
    fn wavering() -> History {
        let mut history = History::default();
        for n in 0..60 {
            let mean = 0.04 + 1e-4 * f64::from(n % 4);
            let _ = history.judge(&Measured { mean, ..quiet() }, 2.0, 4.0);
        }
        history
    }

    #[test]
    fn what_is_unusual_counts_though_its_slope_is_noise() {
        let (nothing, all) = (Counts::default(), Counts { gradient: true, deviation: true });
        let only_deviation = Counts { gradient: false, deviation: true };
        assert_eq!(wavering().judge(&quiet(), 2.0, 4.0), nothing);
        assert_eq!(wavering().judge(&Measured { mean: 0.045, ..quiet() }, 2.0, 4.0), all, "a delay that rises");
        assert_eq!(wavering().judge(&Measured { mean: 0.035, ..quiet() }, 2.0, 4.0), only_deviation, "one that falls");
        assert_eq!(wavering().judge(&Measured { deviation: 0.009, ..quiet() }, 2.0, 4.0), only_deviation);
        assert_eq!(wavering().judge(&Measured { deviation: 0.009, ..quiet() }, 2.0, 1e6), nothing);
    }

    #[test]
    fn what_stays_unusual_becomes_usual() {
        let mut history = wavering();
        let loud = Measured { deviation: 0.009, ..quiet() };
        let counted = (0..100).filter(|_| history.judge(&loud, 2.0, 4.0).deviation).count();
        assert!((20..40).contains(&counted), "{counted}");
    }
}
