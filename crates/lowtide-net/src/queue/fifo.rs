// SPDX-License-Identifier: MIT OR Apache-2.0
//! First in, first out, without a limit: what the disciplines are built on.

use crate::{Amount, Queued};
use std::collections::VecDeque;

/// Packets in the order of their arrival.
#[derive(Clone, Debug)]
pub(super) struct Fifo<T> {
    waiting: VecDeque<Queued<T>>,
    backlog: Amount,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), backlog: Amount::ZERO }
    }
}

impl<T> Fifo<T> {
    pub(super) fn push(&mut self, packet: Queued<T>) {
        self.backlog += Amount::one(packet.packet.bytes);
        self.waiting.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<Queued<T>> {
        let packet = self.waiting.pop_front()?;
        self.backlog -= Amount::one(packet.packet.bytes);
        Some(packet)
    }

    /// Takes out the packet that came in last.
    pub(super) fn pop_newest(&mut self) -> Option<Queued<T>> {
        let packet = self.waiting.pop_back()?;
        self.backlog -= Amount::one(packet.packet.bytes);
        Some(packet)
    }

    /// The packet that comes out next.
    pub(super) fn head(&self) -> Option<&Queued<T>> {
        self.waiting.front()
    }

    /// The packet that came in last.
    #[cfg(test)]
    pub(super) fn newest(&self) -> Option<&Queued<T>> {
        self.waiting.back()
    }

    pub(super) fn backlog(&self) -> Amount {
        self.backlog
    }
}
