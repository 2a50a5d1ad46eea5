// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that long measurements share, and the command that people repeat them by.

use clap::Args;
use std::{env, path::PathBuf};

/// How to make many runs, and what becomes of them.
#[derive(Debug, Args)]
pub(crate) struct Battery {
    /// Runs at the same time; of those that take much of the machine never more than one
    #[arg(long, default_value_t = 3)]
    pub(crate) parallel: usize,
    /// File for the runs: those that are there, of this kernel and this code, are not made again
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
    /// Page to write
    #[arg(long)]
    pub(crate) write: Option<PathBuf>,
    /// Say which runs there would be, and how long they take
    #[arg(long)]
    pub(crate) list: bool,
    /// What cargo adds
    #[arg(long, hide = true)]
    bench: bool,
}

/// The command of this bench, without the files of this machine.
pub(crate) fn command(bench: &str) -> String {
    let mut words = env::args().skip(1).filter(|word| word != "--bench"); // which cargo adds
    let mut kept = vec![format!("sudo cargo bench -p lowtide --bench {bench}")];
    while let Some(word) = words.next() {
        match word.split_once('=').map_or(word.as_str(), |it| it.0) {
            "--write" | "--keep" => {
                if !word.contains('=') {
                    words.next();
                }
            }
            _ if word.contains(' ') => kept.push(format!("{word:?}")),
            _ => kept.push(word),
        }
    }
    if kept.len() > 1 {
        kept.insert(1, "--".to_owned());
    }
    kept.join(" ")
}
