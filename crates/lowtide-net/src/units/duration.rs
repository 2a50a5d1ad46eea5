// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lengths of time, as [`std::time::Duration`].

use super::{UnitError, decimal};
use std::time::Duration;

const UNITS: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];

/// What people write, but programs do not print.
const LONG_UNITS: [(u64, &str); 4] =
    [(86_400_000_000_000, "d"), (3_600_000_000_000, "h"), (60_000_000_000, "m"), (60_000_000_000, "min")];

/// Reads a length of time with the unit ns, us (or µs), ms, s, m (or min), h or d: `40ms`, `250us`, `1.5s`, `2h`; or a
/// sum of some, the larger units first: `2h30m`.
///
/// # Errors
/// Another unit, or more than 584 years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    sum(text).map(Duration::from_nanos).ok_or_else(|| UnitError::new(text, "a length of time", "40ms or 250us"))
}

fn sum(text: &str) -> Option<u64> {
    let (mut rest, mut total, mut before) = (text, 0_u64, u64::MAX);
    loop {
        let (number, behind) = rest.split_at(rest.find(|c: char| !is_of_a_number(c))?);
        let (name, next) = behind.split_at(behind.find(is_of_a_number).unwrap_or(behind.len()));
        let (_, name) = decimal::split(name);
        let name = if name == "µs" { "us" } else { &name };
        let (unit, _) = LONG_UNITS.iter().chain(&UNITS).find(|(_, known)| *known == name)?;
        if *unit >= before {
            return None;
        }
        total = total.checked_add(decimal::scale(number, *unit)?)?;
        if next.is_empty() {
            return Some(total);
        }
        (rest, before) = (next, *unit);
    }
}

fn is_of_a_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// Prints a length of time as [`parse_duration`] reads it, exactly up to 584 years.
pub fn format_duration(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if nanos == 0 {
        return "0s".to_owned();
    }
    decimal::format(nanos, &UNITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_of_time_are_read() {
        for (text, nanos) in
            [("40ms", 40_000_000), ("250us", 250_000), ("0.5µs", 500), ("2 s", 2_000_000_000), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)));
        }
    }

    #[test]
    fn minutes_hours_and_days_are_read_alone_and_together() {
        for (text, seconds) in [
            ("2h", 7200.0),
            ("2H", 7200.0),
            ("1.5h", 5400.0),
            ("2h30m", 9000.0),
            ("1d2h3m4.5s", 93_784.5),
            ("90min", 5400.0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["30m2h", "2h2h", "2h30", "2h30m.", "h", "", "2m30min", "2hs", "600000d", "2h-30m"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_refused() {
        assert_eq!(
            parse_duration("40").unwrap_err().to_string(),
            "\"40\" is not a length of time; write it like 40ms or 250us"
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(nanos: u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }
}
