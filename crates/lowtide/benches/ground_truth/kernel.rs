// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario on this machine's kernel, through the emulator.

use super::{Failure, Measured};
use lowtide_lab::{Recording, Track, testbed::Request};
use lowtide_sim::scenario::Scenario;
use lowtide_testbed::{Bottleneck, Options};
use std::path::Path;

/// Runs it in real time. `run` is part of the seed.
pub(crate) fn record(scenario: &Scenario, run: u64) -> Result<Recording, Failure> {
    let mut scenario = scenario.clone();
    scenario.seed = scenario.seed.wrapping_add(run);
    let options = Options {
        bottleneck: Bottleneck::Emulator,
        program: Path::new(env!("CARGO_BIN_EXE_lowtide")),
        plain_registration: false,
        interrupted: &|| false,
    };
    Ok(lowtide_testbed::run(&Request { scenario, kernel_laws: Default::default() }, &options)?)
}

/// The same, and what it comes to over the measured span.
pub(crate) fn measure(scenario: &Scenario, run: u64) -> Result<Measured, Failure> {
    let recording = record(scenario, run)?;
    let from = recording.times.partition_point(|time| *time <= scenario.measure_from.as_secs_f64() + 1e-9);
    let part = |track: &Track, name: &str| track.columns.get(name).map_or(Vec::new(), |column| column[from..].to_vec());
    let link = &recording.links[0];
    let sum = |name: &str| part(link, name).iter().sum::<f64>();
    let waited: f64 =
        part(link, "queue").iter().zip(part(link, "packets")).map(|(queue, packets)| queue * packets).sum();
    let mean = |track: &Track| {
        let rates = part(track, "rate");
        rates.iter().sum::<f64>() / rates.len().max(1) as f64 / 1e6
    };
    Ok(Measured {
        rates: recording.flows.iter().map(mean).collect(),
        queue_ms: waited / sum("packets").max(1.0),
        dropped: sum("drops") as u64,
        marked: sum("marks") as u64,
        stalled_ms: link.facts.get("standstill_ms").copied().unwrap_or(0.0),
    })
}
