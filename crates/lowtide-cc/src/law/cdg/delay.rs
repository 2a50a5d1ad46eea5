// SPDX-License-Identifier: MIT OR Apache-2.0
//! How CDG measures the delay: clock, delayed-ACK filter, and the extremes of each round.

use crate::{
    Ack,
    text::values,
    time::{micros, nanos},
};
use std::time::Duration;

values! {
    /// The delay whose gradient counts.
    pub enum Delay {
        /// The RTT, as in all published versions.
        Rtt = "rtt",
        /// The one-way delay. Only its differences matter, so the clocks' offset does not count, nor does the return
        /// path.
        Owd = "owd",
    }
}

values! {
    /// The clock that delays are read from.
    pub enum Clock {
        /// Whole microseconds, as in Linux.
        Micro = "us",
        /// Sender's and receiver's time in whole milliseconds, and one added, as in FreeBSD's ERTT helper:
        /// `0 < measured - true < 2 ms` (thesis, bound 4.4).
        Milli = "ms",
    }
}

impl Clock {
    /// Microseconds from one point in time to another, both in nanoseconds, as this clock shows them.
    pub const fn between(self, from: i64, to: i64) -> i64 {
        match self {
            Self::Micro => to.saturating_sub(from).div_euclid(1000),
            Self::Milli => (to.div_euclid(1_000_000) - from.div_euclid(1_000_000) + 1) * 1000,
        }
    }
}

/// Credit of the delayed-ACK filter at most (`DLYACK_SMOOTH` of FreeBSD's `h_ertt.c`; 5 in Linux too).
const CREDIT_MAX: u32 = 5;

/// The minimum and the maximum delay of a round, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extremes {
    pub(super) min: i64,
    pub(super) max: i64,
}

impl Extremes {
    /// This round's extremes minus those of the round before.
    pub(super) const fn since(self, before: Self) -> Self {
        Self { min: self.min - before.min, max: self.max - before.max }
    }
}

/// The delays of the present and the previous round.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    delay: Delay,
    clock: Clock,
    filter: bool,
    credit: u32,
    pub(super) current: Option<Extremes>,
    pub(super) previous: Option<Extremes>,
    /// The minimum delay and the minimum RTT since the start, microseconds.
    base: i64,
    base_rtt: i64,
}

impl Delays {
    pub(super) const fn new(delay: Delay, clock: Clock, filter: bool) -> Self {
        Self { delay, clock, filter, credit: 0, current: None, previous: None, base: i64::MAX, base_rtt: i64::MAX }
    }

    /// The path may have changed.
    pub(super) const fn clear(&mut self) {
        *self = Self::new(self.delay, self.clock, self.filter);
    }

    /// Adds an ACK's sample to the round.
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        let Some(sample) = self.sample(ack) else { return };
        let delayed = self.was_delayed(ack);
        self.base = self.base.min(sample);
        match &mut self.current {
            // A delayed ACK's sample can only be too large, so it may lower a minimum that others made.
            Some(round) if delayed => round.min = round.min.min(sample),
            Some(round) => *round = Extremes { min: round.min.min(sample), max: round.max.max(sample) },
            None if delayed => {}
            None => self.current = Some(Extremes { min: sample, max: sample }),
        }
    }

    /// The next round begins.
    pub(super) const fn next_round(&mut self) {
        self.previous = self.current.take();
    }

    /// Whether the queue was empty: the minimum delay of the present round is at most `floor`, or a sixteenth of the
    /// base RTT, above the minimum so far.
    pub(super) fn queue_was_empty(&self, floor: Duration) -> bool {
        let slack = micros(floor).max(self.base_rtt / 16);
        !floor.is_zero() && self.current.is_some_and(|round| round.min - self.base <= slack)
    }

    fn sample(&mut self, ack: &Ack) -> Option<i64> {
        let rtt = ack.rtt?;
        self.base_rtt = self.base_rtt.min(micros(rtt));
        let now = i64::try_from(ack.now.as_nanos()).unwrap_or(i64::MAX);
        let sent = now.saturating_sub(nanos(rtt));
        match self.delay {
            Delay::Rtt => Some(self.clock.between(sent, now)),
            Delay::Owd => Some(self.clock.between(sent, sent.saturating_add(ack.one_way_delay?))),
        }
    }

    /// Whether an ACK may have waited for the receiver's delayed-ACK timer, not in a queue: ACKs of several segments
    /// were seen before, and this one is of one segment. With holes at the receiver every segment is acknowledged at
    /// once.
    fn was_delayed(&mut self, ack: &Ack) -> bool {
        if !self.filter || ack.sacked {
            return false;
        }
        let delayed = ack.packets == 1 && self.credit > 0;
        if delayed {
            self.credit -= 1;
        } else if ack.packets > 1 {
            self.credit = CREDIT_MAX.min(self.credit + 1);
        }
        delayed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Random, Time};

    fn ack(packets: u32, rtt_us: u64) -> Ack {
        let rtt = Some(Duration::from_micros(rtt_us));
        Ack { now: Time::from_nanos(1_000_000_000), packets, rtt, ..Ack::default() }
    }

    fn rtt() -> Delays {
        Delays::new(Delay::Rtt, Clock::Micro, true)
    }

    #[test]
    fn a_delayed_ack_only_lowers_a_minimum_that_exists() {
        let mut delays = rtt();
        delays.on_ack(&ack(2, 50));
        delays.next_round();
        delays.on_ack(&ack(1, 40)); // spends the credit; no minimum yet, so nothing
        assert_eq!(delays.current, None);
        delays.on_ack(&ack(2, 60));
        delays.on_ack(&ack(1, 200));
        assert_eq!(delays.current, Some(Extremes { min: 60, max: 60 }));
        delays.on_ack(&ack(1, 55)); // the credit is spent: an ordinary sample
        delays.on_ack(&ack(1, 70));
        assert_eq!(delays.current, Some(Extremes { min: 55, max: 70 }));
    }

    #[test]
    fn credit_ends_at_five_and_rests_while_there_are_holes() {
        let mut delays = rtt();
        for _ in 0..9 {
            delays.on_ack(&ack(2, 50));
        }
        delays.on_ack(&Ack { sacked: true, ..ack(1, 51) });
        for _ in 0..5 {
            delays.on_ack(&ack(1, 99));
        }
        assert_eq!(delays.current, Some(Extremes { min: 50, max: 51 }));
        delays.on_ack(&ack(1, 99));
        assert_eq!(delays.current, Some(Extremes { min: 50, max: 99 }));
    }

    #[test]
    fn without_the_filter_every_sample_counts() {
        let mut delays = Delays::new(Delay::Rtt, Clock::Micro, false);
        delays.on_ack(&ack(2, 50));
        delays.on_ack(&ack(1, 99));
        assert_eq!(delays.current, Some(Extremes { min: 50, max: 99 }));
    }

    #[test]
    fn the_offset_of_one_way_delays_does_not_matter() {
        let gradient = |offset: i64| {
            let mut delays = Delays::new(Delay::Owd, Clock::Micro, true);
            for owd in [10_000_000, 12_000_000] {
                delays.next_round();
                delays.on_ack(&Ack { one_way_delay: Some(owd + offset), ..ack(2, 20_000) });
            }
            delays.current.unwrap().since(delays.previous.unwrap())
        };
        assert_eq!(gradient(0), Extremes { min: 2000, max: 2000 });
        assert_eq!(gradient(0), gradient(-7_000_000_000));
        assert_eq!(gradient(0), gradient(1_000_000_000_000));
    }

    #[test]
    fn an_empty_queue_is_near_the_base() {
        let mut delays = rtt();
        delays.on_ack(&ack(2, 32_000));
        delays.next_round();
        delays.on_ack(&ack(2, 34_000)); // a sixteenth above
        assert!(delays.queue_was_empty(Duration::from_micros(1)));
        assert!(!delays.queue_was_empty(Duration::ZERO));
        delays.next_round();
        delays.on_ack(&ack(2, 34_001));
        assert!(!delays.queue_was_empty(Duration::from_micros(1)));
        assert!(delays.queue_was_empty(Duration::from_millis(3)));
    }

    /// The error of the millisecond clock, in milliseconds, for this true delay (µs) sent at this moment (µs).
    fn error(sent: i64, delay: i64) -> f64 {
        (Clock::Milli.between(sent * 1000, (sent + delay) * 1000) - delay) as f64 / 1000.0
    }

    fn mean_and_variance(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64)
    }

    fn within(values: &[f64], bound: f64) -> bool {
        values.iter().all(|value| value.abs() < bound)
    }

    #[test]
    fn noise_of_the_millisecond_clock() {
        // Thesis, bound 4.4 and table 4.2: within (0.001, 1.991) ms, mean 0.993, variance 0.183.
        let mut random = Random::new(3);
        let errors: Vec<f64> = (0..20_000)
            .map(|_| error((random.uniform() * 1e9) as i64, 20_000 + (random.uniform() * 1e5) as i64))
            .collect();
        assert!(errors.iter().all(|error| *error > 0.0 && *error < 2.0));
        let (mean, variance) = mean_and_variance(&errors);
        assert!((mean - 0.993).abs() < 0.05, "{mean}");
        assert!((variance - 0.183).abs() < 0.03, "{variance}");
        assert_eq!((error(0, 1), error(999, 1)), (0.999, 1.999)); // both ends of the bound
    }

    #[test]
    fn noise_of_rounds_and_gradients() {
        // Thesis, tables 4.3 and 4.4: a queue of 10 Mbit/s that grows by a packet of 1514 bytes (1211 us) a round.
        let mut random = Random::new(5);
        let (mut lows, mut highs) = (Vec::new(), Vec::new());
        for _ in 0..8000 {
            let (start, base) = ((random.uniform() * 1e9) as i64, 40_000 + (random.uniform() * 1e5) as i64);
            let packets = base / 1211;
            let samples = (0..packets).step_by(2).map(|k| (start + k * 1211, base + 1211 * k / packets));
            let read = samples.map(|(sent, delay)| (delay as f64 / 1000.0, delay as f64 / 1000.0 + error(sent, delay)));
            let min = read.clone().fold((f64::MAX, f64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)));
            let max = read.fold((0.0f64, 0.0f64), |a, b| (a.0.max(b.0), a.1.max(b.1)));
            lows.push(min.1 - min.0);
            highs.push(max.1 - max.0);
        }
        let ((low, _), (high, _)) = (mean_and_variance(&lows), mean_and_variance(&highs));
        assert!((0.64..0.92).contains(&low), "{low}");
        assert!((1.22..1.48).contains(&high), "{high}");
        let gradients =
            |span: usize| -> Vec<f64> { lows.windows(span + 1).map(|w| (w[span] - w[0]) / span as f64).collect() };
        let (unsmoothed, smoothed) = (gradients(1), gradients(8));
        assert!(within(&unsmoothed, 2.0) && within(&smoothed, 0.25)); // bound 4.5, and an eighth of it
        let (raw, smooth) = (mean_and_variance(&unsmoothed).1, mean_and_variance(&smoothed).1);
        assert!((0.13 / 1.5..0.35 * 1.5).contains(&raw), "{raw}");
        assert!((0.002 / 1.5..0.004 * 1.5).contains(&smooth), "{smooth}");
    }
}
