// SPDX-License-Identifier: MIT OR Apache-2.0
//! Will it be done by then?
//!
//! The answer must come early, while the weight is still on its way up, and must not cry wolf. Known after each update
//! interval are the rate achieved, the weight it was achieved with, and the law's exponent (rate goes with
//! `w^(1/alpha)` at a constant price). From them come
//!
//! * **what is within reach**: the rate measured at the present weight, and what the climb to higher weights adds until
//!   the deadline at the limited pace. It assumes one competing flow, takes no more than the weights seen so far have
//!   shown to bring, and no more than a fourfold weight. "On course" rests on it alone; in the last tenth of the time
//!   not even on the climb, only on the rate measured;
//! * the **best estimate** of the rate at `w_max`, with the law's own exponent, used for "expected ...";
//! * a **generous bound** on it, used for the alarm: a larger exponent (the law may be better than assumed)
//!   and the smallest of the weights that the flow can still be lagging behind. The network is blamed only for what a
//!   flow at `w_max` got that had data to send.
//!
//! A rate that **stayed flat while the weight rose fourfold** caps estimate and bound. A mere peak proves nothing: seen
//! at a submissive weight it is below what pressing harder would give, seen on an idle link it is above what there is
//! beside others.

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

/// What the transfer requires of the network.
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

    /// Another largest weight, which changes what is within reach.
    pub fn set_w_max(&mut self, w_max: f64) {
        self.w_max = w_max;
        self.goal_moved();
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

    /// The same at this weight; `None` where it is too far below `w_max` to tell.
    #[must_use]
    pub fn trusted_ceiling(&self, weight: f64) -> Option<f64> {
        self.ceiling().filter(|_| weight >= TRUST * self.w_max)
    }

    /// The statement to make now. `deadline` must be later than `now`. An "on course" that no longer holds is taken
    /// back here at once, and said again only after some intervals.
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

    /// The bytes that get through until the deadline, as far as the rates seen bear it out: the rate at the present
    /// weight and, `response` later than the weight, what the climb to `w_max` adds.
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

    /// The share of a flow of this weight beside one ordinary flow, both alpha-fair. Beside more of them a higher
    /// weight brings more than this says, alone less, which the evidence shows.
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
mod tests;
