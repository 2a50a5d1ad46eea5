// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that hold from given times on, written `0s:20mbit,10s:5mbit,every:20s`.

use crate::text::{TextError, why};
use crate::units::{format_duration, parse_duration};
use std::time::Duration;

/// Values with their times, and the time after which all of it repeats.
pub(crate) type Steps<T> = (Vec<(Duration, T)>, Option<Duration>);

/// Reads steps whose values `value` reads; `example` shows some.
pub(crate) fn read<T>(
    text: &str,
    example: &str,
    value: impl Fn(&str) -> Result<T, TextError>,
) -> Result<Steps<T>, TextError> {
    let duration = |text| parse_duration(text).map_err(|error| TextError::new(why(error)));
    let (mut steps, mut period) = (Vec::new(), None);
    for part in text.split(',') {
        let Some((at, of_step)) = part.split_once(':') else {
            let sentence = format!("\"{part}\" is not a step of a schedule; write them like {example}");
            return Err(TextError::new(sentence));
        };
        if period.is_some() {
            return Err(TextError::new("every: comes last in a schedule"));
        }
        if at == "every" {
            period = Some(duration(of_step)?);
        } else {
            steps.push((duration(at)?, value(of_step)?));
        }
    }
    Ok((steps, period))
}

/// Whether the times begin at zero, rise, and are over before the period is.
pub(crate) fn check(times: impl Iterator<Item = Duration> + Clone, period: Option<Duration>) -> Result<(), TextError> {
    let wrong = |what: &str| Err(TextError::new(format!("the steps of a schedule {what}")));
    if times.clone().chain(period).any(|at| nanos(at) == u64::MAX) {
        return wrong("have to be over within 584 years");
    }
    if times.clone().next().is_none_or(|at| !at.is_zero()) {
        return wrong("have to begin at 0s");
    }
    if !times.clone().is_sorted_by(|a, b| a < b) {
        return wrong("have to come in the order of their times, each time once");
    }
    if period.is_some_and(|period| times.clone().any(|at| at >= period)) {
        return wrong("have to be over before they repeat");
    }
    Ok(())
}

/// Prints what [`read`] reads. Times are in ns.
pub(crate) fn print(steps: impl Iterator<Item = (u64, String)>, period: Option<u64>) -> String {
    let time = |nanos| format_duration(Duration::from_nanos(nanos));
    let steps = steps.map(|(at, value)| format!("{}:{value}", time(at)));
    let period = period.map(|period| format!("every:{}", time(period)));
    steps.chain(period).collect::<Vec<_>>().join(",")
}

/// A length of time in ns, as far as they go.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
