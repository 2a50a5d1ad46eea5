// SPDX-License-Identifier: MIT OR Apache-2.0
//! First in, first out; what does not fit is dropped.

use super::fifo::Fifo;
use super::refuse;
use crate::drops::{Cause, Drops};
use crate::{Amount, Arrival, Limit, Queue, Queued, Time};

/// A FIFO that drops the arriving packet when it would exceed the limit.
#[derive(Clone, Debug)]
pub(crate) struct DropTailQueue<T> {
    fifo: Fifo<T>,
    limit: Limit,
}

impl<T> DropTailQueue<T> {
    /// An empty queue that, with the packet in service, holds at most `limit`.
    pub(crate) fn new(limit: Limit) -> Self {
        Self { fifo: Fifo::default(), limit }
    }
}

impl<T: Send> Queue<T> for DropTailQueue<T> {
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount, drops: &mut Drops<T>) -> Arrival {
        if !self.limit.allows(self.fifo.backlog() + in_service + Amount::one(packet.packet.bytes)) {
            return refuse(packet, Cause::Overflow, drops);
        }
        self.fifo.push(packet);
        Arrival::Accepted
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<T>) -> Option<Queued<T>> {
        self.fifo.pop()
    }

    fn backlog(&self) -> Amount {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;

    const DROPPED: Arrival = Arrival::Dropped(Cause::Overflow);

    #[test]
    fn the_packet_in_service_counts_towards_a_limit_in_bytes() {
        let drops = &mut Drops::default();
        let mut queue = DropTailQueue::new(Limit::Bytes(3000));
        assert_eq!(queue.enqueue(packet(1500), Amount::one(1500), drops), Arrival::Accepted);
        assert_eq!(queue.enqueue(packet(1), Amount::one(1500), drops), DROPPED);
        assert_eq!(queue.enqueue(packet(1500), Amount::ZERO, drops), Arrival::Accepted);
        assert_eq!(queue.backlog(), Amount { packets: 2, bytes: 3000 });
        assert_eq!(drops.count(Cause::Overflow), Amount::one(1));
    }

    #[test]
    fn the_packet_in_service_counts_towards_a_limit_in_packets() {
        let drops = &mut Drops::default();
        let mut queue = DropTailQueue::new(Limit::Packets(2));
        assert_eq!(queue.enqueue(packet(40), Amount::one(1500), drops), Arrival::Accepted);
        assert_eq!(queue.enqueue(packet(40), Amount::one(1500), drops), DROPPED);
        assert!(queue.dequeue(Time::ZERO, drops).is_some());
        assert_eq!(queue.backlog(), Amount::ZERO);
        assert!(queue.dequeue(Time::ZERO, drops).is_none());
    }
}
