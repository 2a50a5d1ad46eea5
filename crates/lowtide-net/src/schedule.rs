// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much a link can carry, and when.

use crate::text::{TextError, why};
use crate::{Rate, steps};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The capacity of a link over time, from [`Time::ZERO`](crate::Time::ZERO) on: a rate, steps between rates, or the
/// delivery opportunities of a trace.
///
/// Steps are written `0s:200mbit,10s:100mbit`, each as the time from which on the rate holds; with
/// `,every:20s` at the end they repeat. A rate of `0mbit` is an outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(pub(crate) Shape);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Constant(Rate),
    Steps { steps: Arc<[Step]>, period: Option<u64> },
    Trace { name: Arc<str>, opportunities: Arc<[u64]> },
}

/// From this time of its period on a rate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// ns.
    pub(crate) at: u64,
    /// bit/s.
    pub(crate) rate: u64,
}

impl Schedule {
    /// Bytes of one delivery opportunity of a trace.
    pub const OPPORTUNITY: u64 = 1500;

    /// The same rate for ever.
    pub const fn constant(rate: Rate) -> Self {
        Self(Shape::Constant(rate))
    }

    /// Each rate holds from its time on; `None` is an outage. With a `period` all of it repeats.
    ///
    /// # Errors
    /// The first time is not zero, the times do not rise, the period is not after the last one, a time
    /// is above 584 years, or there is no rate at all.
    pub fn steps(steps: &[(Duration, Option<Rate>)], period: Option<Duration>) -> Result<Self, TextError> {
        steps::check(steps.iter().map(|(at, _)| *at), period)?;
        if steps.iter().all(|(_, rate)| rate.is_none()) {
            return Err(TextError::new("the steps of a schedule need a rate above zero somewhere"));
        }
        let step = |&(at, rate): &(Duration, Option<Rate>)| Step {
            at: steps::nanos(at),
            rate: rate.map_or(0, Rate::bits_per_second),
        };
        Ok(Self(Shape::Steps { steps: steps.iter().map(step).collect(), period: period.map(steps::nanos) }))
    }

    /// A packet delivery trace in the format of Mahimahi (Netravali et al., USENIX ATC 2015): a line
    /// for each opportunity to deliver 1500 bytes, with its time in whole milliseconds; after the
    /// last one it begins again. What is not used of an opportunity is lost, a packet may use several
    /// of them, and several packets one. `name` is the file's, for messages.
    ///
    /// # Errors
    /// The name and the line of what is no time, or comes before the line above it; a trace that is
    /// empty or takes no time.
    pub fn trace(name: &str, text: &str) -> Result<Self, TextError> {
        const NANOS_PER_MS: u64 = 1_000_000;
        let mut opportunities: Vec<u64> = Vec::new();
        // a blank line at the end is what editors leave
        for (number, line) in text.trim_end().lines().enumerate() {
            let wrong = |what: &str| TextError::new(format!("{name}, line {}: {what}", number + 1));
            let line = line.trim();
            let digits = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
            // Up to a year, so that no sum of times overflows.
            let ms = line.parse().ok().filter(|ms: &u64| digits && *ms <= 365 * 86_400_000);
            let Some(ms) = ms else {
                let line: String = line.chars().take(40).collect();
                return Err(wrong(&format!("\"{line}\" is not a time in whole milliseconds")));
            };
            let at = ms * NANOS_PER_MS;
            if opportunities.last().is_some_and(|last| at < *last) {
                return Err(wrong(&format!("{ms} ms is before the time above it")));
            }
            opportunities.push(at);
        }
        if opportunities.last().is_none_or(|last| *last == 0) {
            return Err(TextError::new(format!("{name}: a trace needs a line with a time above zero")));
        }
        Ok(Self(Shape::Trace { name: name.into(), opportunities: opportunities.into() }))
    }
}

impl From<Rate> for Schedule {
    fn from(rate: Rate) -> Self {
        Self::constant(rate)
    }
}

impl FromStr for Schedule {
    type Err = TextError;

    /// Reads a rate, or steps.
    ///
    /// # Errors
    /// Anything else; see [`Schedule::steps`].
    fn from_str(text: &str) -> Result<Self, TextError> {
        if !text.contains([':', ',']) {
            return text.parse().map(Self::constant).map_err(|error| TextError::new(why(error)));
        }
        let (steps, period) = steps::read(text, "0s:20mbit,10s:5mbit,every:20s", rate_or_outage)?;
        Self::steps(&steps, period)
    }
}

/// A rate; `None` for zero.
fn rate_or_outage(text: &str) -> Result<Option<Rate>, TextError> {
    let zero = text.strip_prefix('0').is_some_and(|unit| ["", "bit", "kbit", "mbit", "gbit"].contains(&unit));
    if zero {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| TextError::new(why(error)))
}

impl fmt::Display for Schedule {
    /// A trace prints as `mahimahi:` and its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Shape::Constant(rate) => fmt::Display::fmt(rate, f),
            Shape::Trace { name, .. } => f.pad(&format!("mahimahi:{name}")),
            Shape::Steps { steps, period } => {
                let rate = |bits| Rate::from_bits_per_second(bits).map_or("0bit".to_owned(), |rate| rate.to_string());
                f.pad(&steps::print(steps.iter().map(|step| (step.at, rate(step.rate))), *period))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    #[test]
    fn schedules_are_read_and_printed() {
        for text in ["20mbit", "0s:20mbit", "0s:200mbit,10s:100mbit,every:20s", "0s:10mbit,500ms:0bit,1s:1.5mbit"] {
            assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
        }
        let outage: Schedule = "0s:1mbit,1s:0mbit".parse().unwrap();
        assert_eq!("0s:1mbit,1s:0".parse::<Schedule>().unwrap(), outage);
    }

    #[test]
    fn a_mistake_is_one_sentence_that_helps() {
        for (text, sentence) in [
            ("20", "\"20\" is not a rate; write it like 20mbit or 1.5gbit"),
            ("1s:20mbit", "the steps of a schedule have to begin at 0s"),
            ("every:2s", "the steps of a schedule have to begin at 0s"),
            (
                "0s:20mbit,2s:1mbit,1s:3mbit",
                "the steps of a schedule have to come in the order of their times, each time once",
            ),
            ("0s:2mbit,0s:1mbit", "the steps of a schedule have to come in the order of their times, each time once"),
            ("0s:0mbit", "the steps of a schedule need a rate above zero somewhere"),
            ("0s:2mbit,2s:1mbit,every:2s", "the steps of a schedule have to be over before they repeat"),
            ("0s:2mbit,every:2s,3s:1mbit", "every: comes last in a schedule"),
            ("0s:2mbit,3s", "\"3s\" is not a step of a schedule; write them like 0s:20mbit,10s:5mbit,every:20s"),
            ("0s:2mbit,3:1mbit", "\"3\" is not a length of time; write it like 40ms or 250us"),
            ("0s:2mbit,3s:0x", "\"0x\" is not a rate; write it like 20mbit or 1.5gbit"),
        ] {
            assert_eq!(text.parse::<Schedule>().unwrap_err().to_string(), sentence);
        }
    }

    #[test]
    fn traces_are_read() {
        let trace = Schedule::trace("cell.up", "0\n1\r\n1\n  5\n").unwrap();
        assert_eq!(trace.to_string(), "mahimahi:cell.up");
        assert_eq!(Schedule::trace("cell.up", "0\n1\n1\n5\n \n\n").unwrap(), trace);
        // 4 opportunities in 5 ms; the one at the end of the time does not count, the first one does.
        assert_eq!(trace.bytes_between(Time::ZERO, Time::from_nanos(5_000_000)), 3 * 1500);
        assert_eq!(trace.bytes_between(Time::ZERO, Time::from_nanos(5_000_001)), 5 * 1500);
        assert_eq!(trace.bytes_between(Time::ZERO, Time::from_nanos(5_000_000_000)), (4 * 1000 - 1) * 1500);
    }

    #[test]
    fn a_broken_trace_is_named_with_its_line() {
        for (text, sentence) in [
            ("1\n2\nx\n", "cell.up, line 3: \"x\" is not a time in whole milliseconds"),
            ("1\n\n2\n", "cell.up, line 2: \"\" is not a time in whole milliseconds"),
            ("1\n-2\n", "cell.up, line 2: \"-2\" is not a time in whole milliseconds"),
            ("1\n2.5\n", "cell.up, line 2: \"2.5\" is not a time in whole milliseconds"),
            ("+1\n", "cell.up, line 1: \"+1\" is not a time in whole milliseconds"),
            ("99999999999999999999\n", "cell.up, line 1: \"99999999999999999999\" is not a time in whole milliseconds"),
            ("5\n3\n", "cell.up, line 2: 3 ms is before the time above it"),
            ("", "cell.up: a trace needs a line with a time above zero"),
            ("0\n0\n", "cell.up: a trace needs a line with a time above zero"),
        ] {
            assert_eq!(Schedule::trace("cell.up", text).unwrap_err().to_string(), sentence);
        }
    }

    #[test]
    fn what_repeats_has_a_mean_rate() {
        let mean = |text: &str| text.parse::<Schedule>().unwrap().mean_rate().map(|rate| rate.to_string());
        assert_eq!(mean("20mbit").as_deref(), Some("20mbit"));
        assert_eq!(mean("0s:8mbit,1s:0mbit,2s:16mbit,every:4s").as_deref(), Some("10mbit"));
        assert_eq!(mean("0s:1bit,1ns:0bit,every:1s").as_deref(), Some("1bit"));
        assert_eq!(mean("0s:8mbit,1s:16mbit"), None);
        // 4 opportunities in 5 ms
        let trace = Schedule::trace("cell.up", "0\n1\n1\n5\n").unwrap();
        assert_eq!(trace.mean_rate().unwrap().to_string(), "9.6mbit");
    }

    #[test]
    fn capacity_is_counted_across_steps_and_periods() {
        let schedule: Schedule = "0s:8mbit,1s:0mbit,2s:16mbit,every:4s".parse().unwrap();
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        for (from, to, bytes) in [
            (0, 1000, 1_000_000),
            (500, 2500, 500_000 + 1_000_000),
            (1000, 2000, 0),
            (0, 4000, 5_000_000),
            (0, 4_000_000_000, 5_000_000_000_000),
            (3000, 5500, 2_000_000 + 1_000_000),
            (3000, 3000, 0),
        ] {
            assert_eq!(schedule.bytes_between(ms(from), ms(to)), bytes, "{from} to {to} ms");
        }
    }
}
