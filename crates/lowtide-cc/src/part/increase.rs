// SPDX-License-Identifier: MIT OR Apache-2.0
//! Growth in congestion avoidance.

use super::Window;
use crate::{Ack, Restart, Time, text::values};

values! {
    /// How the window grows in congestion avoidance.
    pub enum IncreaseKind {
        /// One segment per round trip.
        Reno = "reno",
    }
}

/// Growth in congestion avoidance.
#[derive(Clone, Debug)]
pub enum Increase {
    /// One segment per round trip (RFC 5681, section 3.1).
    Reno,
}

impl Increase {
    /// Growth of this kind, from an initial window on. `beta` is the factor that a loss leaves.
    pub fn new(_kind: IncreaseKind, _beta: f64) -> Self {
        Self::Reno
    }

    /// Grows the window by `packets` acknowledged segments, outside slow start.
    pub fn on_ack(&mut self, _ack: &Ack, packets: f64, window: &mut Window) {
        match self {
            Self::Reno => window.cwnd += packets / window.cwnd,
        }
    }

    /// The window is about to be reduced.
    pub fn on_reduction(&mut self, _now: Time, _window: &Window) {}

    /// The sender was idle.
    pub fn on_restart(&mut self, _restart: &Restart) {}
}
