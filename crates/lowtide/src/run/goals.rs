// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of the goals that PROGRAM set on sockets of its own.

use std::collections::BTreeMap;

use lowtide_deadline::{Outlook, Time};
use lowtide_kernel::SocketGoal;

/// Goals reported one by one; of those that come later only the counts are kept.
const LIMIT: usize = 1000;

/// One goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    /// When it was first seen, up to a tick after the call.
    pub(super) seen: Time,
    pub(super) size: u64,
    pub(super) acknowledged: u64,
    pub(super) deadline: Time,
    pub(super) completed: Option<Time>,
    /// When the socket closed, or its goal was replaced or cleared.
    pub(super) ended: Option<Time>,
    /// Least and greatest weight.
    pub(super) weights: Option<(f64, f64)>,
    behind: bool,
}

impl Entry {
    fn new(goal: &SocketGoal, now: Time) -> Entry {
        Entry {
            seen: now,
            size: goal.size,
            acknowledged: 0,
            deadline: goal.deadline,
            completed: None,
            ended: None,
            weights: None,
            behind: false,
        }
    }

    fn update(&mut self, goal: &SocketGoal, now: Time) {
        self.acknowledged = self.acknowledged.max(goal.acknowledged);
        if self.acknowledged >= self.size {
            self.completed.get_or_insert(now);
        }
        let Some(decision) = goal.decision else { return };
        if !goal.over {
            let w = decision.weight.get();
            self.weights = Some(self.weights.map_or((w, w), |(least, most)| (w.min(least), w.max(most))));
        }
        self.behind =
            matches!(decision.outlook, Outlook::Behind { .. } | Outlook::CannotFinish { .. } | Outlook::Overdue { .. });
    }

    /// By the time of its last byte, or of its end past the deadline; one that was given up earlier says nothing.
    pub(super) fn met(&self) -> Option<bool> {
        match (self.completed, self.ended) {
            (Some(completed), _) => Some(completed <= self.deadline),
            (None, Some(ended)) => (ended > self.deadline).then_some(false),
            (None, None) => None,
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Goals {
    open: BTreeMap<(u64, u64), Entry>,
    ended: Vec<Entry>,
    counts: Counts,
}

/// How many there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) number: u64,
    pub(super) met: u64,
    pub(super) missed: u64,
}

/// Goals that are not yet met, at one instant, and how many of them are behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) number: u32,
    pub(super) behind: u32,
}

impl Counts {
    fn add(&mut self, met: Option<bool>) {
        self.number += 1;
        self.met += u64::from(met == Some(true));
        self.missed += u64::from(met == Some(false));
    }
}

impl Goals {
    pub(super) fn record(&mut self, now: Time, goals: &[SocketGoal]) {
        let mut gone = std::mem::take(&mut self.open);
        for goal in goals {
            let key = (goal.id, goal.serial);
            let known = gone.remove(&key).or_else(|| self.open.remove(&key));
            let mut entry = known.unwrap_or_else(|| Entry::new(goal, now));
            entry.update(goal, now);
            if goal.closed {
                self.end(entry, now);
            } else {
                self.open.insert(key, entry);
            }
        }
        for entry in gone.into_values() {
            self.end(entry, now);
        }
    }

    fn end(&mut self, mut entry: Entry, now: Time) {
        entry.ended = Some(now);
        self.counts.add(entry.met());
        if self.ended.len() < LIMIT {
            self.ended.push(entry);
        }
    }

    /// Of all goals, the open ones included.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = self.counts;
        self.open.values().for_each(|entry| counts.add(entry.met()));
        counts
    }

    /// One by one, the ended ones first, as many as are kept.
    pub(super) fn list(&self) -> impl Iterator<Item = &Entry> {
        self.ended.iter().chain(self.open.values()).take(LIMIT)
    }

    /// Those that are not yet met.
    pub(super) fn open(&self) -> Open {
        let open = self.open.values().filter(|entry| entry.completed.is_none());
        open.fold(Open::default(), |Open { number, behind }, entry| Open {
            number: number + 1,
            behind: behind + u32::from(entry.behind),
        })
    }

    /// For the live line; empty without goals.
    pub(super) fn phrase(&self) -> String {
        match self.open() {
            Open { number: 0, .. } => String::new(),
            Open { number, behind: 0 } => format!(" · {number} own goals"),
            Open { number, behind } => format!(" · {number} own goals, {behind} behind"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    /// A goal of 100 bytes, due after 10 s.
    fn goal(id: u64, acknowledged: u64) -> SocketGoal {
        SocketGoal { id, serial: 1, size: 100, acknowledged, deadline: at(10), ..SocketGoal::default() }
    }

    #[test]
    fn goals_are_met_missed_or_given_up() {
        let mut goals = Goals::default();
        goals.record(at(1), &[goal(1, 10), goal(2, 10), goal(3, 10), goal(4, 10)]);
        assert_eq!(goals.phrase(), " · 4 own goals");
        // the first is through, the second closes early, the third is replaced
        let closed = SocketGoal { closed: true, ..goal(2, 50) };
        let replaced = SocketGoal { serial: 2, deadline: at(20), ..goal(3, 0) };
        goals.record(at(9), &[goal(1, 100), replaced, goal(4, 99), closed]);
        assert_eq!(goals.counts(), Counts { number: 5, met: 1, missed: 0 });
        goals.record(at(12), &[SocketGoal { closed: true, ..goal(4, 99) }]);
        assert_eq!(goals.counts(), Counts { number: 5, met: 1, missed: 1 });
        assert_eq!(goals.phrase(), "");
        let told: Vec<_> = goals.list().map(|entry| (entry.acknowledged, entry.met())).collect();
        assert_eq!(told.len(), 5);
        assert!(told.contains(&(100, Some(true))) && told.contains(&(50, None)) && told.contains(&(99, Some(false))));
    }

    #[test]
    fn a_socket_that_closes_between_two_ticks_has_its_last_word() {
        let mut goals = Goals::default();
        goals.record(at(1), &[goal(1, 10)]);
        goals.record(at(2), &[goal(1, 60), SocketGoal { closed: true, ..goal(1, 100) }]);
        assert_eq!(goals.counts(), Counts { number: 1, met: 1, missed: 0 });
    }

    #[test]
    fn of_very_many_only_the_counts_are_kept() {
        let mut goals = Goals::default();
        for id in 1..=2 * LIMIT as u64 {
            goals.record(at(1), &[SocketGoal { closed: true, ..goal(id, 100) }]);
        }
        assert_eq!(goals.counts().met, 2 * LIMIT as u64);
        assert_eq!(goals.list().count(), LIMIT);
    }
}
