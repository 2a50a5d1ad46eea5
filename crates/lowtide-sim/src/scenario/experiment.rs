// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file of either kind: of packets, or of the numerical model.

use super::{Scenario, ScenarioError, Span, fluid, overrides, read, source::time_or_none, tree};
use crate::fluid::Model;
use lowtide_net::file;
use std::{path::Path, time::Duration};
use tree::{Table, unknown, whole};

/// What a file describes; its key `model` says which.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a run has one of it")]
pub enum Experiment {
    /// `packets`, the default.
    Packets(Scenario),
    /// `fluid`: the numerical model, of rates.
    Fluid(Model),
}

/// Their names.
const PACKETS: &str = "packets";
pub(super) const FLUID: &str = "fluid";

impl Experiment {
    /// Reads a file. Each of `overrides` is `path=value` and replaces what the file says, as in `bottleneck.rate=20mbit` or
    /// `flow.bg.cc=cdg:g=4`.
    ///
    /// # Errors
    /// One sentence, with the place in the file or the override.
    pub fn read(path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        let text = file::read_text(path, file::MOST).map_err(|error| {
            ScenarioError::of_file(format!("cannot read it: {error}")).in_file(&path.display().to_string())
        })?;
        Self::parse(&text, path, overrides)
    }

    /// Reads a text as [`Experiment::read`] would read it in the file `path`, which need not exist: messages name it, and files
    /// of traces are looked for beside it.
    ///
    /// # Errors
    /// As [`Experiment::read`].
    pub fn parse(text: &str, path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        let experiment = || {
            let mut root = tree::parse(text)?;
            overrides.iter().try_for_each(|text| overrides::apply(&mut root, text))?;
            match root.read("model", model)?.unwrap_or(PACKETS) {
                FLUID => fluid::model(&root).map(Self::Fluid),
                _ => read::scenario(&root, path.parent().unwrap_or(Path::new(""))).map(Self::Packets),
            }
        };
        experiment().map_err(|error| error.in_file(&path.display().to_string()))
    }

    /// Its scenario, which has to be one of packets.
    pub(super) fn of_packets(self, path: &Path) -> Result<Scenario, ScenarioError> {
        match self {
            Self::Packets(scenario) => Ok(scenario),
            Self::Fluid(_) => {
                let error = ScenarioError::of_file("a scenario of packets is expected here, and this is a fluid model");
                Err(error.in_file(&path.display().to_string()))
            }
        }
    }

    /// In TOML, with every value that holds, given or not. Reading it gives the same; traffic of a trace is in it, the file of a
    /// capacity's trace is needed again.
    pub fn to_toml(&self) -> String {
        match self {
            Self::Packets(scenario) => scenario.to_toml(),
            Self::Fluid(model) => model.to_toml(),
        }
    }
}

fn model(text: &str) -> Result<&'static str, String> {
    let known = [PACKETS, FLUID];
    known.into_iter().find(|name| *name == text).ok_or_else(|| unknown("model", text, &known))
}

/// What a file of either kind has.
pub(super) struct Frame {
    pub(super) seed: u64,
    pub(super) duration: Duration,
    pub(super) measure_from: Duration,
    pub(super) sample_interval: Duration,
    pub(super) spans: Vec<Span>,
}

/// The longest simulated time; sums of such times stay far from the end of 64 bits of nanoseconds.
const LONGEST: Duration = Duration::from_secs(1_000_000);

/// Reads it, with this time between samples unless there is one.
pub(super) fn frame(root: &Table, usual_sample: Duration) -> Result<Frame, ScenarioError> {
    let seed = root.read("seed", whole(0..=u64::MAX))?.unwrap_or(1);
    let duration = root.need("duration", "\"120s\"", time_or_none)?;
    if duration.is_zero() || duration > LONGEST {
        return Err(root.error("duration", "duration: it has to be above zero and at most 1000000s"));
    }
    let measure_from = root.read("measure_from", time_or_none)?.unwrap_or_default();
    if measure_from >= duration {
        return Err(root.error("measure_from", "measure_from: the simulation is over by then"));
    }
    let sample_interval = root.read("sample", time_or_none)?.unwrap_or(usual_sample);
    let spans = spans(root, duration)?;
    Ok(Frame { seed, duration, measure_from, sample_interval, spans })
}

fn spans(root: &Table, duration: Duration) -> Result<Vec<Span>, ScenarioError> {
    let tables = root.get("span").map_or(Ok(Vec::new()), |node| node.tables("span"))?;
    let span = |table: &Table| {
        let from = table.need("from", "\"400s\"", time_or_none)?;
        let to = table.need("to", "\"600s\"", time_or_none)?;
        table.finish()?;
        match from < to && to <= duration {
            true => Ok(Span { from, to }),
            false => Err(table.error("to", "to: it has to be after `from`, and not after the end of the simulation")),
        }
    };
    tables.into_iter().map(span).collect()
}
