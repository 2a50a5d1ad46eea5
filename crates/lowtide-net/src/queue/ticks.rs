// SPDX-License-Identifier: MIT OR Apache-2.0
//! A periodic timer without a clock.

use crate::Time;
use std::time::Duration;

/// Points in time at a fixed distance, the first one period after the origin.
///
/// Between two calls of a queue nothing in it changes, so a timer that should have fired in between
/// can be made up for at the next call, with the time at which it was due.
#[derive(Clone, Debug)]
pub(super) struct Ticks {
    next: Time,
    period: Duration,
}

impl Ticks {
    /// `period` must not be zero.
    pub(super) fn new(period: Duration) -> Self {
        Self { next: Time::ZERO + period, period }
    }

    /// The next tick that is due by `now`.
    pub(super) fn due(&mut self, now: Time) -> Option<Time> {
        (self.next <= now).then(|| {
            let tick = self.next;
            self.next = tick + self.period;
            tick
        })
    }

    /// Passes over all ticks that are due by `now`: those that would change nothing.
    pub(super) fn skip(&mut self, now: Time) {
        if self.next <= now {
            let period = self.period.as_nanos() as u64; // parameters are seconds at most
            let missed = (now.as_nanos() - self.next.as_nanos()) / period + 1;
            self.next = Time::from_nanos(self.next.as_nanos().saturating_add(missed.saturating_mul(period)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_keep_their_grid() {
        let ms = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut ticks = Ticks::new(Duration::from_millis(15));
        assert_eq!(ticks.due(ms(14)), None);
        assert_eq!(ticks.due(ms(31)), Some(ms(15)));
        assert_eq!(ticks.due(ms(31)), Some(ms(30)));
        assert_eq!(ticks.due(ms(31)), None);
        ticks.skip(ms(44));
        assert_eq!(ticks.due(ms(45)), Some(ms(45)));
        ticks.skip(ms(90));
        assert_eq!(ticks.due(ms(104)), None);
        assert_eq!(ticks.due(ms(105)), Some(ms(105)));
    }
}
