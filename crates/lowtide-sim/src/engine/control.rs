// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow with a deadline: its weight follows from its progress.

use lowtide_deadline::{Goal, Governor, Policy, Progress, Time as Instant};
use lowtide_net::Time;
use std::time::Duration;

/// Between two looks at the progress; the governor itself decides when to update the weight.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Steers a law towards a deadline.
pub(super) struct Control {
    governor: Governor,
    weight: f64,
}

impl Control {
    /// A transfer of `size` bytes that starts now and is due after `deadline`, both above zero.
    pub(super) fn new(size: u64, deadline: Duration, now: Time) -> Self {
        let start = instant(now);
        let goal = Goal { size: Some(size), deadline: Some(start + deadline) };
        let policy = Policy::default();
        let governor = Governor::new(policy, goal, start).expect("the scenario was checked");
        Self { governor, weight: policy.bounds.min().get() }
    }

    /// A look at the progress; gives the weight that it calls for.
    pub(super) fn tick(&mut self, now: Time, acknowledged_bytes: u64, rtt: Option<Duration>) -> f64 {
        let decision = self.governor.tick(&Progress {
            now: instant(now),
            acknowledged_bytes,
            active: true,
            app_limited: false,
            rtt,
            ..Progress::default()
        });
        self.weight = decision.weight.get();
        self.weight
    }

    /// The weight.
    pub(super) const fn weight(&self) -> f64 {
        self.weight
    }
}

fn instant(now: Time) -> Instant {
    Instant::ZERO + Duration::from_nanos(now.as_nanos())
}
