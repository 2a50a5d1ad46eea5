// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much more the path acknowledges at once than its rate explains (draft-ietf-ccwg-bbr, section 5.5.9).

use crate::Time;

/// An epoch of this many segments is ended (Linux `bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_ACKED_MAX: f64 = 1_048_576.0;

/// The greatest excess of acknowledgements, over `window` to 2 `window` rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtraAcked {
    window: u32,
    epoch_start: Option<Time>,
    epoch_acked: f64,
    /// The greatest excess in this window and in the one before, segments.
    current: f64,
    previous: f64,
    age: u32,
}

impl ExtraAcked {
    pub(crate) const fn new(window: u32) -> Self {
        Self { window, epoch_start: None, epoch_acked: 0.0, current: 0.0, previous: 0.0, age: 0 }
    }

    /// Takes an ACK for `acked` segments on a path whose estimated rate is `bw`. With `short`, the window is one round.
    pub(crate) fn on_ack(&mut self, now: Time, round_start: bool, short: bool, acked: f64, bw: f64, cwnd: f64) {
        if round_start {
            self.age += 1;
            if self.age >= if short { 1 } else { self.window } {
                self.age = 0;
                self.previous = self.current;
                self.current = 0.0;
            }
        }
        let mut start = self.epoch_start.unwrap_or(now);
        let mut expected = bw * (now - start).as_secs_f64();
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_ACKED_MAX {
            // ACKs no longer come faster than the path delivers: the burst is over.
            (start, expected, self.epoch_acked) = (now, 0.0, 0.0);
        }
        self.epoch_start = Some(start);
        self.epoch_acked += acked;
        self.current = self.current.max((self.epoch_acked - expected).min(cwnd));
    }

    /// After an idle time the epoch starts over.
    pub(crate) const fn restart(&mut self, now: Time) {
        self.epoch_start = Some(now);
        self.epoch_acked = 0.0;
    }

    /// The excess, segments.
    pub(crate) const fn get(&self) -> f64 {
        self.current.max(self.previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bursts_of_acks_are_measured_and_forgotten() {
        let mut extra = ExtraAcked::new(5);
        // 1000 segments per second, acknowledged 20 at a time every 20 ms, for 10 rounds of 100 ms.
        for n in 0..50 {
            let now = Time::ZERO + Duration::from_millis(20 * n);
            extra.on_ack(now, n % 5 == 0, false, 20.0, 1000.0, 1000.0);
        }
        assert_eq!(extra.get(), 20.0);
        // Then one at a time.
        for n in 0..1100 {
            let now = Time::ZERO + Duration::from_millis(1000 + n);
            extra.on_ack(now, n % 100 == 0, false, 1.0, 1000.0, 1000.0);
        }
        assert!(extra.get() <= 1.0 + 1e-9, "{}", extra.get());
    }

    #[test]
    fn a_burst_lasts_for_one_to_two_windows() {
        let mut extra = ExtraAcked::new(5);
        let at = |round: u64| Time::ZERO + Duration::from_millis(100 * round);
        for round in 1..20 {
            // As many as the rate explains, but for one burst and the lull after it.
            let acked = match round {
                3 => 140.0,
                4 => 60.0,
                _ => 100.0,
            };
            extra.on_ack(at(round), true, false, acked, 1000.0, 1000.0);
            let remembered = (3..10).contains(&round);
            assert_eq!(extra.get() > 120.0, remembered, "round {round}: {}", extra.get());
        }
    }

    #[test]
    fn it_is_bounded_by_the_window() {
        let mut extra = ExtraAcked::new(5);
        extra.on_ack(Time::ZERO, true, true, 500.0, 1000.0, 40.0);
        assert_eq!(extra.get(), 40.0);
    }
}
