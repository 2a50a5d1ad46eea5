// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of an experiment's runs.

use crate::{
    cache::{Curve, Entry},
    expression::{Cell, Cells, Where},
    plan::Plan,
};
use std::rc::Rc;

/// The results of a plan.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    /// The plan.
    pub plan: Plan<'a>,
    /// For each cell, for each run: what was kept, if it was run.
    pub entries: Vec<Vec<Option<Entry>>>,
}

impl<'a> Results<'a> {
    /// Nothing was run yet.
    pub(crate) fn none(plan: Plan<'a>) -> Self {
        let entries = plan.cells.iter().map(|_| vec![None; plan.seeds.len()]).collect();
        Self { plan, entries }
    }

    /// Whether every run is there.
    pub fn complete(&self) -> bool {
        self.entries.iter().flatten().all(Option::is_some)
    }

    /// How many runs are there.
    pub fn done(&self) -> usize {
        self.entries.iter().flatten().flatten().count()
    }

    /// What was measured, for expressions over cells.
    pub fn cells(&self) -> Rc<Cells> {
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
        Rc::new(Cells { axes: axes.collect(), measures, cells: cells.collect() })
    }

    /// A time series of the first run of each cell at these values that has it, with the cell.
    pub fn curves(&self, name: &str, place: &Where) -> Vec<(&Where, &Curve)> {
        let cells = self.plan.cells.iter().zip(&self.entries);
        let wanted = cells.filter(|(cell, _)| place.iter().all(|value| cell.place.contains(value)));
        wanted.filter_map(|(cell, entries)| Some((&cell.place, entries.first()?.as_ref()?.series.get(name)?))).collect()
    }
}
