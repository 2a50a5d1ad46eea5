// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a way takes, and when.

use crate::text::{TextError, why};
use crate::units::{format_duration, parse_duration};
use crate::{Time, steps};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A delay over time, from [`Time::ZERO`] on: always the same, or steps.
///
/// Steps are written `0s:20ms,10s:200ms`, each as the time from which on the delay holds; with `,every:20s` at the
/// end they repeat. What the delay is of, one way or a round trip, is up to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelaySchedule {
    /// Times in ns, rising, the first one 0; with one of them the delay is always the same.
    steps: Arc<[(u64, Duration)]>,
    /// ns.
    period: Option<u64>,
}

impl DelaySchedule {
    /// The same delay for ever.
    pub fn constant(delay: Duration) -> Self {
        Self { steps: [(0, delay)].into(), period: None }
    }

    /// Each delay holds from its time on. With a `period` all of it repeats.
    ///
    /// # Errors
    /// The first time is not zero, the times do not rise, the period is not after the last one, or a time is above
    /// 584 years.
    pub fn steps(steps: &[(Duration, Duration)], period: Option<Duration>) -> Result<Self, TextError> {
        steps::check(steps.iter().map(|(at, _)| *at), period)?;
        let steps = steps.iter().map(|(at, delay)| (steps::nanos(*at), *delay)).collect();
        Ok(Self { steps, period: period.map(steps::nanos) })
    }

    /// The delay of what sets out at `time`.
    pub fn at(&self, time: Time) -> Duration {
        match &*self.steps {
            [(_, always)] => *always, // mostly, so it has to be quick
            steps => {
                let time = self.period.map_or(time.as_nanos(), |period| time.as_nanos() % period);
                steps[steps.partition_point(|(at, _)| *at <= time) - 1].1 // the first step is at 0
            }
        }
    }

    /// The least delay that it ever has.
    pub fn least(&self) -> Duration {
        self.steps.iter().map(|(_, delay)| *delay).min().unwrap_or_default()
    }

    /// Other delays at the same times.
    #[must_use]
    pub fn map(&self, change: impl Fn(Duration) -> Duration) -> Self {
        let steps = self.steps.iter().map(|(at, delay)| (*at, change(*delay))).collect();
        Self { steps, period: self.period }
    }
}

impl From<Duration> for DelaySchedule {
    fn from(delay: Duration) -> Self {
        Self::constant(delay)
    }
}

impl FromStr for DelaySchedule {
    type Err = TextError;

    /// Reads a length of time, or steps.
    ///
    /// # Errors
    /// Anything else; see [`DelaySchedule::steps`].
    fn from_str(text: &str) -> Result<Self, TextError> {
        let delay = |text: &str| parse_duration(text).map_err(|error| TextError::new(why(error)));
        if !text.contains([':', ',']) {
            return delay(text).map(Self::constant);
        }
        let (steps, period) = steps::read(text, "0s:20ms,10s:200ms,every:20s", delay)?;
        Self::steps(&steps, period)
    }
}

impl fmt::Display for DelaySchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.steps, self.period) {
            ([(_, always)], None) => f.pad(&format_duration(*always)),
            (steps, period) => f.pad(&steps::print(steps.iter().map(|(at, it)| (*at, format_duration(*it))), period)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str) -> DelaySchedule {
        text.parse().unwrap()
    }

    #[test]
    fn they_are_read_and_printed() {
        for text in ["20ms", "0s", "0s:20ms,10s:200ms", "0s:20ms,10s:200ms,every:20s", "0s:20ms,every:20s"] {
            assert_eq!(schedule(text).to_string(), text);
        }
        assert_eq!(schedule("0s:20ms"), Duration::from_millis(20).into());
    }

    #[test]
    fn a_mistake_is_one_sentence_that_helps() {
        for (text, sentence) in [
            ("20", "\"20\" is not a length of time; write it like 40ms or 250us"),
            ("1s:20ms", "the steps of a schedule have to begin at 0s"),
            ("0s:20ms,0s:1ms", "the steps of a schedule have to come in the order of their times, each time once"),
            ("0s:2ms,2s:1ms,every:2s", "the steps of a schedule have to be over before they repeat"),
            ("0s:2ms,3s", "\"3s\" is not a step of a schedule; write them like 0s:20ms,10s:200ms,every:20s"),
            ("0s:2mbit,3s:1ms", "\"2mbit\" is not a length of time; write it like 40ms or 250us"),
        ] {
            assert_eq!(text.parse::<DelaySchedule>().unwrap_err().to_string(), sentence);
        }
    }

    #[test]
    fn each_holds_from_its_time_on() {
        let ms = |ms| Time::ZERO + Duration::from_millis(ms);
        let (once, again) = (schedule("0s:20ms,1s:200ms,3s:5ms"), schedule("0s:20ms,1s:200ms,every:3s"));
        for (at, of_once, of_again) in
            [(0, 20, 20), (999, 20, 20), (1000, 200, 200), (2999, 200, 200), (3000, 5, 20), (4000, 5, 200)]
        {
            assert_eq!(once.at(ms(at)), Duration::from_millis(of_once), "{at} ms");
            assert_eq!(again.at(ms(at)), Duration::from_millis(of_again), "{at} ms");
        }
        assert_eq!(once.at(Time::NEVER), Duration::from_millis(5));
        assert_eq!((once.least(), again.least()), (Duration::from_millis(5), Duration::from_millis(20)));
        assert_eq!(once.map(|delay| delay / 2), schedule("0s:10ms,1s:100ms,3s:2500us"));
    }
}
