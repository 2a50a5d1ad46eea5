// SPDX-License-Identifier: MIT OR Apache-2.0
//! The governor's rules, one by one.

use lowtide_deadline::{
    Basis, Bounds, Control, Cubic, Decision, FallbackReason, Goal, GoalError, Governor, Model, Outlook, Policy,
    PolicyError, Progress, RatioPolicy, RatioRule, Signal, SignalKind, Signals, Step, Time, WeightControl,
};
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

/// A law that always asks for the same, and what it was told.
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

/// Rate 1e6·price^(-1/2).
const FAIR: Model = Model::AlphaFair { alpha: 2.0, unit_rate: 1e3, signal: SignalKind::Loss };

fn model_based(size: u64, deadline: f64) -> Governor {
    let policy = Policy { control: Control::ModelBased(Some(FAIR)), ..Policy::default() };
    Governor::new(policy, goal(size, deadline), Time::ZERO).unwrap()
}

/// As [`drive`], the path asking this price per packet of 1000 bytes.
fn drive_priced(g: &mut Governor, (from, to): (f64, f64), sent: &mut f64, rate: f64, price: f64) -> Decision {
    let mut last = None;
    for n in 1..=((to - from) * 10.0).round() as u64 {
        *sent += rate * 0.1;
        let loss = Signal { indications: *sent / 1e3 * price, reduction: 0.0 };
        let signals = Signals { packets: *sent / 1e3, loss, ..Signals::default() };
        last = Some(g.tick(&Progress { signals, ..progress(from + n as f64 * 0.1, *sent as u64) }));
    }
    last.unwrap()
}

#[test]
fn models_and_ratios_are_checked() {
    let refused = |policy: Policy| Governor::new(policy, Goal::default(), Time::ZERO).map(|_| ()).unwrap_err();
    let control = Control::ModelBased(Some(Model::Cubic(Cubic { kept: 1.5, ..Cubic::RFC_9438 })));
    assert_eq!(refused(Policy { control, ..Policy::default() }), GoalError::Policy(PolicyError::Model));
    let ratio = Some(RatioPolicy { every: 0, ..RatioPolicy::new(RatioRule::Literal { standard_reduction: 0.2 }) });
    assert_eq!(refused(Policy { ratio, ..Policy::default() }), GoalError::Policy(PolicyError::Ratio));
}

/// q/q̂ at once, where the rise is not limited: with q = 0.01, ζ = 20 kB/s and a rate at price 1 of 1 kB/s, 0.01·20².
#[test]
fn the_models_weight_arrives_in_one_step_without_a_limit() {
    let policy = Policy {
        bounds: Bounds::new(1e-6, 1.0).unwrap(),
        increase_limit: 1.0,
        early_aim: false,
        control: Control::ModelBased(Some(Model::AlphaFair { alpha: 2.0, unit_rate: 1e3, signal: SignalKind::Loss })),
        ..Policy::default()
    };
    let mut g = Governor::new(policy, goal(26_000_000, 1300.0), Time::ZERO).unwrap();
    let d = drive_priced(&mut g, (0.0, 10.0), &mut 0.0, 20e3, 0.0004);
    assert!((d.weight.get() / 0.16 - 1.0).abs() < 1e-3, "{d:?}");
    assert_eq!((d.basis, d.price_ratio), (Basis::Model, 1.0));
}

#[test]
fn a_fallback_shows_in_the_decision() {
    let mut g = model_based(40 * MEGA, 50.0);
    let d = drive(&mut g, (0.0, 5.0), &mut 0.0, 1e6, false);
    assert_eq!(d.basis, Basis::Fallback(FallbackReason::NoPrice));
    let policy = Policy { control: Control::ModelBased(None), ..Policy::default() };
    let mut g = Governor::new(policy, goal(40 * MEGA, 50.0), Time::ZERO).unwrap();
    let d = drive_priced(&mut g, (0.0, 5.0), &mut 0.0, 1e6, 1e-3);
    assert_eq!(d.basis, Basis::Fallback(FallbackReason::NoModel));
    assert!(d.basis.to_string().contains("no model"));
    let d = drive_priced(&mut model_based(40 * MEGA, 50.0), (0.0, 5.0), &mut 0.0, 1e6, 1e-3);
    assert_eq!(d.basis, Basis::Model);
    assert_eq!(governor(MEGA, 100.0).tick(&progress(0.1, 100)).basis, Basis::Feedback);
}

/// What the issue lists, for the model's control: zero progress, stalls, clock jumps, deadlines that move, sizes that
/// change, a transfer that is finished, one that is overdue.
#[test]
fn model_based_control_survives_what_pid_survives() {
    // nothing ever gets through: it presses all the same
    let mut g = model_based(40 * MEGA, 60.0);
    let d = drive_priced(&mut g, (0.0, 55.0), &mut 0.0, 0.0, 0.0);
    assert!(d.weight.get() > 0.5, "{d:?}");

    // a stall of seven intervals on a path that asks a price leaves the weight about where it was
    let mut g = model_based(40 * MEGA, 50.0);
    let mut sent = 0.0;
    let before = drive_priced(&mut g, (0.0, 20.0), &mut sent, 0.8e6, 1e-7).weight.get();
    let d = drive_priced(&mut g, (20.0, 27.0), &mut sent, 0.0, 1e-7);
    assert_eq!(d.outlook, Outlook::Stalled { since: at(20.0) });
    assert!(d.weight.get() < 2.0 * before + 0.1, "{before} {d:?}");

    // three hours of sleep, and back in time
    let mut g = model_based(40_000 * MEGA, 8.0 * 3600.0);
    let mut sent = 0.0;
    let before = drive_priced(&mut g, (0.0, 25.0), &mut sent, 1e6, 1e-7).weight;
    for now in [3.0 * 3600.0, 1.0] {
        let d = g.tick(&progress(now, sent as u64)); // the signals start from zero, too
        assert_eq!((d.weight, d.updated), (before, false));
    }
    let d = drive_priced(&mut g, (10_800.0, 10_815.0), &mut sent, 2e6, 1e-7);
    assert!(d.updated || d.basis == Basis::Model);

    // the goal moves: twice the rate needs four times the weight
    let policy = Policy {
        bounds: Bounds::new(1e-6, 1.0).unwrap(),
        increase_limit: 1.0,
        early_aim: false,
        control: Control::ModelBased(Some(FAIR)),
        ..Policy::default()
    };
    let mut g = Governor::new(policy, goal(100 * MEGA, 1000.0), Time::ZERO).unwrap();
    let mut sent = 0.0;
    let first = drive_priced(&mut g, (0.0, 100.0), &mut sent, 0.1e6, 1e-6).weight.get();
    assert!((first / 1e-2 - 1.0).abs() < 1e-3, "{first}");
    g.set_goal(goal(190 * MEGA, 1000.0), at(100.0)).unwrap();
    let more = drive_priced(&mut g, (100.0, 110.0), &mut sent, 0.1e6, 1e-6).weight.get();
    assert!((more / first - 4.0).abs() < 0.1, "{first} {more}");
    g.set_goal(goal(190 * MEGA, 5000.0), at(110.0)).unwrap();
    let less = drive_priced(&mut g, (110.0, 120.0), &mut sent, 0.2e6, 1e-6).weight.get();
    assert!(less < 0.1 * more, "{more} {less}");

    // finished: the weight stays; overdue: an ordinary flow; more time: it yields
    let mut g = model_based(10 * MEGA, 50.0);
    let mut sent = 0.0;
    let before = drive_priced(&mut g, (0.0, 40.0), &mut sent, 0.2e6, 1e-5);
    let d = g.tick(&progress(40.1, 10 * MEGA));
    assert_eq!((d.outlook, d.weight), (Outlook::Done, before.weight));
    let mut g = model_based(100 * MEGA, 50.0);
    let mut sent = 0.0;
    let d = drive_priced(&mut g, (0.0, 60.0), &mut sent, 1e6, 1e-7);
    assert_eq!((d.weight.get(), d.target_rate), (1.0, None));
    g.set_goal(goal(100 * MEGA, 600.0), at(60.0)).unwrap();
    let d = drive_priced(&mut g, (60.0, 200.0), &mut sent, 0.2e6, 1e-7);
    assert!(d.weight.get() < 0.1, "{d:?}");
}

#[test]
fn the_ratio_of_prices_reaches_the_decision() {
    let ratio = Some(RatioPolicy::new(RatioRule::Literal { standard_reduction: 0.2 }));
    for control in [Control::Pid, Control::ModelBased(Some(Model::VEGAS))] {
        let policy = Policy { control, ratio, ..Policy::default() };
        let mut g = Governor::new(policy, goal(40 * MEGA, 50.0), Time::ZERO).unwrap();
        let mut d = g.tick(&progress(0.1, 100));
        assert_eq!(d.price_ratio, 1.0);
        for n in 2..=20 {
            let signals = Signals {
                packets: 1e3 * f64::from(n),
                loss: Signal { indications: f64::from(n), reduction: 0.5 * f64::from(n) },
                delay: Signal { indications: 50.0 * f64::from(n), reduction: f64::from(n) },
                ..Signals::default()
            };
            let min_rtt = Some(Duration::from_millis(30));
            d = g.tick(&Progress { signals, min_rtt, ..progress(0.1 * f64::from(n), 100_000 * n as u64) });
        }
        // (0.5 + 1)/(0.2·1)
        assert!((d.price_ratio - 7.5).abs() < 1e-9, "{d:?}");
        assert!((d.effective_weight() - 7.5 * d.weight.get()).abs() < 1e-12);
    }
}

/// φ of 1 and of 3, each for half of the interval: prices are divided by 1.5.
#[test]
fn a_ratio_that_the_caller_measures_counts_by_its_harmonic_mean() {
    let policy = Policy {
        bounds: Bounds::new(1e-6, 1.0).unwrap(),
        increase_limit: 1.0,
        early_aim: false,
        control: Control::ModelBased(Some(FAIR)),
        ..Policy::default()
    };
    let mut g = Governor::new(policy, goal(26_000_000, 1300.0), Time::ZERO).unwrap();
    let mut d = None;
    for n in 1..=100 {
        let sent = 2e3 * f64::from(n);
        let signals = Signals {
            packets: sent / 1e3,
            loss: Signal { indications: sent / 1e3 * 0.0004, reduction: 0.0 },
            ..Signals::default()
        };
        let price_ratio = Some(if n <= 50 { 1.0 } else { 3.0 });
        d = Some(g.tick(&Progress { signals, price_ratio, ..progress(0.1 * f64::from(n), sent as u64) }));
    }
    let d = d.unwrap();
    assert!((d.weight.get() * 1.5 / 0.16 - 1.0).abs() < 1e-3, "{d:?}");
    assert!((d.effective_weight() - 3.0 * d.weight.get()).abs() < 1e-12);
}

/// What a program does, second by second, with what there is to say of it: a rate in bytes per second, and whether the
/// program is what limits it, has a connection, hears from its peer. Gives the kinds said, each with the second it began.
fn said(g: &mut Governor, seconds: &[(f64, bool, bool, bool)]) -> String {
    let (mut sent, mut text, mut last) = (0.0, String::new(), "");
    for n in 0..seconds.len() * 10 {
        let (rate, app_limited, connected, waiting) = seconds[n / 10];
        sent += 0.1 * rate;
        let now = 0.1 * (n + 1) as f64;
        let d = g.tick(&Progress { active: rate > 0.0, app_limited, connected, waiting, ..progress(now, sent as u64) });
        let kind = match d.outlook {
            Outlook::TooEarly => "early",
            Outlook::OnCourse { .. } => "course",
            Outlook::Behind { .. } => "behind",
            Outlook::CannotFinish { .. } => "cannot",
            Outlook::Waiting { connected: false } => "connecting",
            Outlook::Waiting { connected: true } => "waiting",
            Outlook::ProgramLimited { .. } => "program",
            Outlook::Stalled { .. } => "stalled",
            _ => "other",
        };
        if kind != last {
            text += &format!("{}{kind} {}", if last.is_empty() { "" } else { ", " }, now.floor());
            last = kind;
        }
    }
    text
}

fn span(seconds: usize, what: (f64, bool, bool, bool)) -> Vec<(f64, bool, bool, bool)> {
    vec![what; seconds]
}

const SILENT: (f64, bool, bool, bool) = (0.0, true, true, false);
const HEARS: (f64, bool, bool, bool) = (0.0, true, true, true);
const BUSY: (f64, bool, bool, bool) = (1.2e6, false, true, false);

/// 25 MB in 50 s, half a megabyte a second.
fn program(spans: &[Vec<(f64, bool, bool, bool)>]) -> String {
    said(&mut governor(25 * MEGA, 50.0), &spans.concat())
}

#[test]
fn a_program_that_connects_or_waits_is_not_called_slow() {
    let nobody = (0.0, true, false, false);
    let handshake = (600.0, true, true, false);
    // no connection yet, then a handshake, then it sends
    assert_eq!(
        program(&[span(6, nobody), span(2, handshake), span(4, HEARS), span(20, BUSY)]),
        "early 0, connecting 3, waiting 6, early 15, course 16"
    );
    // a server that thinks for 15 s after a handshake, and says so now and then
    let thinks: Vec<_> = (0..15).map(|n| if n % 5 == 0 { HEARS } else { SILENT }).collect();
    assert_eq!(program(&[span(1, handshake), thinks, span(10, BUSY)]), "early 0, waiting 3, early 18, course 20");
    // one that does nothing for ten seconds and more, and is not waiting for anybody
    assert_eq!(program(&[span(10, BUSY), span(20, SILENT)]), "early 0, course 4, waiting 18, program 20");
}

#[test]
fn a_program_that_sends_little_at_a_time_is_called_slow() {
    let throttled = (0.2e6, true, true, false);
    assert_eq!(program(&[span(30, throttled)]), "early 0, program 3");
    // enough for the deadline: nothing to complain about
    let enough = program(&[span(10, BUSY), span(15, (0.55e6, true, true, false))]);
    assert_eq!(enough, "early 0, course 4");
}

/// Bursts of one or two seconds with pauses as long, as programs have them that read, compress and then send.
#[test]
fn the_sentence_does_not_follow_each_pause() {
    for pattern in [[BUSY, SILENT], [SILENT, BUSY], [HEARS, BUSY]] {
        for length in [1, 2] {
            let turns: Vec<_> = (0..40).map(|n| pattern[n / length % 2]).collect();
            let text = program(&[turns]);
            assert!(text.split(", ").count() <= 3, "{pattern:?} {length}: {text}");
            assert!(!text.contains("program"), "{text}");
        }
    }
}

/// A law that asks for a half, and from its 53rd update on for a tenth.
#[derive(Debug)]
struct Falls(u32);

impl WeightControl for Falls {
    fn update(&mut self, _: &Step) -> f64 {
        self.0 += 1;
        if self.0 < 53 { 0.5 } else { 0.1 }
    }
    fn applied(&mut self, _: f64, _: bool) {}
    fn reset(&mut self, _: f64) {}
    fn set_bounds(&mut self, _: Bounds) {}
}

#[test]
fn past_the_aim_the_weight_does_not_fall() {
    for (early_aim, expected) in [(true, 0.5), (false, 0.1)] {
        let policy = Policy { early_aim, ..Policy::default() };
        let law = Box::new(Falls(0));
        let mut g = Governor::with_control(policy, goal(100 * MEGA, 50.0), Time::ZERO, law).unwrap();
        let mut sent = 0.0;
        let d = drive(&mut g, (0.0, 47.6), &mut sent, 1e6, false);
        assert_eq!(d.weight.get(), 0.5);
        let d = drive(&mut g, (47.6, 49.6), &mut sent, 1e6, false); // the 53rd update, at 47.7 s, and more
        assert_eq!(d.weight.get(), expected);
    }
}
