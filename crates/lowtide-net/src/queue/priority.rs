// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strict priority: the ideal that background transport is measured by. Background traffic gets what is left over, and
//! nothing else changes for the foreground but that a packet of the background may be on the transmitter.

use super::fifo::Fifo;
use super::refuse;
use crate::drops::{Cause, Drops};
use crate::{Amount, Arrival, Class, Limit, Queue, Queued, Time};

/// A queue for the foreground as it would be alone, and behind it a FIFO for the background.
pub(crate) struct PriorityQueue<T> {
    foreground: Box<dyn Queue<T>>,
    background: Fifo<T>,
    limit: Limit,
}

impl<T> PriorityQueue<T> {
    /// `foreground` and an empty FIFO that, with the packet in service, hold at most `limit` together, which is
    /// `foreground`'s limit, too.
    pub(crate) fn new(foreground: Box<dyn Queue<T>>, limit: Limit) -> Self {
        Self { foreground, background: Fifo::default(), limit }
    }

    fn is_within_limit(&self, other: Amount) -> bool {
        self.limit.allows(self.foreground.backlog() + self.background.backlog() + other)
    }
}

impl<T: Send> Queue<T> for PriorityQueue<T> {
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount, drops: &mut Drops<T>) -> Arrival {
        let now = packet.arrived;
        if packet.packet.class == Class::Background {
            if !self.is_within_limit(in_service + Amount::one(packet.packet.bytes)) {
                return refuse(packet, Cause::Overflow, drops);
            }
            self.background.push(packet);
            return Arrival::Accepted;
        }
        let arrival = self.foreground.enqueue(packet, in_service, drops);
        while !self.is_within_limit(in_service)
            && let Some(newest) = self.background.pop_newest()
        {
            drops.push(now, Cause::Overflow, newest.packet);
        }
        arrival
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<T>) -> Option<Queued<T>> {
        self.foreground.dequeue(now, drops).or_else(|| self.background.pop())
    }

    fn backlog(&self) -> Amount {
        self.foreground.backlog() + self.background.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;
    use crate::{Discipline, Drops};

    fn queue(discipline: &str, limit: Limit) -> Box<dyn Queue<u64>> {
        discipline.parse::<Discipline>().unwrap().queue(limit, 1)
    }

    fn of(class: Class, bytes: u32, number: u64) -> Queued<u64> {
        let mut packet = packet(bytes);
        (packet.packet.class, packet.packet.payload) = (class, number);
        packet
    }

    fn sent(queue: &mut dyn Queue<u64>) -> Vec<u64> {
        let drops = &mut Drops::default();
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, drops)).map(|it| it.packet.payload).collect()
    }

    #[test]
    fn the_background_waits_for_all_of_the_foreground() {
        let mut queue = queue("priority", Limit::Packets(10));
        let drops = &mut Drops::default();
        for (number, class) in (0..).zip([Class::Background, Class::Foreground, Class::Background, Class::Foreground]) {
            assert_eq!(queue.enqueue(of(class, 1500, number), Amount::ZERO, drops), Arrival::Accepted);
        }
        assert_eq!(queue.backlog(), Amount { packets: 4, bytes: 6000 });
        assert_eq!(sent(&mut *queue), [1, 3, 0, 2]);
        assert_eq!(queue.backlog(), Amount::ZERO);
    }

    #[test]
    fn a_full_buffer_has_room_for_the_foreground() {
        let mut queue = queue("priority", Limit::Bytes(6000));
        let drops = &mut Drops::default();
        drops.keep();
        let mut offer = |class, bytes, number| queue.enqueue(of(class, bytes, number), Amount::one(1500), drops);
        for number in 0..3 {
            assert_eq!(offer(Class::Background, 1500, number), Arrival::Accepted);
        }
        let refused = Arrival::Dropped(Cause::Overflow);
        assert_eq!(offer(Class::Background, 1500, 3), refused, "no packet of its own class makes room");
        assert_eq!(offer(Class::Foreground, 2000, 4), Arrival::Accepted, "in the place of 2 and 1");
        assert_eq!(offer(Class::Foreground, 2500, 5), Arrival::Accepted, "and of 0");
        assert_eq!(offer(Class::Foreground, 1, 6), refused, "it is the foreground's own limit");
        let dropped: Vec<_> = drops.take().map(|it| it.packet.payload).collect();
        assert_eq!(dropped, [3, 2, 1, 0, 6]);
        assert_eq!(sent(&mut *queue), [4, 5]);
    }

    #[test]
    fn the_foreground_has_its_own_law_and_the_background_none() {
        let mut queue = queue("priority:step:at=1us", Limit::Packets(10));
        let drops = &mut Drops::default();
        for (number, class) in (0..).zip([Class::Background, Class::Foreground]) {
            let mut packet = of(class, 1500, number);
            packet.packet.ecn = crate::Ecn::Ect0;
            queue.enqueue(packet, Amount::ZERO, drops);
        }
        let later = Time::from_nanos(1_000_000);
        let marked = [(); 2].map(|()| queue.dequeue(later, drops).map(|it| (it.packet.payload, it.marked)));
        assert_eq!(marked, [Some((1, true)), Some((0, false))]);
    }
}
