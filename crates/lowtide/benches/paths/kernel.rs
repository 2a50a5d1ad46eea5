// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run on this machine's kernel, through the emulator.

use super::{Failure, traffic::Course};
use lowtide_lab::testbed::Request;
use lowtide_sim::scenario::Scenario;
use lowtide_testbed::{Bottleneck, Options};
use std::{
    collections::BTreeMap,
    hint, path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

/// Runs the scenario in real time. Flows whose names begin with a key run a law of the kernel that has no model here.
/// The second value is the longest time for which the machine did not run a thread of the run, milliseconds.
pub(crate) fn course_of(
    scenario: Scenario,
    kernel_laws: BTreeMap<String, String>,
    busy: bool,
) -> Result<(Course, f64), Failure> {
    let options = Options {
        bottleneck: Bottleneck::Emulator,
        program: path::Path::new(env!("CARGO_BIN_EXE_lowtide")),
        plain_registration: false,
        interrupted: &|| false,
    };
    let over = AtomicBool::new(!busy);
    let recording = thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let recording = lowtide_testbed::run(&Request { scenario, kernel_laws }, &options);
        over.store(true, Ordering::Relaxed);
        recording
    })?;
    let columns = recording.flows.iter().map(|flow| flow.columns.get("delivered").map(|it| it.to_vec()));
    let delivered = columns.collect::<Option<Vec<_>>>().ok_or("the recording has a flow without deliveries")?;
    let finished = recording.flows.iter().map(|flow| flow.facts.get("finish").copied()).collect();
    let stalled = recording.links[0].facts.get("standstill_ms").copied().unwrap_or(0.0);
    Ok((Course { times: recording.times.to_vec(), delivered, finished }, stalled))
}
