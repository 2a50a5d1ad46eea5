// SPDX-License-Identifier: MIT OR Apache-2.0
//! What becomes of arriving packets: those that do not come out of a link, and why.

use crate::{Amount, Packet, Time};

/// Why a packet did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The buffer was full.
    Overflow,
    /// Active queue management: the queue's law dropped it before the buffer was full.
    Aqm,
    /// It exceeded the policer's rate.
    Policed,
    /// Chance, before it reached the queue.
    Lost,
}

/// What became of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is on its way, which does not rule out that the queue drops it later.
    Accepted,
    /// It is gone.
    Dropped(Cause),
}

/// A packet that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped<T> {
    /// When.
    pub at: Time,
    /// Why.
    pub cause: Cause,
    /// The packet.
    pub packet: Packet<T>,
}

/// Where dropped packets go: they are counted by cause and kept on request.
#[derive(Debug)]
pub struct Drops<T> {
    counts: [Amount; 4],
    kept: Option<Vec<Dropped<T>>>,
}

impl<T> Default for Drops<T> {
    fn default() -> Self {
        Self { counts: [Amount::ZERO; 4], kept: None }
    }
}

impl<T> Drops<T> {
    /// Drops a packet.
    pub fn push(&mut self, at: Time, cause: Cause, packet: Packet<T>) {
        self.counts[cause as usize] += Amount::one(packet.bytes);
        if let Some(kept) = &mut self.kept {
            kept.push(Dropped { at, cause, packet });
        }
    }

    /// What was dropped for this reason so far.
    pub fn count(&self, cause: Cause) -> Amount {
        self.counts[cause as usize]
    }

    /// From now on keeps what is dropped.
    pub(crate) fn keep(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// Takes out what was kept, in the order of the drops.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Dropped<T>> + '_ {
        self.kept.iter_mut().flat_map(|kept| kept.drain(..))
    }
}
