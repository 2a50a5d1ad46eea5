// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide history`: what ran and how it ended, in a file beside the one of `--history`. It holds a program's name,
//! none of its arguments.

use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use jiff::{Timestamp, Zoned};
use lowtide_kernel::{Caller, Exit};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::state_file::{self, StateFile};
use crate::{cli::HistoryArguments, operate::directory::slug, size, spans, when};

/// So many runs are kept, the latest ones.
const MOST: usize = 500;
/// Characters of a program's name that are kept.
const LONGEST_PROGRAM: usize = 60;
const SCHEMA: &str = "lowtide-runs/1";

/// A transfer that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Past {
    /// That it had on the control socket.
    pub(super) name: String,
    /// `run` or `attach`.
    pub(super) kind: String,
    pub(super) program: String,
    pub(super) started: Timestamp,
    pub(super) ended: Timestamp,
    pub(super) deadline: Option<Timestamp>,
    pub(super) size_bytes: Option<u64>,
    pub(super) acknowledged_bytes: u64,
    /// As in the report.
    pub(super) outcome: Option<String>,
    pub(super) exit_code: Option<i32>,
    pub(super) exit_signal: Option<i32>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Runs {
    runs: Vec<Past>,
}

/// The file of them.
#[derive(Debug)]
pub(super) struct PastRuns {
    file: StateFile,
}

impl PastRuns {
    /// Beside this file of `--history`.
    pub(super) fn beside(history: &Path, caller: Caller) -> PastRuns {
        PastRuns { file: StateFile::new(&file_of(history), SCHEMA, caller) }
    }

    /// # Errors
    /// The file cannot be written.
    pub(super) fn keep(&self, mut past: Past) -> Result<()> {
        past.program = past.program.chars().take(LONGEST_PROGRAM).collect();
        let add = |all: &mut Runs| {
            all.runs.push(past);
            let surplus = all.runs.len().saturating_sub(MOST);
            all.runs.drain(..surplus);
        };
        self.file.change(add).with_context(|| format!("{}: this run is not kept", self.file.path().display()))
    }

    fn read(&self) -> Result<Vec<Past>> {
        let runs: Runs = self.file.read().with_context(|| self.file.path().display().to_string())?;
        Ok(runs.runs)
    }
}

/// The file of runs, read and printed again; each run is shown in a line.
///
/// # Errors
/// It is damaged.
pub(crate) fn runs_again(text: &[u8]) -> Result<Vec<u8>> {
    let again = state_file::again::<Runs>(SCHEMA, text)?;
    let runs: Runs = serde_json::from_slice(&again)?;
    let now = Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
    assert!(runs.runs.iter().all(|past| !past.line(&now).contains(char::is_control)));
    Ok(again)
}

fn file_of(history: &Path) -> PathBuf {
    history.with_extension("runs.json")
}

impl Past {
    pub(super) fn exited(mut self, exit: Exit) -> Past {
        (self.exit_code, self.exit_signal) = match exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        self
    }

    /// A line for a person, without the control characters that another user's file may have.
    fn line(&self, now: &Zoned) -> String {
        let took = self.ended.duration_since(self.started).try_into().unwrap_or_default();
        let ended = when::show(self.ended, now);
        let moved = format!("{} in {}", size::show(self.acknowledged_bytes), spans::show(took));
        let how = [self.in_words(), self.failure()].into_iter().flatten();
        let how: String = how.map(|words| format!(", {words}")).collect();
        let line = format!("{ended:<16}  {}: {moved}{how}", self.name);
        line.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }

    fn in_words(&self) -> Option<String> {
        let to_deadline = self.deadline.map(|deadline| deadline.duration_since(self.ended));
        let span = to_deadline.map(|span| spans::show(span.abs().try_into().unwrap_or_default()));
        Some(match (self.outcome.as_deref()?, span) {
            ("met", Some(span)) => format!("{span} before its deadline"),
            ("missed", Some(span)) if to_deadline.is_some_and(|left| left.is_negative()) => {
                format!("{span} after its deadline")
            }
            ("missed", _) => "its deadline missed".to_owned(),
            ("ended-early", _) => format!("of {} announced", size::show(self.size_bytes.unwrap_or(0))),
            ("not-governed", _) => "not governed".to_owned(),
            (other, _) => other.to_owned(),
        })
    }

    fn failure(&self) -> Option<String> {
        let code = self.exit_code.filter(|code| *code != 0).map(|code| format!("exit status {code}"));
        code.or_else(|| self.exit_signal.map(|signal| format!("ended by signal {signal}")))
    }
}

/// `lowtide history`.
///
/// # Errors
/// One sentence: the file cannot be read, or there was no such run.
pub(crate) fn history(arguments: &HistoryArguments) -> Result<ExitCode> {
    if arguments.history.as_os_str() == "none" {
        bail!("--history none: there is no history");
    }
    let runs = PastRuns::beside(&arguments.history, Caller::find()?).read()?;
    let wanted = arguments.name.as_deref().map(slug);
    let meant = |past: &&Past| wanted.as_ref().is_none_or(|name| past.name == *name || job_of(&past.name) == name);
    let runs: Vec<&Past> = runs.iter().filter(meant).collect();
    let mut out = stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json!({ "schema": SCHEMA, "runs": runs }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        let of = wanted.map(|name| format!(" of {name}")).unwrap_or_default();
        writeln!(out, "no run{of} is on record")?;
    }
    let now = Zoned::now();
    for past in runs {
        writeln!(out, "{}", past.line(&now))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The name without the number that distinguishes it from others of this name.
fn job_of(name: &str) -> &str {
    name.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok()).map_or(name, |(job, _)| job)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(name: &str) -> Past {
        let started: Timestamp = "2026-11-21T21:00:00Z".parse().unwrap();
        Past {
            name: name.into(),
            kind: "run".into(),
            program: "p".repeat(1000),
            started,
            ended: started + jiff::SignedDuration::from_mins(401),
            deadline: Some(started + jiff::SignedDuration::from_mins(420)),
            size_bytes: Some(80_000_000_000),
            acknowledged_bytes: 80_000_000_000,
            outcome: Some("met".into()),
            exit_code: Some(0),
            exit_signal: None,
        }
    }

    #[test]
    fn the_latest_runs_are_kept_and_read() {
        let directory = tempfile::tempdir().unwrap();
        let runs = PastRuns::beside(&directory.path().join("history.json"), Caller::of_this_process());
        assert!(runs.read().unwrap().is_empty());
        let all = |all: &mut Runs| all.runs = (0..MOST).map(|number| past(&format!("job-{number}"))).collect();
        PastRuns::beside(&directory.path().join("history.json"), Caller::of_this_process()).file.change(all).unwrap();
        runs.keep(past("last")).unwrap();
        let kept = runs.read().unwrap();
        assert_eq!((kept.len(), kept[0].name.as_str(), kept[MOST - 1].name.as_str()), (MOST, "job-1", "last"));
        assert_eq!(kept[MOST - 1].program.len(), LONGEST_PROGRAM);
        assert!(directory.path().join("history.runs.json").exists());
    }

    #[test]
    fn a_run_is_a_line() {
        let now: Zoned = "2026-11-22T12:00:00+01:00[Europe/Oslo]".parse().unwrap();
        let with = |change: fn(&mut Past)| {
            let mut it = past("nightly");
            change(&mut it);
            it.line(&now)
        };
        assert_eq!(with(|_| {}), "04:41             nightly: 80.00 GB in 6 h 41 min, 19 min before its deadline");
        for (line, part) in [
            (
                with(|it| (it.outcome, it.deadline) = (Some("missed".into()), Some(it.started))),
                ", 6 h 41 min after its deadline",
            ),
            (
                with(|it| (it.outcome, it.exit_code) = (Some("ended-early".into()), Some(7))),
                "80.00 GB announced, exit status 7",
            ),
            (
                with(|it| (it.outcome, it.exit_code, it.exit_signal) = (None, None, Some(9))),
                "6 h 41 min, ended by signal 9",
            ),
            (with(|it| it.name = "a\x1b[2J".into()), "a?[2J: 80.00 GB"),
            (with(|it| it.outcome = Some("\x1b]0;title\x07\u{9b}2J\n".into())), "min, ?]0;title??2J?"),
        ] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn a_number_at_the_end_tells_runs_of_a_job_apart() {
        assert_eq!((job_of("rsync-2"), job_of("rsync"), job_of("pg-base-12")), ("rsync", "rsync", "pg-base"));
    }
}
