// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `lowtide`.

use std::{
    io,
    process::{self, ExitCode},
};

use clap::Parser;
use lowtide::cli::{self, Cli, Command, RUN_FAILED, TraceArguments, TraceCommand};

fn main() -> ExitCode {
    let outcome = match parse().command {
        Command::Sim(arguments) => lowtide::sim::sim(&arguments),
        Command::Lab(arguments) => lowtide::lab::lab(&arguments),
        Command::Demo(arguments) => lowtide::demo::demo(&arguments),
        Command::Trace(TraceArguments { command: Some(TraceCommand::Plot { file, output }), .. }) => {
            lowtide::trace::plot(&file, output.as_deref())
        }
        Command::Man { directory } => lowtide::manual::man(&directory),
        Command::Completions { shell } => lowtide::manual::completions(shell),
        command => on_the_kernel(&command),
    };
    unless_unread(outcome).unwrap_or_else(|error| {
        lowtide::complain(format_args!("lowtide: {error:#}"));
        ExitCode::from(2)
    })
}

/// Reads the command line, or ends: `lowtide run` that is called wrongly with the status of its other failures, as env
/// and timeout do.
fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        let is_run = std::env::args_os().nth(1).is_some_and(|command| command == "run");
        match cli::wrong_value(&error) {
            Some(sentence) => lowtide::complain(format_args!("lowtide: {sentence}")),
            None => {
                let _ = error.print();
            }
        }
        process::exit(if is_run && error.use_stderr() { RUN_FAILED.into() } else { error.exit_code() })
    })
}

/// A reader like `head` that has seen enough of the output is no failure. What was under way has ended in order by
/// then.
fn unless_unread(outcome: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    let unread = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    outcome.or_else(|error| match error.downcast_ref() {
        Some(cause) if unread(cause) => Ok(ExitCode::SUCCESS),
        _ => Err(error),
    })
}

/// The commands that need Linux.
#[cfg(target_os = "linux")]
fn on_the_kernel(command: &Command) -> anyhow::Result<ExitCode> {
    use lowtide::operate::protocol::Command as Order;
    match command {
        Command::Run(arguments) => Ok(lowtide::run::run(arguments)),
        Command::Attach(arguments) => Ok(lowtide::run::attach(arguments)),
        Command::Status(arguments) => lowtide::operate::status(arguments),
        Command::Top => lowtide::operate::top(),
        Command::Set(arguments) => lowtide::operate::set(arguments),
        Command::Pause(arguments) => lowtide::operate::command(&arguments.name, Order::Pause),
        Command::Resume(arguments) => lowtide::operate::command(&arguments.name, Order::Resume),
        Command::Detach(arguments) => lowtide::operate::command(&arguments.name, Order::Detach),
        Command::History(arguments) => lowtide::operate::history(arguments),
        Command::Cc(command) => lowtide::cc::cc(command),
        Command::Doctor => lowtide::doctor::doctor(),
        Command::Trace(arguments) => lowtide::trace::trace(arguments),
        Command::Emulate(arguments) => lowtide::emulate::emulate(arguments),
        Command::Traffic(arguments) => lowtide::traffic::traffic(arguments),
        Command::Sim(_) | Command::Lab(_) | Command::Demo(_) | Command::Man { .. } | Command::Completions { .. } => {
            unreachable!("they work everywhere")
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn on_the_kernel(_command: &Command) -> anyhow::Result<ExitCode> {
    anyhow::bail!("this command needs Linux; lowtide sim, lowtide lab and lowtide demo work everywhere")
}
