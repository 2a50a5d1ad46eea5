// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queueing delay as the difference between the current and the base delay (RFC 6817, section 2.4.2).
//!
//! Delays are nanoseconds. They may come from clocks with an unknown offset, so only their differences mean anything.

use crate::{Ack, Time, time::nanos};
use std::time::Duration;

/// The delay that a law steers by: one-way where the transport can tell it, otherwise the round trip.
///
/// The first sample decides, once and for all: the two differ by the clocks' offset and must not meet in one history.
#[derive(Clone, Debug, Default)]
pub struct DelaySignal {
    one_way: Option<bool>,
}

impl DelaySignal {
    /// The delay that this ACK brings, if any.
    pub fn sample(&mut self, ack: &Ack) -> Option<i64> {
        let rtt = ack.rtt.map(nanos);
        if self.one_way.is_none() && (ack.one_way_delay.is_some() || rtt.is_some()) {
            self.one_way = Some(ack.one_way_delay.is_some());
        }
        if self.one_way == Some(true) { ack.one_way_delay } else { rtt }
    }
}

/// The least delay of the last minutes: one minimum for each minute in which there was a sample.
///
/// With `bins` minima it forgets a path's true base delay after `bins` minutes of standing queue.
#[derive(Clone, Debug)]
pub struct BaseDelay {
    /// A ring; `i64::MAX` is empty.
    minima: Box<[i64]>,
    newest: usize,
    minute: Option<u64>,
}

impl BaseDelay {
    /// A history of this many minutes (`BASE_HISTORY`), at least one.
    pub fn new(bins: u32) -> Self {
        Self { minima: vec![i64::MAX; bins.max(1) as usize].into(), newest: 0, minute: None }
    }

    /// A sample.
    pub fn on_sample(&mut self, now: Time, delay: i64) {
        let minute = now.as_nanos() / 60_000_000_000;
        if self.minute != Some(minute) {
            self.minute = Some(minute);
            self.newest = (self.newest + 1) % self.minima.len();
            self.minima[self.newest] = i64::MAX;
        }
        self.minima[self.newest] = self.minima[self.newest].min(delay);
    }

    /// The base delay, once there is a sample.
    pub fn get(&self) -> Option<i64> {
        self.minima.iter().copied().min().filter(|delay| *delay < i64::MAX)
    }
}

/// The least of the last few samples, so that one delayed ACK does not count as a queue.
#[derive(Clone, Debug)]
pub struct CurrentDelay {
    /// A ring of when and how long; `i64::MAX` is empty.
    samples: Box<[(Time, i64)]>,
    newest: usize,
}

impl CurrentDelay {
    /// A filter over this many samples (`CURRENT_FILTER`), at least one.
    pub fn new(samples: u32) -> Self {
        Self { samples: vec![(Time::ZERO, i64::MAX); samples.max(1) as usize].into(), newest: 0 }
    }

    /// A sample.
    pub fn on_sample(&mut self, now: Time, delay: i64) {
        self.newest = (self.newest + 1) % self.samples.len();
        self.samples[self.newest] = (now, delay);
    }

    /// The least of the samples that are no older than `age`, if there are such.
    pub fn get(&self, now: Time, age: Duration) -> Option<i64> {
        let recent = self.samples.iter().filter(|(at, _)| now - *at <= age);
        recent.map(|(_, delay)| *delay).min().filter(|delay| *delay < i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(at: u64) -> Time {
        Time::from_nanos(at * 1_000_000_000)
    }

    #[test]
    fn the_first_sample_chooses_the_signal() {
        let rtt = Ack { rtt: Some(Duration::from_millis(5)), ..Ack::default() };
        let both = Ack { one_way_delay: Some(-7), ..rtt };
        let mut signal = DelaySignal::default();
        assert_eq!(signal.sample(&Ack::default()), None);
        assert_eq!(signal.sample(&both), Some(-7));
        assert_eq!(signal.sample(&rtt), None, "a round trip does not join one-way delays");
        let mut signal = DelaySignal::default();
        assert_eq!(signal.sample(&rtt), Some(5_000_000));
        assert_eq!(signal.sample(&both), Some(5_000_000));
    }

    #[test]
    fn the_base_is_forgotten_after_its_minutes() {
        let mut base = BaseDelay::new(10);
        assert_eq!(base.get(), None);
        base.on_sample(second(0), 5);
        base.on_sample(second(59), 3);
        for at in 60..600 {
            base.on_sample(second(at), 100);
            assert_eq!(base.get(), Some(3), "at {at} s");
        }
        base.on_sample(second(600), 100);
        assert_eq!(base.get(), Some(100));
    }

    #[test]
    fn the_current_delay_is_the_least_of_few_and_fresh_samples() {
        let mut current = CurrentDelay::new(4);
        let age = Duration::from_secs(2);
        for (at, delay) in [(1, 10), (2, 20), (3, 30)] {
            current.on_sample(second(at), delay);
        }
        assert_eq!(current.get(second(3), age), Some(10));
        assert_eq!(current.get(second(4), age), Some(20), "the first is too old");
        assert_eq!(current.get(second(9), age), None);
        current.on_sample(second(3), 40);
        current.on_sample(second(3), 50);
        assert_eq!(current.get(second(3), age), Some(20), "the first is the fifth last");
    }
}
