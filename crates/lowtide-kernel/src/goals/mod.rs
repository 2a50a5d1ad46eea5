// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goals of single sockets: a governor for each, the same as the transfer's, and the answer that the socket's program
//! gets.

mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lowtide_deadline::{Decision, Goal, Governor, Outlook, Policy, Progress, Time};

pub(crate) use wire::{decision_value, goal_record};

use crate::Pressure;

/// As many as the kernel has room for decisions on: twice LOWTIDE_GOALS_MAX, since some sockets close and others get a
/// goal during a look.
const MOST: usize = 8192;

/// A socket with a goal, as the kernel tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GoalRecord {
    /// Of the socket among those that were given a goal; greater than 0.
    pub(crate) id: u64,
    /// Counts the goals of this socket.
    pub(crate) serial: u64,
    /// Bytes to be acknowledged from when the goal was set; greater than 0.
    pub(crate) size: u64,
    /// Bytes acknowledged when the goal was set, and now.
    pub(crate) acknowledged_before: u64,
    pub(crate) acknowledged: u64,
    /// Until the deadline, negative past it.
    pub(crate) left_ns: i64,
    /// The last word on a socket that has closed.
    pub(crate) closed: bool,
    pub(crate) sending: bool,
    pub(crate) active: bool,
    pub(crate) backlogged: bool,
    /// Payload sent and not yet acknowledged, in whole segments.
    pub(crate) in_flight_bytes: u64,
    pub(crate) rtt: Option<Duration>,
    pub(crate) min_rtt: Option<Duration>,
}

/// A socket with a goal of its own, as one tick saw it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SocketGoal {
    /// Of the socket among those that were given a goal.
    pub id: u64,
    /// Counts the goals of this socket.
    pub serial: u64,
    /// Bytes to be acknowledged from when the goal was set.
    pub size: u64,
    /// Bytes of them acknowledged so far; may exceed the size.
    pub acknowledged: u64,
    /// When they are to be.
    pub deadline: Time,
    /// The socket has closed; this is its last record.
    pub closed: bool,
    /// What its governor decided; `None` for a socket that closed before it was seen, or where there are too many.
    pub decision: Option<Decision>,
    /// The goal has been met and no longer counts: the socket shares the others' weight.
    pub over: bool,
    /// It counts among the sockets that share the budget.
    pub sending: bool,
}

/// What one socket is to do, and the answer that its program gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SocketDecision {
    pub(crate) id: u64,
    pub(crate) serial: u64,
    pub(crate) pressure: Pressure,
    pub(crate) over: bool,
    pub(crate) now: Time,
    pub(crate) decision: Decision,
}

#[derive(Debug)]
struct Member {
    governor: Governor,
    /// Bytes that the socket had had acknowledged when the governor began.
    origin: u64,
    serial: u64,
    deadline: Time,
}

impl Member {
    /// `None`: no governor follows such a goal.
    fn new(policy: Policy, record: &GoalRecord, now: Time) -> Option<Member> {
        let deadline = deadline(record, now);
        let goal = Goal { size: Some(record.size), deadline: Some(deadline) };
        let governor = Governor::new(policy, goal, now).ok()?;
        Some(Member { governor, origin: record.acknowledged_before, serial: record.serial, deadline })
    }

    /// Another goal for the same socket: what was learned of the network stays, and the weight. One that no governor
    /// follows leaves the old one.
    fn follow(&mut self, record: &GoalRecord, now: Time) {
        let deadline = deadline(record, now);
        let size = record.acknowledged_before.saturating_sub(self.origin).saturating_add(record.size);
        let goal = Goal { size: Some(size), deadline: Some(deadline) };
        if self.governor.set_goal(goal, now).is_ok() {
            (self.serial, self.deadline) = (record.serial, deadline);
        }
    }

    /// `all` is of the whole transfer: prices are the network's, so the signals of all its sockets tell more of them
    /// than its own.
    fn tick(&mut self, record: &GoalRecord, all: &Progress) -> Decision {
        self.governor.tick(&Progress {
            acknowledged_bytes: record.acknowledged.saturating_sub(self.origin),
            active: record.active,
            app_limited: !record.backlogged,
            in_flight_bytes: record.in_flight_bytes,
            connected: true,
            rtt: record.rtt,
            min_rtt: record.min_rtt,
            ..*all
        })
    }
}

/// In the controller's time; one that passed before the first look passes at once.
fn deadline(record: &GoalRecord, now: Time) -> Time {
    now + Duration::from_nanos(record.left_ns.max(1) as u64)
}

/// The governors of all sockets with a goal of their own.
#[derive(Debug)]
pub(crate) struct Goals {
    policy: Policy,
    members: BTreeMap<u64, Member>,
}

impl Goals {
    /// Governors under `policy`: the same bounds and the same control as the transfer's.
    pub(crate) fn new(policy: Policy) -> Goals {
        Goals { policy, members: BTreeMap::new() }
    }

    /// Lets each governor decide, when `all` was seen of the whole transfer. Sockets that closed, or are not among
    /// `records` any more, have lost their goal: those are the second answer.
    pub(crate) fn tick(&mut self, records: &[GoalRecord], all: &Progress) -> (Vec<SocketGoal>, Vec<u64>) {
        let goals = records.iter().map(|record| self.look_at(record, all)).collect();
        let closed: BTreeSet<u64> = records.iter().filter(|record| record.closed).map(|record| record.id).collect();
        let open: BTreeSet<u64> = records.iter().map(|record| record.id).filter(|id| !closed.contains(id)).collect();
        let gone = self.members.keys().copied().filter(|id| !open.contains(id)).collect();
        self.members.retain(|id, _| open.contains(id));
        (goals, gone)
    }

    fn look_at(&mut self, record: &GoalRecord, all: &Progress) -> SocketGoal {
        let now = all.now;
        let room = self.members.len() < MOST;
        if !record.closed {
            match self.members.get_mut(&record.id) {
                Some(member) if member.serial != record.serial => member.follow(record, now),
                None if room => {
                    let member = Member::new(self.policy, record, now);
                    self.members.extend(member.map(|member| (record.id, member)));
                }
                Some(_) | None => {}
            }
        }
        let member = self.members.get_mut(&record.id).filter(|member| member.serial == record.serial);
        let decided = member.map(|member| (member.deadline, member.tick(record, all)));
        let decision = decided.map(|(_, decision)| decision);
        let deadline = decided.map_or_else(|| deadline(record, now), |(deadline, _)| deadline);
        SocketGoal {
            id: record.id,
            serial: record.serial,
            size: record.size,
            acknowledged: record.acknowledged.saturating_sub(record.acknowledged_before),
            deadline,
            closed: record.closed,
            decision,
            over: decision.is_some_and(|decision| is_over(&decision, now >= deadline)),
            sending: record.sending,
        }
    }
}

/// A goal that is met ends at its deadline: until then what framing and retries add is still to get through. Or when
/// clearly more was sent than that.
fn is_over(decision: &Decision, past_deadline: bool) -> bool {
    match decision.outlook {
        Outlook::Done => past_deadline,
        Outlook::SizeExceeded { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
