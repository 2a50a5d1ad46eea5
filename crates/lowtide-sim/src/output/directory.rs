// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of a result.

use super::OutputError;
use std::{fs, io, path::Path};

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

/// Makes the directory, or empties it of an earlier result, and writes the scenario.
pub(super) fn begin(directory: &Path, scenario: &str) -> Result<(), OutputError> {
    claim(directory)?;
    write(directory, SCENARIO, &format!("{MARK}\n\n{scenario}"))
}

/// Those that are there.
pub(super) fn files(directory: &Path) -> Vec<&'static str> {
    NAMES.into_iter().filter(|name| directory.join(name).exists()).collect()
}

/// Writes one of them.
pub(super) fn write(directory: &Path, name: &str, text: &str) -> Result<(), OutputError> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(OutputError::at(&path))
}

fn claim(directory: &Path) -> Result<(), OutputError> {
    let failed = OutputError::at(directory);
    fs::create_dir_all(directory).map_err(&failed)?;
    if fs::read_dir(directory).map_err(&failed)?.next().is_none() {
        return Ok(());
    }
    let scenario = fs::read_to_string(directory.join(SCENARIO)).unwrap_or_default();
    if scenario.lines().next() != Some(MARK) {
        return Err(OutputError::Occupied(directory.to_owned()));
    }
    for name in NAMES {
        let path = directory.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(OutputError::at(&path)(error)),
            _ => {}
        }
    }
    Ok(())
}
