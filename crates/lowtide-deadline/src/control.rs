// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface between the governor and a law that moves the weight.

use std::time::Duration;

/// What a control law is told at the end of an update interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// ζ, bytes per second: what is needed from now on (the framework, eq. 6). Finite, >= 0.
    pub target_rate: f64,
    /// x̄, bytes per second: what was achieved over the interval that just ended. Finite, >= 0.
    pub achieved_rate: f64,
    /// `w_{n-1}`: the weight that was in force in that interval.
    pub weight: f64,
    /// How long that interval really was; greater than 0.
    pub elapsed: Duration,
    /// T_w: how long it was meant to be; greater than 0.
    pub interval: Duration,
    /// The smoothed round-trip time, where known. A model of a window-based law needs it.
    pub rtt: Option<Duration>,
    /// The congestion price measured in the interval, per packet, phantom signals excluded, where known
    /// (q of the framework, eq. 14). The PID does not use it.
    pub price: Option<f64>,
}

/// A law that moves the weight once per update interval.
///
/// [`Pid`](crate::Pid) is the first; model-based control (section III-B) is the other one the
/// framework knows. The order of calls is: `update`, then `applied` with what became of it.
pub trait WeightControl: std::fmt::Debug + Send {
    /// The weight wanted for the next interval, within the law's bounds; not yet limited in its increase.
    fn update(&mut self, step: &Step) -> f64;

    /// What the last `update` came to: the weight now in force and whether the increase was limited. A law
    /// with memory must not let that memory run away from what was applied.
    fn applied(&mut self, weight: f64, limited: bool);

    /// Forget everything and go on from `weight`.
    fn reset(&mut self, weight: f64);
}
