// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--path-memory`: what runs have measured of paths, in a file. It holds networks (24 bits of IPv4, 48 of IPv6), the least round trip between
//! two, and when that was last found to be so.

use std::{cmp::Reverse, collections::BTreeMap, net::IpAddr, path::Path as FilePath, time::Duration};

use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use lowtide_kernel::{Caller, Path, Seen};
use serde::{Deserialize, Serialize};

use super::state_file::{self, StateFile};

/// What is older is forgotten.
const AGE: SignedDuration = SignedDuration::from_hours(7 * 24);
/// So many paths are kept, the latest ones.
const MOST: usize = 1000;

/// A path as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    from: IpAddr,
    to: IpAddr,
    base_us: u64,
    measured: Timestamp,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    paths: Vec<Line>,
}

const SCHEMA: &str = "lowtide-paths/1";

/// What is known of paths: the least round trip, and when that was last found to be so.
#[derive(Debug, Default, PartialEq)]
struct Known(BTreeMap<Path, (Duration, Timestamp)>);

impl Known {
    fn of(contents: &Contents, now: Timestamp) -> Known {
        let path = |line: &Line| Path { local: line.from, remote: line.to };
        // a clock that was ahead when it was written must not keep it for ever
        let value = |line: &Line| (Duration::from_micros(line.base_us), line.measured.min(now));
        let mut known = Known(contents.paths.iter().map(|line| (path(line), value(line))).collect());
        known.age(now);
        known
    }

    fn contents(&self) -> Contents {
        let line = |(path, (base, measured)): (&Path, &(Duration, Timestamp))| Line {
            from: path.local,
            to: path.remote,
            base_us: u64::try_from(base.as_micros()).unwrap_or(u64::MAX),
            measured: *measured,
        };
        Contents { paths: self.0.iter().map(line).collect() }
    }

    /// Forgets what is too old or too much.
    fn age(&mut self, now: Timestamp) {
        self.0.retain(|_, (_, measured)| now.duration_since(*measured) <= AGE);
        if self.0.len() > MOST {
            let mut latest: Vec<_> = std::mem::take(&mut self.0).into_iter().collect();
            latest.sort_by_key(|(_, (_, measured))| Reverse(*measured));
            latest.truncate(MOST);
            self.0.extend(latest);
        }
    }

    /// Adds what a transfer saw, so long ago.
    fn add(&mut self, path: Path, seen: &Seen, ago: Duration, now: Timestamp) {
        let Some(base) = seen.after(self.0.get(&path).map(|(base, _)| *base)) else { return };
        let ago = SignedDuration::try_from(ago).unwrap_or(SignedDuration::MAX);
        let measured = now.checked_sub(ago).unwrap_or(Timestamp::MIN);
        self.0.insert(path, (base, measured));
    }
}

/// What a file with this text says of paths, as it is written.
///
/// # Errors
/// It is no such file.
pub(crate) fn rewritten(text: &[u8], now: Timestamp) -> Result<Vec<u8>> {
    let contents: Contents = state_file::parse(SCHEMA, text)?;
    state_file::print(SCHEMA, Known::of(&contents, now).contents())
}

/// A file of what is known.
#[derive(Debug)]
pub(super) struct Memory {
    file: StateFile,
}

impl Memory {
    /// In this file, which need not be there yet.
    pub(super) fn new(file: &FilePath, caller: Caller) -> Memory {
        Memory { file: StateFile::new(file, SCHEMA, caller) }
    }

    /// What is known at this time of paths and their base round trips.
    ///
    /// # Errors
    /// The file cannot be read, or is none of ours.
    pub(super) fn recall(&self, now: Timestamp) -> Result<Vec<(Path, Duration)>> {
        let contents: Contents = self.file.read().with_context(|| {
            format!("--path-memory {}: it cannot be used, so nothing is known of paths", self.file.path().display())
        })?;
        Ok(Known::of(&contents, now).0.into_iter().map(|(path, (base, _))| (path, base)).collect())
    }

    /// Adds what a transfer saw of paths until so long ago. What other runs have written meanwhile stays; a file that was damaged is replaced.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn keep(&self, seen: &[(Path, Seen, Duration)], now: Timestamp) -> Result<()> {
        if seen.is_empty() {
            return Ok(());
        }
        let add = |contents: &mut Contents| {
            let mut known = Known::of(contents, now);
            for (path, seen, ago) in seen {
                known.add(*path, seen, *ago, now);
            }
            known.age(now);
            *contents = known.contents();
        };
        let file = self.file.path().display();
        self.file.change(add).with_context(|| format!("--path-memory {file}: what was measured of paths is not kept"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
    const MINUTE: Duration = Duration::from_secs(60);

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn to(remote: &str) -> Path {
        Path { local: [192, 0, 2, 0].into(), remote: remote.parse().unwrap() }
    }

    const fn seen(base: u64) -> Seen {
        Seen { base: ms(base), refuted: None }
    }

    fn memory() -> (tempfile::TempDir, Memory) {
        let directory = tempfile::tempdir().unwrap();
        let memory = Memory::new(&directory.path().join("state/lowtide/paths.json"), Caller::of_this_process());
        (directory, memory)
    }

    fn later(hours: i64) -> Timestamp {
        NOW + SignedDuration::from_hours(hours)
    }

    #[test]
    fn it_keeps_what_was_measured() {
        let (_directory, memory) = memory();
        assert_eq!(memory.recall(NOW).unwrap(), []);
        let mapped = Path { local: "2001:db8:1::".parse().unwrap(), remote: "2001:db8:2::".parse().unwrap() };
        memory.keep(&[(to("198.51.100.0"), seen(40), MINUTE), (mapped, seen(20), MINUTE)], NOW).unwrap();
        assert_eq!(memory.recall(NOW).unwrap(), [(to("198.51.100.0"), ms(40)), (mapped, ms(20))]);
    }

    #[test]
    fn the_least_counts_whoever_comes_last_unless_it_was_refuted() {
        let (_directory, memory) = memory();
        let path = to("198.51.3.0");
        memory.keep(&[(path, seen(40), MINUTE)], NOW).unwrap();
        let base = |now| memory.recall(now).unwrap().into_iter().find(|(it, _)| *it == path).unwrap().1;
        memory.keep(&[(path, seen(150), MINUTE)], NOW).unwrap();
        assert_eq!(base(NOW), ms(40));
        memory.keep(&[(path, Seen { base: ms(80), refuted: Some(ms(40)) }, MINUTE)], NOW).unwrap();
        assert_eq!(base(NOW), ms(80));
    }

    #[test]
    fn it_forgets_what_was_not_found_again_for_a_week() {
        let (_directory, memory) = memory();
        let (old, renewed, longer) = (to("198.51.1.0"), to("198.51.2.0"), to("198.51.3.0"));
        memory.keep(&[old, renewed, longer].map(|path| (path, seen(40), MINUTE)), NOW).unwrap();
        // one is found again, of one nothing is found but a queue
        memory.keep(&[(renewed, seen(41), MINUTE), (longer, seen(90), MINUTE)], later(100)).unwrap();
        assert_eq!(memory.recall(later(167)).unwrap().len(), 3);
        assert_eq!(memory.recall(later(168)).unwrap(), [(renewed, ms(40))]);
        assert_eq!(memory.recall(later(268)).unwrap(), []);
    }

    #[test]
    fn a_clock_that_was_ahead_does_not_keep_it_for_ever() {
        let (_directory, memory) = memory();
        let path = to("198.51.1.0");
        memory.keep(&[(path, seen(40), MINUTE)], later(10_000)).unwrap();
        assert_eq!(memory.recall(NOW).unwrap().len(), 1);
        memory.keep(&[(to("198.51.2.0"), seen(40), MINUTE)], NOW).unwrap();
        assert_eq!(memory.recall(later(169)).unwrap(), []);
    }

    #[test]
    fn it_keeps_the_latest_thousand() {
        let (_directory, memory) = memory();
        let many: Vec<_> = (0..MOST as u64 + 100)
            .map(|n| (to(&format!("10.{}.{}.0", n >> 8, n & 255)), seen(40), Duration::from_secs(1 + n)))
            .collect();
        memory.keep(&many, NOW).unwrap();
        let known = memory.recall(NOW).unwrap();
        assert_eq!(known.len(), MOST);
        let has = |n: usize| known.iter().any(|(path, _)| *path == many[n].0);
        assert!(has(0) && has(MOST - 1) && !has(MOST) && !has(MOST + 99));
    }

    #[test]
    fn a_damaged_file_is_one_sentence_and_replaced() {
        let line = r#"{"from":"192.0.2.0","to":"198.51.1.0","base_us":40000,"measured":"2027-01-15T08:00:00Z"}"#;
        let right = format!(r#"{{"schema":"{SCHEMA}","paths":[{line}]}}"#);
        for (text, damage) in [
            (right.clone(), false),
            (right.replace("paths/1", "paths/2"), true),
            (right.replace("40000", "-1"), true),
            (right.replace("198.51.1.0", "198.51.1"), true),
            (right.replace("]", ""), true),
            (String::new(), true),
        ] {
            let (_directory, memory) = memory();
            fs::create_dir_all(memory.file.path().parent().unwrap()).unwrap();
            fs::write(memory.file.path(), &text).unwrap();
            let known = memory.recall(NOW);
            assert_eq!(known.is_err(), damage, "{text}: {known:?}");
            if let Err(error) = known {
                assert!(!format!("{error:#}").contains('\n'), "{error:#}");
            }
            memory.keep(&[(to("198.51.2.0"), seen(20), MINUTE)], NOW).unwrap();
            assert_eq!(memory.recall(NOW).unwrap().len(), 2 - usize::from(damage), "{text}");
        }
    }

    #[test]
    fn where_it_cannot_be_written_there_is_a_sentence() {
        let directory = tempfile::tempdir().unwrap();
        let memory = Memory::new(directory.path(), Caller::of_this_process());
        assert!(memory.recall(NOW).is_err());
        let error = memory.keep(&[(to("198.51.2.0"), seen(20), MINUTE)], NOW).unwrap_err();
        assert!(error.to_string().contains("is not kept"), "{error:#}");
    }
}
