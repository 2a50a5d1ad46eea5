// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the battery of programs (`make life`) judges what it measured; the battery itself is benches/life.

// what only the page shows is not read here
#[allow(dead_code)]
#[path = "../benches/life/verdict.rs"]
mod verdict;

use verdict::{Condition, Due, End, Run, Said, failed, fault, feasible, kept, median, outlooks, seconds};

const QUICK: Run = Run { end: End::Done, seconds: 4.0, kept: None, due: None };

fn lasting(seconds: f64) -> Run {
    Run { seconds, ..QUICK }
}

fn leaving(kept: f64) -> Run {
    Run { kept: Some(kept), ..QUICK }
}

/// Of ten seconds.
fn due(took: f64, on_course_late: bool) -> Run {
    Run { due: Some(Due { given: 10.0, took, said: Some(Said { on_course_late, outlooks: 1 }) }), ..QUICK }
}

#[test]
fn the_median_is_the_middle_and_of_an_even_number_the_mean_of_two() {
    assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    assert!(median([]).is_nan());
    assert_eq!(seconds(&[lasting(9.0), lasting(1.0), lasting(2.0)]), 2.0);
    assert_eq!(kept(&[leaving(0.9), QUICK]), Some(0.9));
    assert_eq!(kept(&[QUICK]), None);
}

#[test]
fn an_idle_link_is_used_about_as_fast_as_without() {
    let plain = [lasting(4.0)];
    // 1.15 * 4 + 0.5
    assert_eq!(fault(Condition::Idle, 1, &[lasting(5.0)], &plain), None);
    assert!(fault(Condition::Idle, 1, &[lasting(5.2)], &plain).is_some());
    let gave_up = Run { end: End::GaveUp, ..lasting(1.0) };
    assert!(fault(Condition::Idle, 1000, &[gave_up], &plain).unwrap().contains("gave up (1 of 1)"));
    assert!(fault(Condition::Idle, 1, &[Run { end: End::WrongData, ..QUICK }], &plain).unwrap().contains("data wrong"));
    assert!(fault(Condition::Idle, 1, &[QUICK], &[]).is_some(), "without a yardstick nothing holds");
}

#[test]
fn a_foreground_keeps_its_rate_and_few_connections_do_not_give_up() {
    assert_eq!(fault(Condition::Far, 1, &[leaving(0.97)], &[]), None);
    assert!(fault(Condition::Far, 1, &[leaving(0.95)], &[]).is_some());
    assert!(fault(Condition::Far, 1, &[QUICK], &[]).is_some(), "not measured is not kept");
    let gave_up = [Run { end: End::GaveUp, ..leaving(0.99) }];
    assert!(fault(Condition::Far, 16, &gave_up, &[]).is_some());
    assert_eq!(fault(Condition::Far, 17, &gave_up, &[]), None);
}

#[test]
fn a_deadline_counts_where_an_ordinary_flow_would_meet_it() {
    let (fast, slow) = ([lasting(8.5)], [lasting(8.6)]);
    assert!(feasible(&[due(9.0, false)], &fast));
    assert!(!feasible(&[due(9.0, false)], &slow));
    assert!(!feasible(&[due(9.0, false)], &[Run { end: End::TooSlow, ..QUICK }]));
    assert_eq!(fault(Condition::Third, 1, &[due(10.0, true)], &fast), None);
    assert!(fault(Condition::Third, 1, &[due(10.1, false)], &fast).is_some(), "missed in the median");
    assert_eq!(fault(Condition::Third, 1, &[due(10.1, false)], &slow), None);
    let one_late = |late| [due(9.0, false), due(9.0, false), due(late, false)];
    assert_eq!(fault(Condition::Third, 1, &one_late(10.2), &fast), None);
    assert!(fault(Condition::Third, 1, &one_late(10.4), &fast).is_some());
}

#[test]
fn on_course_is_not_said_near_the_end_of_a_deadline_that_is_missed() {
    let slow = [lasting(12.0)];
    assert!(fault(Condition::Third, 1, &[due(11.0, true)], &slow).unwrap().contains("on course"));
    assert_eq!(fault(Condition::Third, 1, &[due(9.9, true)], &slow), None);
    let silent = Run { due: Some(Due { given: 10.0, took: 11.0, said: None }), ..QUICK };
    assert_eq!(outlooks(&[due(11.0, true), silent]), Some(1.0));
    assert_eq!(outlooks(&[silent]), None);
    assert!(fault(Condition::Third, 1, &[silent], &slow).unwrap().contains("no report"));
    assert_eq!(failed(&[due(11.0, true), Run { end: End::GaveUp, ..QUICK }]), 1);
}
