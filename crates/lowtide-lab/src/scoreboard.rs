// SPDX-License-Identifier: MIT OR Apache-2.0
//! `scoreboard.json`: all targets and their verdicts, the same whenever the same program ran the same experiments.

use crate::{
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

/// The scores as JSON, in the order of the targets' names.
pub fn scoreboard(scores: &[Score<'_>], place: Place) -> String {
    let mut targets: Vec<Line<'_>> = scores.iter().map(line).collect();
    targets.sort_by_key(|line| line.id);
    let mut counts: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for score in scores {
        *counts.entry(score.target.kind.word()).or_default().entry(score.verdict.to_string()).or_insert(0) += 1;
    }
    let board = Scoreboard { version: env!("CARGO_PKG_VERSION"), place: place.to_string(), counts, targets };
    serde_json::to_string_pretty(&board).expect("text keys and numbers") + "\n"
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
