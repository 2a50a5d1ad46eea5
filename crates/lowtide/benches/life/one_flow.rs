// SPDX-License-Identifier: MIT OR Apache-2.0
//! The yardstick of one flow: a plain CUBIC connection in the program's place.

use super::{
    Failure,
    flow::Flow,
    foreground::Foreground,
    process::LOOK,
    verdict::{End, Run},
};
use lowtide_emu::Emulator;
use std::{thread, time::Instant};

/// IP and TCP headers of a packet with timestamps, bytes.
const HEADERS: u64 = 52;

/// What has crossed the link from A to B so far without its headers, bytes.
pub(crate) fn crossed(link: &Emulator) -> u64 {
    let delivered = link.totals().forward.delivered;
    delivered.bytes.saturating_sub(HEADERS * delivered.packets)
}

/// How long one connection takes for so many bytes, beside the same foreground as a program; `limit` is in seconds,
/// `solo` in bytes per second: what the foreground has alone.
pub(crate) fn run(link: &Emulator, bytes: u64, limit: f64, solo: f64) -> Result<Run, Failure> {
    let foreground = Foreground::start(link)?;
    let start = Instant::now();
    let flow = Flow::start(link, bytes)?;
    let seconds = loop {
        let seconds = start.elapsed().as_secs_f64();
        if flow.received() >= bytes || seconds > limit {
            break seconds;
        }
        thread::sleep(LOOK);
    };
    let end = if seconds > limit { End::TooSlow } else { End::Done };
    Ok(Run { end, seconds, kept: Some(foreground.rate() / solo), carried: Some(flow.received()), due: None })
}
