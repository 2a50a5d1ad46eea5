// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model-based control, and the ratio of prices.

use super::*;

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
