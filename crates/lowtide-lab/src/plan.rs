// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which runs an experiment has.

use crate::{
    cache,
    error::{LabError, Result},
    experiment::{AxisValue, Experiment, Library, SeriesOf},
    expression::{Context, Language, Value, Where},
    scenario::Simulation,
};
use lowtide_cc::Random;
use rhai::Scope;
use std::{cell::RefCell, rc::Rc};

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Only its `quick` values and `quick_runs`.
    pub quick: bool,
    /// So many runs of each cell, in place of its own number.
    pub runs: Option<u32>,
    /// The seed of the first run.
    pub seed: u64,
}

impl Default for Extent {
    fn default() -> Self {
        Self { quick: false, runs: None, seed: 1 }
    }
}

/// The runs of an experiment.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// Of this one.
    pub experiment: &'a Experiment,
    /// To this extent.
    pub extent: Extent,
    /// The seeds of each cell's runs.
    pub seeds: Vec<u64>,
    /// The cells, the last axis changing fastest.
    pub cells: Vec<PlannedCell<'a>>,
}

/// A combination of values of all axes.
#[derive(Clone, Debug)]
pub struct PlannedCell<'a> {
    /// The values, in the order of the axes.
    pub values: Vec<&'a AxisValue>,
    /// The same as they are written.
    pub place: Where,
}

/// A run, ready to be run.
pub(crate) struct Job<'a> {
    /// What is simulated.
    pub(crate) simulation: Simulation,
    /// The variables of its expressions.
    pub(crate) scope: Scope<'static>,
    /// The time series that are kept.
    pub(crate) series: Vec<&'a SeriesOf>,
    /// By which its result is found again.
    pub(crate) key: String,
}

impl<'a> Plan<'a> {
    /// The runs of this experiment.
    ///
    /// # Errors
    /// What is wrong with its `only`.
    pub fn new(experiment: &'a Experiment, extent: Extent) -> Result<Self> {
        let runs = extent.runs.unwrap_or(if extent.quick { experiment.quick_runs } else { experiment.runs });
        let seeds = (0..u64::from(runs)).map(|run| extent.seed.wrapping_add(run)).collect();
        let mut plan = Self { experiment, extent, seeds, cells: Vec::new() };
        if experiment.scenario.is_none() {
            return Ok(plan);
        }
        let mut combinations: Vec<Vec<&AxisValue>> = vec![Vec::new()];
        for axis in &experiment.axes {
            let values = axis.values_of(extent.quick);
            let longer = |before: &Vec<&'a AxisValue>| -> Vec<Vec<&'a AxisValue>> {
                values.iter().map(|value| before.iter().copied().chain([*value]).collect()).collect()
            };
            combinations = combinations.iter().flat_map(longer).collect();
        }
        let language = Language::new(Context::Nothing);
        for values in combinations {
            let names = experiment.axes.iter().map(|axis| axis.name.clone());
            let place = names.zip(values.iter().map(|value| value.written())).collect();
            let cell = PlannedCell { values, place };
            if plan.holds(experiment.only.as_deref(), &language, &cell).map_err(|error| error.within("only"))? {
                plan.cells.push(cell);
            }
        }
        Ok(plan)
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.cells.len() * self.seeds.len()
    }

    /// The variables of a cell: its values, and those that hold for all.
    pub fn scope(&self, cell: &PlannedCell<'_>) -> Scope<'static> {
        let mut scope = Scope::new();
        scope.push_constant("quick", self.extent.quick);
        for (axis, value) in self.experiment.axes.iter().zip(&cell.values) {
            value.set(&axis.name, &mut scope);
        }
        scope
    }

    fn holds(&self, condition: Option<&str>, language: &Language, cell: &PlannedCell<'_>) -> Result<bool> {
        let Some(condition) = condition else { return Ok(true) };
        let value = language.value(&self.experiment.functions, condition, &self.scope(cell))?;
        Ok(value != Value::from(0.0))
    }

    /// The run `run` of the cell `cell`.
    ///
    /// # Errors
    /// What is wrong with an expression or the scenario, with the place.
    pub(crate) fn job(&self, library: &Library, language: &mut Language, cell: usize, run: usize) -> Result<Job<'a>> {
        let mut job = || {
            let (experiment, cell, seed) = (self.experiment, &self.cells[cell], self.seeds[run]);
            let mut scope = self.scope(cell);
            let signed = i64::try_from(seed).map_err(|_| LabError::new("the seed is too large; at most 2^63 - 1"))?;
            scope.push_constant("seed", signed);
            language.set_context(Context::Chance(Rc::new(RefCell::new(Random::new(seed)))));
            for (name, expression) in &experiment.draw {
                let toml::Value::String(expression) = expression else {
                    return Err(LabError::new(format!("draw: {name}: a text with an expression is expected")));
                };
                let value = language.evaluate(&experiment.functions, expression, &scope);
                let value = value.map_err(|error| error.within(format!("draw: {name}")))?;
                scope.push_constant_dynamic(name, value);
            }
            let simulation =
                Simulation::new(experiment, library, language, &scope).map_err(|it| it.within("scenario"))?;
            language.set_context(Context::Nothing);
            let mut series = Vec::new();
            for it in experiment.series.iter().filter(|_| run == 0) {
                if self.holds(it.only.as_deref(), language, cell).map_err(|error| error.within(&it.name))? {
                    series.push(it);
                }
            }
            let told = |name: &str| name != "quick" || experiment.expressions().any(|text| text.contains("quick"));
            let variables = scope.iter().filter(|(name, _, _)| told(name));
            let variables: Vec<_> = variables.map(|(name, _, value)| (name.to_owned(), value.to_string())).collect();
            let key = cache::key(experiment, &simulation.to_toml(), &variables, &series);
            Ok(Job { simulation, scope, series, key })
        };
        job().map_err(|error| error.within(self.place(cell, run)))
    }

    /// A run, for messages.
    pub(crate) fn place(&self, cell: usize, run: usize) -> String {
        let cell = self.cells[cell].place.iter().map(|(axis, value)| format!("{axis}={value}"));
        let words: Vec<String> = cell.chain([format!("seed {}", self.seeds[run])]).collect();
        format!("{} ({})", self.experiment.id, words.join(", "))
    }

    /// The scenario of a run, as `lowtide sim` reads it.
    ///
    /// # Errors
    /// What is wrong with an expression or the scenario.
    pub fn scenario(&self, library: &Library, cell: usize, run: usize) -> Result<String> {
        let mut language = Language::new(Context::Nothing);
        Ok(self.job(library, &mut language, cell, run)?.simulation.to_toml())
    }
}
