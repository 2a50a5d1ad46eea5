// SPDX-License-Identifier: MIT OR Apache-2.0
//! rclone: its statistics, in its log. In JSON they are numbers of bytes; in text they are rounded to three decimals of
//! a binary unit. Its total grows while it still compares files, unless `--check-first` is given.

use serde::Deserialize;

use super::Progress;

#[derive(Deserialize)]
struct Entry {
    stats: Stats,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    bytes: u64,
    total_bytes: u64,
}

pub(super) fn line(line: &str) -> Option<Progress> {
    if line.starts_with('{') {
        let Stats { bytes, total_bytes } = serde_json::from_str::<Entry>(line).ok()?.stats;
        return Some(Progress { done: bytes, total: total_bytes });
    }
    // "Transferred:  3.082 MiB / 8.583 MiB, 36%, …", or with --stats-one-line the same after the log's own words
    let (before, after) = line.split_once(" / ")?;
    let mut before = before.split_whitespace().rev();
    let mut after = after.split_whitespace();
    let (done_unit, done) = (before.next()?, before.next()?);
    let (total, total_unit, part) = (after.next()?, after.next()?.strip_suffix(',')?, after.next()?);
    let fits = part.strip_suffix("%,").is_some_and(|part| part == "-" || part.parse::<u8>().is_ok()) || part == "-,";
    fits.then_some(Progress { done: bytes(done, done_unit)?, total: bytes(total, total_unit)? })
}

fn bytes(number: &str, unit: &str) -> Option<u64> {
    let power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].iter().position(|name| *name == unit)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    Some((number * (1u64 << (10 * power)) as f64) as u64) // what does not fit is the most that fits
}
