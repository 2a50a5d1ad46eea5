// SPDX-License-Identifier: MIT OR Apache-2.0
//! `scoreboard.json`: all targets and their verdicts, the same whenever the same program ran the same experiments.

use crate::{
    comparison::{Compared, Comparison},
    place::Place,
    score::{Checked, Score, Verdict},
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The file.
#[derive(Clone, Debug, Serialize)]
struct Scoreboard<'a> {
    version: &'a str,
    place: String,
    counts: BTreeMap<&'static str, BTreeMap<String, usize>>,
    targets: Vec<Line<'a>>,
    /// Kernels: what is measured there is not the same each time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elsewhere: Vec<Board<'a>>,
}

/// An experiment on a testbed.
#[derive(Clone, Debug, Serialize)]
struct Board<'a> {
    experiment: &'a str,
    on: &'a str,
    place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'a str>,
    /// Runs that another version of the program recorded.
    recorded_by_another_version: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    standstill_ms: Option<f64>,
    targets: Vec<There<'a>>,
}

/// A target on a testbed.
#[derive(Clone, Debug, Serialize)]
struct There<'a> {
    id: &'a str,
    verdict: String,
    /// Parts that cannot run there; the verdict is without them.
    left_out: usize,
    quick: bool,
    runs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    checks: Vec<PartThere<'a>>,
}

/// A part of a target on a testbed, with what the simulator makes of the same scenario.
#[derive(Clone, Debug, Serialize)]
struct PartThere<'a> {
    #[serde(flatten)]
    part: Part<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<f64>,
    notable: bool,
}

/// A target.
#[derive(Clone, Debug, Serialize)]
struct Line<'a> {
    id: &'a str,
    paper: &'a str,
    experiment: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    restates: Option<&'a str>,
    verdict: String,
    quick: bool,
    runs: usize,
    claim: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a str>,
    checks: Vec<Part<'a>>,
}

/// A part of a target.
#[derive(Clone, Debug, Serialize)]
struct Part<'a> {
    what: &'a str,
    holds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
}

/// The scores as JSON, in the order of the targets' names, and after them those of other places.
pub fn scoreboard(scores: &[Score<'_>], elsewhere: &[&Comparison<'_>]) -> String {
    let mut targets: Vec<Line<'_>> = scores.iter().map(line).collect();
    targets.sort_by_key(|line| line.id);
    let mut counts: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for score in scores {
        *counts.entry(score.target.kind.word()).or_default().entry(score.verdict.to_string()).or_insert(0) += 1;
    }
    let (version, place) = (env!("CARGO_PKG_VERSION"), Place::Sim.to_string());
    let elsewhere = elsewhere.iter().map(|column| board(column)).collect();
    let board = Scoreboard { version, place, counts, targets, elsewhere };
    serde_json::to_string_pretty(&board).expect("text keys and numbers") + "\n"
}

fn board<'a>(column: &'a Comparison<'_>) -> Board<'a> {
    let there = |score: &'a Score<'_>| There {
        id: &score.target.id,
        verdict: score.verdict.to_string(),
        left_out: score.left_out,
        quick: score.quick,
        runs: score.runs,
        reason: column.on.reason.get(&score.target.id).map(|reason| reason.trim()),
        checks: column.compare(&score.target.id).iter().map(part_there).collect(),
    };
    Board {
        experiment: &column.results.plan.experiment.id,
        on: &column.on.name,
        place: column.on.place.to_string(),
        environment: column.environment.as_deref(),
        refused: column.results.refused.as_deref(),
        recorded_by_another_version: column.results.outdated,
        standstill_ms: column.results.standstill_ms.map(rounded),
        targets: column.scores.iter().map(there).collect(),
    }
}

fn part_there<'a>(compared: &Compared<'a>) -> PartThere<'a> {
    PartThere {
        part: part(compared.there),
        simulated: compared.simulated.and_then(|it| it.value).map(rounded),
        difference: compared.difference.map(rounded),
        notable: compared.is_notable(),
    }
}

fn line<'a>(score: &'a Score<'_>) -> Line<'a> {
    let (experiment, target) = (score.experiment, score.target);
    Line {
        id: &target.id,
        paper: &experiment.paper,
        experiment: &experiment.id,
        kind: target.kind.word(),
        restates: target.restates.as_deref(),
        verdict: score.verdict.to_string(),
        quick: score.quick,
        runs: score.runs,
        claim: target.claim.trim(),
        reason: target.reason.as_deref().map(str::trim).filter(|_| score.verdict == Verdict::Miss),
        answer: score.answer.as_deref().map(str::trim),
        checks: score.checks.iter().map(part).collect(),
    }
}

fn part(check: &Checked) -> Part<'_> {
    Part {
        what: &check.what,
        holds: check.holds,
        value: check.value.map(rounded),
        spread: check.spread.map(|(least, most)| [rounded(least), rounded(most)]),
        expected: check.expected.map(rounded),
        low: check.band.0.map(rounded),
        high: check.band.1.map(rounded),
        unit: &check.unit,
    }
}

/// With six digits that mean something.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
