// SPDX-License-Identifier: MIT OR Apache-2.0
//! Will it be done by then?
//!
//! The answer must come early, while the weight is still on its way up, and must not cry wolf. Three
//! things are known after each update interval: the rate achieved, the weight it was achieved with, and the
//! law's exponent (rate goes with `w^(1/alpha)` at a constant price). From them come
//!
//! * the **best estimate** of the rate at `w_max`, with the law's own exponent, used for "expected ...";
//! * a **generous bound** on it, used for the alarm: a larger exponent (the law may be better than assumed)
//!   and the smallest of the weights that the flow can still be lagging behind. The price that rises as
//!   one presses harder makes the truth smaller still; the bound ignores that.
//!
//! What the path was seen to carry caps both, but only in one form: a rate that **stayed flat while the
//! weight rose fourfold**. There the path, not the weight, is the limit. A mere peak proves nothing: seen at
//! a submissive weight it is below what pressing harder would give, seen on an idle link it is above what
//! there is beside others.

use crate::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Below this part of `w_max` the extrapolation is too long to call a deadline impossible.
const TRUST: f64 = 0.25;
/// The rate needed must exceed the generous bound by this factor ...
const ALARM_MARGIN: f64 = 1.1;
/// ... in so many consecutive intervals; and as many in which it does not take the alarm back. One fewer where
/// the whole transfer has few of them.
const CONSECUTIVE: u32 = 3;
/// Few.
const FEW_INTERVALS: f64 = 20.0;
/// No flow is given longer than this part of the whole time to follow its weight ...
const RESPONSE_MOST: f64 = 0.17;
/// ... or than this, where the whole transfer has few intervals.
const RESPONSE_MOST_OF_FEW: f64 = 0.1;
/// Exponent of the generous bound over the law's own 1/alpha, where that does not exceed 1 (Vegas' linear
/// response is the steepest of the laws known).
const GENEROSITY: f64 = 1.5;
/// Flat: three-interval means within this factor of each other ...
const FLAT: f64 = 1.2;
/// ... while the weight rose by this factor.
const FLAT_RISE: f64 = 4.0;
/// Intervals remembered.
const HISTORY: usize = 64;
/// Gain of the smoothed rate, per interval (the first few are averaged): eight intervals, so that an ETA
/// follows the network but not its sawteeth.
const SMOOTHING: f64 = 1.0 / 8.0;

/// What one update interval showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// The weight in force; greater than 0.
    pub weight: f64,
    /// Bytes per second that the network gave while there was something to send; >= 0.
    pub network_rate: f64,
    /// Bytes per second over the whole interval, pauses of the program included; >= 0.
    pub overall_rate: f64,
}

/// What is asked of the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The present.
    pub now: Time,
    /// Bytes left; greater than 0.
    pub remaining: f64,
    /// When the goal was set; not later than `now`.
    pub since: Time,
    /// When it must be done; later than `now`.
    pub deadline: Time,
    /// When the controller means to be done; not later than `deadline`.
    pub aim: Time,
    /// T_w.
    pub interval: Duration,
    /// How long the flow takes to follow its weight.
    pub response: Duration,
    /// l_w, for the time that the climb to `w_max` takes.
    pub increase_limit: f64,
}

/// The answer: what to tell the user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outlook {
    /// Nothing can be said yet.
    TooEarly,
    /// There is no deadline; `expected` is when it would be done at the smoothed rate, where size and rate
    /// are known.
    NoDeadline {
        /// Expected completion.
        expected: Option<Time>,
    },
    /// It will be done by the deadline; `expected` is never later than that.
    OnCourse {
        /// Expected completion.
        expected: Time,
    },
    /// It cannot be done by the deadline at what this network gives now.
    CannotFinish {
        /// Expected completion, not before the deadline: with the climb to `w_max`, then at the ceiling.
        expected: Time,
        /// Bytes per second expected at `w_max`.
        at_ceiling_rate: f64,
    },
    /// The program itself, not the network, sets the pace, and at that pace it is done after the deadline
    /// or never. Pressing harder would not help.
    ProgramLimited {
        /// Expected completion, where the rate allows one.
        expected: Option<Time>,
    },
    /// There is something to send, and for three update intervals or more nothing has got through.
    Stalled {
        /// When the last byte was acknowledged.
        since: Time,
    },
    /// The deadline has passed and data are left.
    Overdue {
        /// Expected completion, where the rate allows one.
        expected: Option<Time>,
    },
    /// All announced bytes are acknowledged (and up to 2 % more: framing, encryption, retries of the
    /// program's own).
    Done,
    /// More was sent than announced: the size was underestimated, and nothing more can be forecast.
    SizeExceeded {
        /// Bytes acknowledged beyond the announced size.
        by: u64,
    },
}

impl Outlook {
    /// True if all announced bytes are acknowledged: [`Done`](Outlook::Done) or
    /// [`SizeExceeded`](Outlook::SizeExceeded).
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self, Outlook::Done | Outlook::SizeExceeded { .. })
    }

    /// The expected completion, where there is one.
    #[must_use]
    pub const fn expected(&self) -> Option<Time> {
        match *self {
            Outlook::OnCourse { expected } | Outlook::CannotFinish { expected, .. } => Some(expected),
            Outlook::NoDeadline { expected } | Outlook::ProgramLimited { expected } | Outlook::Overdue { expected } => {
                expected
            }
            Outlook::TooEarly | Outlook::Stalled { .. } | Outlook::Done | Outlook::SizeExceeded { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Open,
    Feasible,
    Impossible,
}

/// Judges from the intervals seen whether a deadline will be met.
#[derive(Debug, Clone)]
pub struct Forecast {
    alpha: f64,
    w_max: f64,
    seen: VecDeque<Observation>,
    smoothed: f64,
    averaged: u32,
    verdict: Verdict,
    against: u32,
}

impl Forecast {
    /// For a law whose rate goes with `w^(1/alpha)` (`alpha` finite and greater than 0: 2 for Reno, 4/3 for
    /// CUBIC, 1 for Vegas, measured for CDG) and a largest weight of `w_max` (greater than 0).
    #[must_use]
    pub fn new(alpha: f64, w_max: f64) -> Forecast {
        Forecast {
            alpha,
            w_max,
            seen: VecDeque::with_capacity(HISTORY),
            smoothed: 0.0,
            averaged: 0,
            verdict: Verdict::Open,
            against: 0,
        }
    }

    /// Take in an interval and, if there is a deadline, weigh the verdict.
    pub fn observe(&mut self, o: &Observation, question: Option<&Question>) {
        self.smooth(o.overall_rate);
        if self.seen.len() == HISTORY {
            self.seen.pop_front();
        }
        self.seen.push_back(*o);
        if let Some(q) = question {
            self.weigh(q);
        }
    }

    /// Take in an interval that says nothing about the ceiling, because the program, not the network, set the
    /// pace, or because nothing at all got through: it counts for the smoothed rate only.
    pub fn observe_unrepresentative(&mut self, overall_rate: f64) {
        self.smooth(overall_rate);
    }

    /// The goal has moved: what was seen stays true, the verdict does not.
    pub fn goal_moved(&mut self) {
        self.verdict = Verdict::Open;
        self.against = 0;
    }

    /// The smoothed rate in bytes per second, pauses of the program included; 0 if nothing was seen.
    #[must_use]
    pub fn smoothed_rate(&self) -> f64 {
        self.smoothed
    }

    /// When `remaining` bytes will have gone at the smoothed rate; `None` at rate 0.
    #[must_use]
    pub fn completion(&self, now: Time, remaining: f64) -> Option<Time> {
        (self.smoothed > 0.0).then(|| now.plus_secs_f64(remaining / self.smoothed))
    }

    /// The best estimate of the rate at `w_max`, bytes per second: mean of the last three intervals, each
    /// scaled by `(w_max/w)^(1/alpha)`, capped where the path is seen to be full. `None` before the first
    /// interval. At a low weight this is a long extrapolation at a constant price, and so too large.
    #[must_use]
    pub fn ceiling(&self) -> Option<f64> {
        let n = self.seen.len().min(3);
        let last = self.seen.range(self.seen.len() - n..);
        let sum: f64 = last.map(|o| o.network_rate * libm::pow(self.rise(o.weight), 1.0 / self.alpha)).sum();
        let raw = (n > 0).then(|| sum / n as f64)?;
        Some(self.flat_rate().map_or(raw, |flat| raw.min(flat)))
    }

    /// The statement to make now. `deadline` must be later than `now`.
    #[must_use]
    pub fn outlook(&self, q: &Question) -> Outlook {
        match (self.verdict, self.ceiling()) {
            (Verdict::Impossible, Some(ceiling)) => Outlook::CannotFinish {
                expected: self.after_the_climb(q, ceiling).max(q.deadline),
                at_ceiling_rate: ceiling,
            },
            (Verdict::Feasible, Some(ceiling)) => {
                let at_rate = |rate: f64| q.now.plus_secs_f64(q.remaining / rate);
                // The controller presses until the aim is met, but no harder than the ceiling.
                let expected =
                    at_rate(self.smoothed).min(q.aim).max(at_rate(ceiling.max(self.smoothed))).clamp(q.now, q.deadline);
                Outlook::OnCourse { expected }
            }
            _ => Outlook::TooEarly,
        }
    }

    fn smooth(&mut self, rate: f64) {
        self.averaged = self.averaged.saturating_add(1);
        let gain = SMOOTHING.max(1.0 / f64::from(self.averaged));
        self.smoothed += gain * (rate - self.smoothed);
    }

    fn rise(&self, weight: f64) -> f64 {
        (self.w_max / weight).max(1.0)
    }

    fn lowest_recent_weight(&self, intervals: u32) -> f64 {
        let first = self.seen.len().saturating_sub(intervals as usize);
        let recent = self.seen.range(first..);
        recent.map(|o| o.weight).fold(f64::INFINITY, f64::min)
    }

    /// The generous bound from the newest interval; see the module's text.
    fn bound(&self, intervals: u32) -> f64 {
        let Some(newest) = self.seen.back() else {
            return f64::INFINITY;
        };
        let own = 1.0 / self.alpha;
        let exponent = (GENEROSITY * own).min(own.max(1.0));
        let raw = newest.network_rate * libm::pow(self.rise(self.lowest_recent_weight(intervals)), exponent);
        self.flat_rate().map_or(raw, |flat| raw.min(flat.max(newest.network_rate)))
    }

    /// The rate that the path carries at most, if the rate has stayed flat while the weight rose fourfold.
    fn flat_rate(&self) -> Option<f64> {
        let n = self.seen.len();
        let mean_at = |end: usize| self.seen.range(end - 3..end).map(|o| o.network_rate).sum::<f64>() / 3.0;
        if n < 6 {
            return None;
        }
        let (present, risen_to) = (mean_at(n), self.lowest_recent_weight(3));
        let mut most = present;
        for end in (3..n).rev() {
            let mean = mean_at(end);
            if present <= 0.0 || mean > present * FLAT || mean < present / FLAT {
                return None;
            }
            most = most.max(mean);
            let highest_then = self.seen.range(end - 3..end).map(|o| o.weight);
            if highest_then.fold(0.0, f64::max) * FLAT_RISE <= risen_to {
                return Some(most);
            }
        }
        None
    }

    fn weigh(&mut self, q: &Question) {
        let whole = q.deadline.since(q.since).as_secs_f64();
        let few = whole < FEW_INTERVALS * q.interval.as_secs_f64();
        let consecutive = if few { CONSECUTIVE - 1 } else { CONSECUTIVE };
        if self.seen.len() < consecutive as usize {
            return;
        }
        let Some(newest) = self.seen.back().copied() else {
            return;
        };
        let needed = q.remaining / q.deadline.since(q.now).as_secs_f64();
        let trusted = self.lowest_recent_weight(consecutive) >= TRUST * self.w_max;
        // a transfer of few round trips cannot wait for them
        let most = if few { RESPONSE_MOST_OF_FEW } else { RESPONSE_MOST };
        let response = q.response.as_secs_f64().min(most * whole);
        let response = (response / q.interval.as_secs_f64().max(1e-9)).ceil() as u32;
        let bound = self.bound(response.clamp(consecutive, HISTORY as u32));

        if self.verdict == Verdict::Impossible {
            // Hysteresis: the margin was asked on the way in, it is not asked on the way out.
            self.against = if needed <= bound { self.against + 1 } else { 0 };
            if self.against >= consecutive {
                self.verdict = Verdict::Feasible;
                self.against = 0;
            }
            return;
        }
        let alarm = needed > ALARM_MARGIN * bound && (trusted || self.flat_rate().is_some());
        self.against = if alarm { self.against + 1 } else { 0 };
        if self.against >= consecutive {
            self.verdict = Verdict::Impossible;
            self.against = 0;
        } else if !alarm && self.verdict == Verdict::Open {
            let achieves = newest.network_rate.min(self.smoothed) >= needed;
            let could = trusted && self.ceiling().is_some_and(|c| c >= ALARM_MARGIN * needed);
            if achieves || could {
                self.verdict = Verdict::Feasible;
            }
        }
    }

    /// Completion if the weight climbs to `w_max` as fast as it may (the rate half-way between now's and the
    /// ceiling meanwhile) and stays there.
    fn after_the_climb(&self, q: &Question, ceiling: f64) -> Time {
        let weight = self.seen.back().map_or(self.w_max, |o| o.weight);
        let updates = (1.0 - weight / self.w_max).max(0.0) / q.increase_limit;
        let climb = updates * q.interval.as_secs_f64();
        let meanwhile = f64::midpoint(self.smoothed.min(ceiling), ceiling);
        let seconds = if meanwhile * climb >= q.remaining {
            q.remaining / meanwhile
        } else {
            climb + (q.remaining - meanwhile * climb) / ceiling
        };
        q.now.plus_secs_f64(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: f64 = 600.0;

    /// At second `now`, `needed` bytes per second would do.
    fn question(now: f64, needed: f64) -> Question {
        let at = |s: f64| Time::ZERO.plus_secs_f64(s);
        Question {
            now: at(now),
            remaining: needed * (DEADLINE - now),
            since: Time::ZERO,
            deadline: at(DEADLINE),
            aim: at(0.95 * DEADLINE),
            interval: Duration::from_secs(10),
            response: Duration::from_secs(2),
            increase_limit: 0.1,
        }
    }

    fn seen(weight: f64, rate: f64) -> Observation {
        Observation { weight, network_rate: rate, overall_rate: rate }
    }

    fn feed(f: &mut Forecast, n: usize, o: Observation, q: &Question) -> Outlook {
        for _ in 0..n {
            f.observe(&o, Some(q));
        }
        f.outlook(q)
    }

    #[test]
    fn the_ceiling_follows_the_laws_exponent() {
        for (alpha, factor) in [(2.0, 2.0), (1.0, 4.0), (4.0 / 3.0, libm::pow(4.0, 0.75))] {
            let mut f = Forecast::new(alpha, 1.0);
            assert_eq!(f.ceiling(), None);
            feed(&mut f, 3, seen(0.25, 1e6), &question(100.0, 1.0));
            assert!((f.ceiling().unwrap() / (factor * 1e6) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn impossible_needs_three_intervals_and_a_trusted_weight() {
        let q = question(100.0, 4e6);
        let mut f = Forecast::new(2.0, 1.0);
        assert_eq!(feed(&mut f, 20, seen(0.2, 1e6), &q), Outlook::TooEarly);
        let mut f = Forecast::new(2.0, 1.0);
        // bound: 4^0.75 = 2.83 times the rate
        assert_eq!(feed(&mut f, 4, seen(0.25, 1e6), &q), Outlook::TooEarly);
        let Outlook::CannotFinish { expected, at_ceiling_rate } = feed(&mut f, 1, seen(0.25, 1e6), &q) else {
            panic!("no alarm");
        };
        assert!((at_ceiling_rate - 2e6).abs() < 1.0);
        // 2e9 bytes: 75 s of climb at 1.5e6, the rest at 2e6
        let by_hand = 100.0 + 75.0 + (2e9 - 75.0 * 1.5e6) / 2e6;
        assert!((expected.as_secs_f64() - by_hand).abs() < 1e-6);
    }

    #[test]
    fn within_the_margin_there_is_no_alarm() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(100.0, 1.09e6);
        assert_eq!(feed(&mut f, 50, seen(1.0, 1e6), &q), Outlook::TooEarly);
        let q = question(100.0, 1.11e6);
        assert!(matches!(feed(&mut f, 3, seen(1.0, 1e6), &q), Outlook::CannotFinish { .. }));
    }

    #[test]
    fn an_alarm_is_taken_back_after_three_good_intervals() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(100.0, 2e6);
        feed(&mut f, 5, seen(1.0, 1e6), &q);
        let good = seen(1.0, 2.1e6);
        assert!(matches!(feed(&mut f, 2, good, &q), Outlook::CannotFinish { .. }));
        assert!(matches!(feed(&mut f, 1, good, &q), Outlook::OnCourse { .. }));
    }

    #[test]
    fn a_rate_flat_over_a_fourfold_weight_is_what_the_path_carries() {
        let climb = |flat: bool| {
            let mut f = Forecast::new(2.0, 1.0);
            let q = question(100.0, 3e6);
            for n in 0..20 {
                let w = 0.004 * libm::pow(1.15, f64::from(n));
                let rate = if flat { 1e6 } else { 1e6 * (w / 0.004).sqrt() };
                f.observe(&seen(w, rate), Some(&q));
            }
            f
        };
        let q = question(100.0, 3e6);
        assert!(matches!(
            climb(true).outlook(&q),
            Outlook::CannotFinish { at_ceiling_rate, .. } if (at_ceiling_rate - 1e6).abs() < 1.0
        ));
        assert!(climb(false).ceiling().unwrap() > 1e7);
        assert!(!matches!(climb(false).outlook(&q), Outlook::CannotFinish { .. }));
    }

    #[test]
    fn a_peak_at_a_submissive_weight_caps_nothing() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(100.0, 1.0);
        feed(&mut f, 3, seen(0.01, 3e6), &q); // a burst: alone on the link
        feed(&mut f, 3, seen(0.01, 1e6), &q);
        assert!((f.ceiling().unwrap() - 1e7).abs() < 1.0);
    }

    #[test]
    fn on_course_expects_the_earlier_of_its_rate_and_its_aim() {
        let mut f = Forecast::new(2.0, 1.0);
        let fast = question(300.0, 0.5e6);
        let Outlook::OnCourse { expected } = feed(&mut f, 5, seen(0.004, 1e6), &fast) else {
            panic!();
        };
        assert!((expected.as_secs_f64() - 450.0).abs() < 1e-6);
        let slow = question(300.0, 1.2e6);
        let mut f = Forecast::new(2.0, 1.0);
        let Outlook::OnCourse { expected } = feed(&mut f, 5, seen(0.4, 1e6), &slow) else {
            panic!();
        };
        assert!((expected.as_secs_f64() - 570.0).abs() < 1e-6); // it will press
    }

    #[test]
    fn intervals_that_say_nothing_count_for_the_eta_only() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(100.0, 1e6);
        feed(&mut f, 3, seen(0.5, 1e6), &q);
        let before = f.ceiling();
        f.observe_unrepresentative(0.0);
        assert_eq!(f.ceiling(), before);
        assert!((f.smoothed_rate() - 0.75e6).abs() < 1.0);
        assert_eq!(Forecast::new(2.0, 1.0).completion(Time::ZERO, 1.0), None);
    }

    /// The law may be better than declared: 4^0.75 = 2.83, not 4^0.5 = 2, times the rate, and a tenth.
    #[test]
    fn the_alarm_uses_the_generous_bound() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(100.0, 3.0e6);
        let o = feed(&mut f, 20, seen(0.25, 1e6), &q);
        assert!(!matches!(o, Outlook::CannotFinish { .. }), "{o:?}");
        let q = question(100.0, 3.2e6);
        let o = feed(&mut f, 3, seen(0.25, 1e6), &q);
        assert!(matches!(o, Outlook::CannotFinish { .. }), "{o:?}");
    }

    #[test]
    fn the_bound_is_never_below_what_was_just_achieved() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(100.0, 1.0);
        feed(&mut f, 3, seen(0.01, 1e6), &q);
        feed(&mut f, 3, seen(0.1, 1e6), &q);
        assert_eq!(f.bound(3), 1e6); // flat
        f.observe(&seen(0.1, 1.3e6), None);
        assert_eq!(f.bound(3), 1.3e6);
    }

    #[test]
    fn on_course_expects_no_more_than_the_ceiling_gives() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(500.0, 1.2e6);
        let Outlook::OnCourse { expected } = feed(&mut f, 5, seen(0.4, 1e6), &q) else {
            panic!();
        };
        let at_ceiling = 500.0 + 1.2e8 / (1e6 * 2.5f64.sqrt()); // after the aim
        assert!((expected.as_secs_f64() - at_ceiling).abs() < 1e-6);
    }
}
