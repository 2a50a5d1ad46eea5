// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many connections of one size, as programs open them.

use super::{Demand, Task};
use crate::scenario::{Arrivals, Connections};
use lowtide_net::Time;
use std::{collections::VecDeque, time::Duration};

/// A series of connections at work.
pub(super) struct Series {
    size: u64,
    arrivals: Arrivals,
    start: Time,
    /// Connections that have not begun.
    left: u32,
    begun: u32,
    /// Those that are under way.
    open: u32,
    /// When the next ones begin, in the order of time; no more of them than are left.
    due: VecDeque<Time>,
}

impl Series {
    pub(super) fn new(connections: &Connections, start: Time) -> Self {
        let &Connections { size, count, arrivals } = connections;
        let at_once = match arrivals {
            Arrivals::Workers { parallel, .. } => parallel.min(count),
            Arrivals::Rate(_) => 1,
        };
        let due = (0..at_once).map(|_| start).collect();
        Self { size, arrivals, start, left: count, begun: 0, open: 0, due }
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.due.front().copied()
    }

    pub(super) fn take(&mut self, now: Time) -> Option<Demand> {
        self.due.front().filter(|at| **at <= now)?;
        self.due.pop_front();
        self.left -= 1;
        self.begun += 1;
        self.open += 1;
        if let Arrivals::Rate(per_second) = self.arrivals {
            // from the start, so that roundings do not add up
            self.plan(self.start + Duration::from_nanos((f64::from(self.begun) * 1e9 / per_second) as u64));
        }
        Some(Demand::Open { bytes: self.size, task: Task::Series })
    }

    /// One is over.
    pub(super) fn done(&mut self, now: Time) {
        self.open -= 1;
        if let Arrivals::Workers { think, .. } = self.arrivals {
            // all think for the same time, so the order of the ends is that of the beginnings
            self.plan(now + think);
        }
    }

    /// Another one begins then, if there is one left for it.
    fn plan(&mut self, at: Time) {
        if self.due.len() < self.left as usize {
            self.due.push_back(at);
        }
    }

    /// Those that have not begun never will.
    pub(super) fn stop(&mut self) {
        self.left = 0;
        self.due.clear();
    }

    /// All are over.
    pub(super) const fn is_over(&self) -> bool {
        self.left == 0 && self.open == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 60_000;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// When the connections of a source begin that starts at 10 ms, if each takes 100 ms.
    fn begins(source: &str, stop: Option<u64>) -> Vec<u64> {
        let Ok(crate::scenario::Source::Connections(connections)) = source.parse() else { panic!("{source}") };
        let mut series = Series::new(&connections, ms(10));
        let (mut ends, mut begins, mut stop) = (VecDeque::new(), Vec::new(), stop.map(ms));
        while let Some(now) = series.next().into_iter().chain(ends.front().copied()).chain(stop).min() {
            assert!(!series.is_over(), "{source}: there is more");
            let not_due = series.next().is_some_and(|next| next > now);
            assert!(!not_due || series.take(now).is_none(), "{source}: nothing before its time");
            if stop.take_if(|stop| *stop == now).is_some() {
                series.stop();
            } else if ends.front() == Some(&now) {
                ends.pop_front();
                series.done(now);
            } else {
                assert_eq!(series.take(now), Some(Demand::Open { bytes: SIZE, task: Task::Series }), "{source}");
                begins.push(now.as_nanos() / 1_000_000);
                ends.push_back(now + Duration::from_millis(100));
            }
        }
        assert!(series.is_over(), "{source}");
        begins
    }

    #[test]
    fn connections_begin_when_the_program_opens_them() {
        for (source, stop, expected) in [
            ("count=3", None, &[10, 110, 210][..]),
            ("count=3,think=50ms", None, &[10, 160, 310]),
            ("count=3,parallel=3", None, &[10, 10, 10]),
            ("count=3,parallel=9", None, &[10, 10, 10]),
            ("count=5,parallel=2", None, &[10, 10, 110, 110, 210]),
            ("count=5,parallel=2,think=1ms", None, &[10, 10, 111, 111, 212]),
            ("count=4,rate=50", None, &[10, 30, 50, 70]), // whether or not those before are over
            ("count=4,rate=3", None, &[10, 343, 676, 1010]), // and no rounding adds up
            ("count=9,parallel=2", Some(150), &[10, 10, 110, 110]),
            ("count=9,rate=50", Some(60), &[10, 30, 50]),
            ("count=9,think=1s", Some(500), &[10]), // while it thinks
        ] {
            assert_eq!(begins(&format!("connections:size=60kB,{source}"), stop), expected, "{source}");
        }
    }
}
