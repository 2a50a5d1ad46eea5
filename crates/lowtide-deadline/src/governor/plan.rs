// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the transfer may press: by its calendar, and by the schedule of the transfers that it shares a budget with.

use super::{Governor, Rates, SILENT_INTERVALS};
use crate::{Calendar, Outlook, Question, Time, Weight, calendar::Left};
use std::time::Duration;

/// What the schedule of several transfers gives to one of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// The rate to aim for now, bytes per second; 0: it is another one's turn.
    pub rate: f64,
    /// When the schedule has all of it sent.
    pub done: Time,
}

/// Why a transfer takes spare capacity alone, whatever its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hold {
    /// It does not: its goal rules.
    #[default]
    None,
    /// It is outside its windows.
    Closed {
        /// When the next window opens; `None`: never.
        opens: Option<Time>,
    },
    /// Another transfer of its group goes first.
    Turn {
        /// When the schedule has all of it sent.
        done: Time,
    },
}

impl Governor {
    /// Changes when the transfer may press, and how fast it may be then.
    pub fn set_calendar(&mut self, calendar: Calendar) {
        self.calendar = calendar;
        self.forecast.goal_moved();
        self.set_interval();
    }

    /// When the transfer may press.
    #[must_use]
    pub fn calendar(&self) -> &Calendar {
        &self.calendar
    }

    /// Changes what the schedule of its group gives to it; `None`: it has no group, or that has no schedule. Where its
    /// turn begins the weight begins with `weight`, that of the one before: they are on the same path, and a climb from
    /// `w_min` at each turn would cost all of them time.
    pub fn set_turn(&mut self, turn: Option<Turn>, weight: Option<f64>) {
        let waits = |turn: Option<Turn>| turn.is_some_and(|turn| turn.rate <= 0.0);
        if waits(self.turn)
            && !waits(turn)
            && let Some(weight) = weight
        {
            self.restart_control(self.policy.bounds.clamp(weight));
            // the first bytes come some round trips later; an interval of silence at a high weight would be a huge
            // error, and its end a huge step
            self.settles = self.last_tick + self.interval * SILENT_INTERVALS;
        }
        self.turn = turn;
    }

    /// Whether something holds the transfer at `w_min`.
    #[must_use]
    pub fn hold(&self, now: Time) -> Hold {
        if !self.calendar.at(now).open {
            return Hold::Closed { opens: self.calendar.opens(now) };
        }
        match self.turn {
            Some(Turn { rate, done }) if rate <= 0.0 => Hold::Turn { done },
            _ => Hold::None,
        }
    }

    /// The weight that applies at an instant.
    pub(super) fn weight_at(&self, now: Time) -> Weight {
        if self.hold(now) == Hold::None { self.weight } else { self.policy.bounds.min() }
    }

    /// The limits in force at an instant: the operator's, and the calendar's cap.
    #[must_use]
    pub fn rates_at(&self, now: Time) -> Rates {
        let Rates { least, most } = self.rates;
        let cap = self.calendar.at(now).most;
        Rates { least, most: most.into_iter().chain(cap).reduce(f64::min) }
    }

    /// The time between the goal's setting and its deadline that counts.
    pub(super) fn whole(&self) -> Option<Duration> {
        self.goal.deadline.map(|deadline| self.calendar.open_time(self.goal_set, deadline))
    }

    /// What is left to do in the time that counts; `None` without a deadline, past it, or where nothing is left.
    pub(super) fn left(&self, now: Time) -> Option<Left> {
        let (deadline, aim) = (self.goal.deadline?, self.aim()?);
        let remaining = self.remaining().filter(|&r| r > 0)? as f64;
        (now < deadline).then(|| self.calendar.left(remaining, now, aim, deadline))
    }

    /// An instant of the time that counts, as the forecast has it, by the clock; [`Time::MAX`]: never.
    fn by_the_clock(&self, now: Time, time: Time, left: Option<&Left>) -> Time {
        if time <= now { time } else { self.calendar.after(now, time.since(now), left).unwrap_or(Time::MAX) }
    }

    /// What the forecast says of the time that counts, by the clock.
    pub(super) fn outlook_by_the_clock(&self, now: Time, outlook: Outlook) -> Outlook {
        if self.calendar == Calendar::default() {
            return outlook;
        }
        let left = self.left(now);
        let at = |time: Time| self.by_the_clock(now, time, left.as_ref());
        let then = |expected: Option<Time>| expected.map(at).filter(|time| *time < Time::MAX);
        match outlook {
            Outlook::OnCourse { expected } => Outlook::OnCourse { expected: at(expected) },
            Outlook::CannotFinish { expected, at_ceiling_rate } => {
                Outlook::CannotFinish { expected: at(expected), at_ceiling_rate }
            }
            Outlook::NoDeadline { expected } => Outlook::NoDeadline { expected: then(expected) },
            Outlook::Behind { expected, can_press } => Outlook::Behind { expected: then(expected), can_press },
            Outlook::ProgramLimited { expected } => Outlook::ProgramLimited { expected: then(expected) },
            Outlook::Overdue { expected } => Outlook::Overdue { expected: then(expected) },
            other => other,
        }
    }

    /// The goal as the forecast is asked for it, in the time that counts.
    pub(super) fn question(&self, now: Time) -> Option<Question> {
        let left = self.left(now)?;
        Some(Question {
            now,
            remaining: left.bytes,
            since: now - self.calendar.open_time(self.goal_set, now),
            deadline: now + left.to_deadline.max(Duration::from_nanos(1)),
            aim: now + left.to_aim,
            interval: self.interval,
            response: self.rtt.unwrap_or_default().mul_f64(self.policy.response_round_trips),
            increase_limit: self.increase_limit(),
            weight: self.weight.get(),
            availability: self.availability,
            silence: now.since(self.last_sign_of_life),
            in_flight: self.in_flight as f64,
            round_trip: self.rtt.unwrap_or_default(),
        })
    }

    /// ζ towards the aim. Close to the aim, and past it, the time left counts as one update interval or as
    /// what is left until the deadline, so that ζ does not diverge.
    fn needed_rate(&self, now: Time) -> Option<f64> {
        let q = self.question(now)?;
        let least = self.interval.min(q.deadline.since(now));
        let left = q.aim.since(now).max(least).max(Duration::from_nanos(1));
        Some(q.remaining / left.as_secs_f64())
    }

    /// What to aim for: ζ, or what the group's schedule says, within the operator's limits; nothing while it is held.
    pub(super) fn target_rate(&self, now: Time) -> Option<f64> {
        if self.hold(now) != Hold::None {
            return None;
        }
        let needed = self.needed_rate(now);
        self.rates_at(now).limit(self.turn.map_or(needed, |turn| needed.map(|_| turn.rate)))
    }
}
