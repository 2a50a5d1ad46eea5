// SPDX-License-Identifier: MIT OR Apache-2.0
//! An instant, as the caller's clock counts it. Three crates have such a type, because none of
//! them depends on another one: laws, queues and the governor can each be used alone.

use std::ops::{Add, Sub};
use std::time::Duration;

/// An instant: nanoseconds since an origin that the caller chose (boot, start of the run, ...).
///
/// Range 0 to about 584 years. Arithmetic saturates at both ends: an expected completion that lies
/// further away than that is [`Time::MAX`], never a wrapped number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// The last instant that can be represented.
    pub const MAX: Time = Time(u64::MAX);

    /// The instant `ns` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Time {
        Time(ns)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to this instant; zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The instant `seconds` later. Negative and NaN count as 0; saturates at [`Time::MAX`].
    #[must_use]
    pub fn plus_secs_f64(self, seconds: f64) -> Time {
        // `as` saturates and turns NaN into 0.
        Time(self.0.saturating_add((seconds * 1e9) as u64))
    }
}

impl From<Duration> for Time {
    fn from(since_origin: Duration) -> Time {
        Time::ZERO + since_origin
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        let ns = u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(ns))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, d: Duration) -> Time {
        let ns = u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_sub(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let t = Time::from_nanos(5);
        assert_eq!(t.since(Time::from_nanos(9)), Duration::ZERO);
        assert_eq!(t - Duration::from_secs(1), Time::ZERO);
        assert_eq!(t + Duration::MAX, Time::MAX);
        assert_eq!(t.plus_secs_f64(f64::INFINITY), Time::MAX);
        assert_eq!(t.plus_secs_f64(f64::NAN), t);
        assert_eq!(t.plus_secs_f64(-3.0), t);
        assert_eq!(Time::ZERO.plus_secs_f64(1.5), Time::from_nanos(1_500_000_000));
        assert_eq!(Time::from(Duration::from_millis(2)).as_nanos(), 2_000_000);
    }
}
