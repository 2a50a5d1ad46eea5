// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the battery of programs (`make life`) judges what it measured, and what its page says; the battery itself is
//! benches/life.

// what only measures is not called here
#[allow(dead_code)]
#[path = "../benches/life"]
mod life {
    pub(crate) mod axes;
    pub(crate) mod calls;
    pub(crate) mod job;
    pub(crate) mod page;
    pub(crate) mod process;
    pub(crate) mod programs;
    pub(crate) mod pulls;
    pub(crate) mod site;
    pub(crate) mod tree;
    pub(crate) mod verdict;
    pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
}

use life::{
    axes::{CONDITIONS, DEFAULT, LAWS, Law, ONE_FLOW, PATHS, PLAIN, WAYS, Way},
    page::{Cell, Results},
    programs::PROGRAMS,
    pulls::PULLS,
    verdict::{
        Condition, Due, End, Run, Said, Yardsticks, carried, failed, fault, feasible, kept, median, outlooks, seconds,
    },
};

const QUICK: Run = Run { end: End::Done, seconds: 4.0, kept: None, carried: None, due: None };

fn lasting(seconds: f64) -> Run {
    Run { seconds, ..QUICK }
}

fn leaving(kept: f64) -> Run {
    Run { kept: Some(kept), ..QUICK }
}

/// A program of one connection.
fn one(plain: &[Run]) -> Yardsticks<'_> {
    Yardsticks { plain, one_flow: plain }
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
    assert_eq!(fault(Condition::Idle, 1, &[lasting(5.0)], one(&plain)), None);
    assert!(fault(Condition::Idle, 1, &[lasting(5.2)], one(&plain)).is_some());
    let gave_up = Run { end: End::GaveUp, ..lasting(1.0) };
    assert!(fault(Condition::Idle, 1000, &[gave_up], one(&plain)).unwrap().contains("gave up (1 of 1)"));
    assert!(
        fault(Condition::Idle, 1, &[Run { end: End::WrongData, ..QUICK }], one(&plain)).unwrap().contains("data wrong")
    );
    assert!(fault(Condition::Idle, 1, &[QUICK], one(&[])).is_some(), "without a yardstick nothing holds");
}

#[test]
fn a_foreground_keeps_its_rate_and_few_connections_do_not_give_up() {
    assert_eq!(fault(Condition::Far, 1, &[leaving(0.97)], one(&[])), None);
    assert!(fault(Condition::Far, 1, &[leaving(0.95)], one(&[])).is_some());
    assert!(fault(Condition::Far, 1, &[QUICK], one(&[])).is_some(), "not measured is not kept");
    let gave_up = [Run { end: End::GaveUp, ..leaving(0.99) }];
    assert!(fault(Condition::Far, 16, &gave_up, one(&[])).is_some());
}

#[test]
fn beside_a_foreground_more_than_sixteen_connections_have_no_rule() {
    assert!(fault(Condition::Far, 16, &[leaving(0.5)], one(&[])).is_some());
    assert_eq!(fault(Condition::Far, 17, &[Run { end: End::GaveUp, ..leaving(0.5) }], one(&[])), None);
    let plain = [lasting(4.0)];
    assert!(fault(Condition::Idle, 17, &[lasting(5.2)], one(&plain)).is_some(), "alone they have one");
    assert!(fault(Condition::Third, 17, &[due(10.1, false)], one(&plain)).is_some(), "and with a deadline");
}

#[test]
fn a_deadline_counts_where_an_ordinary_flow_would_meet_it() {
    let (fast, slow) = ([lasting(8.5)], [lasting(8.6)]);
    assert!(feasible(&[due(9.0, false)], one(&fast)));
    assert!(!feasible(&[due(9.0, false)], one(&slow)));
    assert!(!feasible(&[due(9.0, false)], one(&[Run { end: End::TooSlow, ..QUICK }])));
    assert_eq!(fault(Condition::Third, 1, &[due(10.0, true)], one(&fast)), None);
    assert!(fault(Condition::Third, 1, &[due(10.1, false)], one(&fast)).is_some(), "missed in the median");
    assert_eq!(fault(Condition::Third, 1, &[due(10.1, false)], one(&slow)), None);
    let one_late = |late| [due(9.0, false), due(9.0, false), due(late, false)];
    assert_eq!(fault(Condition::Third, 1, &one_late(10.2), one(&fast)), None);
    assert!(fault(Condition::Third, 1, &one_late(10.4), one(&fast)).is_some());
}

#[test]
fn a_deadline_of_many_connections_is_feasible_if_one_flow_meets_it_too() {
    let (fast, slow) = ([lasting(8.5)], [lasting(8.6)]);
    let late = [due(10.1, false)];
    assert!(fault(Condition::Third, 16, &late, Yardsticks { plain: &fast, one_flow: &fast }).is_some());
    assert_eq!(fault(Condition::Third, 16, &late, Yardsticks { plain: &fast, one_flow: &slow }), None);
    assert_eq!(fault(Condition::Third, 16, &late, Yardsticks { plain: &slow, one_flow: &fast }), None);
    let at_its_limit = [Run { end: End::TooSlow, ..QUICK }];
    assert!(!feasible(&late, Yardsticks { plain: &fast, one_flow: &at_its_limit }));
    assert!(!feasible(&late, Yardsticks { plain: &fast, one_flow: &[] }), "without a yardstick nothing is feasible");
}

#[test]
fn what_a_program_sends_is_known_of_runs_that_did_their_work() {
    let sent = |bytes| Run { carried: Some(bytes), ..QUICK };
    assert_eq!(carried(&[sent(7), Run { end: End::TooSlow, ..sent(1) }, sent(9)]), Some(8));
    assert_eq!(carried(&[QUICK]), None);
}

#[test]
fn on_course_is_not_said_near_the_end_of_a_deadline_that_is_missed() {
    let slow = [lasting(12.0)];
    assert!(fault(Condition::Third, 1, &[due(11.0, true)], one(&slow)).unwrap().contains("on course"));
    assert_eq!(fault(Condition::Third, 1, &[due(9.9, true)], one(&slow)), None);
    let silent = Run { due: Some(Due { given: 10.0, took: 11.0, said: None }), ..QUICK };
    assert_eq!(outlooks(&[due(11.0, true), silent]), Some(1.0));
    assert_eq!(outlooks(&[silent]), None);
    assert!(fault(Condition::Third, 1, &[silent], one(&slow)).unwrap().contains("no report"));
    assert_eq!(failed(&[due(11.0, true), Run { end: End::GaveUp, ..QUICK }]), 1);
}

/// The cells of a program with several connections (curl) or one (rsync), whose deadline the default misses.
fn late(name: &str) -> Vec<Cell> {
    let program = PROGRAMS.iter().find(|program| program.name == name).unwrap();
    let cell =
        |law: &'static Law, run| Cell { program, path: &PATHS[0], condition: Condition::Third, law, runs: vec![run] };
    let mut cells = vec![cell(PLAIN, lasting(7.0)), cell(&LAWS[1], due(9.0, false)), cell(DEFAULT, due(11.0, false))];
    if program.connections > 1 {
        cells.push(cell(ONE_FLOW, lasting(9.5)));
    }
    cells
}

#[test]
fn each_word_that_chooses_is_the_name_of_one_thing() {
    let programs = PROGRAMS.iter().chain(&PULLS).map(|it| it.name);
    let axes = PATHS.iter().map(|it| it.name).chain(LAWS.iter().map(|it| it.name));
    let axes = axes.chain(CONDITIONS.iter().map(|it| it.1)).chain(WAYS.iter().map(|it| it.1));
    let mut names: Vec<&str> = programs.chain(axes).collect();
    names.sort_unstable();
    let distinct = names.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(distinct, names.len(), "{names:?}");
}

#[test]
fn downloads_are_measured_under_the_only_law_that_governs_them() {
    assert!(PROGRAMS.iter().all(|it| it.way == Way::Up));
    assert!(PULLS.iter().all(|it| it.way == Way::Down));
    let laws: Vec<&Law> = LAWS.iter().filter(|law| law.goes(Way::Down)).collect();
    assert!(laws.iter().all(|law| law.options.is_none_or(<[_]>::is_empty)), "{laws:?}");
    assert!(PLAIN.goes(Way::Down) && DEFAULT.goes(Way::Down));
}

#[test]
fn the_page_shows_the_yardstick_of_one_flow_and_lists_the_cells_of_the_default() {
    let results = Results(late("rsync").into_iter().chain(late("curl")).collect());
    let tables = results.tables();
    assert!(tables.contains("| program | path | plain | one CUBIC flow | cdg | default |\n"), "{tables}");
    assert!(
        tables.contains("| rsync | 20mbit | 7.0 s; – % | – | 9.0 of 10 s; – %; 1 | **11.0 of 10 s; – %; 1** |"),
        "{tables}"
    );
    let curl = "| curl | 20mbit | 7.0 s; – % | 9.5 s; – % | 9.0 of 10 s (not feasible); – %; 1 | 11.0 of 10 s (not feasible); – %; 1 |";
    assert!(tables.contains(curl), "{tables}");
    let verdicts = results.verdicts();
    assert!(verdicts.starts_with("| cells that break a rule | cdg | default |\n|---|--:|--:|\n"), "{verdicts}");
    assert!(verdicts.contains("with a deadline that needs a third of the link | 0 of 2 | 1 of 2 |\n"), "{verdicts}");
    assert!(verdicts.ends_with("Those of `default`:\n\n- rsync 20mbit third: late by 10.0 %\n"), "{verdicts}");
    assert_eq!(results.failures(), 0);
}
