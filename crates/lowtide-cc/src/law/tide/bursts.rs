// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where each flow has a queue of its own, a ramp up to its fair part of the link meets no queue, whoever else is there. So its packets leave in
//! bursts: nobody else's come in between, but where others are served in turn.

use crate::{Ack, Time};

/// What the bursts of a ramp tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    on: bool,
    /// Of the data that left so the first byte, and the last.
    from: u64,
    to: u64,
    acknowledged: Time,
    /// Whether the latest ACK was for such data.
    heard: bool,
    /// Part of the ACKs that came apart, smoothed.
    apart: f64,
}

impl Bursts {
    /// Packets that leave together: two ACKs tell whether they arrived together.
    pub(super) const BURST: u64 = 4;
    /// Of a link with packets of a longer time a burst would be a queue for others, of more than two milliseconds. Seconds.
    const PACKET: f64 = 1e-3;
    /// Packets' times on the link: another's packet after each of its own makes two, and a link that gives a little less than it did is none.
    const APART: f64 = 1.5;
    /// The first ACK of each burst comes apart in any case.
    const MOST: f64 = 0.875;

    /// From the byte `nxt` on a ramp's packets, of so many seconds each, leave so, or no longer.
    pub(super) fn leave(&mut self, ramps: bool, packet: f64, nxt: u64) {
        let on = ramps && packet <= Self::PACKET;
        if on && !self.on {
            *self = Self { on, from: nxt, ..*self };
            self.apart = 0.0;
        } else if !on && self.on {
            (self.on, self.to) = (false, nxt);
        }
    }

    /// An ACK. Whether bursts come apart on a link that carries so many packets per second.
    pub(super) fn on_ack(&mut self, ack: &Ack, whole: f64) -> bool {
        let passed = (ack.now - self.acknowledged).as_secs_f64();
        self.acknowledged = ack.now;
        self.heard = self.from < ack.una && (self.on || ack.una <= self.to);
        let limited = ack.window_limited && !ack.reducing && !ack.rate.is_some_and(|rate| rate.app_limited);
        // one ACK for all of a burst tells nothing
        if !self.heard || !limited || !(1..=2).contains(&ack.packets) {
            self.apart = 0.0;
            return false;
        }
        let apart = passed * whole > Self::APART * f64::from(ack.packets);
        self.apart += (f64::from(u8::from(apart)) - self.apart) / 8.0;
        self.apart > Self::MOST
    }

    /// Whether the latest ACK was for a packet of a burst.
    pub(super) const fn heard(&self) -> bool {
        self.heard
    }

    /// Packets that leave together.
    pub(super) const fn burst(&self) -> u64 {
        if self.on { Self::BURST } else { 1 }
    }

    /// How long the last one of a burst waits for the others.
    pub(super) fn wait(&self, packet: f64) -> f64 {
        if self.on { (Self::BURST - 1) as f64 * packet } else { 0.0 }
    }
}
