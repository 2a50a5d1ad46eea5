// SPDX-License-Identifier: MIT OR Apache-2.0
//! Behind fair queues (FQ-CoDel, RFC 8290) a queue shows no cross traffic: Tide would take its fair share of a link
//! that cross traffic needs. A sign is a rate, with a queue, of exactly a half, a third or a quarter of the known one.
//! That may also be chance, or other scavengers in the same FIFO. Therefore a test follows: packets that leave together
//! arrive together unless cross traffic has fair queues of its own. The test also follows a ramp that reached the safe
//! window or the BDP, as a ramp to a fair share does.

use super::bursts::Bursts;
use crate::{Ack, Time};

/// Rates of rounds with a queue, and the test.
#[derive(Clone, Debug, Default)]
pub(super) struct Fair {
    /// End of the latest round.
    ended: Option<Time>,
    rounds: u32,
    packets: f64,
    seconds: f64,
    /// Readings in a row that found a part of the rate.
    found: u32,
    /// Rounds of the test left; above `TEST`: it begins with the next round.
    test: u32,
    acknowledged: Time,
    /// ACKs in a row as close as the rate of the whole link allows.
    close_acks: u32,
    /// Whether packets did arrive together, more than the two that a fair queue may serve in one turn, or the ACKs
    /// cannot show it.
    together: bool,
}

impl Fair {
    /// Least rounds and packets of a reading.
    const ROUNDS: u32 = 4;
    const PACKETS: f64 = 64.0;
    /// Readings in a row that tell a part of the rate from chance.
    const READINGS: u32 = 2;
    /// Greatest relative error of a part.
    const TOLERANCE: f64 = 0.05;
    /// The least part is a quarter: smaller ones cannot be told from chance.
    const PARTS: f64 = 4.0;
    /// Rounds of the test: packets are held back, leave together, are acknowledged.
    const TEST: u32 = 3;
    /// Packets that leave together: two ACKs in a row are then close, whichever packets they are for.
    const BURST: u64 = 6;
    /// In packet times: packets farther apart have cross traffic between them.
    const APART: f64 = 1.25;

    pub(super) fn on_ack(&mut self, ack: &Ack, whole: f64) {
        if (1..Self::TEST).contains(&self.test) && ack.packets > 0 {
            let apart = Bursts::apart((ack.now - self.acknowledged).as_secs_f64(), ack.packets, whole);
            self.close_acks = if apart { 0 } else { self.close_acks + 1 };
            // ACKs that cannot show it count as close: the test then finds nothing
            let tells = !ack.reducing && !ack.app_limited() && u64::from(ack.packets) <= Self::BURST / 2;
            self.together |= self.close_acks >= 2 || !tells;
        }
        self.acknowledged = ack.now;
    }

    /// A round of FILL has ended. `packets` were acknowledged in it; `queued`: it had a queue. True: the test found
    /// packets apart. Two readings in a row of a half, a third or a quarter of the `whole` rate (packets per second)
    /// start the test.
    pub(super) fn on_round(&mut self, now: Time, packets: f64, queued: bool, whole: f64) -> bool {
        if self.test > 0 {
            self.test -= 1;
            if self.test > 0 {
                return false;
            }
            let fair = !self.together;
            *self = Self::default();
            return fair;
        }
        let began = self.ended.replace(now);
        let Some(began) = began.filter(|_| queued) else { return false };
        self.rounds += 1;
        self.packets += packets;
        self.seconds += (now - began).as_secs_f64();
        if self.rounds < Self::ROUNDS || self.packets < Self::PACKETS {
            return false;
        }
        let parts = whole * self.seconds / self.packets;
        let nearest = parts.round();
        let fair = (2.0..=Self::PARTS).contains(&nearest) && (parts / nearest - 1.0).abs() < Self::TOLERANCE;
        let found = if fair { self.found + 1 } else { 0 };
        let test = if found >= Self::READINGS { Self::TEST } else { 0 };
        *self = Self { ended: self.ended, found, test, acknowledged: self.acknowledged, ..Self::default() };
        false
    }

    /// Starts the test with the next round, if the packets held back are at most a fifth of the window (packets).
    pub(super) fn put_to_test(&mut self, window: f64) {
        if self.test == 0 && window >= (5 * Self::BURST) as f64 {
            // begins with the next round
            *self = Self { test: Self::TEST + 1, acknowledged: self.acknowledged, ..Self::default() };
        }
    }

    /// Packets that leave together.
    pub(super) fn burst(&self) -> u64 {
        if self.test > 0 { Self::BURST } else { 1 }
    }

    /// Packets by which the window is reduced, so that they leave together in the next round.
    pub(super) fn held_back(&self) -> f64 {
        if self.test == Self::TEST { Self::BURST as f64 } else { 0.0 }
    }

    /// Whether packets that left together arrived without cross traffic between them: within 1.25 packet times each.
    pub(super) fn together(seconds: f64, packets: f64, whole: f64) -> bool {
        seconds * whole <= Self::APART * packets
    }

    /// Earlier rounds say nothing about what follows.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }
}
