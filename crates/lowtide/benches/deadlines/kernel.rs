// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scenario on this machine's kernel, through the emulator: the transfer governed as by `lowtide run`, but with the
//! scenario's own policy.

use super::{Failure, Measured, Point};
use lowtide_lab::{Track, testbed::Request};
use lowtide_sim::scenario::{Scenario, Transport};
use lowtide_testbed::{Bottleneck, Options};
use std::{fs, path::Path};

/// Runs it in real time. `run` is part of the seed.
pub(crate) fn measure(scenario: &Scenario, run: u64) -> Result<Measured, Failure> {
    let mut scenario = scenario.clone();
    scenario.seed = scenario.seed.wrapping_add(run);
    let competes: Vec<bool> = scenario.flows.iter().map(|flow| flow.transport != Transport::Udp).collect();
    let options = Options {
        bottleneck: Bottleneck::Emulator,
        program: Path::new(env!("CARGO_BIN_EXE_lowtide")),
        plain_registration: false,
        interrupted: &|| false,
    };
    let recording = lowtide_testbed::run(&Request { scenario, kernel_laws: Default::default() }, &options)?;
    let load = load()?;
    let (transfer, others) = recording.flows.split_first().ok_or("there is no transfer")?;
    let value = |track: &Track, name: &str, at: usize| track.columns.get(name).map_or(f64::NAN, |column| column[at]);
    let point = |(at, t): (usize, &f64)| {
        let weight = value(transfer, "weight", at);
        let phantoms = value(transfer, "inner:phantoms", at);
        let real = value(transfer, "reductions", at) - phantoms - value(transfer, "inner:backoffs", at);
        let delivered = |(track, _): (&Track, _)| value(track, "delivered", at) as u64;
        let others = others.iter().zip(&competes[1..]).filter(|(_, competes)| **competes).map(delivered).sum();
        let bytes = value(transfer, "delivered", at) as u64;
        weight.is_finite().then_some(Point { t: *t, bytes, weight, others, signals: (real as u64, phantoms as u64) })
    };
    let by_model = transfer.columns.get("inner:by_model").map_or(&[][..], |column| column);
    let by_model: Vec<f64> = by_model.iter().copied().filter(|value| value.is_finite()).collect();
    Ok(Measured {
        course: recording.times.iter().enumerate().filter_map(point).collect(),
        done: transfer.facts.get("finish").copied(),
        model: by_model.iter().sum::<f64>() / by_model.len().max(1) as f64,
        stalled_ms: recording.links[0].facts.get("standstill_ms").copied().unwrap_or(0.0),
        load,
    })
}

/// Tasks that want the processor, over the last minute.
fn load() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}
