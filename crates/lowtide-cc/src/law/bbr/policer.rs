// SPDX-License-Identifier: MIT OR Apache-2.0
//! Token-bucket policers: the long-term rate of version 1 (Linux `bbr_lt_bw_sampling`).

use crate::Time;
use std::time::Duration;

/// Least rounds of a sampling interval; it is given up after four times as many.
const INTERVAL_MIN_RTTS: u32 = 4;
/// An interval is lossy if at least this part was lost.
const LOSS_THRESH: f64 = 0.2;
/// Two intervals are alike if their rates differ by at most this part,
const BW_RATIO: f64 = 0.125;
/// or by at most this much, bytes per second (4 kbit/s).
const BW_DIFF: f64 = 500.0;
/// The long-term rate is used for this many rounds.
const BW_MAX_RTTS: u32 = 48;
/// The shortest interval that can be measured.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The effect of an ACK on the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// None that the law must know.
    Unchanged,
    /// The long-term rate has been used for long enough: probe again.
    ProbeAgain,
}

/// Two lossy intervals in a row with the same rate show a policer, and that is its rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policer {
    /// The long-term rate, segments per second; zero: none yet.
    bw: f64,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    interval_start: Time,
    /// Segments delivered and lost in the interval.
    delivered: f64,
    lost: f64,
}

/// What an ACK means for the estimator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    pub(crate) now: Time,
    /// Segments delivered and lost by this ACK.
    pub(crate) delivered: f64,
    pub(crate) lost: f64,
    pub(crate) round_start: bool,
    pub(crate) app_limited: bool,
    pub(crate) probe_bw: bool,
}

impl Policer {
    /// The policer's rate, if there seems to be a policer.
    pub(crate) fn bw(&self) -> Option<f64> {
        self.in_use.then_some(self.bw)
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    fn start_interval(&mut self, now: Time) {
        self.interval_start = now;
        self.rounds = 0;
        self.delivered = 0.0;
        self.lost = 0.0;
    }

    /// Takes an ACK.
    pub(crate) fn on_ack(&mut self, p: &Passage, mss: f64) -> Verdict {
        if self.in_use {
            if p.probe_bw && p.round_start {
                self.rounds += 1;
                if self.rounds >= BW_MAX_RTTS {
                    self.reset();
                    return Verdict::ProbeAgain;
                }
            }
            return Verdict::Unchanged;
        }
        // The first loss says that the tokens are used up; before it the rate is too high.
        if !self.sampling {
            if p.lost > 0.0 {
                self.sampling = true;
                self.start_interval(p.now);
            } else {
                return Verdict::Unchanged;
            }
        } else {
            self.delivered += p.delivered;
            self.lost += p.lost;
        }
        if p.app_limited {
            self.reset();
            return Verdict::Unchanged;
        }
        self.rounds += u32::from(p.round_start);
        if self.rounds > 4 * INTERVAL_MIN_RTTS {
            self.reset();
        } else if self.rounds >= INTERVAL_MIN_RTTS
            && p.lost > 0.0
            && self.delivered > 0.0
            && self.lost >= LOSS_THRESH * self.delivered
        {
            // An interval ends with a loss, when the tokens are used up again.
            let interval = p.now - self.interval_start;
            if interval >= INTERVAL_MIN {
                self.end_interval(p.now, self.delivered / interval.as_secs_f64(), mss);
            }
        }
        Verdict::Unchanged
    }

    fn end_interval(&mut self, now: Time, bw: f64, mss: f64) {
        let difference = (bw - self.bw).abs();
        if self.bw > 0.0 && (difference <= BW_RATIO * self.bw || difference * mss <= BW_DIFF) {
            self.bw = 0.5 * (bw + self.bw);
            self.in_use = true;
            self.rounds = 0;
        } else {
            self.bw = bw;
            self.start_interval(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 100 ms with 100 segments delivered and some lost; returns when the estimate was in use.
    fn run(policer: &mut Policer, lost: f64, rounds: u64) -> Option<u64> {
        (0..rounds).find(|n| {
            let p = Passage {
                now: Time::ZERO + Duration::from_millis(100 * n),
                delivered: 100.0,
                lost,
                round_start: true,
                app_limited: false,
                probe_bw: true,
            };
            policer.on_ack(&p, 1000.0);
            policer.bw().is_some()
        })
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_are_a_policer() {
        let mut policer = Policer::default();
        // Rounds 0 to 3 are the first interval (the round of the first loss counts), 4 to 7 the second.
        assert_eq!(run(&mut policer, 20.0, 20), Some(7));
        assert!((policer.bw().unwrap() - 1000.0).abs() < 1e-9);
        assert_eq!(run(&mut Policer::default(), 19.0, 100), None);
    }

    #[test]
    fn the_estimate_is_used_for_48_rounds() {
        let mut policer = Policer { bw: 10.0, in_use: true, ..Policer::default() };
        let round = Passage {
            now: Time::ZERO,
            delivered: 1.0,
            lost: 0.0,
            round_start: true,
            app_limited: false,
            probe_bw: true,
        };
        for _ in 0..47 {
            assert_eq!(policer.on_ack(&round, 1000.0), Verdict::Unchanged);
        }
        assert_eq!(policer.on_ack(&round, 1000.0), Verdict::ProbeAgain);
        assert_eq!(policer.bw(), None);
    }
}
