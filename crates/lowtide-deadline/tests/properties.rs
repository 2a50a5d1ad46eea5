// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds whatever happens.

use lowtide_deadline::{
    Bounds, Goal, Governor, Outlook, Pid, Policy, Progress, Step, Time, WeightControl, limit_increase, update_interval,
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

/// Events with relative times and bytes; made absolute by [`play`].
fn event() -> impl Strategy<Value = Event> {
    let tick = (
        a_while(),
        bytes(),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.2),
        prop::option::of(0..5_000_000_000u64),
    )
        .prop_map(|(ns, sent, active, app_limited, rtt)| {
            Event::Tick(Progress {
                now: Time::from_nanos(ns),
                acknowledged_bytes: sent,
                active,
                app_limited,
                rtt: rtt.map(Duration::from_nanos),
                price: None,
            })
        });
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
        backwards in prop::bool::ANY,
        events in prop::collection::vec(event(), 1..300),
    ) {
        let bounds = Bounds::new(w_min, w_max).unwrap();
        let policy = Policy { bounds, alpha, ..Policy::default() };
        let mut now = Time::from_nanos(1_000_000_000);
        let goal = Goal { size: Some(size), deadline: Some(now + Duration::from_nanos(left)) };
        let mut g = Governor::new(policy, goal, now).unwrap();
        let mut acked = 0u64;
        for (n, e) in events.into_iter().enumerate() {
            let before = g.weight().get();
            let goal = g.goal();
            match e {
                Event::Tick(mut p) => {
                    now = now + Duration::from_nanos(p.now.as_nanos());
                    acked = acked.saturating_add(p.acknowledged_bytes);
                    p.now = now;
                    p.acknowledged_bytes = acked;
                    if backwards && n % 7 == 3 {
                        p.now = now - Duration::from_secs(3600);
                        p.acknowledged_bytes /= 2;
                    }
                    let d = g.tick(&p);
                    let w = d.weight.get();
                    prop_assert!(w.is_finite() && (w_min..=w_max).contains(&w), "{d:?}");
                    prop_assert_eq!(d.weight, g.weight());
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
                            // One update at most, and its increase limited.
                            let most = before + g.increase_limit() * w_max;
                            prop_assert!(w <= most * (1.0 + 1e-12), "{} -> {:?}", before, d);
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
                    prop_assert_eq!(g.set_goal(new, now).is_ok(), deadline > now);
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
                rtt: None,
                price: None,
            });
            prop_assert!((0.004..=1.0).contains(&wanted), "{}", wanted);
            let l = limit_increase(weight, wanted, 0.05);
            weight = l.weight;
            pid.applied(l.weight, l.limited);
            prop_assert!((0.004 / 0.03 - 1e-9..=1.0 / 0.03 + 1e-9).contains(&pid.integral()));
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
