// SPDX-License-Identifier: MIT OR Apache-2.0
//! The minimum RTT, and when to empty the queue to measure it (draft-ietf-ccwg-bbr, section 5.3.4).

use super::{Rounds, Sample};
use crate::Time;
use std::time::Duration;

/// The minimum filter of `min_rtt` and the schedule of the ProbeRTT state.
///
/// Version 1 has one window for both; that is `window` = `interval`.
#[derive(Clone, Debug)]
pub(crate) struct ProbeRtt {
    /// How long a minimum counts (`MinRTTFilterLen`).
    window: Duration,
    /// How long without a new minimum before the queue is emptied (`ProbeRTTInterval`).
    interval: Duration,
    /// How long it is then kept empty (`ProbeRTTDuration`).
    duration: Duration,
    /// Whether a sample that equals the minimum renews it.
    ties: bool,
    /// The least sample within `window`.
    pub(crate) min_rtt: Option<Duration>,
    min_stamp: Time,
    /// The least sample within `interval` (`probe_rtt_min_delay`).
    recent: Option<Duration>,
    recent_stamp: Time,
    /// When the queue has been empty for long enough.
    done: Option<Time>,
    round_done: bool,
    /// Bytes delivered when the state began, and when the last segment sent in it will be: its samples say nothing
    /// about the rate.
    limited: Option<(u64, u64)>,
}

impl ProbeRtt {
    pub(crate) const fn new(window: Duration, interval: Duration, duration: Duration, ties: bool) -> Self {
        Self {
            window,
            interval,
            duration,
            ties,
            min_rtt: None,
            min_stamp: Time::ZERO,
            recent: None,
            recent_stamp: Time::ZERO,
            done: None,
            round_done: false,
            limited: None,
        }
    }

    /// Takes a sample. Returns whether it is time to empty the queue.
    pub(crate) fn sample(&mut self, now: Time, rtt: Option<Duration>) -> bool {
        let (Some(recent), Some(min_rtt)) = (self.recent, self.min_rtt) else {
            (self.recent, self.min_rtt) = (rtt, rtt);
            (self.recent_stamp, self.min_stamp) = (now, now);
            return false;
        };
        let expired = now > self.recent_stamp + self.interval;
        if let Some(rtt) = rtt
            && (rtt < recent || (rtt == recent && self.ties) || expired)
        {
            self.recent = Some(rtt);
            self.recent_stamp = now;
        }
        if self.recent <= Some(min_rtt) || now > self.min_stamp + self.window {
            self.min_rtt = self.recent;
            self.min_stamp = self.recent_stamp;
        }
        expired
    }

    /// The state begins.
    pub(crate) const fn enter(&mut self, rounds: &Rounds) {
        self.done = None;
        self.limited = Some((rounds.delivered, rounds.delivered));
    }

    /// Holds the state with `in_flight` bytes until `target` was kept for long enough. Returns whether it is over.
    pub(crate) fn hold(&mut self, now: Time, in_flight: u64, target: u64, rounds: &mut Rounds) -> bool {
        if let Some((from, _)) = self.limited {
            self.limited = Some((from, rounds.delivered + in_flight));
        }
        if self.done.is_none() {
            if in_flight <= target {
                self.done = Some(now + self.duration);
                self.round_done = false;
                rounds.restart();
            }
            return false;
        }
        self.round_done |= rounds.start;
        self.round_done && self.is_over(now)
    }

    /// Whether the queue has been empty for long enough. The next time is then an interval away.
    pub(crate) fn is_over(&mut self, now: Time) -> bool {
        let over = self.done.is_some_and(|done| now > done);
        if over {
            self.recent_stamp = now;
        }
        over
    }

    /// The sample, marked application-limited if its segment was sent in this state (`MarkConnectionAppLimited`).
    pub(crate) fn mark(&self, mut sample: Sample) -> Sample {
        sample.app_limited |=
            self.limited.is_some_and(|(from, until)| (from..=until).contains(&sample.prior_delivered));
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: u64) -> Time {
        Time::ZERO + ms(n)
    }

    #[test]
    fn the_minimum_lasts_ten_seconds_and_the_probe_comes_after_five() {
        let mut probe = ProbeRtt::new(ms(10_000), ms(5000), ms(200), false);
        assert!(!probe.sample(at(60_000), Some(ms(20)))); // a late start is no expiry
        assert!(!probe.sample(at(65_000), Some(ms(30))));
        assert!(probe.sample(at(65_001), Some(ms(30))));
        assert_eq!(probe.min_rtt, Some(ms(20)));
        assert!(!probe.sample(at(70_000), Some(ms(31))));
        assert!(!probe.sample(at(70_001), Some(ms(32))));
        assert_eq!(probe.min_rtt, Some(ms(30)));
        assert!(!probe.sample(at(70_001), Some(ms(10))));
        assert_eq!(probe.min_rtt, Some(ms(10)));
    }

    #[test]
    fn with_one_window_the_minimum_is_probed_when_it_expires() {
        let mut probe = ProbeRtt::new(ms(10_000), ms(10_000), ms(200), false);
        probe.sample(at(0), Some(ms(20)));
        assert!(!probe.sample(at(10_000), Some(ms(20))));
        assert!(probe.sample(at(10_001), Some(ms(40))));
        assert_eq!(probe.min_rtt, Some(ms(40)));
    }

    #[test]
    fn it_is_held_for_its_duration_and_a_round() {
        let mut probe = ProbeRtt::new(ms(10_000), ms(5000), ms(200), false);
        let mut rounds = Rounds::default();
        probe.enter(&rounds);
        assert!(!probe.hold(at(0), 5000, 4000, &mut rounds));
        assert!(!probe.hold(at(10), 4000, 4000, &mut rounds)); // empty from here
        assert!(!probe.hold(at(211), 4000, 4000, &mut rounds)); // no round yet
        rounds.start = true;
        assert!(!probe.hold(at(210), 4000, 4000, &mut rounds));
        assert!(probe.hold(at(211), 4000, 4000, &mut rounds));
    }

    #[test]
    fn what_was_sent_in_it_tells_no_rate() {
        let mut probe = ProbeRtt::new(ms(10_000), ms(5000), ms(200), false);
        let mut rounds = Rounds::default();
        rounds.delivered = 1000;
        probe.enter(&rounds);
        rounds.delivered = 2000;
        probe.hold(at(0), 500, 4000, &mut rounds);
        let limited = |at| probe.mark(Sample { prior_delivered: at, ..Sample::default() }).app_limited;
        assert_eq!([999, 1000, 2500, 2501].map(limited), [false, true, true, false]);
    }
}
