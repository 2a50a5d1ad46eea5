// SPDX-License-Identifier: MIT OR Apache-2.0
//! A [`Schedule`] at work: how long it takes to send something, from a given time on.
//!
//! Work is counted in units of 10^-9 bit. At r bit/s a nanosecond supplies r of them, so that all of
//! this is exact in integers, across changes of the rate too.

use crate::schedule::{Schedule, Shape, Step};
use crate::{Rate, Time};
use std::sync::Arc;

/// 10^-9 bits in a byte.
pub(crate) const UNITS_PER_BYTE: u128 = 8_000_000_000;
const UNITS_PER_OPPORTUNITY: u128 = Schedule::OPPORTUNITY as u128 * UNITS_PER_BYTE;

/// Never, in ns.
const NEVER: u64 = u64::MAX;

impl Schedule {
    /// The mean rate over one period, rounded down, but at least 1 bit/s; `None` of steps that do not repeat, which
    /// have no period.
    pub fn mean_rate(&self) -> Option<Rate> {
        let (from, to) = match &self.0 {
            Shape::Constant(rate) => return Some(*rate),
            Shape::Steps { period, .. } => (0, (*period)?),
            // its first period has not yet the opportunity at the end of the one before
            Shape::Trace { opportunities, .. } => opportunities.last().map(|last| (*last, 2 * last))?,
        };
        let units = Supply::new(self).pass(Time::from_nanos(from), Time::from_nanos(to));
        let mean = units / u128::from(to - from); // a unit in a nanosecond is a bit in a second
        Rate::from_bits_per_second(u64::try_from(mean).unwrap_or(u64::MAX).max(1))
    }

    /// Bytes that the link can carry between two points in time, rounded down.
    pub fn bytes_between(&self, from: Time, to: Time) -> u64 {
        let mut supply = Supply::new(self);
        let units = supply.pass(from, to) / UNITS_PER_BYTE;
        u64::try_from(units).unwrap_or(u64::MAX)
    }
}

/// What a link can send from a time on that only moves forward.
#[derive(Clone, Debug)]
pub(crate) enum Supply {
    Constant(u64),
    Steps(Steps),
    Trace(Trace),
}

impl Supply {
    pub(crate) fn new(schedule: &Schedule) -> Self {
        match &schedule.0 {
            Shape::Constant(rate) => Self::Constant(rate.bits_per_second()),
            Shape::Steps { steps, period } => Self::Steps(Steps::new(steps, *period)),
            Shape::Trace { opportunities, .. } => {
                Self::Trace(Trace { opportunities: Arc::clone(opportunities), next: 0, base: 0 })
            }
        }
    }

    /// When something can be sent, from `from` on; `None` if never again.
    pub(crate) fn ready(&mut self, from: Time) -> Option<Time> {
        match self {
            Self::Constant(_) => Some(from),
            Self::Steps(steps) => steps.ready(from.as_nanos()).map(Time::from_nanos),
            Self::Trace(trace) => {
                trace.seek(from.as_nanos());
                Some(Time::from_nanos(trace.at(trace.next)))
            }
        }
    }

    /// What the time between `from` and `to` supplies, in units.
    pub(crate) fn pass(&mut self, from: Time, to: Time) -> u128 {
        match self {
            Self::Constant(rate) => u128::from(*rate) * (to - from).as_nanos(),
            Self::Steps(steps) => steps.pass(from.as_nanos(), to.as_nanos()),
            Self::Trace(trace) => {
                trace.seek(from.as_nanos());
                trace.seek(to.as_nanos()) * UNITS_PER_OPPORTUNITY
            }
        }
    }

    /// When `work` units, more than none, are done that are begun at `from`, rounded down to a
    /// nanosecond; and by how many units more (or, by the rounding, less) that moment has supplied.
    /// [`Time::from_nanos`]`(u64::MAX)` if never.
    pub(crate) fn finish(&mut self, from: Time, work: u128) -> (Time, i128) {
        match self {
            Self::Constant(rate) => {
                let (nanos, rest) = divide(work, *rate);
                (Time::from_nanos(from.as_nanos().saturating_add(nanos)), -i128::from(rest))
            }
            Self::Steps(steps) => {
                let (end, rest) = steps.finish(from.as_nanos(), work);
                (Time::from_nanos(end), -i128::from(rest))
            }
            Self::Trace(trace) => {
                let (end, excess) = trace.finish(from.as_nanos(), work);
                (Time::from_nanos(end), excess as i128) // less than an opportunity
            }
        }
    }
}

/// `work / rate` and the rest; in 64 bits where that is enough, as it mostly is, because a division
/// in 128 bits takes long.
fn divide(work: u128, rate: u64) -> (u64, u64) {
    match u64::try_from(work) {
        Ok(work) => (work / rate, work % rate),
        Err(_) => {
            let wide = u128::from(rate);
            (u64::try_from(work / wide).unwrap_or(NEVER), (work % wide) as u64)
        }
    }
}

/// Steps between rates.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    steps: Arc<[Step]>,
    /// ns.
    period: Option<u64>,
    /// What one period supplies.
    per_period: u128,
    /// The step at the present time.
    index: usize,
    /// When the present period began, in ns.
    base: u64,
}

impl Steps {
    fn new(steps: &Arc<[Step]>, period: Option<u64>) -> Self {
        let ends = steps.iter().skip(1).map(|step| step.at).chain(period);
        let supplies = steps.iter().zip(ends).map(|(step, end)| u128::from(step.rate) * u128::from(end - step.at));
        Self { steps: Arc::clone(steps), period, per_period: supplies.sum(), index: 0, base: 0 }
    }

    fn rate(&self) -> u64 {
        self.steps[self.index].rate
    }

    /// End of the present step, in ns.
    fn end(&self) -> u64 {
        let end = self.steps.get(self.index + 1).map(|step| step.at).or(self.period);
        end.map_or(NEVER, |end| self.base.saturating_add(end))
    }

    /// Moves forward to `now`.
    fn seek(&mut self, now: u64) {
        if let Some(periods) = self.period.map(|period| (now - self.base) / period).filter(|periods| *periods > 0) {
            self.skip(periods);
            self.index = 0;
        }
        while self.end() <= now && now != NEVER {
            self.index += 1; // not beyond the last one: it ends with the period, which is not over
        }
    }

    /// Moves forward by whole periods.
    fn skip(&mut self, periods: u64) {
        self.base = self.base.saturating_add(periods.saturating_mul(self.period.unwrap_or(NEVER)));
    }

    fn ready(&mut self, from: u64) -> Option<u64> {
        self.seek(from);
        let mut now = from;
        while self.rate() == 0 {
            now = self.end();
            if now == NEVER {
                return None;
            }
            self.seek(now);
        }
        Some(now)
    }

    fn pass(&mut self, from: u64, to: u64) -> u128 {
        self.seek(from);
        let (mut now, mut supply) = (from, 0);
        loop {
            let end = self.end().min(to);
            supply += u128::from(self.rate()) * u128::from(end.saturating_sub(now));
            if end >= to {
                return supply;
            }
            now = end;
            self.seek(now);
            if let Some(period) = self.period.filter(|_| now == self.base) {
                let periods = (to - now) / period;
                supply += self.per_period * u128::from(periods);
                self.skip(periods);
                now = self.base;
            }
        }
    }

    fn finish(&mut self, from: u64, mut work: u128) -> (u64, u64) {
        self.seek(from);
        let mut now = from;
        loop {
            let end = self.end();
            let supply = u128::from(self.rate()) * u128::from(end - now);
            if work <= supply || (end == NEVER && self.rate() > 0) {
                let (nanos, rest) = divide(work, self.rate());
                return (now.saturating_add(nanos), rest);
            }
            if end == NEVER {
                return (NEVER, 0);
            }
            work -= supply;
            now = end;
            self.seek(now);
            if self.period.is_some() && now == self.base {
                // At least one unit is left for the walk through the steps.
                let periods = u64::try_from((work - 1) / self.per_period).unwrap_or(NEVER);
                self.skip(periods);
                work -= self.per_period * u128::from(periods);
                now = self.base;
                if now == NEVER {
                    return (NEVER, 0);
                }
            }
        }
    }
}

/// Delivery opportunities that repeat.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// Rising, in ns; the last one is the period.
    opportunities: Arc<[u64]>,
    /// The first one that is neither used nor over.
    next: usize,
    /// When the present period began, in ns.
    base: u64,
}

impl Trace {
    fn at(&self, index: usize) -> u64 {
        self.base.saturating_add(self.opportunities[index])
    }

    /// Moves forward to the first opportunity that is not before `now`; returns how many were passed.
    fn seek(&mut self, now: u64) -> u128 {
        if self.at(self.next) >= now {
            return 0;
        }
        let (count, period) = (self.opportunities.len(), self.opportunities[self.opportunities.len() - 1]);
        // The last opportunity of a period comes at its very end.
        let periods = (now - self.base - 1) / period;
        self.base += periods * period;
        let before = std::mem::replace(&mut self.next, 0);
        self.next = self.opportunities.partition_point(|at| self.base + at < now);
        u128::from(periods) * count as u128 + self.next as u128 - before as u128
    }

    fn finish(&mut self, from: u64, work: u128) -> (u64, u128) {
        self.seek(from);
        let used = work.div_ceil(UNITS_PER_OPPORTUNITY);
        let (count, period) = (self.opportunities.len(), self.opportunities[self.opportunities.len() - 1]);
        let last = self.next + used as usize - 1; // a packet has at most 4 GB
        self.base = self.base.saturating_add((last / count) as u64 * period);
        let end = self.at(last % count);
        self.next = last % count + 1;
        if self.next == count {
            self.next = 0;
            self.base = self.base.saturating_add(period);
        }
        (end, used * UNITS_PER_OPPORTUNITY - work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// Steps with small numbers, so that their ends are met often; with a period or without.
    fn schedules() -> impl Strategy<Value = Schedule> {
        let step = (1..50_u64, 0..4_u64);
        (prop::collection::vec(step, 1..6), prop::option::of(1..50_u64)).prop_filter_map("no rate", |(steps, rest)| {
            let mut at = 0;
            let mut all = Vec::new();
            for (length, rate) in steps {
                all.push((Duration::from_nanos(at), crate::Rate::from_bits_per_second(rate)));
                at += length;
            }
            let last = all.last().map_or(Duration::ZERO, |(at, _)| *at);
            Schedule::steps(&all, rest.map(|rest| last + Duration::from_nanos(rest))).ok()
        })
    }

    fn traces() -> impl Strategy<Value = Schedule> {
        prop::collection::vec(0..20_u64, 1..10).prop_filter_map("no time", |mut times| {
            times.sort_unstable();
            let lines: Vec<String> = times.iter().map(u64::to_string).collect();
            Schedule::trace("test", &lines.join("\n")).ok()
        })
    }

    /// The rate in the nanosecond that begins at `at`, by the definition of a schedule.
    fn rate_at(schedule: &Schedule, at: u64) -> u64 {
        let Shape::Steps { steps, period } = &schedule.0 else { unreachable!() };
        let at = period.map_or(at, |period| at % period);
        steps.iter().rev().find(|step| step.at <= at).expect("the first step is at 0").rate
    }

    proptest! {
        #[test]
        fn steps_supply_what_their_definition_says(schedule in schedules(), from in 0..300_u64, length in 0..300_u64) {
            let expected: u64 = (from..from + length).map(|at| rate_at(&schedule, at)).sum();
            let mut supply = Supply::new(&schedule);
            let supplied = supply.pass(Time::from_nanos(from), Time::from_nanos(from + length));
            prop_assert_eq!(supplied, u128::from(expected));
            let ready = Supply::new(&schedule).ready(Time::from_nanos(from));
            let first = (from..from + 400).find(|at| rate_at(&schedule, *at) > 0);
            prop_assert_eq!(ready, first.map(Time::from_nanos));
        }

        #[test]
        fn work_ends_when_it_has_been_supplied(
            schedule in schedules(),
            jobs in prop::collection::vec((0..40_u64, 1..500_u128), 1..20),
        ) {
            let mut supply = Supply::new(&schedule);
            let mut now = 0;
            for (gap, work) in jobs {
                now += gap;
                let (end, rest) = supply.finish(Time::from_nanos(now), work);
                let (mut at, mut left) = (now, work);
                // By the definition: nanosecond by nanosecond, up to the one in which it is done.
                while at < now + 1_000_000 && left > u128::from(rate_at(&schedule, at)) {
                    left -= u128::from(rate_at(&schedule, at));
                    at += 1;
                    if rate_at(&schedule, at) == 0 && (at..at + 400).all(|at| rate_at(&schedule, at) == 0) {
                        prop_assert_eq!(end, Time::NEVER);
                        return Ok(());
                    }
                }
                if left == u128::from(rate_at(&schedule, at)) {
                    (at, left) = (at + 1, 0);
                }
                prop_assert_eq!((end, rest), (Time::from_nanos(at), -(left as i128)));
                now = at;
            }
        }

        #[test]
        fn a_trace_supplies_what_its_lines_say(schedule in traces(), from in 0..100_u64, length in 0..100_u64) {
            const MS: u64 = 1_000_000;
            let Shape::Trace { opportunities, .. } = &schedule.0 else { unreachable!() };
            let period = opportunities[opportunities.len() - 1];
            let all: Vec<u64> = (0..400).flat_map(|n| opportunities.iter().map(move |at| n * period + at)).collect();
            let (from, to) = (from * MS, (from + length) * MS);
            let within = all.iter().filter(|at| (from..to).contains(*at)).count();
            let pass = Supply::new(&schedule).pass(Time::from_nanos(from), Time::from_nanos(to));
            prop_assert_eq!(pass, within as u128 * UNITS_PER_OPPORTUNITY);

            let first = all.iter().position(|at| *at >= from).unwrap();
            for (work, used) in [(1, 1), (UNITS_PER_OPPORTUNITY, 1), (UNITS_PER_OPPORTUNITY + 1, 2), (25 * UNITS_PER_OPPORTUNITY, 25)] {
                let mut supply = Supply::new(&schedule);
                prop_assert_eq!(supply.ready(Time::from_nanos(from)), Some(Time::from_nanos(all[first])));
                let (end, excess) = supply.finish(Time::from_nanos(from), work);
                prop_assert_eq!(end, Time::from_nanos(all[first + used - 1]));
                prop_assert_eq!(excess as u128, used as u128 * UNITS_PER_OPPORTUNITY - work);
                prop_assert_eq!(supply.ready(end), Some(Time::from_nanos(all[first + used])));
            }
        }
    }

    #[test]
    fn many_periods_are_passed_at_once() {
        // 1 bit/s in one of a million nanoseconds: 24e12 units take longer than 584 years.
        let schedule: Schedule = "0s:1bit,1ns:0bit,every:1ms".parse().unwrap();
        assert_eq!(Supply::new(&schedule).finish(Time::ZERO, 24_000_000_000_000).0, Time::NEVER);
        let schedule: Schedule = "0s:1gbit,1ns:0bit,every:1ms".parse().unwrap();
        // 12e12 units at 1e9 a period: the last one comes in the first ns of the 12000th.
        let (end, rest) = Supply::new(&schedule).finish(Time::ZERO, 12_000_000_000_000);
        assert_eq!((end.as_nanos(), rest), (11_999_000_001, 0));
    }
}
