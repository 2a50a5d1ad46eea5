// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows and caps: when the governor presses, how hard, and what it says.

use std::time::Duration;

use lowtide_deadline::{
    Allowance, Bounds, Calendar, Decision, Goal, Governor, Hold, Outlook, Policy, Progress, Rates, Time, Turn,
};
use proptest::prelude::*;

const CLOSED: Allowance = Allowance { open: false, most: None };

fn at(seconds: f64) -> Time {
    Time::ZERO.plus_secs_f64(seconds)
}

fn capped(most: f64) -> Allowance {
    Allowance { open: true, most: Some(most) }
}

fn governor(size: u64, deadline: f64, entries: Vec<(Time, Allowance)>) -> Governor {
    let goal = Goal { size: Some(size), deadline: Some(at(deadline)) };
    let mut governor = Governor::new(Policy::default(), goal, Time::ZERO).unwrap();
    governor.set_calendar(Calendar::new(entries));
    governor
}

/// A network that gives so many bytes per second for a weight, from one second to another; the last decision.
fn drive(governor: &mut Governor, (from, to): (f64, f64), sent: &mut f64, rate: impl Fn(f64) -> f64) -> Decision {
    let mut decision = None;
    for step in 0..((to - from) * 10.0) as u32 {
        let limit = governor.rates_at(at(from)).most.unwrap_or(f64::INFINITY);
        *sent += 0.1 * rate(governor.weight().get()).min(limit);
        let progress = Progress {
            now: at(from + 0.1 * f64::from(step + 1)),
            acknowledged_bytes: *sent as u64,
            active: true,
            connected: true,
            rtt: Some(Duration::from_millis(40)),
            ..Progress::default()
        };
        decision = Some(governor.tick(&progress));
    }
    decision.unwrap()
}

/// Beside one ordinary flow on 2.5 MB/s.
fn beside(w: f64) -> f64 {
    2.5e6 * w.sqrt() / (1.0 + w.sqrt())
}

#[test]
fn outside_its_window_a_transfer_takes_spare_capacity_alone() {
    let mut governor = governor(200_000_000, 1000.0, vec![(at(0.0), CLOSED), (at(400.0), Allowance::FREE)]);
    let mut sent = 0.0;
    let decision = drive(&mut governor, (0.0, 399.0), &mut sent, beside);
    assert_eq!(decision.weight.get(), Bounds::default().min().get());
    assert_eq!((decision.target_rate, decision.hold), (None, Hold::Closed { opens: Some(at(400.0)) }));
    let decision = drive(&mut governor, (399.0, 405.0), &mut sent, beside);
    assert_eq!(decision.hold, Hold::None);
    // what is left, in the 600 s of the window less what the aim lies before the end
    let needed = decision.target_rate.unwrap();
    let (low, high) = ((200e6 - sent) / 600.0, 1.1 * (200e6 - sent) / 560.0);
    assert!((low..high).contains(&needed), "{needed}: {low} {high}");
    drive(&mut governor, (405.0, 990.0), &mut sent, beside);
    assert!(sent >= 200e6, "it is done in the window: {sent}");
}

#[test]
fn a_window_that_ends_before_the_deadline_is_the_time_there_is() {
    let mut governor = governor(400_000_000, 2000.0, vec![(at(800.0), CLOSED)]);
    let mut sent = 0.0;
    let decision = drive(&mut governor, (0.0, 5.0), &mut sent, beside);
    assert!(decision.target_rate.unwrap() > 400e6 / 800.0);
    assert!(governor.aim().unwrap() < at(800.0), "the aim lies in the window");
    let decision = drive(&mut governor, (5.0, 400.0), &mut sent, beside);
    let Outlook::OnCourse { expected } = decision.outlook else { panic!("{decision:?}") };
    assert!(expected <= at(800.0), "{expected:?}");
    // past it the weight does not rise, late or not
    let decision = drive(&mut governor, (400.0, 810.0), &mut sent, |_| 100.0);
    assert_eq!((decision.weight.get(), decision.target_rate), (Bounds::default().min().get(), None));
    let decision = drive(&mut governor, (810.0, 2005.0), &mut sent, |_| 100.0);
    assert!(matches!(decision.outlook, Outlook::Overdue { .. }), "{decision:?}");
    assert_eq!(decision.weight.get(), Bounds::default().min().get());
}

#[test]
fn what_a_cap_holds_back_is_sent_before_and_after() {
    // 100 s at 50 kB/s at the most, then 100 s in which the rest has to go
    let mut governor = governor(100_000_000, 200.0, vec![(at(0.0), capped(50e3)), (at(100.0), Allowance::FREE)]);
    let mut sent = 0.0;
    let decision = drive(&mut governor, (0.0, 50.0), &mut sent, beside);
    assert_eq!(decision.target_rate, Some(50e3), "no harder than it may");
    assert_eq!(governor.rates_at(at(10.0)), Rates { least: None, most: Some(50e3) });
    let decision = drive(&mut governor, (50.0, 110.0), &mut sent, beside);
    assert!(decision.target_rate.unwrap() > 0.95e6, "{decision:?}");
    // and a cap to come is sent for in advance
    let mut governor = self::governor(100_000_000, 200.0, vec![(at(100.0), capped(50e3))]);
    let decision = drive(&mut governor, (0.0, 5.0), &mut 0.0, beside);
    assert!(decision.target_rate.unwrap() > 0.95e6, "{decision:?}");
}

#[test]
fn the_stricter_of_two_limits_holds() {
    let mut governor = governor(100_000_000, 200.0, vec![(at(0.0), capped(50e3))]);
    governor.set_rates(Rates { least: None, most: Some(20e3) });
    assert_eq!(governor.rates_at(at(1.0)).most, Some(20e3));
    governor.set_rates(Rates { least: None, most: Some(80e3) });
    assert_eq!(governor.rates_at(at(1.0)).most, Some(50e3));
}

#[test]
fn whose_turn_it_is_not_does_not_press() {
    let mut governor = governor(100_000_000, 100.0, Vec::new());
    let mut sent = 0.0;
    governor.set_turn(Some(Turn { rate: 0.0, done: at(90.0) }), None);
    let decision = drive(&mut governor, (0.0, 30.0), &mut sent, beside);
    assert_eq!((decision.hold, decision.target_rate), (Hold::Turn { done: at(90.0) }, None));
    assert_eq!(decision.weight.get(), Bounds::default().min().get());
    governor.set_turn(Some(Turn { rate: 1.2e6, done: at(90.0) }), Some(0.1));
    assert_eq!(governor.weight().get(), 0.1, "that of the one before");
    let decision = drive(&mut governor, (30.0, 60.0), &mut sent, beside);
    assert_eq!(decision.target_rate, Some(1.2e6));
    assert!(decision.weight.get() > 0.1, "{decision:?}");
}

#[test]
fn a_weight_that_is_handed_over_survives_the_silence_before_the_first_bytes() {
    let mut governor = governor(15_000_000, 40.0, Vec::new());
    let mut sent = 0.0;
    governor.set_turn(Some(Turn { rate: 0.0, done: at(39.0) }), None);
    drive(&mut governor, (0.0, 19.2), &mut sent, |_| 4000.0);
    let turn = Turn { rate: 0.8e6, done: at(39.0) };
    governor.set_turn(Some(turn), Some(0.9));
    drive(&mut governor, (19.2, 20.4), &mut sent, |_| 2500.0);
    let decision = drive(&mut governor, (20.4, 24.0), &mut sent, |_| 0.8e6);
    assert!(decision.weight.get() > 0.6, "{decision:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the calendar: the weight is the least one outside the windows, nothing is aimed for above a cap, and
    /// what is said lies in time.
    #[test]
    fn no_calendar_is_overstepped(
        starts in prop::collection::vec((0.0..600.0f64, any::<bool>(), prop::option::of(1e4..1e6f64)), 0..10),
        size in 1_000_000u64..200_000_000,
        deadline in 20.0..600.0f64,
    ) {
        let entries = starts.iter().map(|(start, open, most)| (at(*start), Allowance { open: *open, most: *most })).collect();
        let calendar = Calendar::new(entries);
        let mut governor = governor(size, deadline, Vec::new());
        governor.set_calendar(calendar.clone());
        let mut sent = 0.0;
        for second in 0..600 {
            let second = f64::from(second);
            let decision = drive(&mut governor, (second, second + 1.0), &mut sent, beside);
            let now = at(second + 1.0);
            let allowance = calendar.at(now);
            if !allowance.open {
                prop_assert_eq!(decision.weight, Bounds::default().min());
                prop_assert_eq!(decision.target_rate, None);
            }
            if let (Some(target), Some(most)) = (decision.target_rate, allowance.most) {
                prop_assert!(target <= most);
            }
            prop_assert!(decision.target_rate.is_none_or(f64::is_finite));
            if let Outlook::OnCourse { expected } = decision.outlook {
                prop_assert!(expected >= now && expected <= at(deadline), "{:?}", decision);
            }
        }
    }
}
