// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers that run: `lowtide status`, `set`, `pause`, `resume` and `detach`, each by the transfer's control socket;
//! and those that ran, `lowtide history`.

pub mod client;
pub mod directory;
mod frames;
mod openmetrics;
pub mod protocol;
pub mod server;
mod show;
mod top;

use std::{
    io::{self, IsTerminal, Write, stdout},
    os::unix::net::UnixStream,
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use jiff::Zoned;
use serde_json::json;

use crate::{
    cli::{DeadlineArgument, HistoryArguments, SetArguments, StatusArguments},
    hours,
    run::past_runs,
    terminal,
    when::When,
};
use client::{ask, everybody};
use directory::Directory;
pub use top::top;

use protocol::{Changes, Command, Due, Request, Status};
#[cfg(test)]
pub(crate) use show::tests::example;

/// Between two looks of `--watch`.
const WATCH: Duration = Duration::from_secs(1);
/// Clears a terminal, what has scrolled out of sight excepted.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";
/// The number of the object that `--json` prints.
const SCHEMA: &str = "lowtide-status/1";

/// `lowtide status`.
///
/// # Errors
/// One sentence: no such transfer, or the control sockets cannot be read.
pub fn status(arguments: &StatusArguments) -> Result<ExitCode> {
    let directory = Directory::usual()?;
    loop {
        let (all, silent) = match &arguments.name {
            Some(name) => (vec![ask(&directory, name, &Request::new(Command::Status))?], Vec::new()),
            None => everybody(&directory)?,
        };
        let mut out = stdout().lock();
        if arguments.watch && !arguments.json && out.is_terminal() && terminal::moves() {
            out.write_all(CLEAR.as_bytes())?;
        }
        out.write_all(text(arguments, &all)?.as_bytes())?;
        out.flush()?;
        for error in &silent {
            eprintln!("lowtide: {error:#}");
        }
        if !arguments.watch {
            return Ok(if silent.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        thread::sleep(WATCH);
    }
}

fn text(arguments: &StatusArguments, all: &[Status]) -> Result<String> {
    if arguments.json {
        return Ok(format!("{}\n", json!({ "schema": SCHEMA, "transfers": all })));
    }
    if arguments.openmetrics {
        return Ok(openmetrics::exposition(all, openmetrics::Format::OpenMetrics));
    }
    if arguments.prometheus {
        return Ok(openmetrics::exposition(all, openmetrics::Format::Prometheus));
    }
    let now = Zoned::now();
    Ok(match (all, arguments.name.is_some()) {
        ([], _) => "no transfer is running\n".to_owned(),
        (all, detailed) => {
            all.iter().map(|status| show::transfer(status, detailed, &now)).collect::<Vec<_>>().join("\n")
        }
    })
}

/// `lowtide set`.
///
/// # Errors
/// One sentence: an option that cannot be read, no such transfer, or it refuses.
pub fn set(arguments: &SetArguments) -> Result<ExitCode> {
    let changes = changes(arguments)?;
    if changes == Changes::default() {
        bail!(
            "nothing to set; give --deadline, --size, --remaining, --max-rate, --min-rate, --w-max, --window or --cap"
        );
    }
    order(&arguments.name, &Request { changes: Some(changes), ..Request::new(Command::Set) })
}

/// `lowtide pause`, `resume` and `detach`.
///
/// # Errors
/// One sentence: no such transfer, or it refuses.
pub fn command(name: &str, command: Command) -> Result<ExitCode> {
    order(name, &Request::new(command))
}

/// Sends a request, and tells how the transfer is then.
fn order(name: &str, request: &Request) -> Result<ExitCode> {
    let status = ask(&Directory::usual()?, name, request)?;
    io::stdout().write_all(show::transfer(&status, false, &Zoned::now()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The frames that these bytes are on a control socket, up to where they are none.
#[doc(hidden)]
pub fn read_frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    thread::scope(|scope| {
        scope.spawn(move || drop(theirs.write_all(bytes))); // it may be left before it has said all
        let mut frames = frames::Frames::new(ours, protocol::LONGEST_REQUEST, WATCH);
        std::iter::from_fn(|| frames.read().ok().flatten()).collect()
    })
}

/// `lowtide history`.
///
/// # Errors
/// One sentence: the record cannot be read.
pub fn history(arguments: &HistoryArguments) -> Result<ExitCode> {
    past_runs(arguments)
}

fn changes(arguments: &SetArguments) -> Result<Changes> {
    let due = |deadline| match deadline {
        DeadlineArgument::None => Due::None,
        DeadlineArgument::When(When::Relative(length)) => Due::InS(length.as_secs_f64()),
        DeadlineArgument::When(When::Absolute(instant)) => Due::At(instant),
    };
    let rate = |option: &str, text: &Option<String>| {
        let parse = |text: &str| match text {
            "none" => Ok(0),
            text => text.parse::<lowtide_net::Rate>().map(lowtide_net::Rate::bits_per_second),
        };
        text.as_deref().map(parse).transpose().map_err(|error| anyhow!("{option}: {error}; or none"))
    };
    // given once, they replace the former ones
    let rules = |texts: &[String]| match texts {
        [] => None,
        [none] if none == "none" => Some(Vec::new()),
        texts => Some(texts.to_vec()),
    };
    hours::Rules::parse(&rules(&arguments.window).unwrap_or_default(), &rules(&arguments.cap).unwrap_or_default())?;
    Ok(Changes {
        deadline: arguments.deadline.map(due),
        size_bytes: arguments.size,
        remaining_bytes: arguments.remaining,
        max_rate_bps: rate("--max-rate", &arguments.max_rate)?,
        min_rate_bps: rate("--min-rate", &arguments.min_rate)?,
        w_max: arguments.w_max,
        windows: rules(&arguments.window),
        caps: rules(&arguments.cap),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{self, Cli};

    fn set(words: &[&str]) -> Result<Changes> {
        match Cli::try_parse_from(["lowtide", "set", "a"].iter().chain(words))?.command {
            cli::Command::Set(arguments) => changes(&arguments),
            _ => unreachable!("set was asked for"),
        }
    }

    #[test]
    fn what_is_set_is_said_as_in_run() {
        let changes =
            set(&["--deadline", "+2h", "--remaining", "12GB", "--max-rate", "20mbit", "--min-rate", "none"]).unwrap();
        assert_eq!(changes.deadline, Some(Due::InS(7200.0)));
        assert_eq!(changes.remaining_bytes, Some(12_000_000_000));
        assert_eq!((changes.max_rate_bps, changes.min_rate_bps), (Some(20_000_000), Some(0)));
        let hours = set(&["--window", "22:00-06:00", "--cap", "none"]).unwrap();
        assert_eq!((hours.windows, hours.caps), (Some(vec!["22:00-06:00".to_owned()]), Some(Vec::new())));
        assert_eq!(set(&["--deadline", "none"]).unwrap().deadline, Some(Due::None));
        for (wrong, part) in [
            (&["--deadline", "soon"][..], "cannot read the deadline"),
            (&["--size", "0"], "nothing to send"),
            (&["--max-rate", "fast"], "--max-rate"),
            (&["--window", "late"], "--window: cannot read"),
            (&["--cap", "none", "--cap", "8:00-9:00=1mbit"], "--cap"),
        ] {
            let error = format!("{:#}", set(wrong).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }
}
