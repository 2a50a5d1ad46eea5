// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where each flow has a queue of its own (FQ-CoDel, RFC 8290), a queue tells nothing of others: Tide would take its fair part of a link that
//! others want. What gives it away: with a queue the link gives exactly a half, a third or a quarter of the rate that is known of it. The same may
//! be chance, or other scavengers in one queue. Therefore it is put to the test: packets that leave together arrive together, but where others are
//! served in turn. So is a ramp that has come to what is safe without a queue, as one to its part of the link does.

use super::bursts::Bursts;
use crate::{Ack, Time};

/// What the link gives in rounds with a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Fair {
    /// The end of the latest round.
    ended: Option<Time>,
    rounds: u32,
    packets: f64,
    seconds: f64,
    /// Looks that found a part, in a row.
    found: u32,
    /// Rounds of the test that are left.
    test: u32,
    acknowledged: Time,
    /// ACKs in a row that came as close as the link's rate allows.
    close: u32,
    /// Whether packets did arrive together: more than two, which a fair queue may serve in one turn, too.
    together: bool,
}

impl Fair {
    /// So many rounds and packets are looked at together.
    const ROUNDS: u32 = 4;
    const PACKETS: f64 = 64.0;
    /// Looks in a row that tell a part from chance.
    const LOOKS: u32 = 2;
    /// As much as a part may be off.
    const TOLERANCE: f64 = 0.05;
    /// With more flows a part is not told from chance.
    const PARTS: f64 = 4.0;
    /// Rounds of the test: one with packets held back, one in which they leave together, one until they have arrived.
    const TEST: u32 = 3;
    /// Packets that leave together: two ACKs in a row are close then, whichever of them they are for.
    const BURST: u64 = 6;
    /// Packets that are apart by more than this many times their own time on the link have others' between them.
    const APART: f64 = 1.25;

    pub(super) fn on_ack(&mut self, ack: &Ack, whole: f64) {
        if (1..Self::TEST).contains(&self.test) && ack.packets > 0 {
            let apart = Bursts::apart((ack.now - self.acknowledged).as_secs_f64(), ack.packets, whole);
            self.close = if apart { 0 } else { self.close + 1 };
            // where that says nothing, nothing is found
            let tells = !ack.reducing && !ack.app_limited() && u64::from(ack.packets) <= Self::BURST / 2;
            self.together |= self.close >= 2 || !tells;
        }
        self.acknowledged = ack.now;
    }

    /// A round is over in which so many packets arrived. True where the link gives no more than a fair part of the `whole` rate (packets per second).
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
        let test = if found >= Self::LOOKS { Self::TEST } else { 0 };
        *self = Self { ended: self.ended, found, test, acknowledged: self.acknowledged, ..Self::default() };
        false
    }

    /// Puts the link to the test, where what is held back is a fifth of the window (packets) at the most.
    pub(super) fn put_to_test(&mut self, window: f64) {
        if self.test == 0 && window >= (5 * Self::BURST) as f64 {
            // with the next round
            *self = Self { test: Self::TEST + 1, acknowledged: self.acknowledged, ..Self::default() };
        }
    }

    /// Packets that leave together.
    pub(super) fn burst(&self) -> u64 {
        if self.test > 0 { Self::BURST } else { 1 }
    }

    /// Packets that are held back until then.
    pub(super) fn held_back(&self) -> f64 {
        if self.test == Self::TEST { Self::BURST as f64 } else { 0.0 }
    }

    /// Whether these packets, which left together, arrived in so many seconds with nobody else's between them.
    pub(super) fn together(seconds: f64, packets: f64, whole: f64) -> bool {
        seconds * whole <= Self::APART * packets
    }

    /// Whatever was seen has nothing to do with what comes.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }
}
