// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether what a paper says holds.

use crate::{
    error::{LabError, Result},
    experiment::{AxisValue, Bound, Check, Experiment, Kind, Target},
    expression::{Cells, Context, Language, Value, fill},
    results::Results,
    statistics,
};
use rhai::{Dynamic, Map, Scope};
use std::{fmt, rc::Rc};

/// What is said of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All its numbers are within their bands.
    Pass,
    /// All its predicates hold.
    Shape,
    /// The question has an answer.
    Answered,
    /// Something does not hold.
    Miss,
    /// Runs are missing.
    NotRun,
}

impl Verdict {
    /// All of them, in the order of their goodness.
    pub const ALL: [Self; 5] = [Self::Pass, Self::Shape, Self::Answered, Self::Miss, Self::NotRun];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Shape => "shape",
            Self::Answered => "answered",
            Self::Miss => "miss",
            Self::NotRun => "not run",
        })
    }
}

/// A target and what came of it.
#[derive(Clone, Debug)]
pub struct Score<'a> {
    /// Its experiment.
    pub experiment: &'a Experiment,
    /// The target.
    pub target: &'a Target,
    /// What is said of it.
    pub verdict: Verdict,
    /// Its parts; none if it was not run.
    pub checks: Vec<Checked>,
    /// Parts that need cells which are cut away, where the experiment is cut for a testbed; the verdict is without
    /// them.
    pub left_out: usize,
    /// The answer to a question.
    pub answer: Option<String>,
    /// Whether this comes from a quick look.
    pub quick: bool,
    /// Runs of each cell; 0 where there are none.
    pub runs: usize,
}

/// A part of a target and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// What was looked at.
    pub what: String,
    /// The value; `None`: nothing was measured, or it is a predicate.
    pub value: Option<f64>,
    /// The least and the greatest value that single runs would have given.
    pub spread: Option<(f64, f64)>,
    /// The paper's value.
    pub expected: Option<f64>,
    /// The ends of the band.
    pub band: (Option<f64>, Option<f64>),
    /// The unit of all these.
    pub unit: String,
    /// Whether it is a predicate.
    pub predicate: bool,
    /// Whether the value is within the band, or the predicate holds.
    pub holds: bool,
}

/// All targets of an experiment.
///
/// # Errors
/// What is wrong with an expression, with its place.
pub fn score<'a>(results: &Results<'a>) -> Result<Vec<Score<'a>>> {
    let experiment = results.plan.experiment;
    let scores = Scores::new(results)?;
    experiment.targets.iter().map(|target| scores.target(target)).collect()
}

/// What expressions over cells are evaluated with.
pub(crate) struct Scores<'r, 'a> {
    pub(crate) results: &'r Results<'a>,
    pub(crate) cells: Rc<Cells>,
    /// Over all runs.
    pub(crate) language: Language,
    /// Over one run of each cell.
    of_runs: Vec<Language>,
}

impl<'r, 'a> Scores<'r, 'a> {
    pub(crate) fn new(results: &'r Results<'a>) -> Result<Self> {
        let cells = results.cells()?;
        let language = |only| Language::new(Context::Cells(cells.clone(), only));
        let runs = if results.plan.cells.is_empty() { 0 } else { results.plan.seeds.len() };
        let of_runs = if runs > 1 { (0..runs).map(|run| language(Some(run))).collect() } else { Vec::new() };
        Ok(Self { language: language(None), of_runs, results, cells })
    }

    fn target(&self, target: &'a Target) -> Result<Score<'a>> {
        let (experiment, plan) = (self.results.plan.experiment, &self.results.plan);
        let within = |error: LabError| error.within(format!("{}: target {}", experiment.id, target.id));
        let runs = if experiment.scenario.is_some() { plan.seeds.len() } else { 0 };
        let mut score = Score {
            experiment,
            target,
            verdict: Verdict::NotRun,
            checks: Vec::new(),
            left_out: 0,
            answer: None,
            quick: plan.extent.quick,
            runs,
        };
        if !self.results.complete() {
            return Ok(score);
        }
        let mut first_left_out = None;
        for check in &target.checks {
            for values in self.combinations(check) {
                match self.check(check, &values) {
                    Ok(checked) => score.checks.push(checked),
                    // cut away
                    Err(error) if experiment.cut.is_some() && error.is_no_such_cell() => {
                        score.left_out += 1;
                        first_left_out.get_or_insert(error);
                    }
                    Err(error) => return Err(within(error)),
                }
            }
        }
        if let Some(error) = first_left_out.filter(|_| score.checks.is_empty()) {
            return Err(within(error));
        }
        if let Some(answer) = &target.answer {
            let scope = self.scope(&[]);
            score.answer = Some(fill(answer, &self.language, &experiment.functions, &scope).map_err(within)?);
        }
        score.verdict = match target.kind {
            _ if !score.checks.iter().all(|check| check.holds) => Verdict::Miss,
            Kind::Question => Verdict::Answered,
            Kind::Shape => Verdict::Shape,
            Kind::Quantitative | Kind::Unit => Verdict::Pass,
        };
        Ok(score)
    }

    /// The values of the axes of `each`, in all combinations.
    fn combinations(&self, check: &Check) -> Vec<Vec<(&'a str, &'a AxisValue)>> {
        let experiment = self.results.plan.experiment;
        let axes = check.each.names().iter().filter_map(|name| experiment.axis(name));
        axes.fold(vec![Vec::new()], |combinations, axis| {
            let values = axis.values_of(self.results.plan.extent.quick);
            let longer = |before: &Vec<(&'a str, &'a AxisValue)>| -> Vec<Vec<(&'a str, &'a AxisValue)>> {
                let with = |value| before.iter().copied().chain([(axis.name.as_str(), value)]).collect();
                values.iter().copied().map(with).collect()
            };
            combinations.iter().flat_map(longer).collect()
        })
    }

    /// The variables at these values of axes.
    pub(crate) fn scope(&self, values: &[(&str, &AxisValue)]) -> Scope<'static> {
        let mut scope = Scope::new();
        scope.push_constant("quick", self.results.plan.extent.quick);
        let mut here = Map::new();
        for (name, value) in values {
            value.set(name, &mut scope);
            here.insert((*name).into(), value.number().map_or_else(|| value.written().into(), Dynamic::from));
        }
        scope.push_constant("here", here);
        scope
    }

    fn check(&self, check: &Check, values: &[(&str, &AxisValue)]) -> Result<Checked> {
        let (language, functions) = (&self.language, &self.results.plan.experiment.functions);
        let mut scope = self.scope(values);
        let what = fill(&check.what, language, functions, &scope)?;
        let within = |error: LabError| error.within(format!("\"{what}\""));
        if let Some(predicate) = &check.holds {
            let holds = language.evaluate(functions, predicate, &scope).map_err(within)?;
            let holds =
                holds.as_bool().map_err(|kind| LabError::new(format!("`holds` is a {kind}, not true or false")));
            let (holds, unit) = (holds.map_err(within)?, String::new());
            let (value, spread, expected, band) = (None, None, None, (None, None));
            return Ok(Checked { what, value, spread, expected, band, unit, predicate: true, holds });
        }
        let Some(expression) = &check.value else { return Err(LabError::new("neither `value` nor `holds`")) };
        let value = self.value(expression, &scope).map_err(within)?;
        let spread = self.spread(expression, &scope).map_err(within)?;
        let expected = self.bound(check.expected.as_ref(), values, &scope).map_err(within)?;
        if let Some(expected) = expected {
            scope.push_constant("expected", expected);
        }
        let low = self.bound(check.low.as_ref(), values, &scope).map_err(within)?;
        let high = self.bound(check.high.as_ref(), values, &scope).map_err(within)?;
        let in_band = |value: f64| {
            low.is_none_or(|low| value >= low - fuzz(low)) && high.is_none_or(|high| value <= high + fuzz(high))
        };
        let holds = value.is_some_and(in_band);
        let (unit, band) = (check.unit.clone(), (low, high));
        Ok(Checked { what, value, spread, expected, band, unit, predicate: false, holds })
    }

    /// The value of an expression over all runs: a number, or nothing.
    pub(crate) fn value(&self, expression: &str, scope: &Scope<'static>) -> Result<Option<f64>> {
        single(&self.language, &self.results.plan.experiment.functions, expression, scope)
    }

    /// The least and the greatest value of single runs, if there are several.
    pub(crate) fn spread(&self, expression: &str, scope: &Scope<'static>) -> Result<Option<(f64, f64)>> {
        let functions = &self.results.plan.experiment.functions;
        let of_run = |language| single(language, functions, expression, scope);
        let values = self.of_runs.iter().map(of_run).collect::<Result<Vec<_>>>()?;
        let values: Vec<f64> = values.into_iter().flatten().collect();
        Ok(statistics::min(&values).zip(statistics::max(&values)))
    }

    /// A bound at these values of axes.
    pub(crate) fn bound(
        &self,
        bound: Option<&Bound>,
        values: &[(&str, &AxisValue)],
        scope: &Scope<'static>,
    ) -> Result<Option<f64>> {
        match bound {
            None => Ok(None),
            Some(Bound::Number(number)) => Ok(Some(*number)),
            Some(Bound::Expression(expression)) => self.value(expression, scope),
            Some(Bound::Table(table)) => {
                let key = values.iter().map(|(_, value)| value.written()).collect::<Vec<_>>().join(",");
                let bound = table.get(&key).ok_or_else(|| LabError::new(format!("there is no value for {key}")))?;
                self.bound(Some(bound), values, scope)
            }
        }
    }
}

/// What rounding in sums and products may make of the end of a band.
fn fuzz(end: f64) -> f64 {
    1e-9 * end.abs()
}

/// The value of an expression that is a number or nothing.
fn single(language: &Language, functions: &str, expression: &str, scope: &Scope<'static>) -> Result<Option<f64>> {
    match language.value(functions, expression, scope)? {
        Value::Number(number) => Ok(number),
        Value::List(list) => {
            let number = list.len();
            Err(LabError::new(format!(
                "`{expression}` is a list of {number} numbers; one is needed, like their median(…)"
            )))
        }
    }
}
