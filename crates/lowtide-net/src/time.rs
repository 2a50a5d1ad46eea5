// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points in time, as the caller counts them. Three crates have such a type, because none of
//! them depends on another one: laws, queues and the governor can each be used alone.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time: nanoseconds since an origin of the caller's choice.
///
/// 64 bits last for 584 years. Arithmetic saturates instead of wrapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// Later than everything: the end of what does not end.
    pub const NEVER: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it is in fact later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Time {
    type Output = Duration;

    /// The same as [`Time::since`].
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_wrap() {
        let (early, late) = (Time::from_nanos(5), Time::from_nanos(12));
        assert_eq!(late - early, Duration::from_nanos(7));
        assert_eq!(early - late, Duration::ZERO);
        assert_eq!(late + Duration::MAX, Time::from_nanos(u64::MAX));
    }
}
