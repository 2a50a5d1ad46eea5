// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose turn it is among transfers that share one budget. Each of them computes it for itself, from the same members
//! in the same order, and so all come to the same schedule.

use std::time::Duration;

use crate::{
    Time, Turn,
    schedule::{Job, turns},
};

/// What has to be sent within less than this is no rate to aim for.
const MOMENT: Duration = Duration::from_millis(500);

/// A transfer with a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// When it is due.
    pub deadline: Time,
    /// When it means to be done, a little before that.
    pub aim: Time,
    /// Bytes left.
    pub left: u64,
    /// From when on it can use its turn; `None`: it has nothing to send at the moment.
    pub from: Option<Time>,
}

impl Member {
    /// What it has in the schedule; `None` if it is late, or has nothing to send.
    fn job(&self, now: Time) -> Option<Job> {
        let release = self.from?.max(now);
        let due = if self.aim > release + MOMENT { self.aim } else { self.deadline };
        (self.left > 0 && due > release).then_some(Job { release, due, bytes: self.left as f64 })
    }

    fn is_late(&self, now: Time) -> bool {
        self.left > 0 && self.deadline <= now
    }
}

/// What the member of this number is to do at `now`; `None`: its own goal alone rules. Those that are late come after
/// those that can still be on time, and one after the other.
///
/// # Panics
/// There is no such member.
#[must_use]
pub fn turn(members: &[Member], own: usize, now: Time) -> Option<Turn> {
    let (places, jobs): (Vec<_>, Vec<_>) =
        members.iter().enumerate().filter_map(|(n, member)| Some((n, member.job(now)?))).unzip();
    if let Some(place) = places.iter().position(|n| *n == own) {
        return (jobs.len() > 1).then(|| turns(&jobs, now)[place]);
    }
    if !members[own].is_late(now) {
        return None;
    }
    let late = (0..members.len()).filter(|n| members[*n].is_late(now));
    let first = late.min_by_key(|n| members[*n].deadline);
    let alone = jobs.is_empty() && first == Some(own);
    (!alone).then_some(Turn { rate: 0.0, done: Time::MAX })
}
