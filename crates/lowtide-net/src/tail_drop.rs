// SPDX-License-Identifier: MIT OR Apache-2.0
//! First in, first out; what does not fit is dropped.

use crate::{Admission, Amount, Limit, Queue, Queued, Time};
use std::collections::VecDeque;

/// A FIFO that drops the arriving packet when it would exceed the limit.
#[derive(Clone, Debug)]
pub struct TailDrop<T> {
    waiting: VecDeque<Queued<T>>,
    backlog: Amount,
    limit: Limit,
}

impl<T> TailDrop<T> {
    /// An empty queue that, with the packet in service, holds at most `limit`.
    pub const fn new(limit: Limit) -> Self {
        Self { waiting: VecDeque::new(), backlog: Amount::ZERO, limit }
    }
}

impl<T: Send> Queue<T> for TailDrop<T> {
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount) -> Admission {
        let backlog = self.backlog + Amount::one(packet.packet.bytes);
        if !self.limit.allows(backlog + in_service) {
            return Admission::Dropped;
        }
        self.backlog = backlog;
        self.waiting.push_back(packet);
        Admission::Accepted
    }

    fn dequeue(&mut self, _now: Time) -> Option<Queued<T>> {
        let packet = self.waiting.pop_front()?;
        self.backlog -= Amount::one(packet.packet.bytes);
        Some(packet)
    }

    fn backlog(&self) -> Amount {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, Packet};

    fn packet(bytes: u32) -> Queued<()> {
        let ecn = Ecn::NotEct;
        Queued::new(Time::ZERO, Packet { bytes, ecn, payload: () })
    }

    #[test]
    fn the_packet_in_service_counts_towards_a_limit_in_bytes() {
        let mut queue = TailDrop::new(Limit::Bytes(3000));
        assert_eq!(queue.enqueue(packet(1500), Amount::one(1500)), Admission::Accepted);
        assert_eq!(queue.enqueue(packet(1), Amount::one(1500)), Admission::Dropped);
        assert_eq!(queue.enqueue(packet(1500), Amount::ZERO), Admission::Accepted);
        assert_eq!(queue.backlog(), Amount { packets: 2, bytes: 3000 });
    }

    #[test]
    fn the_packet_in_service_counts_towards_a_limit_in_packets() {
        let mut queue = TailDrop::new(Limit::Packets(2));
        assert_eq!(queue.enqueue(packet(40), Amount::one(1500)), Admission::Accepted);
        assert_eq!(queue.enqueue(packet(40), Amount::one(1500)), Admission::Dropped);
        assert!(queue.dequeue(Time::ZERO).is_some());
        assert_eq!(queue.backlog(), Amount::ZERO);
        assert!(queue.dequeue(Time::ZERO).is_none());
    }
}
