// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transmission rates.

use super::{UnitError, decimal};
use std::fmt;
use std::str::FromStr;

const UNITS: [(u64, &str); 4] = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")];

/// A transmission rate, at least 1 bit/s. Written `20mbit` or `1.5gbit`, as `tc` does, or with a
/// trailing `/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// A rate in bit/s; `None` for zero.
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Bit/s, at least 1.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Bytes that the rate carries in `nanos` nanoseconds, rounded down.
    pub(crate) fn bytes_in(self, nanos: u128) -> u64 {
        let bytes = u128::from(self.0).saturating_mul(nanos) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    /// Reads a number with the unit bit, kbit, mbit or gbit (powers of 1000).
    ///
    /// # Errors
    /// Another unit, or less than 1 bit/s.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = decimal::split(text);
        let unit = unit.strip_suffix("/s").unwrap_or(&unit);
        UNITS
            .iter()
            .find(|(_, name)| *name == unit)
            .and_then(|(unit, _)| decimal::scale(number, *unit))
            .and_then(Self::from_bits_per_second)
            .ok_or_else(|| UnitError::new(text, "a rate", "20mbit or 1.5gbit"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&decimal::format(self.0, &UNITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_read() {
        for (text, bits) in [
            ("20mbit", 20_000_000),
            ("1.5gbit", 1_500_000_000),
            ("100 Mbit/s", 100_000_000),
            ("64kbit", 64_000),
            ("9bit", 9),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().bits_per_second(), bits);
        }
    }

    #[test]
    fn an_error_names_the_text_and_shows_what_is_meant() {
        assert_eq!(
            "20mb".parse::<Rate>().unwrap_err().to_string(),
            "\"20mb\" is not a rate; write it like 20mbit or 1.5gbit"
        );
        for wrong in ["", "20", "mbit", "0mbit", "-1mbit", "1e3mbit", "0.5bit"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bits in 1_u64..) {
            let rate = Rate::from_bits_per_second(bits).unwrap();
            prop_assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        }
    }
}
