// SPDX-License-Identifier: MIT OR Apache-2.0
//! Growth in congestion avoidance.

use super::{AlphaInc, Cubic, CubicShape, Window};
use crate::{Ack, Restart, Time, text::values};

values! {
    /// How the window grows in congestion avoidance.
    pub enum IncreaseKind {
        /// One segment per round trip.
        Reno = "reno",
        /// CUBIC's function of the time since the last reduction.
        Cubic = "cubic",
        /// More segments per round trip the longer there was no reduction (FreeBSD's CDG).
        AlphaInc = "alpha_inc",
    }
}

/// Growth in congestion avoidance.
#[derive(Clone, Debug)]
pub enum Increase {
    /// One segment per round trip (RFC 5681, section 3.1).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic(Cubic),
    /// FreeBSD's `alpha_inc`.
    AlphaInc(AlphaInc),
}

impl Increase {
    /// Growth of this kind, from an initial window on. `beta` is the factor that a loss leaves.
    ///
    /// CUBIC has the shape of RFC 9438 and `alpha_inc` is [`AlphaInc::DEFAULT`]; for others use the variants
    /// themselves.
    pub fn new(kind: IncreaseKind, beta: f64) -> Self {
        match kind {
            IncreaseKind::Reno => Self::Reno,
            IncreaseKind::Cubic => Self::Cubic(Cubic::new(beta, CubicShape::RFC_9438)),
            IncreaseKind::AlphaInc => Self::AlphaInc(AlphaInc::DEFAULT),
        }
    }

    /// Grows the window by `packets` acknowledged segments, outside slow start.
    ///
    /// To be called for every ACK outside a reduction episode, with what slow start left over, be it nothing.
    pub fn on_ack(&mut self, ack: &Ack, packets: f64, window: &mut Window) {
        match self {
            Self::Reno => window.cwnd += packets / window.cwnd,
            Self::Cubic(cubic) => cubic.on_ack(ack, packets, window),
            Self::AlphaInc(alpha_inc) => alpha_inc.on_ack(ack, packets, window),
        }
    }

    /// The window is about to be reduced. Before a timeout's reduction call [`on_timeout`](Self::on_timeout) instead.
    pub fn on_reduction(&mut self, _now: Time, window: &Window) {
        match self {
            Self::Reno => {}
            Self::Cubic(cubic) => cubic.on_reduction(window),
            Self::AlphaInc(alpha_inc) => alpha_inc.reset(),
        }
    }

    /// The window is about to collapse after a timeout.
    pub fn on_timeout(&mut self, now: Time, window: &Window) {
        match self {
            Self::Cubic(cubic) => cubic.on_timeout(window),
            Self::Reno | Self::AlphaInc(_) => self.on_reduction(now, window),
        }
    }

    /// The last reduction was a mistake.
    pub fn on_spurious(&mut self) {
        if let Self::Cubic(cubic) = self {
            cubic.on_spurious();
        }
    }

    /// The sender was idle.
    pub fn on_restart(&mut self, restart: &Restart) {
        if let Self::Cubic(cubic) = self {
            cubic.on_restart(restart);
        }
    }

    /// Shows its state to a probe.
    pub fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        match self {
            Self::Reno => {}
            Self::Cubic(cubic) => cubic.inspect(show),
            Self::AlphaInc(alpha_inc) => show("increment", alpha_inc.increment()),
        }
    }
}
