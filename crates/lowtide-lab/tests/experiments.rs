// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiments that come with the program, and a handful of their targets.

use lowtide_lab::{
    Cache, Extent, Library, Plan, Runner, Shard, check,
    score::{Verdict, score},
};

#[test]
fn nothing_is_wrong_with_any() {
    let library = Library::built_in().unwrap();
    assert!(!library.experiments.is_empty());
    for experiment in &library.experiments {
        check(experiment, &library).unwrap_or_else(|error| panic!("{error}"));
        assert!(experiment.scenario.is_none() || experiment.run_seconds > 0.0, "{}: run_seconds", experiment.id);
    }
}

/// Targets that take a few seconds together: of each sort one.
#[test]
fn fast_targets_hold() {
    let library = Library::built_in().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::new(directory.path());
    let experiments = ["formulas", "kinds-of-foreground"].map(str::to_owned);
    let extent = Extent { quick: true, ..Extent::default() };
    let plans = library.choose(&experiments).unwrap().into_iter().map(|it| Plan::new(it, extent).unwrap()).collect();
    let runner = Runner {
        library: &library,
        cache: &cache,
        shard: Shard::WHOLE,
        run: true,
        threads: None,
        again: false,
        testbed: None,
    };
    let mut verdicts = Vec::new();
    for results in runner.results(plans).unwrap() {
        for score in score(&results).unwrap() {
            println!("{} {}: {:#?}", score.target.id, score.verdict, score.checks);
            verdicts.push((score.target.id.clone(), score.verdict));
        }
    }
    let expected = ["C-08", "X-01", "X-02", "X-03"].map(|id| (id.to_owned(), Verdict::Pass));
    assert_eq!(verdicts, expected);
}
