// SPDX-License-Identifier: MIT OR Apache-2.0
//! The governor's rules, one by one.

mod model;
mod outlook;

use lowtide_deadline::{
    Basis, Bounds, Control, Cubic, Decision, FallbackReason, Goal, GoalError, Governor, Model, Outlook, Policy,
    PolicyError, Progress, RatioPolicy, RatioRule, Signal, SignalKind, Signals, Step, Time, WeightControl,
};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MEGA: u64 = 1_000_000;

fn at(seconds: f64) -> Time {
    Time::ZERO.plus_secs_f64(seconds)
}

fn goal(size: u64, deadline: f64) -> Goal {
    Goal { size: Some(size), deadline: Some(at(deadline)) }
}

fn governor(size: u64, deadline: f64) -> Governor {
    Governor::new(Policy::default(), goal(size, deadline), Time::ZERO).unwrap()
}

fn progress(now: f64, acknowledged_bytes: u64) -> Progress {
    Progress {
        now: at(now),
        acknowledged_bytes,
        active: true,
        rtt: Some(Duration::from_millis(40)),
        ..Progress::default()
    }
}

/// Ticks every 0.1 s from `from` to `to` at `rate` bytes per second on top of `sent`.
fn drive(g: &mut Governor, (from, to): (f64, f64), sent: &mut f64, rate: f64, app_limited: bool) -> Decision {
    let mut last = None;
    for n in 1..=((to - from) * 10.0).round() as u64 {
        *sent += rate * 0.1;
        last = Some(g.tick(&Progress { app_limited, ..progress(from + n as f64 * 0.1, *sent as u64) }));
    }
    last.unwrap()
}

#[test]
fn goals_are_checked() {
    let new = |goal| Governor::new(Policy::default(), goal, at(10.0)).map(|_| ());
    let (size, deadline) = (Some(1), Some(at(20.0)));
    assert_eq!(new(Goal { size: None, deadline }), Err(GoalError::SizeUnknown));
    assert_eq!(new(Goal { size: Some(0), deadline: None }), Err(GoalError::SizeZero));
    assert_eq!(new(Goal { size, deadline: Some(at(10.0)) }), Err(GoalError::DeadlinePast));
    assert_eq!(new(Goal { size, deadline }), Ok(()));
    assert_eq!(new(Goal::default()), Ok(()));
    for bad in [0.0, 1.01, f64::NAN] {
        let policy = Policy { increase_limit: bad, ..Policy::default() };
        assert!(matches!(
            Governor::new(policy, Goal::default(), at(0.0)),
            Err(GoalError::Policy(PolicyError::IncreaseLimit(_)))
        ));
    }
    for e in [
        GoalError::SizeUnknown,
        GoalError::SizeZero,
        GoalError::DeadlinePast,
        GoalError::Policy(PolicyError::Alpha(0.0)),
        GoalError::Policy(PolicyError::Model),
        GoalError::Policy(PolicyError::Ratio),
    ] {
        assert!(!e.to_string().is_empty() && !e.to_string().contains('\n'));
    }
}

#[test]
fn without_a_deadline_it_stays_submissive_for_ever() {
    let g = Goal { size: Some(100 * MEGA), deadline: None };
    let mut g = Governor::new(Policy::default(), g, Time::ZERO).unwrap();
    let mut sent = 0.0;
    let d = drive(&mut g, (0.0, 500.0), &mut sent, 1e5, false);
    assert_eq!((d.weight.get(), d.target_rate, d.updated), (0.004, None, false));
    let Outlook::NoDeadline { expected: Some(expected) } = d.outlook else {
        panic!("{d:?}");
    };
    assert!((expected.as_secs_f64() - 1000.0).abs() < 1.0);
}

#[test]
fn nothing_is_known_before_anything_is_measured() {
    let d = governor(MEGA, 100.0).tick(&progress(0.1, 100));
    assert_eq!(d.outlook, Outlook::TooEarly);
    assert_eq!(d.achieved_rate, 1000.0); // what there is of the first interval
    assert!((d.target_rate.unwrap() - (MEGA - 100) as f64 / 94.9).abs() < 1e-6);
}

#[test]
fn updates_come_once_per_interval() {
    let mut g = governor(1000 * MEGA, 60.0);
    let updates: Vec<u64> = (1..=100).filter(|&n| g.tick(&progress(n as f64 * 0.1, n * 1000)).updated).collect();
    assert_eq!(updates, (1..=10).map(|n| n * 10).collect::<Vec<_>>());
}

#[test]
fn past_the_deadline_it_is_an_ordinary_flow() {
    for (w_max, expected) in [(1.0, 1.0), (0.3, 0.3), (4.0, 1.0)] {
        let policy = Policy { bounds: Bounds::new(0.004, w_max).unwrap(), ..Policy::default() };
        let mut g = Governor::new(policy, goal(100 * MEGA, 50.0), Time::ZERO).unwrap();
        let mut sent = 0.0;
        drive(&mut g, (0.0, 49.9), &mut sent, 1e5, false);
        let d = drive(&mut g, (49.9, 60.0), &mut sent, 1e5, false);
        assert_eq!(d.weight.get(), expected);
        assert_eq!(d.target_rate, None);
        let Outlook::Overdue { expected: Some(expected) } = d.outlook else {
            panic!("{d:?}");
        };
        assert!((expected.as_secs_f64() - 1000.0).abs() < 5.0);
    }
}

#[test]
fn overdue_then_given_more_time_it_yields_again() {
    let mut g = governor(100 * MEGA, 50.0);
    let mut sent = 0.0;
    let d = drive(&mut g, (0.0, 60.0), &mut sent, 1e6, false);
    assert_eq!(d.weight.get(), 1.0);
    g.set_goal(goal(100 * MEGA, 600.0), at(60.0)).unwrap();
    let d = drive(&mut g, (60.0, 200.0), &mut sent, 0.2e6, false);
    assert!(d.weight.get() < 0.1, "{d:?}");
    assert!(matches!(d.outlook, Outlook::OnCourse { .. }));
}

#[test]
fn the_announced_size_reached() {
    let mut g = governor(10 * MEGA, 50.0);
    let mut sent = 0.0;
    let before = drive(&mut g, (0.0, 40.0), &mut sent, 0.2e6, false);
    assert!(before.weight.get() > 0.004);
    let d = g.tick(&progress(40.1, 10 * MEGA));
    assert_eq!((d.outlook, d.target_rate), (Outlook::Done, None));
    assert_eq!(d.weight, before.weight);
    // Framing and encryption are not a wrong announcement; a fifth more is.
    assert_eq!(g.tick(&progress(40.2, 10_200_000)).outlook, Outlook::Done);
    let d = g.tick(&progress(45.0, 12 * MEGA));
    assert_eq!(d.outlook, Outlook::SizeExceeded { by: 2 * MEGA });
    assert_eq!(d.weight, before.weight);
    // It must still finish.
    let d = g.tick(&progress(50.0, 13 * MEGA));
    assert_eq!(d.weight.get(), 1.0);
    assert!(d.outlook.is_complete());
}

#[test]
fn a_pause_of_the_program_does_not_wind_the_weight_up() {
    let mut g = governor(40 * MEGA, 50.0);
    let mut sent = 0.0;
    drive(&mut g, (0.0, 10.0), &mut sent, 0.5e6, false);
    let before = g.weight();
    let d = drive(&mut g, (10.0, 30.0), &mut sent, 0.0, true);
    assert!(d.weight <= before, "{before} {d:?}");
    assert!(matches!(d.outlook, Outlook::ProgramLimited { .. }));
    assert!(!d.updated);
    // The same silence of the network's making does.
    let mut g = governor(40 * MEGA, 50.0);
    let mut sent = 0.0;
    drive(&mut g, (0.0, 10.0), &mut sent, 0.5e6, false);
    let d = drive(&mut g, (10.0, 30.0), &mut sent, 0.0, false);
    assert!(d.weight.get() > 3.0 * before.get(), "{d:?}");
}

#[test]
fn an_inactive_transfer_counts_as_paused() {
    let mut g = governor(40 * MEGA, 50.0);
    for n in 1..300 {
        let d = g.tick(&Progress { active: false, ..progress(n as f64 * 0.1, 0) });
        assert_eq!(d.weight.get(), 0.004);
    }
}

#[test]
fn a_pausing_program_that_sends_too_much_is_still_slowed() {
    let mut g = governor(40 * MEGA, 50.0);
    let mut sent = 0.0;
    let high = drive(&mut g, (0.0, 15.0), &mut sent, 0.3e6, false).weight;
    let d = drive(&mut g, (15.0, 20.0), &mut sent, 2e6, true);
    assert!(d.weight < high, "{d:?}");
}

#[test]
fn a_stall_is_named_and_ends() {
    let mut g = governor(40 * MEGA, 50.0);
    let mut sent = 0.0;
    drive(&mut g, (0.0, 20.0), &mut sent, 1e6, false);
    let d = drive(&mut g, (20.0, 25.0), &mut sent, 0.0, false);
    assert_eq!(d.outlook, Outlook::Stalled { since: at(20.0) });
    let d = drive(&mut g, (25.0, 30.0), &mut sent, 1e6, false);
    assert!(!matches!(d.outlook, Outlook::Stalled { .. }), "{d:?}");
}

#[test]
fn silence_counts_only_after_three_intervals() {
    let mut g = governor(40 * MEGA, 60.0);
    let updates: Vec<u64> = (1..=70).filter(|&n| g.tick(&progress(n as f64 * 0.1, 0)).updated).collect();
    assert_eq!(updates, [30, 60]);
}

#[test]
fn a_clock_that_jumps_restarts_the_interval() {
    let mut g = governor(40_000 * MEGA, 8.0 * 3600.0);
    let mut sent = 0.0;
    drive(&mut g, (0.0, 25.0), &mut sent, 1e6, false);
    let before = g.weight();
    // Three hours of sleep: no update, no verdict from it.
    let d = g.tick(&progress(3.0 * 3600.0, sent as u64));
    assert_eq!((d.weight, d.updated), (before, false));
    assert!(!matches!(d.outlook, Outlook::Stalled { .. }));
    assert!((d.achieved_rate - 1e6).abs() < 1e4); // not an average over the sleep
    // Back in time: as if no time had passed.
    let d = g.tick(&progress(1.0, 0));
    assert_eq!((d.weight, d.updated), (before, false));
    let d = drive(&mut g, (10_800.0, 10_815.0), &mut sent, 2e6, false);
    assert!((d.achieved_rate - 2e6).abs() < 1e5, "{d:?}");
}

#[test]
fn goals_move() {
    let mut g = governor(10 * MEGA, 100.0);
    let mut sent = 0.0;
    drive(&mut g, (0.0, 20.0), &mut sent, 0.2e6, false);
    assert_eq!(g.set_goal(Goal { size: None, deadline: Some(at(90.0)) }, at(20.0)), Err(GoalError::SizeUnknown));
    assert_eq!(g.goal(), goal(10 * MEGA, 100.0));

    g.set_goal(goal(50 * MEGA, 80.0), at(20.0)).unwrap();
    assert_eq!(g.aim(), Some(at(77.0))); // three intervals of a second
    let d = drive(&mut g, (20.0, 30.0), &mut sent, 0.2e6, false);
    assert!((d.target_rate.unwrap() - 44e6 / 47.0).abs() < 1e4, "{d:?}");
    assert!(d.weight.get() > 0.004);

    g.set_goal(Goal { size: Some(50 * MEGA), deadline: None }, at(30.0)).unwrap();
    assert_eq!(g.weight().get(), 0.004);
    // Smaller than what is through already.
    g.set_goal(goal(MEGA, 90.0), at(30.0)).unwrap();
    let d = g.tick(&progress(30.1, sent as u64));
    assert!(d.outlook.is_complete());
}

#[test]
fn a_deadline_that_is_moved_into_the_past_is_overdue_at_once() {
    for past in [0.0, 10.0, 20.0] {
        let mut g = governor(100 * MEGA, 3600.0);
        let mut sent = 0.0;
        assert!(drive(&mut g, (0.0, 20.0), &mut sent, 1e6, false).weight.get() < 0.1);
        g.set_goal(goal(100 * MEGA, past), at(20.0)).unwrap();
        let d = g.tick(&progress(20.1, sent as u64));
        assert_eq!((d.weight.get(), d.target_rate), (1.0, None), "{past}");
        assert!(matches!(d.outlook, Outlook::Overdue { .. }), "{past}: {d:?}");
        // and back again it is a deadline as any other
        g.set_goal(goal(100 * MEGA, 3600.0), at(20.2)).unwrap();
        let d = g.tick(&progress(20.3, sent as u64));
        assert!(d.target_rate.is_some() && !matches!(d.outlook, Outlook::Overdue { .. }), "{past}: {d:?}");
    }
}

#[test]
fn the_aim_lies_a_little_before_the_deadline() {
    assert_eq!(governor(MEGA, 36_000.0).aim(), Some(at(36_000.0 - 720.0)));
    assert_eq!(governor(MEGA, 600.0).aim(), Some(at(570.0)));
    assert_eq!(governor(MEGA, 5.0).aim(), Some(at(4.5))); // 10 % at most
    // ζ does not diverge near the aim or after it.
    let mut g = governor(100 * MEGA, 60.0);
    let mut sent = 0.0;
    let d = drive(&mut g, (0.0, 59.5), &mut sent, 1e6, false);
    assert!((d.target_rate.unwrap() - 40.5e6 / 0.5).abs() < 1e6, "{d:?}");
}

#[test]
fn the_increase_limit_follows_the_length_of_the_transfer() {
    assert_eq!(governor(MEGA, 1300.0).increase_limit(), 0.05); // the paper's own case
    assert_eq!(governor(MEGA, 28_800.0).increase_limit(), 0.05);
    let short = governor(MEGA, 60.0).increase_limit();
    assert!((short - 0.05 * 130.0 / 60.0).abs() < 1e-12);
    let policy = Policy { scale_increase_limit: false, ..Policy::default() };
    let g = Governor::new(policy, goal(MEGA, 60.0), Time::ZERO).unwrap();
    assert_eq!(g.increase_limit(), 0.05);
}

#[test]
fn the_round_trip_time_lengthens_the_interval() {
    let mut g = governor(MEGA, 30.0);
    let slow = Progress { rtt: Some(Duration::from_millis(300)), ..progress(0.1, 0) };
    assert_eq!(g.tick(&progress(0.1, 0)).interval, Duration::from_millis(500));
    assert_eq!(g.tick(&slow).interval, Duration::from_secs(3));
    let unknown = Progress { rtt: None, ..slow };
    assert_eq!(g.tick(&unknown).interval, Duration::from_secs(3));
}

/// A law that always requests the same, and records its calls.
#[derive(Debug, Clone)]
struct Recorder {
    asks: f64,
    applied: Arc<Mutex<Vec<(f64, bool)>>>,
    resets: Arc<Mutex<Vec<f64>>>,
}

impl WeightControl for Recorder {
    fn update(&mut self, _: &Step) -> f64 {
        self.asks
    }
    fn applied(&mut self, weight: f64, limited: bool) {
        self.applied.lock().unwrap().push((weight, limited));
    }
    fn reset(&mut self, weight: f64) {
        self.resets.lock().unwrap().push(weight);
    }
    fn set_bounds(&mut self, _: Bounds) {}
}

fn recorded(asks: f64) -> (Recorder, Governor) {
    let recorder = Recorder { asks, applied: Arc::default(), resets: Arc::default() };
    let control = Box::new(recorder.clone());
    let goal = goal(100 * MEGA, 1300.0);
    let g = Governor::with_control(Policy::default(), goal, Time::ZERO, control).unwrap();
    (recorder, g)
}

#[test]
fn another_law_is_limited_and_told_so() {
    let (recorder, mut g) = recorded(7.0); // clamped to 1 first
    let d = drive(&mut g, (0.0, 20.0), &mut 0.0, 1e5, false);
    assert!((d.weight.get() - 0.104).abs() < 1e-12 && d.limited);
    let applied = recorder.applied.lock().unwrap();
    assert_eq!(applied.len(), 2);
    assert!((applied[0].0 - 0.054).abs() < 1e-12 && applied[0].1);
    assert_eq!(*recorder.resets.lock().unwrap(), [0.004]);
}

#[test]
fn with_the_program_pausing_no_law_can_raise_the_weight() {
    let (_, mut g) = recorded(1.0);
    // More than needed gets through, so the law is asked; it may only lower the weight.
    let d = drive(&mut g, (0.0, 30.0), &mut 0.0, 1e6, true);
    assert_eq!(d.weight.get(), 0.004);
}

#[test]
fn the_law_restarts_from_the_weight_of_an_overdue_transfer() {
    let (recorder, mut g) = recorded(0.004);
    drive(&mut g, (0.0, 1310.0), &mut 0.0, 1e4, false);
    g.set_goal(goal(100 * MEGA, 3000.0), at(1310.0)).unwrap();
    assert_eq!(*recorder.resets.lock().unwrap(), [0.004, 1.0]);
}

#[test]
fn a_moved_goal_is_judged_afresh() {
    let mut g = governor(1000 * MEGA, 50.0);
    let mut sent = 0.0;
    let d = drive(&mut g, (0.0, 40.0), &mut sent, 1e6, false);
    let Outlook::CannotFinish { expected, at_ceiling_rate } = d.outlook else {
        panic!("{d:?}");
    };
    assert!((at_ceiling_rate - 1e6).abs() < 1e3);
    assert!((expected.as_secs_f64() - 1000.0).abs() < 5.0);
    g.set_goal(goal(1000 * MEGA, 5000.0), at(40.0)).unwrap();
    let d = g.tick(&progress(40.1, sent as u64));
    assert_eq!(d.outlook, Outlook::TooEarly);
    let d = drive(&mut g, (40.1, 80.1), &mut sent, 1e6, false);
    assert!(matches!(d.outlook, Outlook::OnCourse { .. }), "{d:?}");
}

/// A law that asks for what this says.
struct Asks<F>(F);

impl<F> fmt::Debug for Asks<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asks")
    }
}

impl<F: FnMut(&Step) -> f64 + Send> WeightControl for Asks<F> {
    fn update(&mut self, step: &Step) -> f64 {
        (self.0)(step)
    }
    fn applied(&mut self, _: f64, _: bool) {}
    fn reset(&mut self, _: f64) {}
    fn set_bounds(&mut self, _: Bounds) {}
}

#[test]
fn past_the_aim_the_weight_does_not_fall() {
    for (early_aim, expected) in [(true, 0.5), (false, 0.1)] {
        // with so little left it is not for want of slack
        let policy = Policy { early_aim, bounds: Bounds::new(0.004, 0.5).unwrap(), ..Policy::default() };
        let mut updates = 0;
        let law = Box::new(Asks(move |_: &Step| {
            updates += 1;
            if updates < 53 { 0.5 } else { 0.1 }
        }));
        let mut g = Governor::with_control(policy, goal(47_610_000, 50.0), Time::ZERO, law).unwrap();
        let mut sent = 0.0;
        let d = drive(&mut g, (0.0, 47.6), &mut sent, 1e6, false);
        assert_eq!(d.weight.get(), 0.5);
        let d = drive(&mut g, (47.6, 49.6), &mut sent, 1e3, false); // the 53rd update, at 47.7 s, and more
        assert_eq!(d.weight.get(), expected);
    }
}

/// What an ordinary flow has is extrapolated from the rate at w = 0.3, which is near enough.
#[test]
fn a_transfer_without_slack_has_the_highest_weight_at_once() {
    let (rate, after) = (1e6, 45.0);
    for (part, early_aim, expected) in [(0.80, true, 0.3), (0.90, true, 1.0), (0.90, false, 0.3)] {
        let policy = Policy { early_aim, increase_limit: 1.0, ..Policy::default() };
        let ordinary = rate * libm::pow(1.0 / 0.3, 1.0 / policy.alpha);
        let aim = if early_aim { 570.0 } else { 600.0 };
        let size = part * ordinary * (aim - after) + rate * after;
        let mut g =
            Governor::with_control(policy, goal(size as u64, 600.0), Time::ZERO, Box::new(Asks(|_: &Step| 0.3)))
                .unwrap();
        let mut sent = 0.0;
        let d = drive(&mut g, (0.0, after), &mut sent, rate, false);
        assert_eq!(d.weight.get(), expected, "{part}, {early_aim}");
    }
}

/// T_w has floors, and a transfer of 15 s has 30 updates in place of 60: the law gets each with a weight of two.
#[test]
fn in_a_short_transfer_each_update_counts_for_more() {
    for (deadline, meant, real) in [(600.0, 10.0, 10.0), (15.0, 0.25, 0.5), (3.0, 0.5 / 3.0, 0.5)] {
        let heard = Arc::new(Mutex::new(None));
        let tell = Arc::clone(&heard);
        let law = Box::new(Asks(move |step: &Step| {
            *tell.lock().unwrap() = Some(*step);
            0.3
        }));
        let mut g = Governor::with_control(Policy::default(), goal(100 * MEGA, deadline), Time::ZERO, law).unwrap();
        drive(&mut g, (0.0, 0.5 * deadline), &mut 0.0, 1e6, false);
        let step = heard.lock().unwrap().expect("an update");
        assert!((step.interval.as_secs_f64() - meant).abs() < 1e-6, "{deadline}: {:?}", step.interval);
        assert!((step.elapsed.as_secs_f64() - real).abs() < 0.11, "{deadline}: {:?}", step.elapsed);
    }
}
