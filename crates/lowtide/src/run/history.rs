// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--size last`: what each job sent when it last ran, in a file. A job is known by its `--name`, else by a digest of
//! its command line, which may hold secrets. Failed runs and such that were not governed are not kept.

use std::{ffi::OsString, fmt::Write, os::unix::ffi::OsStrExt, path::Path};

use anyhow::{Context, Result};
use jiff::Timestamp;
use lowtide_kernel::Caller;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::state_file::{self, StateFile};

const SCHEMA: &str = "lowtide-history/1";

/// So many jobs are kept, the latest ones.
const MOST: usize = 1000;

/// Bytes of a name that the file has as it is. A thousand of them fit, however they are escaped.
const LONGEST_NAME: usize = 100;

/// A job's last run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    job: String,
    ended: Timestamp,
    sent_bytes: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Entries {
    jobs: Vec<Entry>,
}

/// The file, and the job that this run is of.
#[derive(Debug)]
pub(super) struct History {
    file: StateFile,
    job: String,
}

impl History {
    pub(super) fn new(file: &Path, caller: Caller, name: Option<&str>, command: &[OsString]) -> History {
        let job = match name {
            None => format!("sha256:{}", digest(command)),
            Some(name) if name.len() <= LONGEST_NAME => format!("name:{name}"),
            Some(name) => format!("name-sha256:{}", digest(&[name.into()])),
        };
        History { file: StateFile::new(file, SCHEMA, caller), job }
    }

    /// Bytes that the job sent when it last ran; `None` if that is not known.
    ///
    /// # Errors
    /// The file cannot be read, or is none of ours.
    pub(super) fn last(&self) -> Result<Option<u64>> {
        let entries: Entries = self.file.read().with_context(|| format!("--history {}", self.file.path().display()))?;
        Ok(entries.jobs.iter().find(|entry| entry.job == self.job).map(|entry| entry.sent_bytes))
    }

    /// # Errors
    /// The file cannot be written.
    pub(super) fn keep(&self, sent_bytes: u64, ended: Timestamp) -> Result<()> {
        let add = |entries: &mut Entries| {
            entries.jobs.retain(|entry| entry.job != self.job);
            entries.jobs.push(Entry { job: self.job.clone(), ended, sent_bytes });
            entries.jobs.sort_by_key(|entry| entry.ended);
            let surplus = entries.jobs.len().saturating_sub(MOST);
            entries.jobs.drain(..surplus);
        };
        self.file.change(add).with_context(|| {
            format!("--history {}: what this job sent is not kept for --size last", self.file.path().display())
        })
    }
}

/// The file of jobs, read and printed again.
///
/// # Errors
/// It is damaged.
pub(crate) fn kept_again(text: &[u8]) -> Result<Vec<u8>> {
    state_file::again::<Entries>(SCHEMA, text)
}

/// A new guess for a job that turns out to send more than the last time: a fourth more than what it has sent, or has
/// ready to send, by now.
pub(super) fn again(guess: u64, acknowledged: u64, unfinished: u64) -> Option<u64> {
    let known = acknowledged + unfinished;
    // what is under way is counted in whole segments, and the end of a connection as a byte
    (known > guess.saturating_add(guess / 1000)).then_some(known + known / 4)
}

/// Of the words and where they end.
fn digest(command: &[OsString]) -> String {
    let mut digest = Sha256::new();
    for word in command {
        digest.update((word.len() as u64).to_le_bytes());
        digest.update(word.as_bytes());
    }
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn each_job_has_its_last_run() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("history.json");
        let job =
            |name: Option<&str>, command: &str| History::new(&file, Caller::of_this_process(), name, &words(command));
        let (first, second) = (job(None, "rsync -a /srv b:"), job(Some("home"), "rsync -a /home b:"));
        assert_eq!(first.last().unwrap(), None);
        first.keep(45, at(0)).unwrap();
        second.keep(7, at(10)).unwrap();
        first.keep(5, at(20)).unwrap();
        assert_eq!((first.last().unwrap(), second.last().unwrap()), (Some(5), Some(7)));
        assert_eq!(job(Some("home"), "another command").last().unwrap(), Some(7), "by its name alone");
        for other in ["rsync -a /srv c:", "rsync -a/srv b:", "rsync -a /srv b: x"] {
            assert_eq!(job(None, other).last().unwrap(), None, "{other}");
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("rsync"), "a command line may hold secrets: {text}");
    }

    #[test]
    fn a_job_that_has_grown_is_guessed_again_some_times() {
        assert_eq!((again(5_000, 4_000, 1_001), again(5_000, 5_000, 6)), (None, Some(6_257)));
        assert_eq!(again(u64::MAX, 1, 0), None);
        let mut guess = 5_000_000;
        let all = 45_000_000;
        let guesses = (0..=all).step_by(100_000).filter_map(|sent| again(guess, sent, 60_000).map(|more| guess = more));
        assert!(guesses.count() <= 12);
    }

    #[test]
    fn long_names_leave_room_for_others() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("history.json");
        let job = |name: &str| History::new(&file, Caller::of_this_process(), Some(name), &words("true"));
        let entries = |name: String| Entry { job: job(&name).job, ended: at(0), sent_bytes: u64::MAX };
        let state = StateFile::new(&file, SCHEMA, Caller::of_this_process());
        state
            .change(|all: &mut Entries| all.jobs = (0..MOST).map(|n| entries(format!("{n:\u{1}>100}"))).collect())
            .unwrap();
        let long = |last: char| job(&format!("{}{last}", "a".repeat(100_000)));
        long('b').keep(7, at(10)).unwrap();
        long('c').keep(8, at(20)).unwrap();
        assert_eq!((long('b').last().unwrap(), long('c').last().unwrap()), (Some(7), Some(8)));
    }

    #[test]
    fn it_keeps_the_latest_thousand() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("history.json");
        let job = |n: usize| History::new(&file, Caller::of_this_process(), Some(&n.to_string()), &[]);
        let jobs = (0..MOST + 2).map(|n| Entry { job: format!("name:{n}"), ended: at(n as i64), sent_bytes: 1 });
        let entries: Vec<_> = jobs.collect();
        let state = StateFile::new(&file, SCHEMA, Caller::of_this_process());
        state.change(|all: &mut Entries| all.jobs = entries).unwrap();
        job(5_000).keep(1, at(5_000)).unwrap();
        let known = |n: usize| job(n).last().unwrap().is_some();
        assert!(!known(0) && !known(2) && known(3) && known(MOST + 1) && known(5_000));
    }
}
