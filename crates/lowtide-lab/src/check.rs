// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks for mistakes in an experiment without running it.

use crate::{
    cache::{Curve, Entry},
    error::Result,
    experiment::{Experiment, Library},
    expression::{Context, Language, Value},
    figure::draw,
    plan::{Extent, Plan},
    results::Results,
    score::score,
};
use rhai::Map;

/// Cells that are looked at; of more, so many by chance.
const MOST_CELLS: usize = 200;

/// Reads the scenarios of all cells (of many, a part), the words of all measures, and scores and draws made-up results,
/// of the whole experiment, of a quick look, and of what runs elsewhere. What only a run can show (a flow's name in a
/// measure) stays unseen.
///
/// # Errors
/// The first mistake, with its place.
pub fn check(experiment: &Experiment, library: &Library) -> Result<()> {
    let mut language = Language::new(Context::Nothing);
    for quick in [false, true] {
        let mut plan = Plan::new(experiment, Extent { quick, runs: Some(2), ..Extent::default() })?;
        plan.thin(MOST_CELLS);
        let mut results = Results::none(plan.clone());
        for cell in 0..plan.cells.len() {
            for run in 0..plan.seeds.len() {
                results.entries[cell][run] = Some(made_up(&plan, library, &mut language, cell, run)?);
            }
        }
        score(&results)?;
        draw(&results)?;
    }
    for on in &experiment.on_testbeds {
        check(&on.experiment, library).map_err(|error| error.within(format!("on.{}", on.name)))?;
    }
    Ok(())
}

/// What a run might have given.
fn made_up(plan: &Plan<'_>, library: &Library, language: &mut Language, cell: usize, run: usize) -> Result<Entry> {
    let (experiment, job) = (plan.experiment, plan.job(library, language, cell, run)?);
    let laws = experiment.cut.iter().find_map(|cut| job.simulation.request(&cut.kernel_law));
    laws.map_or(Ok(()), |request| request.check_kernel_laws()).map_err(|error| error.within(plan.place(cell, run)))?;
    let mut entry = Entry {
        experiment: experiment.id.clone(),
        place: plan.cells[cell].place.clone(),
        seed: plan.seeds[run],
        measures: Default::default(),
        series: Default::default(),
        wall_s: 0.0,
    };
    let mut of_two = plan.scope(&plan.cells[cell]);
    of_two.push_constant("own", Map::new()).push_constant("other", Map::new());
    for (number, measure) in experiment.measures.iter().enumerate() {
        let place = format!("{}: measure {}", experiment.id, measure.name);
        let scope = if measure.with.is_empty() { &job.scope } else { &of_two };
        // the words of its second run are the same
        if run == 0 {
            let functions = experiment.functions_for(&measure.value);
            language.check(functions, &measure.value, scope).map_err(|error| error.within(place))?;
        }
        entry.measures.insert(measure.name.clone(), Value::from(1.0 + (number + 2 * cell + run) as f64));
    }
    for series in &job.series {
        let place = format!("{}: series {}", experiment.id, series.name);
        language.check(&experiment.functions, &series.value, &job.scope).map_err(|error| error.within(place))?;
        entry.series.insert(series.name.clone(), Curve { times: vec![0.0, 1.0], values: vec![0.0, 1.0] });
    }
    Ok(entry)
}
