// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an operator changes while a transfer runs.

use std::time::Duration;

use lowtide_deadline::{
    Bounds, Decision, Goal, Governor, NOMINAL_INTERVAL, Outlook, Policy, Progress, Rates, Time, update_interval,
};

const MEGA: u64 = 1_000_000;

fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

fn governor(goal: Goal) -> Governor {
    Governor::new(Policy::default(), goal, Time::ZERO).unwrap()
}

/// Runs from one instant to another, at a rate in bytes per second that grows with the weight.
fn drive(g: &mut Governor, (from, to): (f64, f64), sent: &mut f64, rate: impl Fn(f64) -> f64) -> Decision {
    let mut decision = None;
    for tick in (from * 10.0) as u64..(to * 10.0) as u64 {
        *sent += rate(g.weight().get()) / 10.0;
        decision = Some(g.tick(&progress((tick + 1) as f64 / 10.0, *sent)));
    }
    decision.unwrap()
}

fn progress(now: f64, sent: f64) -> Progress {
    Progress {
        now: at(now),
        acknowledged_bytes: sent as u64,
        active: true,
        connected: true,
        rtt: Some(Duration::from_millis(40)),
        ..Progress::default()
    }
}

#[test]
fn a_least_rate_presses_without_a_deadline_and_lets_go() {
    let mut g = governor(Goal::default());
    let mut sent = 0.0;
    let rate = |w: f64| 1e6 * w.sqrt();
    assert_eq!(drive(&mut g, (0.0, 60.0), &mut sent, rate).weight.get(), 0.004);
    g.set_rates(Rates { least: Some(0.5e6), most: None });
    let decision = drive(&mut g, (60.0, 3000.0), &mut sent, rate);
    assert_eq!(decision.target_rate, Some(0.5e6));
    assert!((decision.achieved_rate / 0.5e6 - 1.0).abs() < 0.05, "{decision:?}");
    g.set_rates(Rates::default());
    let decision = drive(&mut g, (3000.0, 3001.0), &mut sent, rate);
    assert_eq!((decision.weight.get(), decision.target_rate), (0.004, None));
}

#[test]
fn what_a_limit_holds_back_is_no_reason_to_press() {
    // 100 MB in 100 s need 1 MB/s; the limit is a fourth of that, and the transfer is held to it
    let goal = Goal { size: Some(100 * MEGA), deadline: Some(at(100.0)) };
    for (most, presses) in [(None, true), (Some(0.25e6), false)] {
        let mut g = governor(goal);
        g.set_rates(Rates { least: None, most });
        let mut sent = 0.0;
        let decision = drive(&mut g, (0.0, 60.0), &mut sent, |_| 0.25e6);
        assert_eq!(decision.weight.get() > 0.1, presses, "{decision:?}");
    }
}

#[test]
fn a_range_of_weights_holds_at_once() {
    let goal = Goal { size: Some(100 * MEGA), deadline: Some(at(100.0)) };
    let mut g = governor(goal);
    let mut sent = 0.0;
    assert!(drive(&mut g, (0.0, 60.0), &mut sent, |_| 0.25e6).weight.get() > 0.5);
    g.set_bounds(Bounds::new(0.004, 0.5).unwrap());
    assert_eq!(g.weight().get(), 0.5);
    assert!(drive(&mut g, (60.0, 90.0), &mut sent, |_| 0.25e6).weight.get() <= 0.5);
    let past = drive(&mut g, (90.0, 110.0), &mut sent, |_| 0.25e6);
    assert_eq!(past.weight.get(), 0.5, "past its deadline, too");
    g.set_bounds(Bounds::new(0.004, 1.0).unwrap());
    assert_eq!(g.weight().get(), 1.0, "and then it may be an ordinary flow");
}

#[test]
fn what_happens_in_a_pause_counts_for_nothing() {
    let goal = Goal { size: Some(1000 * MEGA), deadline: Some(at(1000.0)) };
    let mut g = governor(goal);
    let mut sent = 0.0;
    let before = drive(&mut g, (0.0, 200.0), &mut sent, |_| 1.1e6);
    let smoothed = g.forecast().smoothed_rate();
    for second in 200..260 {
        sent += 2e3;
        g.skip(&progress(f64::from(second), sent));
    }
    assert_eq!(g.weight(), before.weight);
    assert_eq!(g.forecast().smoothed_rate(), smoothed);
    let after = drive(&mut g, (260.0, 261.0), &mut sent, |_| 1.1e6);
    assert!(!matches!(after.outlook, Outlook::Stalled { .. } | Outlook::Waiting { .. }), "{after:?}");
    assert!(after.target_rate.unwrap() > before.target_rate.unwrap(), "the time is gone all the same");
}

/// A size that is estimated again four times a second is the same goal: the transfer goes as one whose size was known.
#[test]
fn a_better_estimate_of_the_size_begins_nothing_anew() {
    let goal = |size: u64| Goal { size: Some(size), deadline: Some(at(200.0)) };
    let (mut known, mut told) = (governor(goal(100 * MEGA)), governor(goal(90 * MEGA)));
    let (mut sent, mut of_told) = (0.0, 0.0);
    let rate = |w: f64| 1e6 * w.sqrt();
    told.set_size(100 * MEGA);
    assert_eq!((told.aim(), told.goal()), (known.aim(), goal(100 * MEGA)));
    for step in 0..760 {
        let (from, to) = (f64::from(step) / 4.0, f64::from(step + 1) / 4.0);
        let (a, b) = (drive(&mut known, (from, to), &mut sent, rate), drive(&mut told, (from, to), &mut of_told, rate));
        assert_eq!((a, known.aim()), (b, told.aim()), "after {to} s");
        told.set_size(100 * MEGA);
    }
    assert!(sent > 80e6, "{sent}");
    // what is reported grows and shrinks; without a goal it is nothing
    told.set_size(0);
    assert_eq!(told.goal().size, Some(1));
    let mut none = governor(Goal::default());
    none.set_size(5);
    assert_eq!(none.goal(), Goal::default());
}

/// A goal that is moved is in force at once, and presses within two update intervals.
#[test]
fn a_deadline_that_comes_closer_is_heeded_within_two_intervals() {
    let size = Some(100 * MEGA);
    for due in [60.0, 200.0, 900.0] {
        let mut g = governor(Goal { size, deadline: Some(at(36_000.0)) });
        let mut sent = 0.0;
        let before = drive(&mut g, (0.0, 300.0), &mut sent, |w| 0.5e6 * w.sqrt());
        assert_eq!(before.weight.get(), 0.004, "there is time");
        g.set_goal(Goal { size, deadline: Some(at(300.0 + due)) }, at(300.0)).unwrap();
        let interval = update_interval(NOMINAL_INTERVAL, Some(Duration::from_secs_f64(due)), None).as_secs_f64();
        let decision = drive(&mut g, (300.0, 300.1), &mut sent, |w| 0.5e6 * w.sqrt());
        assert!(decision.target_rate.unwrap() > (100e6 - sent) / due, "{due}: {decision:?}");
        let decision = drive(&mut g, (300.1, 300.0 + 2.0 * interval), &mut sent, |w| 0.5e6 * w.sqrt());
        assert!(decision.weight.get() > 0.004, "{due}: {decision:?}");
    }
}
