// SPDX-License-Identifier: MIT OR Apache-2.0
//! Will it be done by then?
//!
//! The answer must come early, while the weight is still on its way up, and must not cry wolf. Known after each update
//! interval are the rate achieved, the weight it was achieved with, and the law's exponent (rate goes with `w^(1/alpha)`
//! at a constant price). From them come
//!
//! * **what is within reach**: the rate measured at the present weight, and what the climb to higher weights adds until
//!   the deadline at the limited pace. It assumes one competing flow, takes no more than the weights seen so far have
//!   shown to bring, and no more than a fourfold weight. "On course" rests on it alone; in the last tenth of the time not
//!   even on the climb, only on the rate measured;
//! * the **best estimate** of the rate at `w_max`, with the law's own exponent, used for "expected ...";
//! * a **generous bound** on it, used for the alarm: a larger exponent (the law may be better than assumed)
//!   and the smallest of the weights that the flow can still be lagging behind. The network is blamed only for what a
//!   flow at `w_max` got that had data to send.
//!
//! A rate that **stayed flat while the weight rose fourfold** caps estimate and bound. A mere peak proves nothing: seen at
//! a submissive weight it is below what pressing harder would give, seen on an idle link it is above what
//! there is beside others.

use crate::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Below this part of `w_max` the extrapolation is too long to say that a transfer is behind; and none goes beyond the
/// present weight over this.
const TRUST: f64 = 0.25;
/// From this part of `w_max` on the weight is that of the most that is allowed.
const AT_CEILING: f64 = 0.999;
/// The least part of an interval in which there was something to send, for an interval that blames the network.
const BACKLOGGED: f64 = 0.9;
/// "On course" is said from this margin on; it is taken back without any.
const COURSE_MARGIN: f64 = 1.1;
/// Intervals of which the rate at the present weight is the mean: two or three of CUBIC's sawteeth in a short transfer.
const MEASURED: usize = 8;
/// Intervals of which the latest rate is the mean.
const LATEST: usize = 3;
/// Intervals that show what a higher weight has brought: a climb at the limited pace takes ten to twenty.
const EVIDENCE: usize = 24;
/// The exponent that they show counts where its standard error, at a noise of 20 % in the rates, is below 1/4: number
/// times variance of ln w.
const EVIDENCE_LEAST: f64 = 0.64;
/// Steps in which the climb is added up.
const CLIMB_STEPS: u32 = 32;
/// In this last part of the time only the rate measured counts.
const LAST_PART: f64 = 0.1;
/// After this part of the time it is not too early any more.
const EARLY_PART: f64 = 1.0 / 3.0;
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
    /// The part of the interval in which there was something to send, 0 to 1.
    pub backlogged: f64,
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
    /// The weight in force; greater than 0.
    pub weight: f64,
    /// The part of the time, lately, in which the program had something to send, 0 to 1.
    pub availability: f64,
    /// How long nothing has got through though there was something to send.
    pub silence: Duration,
    /// Bytes sent and not yet acknowledged; 0 where unknown.
    pub in_flight: f64,
    /// Round-trip time; 0 where unknown.
    pub round_trip: Duration,
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
    /// The rate measured, with what the limited rise of the weight may still add, does not suffice; that it cannot be
    /// done is not shown either.
    Behind {
        /// Expected completion at the rate measured, where that is after the deadline.
        expected: Option<Time>,
        /// The weight is below `w_max` and may still rise.
        can_press: bool,
    },
    /// It cannot be done by the deadline at what this network gives now, at `w_max` and with data to send.
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
    /// Nothing is to be sent: the program has no connection yet, or works or waits for its peer between two portions.
    Waiting {
        /// It has had a connection.
        connected: bool,
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
            Outlook::NoDeadline { expected }
            | Outlook::Behind { expected, .. }
            | Outlook::ProgramLimited { expected }
            | Outlook::Overdue { expected } => expected,
            Outlook::TooEarly
            | Outlook::Waiting { .. }
            | Outlook::Stalled { .. }
            | Outlook::Done
            | Outlook::SizeExceeded { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Open,
    OnCourse,
    Behind,
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
    /// Overall rates of the latest intervals, those that say nothing about the network included.
    latest: VecDeque<f64>,
    verdict: Verdict,
    /// Intervals in a row that speak for the alarm, or for taking it back.
    against: u32,
    /// Intervals in a row that speak for "on course".
    promising: u32,
    /// Intervals in a row in which less than needed was within reach.
    short: u32,
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
            latest: VecDeque::with_capacity(LATEST),
            verdict: Verdict::Open,
            against: 0,
            promising: 0,
            short: 0,
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
        (self.against, self.promising, self.short) = (0, 0, 0);
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

    /// The statement to make now. `deadline` must be later than `now`. An "on course" that no longer holds is taken back
    /// here at once, and said again only after some intervals.
    #[must_use]
    pub fn outlook(&mut self, q: &Question) -> Outlook {
        if self.verdict == Verdict::OnCourse && !self.suffices(q, 1.0) {
            self.verdict = Verdict::Behind;
            self.promising = 0;
        }
        match (self.verdict, self.ceiling()) {
            (Verdict::Impossible, Some(ceiling)) => Outlook::CannotFinish {
                expected: self.after_the_climb(q, ceiling).max(q.deadline),
                at_ceiling_rate: ceiling,
            },
            (Verdict::OnCourse, Some(ceiling)) => {
                let at_rate = |rate: f64| q.now.plus_secs_f64(q.remaining / rate);
                // The controller presses until the aim is met, but no harder than the ceiling.
                let expected =
                    at_rate(self.smoothed).min(q.aim).max(at_rate(ceiling.max(self.smoothed))).clamp(q.now, q.deadline);
                Outlook::OnCourse { expected }
            }
            (Verdict::Behind, _) => Outlook::Behind {
                expected: self.completion(q.now, q.remaining).filter(|&expected| expected > q.deadline),
                can_press: q.weight < AT_CEILING * self.w_max,
            },
            _ => Outlook::TooEarly,
        }
    }

    /// The bytes that get through until the deadline, as far as the rates seen bear it out: the rate at the present weight
    /// and, `response` later than the weight, what the climb to `w_max` adds.
    #[must_use]
    pub fn within_reach(&self, q: &Question) -> f64 {
        let exponent = self.shown_exponent();
        let gain = |weight: f64| self.gain(weight, exponent);
        let per_gain = self.rate_per_gain(exponent) * q.availability;
        let left = q.deadline.since(q.now).as_secs_f64();
        let top = self.w_max.min(q.weight / TRUST).max(q.weight);
        let climb = (top - q.weight) / (self.w_max * q.increase_limit) * q.interval.as_secs_f64();
        let step = climb / f64::from(CLIMB_STEPS);
        let start = self.response(q).min(left);
        let mut bytes = start * gain(q.weight);
        let mut rest = left - start;
        for n in 0..CLIMB_STEPS {
            let part = (f64::from(n) + 0.5) / f64::from(CLIMB_STEPS);
            bytes += step.min(rest) * gain(q.weight + part * (top - q.weight));
            rest = (rest - step).max(0.0);
        }
        per_gain * (bytes + rest * gain(top))
    }

    /// Mean of the rates measured, each over the gain of its weight; 0 before the first.
    fn rate_per_gain(&self, exponent: f64) -> f64 {
        let n = self.seen.len().min(MEASURED);
        let recent = self.seen.range(self.seen.len() - n..);
        recent.map(|o| o.network_rate / self.gain(o.weight, exponent)).sum::<f64>() / n.max(1) as f64
    }

    /// Whether what is left gets through in time with this margin. In the last part of the time only the rate measured
    /// counts, and what is already on its way.
    fn suffices(&self, q: &Question, margin: f64) -> bool {
        let left = q.deadline.since(q.now).as_secs_f64();
        if left > LAST_PART * q.deadline.since(q.since).as_secs_f64() {
            return self.within_reach(q) >= margin * q.remaining;
        }
        let exponent = self.shown_exponent();
        let at_present_weight = self.rate_per_gain(exponent) * self.gain(q.weight, exponent);
        let measured = self.latest_rate().min(self.smoothed).min(at_present_weight);
        let measured = if q.silence > q.interval { 0.0 } else { measured };
        Forecast::is_arriving(q) || measured * left >= margin * q.remaining
    }

    /// All that is left has been sent, and is acknowledged in time if none of it gets lost.
    fn is_arriving(q: &Question) -> bool {
        q.remaining <= q.in_flight && q.round_trip <= q.deadline.since(q.now)
    }

    fn latest_rate(&self) -> f64 {
        self.latest.iter().sum::<f64>() / self.latest.len().max(1) as f64
    }

    /// The share of a flow of this weight beside one ordinary flow, both alpha-fair. Beside more of them a higher weight
    /// brings more than this says, alone less, which the evidence shows.
    fn gain(&self, weight: f64, exponent: f64) -> f64 {
        let own = libm::pow((weight / self.w_max).min(1.0), exponent);
        own / (1.0 + own)
    }

    /// The law's own exponent or, if the weights seen lately are far enough apart to tell, the one with which the rate
    /// went with them where that is smaller.
    fn shown_exponent(&self) -> f64 {
        let own = 1.0 / self.alpha;
        let recent = || {
            let last = self.seen.range(self.seen.len().saturating_sub(EVIDENCE)..);
            last.filter(|o| o.network_rate > 0.0).map(|o| (libm::log(o.weight), libm::log(o.network_rate)))
        };
        let n = recent().count() as f64;
        let (x, y) = recent().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x / n, sum.1 + y / n));
        let (spread, common) =
            recent().fold((0.0, 0.0), |sum, (w, r)| (sum.0 + (w - x) * (w - x), sum.1 + (w - x) * (r - y)));
        if spread < EVIDENCE_LEAST { own } else { (common / spread).clamp(0.0, own) }
    }

    fn smooth(&mut self, rate: f64) {
        self.averaged = self.averaged.saturating_add(1);
        let gain = SMOOTHING.max(1.0 / f64::from(self.averaged));
        self.smoothed += gain * (rate - self.smoothed);
        if self.latest.len() == LATEST {
            self.latest.pop_front();
        }
        self.latest.push_back(rate);
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

    fn few(q: &Question) -> bool {
        q.deadline.since(q.since).as_secs_f64() < FEW_INTERVALS * q.interval.as_secs_f64()
    }

    /// How long the flow takes to follow its weight, in seconds. A transfer of few round trips cannot wait for them.
    fn response(&self, q: &Question) -> f64 {
        let most = if Forecast::few(q) { RESPONSE_MOST_OF_FEW } else { RESPONSE_MOST };
        q.response.as_secs_f64().min(most * q.deadline.since(q.since).as_secs_f64())
    }

    /// The newest interval is that of a flow at `w_max` that had data to send.
    fn pressed(&self) -> bool {
        self.seen.back().is_some_and(|o| o.weight >= AT_CEILING * self.w_max && o.backlogged >= BACKLOGGED)
    }

    fn weigh(&mut self, q: &Question) {
        let consecutive = if Forecast::few(q) { CONSECUTIVE - 1 } else { CONSECUTIVE };
        if self.seen.len() < consecutive as usize {
            return;
        }
        let needed = q.remaining / q.deadline.since(q.now).as_secs_f64();
        let response = (self.response(q) / q.interval.as_secs_f64().max(1e-9)).ceil() as u32;
        let bound = self.bound(response.clamp(consecutive, HISTORY as u32));

        if self.verdict == Verdict::Impossible {
            // Hysteresis: the margin was asked on the way in, it is not asked on the way out.
            self.against = if needed <= bound { self.against + 1 } else { 0 };
            if self.against < consecutive {
                return;
            }
            self.verdict = Verdict::Behind;
            self.against = 0;
        }
        let enough = self.suffices(q, 1.0);
        let alarm = needed > ALARM_MARGIN * bound && self.pressed() && !enough;
        self.against = if alarm { self.against + 1 } else { 0 };
        self.promising = if self.suffices(q, COURSE_MARGIN) { self.promising + 1 } else { 0 };
        self.short = if enough { 0 } else { self.short + 1 };
        if self.against >= consecutive {
            self.verdict = Verdict::Impossible;
            (self.against, self.promising) = (0, 0);
        } else if self.promising >= consecutive {
            self.verdict = Verdict::OnCourse;
        } else if self.verdict == Verdict::OnCourse && self.short > 0 {
            self.verdict = Verdict::Behind;
        } else if self.verdict == Verdict::Open {
            let trusted = self.lowest_recent_weight(consecutive) >= TRUST * self.w_max;
            let early = q.now.since(q.since).as_secs_f64() < EARLY_PART * q.deadline.since(q.since).as_secs_f64();
            if self.short >= consecutive && (trusted || !early) {
                self.verdict = Verdict::Behind;
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
            weight: 1.0,
            availability: 1.0,
            silence: Duration::ZERO,
            in_flight: 0.0,
            round_trip: Duration::from_millis(40),
        }
    }

    fn seen(weight: f64, rate: f64) -> Observation {
        Observation { weight, network_rate: rate, overall_rate: rate, backlogged: 1.0 }
    }

    fn feed(f: &mut Forecast, n: usize, o: Observation, q: &Question) -> Outlook {
        let q = Question { weight: o.weight, ..*q };
        for _ in 0..n {
            f.observe(&o, Some(&q));
        }
        f.outlook(&q)
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

    /// The network is blamed for what a flow at w_max got that had data to send, and for nothing else.
    #[test]
    fn impossible_needs_three_intervals_of_a_flow_at_the_top() {
        let q = question(100.0, 2e6);
        let outlook = |n: usize, o: Observation| feed(&mut Forecast::new(2.0, 1.0), n, o, &q);
        assert_eq!(outlook(20, seen(0.2, 1e6)), Outlook::TooEarly);
        assert!(matches!(outlook(20, seen(0.9, 0.1e6)), Outlook::Behind { can_press: true, .. }));
        let limited = Observation { backlogged: 0.8, ..seen(1.0, 1e6) };
        assert!(matches!(outlook(20, limited), Outlook::Behind { can_press: false, .. }));
        assert_eq!(outlook(4, seen(1.0, 1e6)), Outlook::TooEarly);
        let Outlook::CannotFinish { expected, at_ceiling_rate } = outlook(5, seen(1.0, 1e6)) else {
            panic!("no alarm");
        };
        assert!((at_ceiling_rate - 1e6).abs() < 1.0);
        assert!((expected.as_secs_f64() - 1100.0).abs() < 1e-6); // 1e9 bytes at 1e6
    }

    #[test]
    fn within_the_margin_there_is_no_alarm() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(100.0, 1.09e6);
        let Outlook::Behind { expected: Some(expected), can_press: false } = feed(&mut f, 50, seen(1.0, 1e6), &q)
        else {
            panic!("not behind");
        };
        assert!((expected.as_secs_f64() - (100.0 + 1.09 * 500.0)).abs() < 1e-6);
        let q = question(100.0, 1.11e6);
        assert!(matches!(feed(&mut f, 3, seen(1.0, 1e6), &q), Outlook::CannotFinish { .. }));
    }

    #[test]
    fn an_alarm_is_taken_back_after_three_good_intervals() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(100.0, 2e6);
        feed(&mut f, 5, seen(1.0, 1e6), &q);
        let good = seen(1.0, 2.3e6);
        assert!(matches!(feed(&mut f, 2, good, &q), Outlook::CannotFinish { .. }));
        assert!(matches!(feed(&mut f, 1, good, &q), Outlook::Behind { .. }));
        assert!(matches!(feed(&mut f, 7, good, &q), Outlook::OnCourse { .. }));
    }

    /// At a constant weight, to be done at second 600: what is said in the intervals after the rate has changed.
    #[test]
    fn what_is_said_over_a_change_of_the_rate() {
        let name = |outlook: &Outlook| match outlook {
            Outlook::TooEarly => "early",
            Outlook::OnCourse { .. } => "course",
            Outlook::Behind { .. } => "behind",
            Outlook::CannotFinish { .. } => "cannot",
            _ => "other",
        };
        let mut wrong = Vec::new();
        // weight, second, MB/s for ten intervals and then, needed, and what is said from which interval on
        for (weight, second, before, then, needed, expected) in [
            (1.0, 300.0, 1.2, 1.2, 1.0, "early 0 course 4"),
            (1.0, 300.0, 1.2, 0.9, 1.0, "early 0 course 4 behind 15 cannot 17"),
            (1.0, 300.0, 1.05, 1.05, 1.0, "early 0"),
            (1.0, 300.0, 0.95, 1.2, 1.0, "early 0 behind 4 course 16"),
            (0.5, 300.0, 1.0, 1.0, 1.0, "early 0 course 4"), // the climb brings up to a fifth
            (0.5, 300.0, 1.0, 1.0, 1.3, "early 0 behind 4"),
            (0.1, 300.0, 0.5, 0.5, 1.0, "early 0 behind 4"), // a third of the time is over
            (0.1, 100.0, 0.5, 0.5, 1.0, "early 0"),          // it is not, and the weight has hardly risen
            (0.5, 550.0, 1.0, 1.0, 0.9, "early 0 course 4"), // in the last tenth only the rate counts
            (0.5, 550.0, 1.0, 1.0, 1.02, "early 0 behind 4"),
            (0.5, 550.0, 1.2, 0.9, 1.0, "early 0 course 4 behind 12"),
        ] {
            let mut f = Forecast::new(2.0, 1.0);
            let q = Question { weight, ..question(second, needed * 1e6) };
            let (mut said, mut last) = (String::new(), "");
            for n in 0..40 {
                f.observe(&seen(weight, 1e6 * if n < 10 { before } else { then }), Some(&q));
                let kind = name(&f.outlook(&q));
                if kind != last {
                    said += &format!("{}{kind} {n}", if n > 0 { " " } else { "" });
                    last = kind;
                }
            }
            if said != expected {
                wrong.push(format!("{weight} {second} {before} {then} {needed}: {said}, not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    /// By hand, alpha 2: from w = 1/4 (a third of the link beside one flow) to 1 (a half) in 7.5 intervals of 10 s, the first of which is
    /// after the response of 2 s.
    #[test]
    fn the_climb_adds_what_the_weights_share_says() {
        let mut f = Forecast::new(2.0, 1.0);
        let q = Question { weight: 0.25, ..question(100.0, 1e6) };
        feed(&mut f, 8, seen(0.25, 1e6), &q);
        let share = |w: f64| 3.0 * w.sqrt() / (1.0 + w.sqrt()); // over that of 1/4
        let climb: f64 = (0..75_000).map(|n| share(0.25 + 0.75 * (f64::from(n) + 0.5) / 75_000.0) * 1e-3).sum();
        let by_hand = 1e6 * (2.0 + climb + (498.0 - 75.0) * 1.5);
        assert!((f.within_reach(&q) / by_hand - 1.0).abs() < 1e-4, "{} {by_hand}", f.within_reach(&q));
        // half of the time the program has nothing to send
        let half = Question { availability: 0.5, ..q };
        assert!((f.within_reach(&half) / by_hand - 0.5).abs() < 1e-4);
        // not even the climb ends in time
        let short = Question { now: Time::ZERO.plus_secs_f64(599.0), ..q };
        assert!((f.within_reach(&short) - 1e6).abs() < 1.0);
    }

    /// A climb that has brought nothing so far is not taken to bring something from now on.
    #[test]
    fn what_the_climb_has_brought_so_far_is_evidence() {
        let reach = |exponent: f64| {
            let mut f = Forecast::new(2.0, 1.0);
            for n in 0..12 {
                let weight = 0.05 + 0.05 * f64::from(n);
                f.observe(&seen(weight, 1e6 * libm::pow(weight / 0.6, exponent)), None);
            }
            f.within_reach(&Question { weight: 0.6, ..question(100.0, 1e6) }) / 500e6
        };
        assert!((reach(0.0) - 1.0).abs() < 1e-9 && (reach(-0.5) - reach(0.0)).abs() < 0.5, "{}", reach(0.0));
        assert!(reach(0.5) > 1.05 && reach(0.25) < reach(0.5) && reach(0.25) > 1.0, "{} {}", reach(0.25), reach(0.5));
    }

    /// In the last tenth: silence counts as no rate, and what is on its way as done.
    #[test]
    fn near_the_end_silence_counts_and_what_is_on_its_way() {
        let q = Question { in_flight: 1e6, ..question(595.0, 1e6) }; // 5 MB left
        let mut f = Forecast::new(2.0, 1.0);
        assert!(matches!(feed(&mut f, 5, seen(1.0, 1.2e6), &q), Outlook::OnCourse { .. }));
        let silent = Question { silence: Duration::from_secs(11), ..q };
        assert!(matches!(f.outlook(&silent), Outlook::Behind { .. }));
        assert!(matches!(f.outlook(&q), Outlook::Behind { .. }), "not at once again");
        let mut f = Forecast::new(2.0, 1.0);
        let on_its_way = Question { in_flight: 5e6, ..q };
        assert!(matches!(feed(&mut f, 5, seen(1.0, 0.5e6), &on_its_way), Outlook::OnCourse { .. }));
        let too_far = Question { round_trip: Duration::from_secs(6), ..on_its_way };
        assert!(matches!(f.outlook(&too_far), Outlook::Behind { .. }));
    }

    #[test]
    fn a_rate_flat_over_a_fourfold_weight_is_what_the_path_carries() {
        let climb = |flat: bool| {
            let mut f = Forecast::new(2.0, 1.0);
            let q = question(100.0, 3e6);
            for n in 0..43 {
                let w = (0.004 * libm::pow(1.15, f64::from(n))).min(1.0);
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
        let slow = question(300.0, 1.05e6);
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

    /// The law may be better than declared, and the flow lag behind its weight: while the response of 80 s reaches back to
    /// w = 0.26 the bound is 3.85^0.75 = 2.75, not 3.85^0.5 = 1.96, times the rate, and a tenth.
    #[test]
    fn the_alarm_uses_the_generous_bound() {
        for (needed, alarm) in [(2.9e6, false), (3.1e6, true)] {
            let mut f = Forecast::new(2.0, 1.0);
            let q = Question { response: Duration::from_secs(80), ..question(100.0, needed) };
            feed(&mut f, 20, seen(0.26, 1e6), &q);
            let o = feed(&mut f, 5, seen(1.0, 1e6), &q);
            assert_eq!(matches!(o, Outlook::CannotFinish { .. }), alarm, "{needed} {o:?}");
        }
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
        let q = Question { aim: Time::ZERO.plus_secs_f64(540.0), ..question(500.0, 1.05e6) };
        let Outlook::OnCourse { expected } = feed(&mut f, 5, seen(0.4, 1e6), &q) else {
            panic!();
        };
        let at_ceiling = 500.0 + 1.05e8 / (1e6 * 2.5f64.sqrt()); // after the aim
        assert!((expected.as_secs_f64() - at_ceiling).abs() < 1e-6);
    }
}
