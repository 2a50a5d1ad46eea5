// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide trace`: what the control laws of running transfers know and decide. docs/tracing.md describes the format.

#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod listen;
mod picture;
mod read;
#[cfg(target_os = "linux")]
mod write;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};

#[cfg(target_os = "linux")]
pub use listen::trace;

/// Draws the trace in `file`.
///
/// # Errors
/// In a sentence: it cannot be read or is no trace, or the picture cannot be written.
pub fn plot(file: &Path, output: Option<&Path>) -> Result<ExitCode> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read the trace {}", file.display()))?;
    let trace = read::read(&text).with_context(|| format!("{} is no trace in JSON lines", file.display()))?;
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let svg = picture::draw(&trace, &name);
    let output = output.map_or_else(|| file.with_extension("svg"), PathBuf::from);
    fs::write(&output, svg).with_context(|| format!("cannot write the picture {}", output.display()))?;
    println!("{}", output.display());
    Ok(ExitCode::SUCCESS)
}
