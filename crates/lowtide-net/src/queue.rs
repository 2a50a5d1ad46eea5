// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a queue discipline is. Each one has a file of its own.

use crate::drops::{Cause, Drops};
use crate::{Amount, Arrival, Ecn, Packet, Time};
use std::time::Duration;

pub(crate) mod codel;
pub(crate) mod drop_tail;
pub(crate) mod dualpi2;
mod fifo;
pub(crate) mod fq_codel;
pub(crate) mod pie;
pub(crate) mod priority;
pub(crate) mod step;
mod ticks;

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

    /// Marks the packet CE if it is ECN-capable, and says whether it carries CE now. Not-ECT stays
    /// as it is.
    pub fn mark(&mut self) -> bool {
        if self.packet.ecn.can_be_marked() {
            self.packet.ecn = Ecn::Ce;
            self.marked = true;
        }
        self.packet.ecn == Ecn::Ce
    }
}

/// A queue discipline: it decides which packet is sent next, and which ones are dropped or marked.
///
/// Calls come with times that never decrease. Every packet that went in either comes out or goes to
/// `drops`.
pub trait Queue<T>: Send {
    /// Offers a packet, which arrives at `packet.arrived`, to the queue. The packet on the
    /// transmitter, which has left the queue but still takes up room in the buffer, is `in_service`
    /// (at most one packet). A queue that makes room by dropping other packets accepts this one.
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount, drops: &mut Drops<T>) -> Arrival;

    /// Takes out the packet to be sent next; the transmitter starts with it at `now`. It asks an empty
    /// queue, too, as it becomes idle.
    fn dequeue(&mut self, now: Time, drops: &mut Drops<T>) -> Option<Queued<T>>;

    /// What is waiting, without the packet in service.
    fn backlog(&self) -> Amount;
}

/// Drops the arriving packet.
fn refuse<T>(packet: Queued<T>, cause: Cause, drops: &mut Drops<T>) -> Arrival {
    drops.push(packet.arrived, cause, packet.packet);
    Arrival::Dropped(cause)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::Class;

    /// A packet of flow 0 that arrives at the origin and does not know ECN.
    pub(crate) fn packet(bytes: u32) -> Queued<u64> {
        ecn_packet(Time::ZERO, bytes, Ecn::NotEct)
    }

    /// A packet of flow 0.
    pub(crate) fn ecn_packet(arrived: Time, bytes: u32, ecn: Ecn) -> Queued<u64> {
        Queued::new(arrived, Packet { bytes, ecn, class: Class::default(), flow: 0, payload: 0 })
    }
}
