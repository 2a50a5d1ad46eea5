// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is on the link before the program: one greedy flow.

use super::{Failure, flow::Flow};
use lowtide_emu::Emulator;
use std::{
    thread,
    time::{Duration, Instant},
};

/// Until it has left slow start.
const SETTLED: Duration = Duration::from_secs(2);

pub(crate) struct Foreground {
    flow: Flow,
    since: Instant,
    before: u64,
}

impl Foreground {
    /// Returns when it has settled.
    pub(crate) fn start(link: &Emulator) -> Result<Foreground, Failure> {
        let flow = Flow::start(link, u64::MAX)?;
        thread::sleep(SETTLED);
        Ok(Foreground { before: flow.received(), since: Instant::now(), flow })
    }

    /// Bytes per second since it settled.
    pub(crate) fn rate(&self) -> f64 {
        (self.flow.received() - self.before) as f64 / self.since.elapsed().as_secs_f64()
    }
}
