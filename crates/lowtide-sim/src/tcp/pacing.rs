// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pacing: segments leave in bursts of one or two, spread over time.

use lowtide_net::Time;
use std::time::Duration;

/// The current burst.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    from: Time,
    sent: u64,
}

impl Pacer {
    /// When the next segment may leave at `rate` bytes per second.
    pub(super) fn release(&self, rate: u64, mss: u64) -> Time {
        if self.sent < quantum(rate, mss) { self.from } else { self.end(rate) }
    }

    /// A segment leaves.
    pub(super) fn on_sent(&mut self, now: Time, bytes: u64, rate: u64) {
        if now >= self.end(rate) {
            *self = Self { from: now, sent: 0 };
        }
        self.sent += bytes;
    }

    /// When what was sent in the burst has had its time.
    fn end(&self, rate: u64) -> Time {
        let nanos = self.sent.saturating_mul(1_000_000_000).div_ceil(rate.max(1));
        self.from + Duration::from_nanos(nanos)
    }
}

/// The least burst: a millisecond's worth as in Linux, but one or two segments.
fn quantum(rate: u64, mss: u64) -> u64 {
    if rate / 1000 >= 2 * mss { 2 * mss } else { mss }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times in microseconds at which so many segments of 1000 bytes leave.
    fn departures(rate: u64, segments: usize) -> Vec<u64> {
        let (mut pacer, mut now) = (Pacer::default(), Time::ZERO);
        let mut step = || {
            now = now.max(pacer.release(rate, 1000));
            pacer.on_sent(now, 1000, rate);
            now.as_nanos() / 1000
        };
        (0..segments).map(|_| step()).collect()
    }

    #[test]
    fn slow_flows_send_single_segments_and_fast_ones_pairs() {
        assert_eq!(departures(1_000_000, 4), [0, 1000, 2000, 3000]);
        assert_eq!(departures(10_000_000, 6), [0, 0, 200, 200, 400, 400]);
    }

    #[test]
    fn a_higher_rate_counts_at_once_and_lost_time_is_not_made_up() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Time::ZERO, 1000, 1000);
        assert_eq!(pacer.release(1000, 1000).as_nanos(), 1_000_000_000);
        assert_eq!(pacer.release(100_000, 1000).as_nanos(), 10_000_000);
        let late = Time::from_nanos(5_000_000_000);
        pacer.on_sent(late, 1000, 1000);
        assert_eq!(pacer.release(1000, 1000).as_nanos(), 6_000_000_000);
    }
}
