// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `lowtide`.

use std::process::ExitCode;

use clap::Parser;
use lowtide::cli::{Cli, Command};

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(arguments) => lowtide::run::run(&arguments),
        Command::Doctor => Ok(lowtide::doctor::doctor()),
        Command::Emulate(arguments) => lowtide::emulate::emulate(&arguments),
        Command::Sim(arguments) => lowtide::sim::sim(&arguments),
        Command::Demo(arguments) => lowtide::demo::demo(&arguments),
        Command::Traffic(arguments) => lowtide::traffic::traffic(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("lowtide: {error:#}");
        ExitCode::from(2)
    })
}
