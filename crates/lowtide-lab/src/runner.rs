// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs what is not there yet, on all cores.

use crate::{
    Recording,
    cache::{self, Cache, Curve, Entry},
    error::{LabError, Result},
    experiment::{Cut, Library},
    expression::{Context, Language},
    plan::{Job, Plan},
    progress::Progress,
    results::Results,
    shard::Shard,
    testbed::{Testbed, same_version},
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
    /// Whether to record anew what a testbed recorded before.
    pub again: bool,
    /// Threads; all cores if this is not given, or as many as do not disturb each other.
    pub threads: Option<NonZeroUsize>,
    /// What runs the plans that are made for a testbed; `None`: the simulator.
    pub testbed: Option<&'a dyn Testbed>,
}

/// What came of a run.
enum Came {
    /// It is there; whether it was run just now.
    Result(Entry, bool),
    /// It is there, run on a testbed.
    Recorded(TestbedRun),
    /// It was not run before, and shall not be.
    Nothing,
    /// It cannot be run there.
    Refused(String),
}

/// A run on a testbed.
struct TestbedRun {
    entry: Entry,
    /// Whether it was run just now.
    fresh: bool,
    /// Whether another version of the program recorded it.
    outdated: bool,
    standstill_ms: Option<f64>,
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
        let seconds = plans.iter().map(|plan| self.seconds(plan)).collect::<Result<Vec<_>>>()?;
        let cost = |number: &Number| (seconds[number.plan] * 1e3).max(1.0) as u64;
        let progress = Progress::new(numbers.len(), numbers.iter().map(cost).sum(), self.run);
        let mut results: Vec<Results<'p>> = plans.iter().cloned().map(Results::none).collect();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let usual = || self.testbed.map_or_else(cores, Testbed::at_once);
        let threads = self.threads.map_or_else(usual, NonZeroUsize::get).max(1);
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
                    Ok(came) => {
                        let fresh =
                            matches!(came, Came::Result(_, true) | Came::Recorded(TestbedRun { fresh: true, .. }));
                        progress.one_done(plans[number.plan].experiment, cost(&number), fresh);
                        take(&mut results[number.plan], number, came);
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

    /// How long a run takes, about, in proportion to those of other plans.
    fn seconds(&self, plan: &Plan<'_>) -> Result<f64> {
        if self.testbed.is_some() {
            Ok(plan.duration(self.library)?.as_secs_f64())
        } else {
            Ok(plan.experiment.run_seconds)
        }
    }

    fn entry(&self, plan: &Plan<'_>, language: &mut Language, number: Number) -> Result<Came> {
        let job = plan.job(self.library, language, number.cell, number.run)?;
        if let Some((testbed, cut)) = self.testbed.zip(plan.experiment.cut.as_ref()) {
            let recorded = self.on_testbed(testbed, cut, plan, language, number, &job);
            return recorded.map_err(|error| error.within(plan.place(number.cell, number.run)));
        }
        if let Some(entry) = self.cache.get(&plan.experiment.id, &job.key)? {
            return Ok(Came::Result(entry, false));
        }
        if !self.run {
            return Ok(Came::Nothing);
        }
        let entry =
            perform(plan, language, number, &job).map_err(|error| error.within(plan.place(number.cell, number.run)))?;
        self.cache.put(&job.key, &entry)?;
        Ok(Came::Result(entry, true))
    }

    /// The same of a run on a testbed. What is kept of it is its recording, or why there is none.
    fn on_testbed(
        &self,
        testbed: &dyn Testbed,
        cut: &Cut,
        plan: &Plan<'_>,
        language: &mut Language,
        number: Number,
        job: &Job<'_>,
    ) -> Result<Came> {
        let started = Instant::now();
        let Some(request) = job.simulation.request(&cut.kernel_law) else {
            return Ok(Came::Refused("a numerical model has no packets".to_owned()));
        };
        let (id, key) = (&plan.experiment.id, cache::key_of_recording(testbed, &request));
        let refusal = if self.run { testbed.refusal(&request) } else { self.cache.refusal(id, &key)? };
        if self.run {
            self.cache.put_refusal(id, &key, refusal.as_deref())?;
            self.cache.put_environment(id, testbed.place(), testbed.environment())?;
        }
        if let Some(why) = refusal {
            return Ok(Came::Refused(why));
        }
        let known = if self.run && self.again { None } else { self.cache.recording(id, &key)? };
        let (recording, fresh) = match known {
            Some(recording) => (recording, false),
            None if !self.run => return Ok(Came::Nothing),
            None => {
                let recording = Recording { version: Some(testbed.version().to_owned()), ..testbed.run(&request)? };
                self.cache.put_recording(id, &key, &recording)?;
                (recording, true)
            }
        };
        let outdated = !same_version(recording.version.as_deref(), testbed.version());
        let standstill_ms = recording.links.iter().filter_map(|link| link.facts.get("standstill_ms").copied()).next();
        let entry = measure(plan, language, number, job, recording, started)?;
        Ok(Came::Recorded(TestbedRun { entry, fresh, outdated, standstill_ms }))
    }
}

/// Takes up what came of a run.
fn take(results: &mut Results<'_>, number: Number, came: Came) {
    let entry = match came {
        Came::Result(entry, _) => entry,
        Came::Recorded(recorded) => {
            results.outdated += usize::from(recorded.outdated);
            let standstill = results.standstill_ms.into_iter().chain(recorded.standstill_ms);
            results.standstill_ms = standstill.reduce(f64::max);
            recorded.entry
        }
        Came::Nothing => return,
        Came::Refused(why) => {
            results.refused.get_or_insert(why);
            return;
        }
    };
    results.entries[number.cell][number.run] = Some(entry);
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Runs it and measures.
fn perform(plan: &Plan<'_>, language: &mut Language, number: Number, job: &Job<'_>) -> Result<Entry> {
    let started = Instant::now();
    let recording = job.simulation.record(&plan.experiment.record.packets);
    measure(plan, language, number, job, recording, started)
}

fn measure(
    plan: &Plan<'_>,
    language: &mut Language,
    number: Number,
    job: &Job<'_>,
    recording: Recording,
    started: Instant,
) -> Result<Entry> {
    let experiment = plan.experiment;
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
