// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file of either kind: of packets, or of the numerical model.

use super::{
    Scenario, ScenarioError,
    fluid::{self, FLUID},
    overrides, read, tree,
};
use crate::fluid::Model;
use lowtide_net::file;
use std::path::Path;
use tree::unknown;

/// What a file describes; its key `model` says which.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a run has one of it")]
pub enum ScenarioFile {
    /// `packets`, the default.
    Packets(Scenario),
    /// `fluid`: the numerical model, of rates.
    Fluid(Model),
}

/// The name of the first kind.
const PACKETS: &str = "packets";

impl ScenarioFile {
    /// Reads a file. Each of `overrides` is `path=value` and replaces what the file says, as in
    /// `bottleneck.rate=20mbit` or `flow.bg.cc=cdg:g=4`.
    ///
    /// # Errors
    /// One sentence, with the place in the file or the override.
    pub fn read(path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        let text = file::read_text(path, file::MOST).map_err(|error| {
            ScenarioError::of_file(format!("cannot read it: {error}")).in_file(&path.display().to_string())
        })?;
        Self::parse(&text, path, overrides)
    }

    /// Reads a text as [`ScenarioFile::read`] would read it in the file `path`, which need not exist: messages name it,
    /// and files of traces are looked for beside it.
    ///
    /// # Errors
    /// As [`ScenarioFile::read`].
    pub fn parse(text: &str, path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        tree::parse(text)
            .and_then(|root| Self::of(root, path, overrides))
            .map_err(|error| error.in_file(&path.display().to_string()))
    }

    /// Reads a table as [`ScenarioFile::parse`] reads its text; messages have no line, as there is none.
    ///
    /// # Errors
    /// As [`ScenarioFile::read`].
    pub fn from_table(table: &toml::Table, path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        Self::of(tree::of_table(table), path, overrides).map_err(|error| error.in_file(&path.display().to_string()))
    }

    fn of(mut root: tree::Table, path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        overrides.iter().try_for_each(|text| overrides::apply(&mut root, text))?;
        match root.read("model", model)?.unwrap_or(PACKETS) {
            FLUID => fluid::model(&root).map(Self::Fluid),
            _ => read::scenario(&root, path.parent().unwrap_or(Path::new(""))).map(Self::Packets),
        }
    }

    /// Its scenario, which has to be one of packets.
    fn of_packets(self, path: &Path) -> Result<Scenario, ScenarioError> {
        match self {
            Self::Packets(scenario) => Ok(scenario),
            Self::Fluid(_) => {
                let error = ScenarioError::of_file("a scenario of packets is expected here, and this is a fluid model");
                Err(error.in_file(&path.display().to_string()))
            }
        }
    }

    /// In TOML, with every value that holds, given or not. Reading it gives the same; traffic of a trace is in it, the
    /// file of a capacity's trace is needed again.
    pub fn to_toml(&self) -> String {
        match self {
            Self::Packets(scenario) => scenario.to_toml(),
            Self::Fluid(model) => model.to_toml(),
        }
    }
}

impl Scenario {
    /// [`ScenarioFile::read`], for a file that has to be of packets.
    ///
    /// # Errors
    /// As there, and that it is not.
    pub fn read(path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        ScenarioFile::read(path, overrides)?.of_packets(path)
    }

    /// [`ScenarioFile::parse`], for a text that has to be of packets.
    ///
    /// # Errors
    /// As there, and that it is not.
    pub fn parse(text: &str, path: &Path, overrides: &[String]) -> Result<Self, ScenarioError> {
        ScenarioFile::parse(text, path, overrides)?.of_packets(path)
    }
}

fn model(text: &str) -> Result<&'static str, String> {
    let known = [PACKETS, FLUID];
    known.into_iter().find(|name| *name == text).ok_or_else(|| unknown("model", text, &known))
}
