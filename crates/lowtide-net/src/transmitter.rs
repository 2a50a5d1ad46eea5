// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transmitter: what the capacity supplies, less what was sent.

use crate::supply::{Supply, UNITS_PER_BYTE};
use crate::{Schedule, Time};

/// Sends one packet after the other, with an optional token bucket that saves capacity while idle.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    supply: Supply,
    /// The most that can be saved, in units of 10^-9 bit.
    burst: i128,
    /// What is left over from the past, in the same units. Below zero it is the part of a nanosecond
    /// by which the end of the latest transmission was rounded down; the next one makes up for it if
    /// it follows without a gap, so that the rate is exact in the long run.
    balance: i128,
    /// The time up to which all of this holds.
    settled: Time,
}

impl Transmitter {
    /// `burst` in bytes.
    pub(crate) fn new(capacity: &Schedule, burst: u64) -> Self {
        let burst = i128::from(burst) * UNITS_PER_BYTE as i128;
        Self { supply: Supply::new(capacity), burst, balance: burst, settled: Time::ZERO }
    }

    /// When a transmission can begin, from `now` on; `None` if never again.
    pub(crate) fn ready(&mut self, now: Time) -> Option<Time> {
        self.settle(now);
        if self.balance > 0 { Some(now) } else { self.supply.ready(now) }
    }

    /// Sends a packet of `bytes` bytes from `now` on, and returns when its last bit is sent.
    pub(crate) fn transmit(&mut self, now: Time, bytes: u32) -> Time {
        self.settle(now);
        let work = i128::from(bytes) * UNITS_PER_BYTE as i128 - self.balance;
        (self.settled, self.balance) =
            if work <= 0 { (now, -work) } else { self.supply.finish(now, work.unsigned_abs()) };
        self.settled
    }

    /// The time up to `now` passes without a transmission.
    fn settle(&mut self, now: Time) {
        if now > self.settled {
            self.balance = if self.burst == 0 {
                0 // mostly, so it has to be quick
            } else {
                let saved = i128::try_from(self.supply.pass(self.settled, now)).unwrap_or(i128::MAX);
                self.balance.saturating_add(saved).min(self.burst)
            };
            self.settled = now;
        }
    }
}
