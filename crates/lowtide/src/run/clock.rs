// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outermost edge: the only place of `run` that reads clocks.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lowtide_deadline::Time;
use nix::time::{ClockId, clock_gettime};

use crate::when::When;

/// A step of the wall clock below this is drift.
const STEP: SignedDuration = SignedDuration::from_secs(1);

/// Time since the start, which goes on through a suspend, and its relation to the wall clock, which may be set.
#[derive(Debug)]
pub(super) struct Clock {
    origin: Duration,
    /// What the wall clock showed at the origin, as seen from its present setting.
    wall_at_origin: Timestamp,
}

impl Clock {
    /// Both clocks, read at the same instant.
    pub(super) fn start() -> Clock {
        Clock { origin: boottime(), wall_at_origin: Timestamp::now() }
    }

    pub(super) fn now(&self) -> Time {
        Time::ZERO + (boottime() - self.origin)
    }

    /// Instants before the start become the start.
    pub(super) fn time_of(&self, wall: Timestamp) -> Time {
        let since = Duration::try_from(wall.duration_since(self.wall_at_origin)).unwrap_or_default();
        Time::ZERO + since
    }

    /// The instant that a deadline means, with the wall clock as it is set now.
    pub(super) fn due(&self, when: When) -> Time {
        match when {
            When::Relative(length) => Time::ZERO + length,
            When::Absolute(wall) => self.time_of(wall),
        }
    }

    pub(super) fn wall(&self, time: Time) -> Timestamp {
        let since = SignedDuration::try_from(time.since(Time::ZERO)).unwrap_or(SignedDuration::MAX);
        self.wall_at_origin.checked_add(since).unwrap_or(Timestamp::MAX)
    }

    /// Follows a step of the wall clock; true if there was one since the last call.
    pub(super) fn wall_clock_was_set(&mut self) -> bool {
        self.follow(Timestamp::now())
    }

    fn follow(&mut self, wall: Timestamp) -> bool {
        let step = wall.duration_since(self.wall(self.now()));
        if step.abs() < STEP {
            return false;
        }
        self.wall_at_origin = self.wall_at_origin.checked_add(step).unwrap_or(self.wall_at_origin);
        true
    }
}

fn boottime() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has a boot-time clock").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        let mut clock = Clock::start();
        let later = clock.wall_at_origin + SignedDuration::from_secs(90);
        assert_eq!(clock.time_of(later), Time::ZERO + Duration::from_secs(90));
        assert_eq!(clock.wall(clock.time_of(later)), later);
        assert_eq!(clock.time_of(Timestamp::UNIX_EPOCH), Time::ZERO);
        assert!(!clock.wall_clock_was_set());
    }

    #[test]
    fn a_step_of_the_wall_clock_moves_what_it_means() {
        let mut clock = Clock::start();
        clock.wall_at_origin -= SignedDuration::from_hours(1);
        assert!(clock.wall_clock_was_set() && !clock.wall_clock_was_set());
        let off = clock.wall(clock.now()).duration_since(Timestamp::now());
        assert!(off.abs() < STEP, "{off}");
    }

    #[test]
    fn a_step_moves_an_absolute_deadline_and_no_relative_one() {
        let hour = Duration::from_secs(3600);
        for (step, left) in [(1, hour), (-1, 3 * hour), (3, Duration::ZERO)] {
            let mut clock = Clock::start();
            let absolute = When::Absolute(clock.wall_at_origin + SignedDuration::from_hours(2));
            let relative = When::Relative(2 * hour);
            assert_eq!((clock.due(absolute), clock.due(relative)), (Time::ZERO + 2 * hour, Time::ZERO + 2 * hour));
            assert!(clock.follow(clock.wall(clock.now()) + SignedDuration::from_hours(step)));
            let off = clock.due(absolute).as_secs_f64() - left.as_secs_f64();
            assert!(off.abs() < 1.0, "{step} h: {off}");
            assert_eq!(clock.due(relative), Time::ZERO + 2 * hour);
        }
    }
}
