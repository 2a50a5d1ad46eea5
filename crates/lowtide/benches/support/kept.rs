// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured on the kernel, for another day.

use super::{Failure, Measured};
use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// The runs of each scenario, in a file if there is one.
pub(crate) struct Kept {
    file: Option<PathBuf>,
    runs: BTreeMap<String, Vec<Measured>>,
}

impl Kept {
    pub(crate) fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let runs = match file.map(fs::read) {
            Some(Ok(bytes)) => serde_json::from_slice(&bytes)?,
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => BTreeMap::new(),
        };
        Ok(Self { file: file.map(Path::to_owned), runs })
    }

    pub(crate) fn runs(&self, scenario: &str) -> &[Measured] {
        self.runs.get(scenario).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn add(&mut self, scenario: &str, measured: Measured) -> Result<(), Failure> {
        self.runs.entry(scenario.to_owned()).or_default().push(measured);
        if let Some(file) = &self.file {
            fs::write(file, serde_json::to_vec_pretty(&self.runs)?)?;
        }
        Ok(())
    }
}
