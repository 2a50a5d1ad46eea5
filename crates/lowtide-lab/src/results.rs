// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of an experiment's runs.

use crate::{
    cache::{Curve, Entry},
    error::{LabError, Result},
    experiment::written,
    expression::{Cell, Cells, Context, Language, Value, Where},
    plan::Plan,
};
use rhai::{Dynamic, Map};
use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

/// The results of a plan.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    /// The plan.
    pub plan: Plan<'a>,
    /// For each cell, for each run: what was kept, if it was run.
    pub entries: Vec<Vec<Option<Entry>>>,
    /// Why a run cannot be run there, if one cannot.
    pub refused: Option<String>,
    /// Of runs on a testbed: how many another version of the program recorded.
    pub outdated: usize,
    /// Of runs on a testbed: for how long a machine did not run who should have run, at the most, in ms.
    pub standstill_ms: Option<f64>,
    /// What [`Results::cells`] has found, once every run is there.
    compared: OnceCell<Rc<Cells>>,
}

impl<'a> Results<'a> {
    /// Nothing was run yet.
    pub(crate) fn none(plan: Plan<'a>) -> Self {
        let entries = plan.cells.iter().map(|_| vec![None; plan.seeds.len()]).collect();
        Self { plan, entries, refused: None, outdated: 0, standstill_ms: None, compared: OnceCell::new() }
    }

    /// Whether every run is there.
    pub fn complete(&self) -> bool {
        self.entries.iter().flatten().all(Option::is_some)
    }

    /// How many runs are there.
    pub fn done(&self) -> usize {
        self.entries.iter().flatten().flatten().count()
    }

    /// What was measured, and how runs compare with others, for expressions over cells.
    ///
    /// # Errors
    /// What is wrong with an expression that compares, with its place.
    pub fn cells(&self) -> Result<Rc<Cells>> {
        if let Some(cells) = self.compared.get() {
            return Ok(cells.clone());
        }
        let experiment = self.plan.experiment;
        let axes = experiment.axes.iter().map(|axis| {
            let values = axis.values_of(self.plan.extent.quick).into_iter().map(|value| value.written());
            (axis.name.clone(), values.collect())
        });
        let cells = self.plan.cells.iter().zip(&self.entries).map(|(cell, entries)| Cell {
            place: cell.place.clone(),
            runs: entries.iter().flatten().map(|entry| entry.measures.clone()).collect(),
        });
        let measures = experiment.measures.iter().map(|measure| measure.name.clone()).collect();
        let mut cells = Cells { axes: axes.collect(), measures, cells: cells.collect() };
        if experiment.comparisons().next().is_none() || !self.complete() {
            return Ok(Rc::new(cells));
        }
        self.compare(&mut cells)?;
        Ok(self.compared.get_or_init(|| Rc::new(cells)).clone())
    }

    /// Adds the measures that compare two runs. Where there is nothing to compare with, there is no value.
    fn compare(&self, cells: &mut Cells) -> Result<()> {
        let (plan, language) = (&self.plan, Language::new(Context::Nothing));
        let places: HashMap<Where, usize> =
            cells.cells.iter().enumerate().map(|(number, cell)| (cell.place.clone(), number)).collect();
        for measure in plan.experiment.comparisons() {
            let with: Where =
                measure.with.iter().map(|(axis, value)| Ok((axis.clone(), written(value)?))).collect::<Result<_>>()?;
            for (number, cell) in plan.cells.iter().enumerate() {
                let place: Where = cell.place.iter().map(|pair| at(&with, pair)).collect();
                for run in 0..plan.seeds.len() {
                    // in a rehearsal it is there already
                    if cells.cells[number].runs[run].contains_key(&measure.name) {
                        continue;
                    }
                    let other = places.get(&place).map(|other| &cells.cells[*other].runs[run]);
                    let value = match other {
                        None => Value::Number(None),
                        Some(other) => {
                            let mut scope = plan.scope(cell);
                            scope.push_constant("own", map(&cells.cells[number].runs[run]));
                            scope.push_constant("other", map(other));
                            let functions = plan.experiment.functions_for(&measure.value);
                            let value = language.value(functions, &measure.value, &scope);
                            let within = |error: LabError| error.within(format!("measure {}", measure.name));
                            value.map_err(|error| within(error).within(plan.place(number, run)))?
                        }
                    };
                    cells.cells[number].runs[run].insert(measure.name.clone(), value);
                }
            }
        }
        Ok(())
    }

    /// A time series of the first run of each cell at these values that has it, with the cell.
    pub fn curves(&self, name: &str, place: &Where) -> Vec<(&Where, &Curve)> {
        let cells = self.plan.cells.iter().zip(&self.entries);
        let wanted = cells.filter(|(cell, _)| place.iter().all(|value| cell.place.contains(value)));
        wanted.filter_map(|(cell, entries)| Some((&cell.place, entries.first()?.as_ref()?.series.get(name)?))).collect()
    }
}

/// A value of an axis, or what stands in its place.
fn at(with: &Where, pair: &(String, String)) -> (String, String) {
    with.iter().find(|(axis, _)| *axis == pair.0).unwrap_or(pair).clone()
}

/// The measures of a run as an expression has them.
fn map(measures: &BTreeMap<String, Value>) -> Map {
    let dynamic = |value: &Value| match value {
        Value::Number(None) => Dynamic::UNIT,
        Value::Number(Some(number)) => (*number).into(),
        Value::List(list) => Dynamic::from_array(list.iter().copied().map(Dynamic::from).collect()),
    };
    measures.iter().map(|(name, value)| (name.as_str().into(), dynamic(value))).collect()
}
