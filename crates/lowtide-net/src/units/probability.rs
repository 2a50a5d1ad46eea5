// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probabilities.

use super::UnitError;
use std::fmt;
use std::str::FromStr;

/// A probability, from 0 to 1. Written `0.001` or `0.1%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0.0);

    /// A probability from 0 to 1; `None` outside of it.
    pub fn new(probability: f64) -> Option<Self> {
        (0.0..=1.0).contains(&probability).then_some(Self(probability))
    }

    /// From 0 to 1.
    pub const fn as_f64(self) -> f64 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = UnitError;

    /// Reads a number from 0 to 1, or a percentage.
    ///
    /// # Errors
    /// No number, or outside of the range.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, divisor) = match text.strip_suffix('%') {
            Some(percent) => (percent, 100.0),
            None => (text, 1.0),
        };
        number
            .parse::<f64>()
            .ok()
            .and_then(|number| Self::new(number / divisor))
            .ok_or_else(|| UnitError::new(text, "a probability", "0.001 or 0.1%"))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_percentages_are_read() {
        for (text, probability) in [("0.001", 0.001), ("1%", 0.01), ("0", 0.0), ("100%", 1.0)] {
            assert_eq!(text.parse(), Ok(Probability(probability)));
        }
        for wrong in ["", "%", "-0.1", "1.01", "101%", "NaN", "one"] {
            assert!(wrong.parse::<Probability>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        let probability = Probability(1.0 / 3.0);
        assert_eq!(probability.to_string().parse(), Ok(probability));
    }
}
