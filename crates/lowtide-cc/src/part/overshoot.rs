// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much queueing delay is acceptable.

use crate::Value;
use std::time::Duration;

/// The acceptable queue overshoot `Q` of Misund's paper: a time, or a fraction of the round-trip time (sections 3.3.2
/// and 6.1). Written `1ms` or `5%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overshoot(Kind);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Time(Duration),
    Percent(f64),
}

impl Overshoot {
    /// A millisecond, as in the paper.
    pub const MILLISECOND: Self = Self(Kind::Time(Duration::from_millis(1)));

    /// A time, up to a second.
    pub fn time(time: Duration) -> Option<Self> {
        (time <= Duration::from_secs(1)).then_some(Self(Kind::Time(time)))
    }

    /// A fraction of the round-trip time in percent, up to 100.
    pub fn percent(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then_some(Self(Kind::Percent(percent)))
    }

    /// `Q` in seconds, at a round-trip time in seconds.
    pub fn seconds(self, rtt: f64) -> f64 {
        match self.0 {
            Kind::Time(time) => time.as_secs_f64(),
            Kind::Percent(percent) => percent / 100.0 * rtt,
        }
    }
}

impl Value for Overshoot {
    fn read(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => Self::percent(f64::read(percent)?),
            None => Self::time(Duration::read(text)?),
        }
    }

    fn print(&self) -> String {
        match self.0 {
            Kind::Time(time) => time.print(),
            Kind::Percent(percent) => format!("{percent}%"),
        }
    }

    fn expected() -> String {
        "a time up to 1s such as 1ms, or a part of the round-trip time such as 5%".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_or_a_part_of_the_round_trip_time() {
        for text in ["1ms", "250us", "5%", "0.1%", "100%", "0%"] {
            assert_eq!(Overshoot::read(text).unwrap().print(), text);
        }
        for text in ["", "%", "-1%", "101%", "2s", "5", "NaN%", "inf%"] {
            assert_eq!(Overshoot::read(text), None, "{text}");
        }
        assert_eq!(Overshoot::read("1ms").unwrap().seconds(0.015), 0.001);
        assert_eq!(Overshoot::read("5%").unwrap().seconds(0.020), 0.001);
    }
}
