// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of a result.

use super::OutputError;
use lowtide_net::file;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The files that it may have.
pub(super) const SUMMARY: &str = "summary.json";
pub(super) const SCENARIO: &str = "scenario.toml";
pub(super) const FLOWS: &str = "flows.csv";
pub(super) const INNER: &str = "inner.csv";
pub(super) const CONTROL: &str = "control.csv";
pub(super) const LINKS: &str = "bottlenecks.csv";
pub(super) const TRANSFERS: &str = "transfers.csv";
pub(super) const PLOT: &str = "plot.svg";
pub(super) const CAPTURE: &str = "packets.pcapng";
const NAMES: [&str; 9] = [SUMMARY, SCENARIO, FLOWS, INNER, CONTROL, LINKS, TRANSFERS, PLOT, CAPTURE];

/// The first line of `scenario.toml`, by which a directory is known as a result.
const MARK: &str = "# A result of lowtide sim; `lowtide sim` with this file repeats it.";

/// Where a result is until it is whole, in its directory.
const DRAFT: &str = ".unfinished";

/// A result under way. An earlier one stays until this one takes its place.
pub(super) struct Draft {
    directory: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Makes the directory, which may hold an earlier result, and writes the scenario.
    pub(super) fn begin(directory: &Path, scenario: &str) -> Result<Self, OutputError> {
        claim(directory)?;
        let path = directory.join(DRAFT);
        // of a run that was killed
        remove(&path).map_err(OutputError::at(&path))?;
        fs::create_dir(&path).map_err(OutputError::at(&path))?;
        let draft = Self { directory: directory.to_owned(), path };
        draft.write(SCENARIO, &format!("{MARK}\n\n{scenario}"))?;
        Ok(draft)
    }

    /// Where its files are for the time being.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one of them.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), OutputError> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(OutputError::at(&path))
    }

    /// Takes the place of an earlier result; gives the files that there are.
    pub(super) fn finish(self) -> Result<Vec<&'static str>, OutputError> {
        let (new, old): (Vec<_>, Vec<_>) = NAMES.into_iter().partition(|name| self.path.join(name).exists());
        for name in &new {
            let path = self.directory.join(name);
            fs::rename(self.path.join(name), &path).map_err(OutputError::at(&path))?;
        }
        for name in old {
            let path = self.directory.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(OutputError::at(&path)(error)),
                _ => {}
            }
        }
        Ok(new)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // what is left of it does no harm, and goes with the next run
        let _ = remove(&self.path);
    }
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes the directory, or sees that it is empty or an earlier result.
fn claim(directory: &Path) -> Result<(), OutputError> {
    let failed = OutputError::at(directory);
    fs::create_dir_all(directory).map_err(&failed)?;
    let mut entries = fs::read_dir(directory).map_err(&failed)?;
    if entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == DRAFT)) {
        return Ok(());
    }
    let scenario = file::read_text(&directory.join(SCENARIO), file::MOST).unwrap_or_default();
    if scenario.lines().next() == Some(MARK) { Ok(()) } else { Err(OutputError::Occupied(directory.to_owned())) }
}
