// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface between the governor and a law that moves the weight.

use crate::{Bounds, Model, PathState, Signals};
use std::fmt;
use std::time::Duration;

/// The input of a control law at the end of an update interval.
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
    /// T_w: how long it was meant to be; greater than 0. Where a floor makes intervals longer it is shorter than they
    /// are, so that a short transfer does not climb more slowly.
    pub interval: Duration,
    /// The path, as seen in the interval. A model of a window-based law needs it.
    pub path: PathState,
    /// What the interval brought of congestion signals; without packets where the caller does not count them. The PID
    /// does not use it.
    pub signals: Signals,
    /// φ: the sender's own price over that of the ordinary flows ([`PriceRatio`](crate::PriceRatio)); 1 where they
    /// react to the same. Finite, greater than 0.
    pub price_ratio: f64,
}

/// A law that moves the weight once per update interval.
///
/// [`Pid`](crate::Pid) and [`ModelBased`](crate::ModelBased) are those of the framework. The order of calls is:
/// `update`, then `applied` with what became of it.
pub trait WeightControl: fmt::Debug + Send {
    /// The weight wanted for the next interval, within the law's bounds; not yet limited in its increase.
    fn update(&mut self, step: &Step) -> f64;

    /// What the last `update` came to: the weight now in force, and whether it was held back below what the law
    /// wanted. A law with memory must not let that memory run away from what was applied.
    fn applied(&mut self, weight: f64, held_back: bool);

    /// Forget everything and go on from `weight`.
    fn reset(&mut self, weight: f64);

    /// The weight was raised to this, whatever the law wanted: it goes on from there.
    fn raised(&mut self, _weight: f64) {}

    /// Another range of weights from now on.
    fn set_bounds(&mut self, bounds: Bounds);

    /// What the last `update` rested on.
    fn basis(&self) -> Basis {
        Basis::Feedback
    }
}

/// What a weight rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// On the error between target and rate alone, as the control means to.
    Feedback,
    /// On a model of the control law and the measured price.
    Model,
    /// On feedback, though a model was meant to rule.
    Fallback(FallbackReason),
}

/// Why the model does not rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackReason {
    /// There is none for this control law.
    NoModel,
    /// There has been no congestion signal, or none for long.
    NoPrice,
    /// The round-trip time is unknown.
    NoRoundTripTime,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Basis::Feedback => "feedback",
            Basis::Model => "model",
            Basis::Fallback(FallbackReason::NoModel) => "feedback, since there is no model of this law",
            Basis::Fallback(FallbackReason::NoPrice) => "feedback, since there is no congestion signal to price",
            Basis::Fallback(FallbackReason::NoRoundTripTime) => "feedback, since the round-trip time is unknown",
        })
    }
}

/// Which law moves the weight.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Control {
    /// [`Pid`](crate::Pid), with the paper's gains.
    #[default]
    Pid,
    /// [`ModelBased`](crate::ModelBased), with the model of the control law in use; without one it falls back to PID,
    /// and each [`Decision`](crate::Decision) says so.
    ModelBased(Option<Model>),
}
