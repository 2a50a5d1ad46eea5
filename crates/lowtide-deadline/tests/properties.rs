// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds whatever happens.

use lowtide_deadline::{
    Bounds, Control, Cubic, Goal, Governor, Model, ModelBased, Outlook, PathState, Pid, Policy, PriceRatio, Progress,
    RatioPolicy, RatioRule, Signal, SignalKind, Signals, Step, Time, WeightControl, limit_increase, update_interval,
};
use proptest::prelude::*;
use std::time::Duration;

#[derive(Debug, Clone)]
enum Event {
    Tick(Progress),
    Goal { size: u64, left: u64 },
    NoDeadline,
}

/// Nanoseconds to go on by: nothing, a tick, an interval, hours, centuries.
fn a_while() -> impl Strategy<Value = u64> {
    prop_oneof![
        40 => Just(0),
        200 => 1_000_000..500_000_000u64,
        100 => 500_000_000..5_000_000_000u64,
        1 => 1_000_000_000_000..100_000_000_000_000u64,
        1 => Just(u64::MAX / 8),
    ]
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![60 => Just(0), 200 => 1..3_000_000u64, 1 => Just(u64::MAX / 64)]
}

/// A number as no caller should give it, now and then.
fn number(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        20 => Just(0.0),
        60 => 0.0..most,
        1 => Just(f64::MAX),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NAN),
        1 => Just(-1.0),
    ]
}

fn signals() -> impl Strategy<Value = Signals> {
    let signal = || (number(9.0), number(5.0)).prop_map(|(indications, reduction)| Signal { indications, reduction });
    (number(5000.0), signal(), signal(), signal()).prop_map(|(packets, loss, mark, delay)| Signals {
        packets,
        loss,
        mark,
        delay,
    })
}

fn model() -> impl Strategy<Value = Model> {
    let fair = |alpha| Model::AlphaFair { alpha, unit_rate: 1e5, signal: SignalKind::Delay };
    prop_oneof![
        Just(Model::Reno),
        Just(Model::Cubic(Cubic::PUBLISHED_2008)),
        Just(Model::Cubic(Cubic::RFC_9438)),
        Just(Model::VEGAS),
        Just(Model::CDG),
        (0.5..3.0f64).prop_map(fair),
    ]
}

fn control() -> impl Strategy<Value = Control> {
    prop_oneof![Just(Control::Pid), prop::option::of(model()).prop_map(Control::ModelBased)]
}

fn ratio() -> impl Strategy<Value = Option<RatioPolicy>> {
    let rule = prop_oneof![
        Just(RatioRule::Literal { standard_reduction: 0.2 }),
        model().prop_map(|own| RatioRule::Corrected { own, standard: Model::Reno }),
    ];
    prop::option::of(
        (rule, 0.0..9.0f64).prop_map(|(rule, enough_losses)| RatioPolicy { enough_losses, ..RatioPolicy::new(rule) }),
    )
}

/// Events with relative times and bytes; made absolute when they are applied.
fn event() -> impl Strategy<Value = Event> {
    let tick = (
        a_while(),
        bytes(),
        prop::bool::weighted(0.9),
        (prop::bool::weighted(0.2), any::<bool>(), prop::bool::weighted(0.1), bytes()),
        prop::option::of((0..5_000_000_000u64, 0..5_000_000_000u64)),
        prop::option::of(0..9000u32),
        signals(),
        prop::option::of(number(1e9)),
    )
        .prop_map(
            |(
                ns,
                sent,
                active,
                (app_limited, connected, waiting, in_flight_bytes),
                rtts,
                segment_bytes,
                signals,
                price_ratio,
            )| {
                Event::Tick(Progress {
                    now: Time::from_nanos(ns),
                    acknowledged_bytes: sent,
                    active,
                    app_limited,
                    connected,
                    waiting,
                    in_flight_bytes,
                    rtt: rtts.map(|(rtt, _)| Duration::from_nanos(rtt)),
                    min_rtt: rtts.map(|(_, least)| Duration::from_nanos(least)),
                    segment_bytes,
                    signals,
                    price_ratio,
                })
            },
        );
    prop_oneof![
        60 => tick,
        1 => (1..u64::MAX, 1..u64::MAX / 4).prop_map(|(size, left)| Event::Goal { size, left }),
        1 => (1..100_000_000u64, 1..600_000_000_000u64)
            .prop_map(|(size, left)| Event::Goal { size, left }),
        1 => Just(Event::NoDeadline),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_weight_stays_in_bounds(
        size in 1..2_000_000_000u64,
        left in 1..1_000_000_000_000u64,
        (w_min, w_max) in (1e-4..1.0f64, 1.0..4.0f64).prop_map(|(a, b)| (a, a * b)),
        alpha in 0.5..3.0f64,
        control in control(),
        ratio in ratio(),
        backwards in prop::bool::ANY,
        events in prop::collection::vec(event(), 1..300),
    ) {
        let bounds = Bounds::new(w_min, w_max).unwrap();
        let policy = Policy { bounds, alpha, control, ratio, ..Policy::default() };
        let mut now = Time::from_nanos(1_000_000_000);
        let goal = Goal { size: Some(size), deadline: Some(now + Duration::from_nanos(left)) };
        let mut g = Governor::new(policy, goal, now).unwrap();
        let (mut acked, mut told) = (0u64, Signals::default());
        for (n, e) in events.into_iter().enumerate() {
            let before = g.weight().get();
            let goal = g.goal();
            match e {
                Event::Tick(mut p) => {
                    now = now + Duration::from_nanos(p.now.as_nanos());
                    acked = acked.saturating_add(p.acknowledged_bytes);
                    p.now = now;
                    p.acknowledged_bytes = acked;
                    told = Signals {
                        packets: told.packets + p.signals.packets,
                        loss: Signal {
                            indications: told.loss.indications + p.signals.loss.indications,
                            reduction: told.loss.reduction + p.signals.loss.reduction,
                        },
                        mark: p.signals.mark, // no total: falls at will
                        delay: Signal {
                            indications: told.delay.indications + p.signals.delay.indications,
                            reduction: told.delay.reduction + p.signals.delay.reduction,
                        },
                    };
                    p.signals = told;
                    if !told.packets.is_finite() || !told.loss.indications.is_finite() {
                        told = Signals::default();
                    }
                    if backwards && n % 7 == 3 {
                        p.now = now - Duration::from_secs(3600);
                        p.acknowledged_bytes /= 2;
                    }
                    let d = g.tick(&p);
                    let w = d.weight.get();
                    prop_assert!(w.is_finite() && (w_min..=w_max).contains(&w), "{d:?}");
                    prop_assert_eq!(d.weight, g.weight());
                    prop_assert!(d.price_ratio.is_finite() && d.price_ratio > 0.0, "{d:?}");
                    prop_assert!(d.achieved_rate.is_finite() && d.achieved_rate >= 0.0, "{d:?}");
                    if let Some(rate) = d.target_rate {
                        prop_assert!(rate.is_finite() && rate > 0.0, "{d:?}");
                    }
                    let complete = goal.size.is_some_and(|s| acked >= s);
                    if p.now == now {
                        prop_assert_eq!(d.outlook.is_complete(), complete, "{:?}", d);
                        let overdue = goal.deadline.is_some_and(|t| now >= t);
                        prop_assert_eq!(
                            matches!(d.outlook, Outlook::Overdue { .. }),
                            overdue && !complete
                        );
                        if overdue {
                            prop_assert_eq!(w, bounds.clamp(1.0).get());
                        } else {
                            // One update at most, and its increase limited, but from a quarter of w_max to that.
                            let most = before + g.increase_limit() * w_max;
                            let at_once = w == w_max && before >= 0.25 * w_max;
                            prop_assert!(w <= most * (1.0 + 1e-12) || at_once, "{} -> {:?}", before, d);
                        }
                    }
                    if goal.deadline.is_none() {
                        prop_assert_eq!(w, w_min);
                    }
                    match d.outlook {
                        Outlook::OnCourse { expected } => {
                            prop_assert!(expected >= p.now.min(now) && Some(expected) <= goal.deadline);
                        }
                        Outlook::CannotFinish { expected, at_ceiling_rate } => {
                            prop_assert!(Some(expected) >= goal.deadline);
                            prop_assert!(at_ceiling_rate.is_finite() && at_ceiling_rate > 0.0);
                        }
                        _ => {}
                    }
                }
                Event::Goal { size, left } => {
                    let deadline = now + Duration::from_nanos(left);
                    let new = Goal { size: Some(size), deadline: Some(deadline) };
                    g.set_goal(new, now).unwrap();
                }
                Event::NoDeadline => {
                    g.set_goal(Goal { size: Some(size), deadline: None }, now).unwrap();
                    prop_assert_eq!(g.weight(), bounds.min());
                }
            }
        }
    }

    #[test]
    fn the_pid_survives_any_step(
        steps in prop::collection::vec(
            (
                prop_oneof![Just(0.0), 0.0..1e12f64, Just(f64::MAX)],
                prop_oneof![Just(0.0), 0.0..1e12f64, Just(f64::MAX)],
                1..u64::MAX,
                1..u64::MAX,
            ),
            1..50,
        ),
    ) {
        let bounds = Bounds::default();
        let mut pid = Pid::new(bounds);
        let mut weight = bounds.min().get();
        for (target_rate, achieved_rate, elapsed, interval) in steps {
            let wanted = pid.update(&Step {
                target_rate,
                achieved_rate,
                weight,
                elapsed: Duration::from_nanos(elapsed),
                interval: Duration::from_nanos(interval),
                path: PathState::default(),
                signals: Signals::default(),
                price_ratio: 1.0,
            });
            prop_assert!((0.004..=1.0).contains(&wanted), "{}", wanted);
            let l = limit_increase(weight, wanted, 0.05);
            weight = l.weight;
            pid.applied(l.weight, l.limited);
            prop_assert!((0.004 / 0.03 - 1e-9..=1.0 / 0.03 + 1e-9).contains(&pid.integral()));
        }
    }

    #[test]
    fn model_based_control_survives_any_step(
        model in prop::option::of(model()),
        steps in prop::collection::vec(
            (
                prop_oneof![Just(0.0), 0.0..1e12f64, Just(f64::MAX)],
                prop_oneof![Just(0.0), 0.0..1e12f64, Just(f64::MAX)],
                (1..u64::MAX, 1..u64::MAX),
                prop::option::of((0..u64::MAX, 0..u64::MAX)),
                (0.0..1e9f64, prop_oneof![Just(0.0), 0.0..1e6f64], prop_oneof![Just(0.0), 0.0..1e6f64]),
                prop_oneof![Just(1.0), 1e-9..1e9f64],
            ),
            1..50,
        ),
    ) {
        let bounds = Bounds::default();
        let mut control = ModelBased::new(bounds, model);
        let mut weight = bounds.min().get();
        for (target_rate, achieved_rate, (elapsed, interval), rtts, (packets, losses, delays), price_ratio) in steps {
            let signal = |indications| Signal { indications, reduction: 0.0 };
            let wanted = control.update(&Step {
                target_rate,
                achieved_rate,
                weight,
                elapsed: Duration::from_nanos(elapsed),
                interval: Duration::from_nanos(interval),
                path: PathState {
                    rtt: rtts.map(|(rtt, _)| Duration::from_nanos(rtt)),
                    min_rtt: rtts.map(|(_, least)| Duration::from_nanos(least)),
                    segment_bytes: 1448.0,
                },
                signals: Signals { packets, loss: signal(losses), delay: signal(delays), ..Signals::default() },
                price_ratio,
            });
            prop_assert!((0.004..=1.0).contains(&wanted), "{}", wanted);
            prop_assert!((-0.75..=3.0).contains(&control.model_error()));
            let l = limit_increase(weight, wanted, 0.05);
            weight = l.weight;
            control.applied(l.weight, l.limited);
        }
    }

    #[test]
    fn the_ratio_of_prices_survives_anything(
        policy in ratio(),
        seen in prop::collection::vec((signals(), 1e-9..1e9f64, prop::option::of(0..u64::MAX)), 1..50),
    ) {
        let Some(policy) = policy else { return Ok(()) };
        let mut phi = PriceRatio::new(policy);
        for (signals, seconds, rtt) in seen {
            let rtt = rtt.map(Duration::from_nanos);
            // as the governor hands them on: finite, not negative
            let signals = signals.since(Signals::default());
            let now = phi.observe(signals, PathState { rtt, min_rtt: None, segment_bytes: 0.0 }, seconds);
            prop_assert!(now.is_finite() && now > 0.0, "{}", now);
        }
    }

    #[test]
    fn increases_are_limited_and_decreases_free(
        previous in 1e-4..1.0f64, requested in 1e-4..1.0f64, l_w in 0.01..1.0f64,
    ) {
        let l = limit_increase(previous, requested, l_w);
        prop_assert!(l.weight <= previous + l_w * requested + 1e-15);
        prop_assert!(l.weight <= requested);
        if requested <= previous {
            prop_assert!(l.weight == requested && !l.limited);
        } else {
            prop_assert!(l.weight > previous);
        }
        prop_assert_eq!(l.limited, l.weight < requested);
    }

    #[test]
    fn the_interval_keeps_its_floors(
        left in prop::option::of(0..u64::MAX), rtt in prop::option::of(0..u64::MAX),
    ) {
        let (left, rtt) = (left.map(Duration::from_nanos), rtt.map(Duration::from_nanos));
        let t = update_interval(Duration::from_secs(10), left, rtt);
        prop_assert!(t >= Duration::from_millis(500) && t <= Duration::from_secs(100));
        if let Some(r) = rtt.filter(|r| *r <= Duration::from_secs(10)) {
            prop_assert!(t >= r * 10);
        }
    }
}
