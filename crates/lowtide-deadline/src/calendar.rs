// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a transfer may press, and how fast it may be then.
//!
//! Outside its windows a transfer only takes spare capacity, and nothing that it gets there is counted upon: the time
//! that counts is the time in the windows. A cap bounds the rate for a time; what it keeps from going then has to go in
//! the rest, so the rate to aim for is the level to which the rest has to be filled.

use crate::Time;
use std::time::Duration;

/// What is allowed from an instant on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// The transfer may press; else it takes spare capacity alone.
    pub open: bool,
    /// Bytes per second that it may send at most, greater than 0; `None`: no cap.
    pub most: Option<f64>,
}

impl Allowance {
    /// Nothing is held back.
    pub const FREE: Allowance = Allowance { open: true, most: None };
}

/// Allowances over time, each until the next one. By default there is one: [`Allowance::FREE`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calendar {
    /// In the order of time; before the first one everything is free.
    entries: Vec<(Time, Allowance)>,
}

/// A stretch of time under one allowance.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: Time,
    length: Duration,
    allowance: Allowance,
}

/// What is left to do in the time that counts, without what capped stretches to come take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Left {
    /// Bytes; greater than 0.
    pub(crate) bytes: f64,
    /// Until the aim.
    pub(crate) to_aim: Duration,
    /// Until the deadline.
    pub(crate) to_deadline: Duration,
    /// Stretches to come with a cap below this send as much as they may, and are not in these times.
    level: f64,
}

impl Calendar {
    /// Each allowance holds from its instant until the next one's. Of several for one instant the last one counts.
    #[must_use]
    pub fn new(mut entries: Vec<(Time, Allowance)>) -> Calendar {
        entries.sort_by_key(|(from, _)| *from);
        Calendar { entries }
    }

    /// What is allowed at an instant.
    #[must_use]
    pub fn at(&self, now: Time) -> Allowance {
        let next = self.entries.partition_point(|(from, _)| *from <= now);
        next.checked_sub(1).map_or(Allowance::FREE, |present| self.entries[present].1)
    }

    /// When the transfer may press the next time; `now` where it may, `None` where it never will.
    #[must_use]
    pub fn opens(&self, now: Time) -> Option<Time> {
        if self.at(now).open {
            return Some(now);
        }
        self.entries.iter().find(|(from, allowance)| *from > now && allowance.open).map(|(from, _)| *from)
    }

    /// When the present window closes; `None`: never, or it is closed.
    #[must_use]
    pub fn closes(&self, now: Time) -> Option<Time> {
        let open = self.at(now).open;
        let closing = self.entries.iter().find(|(from, allowance)| *from > now && !allowance.open);
        closing.filter(|_| open).map(|(from, _)| *from)
    }

    /// The time between two instants in which the transfer may press.
    #[must_use]
    pub fn open_time(&self, from: Time, until: Time) -> Duration {
        self.stretches(from, until).filter(|stretch| stretch.allowance.open).map(|stretch| stretch.length).sum()
    }

    /// The latest instant from which so much open time is left until `until`; [`Time::ZERO`] where there is not so
    /// much.
    #[must_use]
    pub fn before(&self, until: Time, open_time: Duration) -> Time {
        let mut rest = open_time;
        let stretches: Vec<_> = self.stretches(Time::ZERO, until).collect();
        for stretch in stretches.iter().rev().filter(|stretch| stretch.allowance.open) {
            if stretch.length >= rest {
                return stretch.from + (stretch.length - rest);
            }
            rest -= stretch.length;
        }
        Time::ZERO
    }

    /// The least constant rate at which `bytes` go between two instants, where the caps let them through, in bytes per
    /// second: infinite where they do not, or where the windows leave no time.
    #[must_use]
    pub fn level(&self, bytes: f64, from: Time, until: Time) -> f64 {
        let mut open: Vec<_> = self.stretches(from, until).filter(|stretch| stretch.allowance.open).collect();
        open.sort_by(|a, b| a.cap().total_cmp(&b.cap()));
        let (mut bytes, mut seconds) = (bytes, open.iter().map(|stretch| stretch.length.as_secs_f64()).sum::<f64>());
        for stretch in &open {
            let level = bytes / seconds;
            if level <= stretch.cap() {
                return level;
            }
            bytes -= stretch.cap() * stretch.length.as_secs_f64();
            seconds -= stretch.length.as_secs_f64();
        }
        f64::INFINITY
    }

    /// What the goal comes to from `now` on, for bytes that are left; greater than 0.
    pub(crate) fn left(&self, bytes: f64, now: Time, aim: Time, deadline: Time) -> Left {
        let level = self.level(bytes, now, aim);
        let mut left = Left { bytes, to_aim: Duration::ZERO, to_deadline: self.time(level, now, deadline), level };
        left.to_aim = self.time(level, now, aim);
        for stretch in self.stretches(now, aim).filter(|stretch| stretch.binds(level, now)) {
            left.bytes -= stretch.cap() * stretch.length.as_secs_f64();
        }
        left.bytes = left.bytes.max(1.0);
        left
    }

    /// Open time without the capped stretches to come that this level fills.
    fn time(&self, level: f64, now: Time, until: Time) -> Duration {
        let counts = |stretch: &Stretch| stretch.allowance.open && !stretch.binds(level, now);
        self.stretches(now, until).filter(counts).map(|stretch| stretch.length).sum()
    }

    /// When so much of the time has passed that [`left`](Calendar::left) counts; `None`: never.
    pub(crate) fn after(&self, now: Time, counted: Duration, left: Option<&Left>) -> Option<Time> {
        let level = left.map_or(0.0, |left| left.level);
        let mut rest = counted;
        for stretch in self.stretches(now, Time::MAX) {
            if !stretch.allowance.open || stretch.binds(level, now) {
                continue;
            }
            if stretch.length >= rest {
                return Some(stretch.from + rest);
            }
            rest -= stretch.length;
        }
        None
    }

    fn stretches(&self, from: Time, until: Time) -> impl Iterator<Item = Stretch> {
        let first = self.entries.partition_point(|(start, _)| *start <= from);
        let later = &self.entries[first..];
        let starts = std::iter::once((from, self.at(from))).chain(later.iter().copied());
        let ends = later.iter().map(|(start, _)| *start).chain([Time::MAX]);
        starts.zip(ends).take_while(move |((start, _), _)| *start < until).map(move |((start, allowance), end)| {
            Stretch { from: start, length: end.min(until).since(start), allowance }
        })
    }
}

impl Stretch {
    fn cap(&self) -> f64 {
        self.allowance.most.unwrap_or(f64::INFINITY)
    }

    /// To come, and sends as much as its cap allows where the rest is filled to this level.
    fn binds(&self, level: f64, now: Time) -> bool {
        self.allowance.open && self.from > now && self.cap() < level
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const CLOSED: Allowance = Allowance { open: false, most: None };

    /// Free until 100, closed until 300, capped at 10 until 400, then free.
    fn example() -> Calendar {
        let capped = Allowance { open: true, most: Some(10.0) };
        Calendar::new(vec![(at(300), capped), (at(100), CLOSED), (at(400), Allowance::FREE)])
    }

    #[test]
    fn time_counts_in_the_windows() {
        let calendar = example();
        assert_eq!(calendar.at(at(0)), Allowance::FREE);
        assert_eq!(calendar.at(at(100)), CLOSED);
        assert_eq!((calendar.opens(at(150)), calendar.closes(at(50))), (Some(at(300)), Some(at(100))));
        assert_eq!((calendar.opens(at(50)), calendar.closes(at(350))), (Some(at(50)), None));
        assert_eq!(calendar.open_time(at(50), at(350)), secs(100));
        assert_eq!(calendar.before(at(350), secs(60)), at(90));
        assert_eq!(calendar.before(at(350), secs(500)), Time::ZERO);
        assert_eq!(calendar.after(at(50), secs(60), None), Some(at(310)));
        let ends = Calendar::new(vec![(at(100), CLOSED)]);
        assert_eq!((ends.opens(at(150)), ends.after(at(50), secs(60), None)), (None, None));
    }

    /// 3000 bytes from 0 to 500: 1000 of them in the capped stretch, 2000 in 200 free seconds.
    #[test]
    fn what_a_cap_holds_back_goes_in_the_rest() {
        let calendar = example();
        assert_eq!(calendar.level(3_000.0, at(0), at(500)), 10.0);
        assert_eq!(calendar.level(5_000.0, at(0), at(500)), 20.0);
        assert_eq!(calendar.level(1_001.0, at(300), at(400)), f64::INFINITY);
        assert_eq!(calendar.level(1.0, at(100), at(300)), f64::INFINITY);
        let left = calendar.left(5_000.0, at(0), at(500), at(600));
        assert_eq!((left.bytes, left.to_aim, left.to_deadline), (4_000.0, secs(200), secs(300)));
        assert_eq!(calendar.after(at(0), secs(150), Some(&left)), Some(at(450)));
        // within the capped stretch it is the present one, which is counted
        let left = calendar.left(5_000.0, at(350), at(500), at(500));
        assert_eq!((left.bytes, left.to_aim), (5_000.0, secs(150)));
    }

    fn calendars() -> impl Strategy<Value = Calendar> {
        let cap = prop_oneof![Just(None), (1.0..1e4).prop_map(Some)];
        let entry =
            (0u64..2_000, any::<bool>(), cap).prop_map(|(start, open, most)| (at(start), Allowance { open, most }));
        prop::collection::vec(entry, 0..12).prop_map(Calendar::new)
    }

    proptest! {
        #[test]
        fn a_level_carries_just_what_is_asked(calendar in calendars(), bytes in 1.0..1e6f64, length in 1u64..2_500) {
            let level = calendar.level(bytes, at(0), at(length));
            let carried = |level: f64| -> f64 {
                let open = calendar.stretches(at(0), at(length)).filter(|it| it.allowance.open);
                open.map(|it| it.cap().min(level) * it.length.as_secs_f64()).sum()
            };
            if level.is_finite() {
                prop_assert!((carried(level) / bytes - 1.0).abs() < 1e-9, "{level}: {} of {bytes}", carried(level));
            } else {
                prop_assert!(carried(1e9) < bytes * (1.0 + 1e-9));
            }
        }

        #[test]
        fn what_counts_adds_up(calendar in calendars(), a in 0u64..2_500, b in 0u64..2_500, c in 0u64..2_500) {
            let mut t = [a, b, c];
            t.sort_unstable();
            let [a, b, c] = t.map(at);
            let open = |from, until| calendar.open_time(from, until);
            prop_assert_eq!(open(a, b) + open(b, c), open(a, c));
            // there and back
            let aim = calendar.before(c, open(a, c) / 2);
            if !open(a, c).is_zero() {
                prop_assert!(aim <= c && open(aim, c) == open(a, c) / 2);
                let done = calendar.after(a, open(a, c), None).unwrap();
                prop_assert!(done <= c && open(a, done) == open(a, c));
            }
        }

        #[test]
        fn what_is_left_needs_the_same_level(calendar in calendars(), bytes in 1.0..1e6f64, now in 0u64..1_000, length in 1u64..1_000) {
            let (now, aim) = (at(now), at(now + length));
            let level = calendar.level(bytes, now, aim);
            let left = calendar.left(bytes, now, aim, aim);
            let rate = left.bytes / left.to_aim.as_secs_f64();
            let cap = calendar.at(now).most.unwrap_or(f64::INFINITY);
            if calendar.at(now).open && level <= cap {
                prop_assert!((rate / level - 1.0).abs() < 1e-6, "{rate} for {level}");
            } else if calendar.at(now).open {
                prop_assert!(rate >= cap * (1.0 - 1e-9), "{rate} is below the cap {cap} that binds");
            }
        }
    }
}
