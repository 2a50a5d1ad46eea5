// SPDX-License-Identifier: MIT OR Apache-2.0
//! Governors of sockets, from their records to what their programs read.

use lowtide_deadline::Control;

use super::{wire::answer, *};
use crate::bpf_skel::types;

const MB: u64 = 1_000_000;

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// What the whole transfer tells: nothing but the time.
fn seen_at(ms: u64) -> Progress {
    Progress { now: at(ms), ..Progress::default() }
}

/// A socket that was given `size` bytes for 60 s.
fn record(id: u64, size: u64) -> GoalRecord {
    GoalRecord {
        id,
        serial: 1,
        size,
        acknowledged_before: 0,
        acknowledged: 0,
        left_ns: 60_000_000_000,
        closed: false,
        sending: true,
        active: true,
        backlogged: true,
        in_flight_bytes: 0,
        rtt: Some(Duration::from_millis(40)),
        min_rtt: Some(Duration::from_millis(40)),
    }
}

/// Ticks of 250 ms for a socket that moves `rate` bytes per second, until `end` ms.
fn run(goals: &mut Goals, mut socket: GoalRecord, rate: u64, from: u64, end: u64) -> SocketGoal {
    let mut last = None;
    let (before, left) = (socket.acknowledged, socket.left_ns);
    for ms in (from..=end).step_by(250) {
        socket.acknowledged = before + rate * (ms - from) / 1000;
        socket.left_ns = left - ((ms - from) * 1_000_000) as i64;
        last = Some(goals.tick(&[socket], &seen_at(ms)).0[0]);
    }
    last.expect("at least one tick")
}

fn weight(goal: &SocketGoal) -> f64 {
    goal.decision.unwrap().weight.get()
}

#[test]
fn each_socket_has_a_governor_of_its_own() {
    let mut goals = Goals::new(Policy::default());
    let (mut slow, mut fast) = (record(1, 60 * MB), record(2, 6 * MB));
    let mut seen = Vec::new();
    for ms in (0..=30_000).step_by(250) {
        (slow.acknowledged, fast.acknowledged) = (100 * ms, 400 * ms);
        seen = goals.tick(&[slow, fast], &seen_at(ms)).0;
    }
    assert!(weight(&seen[0]) > 0.3, "one is far behind: {}", weight(&seen[0]));
    assert_eq!(weight(&seen[1]), 0.004, "the other ahead");
    assert!(seen[1].decision.unwrap().outlook.is_complete());
}

#[test]
fn bytes_before_the_call_do_not_count() {
    let mut goals = Goals::new(Policy::default());
    let socket = GoalRecord { acknowledged_before: 500 * MB, acknowledged: 500 * MB, ..record(1, 6 * MB) };
    let goal = run(&mut goals, socket, 100_000, 0, 1000);
    assert_eq!(goal.acknowledged, 100_000);
    assert_eq!(goal.deadline, at(60_000));
    let needed = goal.decision.unwrap().target_rate.unwrap();
    assert!((100_000.0..110_000.0).contains(&needed), "{needed}");
}

#[test]
fn another_goal_keeps_what_was_learned_and_counts_from_its_call() {
    let mut goals = Goals::new(Policy::default());
    let pressed = run(&mut goals, record(1, 60 * MB), 100_000, 0, 30_000);
    let next = GoalRecord { serial: 2, acknowledged_before: 3 * MB, acknowledged: 3 * MB, ..record(1, 10 * MB) };
    let goal = goals.tick(&[next], &seen_at(30_250)).0[0];
    assert_eq!(goal.deadline, at(90_250));
    assert_eq!(weight(&goal), weight(&pressed));
    let needed = goal.decision.unwrap().target_rate.unwrap();
    assert!((160_000.0..190_000.0).contains(&needed), "10 MB in 60 s: {needed}");
}

#[test]
fn a_deadline_in_the_past_is_overdue_and_an_ordinary_flow() {
    let mut goals = Goals::new(Policy::default());
    let late = GoalRecord { left_ns: -5, ..record(1, MB) };
    goals.tick(&[late], &seen_at(0));
    let goal = goals.tick(&[late], &seen_at(250)).0[0];
    assert_eq!(weight(&goal), 1.0);
    assert!(matches!(goal.decision.unwrap().outlook, Outlook::Overdue { .. }) && !goal.over);
}

#[test]
fn a_goal_that_is_met_ends_at_its_deadline() {
    let mut goals = Goals::new(Policy::default());
    let met = run(&mut goals, record(1, 6 * MB), 150_000, 0, 40_500);
    assert!(met.decision.unwrap().outlook.is_complete() && !met.over, "framing may still be under way");
    let idle = GoalRecord { acknowledged: met.acknowledged, left_ns: 19_000_000_000, ..record(1, 6 * MB) };
    assert!(run(&mut goals, idle, 0, 40_750, 61_000).over);
    // or with clearly more than it asked for
    let mut goals = Goals::new(Policy::default());
    assert!(run(&mut goals, record(1, MB), 150_000, 0, 8_000).over);
}

#[test]
fn sockets_that_close_or_lose_their_goal_are_forgotten() {
    let mut goals = Goals::new(Policy::default());
    assert_eq!(goals.tick(&[record(1, MB), record(2, MB)], &seen_at(0)).1, [0; 0]);
    let closed = GoalRecord { closed: true, acknowledged: MB, ..record(1, MB) };
    let (seen, gone) = goals.tick(&[record(2, MB), closed], &seen_at(250));
    assert_eq!(gone, [1]);
    assert!(seen[1].closed && seen[1].decision.unwrap().outlook == Outlook::Done);
    let unseen = GoalRecord { closed: true, ..record(3, MB) };
    let (seen, gone) = goals.tick(&[unseen], &seen_at(500));
    assert_eq!((gone, seen[0].decision), (vec![2], None));
    assert!(goals.members.is_empty());
}

#[test]
fn a_record_without_a_whole_goal_is_none() {
    let goal = |id, size, left_ns| types::lt_socket_record {
        goal: types::lt_goal { id, serial: 1, size, ..Default::default() },
        left_ns,
        ..Default::default()
    };
    for (record, is_goal) in
        [(goal(0, 0, 0), false), (goal(1, 0, 1), false), (goal(0, 1, 1), false), (goal(1, u64::MAX, i64::MIN), true)]
    {
        let found = goal_record(&record, false, 0);
        assert_eq!(found.is_some(), is_goal, "{found:?}");
        Goals::new(Policy::default()).tick(&found.into_iter().collect::<Vec<_>>(), &seen_at(0));
    }
}

#[test]
fn a_goal_that_no_governor_follows_has_no_decision_and_leaves_the_one_before() {
    let mut goals = Goals::new(Policy::default());
    assert_eq!(goals.tick(&[record(1, 0)], &seen_at(0)).0[0].decision, None);
    goals.tick(&[record(2, MB)], &seen_at(250));
    let impossible = GoalRecord { serial: 2, ..record(2, 0) };
    assert_eq!(goals.tick(&[impossible], &seen_at(500)).0[0].decision, None);
    let next = GoalRecord { serial: 3, ..record(2, 2 * MB) };
    assert!(goals.tick(&[next], &seen_at(750)).0[0].decision.is_some());
}

#[test]
fn what_the_program_reads() {
    let mut goals = Goals::new(Policy::default());
    let goal = run(&mut goals, record(1, 6 * MB), 90_000, 0, 20_000);
    let read = |decision: Decision| {
        let (id, serial, over) = (1, 1, false);
        answer(&SocketDecision { id, serial, pressure: Pressure::default(), over, now: at(20_000), decision })
    };
    let decision = goal.decision.unwrap();
    let told = read(decision);
    assert_eq!((told.weight, told.achieved_rate), (weight(&goal), 90_000));
    assert!((100_000..130_000).contains(&told.target_rate), "{told:?}");
    for (outlook, code, expected_ns) in [
        (Outlook::TooEarly, 0, -1),
        (Outlook::OnCourse { expected: at(21_000) }, 1, 1_000_000_000),
        (Outlook::CannotFinish { expected: at(80_000), at_ceiling_rate: 1.0 }, 2, 60_000_000_000),
        (Outlook::ProgramLimited { expected: None }, 3, -1),
        (Outlook::Stalled { since: at(0) }, 4, -1),
        (Outlook::Overdue { expected: Some(Time::MAX) }, 5, i64::MAX),
        (Outlook::Done, 6, -1),
        (Outlook::SizeExceeded { by: 1 }, 7, -1),
        (Outlook::Behind { expected: Some(at(70_000)), can_press: true }, 8, 50_000_000_000),
        (Outlook::Waiting { connected: true }, 9, -1),
    ] {
        let told = read(Decision { outlook, ..decision });
        assert_eq!((told.outlook, told.expected_ns), (code, expected_ns), "{outlook:?}");
    }
}

#[test]
fn model_based_control_can_be_chosen() {
    let mut goals = Goals::new(Policy { control: Control::ModelBased(None), ..Policy::default() });
    let goal = run(&mut goals, record(1, 60 * MB), 100_000, 0, 30_000);
    assert!(goal.decision.unwrap().basis.to_string().contains("no model"));
}
