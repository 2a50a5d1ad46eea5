// SPDX-License-Identifier: MIT OR Apache-2.0
//! Round trips, counted by sequence numbers.

/// A round trip: from a moment until something that was sent after it has been acknowledged.
///
/// As in Linux, a round ends at the first ACK with `snd_una` above the `snd_nxt` of its start (strictly).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    end: u64,
}

impl Rounds {
    /// A round starts at this `snd_nxt`.
    pub const fn start(&mut self, nxt: u64) {
        self.end = nxt;
    }

    /// Whether the round is over at this `snd_una`.
    pub const fn ended(&self, una: u64) -> bool {
        una > self.end
    }

    /// Whether the round is over; if so, the next one starts.
    pub const fn next(&mut self, una: u64, nxt: u64) -> bool {
        let ended = self.ended(una);
        if ended {
            self.start(nxt);
        }
        ended
    }
}
