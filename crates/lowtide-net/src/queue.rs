// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a queue discipline is. Each one has a file of its own.

use crate::{Amount, Ecn, Packet, Time};
use std::time::Duration;

/// How much a buffer holds, the packet in service included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many bytes.
    Bytes(u64),
    /// At most this many packets.
    Packets(u64),
}

impl Limit {
    /// Whether a buffer that holds `amount` is within the limit.
    pub const fn allows(self, amount: Amount) -> bool {
        match self {
            Self::Bytes(limit) => amount.bytes <= limit,
            Self::Packets(limit) => amount.packets <= limit,
        }
    }
}

/// A packet in a queue.
#[derive(Clone, Debug)]
pub struct Queued<T> {
    /// The packet.
    pub packet: Packet<T>,
    /// When it arrived.
    pub arrived: Time,
    /// Whether this queue marked it.
    pub marked: bool,
}

impl<T> Queued<T> {
    /// A packet that arrives at `now`, not marked here.
    pub const fn new(now: Time, packet: Packet<T>) -> Self {
        Self { packet, arrived: now, marked: false }
    }

    /// How long the packet has been waiting.
    pub fn sojourn(&self, now: Time) -> Duration {
        now - self.arrived
    }

    /// Marks the packet CE if it is ECT; a packet that cannot be marked, or already is, stays as it
    /// is.
    pub fn mark(&mut self) {
        if self.packet.ecn.can_be_marked() {
            self.packet.ecn = Ecn::Ce;
            self.marked = true;
        }
    }
}

/// What a queue did with an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is in the queue.
    Accepted,
    /// It is gone.
    Dropped,
}

/// A queue discipline: it decides which packet is sent next, and which ones are dropped or marked.
///
/// Calls come with times that never decrease.
pub trait Queue<T>: Send {
    /// Offers a packet to the queue. The packet on the transmitter, which has left the queue but
    /// still takes up room in the buffer, is `in_service` (at most one packet).
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount) -> Admission;

    /// Takes out the packet to be sent next; the transmitter starts with it at `now`.
    fn dequeue(&mut self, now: Time) -> Option<Queued<T>>;

    /// What is waiting, without the packet in service.
    fn backlog(&self) -> Amount;
}
