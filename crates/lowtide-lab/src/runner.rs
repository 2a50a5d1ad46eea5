// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs what is not there yet, on all cores.

use crate::{
    cache::{Cache, Curve, Entry},
    error::{LabError, Result},
    experiment::Library,
    expression::{Context, Language},
    plan::{Job, Plan},
    progress::Progress,
    results::Results,
    shard::Shard,
};
use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    rc::Rc,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

/// How runs come about.
#[derive(Clone, Debug)]
pub struct Runner<'a> {
    /// Where scenarios are.
    pub library: &'a Library,
    /// Where results are kept.
    pub cache: &'a Cache,
    /// The part of the runs that this process does.
    pub shard: Shard,
    /// Whether to run what is not in the cache.
    pub run: bool,
    /// Threads; all cores if this is not given.
    pub threads: Option<NonZeroUsize>,
}

/// A run, by its places in the list of plans, in the plan's cells and in its seeds.
#[derive(Clone, Copy)]
struct Number {
    plan: usize,
    cell: usize,
    run: usize,
}

impl Runner<'_> {
    /// The results of all plans, as far as they are in the cache or are run now.
    ///
    /// # Errors
    /// The first thing that went wrong in a run, with its place.
    pub fn results<'p>(&self, plans: Vec<Plan<'p>>) -> Result<Vec<Results<'p>>> {
        let all = plans.iter().enumerate().flat_map(|(number, plan)| {
            let runs = move |cell| (0..plan.seeds.len()).map(move |run| Number { plan: number, cell, run });
            (0..plan.cells.len()).flat_map(runs)
        });
        let numbers: Vec<Number> =
            all.enumerate().filter(|(n, _)| self.shard.has(*n)).map(|(_, number)| number).collect();
        let cost = |number: &Number| (plans[number.plan].experiment.run_seconds * 1e3).max(1.0) as u64;
        let progress = Progress::new(numbers.len(), numbers.iter().map(cost).sum(), self.run);
        let mut results: Vec<Results<'p>> = plans.iter().cloned().map(Results::none).collect();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let threads = self.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let outcome = thread::scope(|scope| {
            for _ in 0..threads.min(numbers.len()) {
                let (sender, numbers, plans, next, stop) = (sender.clone(), &numbers, &plans, &next, &stop);
                scope.spawn(move || {
                    let mut language = Language::new(Context::Nothing);
                    while let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                        let entry = self.entry(&plans[number.plan], &mut language, number);
                        if stop.load(Ordering::Relaxed) || sender.send((number, entry)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let mut failure = None;
            for (number, entry) in receiver {
                match entry {
                    Ok(found) => {
                        let fresh = matches!(found, Some((_, true)));
                        progress.one_done(plans[number.plan].experiment, cost(&number), fresh);
                        results[number.plan].entries[number.cell][number.run] = found.map(|(entry, _)| entry);
                    }
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        failure.get_or_insert(error);
                    }
                }
            }
            failure.map_or(Ok(()), Err)
        });
        progress.finish(outcome.is_ok());
        outcome.map(|()| results)
    }

    /// The result of a run, and whether it was run just now; `None`: it is not there and shall not be run.
    fn entry(&self, plan: &Plan<'_>, language: &mut Language, number: Number) -> Result<Option<(Entry, bool)>> {
        let job = plan.job(self.library, language, number.cell, number.run)?;
        if let Some(entry) = self.cache.get(&plan.experiment.id, &job.key)? {
            return Ok(Some((entry, false)));
        }
        if !self.run {
            return Ok(None);
        }
        let entry =
            perform(plan, language, number, &job).map_err(|error| error.within(plan.place(number.cell, number.run)))?;
        self.cache.put(&job.key, &entry)?;
        Ok(Some((entry, true)))
    }
}

/// Runs it and measures.
fn perform(plan: &Plan<'_>, language: &mut Language, number: Number, job: &Job<'_>) -> Result<Entry> {
    let (experiment, started) = (plan.experiment, Instant::now());
    let recording = job.simulation.record(&experiment.record.packets);
    language.set_context(Context::Run(Rc::new(recording)));
    let (functions, scope) = (&experiment.functions, &job.scope);
    let mut measures = BTreeMap::new();
    for measure in experiment.measures_of_runs() {
        let within = |error: LabError| error.within(format!("measure {}", measure.name));
        measures.insert(measure.name.clone(), language.value(functions, &measure.value, scope).map_err(within)?);
    }
    let mut series = BTreeMap::new();
    for it in &job.series {
        let within = |error: LabError| error.within(format!("series {}", it.name));
        let curve = language.series(functions, &it.value, scope).map_err(within)?;
        series.insert(it.name.clone(), Curve::from(&curve));
    }
    language.set_context(Context::Nothing);
    Ok(Entry {
        experiment: experiment.id.clone(),
        place: plan.cells[number.cell].place.clone(),
        seed: plan.seeds[number.run],
        measures,
        series,
        wall_s: started.elapsed().as_secs_f64(),
    })
}
