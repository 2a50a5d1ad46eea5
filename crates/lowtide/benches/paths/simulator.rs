// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run in the simulator.

use super::traffic::Course;
use lowtide_cc::Random;
use lowtide_sim::{
    observe::{FlowSample, Observer},
    run,
    scenario::Scenario,
};

/// Runs the scenario, where each flow starts late by a random part of its RTT.
pub(crate) fn course_of(mut scenario: Scenario) -> Course {
    let mut random = Random::new(scenario.seed);
    for flow in &mut scenario.flows {
        flow.start += flow.rtt.mul_f64(random.uniform());
    }
    let mut course = Course { delivered: vec![Vec::new(); scenario.flows.len()], ..Course::default() };
    let outcome = run(&scenario, &mut Watch(&mut course));
    course.finished = outcome.flows.iter().map(|flow| flow.finished_s).collect();
    course
}

struct Watch<'a>(&'a mut Course);

impl Observer for Watch<'_> {
    fn wants_samples(&self) -> bool {
        true
    }

    fn flow(&mut self, sample: &FlowSample<'_>) {
        let (course, now) = (&mut *self.0, sample.now.as_nanos() as f64 / 1e9);
        if course.times.last().is_none_or(|last| *last < now) {
            course.times.push(now);
            for delivered in &mut course.delivered {
                delivered.push(delivered.last().copied().unwrap_or(0.0)); // of a flow that is not there
            }
        }
        if let Some(last) = course.delivered[sample.flow].last_mut() {
            *last = sample.delivered as f64;
        }
    }
}
