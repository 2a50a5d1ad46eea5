// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scenario in the simulator.

use super::{Measured, Point};
use lowtide_cc::Random;
use lowtide_sim::{
    observe::{FlowSample, Observer},
    run,
    scenario::Scenario,
};

/// Runs it. `number` of the run decides on the seed, and by how much of a round trip each flow starts late.
pub(crate) fn measure(scenario: &Scenario, number: u64) -> Measured {
    let mut scenario = scenario.clone();
    scenario.seed = scenario.seed.wrapping_add(number);
    let mut random = Random::new(scenario.seed);
    for flow in scenario.flows.iter_mut().skip(1) {
        flow.start += flow.rtt.mul_f64(random.uniform());
    }
    let mut watched = Course::default();
    let outcome = run(&scenario, &mut watched);
    let transfer = &outcome.flows[0].deadlines[0];
    let basis = &transfer.basis_s;
    let all = basis.model + basis.feedback + basis.fallback();
    let (done, model) = (transfer.finished_s, basis.model / all.max(1e-3));
    Measured { course: watched.points, done, model, stalled_ms: 0.0, load: 0.0 }
}

/// Watches the first flow, and what the other flows of TCP deliver.
#[derive(Default)]
struct Course {
    points: Vec<Point>,
    others: Vec<u64>,
}

impl Observer for Course {
    fn wants_samples(&self) -> bool {
        true
    }

    fn flow(&mut self, sample: &FlowSample<'_>) {
        if sample.flow > 0 && sample.cwnd.is_some() {
            self.others.resize(self.others.len().max(sample.flow + 1), 0);
            self.others[sample.flow] = sample.delivered;
        }
        if let (0, Some(control)) = (sample.flow, sample.control) {
            let (t, others) = (sample.now.as_nanos() as f64 / 1e9, self.others.iter().sum());
            let inner = |name| sample.inner.iter().find(|it| it.0 == name).map_or(0, |it| it.1 as u64);
            let made_up = inner("phantoms");
            let signals = (sample.reductions.saturating_sub(made_up + inner("backoffs")), made_up);
            self.points.push(Point { t, bytes: sample.delivered, weight: control.weight, others, signals });
        }
    }
}
