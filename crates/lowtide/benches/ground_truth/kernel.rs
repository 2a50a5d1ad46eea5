// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario on this machine's kernel, through the emulator.

use super::{
    Failure, Measured,
    link::{configuration, prepare},
    punctual::Watch,
    traffic::Traffic,
};
use lowtide_emu::Emulator;
use lowtide_net::Statistics;
use lowtide_sim::scenario::Scenario;
use std::{
    thread,
    time::{Duration, Instant},
};

/// Plays it in real time. `run` is part of the seed.
pub(crate) fn measure(scenario: &Scenario, run: u64) -> Result<Measured, Failure> {
    let emulator = Emulator::start(configuration(scenario, run)?)?;
    for namespace in [emulator.a(), emulator.b()] {
        prepare(namespace, scenario)?;
    }
    let begin = Instant::now();
    let flows = scenario.flows.iter().enumerate();
    let mut flows: Vec<Traffic> =
        flows.map(|(index, flow)| Traffic::start(&emulator, index, flow, begin)).collect::<Result<_, _>>()?;
    let sample = |at: Duration, flows: &[Traffic]| {
        thread::sleep(at.saturating_sub(begin.elapsed()));
        (begin.elapsed(), emulator.totals().forward, flows.iter().map(Traffic::received).collect::<Vec<_>>())
    };
    let watch = Watch::start();
    let (from, before, received_before) = sample(scenario.measure_from, &flows);
    let (to, after, received) = sample(scenario.duration, &flows);
    let stalled_ms = watch.stop().as_secs_f64() * 1e3;
    flows.iter_mut().try_for_each(Traffic::finish)?;
    emulator.stop()?;
    let span = (to - from).as_secs_f64();
    let mbit = |bytes: u64| bytes as f64 * 8e-6 / span;
    let delay = after.queueing_delay_sum - before.queueing_delay_sum;
    let delivered = after.delivered - before.delivered;
    let dropped = |counts: &Statistics| counts.dropped().packets + counts.lost.packets;
    Ok(Measured {
        rates: received.iter().zip(&received_before).map(|(after, before)| mbit(after - before)).collect(),
        queue_ms: delay.as_secs_f64() * 1e3 / delivered.packets.max(1) as f64,
        dropped: dropped(&after) - dropped(&before),
        marked: (after.marked - before.marked).packets,
        stalled_ms,
    })
}
