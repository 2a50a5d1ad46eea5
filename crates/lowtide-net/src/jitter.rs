// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random delay after transmission, with and without a change of the order.

use crate::random::{Random, Source};
use crate::text::{TextError, unknown, why};
use crate::units::{Probability, format_duration, parse_duration};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How the extra delay is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterShape {
    /// Evenly from zero to the amount.
    #[default]
    Uniform,
    /// The magnitude of a normal variable with mean zero and the amount as its standard deviation;
    /// 0.8 times the amount in the mean.
    Normal,
}

/// Random delay on top of the propagation delay, for each packet on its own. It does not change the
/// order: a packet that would overtake comes out together with the one before it. Written `2ms` or
/// `2ms:normal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// Size of the extra delay. Zero is none.
    pub amount: Duration,
    /// Its distribution.
    pub shape: JitterShape,
}

impl Jitter {
    /// No extra delay.
    pub const NONE: Self = Self { amount: Duration::ZERO, shape: JitterShape::Uniform };
}

impl FromStr for Jitter {
    type Err = TextError;

    /// Reads a length of time, and `:uniform` or `:normal` after it.
    ///
    /// # Errors
    /// Anything else.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (amount, shape) = text.split_once(':').unwrap_or((text, "uniform"));
        let amount = parse_duration(amount).map_err(|error| TextError::new(why(error)))?;
        let shape = match shape {
            "uniform" => JitterShape::Uniform,
            "normal" => JitterShape::Normal,
            _ => return Err(unknown(shape, "a shape of jitter", &["uniform", "normal"])),
        };
        Ok(Self { amount, shape })
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = match self.shape {
            JitterShape::Uniform => "",
            JitterShape::Normal => ":normal",
        };
        f.pad(&(format_duration(self.amount) + shape))
    }
}

/// Packets that fall back behind later ones: with this probability a packet is delayed by this much
/// more, and those behind it do not wait. Written `1%:5ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reordering {
    /// Probability for each packet.
    pub probability: Probability,
    /// The extra delay. To be overtaken it has to exceed the time between two packets.
    pub delay: Duration,
}

impl Reordering {
    /// Every packet keeps its place.
    pub const NONE: Self = Self { probability: Probability::NEVER, delay: Duration::ZERO };
}

impl FromStr for Reordering {
    type Err = TextError;

    /// Reads a probability and a length of time with a colon between them.
    ///
    /// # Errors
    /// Anything else.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let Some((probability, delay)) = text.split_once(':') else {
            return Err(TextError::new(format!("\"{text}\" is not a probability and a delay; write it like 1%:5ms")));
        };
        let probability = probability.parse().map_err(|error| TextError::new(why(error)))?;
        let delay = parse_duration(delay).map_err(|error| TextError::new(why(error)))?;
        Ok(Self { probability, delay })
    }
}

impl fmt::Display for Reordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.probability, format_duration(self.delay)))
    }
}

/// [`Jitter`] and [`Reordering`] at work.
#[derive(Debug)]
pub(crate) struct Delays {
    jitter: Jitter,
    reordering: Reordering,
    jitter_random: Random,
    reordering_random: Random,
}

impl Delays {
    pub(crate) fn new(jitter: Jitter, reordering: Reordering, seed: u64) -> Self {
        let random = |source| Random::new(seed, source);
        let (jitter_random, reordering_random) = (random(Source::Jitter), random(Source::Reordering));
        Self { jitter, reordering, jitter_random, reordering_random }
    }

    /// Whether packets may change their order.
    pub(crate) fn reorders(&self) -> bool {
        self.reordering.probability > Probability::NEVER
    }

    /// The extra delay of the next packet that keeps the order.
    pub(crate) fn jitter(&mut self) -> Duration {
        let Jitter { amount, shape } = self.jitter;
        if amount.is_zero() {
            return Duration::ZERO;
        }
        let factor = match shape {
            JitterShape::Uniform => self.jitter_random.unit(),
            JitterShape::Normal => self.jitter_random.normal().abs(),
        };
        let nanos = u64::try_from(amount.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos((factor * nanos as f64) as u64)
    }

    /// The extra delay with which the next packet falls back, if it does.
    pub(crate) fn setback(&mut self) -> Option<Duration> {
        let Reordering { probability, delay } = self.reordering;
        (self.reorders() && self.reordering_random.strikes(probability.as_f64())).then_some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shapes_have_their_means() {
        const N: u32 = 100_000;
        let mean = |text: &str| {
            let mut delays = Delays::new(text.parse().unwrap(), Reordering::NONE, 1);
            let sum: Duration = (0..N).map(|_| delays.jitter()).sum();
            sum.as_secs_f64() * 1e3 / f64::from(N)
        };
        // Five standard errors: 2/sqrt(12 N), and 2 sqrt(1 - 2/pi)/sqrt(N).
        assert!((mean("2ms") - 1.0).abs() < 0.0092);
        assert!((mean("2ms:normal") - 2.0 * (2.0 / std::f64::consts::PI).sqrt()).abs() < 0.020);
        assert_eq!(mean("0s"), 0.0);
    }

    #[test]
    fn they_are_read_and_printed() {
        for text in ["2ms", "250us:normal", "0s"] {
            assert_eq!(text.parse::<Jitter>().unwrap().to_string(), text);
        }
        assert_eq!("2ms:uniform".parse::<Jitter>().unwrap().to_string(), "2ms");
        assert_eq!("0.01:5ms".parse::<Reordering>().unwrap().to_string(), "0.01:5ms");
        assert_eq!(
            "2ms:norml".parse::<Jitter>().unwrap_err().to_string(),
            "\"norml\" is not a shape of jitter; did you mean normal? There are uniform and normal"
        );
        assert_eq!(
            "5ms".parse::<Reordering>().unwrap_err().to_string(),
            "\"5ms\" is not a probability and a delay; write it like 1%:5ms"
        );
        for wrong in ["", "2", "2ms:", "2ms:normal:normal"] {
            assert!(wrong.parse::<Jitter>().is_err(), "{wrong}");
        }
        for wrong in ["", ":", "2:5ms", "1%:5", "1%:5ms:5ms"] {
            assert!(wrong.parse::<Reordering>().is_err(), "{wrong}");
        }
    }
}
