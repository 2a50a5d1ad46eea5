// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lengths of time, as [`std::time::Duration`].

use super::{UnitError, decimal};
use std::time::Duration;

const UNITS: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];

/// Reads a length of time with the unit ns, us (or µs), ms or s: `40ms`, `250us`, `1.5s`.
///
/// # Errors
/// Another unit, or more than 584 years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = decimal::split(text);
    let unit = if unit == "µs" { "us" } else { &unit };
    UNITS
        .iter()
        .find(|(_, name)| *name == unit)
        .and_then(|(unit, _)| decimal::scale(number, *unit))
        .map(Duration::from_nanos)
        .ok_or_else(|| UnitError::new(text, "a length of time", "40ms or 250us"))
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
            [("40ms", 40_000_000), ("250us", 250_000), ("0.5µs", 500), ("2s", 2_000_000_000), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)));
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
