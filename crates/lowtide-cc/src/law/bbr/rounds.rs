// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rounds of an RTT, counted by what was delivered (draft-ietf-ccwg-bbr, section 5.5.1).

use crate::Ack;

/// A round ends when something is acknowledged that was sent after its start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// Bytes delivered in total (`C.delivered`).
    pub(crate) delivered: u64,
    /// Whether this ACK began a round.
    pub(crate) start: bool,
    /// Rounds so far.
    pub(crate) count: u64,
    /// The round ends with a segment that was sent when this much had been delivered (`next_round_delivered`).
    next: u64,
}

impl Rounds {
    /// Counts this ACK.
    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        self.start = false;
        let Some(rate) = ack.rate else {
            self.delivered += ack.bytes;
            return;
        };
        self.delivered = rate.total_delivered;
        if !rate.interval.is_zero() && rate.prior_delivered >= self.next {
            self.restart();
            self.start = true;
            self.count += 1;
        }
    }

    /// A round starts now.
    pub(crate) const fn restart(&mut self) {
        self.next = self.delivered;
    }
}
