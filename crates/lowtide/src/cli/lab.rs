// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide lab`: its commands and options.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lowtide_lab::{Extent, Half, Place};

use super::LabTestbedArguments;

/// `lowtide lab`.
#[derive(Debug, Args)]
#[command(after_help = "\
  lowtide lab list
  lowtide lab run C-01 --quick
  lowtide lab run && lowtide lab report

ID is an experiment, a target like C-01, or a paper like 000; default: all. docs/lab.md says how to write an experiment.")]
pub struct LabArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
    /// Use the experiments of this directory (PAPER/NAME.toml) in place of the built-in ones
    #[arg(long, value_name = "DIR", global = true)]
    pub experiments: Option<PathBuf>,
    /// Directory of results; default: target/lab within Lowtide's sources, elsewhere the user's cache directory
    #[arg(long, value_name = "DIR", global = true)]
    pub cache: Option<PathBuf>,
}

/// The commands of `lowtide lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// List the experiments with their sources, targets and durations
    List {
        /// Experiments, targets or papers; default: all
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
    /// Run what has no result yet, on all cores, and report which targets are met
    Run(LabRunArguments),
    /// Write a page with the scoreboard and all figures, from existing results
    Report {
        /// Experiments, targets or papers; default: all
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        /// Write index.html, scoreboard.json and figures/ to this directory
        #[arg(long, value_name = "DIR", default_value = "lab-report")]
        out: PathBuf,
        /// Also write a Markdown page, with its figures in plots/ beside it
        #[arg(long, value_name = "FILE")]
        markdown: Option<PathBuf>,
        /// Also write a Markdown page that compares results from kernels with the simulator
        #[arg(long, value_name = "FILE")]
        kernels: Option<PathBuf>,
        /// Cells, and runs of each
        #[command(flatten)]
        cells: CellArguments,
    },
    /// Merge the results of other processes that ran shards, from the directories of their --cache
    Merge {
        /// Their directories
        #[arg(required = true, value_name = "DIR")]
        directories: Vec<PathBuf>,
    },
    /// Print the scenario of a run, for `lowtide sim`
    Scenario {
        /// The experiment
        #[arg(value_name = "ID")]
        id: String,
        /// Values of its axes, like rtt=20; default: the first of each
        #[arg(value_name = "AXIS=VALUE")]
        place: Vec<String>,
        /// The seed
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// Run one scenario with the TCP of this machine's kernel, and write a recording
    #[command(hide = true)]
    Testbed(LabTestbedArguments),
    /// Check experiments without running them
    Check {
        /// Experiments, targets or papers; default: all
        #[arg(value_name = "ID")]
        ids: Vec<String>,
    },
}

/// `lowtide lab run`.
#[derive(Debug, Args)]
pub struct LabRunArguments {
    /// Experiments, targets or papers; default: all
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Where to run: sim; kernel, this machine's TCP in real time; or guest. The experiment says what runs on a kernel
    /// or in a guest
    #[arg(long, value_name = "PLACE", default_value = "sim")]
    pub on: Place,
    /// A quick look: fewer cells and fewer runs
    #[arg(long)]
    pub quick: bool,
    /// Cells, and runs of each
    #[command(flatten)]
    pub cells: CellArguments,
    /// Run only this part, like 2/4, without scores; `lab merge` merges the parts
    #[arg(long, value_name = "I/N", conflicts_with = "shards")]
    pub shard: Option<lowtide_lab::Shard>,
    /// Run only one part of N, the one that SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX names
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub shards: Option<u32>,
    /// Number of threads; default: all cores
    #[arg(long, value_name = "N")]
    pub threads: Option<std::num::NonZeroUsize>,
    /// On a kernel: record again what was recorded before, as after a change of the testbed
    #[arg(long)]
    pub again: bool,
}

/// Cells of experiments, and runs of these.
#[derive(Clone, Copy, Debug, Args)]
pub struct CellArguments {
    /// Of an experiment with randomly drawn cells: the tuning set; --quick takes a part of it
    #[arg(long, conflicts_with = "held_out")]
    pub in_view: bool,
    /// The held-out set
    #[arg(long)]
    pub held_out: bool,
    /// Runs of each cell, in place of each experiment's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// Seed of the first run of each cell; the others follow
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl CellArguments {
    /// What of each experiment is meant.
    pub fn extent(self, quick: bool) -> Extent {
        let half = if self.held_out { Some(Half::HeldOut) } else { self.in_view.then_some(Half::InView) };
        Extent { quick, half, runs: self.runs, seed: self.seed }
    }
}

/// The command that runs an experiment to this extent at this place.
pub fn command_for(id: &str, extent: Extent, on: Place) -> String {
    let mut command = format!("lowtide lab run {id}");
    if on != Place::Sim {
        command += &format!(" --on {on}");
    }
    if extent.quick {
        command += " --quick";
    }
    match extent.half {
        None => {}
        Some(Half::InView) => command += " --in-view",
        Some(Half::HeldOut) => command += " --held-out",
    }
    if let Some(runs) = extent.runs {
        command += &format!(" --runs {runs}");
    }
    if extent.seed != Extent::default().seed {
        command += &format!(" --seed {}", extent.seed);
    }
    command
}
