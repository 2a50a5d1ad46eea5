// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often the weight is updated.

use std::time::Duration;

/// T_w of the framework, in its experiments (section III-C).
pub const NOMINAL_INTERVAL: Duration = Duration::from_secs(10);
/// A short transfer gets this many updates: enough for the weight to climb from bottom to top in a third
/// of the time at l_w = 0.05.
pub const INTERVALS_PER_TRANSFER: u32 = 60;
/// An average over fewer round trips than this says little about a congestion-controlled flow.
pub const ROUND_TRIPS_PER_INTERVAL: u32 = 10;
/// No interval is shorter than this, whatever the deadline.
pub const INTERVAL_FLOOR: Duration = Duration::from_millis(500);

/// T_w for a transfer that has `time_left` until its deadline (`None`: no deadline): `nominal`, shortened to
/// `time_left / 60`, but never below 10 round trips and 0.5 s.
///
/// Give the time that was left **when the goal was set**, not what is left now: the interval is a property
/// of the goal. Re-computed from the running time it would shrink towards the floor with every update,
/// and the controller, whose dynamics are per update, would turn nervous just when the target rate is most
/// sensitive. The governor re-computes it when the goal moves, and only the round-trip floor follows the
/// network. That floor is itself limited to ten nominal intervals, so that an absurd round-trip time cannot
/// switch the control off.
#[must_use]
pub fn update_interval(nominal: Duration, time_left: Option<Duration>, rtt: Option<Duration>) -> Duration {
    let wanted = wanted_interval(nominal, time_left);
    let rounds = rtt.unwrap_or_default().saturating_mul(ROUND_TRIPS_PER_INTERVAL).min(nominal.saturating_mul(10));
    wanted.max(rounds).max(INTERVAL_FLOOR)
}

/// The same without its floors, at which a short transfer has fewer updates than it should have.
pub(crate) fn wanted_interval(nominal: Duration, time_left: Option<Duration>) -> Duration {
    time_left.map_or(nominal, |left| nominal.min(left / INTERVALS_PER_TRANSFER))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_sixtieth_of_short_deadlines() {
        let t = |left_s: u64, rtt_ms| {
            update_interval(NOMINAL_INTERVAL, Some(Duration::from_secs(left_s)), Some(ms(rtt_ms)))
        };
        assert_eq!(t(8 * 3600, 40), ms(10_000));
        assert_eq!(t(600, 40), ms(10_000));
        assert_eq!(t(60, 40), ms(1_000));
        assert_eq!(t(25, 40), ms(500)); // floor of half a second
        assert_eq!(t(60, 300), ms(3_000)); // ten round trips
        assert_eq!(t(0, 0), ms(500));
        assert_eq!(t(600, 3_600_000), ms(100_000)); // absurd
    }

    #[test]
    fn nothing_known() {
        assert_eq!(update_interval(NOMINAL_INTERVAL, None, None), ms(10_000));
        assert_eq!(update_interval(NOMINAL_INTERVAL, Some(Duration::MAX), Some(Duration::MAX)), ms(100_000));
    }
}
