// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outlooks of transfers whose rates and weights are given.

use super::*;

const DEADLINE: f64 = 600.0;

/// At second `now`, `needed` bytes per second would do.
fn question(now: f64, needed: f64) -> Question {
    let at = |s: f64| Time::ZERO.plus_secs_f64(s);
    Question {
        now: at(now),
        remaining: needed * (DEADLINE - now),
        since: Time::ZERO,
        deadline: at(DEADLINE),
        aim: at(0.95 * DEADLINE),
        interval: Duration::from_secs(10),
        response: Duration::from_secs(2),
        increase_limit: 0.1,
        weight: 1.0,
        availability: 1.0,
        silence: Duration::ZERO,
        in_flight: 0.0,
        round_trip: Duration::from_millis(40),
    }
}

fn seen(weight: f64, rate: f64) -> Observation {
    Observation { weight, network_rate: rate, overall_rate: rate, backlogged: 1.0 }
}

fn feed(f: &mut Forecast, n: usize, o: Observation, q: &Question) -> Outlook {
    let q = Question { weight: o.weight, ..*q };
    for _ in 0..n {
        f.observe(&o, Some(&q));
    }
    f.outlook(&q)
}

#[test]
fn the_ceiling_follows_the_laws_exponent() {
    for (alpha, factor) in [(2.0, 2.0), (1.0, 4.0), (4.0 / 3.0, libm::pow(4.0, 0.75))] {
        let mut f = Forecast::new(alpha, 1.0);
        assert_eq!(f.ceiling(), None);
        feed(&mut f, 3, seen(0.25, 1e6), &question(100.0, 1.0));
        assert!((f.ceiling().unwrap() / (factor * 1e6) - 1.0).abs() < 1e-12);
    }
}

/// The network is blamed for what a flow at w_max got that had data to send, and for nothing else.
#[test]
fn impossible_needs_three_intervals_of_a_flow_at_the_top() {
    let q = question(100.0, 2e6);
    let outlook = |n: usize, o: Observation| feed(&mut Forecast::new(2.0, 1.0), n, o, &q);
    assert_eq!(outlook(20, seen(0.2, 1e6)), Outlook::TooEarly);
    assert!(matches!(outlook(20, seen(0.9, 0.1e6)), Outlook::Behind { can_press: true, .. }));
    let limited = Observation { backlogged: 0.8, ..seen(1.0, 1e6) };
    assert!(matches!(outlook(20, limited), Outlook::Behind { can_press: false, .. }));
    assert_eq!(outlook(4, seen(1.0, 1e6)), Outlook::TooEarly);
    let Outlook::CannotFinish { expected, at_ceiling_rate } = outlook(5, seen(1.0, 1e6)) else {
        panic!("no alarm");
    };
    assert!((at_ceiling_rate - 1e6).abs() < 1.0);
    assert!((expected.as_secs_f64() - 1100.0).abs() < 1e-6); // 1e9 bytes at 1e6
}

#[test]
fn within_the_margin_there_is_no_alarm() {
    let mut f = Forecast::new(2.0, 1.0);
    let q = question(100.0, 1.09e6);
    let Outlook::Behind { expected: Some(expected), can_press: false } = feed(&mut f, 50, seen(1.0, 1e6), &q) else {
        panic!("not behind");
    };
    assert!((expected.as_secs_f64() - (100.0 + 1.09 * 500.0)).abs() < 1e-6);
    let q = question(100.0, 1.11e6);
    assert!(matches!(feed(&mut f, 3, seen(1.0, 1e6), &q), Outlook::CannotFinish { .. }));
}

#[test]
fn an_alarm_is_taken_back_after_three_good_intervals() {
    let mut f = Forecast::new(2.0, 1.0);
    let q = question(100.0, 2e6);
    feed(&mut f, 5, seen(1.0, 1e6), &q);
    let good = seen(1.0, 2.3e6);
    assert!(matches!(feed(&mut f, 2, good, &q), Outlook::CannotFinish { .. }));
    assert!(matches!(feed(&mut f, 1, good, &q), Outlook::Behind { .. }));
    assert!(matches!(feed(&mut f, 7, good, &q), Outlook::OnCourse { .. }));
}

/// At a constant weight, to be done at second 600: what is said in the intervals after the rate has changed.
#[test]
fn what_is_said_over_a_change_of_the_rate() {
    let name = |outlook: &Outlook| match outlook {
        Outlook::TooEarly => "early",
        Outlook::OnCourse { .. } => "course",
        Outlook::Behind { .. } => "behind",
        Outlook::CannotFinish { .. } => "cannot",
        _ => "other",
    };
    let mut wrong = Vec::new();
    // weight, second, MB/s for ten intervals and then, needed, and what is said from which interval on
    for (weight, second, before, then, needed, expected) in [
        (1.0, 300.0, 1.2, 1.2, 1.0, "early 0 course 4"),
        (1.0, 300.0, 1.2, 0.9, 1.0, "early 0 course 4 behind 15 cannot 17"),
        (1.0, 300.0, 1.05, 1.05, 1.0, "early 0"),
        (1.0, 300.0, 0.95, 1.2, 1.0, "early 0 behind 4 course 16"),
        (0.5, 300.0, 1.0, 1.0, 1.0, "early 0 course 4"), // the climb brings up to a fifth
        (0.5, 300.0, 1.0, 1.0, 1.3, "early 0 behind 4"),
        (0.1, 300.0, 0.5, 0.5, 1.0, "early 0 behind 4"), // a third of the time is over
        (0.1, 100.0, 0.5, 0.5, 1.0, "early 0"),          // it is not, and the weight has hardly risen
        (0.5, 550.0, 1.0, 1.0, 0.9, "early 0 course 4"), // in the last tenth only the rate counts
        (0.5, 550.0, 1.0, 1.0, 1.02, "early 0 behind 4"),
        (0.5, 550.0, 1.2, 0.9, 1.0, "early 0 course 4 behind 12"),
    ] {
        let mut f = Forecast::new(2.0, 1.0);
        let q = Question { weight, ..question(second, needed * 1e6) };
        let (mut said, mut last) = (String::new(), "");
        for n in 0..40 {
            f.observe(&seen(weight, 1e6 * if n < 10 { before } else { then }), Some(&q));
            let kind = name(&f.outlook(&q));
            if kind != last {
                said += &format!("{}{kind} {n}", if n > 0 { " " } else { "" });
                last = kind;
            }
        }
        if said != expected {
            wrong.push(format!("{weight} {second} {before} {then} {needed}: {said}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// By hand, alpha 2: from w = 1/4 (a third of the link beside one flow) to 1 (a half) in 7.5 intervals of 10 s, the
/// first of which is after the response of 2 s.
#[test]
fn the_climb_adds_what_the_weights_share_says() {
    let mut f = Forecast::new(2.0, 1.0);
    let q = Question { weight: 0.25, ..question(100.0, 1e6) };
    feed(&mut f, 8, seen(0.25, 1e6), &q);
    let share = |w: f64| 3.0 * w.sqrt() / (1.0 + w.sqrt()); // over that of 1/4
    let climb: f64 = (0..75_000).map(|n| share(0.25 + 0.75 * (f64::from(n) + 0.5) / 75_000.0) * 1e-3).sum();
    let by_hand = 1e6 * (2.0 + climb + (498.0 - 75.0) * 1.5);
    assert!((f.within_reach(&q) / by_hand - 1.0).abs() < 1e-4, "{} {by_hand}", f.within_reach(&q));
    // half of the time the program has nothing to send
    let half = Question { availability: 0.5, ..q };
    assert!((f.within_reach(&half) / by_hand - 0.5).abs() < 1e-4);
    // not even the climb ends in time
    let short = Question { now: Time::ZERO.plus_secs_f64(599.0), ..q };
    assert!((f.within_reach(&short) - 1e6).abs() < 1.0);
}

/// A climb that has brought nothing so far is not taken to bring something from now on.
#[test]
fn what_the_climb_has_brought_so_far_is_evidence() {
    let reach = |exponent: f64| {
        let mut f = Forecast::new(2.0, 1.0);
        for n in 0..12 {
            let weight = 0.05 + 0.05 * f64::from(n);
            f.observe(&seen(weight, 1e6 * libm::pow(weight / 0.6, exponent)), None);
        }
        f.within_reach(&Question { weight: 0.6, ..question(100.0, 1e6) }) / 500e6
    };
    assert!((reach(0.0) - 1.0).abs() < 1e-9 && (reach(-0.5) - reach(0.0)).abs() < 0.5, "{}", reach(0.0));
    assert!(reach(0.5) > 1.05 && reach(0.25) < reach(0.5) && reach(0.25) > 1.0, "{} {}", reach(0.25), reach(0.5));
}

/// In the last tenth: silence counts as no rate, and what is on its way as done.
#[test]
fn near_the_end_silence_counts_and_what_is_on_its_way() {
    let q = Question { in_flight: 1e6, ..question(595.0, 1e6) }; // 5 MB left
    let mut f = Forecast::new(2.0, 1.0);
    assert!(matches!(feed(&mut f, 5, seen(1.0, 1.2e6), &q), Outlook::OnCourse { .. }));
    let silent = Question { silence: Duration::from_secs(11), ..q };
    assert!(matches!(f.outlook(&silent), Outlook::Behind { .. }));
    assert!(matches!(f.outlook(&q), Outlook::Behind { .. }), "not at once again");
    let mut f = Forecast::new(2.0, 1.0);
    let on_its_way = Question { in_flight: 5e6, ..q };
    assert!(matches!(feed(&mut f, 5, seen(1.0, 0.5e6), &on_its_way), Outlook::OnCourse { .. }));
    let too_far = Question { round_trip: Duration::from_secs(6), ..on_its_way };
    assert!(matches!(f.outlook(&too_far), Outlook::Behind { .. }));
}

#[test]
fn a_rate_flat_over_a_fourfold_weight_is_what_the_path_carries() {
    let climb = |flat: bool| {
        let mut f = Forecast::new(2.0, 1.0);
        let q = question(100.0, 3e6);
        for n in 0..43 {
            let w = (0.004 * libm::pow(1.15, f64::from(n))).min(1.0);
            let rate = if flat { 1e6 } else { 1e6 * (w / 0.004).sqrt() };
            f.observe(&seen(w, rate), Some(&q));
        }
        f
    };
    let q = question(100.0, 3e6);
    assert!(matches!(
        climb(true).outlook(&q),
        Outlook::CannotFinish { at_ceiling_rate, .. } if (at_ceiling_rate - 1e6).abs() < 1.0
    ));
    assert!(climb(false).ceiling().unwrap() > 1e7);
    assert!(!matches!(climb(false).outlook(&q), Outlook::CannotFinish { .. }));
}

#[test]
fn a_peak_at_a_submissive_weight_caps_nothing() {
    let mut f = Forecast::new(2.0, 1.0);
    let q = question(100.0, 1.0);
    feed(&mut f, 3, seen(0.01, 3e6), &q); // a burst: alone on the link
    feed(&mut f, 3, seen(0.01, 1e6), &q);
    assert!((f.ceiling().unwrap() - 1e7).abs() < 1.0);
}

#[test]
fn on_course_expects_the_earlier_of_its_rate_and_its_aim() {
    let mut f = Forecast::new(2.0, 1.0);
    let fast = question(300.0, 0.5e6);
    let Outlook::OnCourse { expected } = feed(&mut f, 5, seen(0.004, 1e6), &fast) else {
        panic!();
    };
    assert!((expected.as_secs_f64() - 450.0).abs() < 1e-6);
    let slow = question(300.0, 1.05e6);
    let mut f = Forecast::new(2.0, 1.0);
    let Outlook::OnCourse { expected } = feed(&mut f, 5, seen(0.4, 1e6), &slow) else {
        panic!();
    };
    assert!((expected.as_secs_f64() - 570.0).abs() < 1e-6); // it will press
}

#[test]
fn intervals_that_say_nothing_count_for_the_eta_only() {
    let mut f = Forecast::new(2.0, 1.0);
    let q = question(100.0, 1e6);
    feed(&mut f, 3, seen(0.5, 1e6), &q);
    let before = f.ceiling();
    f.observe_unrepresentative(0.0);
    assert_eq!(f.ceiling(), before);
    assert!((f.smoothed_rate() - 0.75e6).abs() < 1.0);
    assert_eq!(Forecast::new(2.0, 1.0).completion(Time::ZERO, 1.0), None);
}

/// The law may be better than declared, and the flow lag behind its weight: while the response of 80 s reaches back to
/// w = 0.26 the bound is 3.85^0.75 = 2.75, not 3.85^0.5 = 1.96, times the rate, and a tenth.
#[test]
fn the_alarm_uses_the_generous_bound() {
    for (needed, alarm) in [(2.9e6, false), (3.1e6, true)] {
        let mut f = Forecast::new(2.0, 1.0);
        let q = Question { response: Duration::from_secs(80), ..question(100.0, needed) };
        feed(&mut f, 20, seen(0.26, 1e6), &q);
        let o = feed(&mut f, 5, seen(1.0, 1e6), &q);
        assert_eq!(matches!(o, Outlook::CannotFinish { .. }), alarm, "{needed} {o:?}");
    }
}

#[test]
fn the_bound_is_never_below_what_was_just_achieved() {
    let mut f = Forecast::new(2.0, 1.0);
    let q = question(100.0, 1.0);
    feed(&mut f, 3, seen(0.01, 1e6), &q);
    feed(&mut f, 3, seen(0.1, 1e6), &q);
    assert_eq!(f.bound(3), 1e6); // flat
    f.observe(&seen(0.1, 1.3e6), None);
    assert_eq!(f.bound(3), 1.3e6);
}

#[test]
fn on_course_expects_no_more_than_the_ceiling_gives() {
    let mut f = Forecast::new(2.0, 1.0);
    let q = Question { aim: Time::ZERO.plus_secs_f64(540.0), ..question(500.0, 1.05e6) };
    let Outlook::OnCourse { expected } = feed(&mut f, 5, seen(0.4, 1e6), &q) else {
        panic!();
    };
    let at_ceiling = 500.0 + 1.05e8 / (1e6 * 2.5f64.sqrt()); // after the aim
    assert!((expected.as_secs_f64() - at_ceiling).abs() < 1e-6);
}
