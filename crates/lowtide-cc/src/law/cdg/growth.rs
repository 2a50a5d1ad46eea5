// SPDX-License-Identifier: MIT OR Apache-2.0
//! CDG's growth in congestion avoidance: with each ACK, or in one step at the time of the gradient.

use super::{Parameters, blend::Blend};
use crate::{
    Ack, Restart, Time,
    part::{AlphaInc, Cubic, CubicShape, Increase, Window},
    text::values,
};

values! {
    /// How the window grows in congestion avoidance.
    pub enum Growth {
        /// One segment per RTT, spread over its ACKs (mainline Linux).
        Reno = "reno",
        /// CUBIC's (RFC 9438).
        Cubic = "cubic",
        /// One segment in one step at the end of a round, when the gradient is measured (thesis).
        Round = "round",
        /// One segment at the end of a round, and one more after each `alpha_inc` rounds without a reduction (FreeBSD).
        AlphaInc = "alpha_inc",
    }
}

/// The state of that growth.
#[derive(Clone, Debug)]
pub(super) enum Grower {
    /// With each ACK.
    Ack(Increase),
    /// With each ACK, the faster the greater the weight.
    Blend(Blend),
    /// At the end of a round.
    Round(AlphaInc),
}

impl Grower {
    pub(super) fn new(p: &Parameters) -> Self {
        match p.increase {
            Growth::Reno if p.blend => Self::Blend(Blend::new(p.beta_loss)),
            Growth::Reno => Self::Ack(Increase::Reno),
            Growth::Cubic => Self::Ack(Increase::Cubic(Cubic::new(p.beta, CubicShape::RFC_9438))),
            Growth::Round => Self::Round(AlphaInc::new(0, false)),
            Growth::AlphaInc => Self::Round(AlphaInc::new(p.alpha_inc, p.alpha_as_coded)),
        }
    }

    /// Sets the price weight.
    pub(super) const fn set_weight(&mut self, weight: f64) {
        if let Self::Blend(blend) = self {
            blend.set_weight(weight);
        }
    }

    /// The part of the window that a loss leaves, if growth decides that.
    pub(super) const fn beta_loss(&self) -> Option<f64> {
        if let Self::Blend(blend) = self { Some(blend.beta_loss()) } else { None }
    }

    /// Whether growth comes at the end of a round.
    pub(super) const fn is_stepwise(&self) -> bool {
        matches!(self, Self::Round(_))
    }

    /// Grows the window by `packets` acknowledged segments that slow start left over, or by the step at the end of a
    /// round.
    pub(super) fn on_ack(&mut self, ack: &Ack, packets: f64, step: bool, window: &mut Window) {
        match self {
            Self::Ack(increase) => increase.on_ack(ack, packets, window),
            Self::Blend(blend) => blend.on_ack(ack, packets, window),
            Self::Round(steps) if step && ack.window_limited => window.cwnd += steps.on_round(),
            Self::Round(_) => {}
        }
    }

    /// The window grew in slow start.
    pub(super) fn on_slow_start(&mut self) {
        if let Self::Round(steps) = self {
            steps.reset();
        }
    }

    pub(super) fn on_reduction(&mut self, now: Time, window: &Window) {
        match self {
            Self::Ack(increase) => increase.on_reduction(now, window),
            Self::Blend(blend) => blend.on_reduction(window),
            Self::Round(steps) => steps.reset(),
        }
    }

    pub(super) fn on_timeout(&mut self, now: Time, window: &Window) {
        match self {
            Self::Ack(increase) => increase.on_timeout(now, window),
            Self::Blend(blend) => blend.on_timeout(window),
            Self::Round(steps) => steps.reset(),
        }
    }

    pub(super) fn on_spurious(&mut self) {
        match self {
            Self::Ack(increase) => increase.on_spurious(),
            Self::Blend(blend) => blend.on_spurious(),
            Self::Round(_) => {}
        }
    }

    pub(super) fn on_restart(&mut self, restart: &Restart) {
        match self {
            Self::Ack(increase) => increase.on_restart(restart),
            Self::Blend(blend) => blend.on_restart(restart),
            Self::Round(_) => {}
        }
    }
}
