// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario in the simulator.

use super::Measured;
use lowtide_cc::Random;
use lowtide_sim::{observe::Nobody, run, scenario::Scenario};

/// Runs it. `number` of the run decides on the seed, and by how much of a round trip each flow starts late: without
/// that all runs of a scenario without chance would be the same one.
pub(crate) fn simulate(scenario: &Scenario, number: u64) -> Measured {
    let mut scenario = scenario.clone();
    scenario.seed = scenario.seed.wrapping_add(number);
    let mut random = Random::new(scenario.seed);
    for flow in &mut scenario.flows {
        flow.start += flow.rtt.mul_f64(random.uniform());
    }
    let outcome = run(&scenario, &mut Nobody);
    let link = &outcome.bottlenecks[0];
    Measured {
        rates: outcome.flows.iter().map(|flow| flow.mean_bps / 1e6).collect(),
        queue_ms: link.mean_queue_ms,
        dropped: link.drops,
        marked: link.marks,
        stalled_ms: 0.0,
    }
}
