// SPDX-License-Identifier: MIT OR Apache-2.0
//! A monitor interval: what was sent at one rate, and how it arrived.

use crate::Time;
use std::time::Duration;

/// An interval does not end before so many of its RTT samples are known.
const LEAST_SAMPLES: u32 = 4;

/// A monitor interval with running sums over its RTT samples, so that it needs no list of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    /// The intended rate, Mbit/s.
    pub(super) rate: f64,
    start: Time,
    end: Option<Time>,
    sent: u64,
    lost: u64,
    /// Whether it was application-limited.
    pub(super) app_limited: bool,
    samples: u32,
    /// The first RTT sample, seconds. Sums are of differences to it, to keep digits.
    first: f64,
    /// Sums over samples of the time of sending since the start `t` and of the RTT `y`, seconds.
    t: f64,
    y: f64,
    tt: f64,
    ty: f64,
    yy: f64,
}

/// What an interval has measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// The part of what was sent that was lost, `L`.
    pub(super) loss: f64,
    /// The mean RTT, seconds.
    pub(super) mean: f64,
    /// Its standard deviation, seconds: `σ(RTT)`.
    pub(super) deviation: f64,
    /// The slope of its regression over the time of sending: `d(RTT)/dt`.
    pub(super) gradient: f64,
    /// Distance of the RTTs from that regression, root mean square, in parts of the interval's length: a slope.
    pub(super) error: f64,
}

impl Interval {
    pub(super) fn new(rate: f64, start: Time) -> Self {
        Self { rate, start, ..Self::default() }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// Something is sent in it.
    pub(super) fn on_sent(&mut self, bytes: u64, app_limited: bool) {
        self.sent += bytes;
        self.app_limited |= app_limited;
    }

    /// Ends it before what is sent now, if it is at least `least` long and has enough samples.
    pub(super) fn ends(&mut self, now: Time, least: Duration) -> bool {
        let ends = now - self.start >= least && self.samples >= LEAST_SAMPLES;
        if ends {
            self.end = Some(now);
        }
        ends
    }

    /// Whether a segment that was sent then belongs to this interval.
    fn has(&self, sent: Time) -> bool {
        sent >= self.start && self.end.is_none_or(|end| sent < end)
    }

    /// A segment was lost that was sent then, perhaps in it.
    pub(super) fn on_lost(&mut self, sent: Time, bytes: u64) {
        if self.has(sent) {
            self.lost += bytes;
        }
    }

    /// An RTT sample, perhaps of a segment that was sent in it.
    pub(super) fn on_sample(&mut self, sent: Time, rtt: Duration) {
        if !self.has(sent) {
            return;
        }
        let (t, rtt) = ((sent - self.start).as_secs_f64(), rtt.as_secs_f64());
        if self.samples == 0 {
            self.first = rtt;
        }
        let y = rtt - self.first;
        self.samples += 1;
        self.t += t;
        self.y += y;
        self.tt += t * t;
        self.ty += t * y;
        self.yy += y * y;
    }

    /// Whether all of it is known to have arrived or to be lost, if what was sent then has arrived. Losses are detected
    /// a little later.
    pub(super) fn is_over(&self, sent: Time, little: Duration) -> bool {
        self.end.is_some_and(|end| sent >= end + little)
    }

    fn length(&self) -> f64 {
        self.end.map_or(0.0, |end| (end - self.start).as_secs_f64())
    }

    /// The actual rate of sending, Mbit/s.
    pub(super) fn real_rate(&self) -> f64 {
        let length = self.length();
        if length > 0.0 { 8e-6 * self.sent as f64 / length } else { 0.0 }
    }

    pub(super) fn measure(&self) -> Measured {
        let n = f64::from(self.samples.max(1));
        let (t, y) = (self.t / n, self.y / n);
        let variance = (self.yy / n - y * y).max(0.0);
        let spread = self.tt / n - t * t;
        let together = self.ty / n - t * y;
        // samples of one moment have no slope
        let gradient = if spread > 1e-12 { together / spread } else { 0.0 };
        let residual = (variance - gradient * together).max(0.0).sqrt();
        let length = self.length();
        Measured {
            loss: if self.sent > 0 { (self.lost as f64 / self.sent as f64).min(1.0) } else { 0.0 },
            mean: self.first + y,
            deviation: variance.sqrt(),
            gradient,
            error: if length > 0.0 { residual / length } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn us(time: u64) -> Duration {
        Duration::from_micros(time)
    }

    /// An interval of 20 ms with a sample each millisecond.
    fn sampled(rtt: impl Fn(u64) -> f64) -> Interval {
        let start = Time::from_nanos(7_000_000_000);
        let mut interval = Interval::new(10.0, start);
        for ms in 0..20 {
            let sent = start + us(1000 * ms);
            interval.on_sent(1250, false);
            interval.on_sample(sent, Duration::from_secs_f64(rtt(ms)));
        }
        assert!(interval.ends(start + us(20_000), us(20_000)));
        interval
    }

    #[test]
    fn a_ramp_has_its_slope_and_no_error() {
        let interval = sampled(|ms| 0.04 + 0.05 * 0.001 * ms as f64);
        let Measured { loss, mean, deviation, gradient, error } = interval.measure();
        assert!((gradient - 0.05).abs() < 1e-6 && error < 1e-4, "{gradient} {error}");
        assert!((mean - 0.040_475).abs() < 1e-7, "{mean}");
        // of 20 places 50 µs apart: 50·sqrt((20² - 1)/12)
        assert!((deviation - 288.3e-6).abs() < 1e-7, "{deviation}");
        assert!(loss == 0.0 && (interval.real_rate() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn noise_has_a_greater_error_than_slope() {
        let Measured { deviation, gradient, error, .. } = sampled(|ms| 0.04 + 0.001 * (ms % 2) as f64).measure();
        assert!((deviation - 500e-6).abs() < 1e-9);
        assert!(gradient.abs() < error / 3.0, "{gradient} {error}");
        assert!((error - 0.025).abs() < 1e-3, "half a millisecond in twenty: {error}");
    }

    #[test]
    fn what_was_sent_before_or_after_is_not_its() {
        let mut interval = sampled(|_| 0.04);
        let (before, measured) = (Time::from_nanos(6_999_999_999), interval.measure());
        for sent in [before, Time::from_nanos(7_020_000_000)] {
            interval.on_sample(sent, us(90_000));
            interval.on_lost(sent, 1250);
        }
        assert_eq!(interval.measure(), measured);
        interval.on_lost(Time::from_nanos(7_019_999_999), 2500);
        assert!((interval.measure().loss - 0.1).abs() < 1e-12);
        assert!(interval.is_over(Time::from_nanos(7_020_000_000), Duration::ZERO));
        assert!(!interval.is_over(Time::from_nanos(7_020_000_000), us(1)));
    }

    #[test]
    fn it_lasts_until_it_has_heard_of_itself() {
        let mut interval = Interval::new(1.0, Time::ZERO);
        for n in 0..4 {
            assert!(!interval.ends(Time::ZERO + us(90_000), us(1000)), "{n} samples");
            interval.on_sample(Time::ZERO + us(n), us(500));
        }
        assert!(!interval.ends(Time::ZERO + us(999), us(1000)));
        assert!(interval.ends(Time::ZERO + us(1000), us(1000)));
    }

    proptest! {
        #[test]
        fn whatever_the_samples_it_measures_numbers(samples in prop::collection::vec((0u64..40_000, 0u64..1 << 40), 0..60)) {
            let mut interval = Interval::new(1.0, Time::ZERO);
            for (sent, rtt) in samples {
                interval.on_sent(1000, false);
                interval.on_sample(Time::ZERO + us(sent), us(rtt));
                interval.on_lost(Time::ZERO + us(sent), 1000);
            }
            let _ = interval.ends(Time::ZERO + us(40_000), us(0));
            let Measured { loss, mean, deviation, gradient, error } = interval.measure();
            prop_assert!([loss, mean, deviation, gradient, error, interval.real_rate()].iter().all(|it| it.is_finite()));
            prop_assert!((0.0..=1.0).contains(&loss) && mean >= 0.0 && deviation >= 0.0 && error >= 0.0);
        }
    }
}
