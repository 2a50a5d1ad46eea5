// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pacing: segments leave in bursts, spread over time.

use lowtide_net::Time;
use std::time::Duration;

/// How long bursts may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bursts {
    /// So many segments at least,
    pub(super) least: u64,
    /// and what the rate gives in this time.
    pub(super) longest: Duration,
}

/// The current burst.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    from: Time,
    sent: u64,
}

impl Pacer {
    /// When the next segment may leave at `rate` bytes per second.
    pub(super) fn release(&self, rate: u64, mss: u64, bursts: Bursts, cwnd: u64) -> Time {
        if self.sent + mss <= burst(rate, mss, bursts, cwnd) { self.from } else { self.end(rate) }
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

/// Linux' bursts in bytes (`tcp_tso_autosize`, `tcp_cwnd_test`): a millisecond's worth, so many segments at least
/// (`net.ipv4.tcp_min_tso_segs`: 2) and 64 KiB at most, but no more than half a window. Time and number may be the
/// law's.
fn burst(rate: u64, mss: u64, bursts: Bursts, cwnd: u64) -> u64 {
    let longest = (u128::from(rate) * bursts.longest.as_nanos() / 1_000_000_000).min(1 << 16) as u64;
    longest.max(bursts.least * mss).min(cwnd / 2).max(mss)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times in microseconds at which so many segments of 1000 bytes leave.
    fn departures(rate: u64, bursts: Bursts, cwnd: u64, segments: usize) -> Vec<u64> {
        let (mut pacer, mut now) = (Pacer::default(), Time::ZERO);
        let mut step = || {
            now = now.max(pacer.release(rate, 1000, bursts, 1000 * cwnd));
            pacer.on_sent(now, 1000, rate);
            now.as_nanos() / 1000
        };
        (0..segments).map(|_| step()).collect()
    }

    const fn linux(least: u64) -> Bursts {
        Bursts { least, longest: Duration::from_millis(1) }
    }

    #[test]
    fn bursts_are_pairs_or_a_millisecond_long_but_no_more_than_half_a_window() {
        for (rate, least, cwnd, expected) in [
            (1_000_000, 2, 3, [0, 1000, 2000, 3000, 4000, 5000]),
            (1_000_000, 2, 4, [0, 0, 2000, 2000, 4000, 4000]),
            (1_000_000, 1, 4, [0, 1000, 2000, 3000, 4000, 5000]),
            (3_500_000, 1, 100, [0, 0, 0, 857, 857, 857]),
            (3_500_000, 2, 5, [0, 0, 571, 571, 1142, 1142]),
        ] {
            assert_eq!(departures(rate, linux(least), cwnd, 6), expected, "{rate} {least} {cwnd}");
        }
        let single = Bursts { least: 1, longest: Duration::ZERO };
        assert_eq!(departures(3_500_000, single, 100, 4), [0, 285, 571, 857]);
    }

    #[test]
    fn two_large_segments_are_a_burst_of_more_than_64_kib() {
        assert_eq!(burst(1, 60_000, linux(2), 1 << 20), 120_000);
        assert_eq!(burst(1 << 30, 1500, linux(2), 1 << 20), 1 << 16);
    }

    #[test]
    fn a_higher_rate_counts_at_once_and_lost_time_is_not_made_up() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Time::ZERO, 1000, 1000);
        assert_eq!(pacer.release(1000, 1000, linux(2), 2000).as_nanos(), 1_000_000_000);
        assert_eq!(pacer.release(100_000, 1000, linux(2), 2000).as_nanos(), 10_000_000);
        let late = Time::from_nanos(5_000_000_000);
        pacer.on_sent(late, 1000, 1000);
        assert_eq!(pacer.release(1000, 1000, linux(2), 2000).as_nanos(), 6_000_000_000);
    }
}
