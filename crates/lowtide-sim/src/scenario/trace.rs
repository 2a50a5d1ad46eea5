// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traffic as a list of times and bytes.

use super::values::{SourceError, bytes, time_or_none};
use lowtide_net::{file, units::format_duration};
use std::{fmt::Display, path::Path, sync::Arc, time::Duration};

/// When how many bytes are to be sent.
type Trace = Arc<[(Duration, u64)]>;

/// The columns of a file.
const COLUMNS: [&str; 2] = ["time_s", "bytes"];

/// Entries of a file at most: a printed scenario, which has all of them, is not longer than a file may be.
const MOST_ENTRIES: usize = 1_000_000;

/// Bytes of a line at most. There are two short fields in it; a field takes more memory than its separator.
const LONGEST_LINE: usize = 1000;

/// Reads a CSV file; see [`parse`].
pub(super) fn read(path: &Path) -> Result<Trace, SourceError> {
    let name = path.display().to_string();
    let text = file::read(path, file::MOST).map_err(|error| unreadable(&name, &error))?;
    parse(&name, &text)
}

/// Reads CSV: the header `time_s,bytes`, then a line for each amount of data, times in seconds from the flow's start
/// as decimal fractions. `name` is the file's, for messages.
pub(super) fn parse(name: &str, text: &[u8]) -> Result<Trace, SourceError> {
    if let Some(before) = text.split(|byte| *byte == b'\n').position(|line| line.len() > LONGEST_LINE) {
        return Err(SourceError(format!("{name}, line {}: it is longer than {LONGEST_LINE} bytes", before + 1)));
    }
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    if reader.headers().map_err(|error| unreadable(name, &error))? != COLUMNS[..] {
        return Err(SourceError(format!("the first line of the trace {name} has to be {}", COLUMNS.join(","))));
    }
    let mut entries = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(name, &error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let (Some(at), Some(bytes)) = (seconds(&record[0]), record[1].parse().ok().filter(|bytes| *bytes > 0_u64))
        else {
            let what: String = record.iter().collect::<Vec<_>>().join(",").chars().take(40).collect();
            return Err(SourceError(format!(
                "{name}, line {line}: \"{what}\" is not a time in seconds and a number of bytes"
            )));
        };
        if entries.len() == MOST_ENTRIES {
            return Err(SourceError(format!("{name}, line {line}: a trace has at most {MOST_ENTRIES} entries")));
        }
        entries.push((at, bytes));
    }
    ordered(entries, &format!("the trace {name}"))
}

fn unreadable(name: &str, error: &dyn Display) -> SourceError {
    SourceError(format!("cannot read the trace {name}: {error}"))
}

/// A decimal fraction of seconds. A unit of its own would make another one of the `s` behind it: `5m`.
fn seconds(text: &str) -> Option<Duration> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    time_or_none(&format!("{text}s")).ok().filter(|_| plain)
}

/// Reads `0s=1500B,2.5s=1MB`.
pub(super) fn inline(text: &str) -> Result<Trace, SourceError> {
    let entry = |part: &str| {
        let (at, size) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` of at has no bytes; write it like at:0s=1500B,2.5s=1MB"))?;
        Ok((time_or_none(at)?, bytes(size)?))
    };
    let entries: Result<Vec<_>, SourceError> = text.split(',').filter(|_| !text.is_empty()).map(entry).collect();
    ordered(entries?, "at")
}

fn ordered(entries: Vec<(Duration, u64)>, name: &str) -> Result<Trace, SourceError> {
    if entries.is_empty() {
        return Err(SourceError(format!("{name} needs entries; write them like at:0s=1500B,2.5s=1MB")));
    }
    if let Some(pair) = entries.windows(2).find(|pair| pair[1].0 < pair[0].0) {
        let late = format_duration(pair[1].0);
        return Err(SourceError(format!("{name}: {late} comes before the entry ahead of it")));
    }
    Ok(entries.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Source;

    fn file(text: &str) -> (tempfile::TempDir, Result<Source, SourceError>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), text).unwrap();
        let source = Source::read("trace:t.csv", folder.path());
        (folder, source)
    }

    #[test]
    fn a_file_is_read_exactly() {
        let (_folder, source) = file("time_s,bytes\n0,1500\n0.000000001, 20\n0.3,1\n");
        let expected = [(0, 1500), (1, 20), (300_000_000, 1)].map(|(at, bytes)| (Duration::from_nanos(at), bytes));
        assert_eq!(source, Ok(Source::Trace(expected.into())));
    }

    #[test]
    fn it_does_not_grow_without_bound() {
        let text = |entries| format!("time_s,bytes\n{}", "0,1\n".repeat(entries));
        assert_eq!(parse("t.csv", text(MOST_ENTRIES).as_bytes()).unwrap().len(), MOST_ENTRIES);
        let error = parse("t.csv", text(MOST_ENTRIES + 1).as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "t.csv, line 1000002: a trace has at most 1000000 entries");
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, part) in [
            ("0,1500\n", "the first line of the trace"),
            ("", "the first line of the trace"),
            ("time_s,bytes\n0,1\n-1,2\n", "t.csv, line 3: \"-1,2\" is not a time in seconds"),
            ("time_s,bytes\n0,0\n", "t.csv, line 2: \"0,0\" is not"),
            ("time_s,bytes\n5m,1\n", "t.csv, line 2: \"5m,1\" is not"),
            ("time_s,bytes\n1m2,1\n", "t.csv, line 2: \"1m2,1\" is not"),
            ("time_s,bytes\n1,1\n0.5,1\n", "500ms comes before the entry ahead of it"),
            ("time_s,bytes\n1\n", "t.csv: CSV error"),
            ("time_s,bytes\n", "needs entries"),
        ] {
            let (_folder, source) = file(text);
            let error = source.unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
        let quoted = format!("time_s,bytes\n\"{}\",1\n", "x\n".repeat(1000));
        let error = file(&quoted).1.unwrap_err().to_string();
        assert!(error.contains("is not a time in seconds") && error.len() < 300, "what is wrong is cut: {error}");
        let error = parse("t.csv", format!("time_s,bytes\n0,1\n{}", ",".repeat(1001)).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "t.csv, line 3: it is longer than 1000 bytes");
        let missing = Source::read("trace:none.csv", Path::new("/no/such")).unwrap_err().to_string();
        assert!(missing.contains("cannot read the trace /no/such/none.csv"), "{missing}");
    }
}
