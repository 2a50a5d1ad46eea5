// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policing: what exceeds a rate is dropped instead of queued.

use crate::text::{TextError, why};
use crate::{BufferSize, Rate, Time};
use std::fmt;
use std::str::FromStr;

/// A token bucket that drops what exceeds it: the committed part of RFC 2697's marker (section 3),
/// with red packets dropped. Written `10mbit:15kB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Police {
    /// The rate at which the bucket fills, counted in IP bytes (CIR).
    pub rate: Rate,
    /// Size of the bucket in bytes (CBS). A larger packet is always dropped. The bucket is full in
    /// the beginning.
    pub burst: u64,
}

impl FromStr for Police {
    type Err = TextError;

    /// Reads a rate and a number of bytes with a colon between them.
    ///
    /// # Errors
    /// Anything else, and a bucket of more than 1 TB.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let wrong = || TextError::new(format!("\"{text}\" is not a rate and a burst; write it like 10mbit:15kB"));
        let (rate, burst) = text.split_once(':').ok_or_else(wrong)?;
        let rate = rate.parse().map_err(|error| TextError::new(why(error)))?;
        match burst.parse() {
            Ok(BufferSize::Bytes(burst @ 1..=1_000_000_000_000)) => Ok(Self { rate, burst }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Police {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.rate, BufferSize::Bytes(self.burst)))
    }
}

/// A [`Police`] at work.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    rate: u128,
    /// In units of 10^-9 bit, in which rates are exact.
    size: u128,
    tokens: u128,
    filled: Time,
}

/// 10^-9 bits in a byte.
const UNITS_PER_BYTE: u128 = 8_000_000_000;

impl Policer {
    pub(crate) fn new(police: Police) -> Self {
        let size = u128::from(police.burst) * UNITS_PER_BYTE;
        Self { rate: police.rate.bits_per_second().into(), size, tokens: size, filled: Time::ZERO }
    }

    /// Whether a packet of `bytes` bytes conforms; if so it uses up tokens.
    pub(crate) fn passes(&mut self, now: Time, bytes: u32) -> bool {
        let gained = self.rate * (now - self.filled).as_nanos();
        self.filled = now;
        self.tokens = self.size.min(self.tokens.saturating_add(gained));
        let needed = u128::from(bytes) * UNITS_PER_BYTE;
        let conforms = needed <= self.tokens;
        if conforms {
            self.tokens -= needed;
        }
        conforms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn us(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    #[test]
    fn the_bucket_begins_full_and_fills_at_the_rate() {
        // 1500 bytes take 12 ms at 1 Mbit/s.
        let mut policer = Policer::new("1mbit:3kB".parse().unwrap());
        assert_eq!([1500, 1500, 1].map(|bytes| policer.passes(us(0), bytes)), [true, true, false]);
        assert!(!policer.passes(Time::from_nanos(11_999_999), 1500));
        assert!(policer.passes(us(12_000), 1500), "what did not pass has used up nothing");
        assert!(!policer.passes(us(23_999), 1500));
        assert!(policer.passes(us(24_000), 1500));
        // However long it is idle, it saves no more than its size.
        let late = Time::from_nanos(u64::MAX);
        assert_eq!([2000, 1000, 1].map(|bytes| policer.passes(late, bytes)), [true, true, false]);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_never_passes() {
        let mut policer = Policer::new("1gbit:1499B".parse().unwrap());
        assert!(!policer.passes(us(1_000_000), 1500));
        assert!(policer.passes(us(1_000_000), 1499));
    }

    #[test]
    fn in_the_long_run_the_rate_passes() {
        let mut policer = Policer::new("7mbit:15kB".parse().unwrap());
        let passed: u64 = (0..100_000).filter(|n| policer.passes(us(100 * n), 1000)).map(|_| 1000).sum();
        // 10 s at 7 Mbit/s and the bucket; the last packet may be short of some bytes.
        let exact = 8_750_000 - 7_000_000 * 100 / 8_000_000 + 15_000;
        assert!(passed <= exact && passed + 1000 > exact, "{passed} of {exact}");
    }

    #[test]
    fn policers_are_read_and_printed() {
        for text in ["10mbit:15kB", "1.5gbit:1B"] {
            assert_eq!(text.parse::<Police>().unwrap().to_string(), text);
        }
        for wrong in
            ["", "10mbit", "10mbit:", "10mbit:15", "10mbit:0B", "10mbit:5p", "10:15kB", "10mbit:2ms", "1mbit:2000GB"]
        {
            assert!(wrong.parse::<Police>().is_err(), "{wrong}");
        }
        assert_eq!(
            "10mbit:1bdp".parse::<Police>().unwrap_err().to_string(),
            "\"10mbit:1bdp\" is not a rate and a burst; write it like 10mbit:15kB"
        );
    }
}
