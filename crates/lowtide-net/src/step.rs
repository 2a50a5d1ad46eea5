// SPDX-License-Identifier: MIT OR Apache-2.0
//! Step marking: the threshold that DCTCP (RFC 8257) asks of a switch, in time instead of bytes.

use crate::{Admission, Amount, Limit, Queue, Queued, TailDrop, Time};
use std::time::Duration;

/// A FIFO with a tail limit that marks every ECN-capable packet which waited longer than a
/// threshold, as it leaves the queue.
///
/// Packets without ECN are not touched: they are dropped by the limit alone.
#[derive(Clone, Debug)]
pub struct Step<T> {
    fifo: TailDrop<T>,
    threshold: Duration,
}

impl<T> Step<T> {
    /// An empty queue that, with the packet in service, holds at most `limit` and marks above
    /// `threshold` of waiting time.
    pub const fn new(limit: Limit, threshold: Duration) -> Self {
        Self { fifo: TailDrop::new(limit), threshold }
    }
}

impl<T: Send> Queue<T> for Step<T> {
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount) -> Admission {
        self.fifo.enqueue(packet, in_service)
    }

    fn dequeue(&mut self, now: Time) -> Option<Queued<T>> {
        let mut packet = self.fifo.dequeue(now)?;
        if packet.sojourn(now) > self.threshold {
            packet.mark();
        }
        Some(packet)
    }

    fn backlog(&self) -> Amount {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, Packet};

    /// What a packet with this field looks like, and whether it counts as marked, after waiting
    /// `waited` in a queue with a threshold of 1 ms.
    fn after_waiting(waited: Duration, ecn: Ecn) -> (Ecn, bool) {
        let mut queue = Step::new(Limit::Packets(1), Duration::from_millis(1));
        let packet = Packet { bytes: 1500, ecn, payload: () };
        assert_eq!(queue.enqueue(Queued::new(Time::ZERO, packet), Amount::ZERO), Admission::Accepted);
        let left = queue.dequeue(Time::ZERO + waited).expect("it was queued");
        (left.packet.ecn, left.marked)
    }

    #[test]
    fn only_ect_above_the_threshold_is_marked() {
        let (at, above) = (Duration::from_millis(1), Duration::from_nanos(1_000_001));
        assert_eq!(after_waiting(at, Ecn::Ect0), (Ecn::Ect0, false));
        assert_eq!(after_waiting(above, Ecn::Ect0), (Ecn::Ce, true));
        assert_eq!(after_waiting(above, Ecn::Ect1), (Ecn::Ce, true));
        assert_eq!(after_waiting(above, Ecn::NotEct), (Ecn::NotEct, false));
        assert_eq!(after_waiting(above, Ecn::Ce), (Ecn::Ce, false));
    }
}
