// SPDX-License-Identifier: MIT OR Apache-2.0
//! Manual pages and completions, made from the commands and options themselves.

use std::{fs, io, path::Path, process::ExitCode};

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

/// Writes `lowtide.1` and a page for each command into a directory, which is made if it is missing.
///
/// # Errors
/// The directory cannot be made or written.
pub fn man(directory: &Path) -> Result<ExitCode> {
    let write = || fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    write().with_context(|| format!("writing manual pages into {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what this shell needs to complete commands and options.
///
/// # Errors
/// It cannot be printed.
pub fn completions(shell: Shell) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lowtide", &mut text);
    io::Write::write_all(&mut io::stdout(), &text)?;
    Ok(ExitCode::SUCCESS)
}
