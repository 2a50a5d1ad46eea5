// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment: a scenario, the axes along which it varies, what is measured, what the paper says, and how it is
//! drawn. All of it is data; docs/lab.md has every key.

mod axis;
mod figure;
mod library;
mod on_testbed;
mod read;
mod target;

pub use axis::{Axis, AxisValue};
pub use figure::{Column, Figure, Mark, Panel, Plot};
pub use library::Library;
pub use on_testbed::{Cut, OnTestbed};
pub use target::{Bound, Check, Each, Kind, Target};

pub(crate) use axis::written;

use serde::Deserialize;
use std::collections::BTreeMap;

/// An experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of its file, without `.toml`.
    #[serde(skip)]
    pub id: String,
    /// The name of its file's directory: the paper's number.
    #[serde(skip)]
    pub paper: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What of the paper: `Fig. 3, Table I`.
    #[serde(default)]
    pub of: String,
    /// Where the paper describes it, and what it leaves open; in one's own words.
    pub source: String,
    /// Runs of each cell, with the seeds from the first one on.
    #[serde(default = "one")]
    pub runs: u32,
    /// The same for a quick look.
    #[serde(default = "one")]
    pub quick_runs: u32,
    /// About how long a run takes on one core, in seconds; for the estimate of `lab list`.
    #[serde(default)]
    pub run_seconds: f64,
    /// Values that are drawn for each run: names and expressions, in this order.
    #[serde(default)]
    pub draw: toml::Table,
    /// The scenario, as `lowtide sim` reads it, with expressions in braces.
    pub scenario: Option<toml::Table>,
    /// What is kept of a run besides the samples.
    #[serde(default)]
    pub record: Record,
    /// Functions for all expressions.
    #[serde(default)]
    pub functions: String,
    /// An expression of the axes: cells for which it does not hold are left out.
    pub only: Option<String>,
    /// Of the cells that are left, those of a quick look.
    pub quick_sample: Option<Sample>,
    /// The axes; their product are the cells.
    #[serde(default, rename = "axis")]
    pub axes: Vec<Axis>,
    /// What is measured of each run.
    #[serde(default, rename = "measure")]
    pub measures: Vec<Measure>,
    /// What is kept over time, for figures.
    #[serde(default)]
    pub series: Vec<SeriesOf>,
    /// What the paper says.
    #[serde(default, rename = "target")]
    pub targets: Vec<Target>,
    /// The drawings.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Figure>,
    /// What of it runs on testbeds.
    #[serde(default, rename = "on")]
    changes: BTreeMap<String, on_testbed::Changes>,
    /// The same, cut for it.
    #[serde(skip)]
    pub on_testbeds: Vec<OnTestbed>,
    /// How its scenario is changed, if it is itself cut for a testbed.
    #[serde(skip)]
    pub cut: Option<Cut>,
}

/// What is kept of a run besides the samples.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Flows, or patterns of their names, whose every packet is kept.
    #[serde(default)]
    pub packets: Vec<String>,
}

/// Cells by chance, always the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Combinations of the values of these axes are drawn; of the other axes all values remain.
    pub of: Vec<String>,
    /// So many combinations.
    pub number: usize,
    /// The values of this one of the axes get equally many of them.
    pub evenly: Option<String>,
}

/// What is measured of each run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// Its unit, for axes of figures.
    #[serde(default)]
    pub unit: String,
    /// What it is, for axes of figures.
    #[serde(default)]
    pub label: String,
    /// The expression: a number, nothing, or a list of numbers.
    pub value: String,
    /// If this is given, it is no measure of a run, but compares two: `own` has the run's measures, `other` those of
    /// the run with the same seed where these axes have these values and all others are the same.
    #[serde(default)]
    pub with: BTreeMap<String, toml::Value>,
}

/// What is kept over time of the first run of some cells.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesOf {
    /// Its name.
    pub name: String,
    /// What the legend calls it; its name if this is not given.
    #[serde(default)]
    pub label: String,
    /// The expression: a time series.
    pub value: String,
    /// An expression of the axes: only of cells for which it holds.
    pub only: Option<String>,
}

impl Experiment {
    /// The measure of this name.
    pub fn measure(&self, name: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.name == name)
    }

    /// The measures of a run.
    pub fn measures_of_runs(&self) -> impl Iterator<Item = &Measure> {
        self.measures.iter().filter(|it| it.with.is_empty())
    }

    /// The measures that compare two runs.
    pub fn comparisons(&self) -> impl Iterator<Item = &Measure> {
        self.measures.iter().filter(|it| !it.with.is_empty())
    }

    /// The axis of this name.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// The expressions that are evaluated of a run.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &str> {
        let measures = self.measures_of_runs().map(|it| it.value.as_str());
        measures.chain(self.series.iter().map(|it| it.value.as_str())).chain([self.functions.as_str()])
    }

    /// Its functions, if one of them may be in this text. To read them takes longer than to evaluate most expressions.
    pub(crate) fn functions_for(&self, text: &str) -> &str {
        let mut names = self.functions.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
        if names.any(|name| text.contains(name.trim())) { &self.functions } else { "" }
    }

    /// Whether its directory is that of a paper, which has a number.
    pub fn is_of_a_paper(&self) -> bool {
        self.paper.starts_with(|it: char| it.is_ascii_digit())
    }

    /// Whether `word` is its name, its paper's, or that of one of its targets.
    pub fn goes_by(&self, word: &str) -> bool {
        self.id == word || self.paper == word || self.targets.iter().any(|target| target.id.eq_ignore_ascii_case(word))
    }
}

impl SeriesOf {
    /// What the legend calls it.
    pub fn title(&self) -> &str {
        if self.label.is_empty() { &self.name } else { &self.label }
    }
}

const fn one() -> u32 {
    1
}
