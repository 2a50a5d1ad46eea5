// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide lab`: the papers' claims, run and scored.

use std::{
    env,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    thread,
};

use anyhow::{Result, bail};
use lowtide_lab::{
    Cache, Extent, Library, Plan, Runner, Shard,
    experiment::Experiment,
    report::{self, Section},
    score::{Score, Verdict, score},
    scoreboard,
};

use crate::cli::{LabArguments, LabCommand, LabRunArguments};

/// Does what the arguments say.
///
/// # Errors
/// One sentence: what is wrong with an experiment, a run or a file, and where.
pub fn lab(arguments: &LabArguments) -> Result<ExitCode> {
    let library = match &arguments.experiments {
        Some(directory) => Library::read(directory)?,
        None => Library::built_in()?,
    };
    let cache = arguments.cache.as_ref().map_or_else(Cache::usual, |directory| Ok(Cache::new(directory)))?;
    match &arguments.command {
        LabCommand::List { ids } => list(&library.choose(ids)?, &cache),
        LabCommand::Run(run) => self::run(run, &library, &cache),
        LabCommand::Report { ids, out, markdown, seed } => {
            report(&library.choose(ids)?, &library, &cache, (out, markdown.as_deref()), *seed)
        }
        LabCommand::Merge { directories } => merge(directories.iter().map(AsRef::as_ref), &cache),
        LabCommand::Scenario { id, place, seed } => scenario(&library, id, place, *seed),
        LabCommand::Check { ids } => check(&library.choose(ids)?, &library),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn list(experiments: &[&Experiment], cache: &Cache) -> Result<()> {
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
    arguments.on.available()?;
    let experiments = library.choose(&arguments.ids)?;
    let extent = Extent { quick: arguments.quick, runs: arguments.runs, seed: arguments.seed };
    let plans = experiments.iter().map(|experiment| Plan::new(experiment, extent)).collect::<Result<Vec<_>, _>>()?;
    let shard = match (arguments.shard, arguments.shards) {
        (Some(shard), _) => shard,
        (None, Some(shards)) => Shard::of_environment(Some(shards as usize), |name| env::var(name).ok())?,
        (None, None) => Shard::WHOLE,
    };
    let runner = Runner { library, cache, shard, run: true, threads: arguments.threads };
    let results = runner.results(plans)?;
    let mut out = io::stdout().lock();
    if shard.is_part() {
        let done: usize = results.iter().map(lowtide_lab::Results::done).sum();
        writeln!(out, "{done} runs are in {}; unite the parts with lowtide lab merge", cache.directory().display())?;
        return Ok(());
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
    std::fs::write(&file, scoreboard(&scores, arguments.on))?;
    writeln!(out, "\n{}; {}", totals(&scores), file.display())?;
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
    (out, markdown): (&Path, Option<&Path>),
    seed: u64,
) -> Result<()> {
    let runner = Runner { library, cache, shard: Shard::WHOLE, run: false, threads: None };
    let known = |quick| -> Result<_> {
        let extent = Extent { quick, seed, ..Extent::default() };
        let plans =
            experiments.iter().map(|experiment| Plan::new(experiment, extent)).collect::<Result<Vec<_>, _>>()?;
        Ok(runner.results(plans)?)
    };
    let sections =
        known(false)?.into_iter().zip(known(true)?).map(|(whole, quick)| Section::best(library, whole, quick));
    let sections = sections.collect::<Result<Vec<_>, _>>()?;
    report::write(&sections, out)?;
    if let Some(file) = markdown {
        report::write_markdown(&sections, file)?;
    }
    let scores: Vec<Score<'_>> = sections.iter().flat_map(|section| section.scores.iter().cloned()).collect();
    writeln!(io::stdout().lock(), "{}; {}", totals(&scores), out.join("index.html").display())?;
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
        lowtide_lab::rehearse(experiment, library)?;
    }
    writeln!(io::stdout().lock(), "{} experiments, nothing wrong", experiments.len())?;
    Ok(())
}
