// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goals and decisions as the BPF programs have them.

use std::time::Duration;

use lowtide_deadline::Outlook;

use super::{GoalRecord, SocketDecision};
use crate::{
    bpf_skel::types,
    fixed::pressure_value,
    socket_record::{in_flight, is_sending},
};

/// `None`: the socket has no goal, or none that a governor can follow.
pub(crate) fn goal_record(record: &types::lt_socket_record, closed: bool, now_ns: u64) -> Option<GoalRecord> {
    if record.goal.id == 0 || record.goal.size == 0 {
        return None;
    }
    let known = |us: u32| (us > 0).then(|| Duration::from_micros(us.into()));
    Some(GoalRecord {
        id: record.goal.id,
        serial: record.goal.serial,
        size: record.goal.size,
        acknowledged_before: record.goal.acked_before,
        acknowledged: record.acked,
        left_ns: record.left_ns,
        closed,
        sending: !closed && is_sending(record, now_ns),
        active: record.unsent > 0 || record.packets_out > 0,
        backlogged: record.unsent > 0,
        in_flight_bytes: in_flight(record),
        rtt: known(record.srtt_us),
        min_rtt: known(record.min_rtt_us),
    })
}

pub(crate) fn decision_value(decision: &SocketDecision) -> types::lt_decision {
    let answer = answer(decision);
    types::lt_decision {
        serial: decision.serial,
        pressure: pressure_value(&decision.pressure),
        weight: answer.weight.to_bits(),
        target_rate: answer.target_rate,
        achieved_rate: answer.achieved_rate,
        expected_ns: answer.expected_ns,
        outlook: answer.outlook,
        governed: (!decision.over).into(),
    }
}

/// The controller's part of `struct lowtide_status`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    pub(super) weight: f64,
    pub(super) target_rate: u64,
    pub(super) achieved_rate: u64,
    /// From now; −1: unknown.
    pub(super) expected_ns: i64,
    /// `enum lowtide_outlook`.
    pub(super) outlook: u32,
}

pub(super) fn answer(decision: &SocketDecision) -> Answer {
    let SocketDecision { now, decision, .. } = decision;
    let expected = decision.outlook.expected().map(|time| time.since(*now).as_nanos());
    Answer {
        weight: decision.weight.get(),
        target_rate: decision.target_rate.map_or(0, |rate| rate.ceil() as u64),
        achieved_rate: decision.achieved_rate as u64,
        expected_ns: expected.map_or(-1, |ns| i64::try_from(ns).unwrap_or(i64::MAX)),
        outlook: match decision.outlook {
            Outlook::TooEarly | Outlook::NoDeadline { .. } => 0,
            Outlook::OnCourse { .. } => 1,
            Outlook::CannotFinish { .. } => 2,
            Outlook::ProgramLimited { .. } => 3,
            Outlook::Stalled { .. } => 4,
            Outlook::Overdue { .. } => 5,
            Outlook::Done => 6,
            Outlook::SizeExceeded { .. } => 7,
            Outlook::Behind { .. } => 8,
            Outlook::Waiting { .. } => 9,
        },
    }
}
