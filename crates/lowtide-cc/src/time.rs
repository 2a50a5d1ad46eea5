// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points in time, as the caller counts them. Three crates have such a type, because none of
//! them depends on another one: laws, queues and the governor can each be used alone.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// A point in time: nanoseconds since an origin of the caller's choice. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The point `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Time {
    type Output = Duration;

    /// How long ago `earlier` was; zero if it is in fact later.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Whole nanoseconds, as delays are counted whose clocks may differ.
pub(crate) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Whole microseconds, as Linux counts.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Milliseconds and their fractions.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}
