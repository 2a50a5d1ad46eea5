// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide lab`: the papers' claims, run and scored.

use std::{
    env,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    thread,
};

use anyhow::{Context, Error, Result, anyhow, bail};
use lowtide_lab::{
    Cache, Comparison, Extent, Library, NoShard, Place, Plan, Runner, Shard,
    experiment::{Experiment, OnTestbed},
    report::{self, Section},
    score::{Checked, Score, Verdict, score},
    scoreboard,
    testbed::{Recorded, Testbed},
};

use lowtide_sim::scenario;

use crate::{
    cli::{CellArguments, LabArguments, LabCommand, LabRunArguments, LabTestbedArguments, command_for},
    draft,
    testbeds::testbed,
};

/// Does what the arguments say.
///
/// # Errors
/// One sentence: what is wrong with an experiment, a run or a file, and where.
pub fn lab(arguments: &LabArguments) -> Result<ExitCode> {
    let library = match &arguments.experiments {
        Some(directory) => Library::read(directory)?,
        None => Library::built_in()?,
    };
    let cache = match &arguments.cache {
        Some(directory) => Cache::new(directory),
        None => Cache::usual().map_err(|error| anyhow!("{error}; give --cache DIR"))?,
    };
    match &arguments.command {
        LabCommand::List { ids } => list(&library.choose(ids)?, &library, &cache),
        LabCommand::Run(run) => self::run(run, &library, &cache),
        LabCommand::Report { ids, out, markdown, kernels, cells } => {
            report(&library.choose(ids)?, &library, &cache, (out, markdown.as_deref(), kernels.as_deref()), *cells)
        }
        LabCommand::Merge { directories } => merge(directories.iter().map(AsRef::as_ref), &cache),
        LabCommand::Scenario { id, place, seed } => scenario(&library, id, place, *seed),
        LabCommand::Testbed(arguments) => on_testbed(arguments),
        LabCommand::Check { ids } => check(&library.choose(ids)?, &library),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn list(experiments: &[&Experiment], library: &Library, cache: &Cache) -> Result<()> {
    let mut out = io::stdout().lock();
    let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    for experiment in experiments {
        let seconds = cache.seconds_per_run(&experiment.id)?.unwrap_or(experiment.run_seconds);
        let time = |quick| -> Result<String> {
            let plan = Plan::new(experiment, Extent { quick, ..Extent::default() })?;
            Ok(duration(plan.runs() as f64 * seconds / cores))
        };
        let targets: Vec<&str> = experiment.targets.iter().map(|target| target.id.as_str()).collect();
        let of = if experiment.of.is_empty() { String::new() } else { format!(", {}", experiment.of) };
        let paper = if experiment.is_of_a_paper() { "paper " } else { "" };
        writeln!(out, "{}  ({paper}{}{of})", experiment.id, experiment.paper)?;
        writeln!(out, "    {}", experiment.title)?;
        writeln!(out, "    {}; about {}, quick {}", targets.join(" "), time(false)?, time(true)?)?;
        for on in &experiment.on_testbeds {
            let plan = Plan::new(&on.experiment, Extent::default())?;
            let length = duration(plan.duration(library)?.as_secs_f64());
            let plural = if plan.runs() == 1 { "" } else { "s" };
            writeln!(
                out,
                "    --on {} ({}): {} run{plural} of {length} by its clock",
                on.place,
                on.title,
                plan.runs()
            )?;
        }
    }
    Ok(())
}

fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => "a moment".to_owned(),
        seconds if seconds < 100.0 => format!("{seconds:.0} s"),
        seconds if seconds < 6000.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

fn run(arguments: &LabRunArguments, library: &Library, cache: &Cache) -> Result<()> {
    let experiments = library.choose(&arguments.ids)?;
    let extent = arguments.cells.extent(arguments.quick);
    if extent.half.is_some() && experiments.iter().all(|experiment| experiment.quick_sample.is_none()) {
        bail!("--in-view and --held-out need an experiment with randomly drawn cells, like rivals");
    }
    let on_testbeds = if arguments.on == Place::Sim { Vec::new() } else { at(&experiments, arguments.on)? };
    let plans: Vec<Plan<'_>> = match arguments.on {
        Place::Sim => experiments.iter().map(|experiment| Plan::new(experiment, extent)).collect::<Result<_, _>>()?,
        _ => on_testbeds.iter().map(|on| Plan::new(&on.experiment, extent)).collect::<Result<_, _>>()?,
    };
    let testbed = (arguments.on != Place::Sim).then(|| testbed(arguments.on)).transpose()?;
    let shard = match (arguments.shard, arguments.shards) {
        (Some(shard), _) => shard,
        (None, Some(shards)) => Shard::of_environment(shards as usize, |name| env::var(name).ok()).map_err(no_shard)?,
        (None, None) => Shard::WHOLE,
    };
    let (threads, again, testbed_of_all) = (arguments.threads, arguments.again, testbed.as_deref());
    let runner = Runner { library, cache, shard, run: true, threads, again, testbed: testbed_of_all };
    let results = runner.results(plans.clone())?;
    let mut out = io::stdout().lock();
    if shard.is_part() {
        let done: usize = results.iter().map(lowtide_lab::Results::done).sum();
        writeln!(out, "{done} runs are in {}; merge the parts with lowtide lab merge", cache.directory().display())?;
        return Ok(());
    }
    if let Some(testbed) = &testbed {
        let simulated = Runner { testbed: None, threads: None, ..runner }.results(plans)?;
        let columns = on_testbeds.into_iter().zip(results).zip(&simulated);
        let columns =
            columns.map(|((on, there), simulated)| Comparison::new(on, Some(testbed.environment()), there, simulated));
        return columns.collect::<Result<Vec<_>, _>>()?.iter().try_for_each(|column| print_column(&mut out, column));
    }
    let mut scores = Vec::new();
    for results in &results {
        scores.extend(score(results)?);
    }
    for score in &scores {
        print(&mut out, score)?;
    }
    let file = cache.directory().join("scoreboard.json");
    std::fs::create_dir_all(cache.directory())?;
    draft::write(&file, scoreboard(&scores, &[]).as_ref())
        .with_context(|| format!("cannot write {}", file.display()))?;
    writeln!(out, "\n{}; {}", totals(&scores), file.display())?;
    Ok(())
}

/// The sentence about an environment that does not say which part is meant.
fn no_shard(error: NoShard) -> Error {
    match error {
        NoShard::TooFew { .. } => anyhow!("{error}; give a larger --shards N"),
        _ => anyhow!("{error}; give --shard I/N in place of --shards"),
    }
}

/// What these experiments have for this place.
fn at<'a>(experiments: &[&'a Experiment], place: Place) -> Result<Vec<&'a OnTestbed>> {
    let all = experiments.iter().flat_map(|experiment| &experiment.on_testbeds);
    let there: Vec<&OnTestbed> = all.filter(|on| on.place == place).collect();
    if there.is_empty() {
        bail!(
            "none of these experiments has a table [on.{place}], which names what runs on the {place}; see docs/lab.md"
        );
    }
    Ok(there)
}

/// What came of an experiment on a testbed, beside the simulator.
fn print_column(out: &mut impl Write, column: &Comparison<'_>) -> Result<()> {
    let (id, environment) = (&column.results.plan.experiment.id, column.environment.as_deref().unwrap_or_default());
    writeln!(out, "{id} on the {} ({environment})", column.on.title)?;
    if let Some(why) = &column.results.refused {
        writeln!(out, "      not run: {why}")?;
    }
    if column.results.outdated > 0 {
        writeln!(
            out,
            "      {} runs recorded by another version of the program; --again records anew",
            column.results.outdated
        )?;
    }
    for score in &column.scores {
        writeln!(out, "{:<6}{:<10}{}", score.target.id, score.verdict, first_line(&score.target.claim))?;
        if score.left_out > 0 {
            writeln!(out, "      without {} parts that cannot run there", score.left_out)?;
        }
        for part in column.compare(&score.target.id) {
            let number = |checked: &Checked| match checked.value {
                Some(value) => format!("{value:.4}"),
                None if checked.predicate => if checked.holds { "holds" } else { "does not hold" }.to_owned(),
                None => "none".to_owned(),
            };
            let simulated = part.simulated.map_or("none".to_owned(), number);
            let paper = part.there.expected.map_or(String::new(), |expected| format!(", paper {expected:.4}"));
            let notable = if part.is_notable() { "  (differs)" } else { "" };
            writeln!(out, "      {}: {}, simulator {simulated}{paper}{notable}", part.there.what, number(part.there))?;
        }
    }
    Ok(())
}

/// A target with the first of its parts, or those that do not hold.
fn print(out: &mut impl Write, score: &Score<'_>) -> Result<()> {
    writeln!(out, "{:<6}{:<10}{}", score.target.id, score.verdict, first_line(&score.target.claim))?;
    if let Some(answer) = &score.answer {
        writeln!(out, "      {}", first_line(answer))?;
    }
    for check in score.checks.iter().filter(|check| !check.holds) {
        let number = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.4}"));
        let band = match check.band {
            (low, high) if !check.predicate => {
                format!(": {} is not in {} … {}", number(check.value), number(low), number(high))
            }
            _ => " does not hold".to_owned(),
        };
        writeln!(out, "      {}{band}", check.what)?;
    }
    if score.verdict == Verdict::Miss && score.target.reason.is_none() {
        writeln!(out, "      no reason is given")?;
    }
    Ok(())
}

fn first_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(110) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn totals(scores: &[Score<'_>]) -> String {
    let count = |verdict| scores.iter().filter(|score| score.verdict == verdict).count();
    let parts = Verdict::ALL.into_iter().filter(|verdict| count(*verdict) > 0);
    let parts: Vec<String> = parts.map(|verdict| format!("{} {verdict}", count(verdict))).collect();
    if parts.is_empty() { "no targets".to_owned() } else { parts.join(", ") }
}

/// Writes the report into a directory, and as Markdown if that is asked for.
fn report(
    experiments: &[&Experiment],
    library: &Library,
    cache: &Cache,
    (out, markdown, kernels): (&Path, Option<&Path>, Option<&Path>),
    cells: CellArguments,
) -> Result<()> {
    let runner = Runner { library, cache, shard: Shard::WHOLE, run: false, threads: None, again: false, testbed: None };
    let known = |quick| -> Result<_> {
        let plans = experiments.iter().map(|experiment| Plan::new(experiment, cells.extent(quick)));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        Ok(runner.results(plans)?)
    };
    let best = |(whole, quick)| Section::best(library, whole, quick, command_for);
    let mut sections = known(false)?.into_iter().zip(known(true)?).map(best).collect::<Result<Vec<_>, _>>()?;
    add_columns(&mut sections, &runner, cells)?;
    report::write(&sections, out)?;
    if let Some(file) = markdown {
        report::write_markdown(&sections, file)?;
    }
    if let Some(file) = kernels {
        report::write_kernels(&sections, file)?;
    }
    let scores: Vec<Score<'_>> = sections.iter().flat_map(|section| section.scores.iter().cloned()).collect();
    writeln!(io::stdout().lock(), "{}; {}", totals(&scores), out.join("index.html").display())?;
    Ok(())
}

/// What ran on testbeds, of this machine or another: in the newest environment of each place.
fn add_columns<'a>(sections: &mut [Section<'a>], runner: &Runner<'_>, cells: CellArguments) -> Result<()> {
    for section in sections {
        let experiment: &'a Experiment = section.experiment;
        for on in &experiment.on_testbeds {
            let known = |testbed: Option<&dyn Testbed>, quick| -> Result<_> {
                let plan = Plan::new(&on.experiment, cells.extent(quick))?;
                Ok(Runner { testbed, ..runner.clone() }.results(vec![plan])?.remove(0))
            };
            let mut best = None;
            for environment in runner.cache.environments(&experiment.id, on.place)? {
                let kept = Recorded { place: on.place, environment, version: lowtide_testbed::VERSION.to_owned() };
                let (whole, quick) = (known(Some(&kept), false)?, known(Some(&kept), true)?);
                let there = if !whole.complete() && quick.complete() { quick } else { whole };
                if there.done() > 0 || there.refused.is_some() {
                    best = Some((Some(kept.environment), there));
                    break;
                }
            }
            let (environment, there) = match best {
                Some(best) => best,
                // never run: nothing is kept in an environment without a name
                None => {
                    let nowhere = Recorded { place: on.place, environment: String::new(), version: String::new() };
                    (None, known(Some(&nowhere), false)?)
                }
            };
            let simulated = known(None, there.plan.extent.quick)?;
            section.on_testbeds.push(Comparison::new(on, environment.as_deref(), there, &simulated)?);
        }
    }
    Ok(())
}

fn merge<'a>(directories: impl Iterator<Item = &'a Path>, cache: &Cache) -> Result<()> {
    let mut new = 0;
    for directory in directories {
        new += cache.merge(directory)?;
    }
    writeln!(io::stdout().lock(), "{new} new results in {}", cache.directory().display())?;
    Ok(())
}

fn scenario(library: &Library, id: &str, place: &[String], seed: u64) -> Result<()> {
    let experiments = library.choose(&[id.to_owned()])?;
    let [experiment] = experiments[..] else { bail!("{id} is {} experiments; name one of them", experiments.len()) };
    let plan = Plan::new(experiment, Extent { seed, ..Extent::default() })?;
    let wanted: Vec<(&str, &str)> = place
        .iter()
        .map(|text| {
            text.split_once('=')
                .ok_or_else(|| anyhow::anyhow!("\"{text}\" is no value of an axis; write it like rtt=20"))
        })
        .collect::<Result<_>>()?;
    let has = |at: &lowtide_lab::PlannedCell<'_>| {
        wanted.iter().all(|(axis, value)| at.place.iter().any(|(name, written)| name == axis && written == value))
    };
    let Some(cell) = plan.cells.iter().position(has) else {
        let axes: Vec<&str> = experiment.axes.iter().map(|axis| axis.name.as_str()).collect();
        bail!("{} has no cell at {}; its axes are {}", experiment.id, place.join(" "), axes.join(", "));
    };
    write!(io::stdout().lock(), "{}", plan.scenario(library, cell, 0)?)?;
    Ok(())
}

fn check(experiments: &[&Experiment], library: &Library) -> Result<()> {
    for experiment in experiments {
        lowtide_lab::check(experiment, library)?;
    }
    writeln!(io::stdout().lock(), "{} experiments, nothing wrong", experiments.len())?;
    Ok(())
}

#[cfg(target_os = "linux")]
fn on_testbed(arguments: &LabTestbedArguments) -> Result<()> {
    let seed = arguments.seed.map(|seed| format!("seed={seed}"));
    let scenario = match scenario::ScenarioFile::read(&arguments.scenario, &seed.into_iter().collect::<Vec<_>>())? {
        scenario::ScenarioFile::Packets(scenario) => scenario,
        scenario::ScenarioFile::Fluid(_) => bail!("a fluid model has no packets, so it cannot run on a kernel"),
    };
    let law = |text: &String| match text.split_once('=') {
        Some((flows, law)) => Ok((flows.to_owned(), law.to_owned())),
        None => bail!("--kernel-law {text}: write it like cdg-*=cdg"),
    };
    let kernel_laws = arguments.kernel_law.iter().map(law).collect::<Result<_>>()?;
    let request = lowtide_lab::testbed::Request { scenario, kernel_laws };
    let stop = crate::interruption::Interruption::block()?;
    let options = lowtide_testbed::Options {
        bottleneck: match arguments.bottleneck {
            crate::cli::BottleneckArgument::Emulator => lowtide_testbed::Bottleneck::Emulator,
            crate::cli::BottleneckArgument::Tc => lowtide_testbed::Bottleneck::Tc,
        },
        program: Path::new(crate::testbeds::OURSELVES),
        plain_registration: arguments.plain_registration,
        interrupted: &|| stop.came(),
    };
    let recording = lowtide_testbed::run(&request, &options)?;
    draft::write(&arguments.output, recording.to_json().as_bytes())
        .with_context(|| format!("cannot write {}", arguments.output.display()))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn on_testbed(_arguments: &LabTestbedArguments) -> Result<()> {
    bail!("running a scenario on a kernel needs Linux; `lowtide lab run` works everywhere")
}
