// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide sim`: runs a scenario, shows how far it is, and prints or writes what came out.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use lowtide_net::Time;
use lowtide_sim::{
    fluid,
    observe::Observer,
    output::{self, Results, Side, Summary, Wanted},
    scenario::{Scenario, ScenarioFile},
};

use crate::cli::{SideArgument, SimArguments};

/// Simulates.
///
/// # Errors
/// One sentence: what is wrong with the scenario, and where, or which file cannot be written.
pub fn sim(arguments: &SimArguments) -> Result<ExitCode> {
    let seed = arguments.seed.map(|seed| format!("seed={seed}"));
    let overrides: Vec<String> = arguments.set.iter().cloned().chain(seed).collect();
    let read = ScenarioFile::read(&arguments.scenario, &overrides);
    match read.map_err(|error| if error.is_of_override() { anyhow!("--set {error}") } else { anyhow!(error) })? {
        ScenarioFile::Packets(scenario) => packets(arguments, &scenario),
        ScenarioFile::Fluid(model) => fluid(arguments, &model),
    }
}

fn packets(arguments: &SimArguments, scenario: &Scenario) -> Result<ExitCode> {
    let wanted = Wanted { plot: arguments.plot, capture: arguments.pcap.map(Side::from) };
    let results =
        arguments.out.as_deref().map(|directory| Results::create(directory, scenario, &wanted)).transpose()?;

    let started = Instant::now();
    let mut observers = (results, Progress::new(started, scenario.duration));
    let outcome = lowtide_sim::run(scenario, &mut observers);
    let summary = Summary::new(&outcome, started.elapsed());
    let (results, progress) = observers;
    progress.finish();

    let files = results.map(|results| results.finish(&outcome, &summary)).transpose()?;
    say(arguments, &summary, &summary.to_json(), files)
}

fn fluid(arguments: &SimArguments, model: &fluid::Model) -> Result<ExitCode> {
    if arguments.pcap.is_some() {
        bail!("{}: --pcap: a fluid model has no packets", arguments.scenario.display());
    }
    let started = Instant::now();
    let outcome = fluid::run(model);
    let summary = output::fluid::Summary::new(&outcome, started.elapsed());
    let write = |directory| output::fluid::write(directory, model, &outcome, &summary, arguments.plot);
    let files = arguments.out.as_deref().map(write).transpose()?;
    say(arguments, &summary, &summary.to_json(), files)
}

/// What came out, for people or as JSON, and which files were written.
fn say(
    arguments: &SimArguments,
    summary: &impl Display,
    json: &str,
    files: Option<Vec<&'static str>>,
) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    if arguments.json {
        write!(out, "{json}")?;
        return Ok(ExitCode::SUCCESS);
    }
    write!(out, "{summary}")?;
    if let (Some(files), Some(directory)) = (files, &arguments.out) {
        writeln!(out, "\nIn {}: {}", directory.display(), files.join(", "))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl From<SideArgument> for Side {
    fn from(side: SideArgument) -> Self {
        match side {
            SideArgument::Sender => Self::Sender,
            SideArgument::Receiver => Self::Receiver,
            SideArgument::Both => Self::Both,
        }
    }
}

/// A run that takes less says nothing of how far it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// A bar on a terminal, for runs that take their time.
struct Progress {
    started: Instant,
    duration: Duration,
    terminal: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    fn new(started: Instant, duration: Duration) -> Self {
        Self { started, duration, terminal: io::stderr().is_terminal(), bar: None }
    }

    fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn progress(&mut self, now: Time) {
        if !self.terminal || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{wide_bar} {percent:>3} %, {eta} left").expect("a constant template");
            ProgressBar::new(self.duration.as_millis() as u64).with_style(style).with_elapsed(self.started.elapsed())
        });
        bar.set_position(now.as_nanos() / 1_000_000);
    }
}
