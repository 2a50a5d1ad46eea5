// SPDX-License-Identifier: MIT OR Apache-2.0
//! Step marking: the threshold that DCTCP (RFC 8257, section 3.1) asks of a switch, in time instead
//! of bytes, and looked at as the packet leaves.

use super::drop_tail::DropTailQueue;
use crate::drops::Drops;
use crate::text::{Parameters, why};
use crate::units::{format_duration, parse_duration};
use crate::{Amount, Arrival, Limit, Queue, Queued, Time};
use std::time::Duration;

/// A FIFO with a tail limit that marks every ECN-capable packet which waited longer than a
/// threshold, as it leaves the queue. Written `step:at=1ms`.
///
/// Packets without ECN are not touched: they are dropped by the limit alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Waiting time above which a packet is marked. The default, 3 ms, is that of the accelerated
    /// DCTCP's evaluation.
    pub at: Duration,
}

impl Default for Step {
    fn default() -> Self {
        Self { at: Duration::from_millis(3) }
    }
}

impl Parameters for Step {
    const NAME: &'static str = "step";
    const KEYS: &'static [&'static str] = &["at"];

    fn set(&mut self, _at: &str, value: &str) -> Result<(), String> {
        self.at = parse_duration(value).map_err(why)?;
        Ok(())
    }

    fn get(&self, _at: &str) -> Option<String> {
        Some(format_duration(self.at))
    }

    fn defaults(&self) -> Self {
        Self::default()
    }
}

/// The queue that [`Step`] describes.
#[derive(Clone, Debug)]
pub(crate) struct StepQueue<T> {
    fifo: DropTailQueue<T>,
    at: Duration,
}

impl<T> StepQueue<T> {
    /// An empty queue that, with the packet in service, holds at most `limit`.
    pub(crate) fn new(parameters: Step, limit: Limit) -> Self {
        Self { fifo: DropTailQueue::new(limit), at: parameters.at }
    }
}

impl<T: Send> Queue<T> for StepQueue<T> {
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount, drops: &mut Drops<T>) -> Arrival {
        self.fifo.enqueue(packet, in_service, drops)
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<T>) -> Option<Queued<T>> {
        let mut packet = self.fifo.dequeue(now, drops)?;
        if packet.sojourn(now) > self.at {
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
    use crate::Ecn;
    use crate::queue::testing::ecn_packet;

    /// What a packet with this field looks like, and whether it counts as marked, after waiting
    /// `waited` in a queue with a threshold of 1 ms.
    fn after_waiting(waited: Duration, ecn: Ecn) -> (Ecn, bool) {
        let drops = &mut Drops::default();
        let mut queue = StepQueue::new(Step { at: Duration::from_millis(1) }, Limit::Packets(1));
        let packet = ecn_packet(Time::ZERO, 1500, ecn);
        assert_eq!(queue.enqueue(packet, Amount::ZERO, drops), Arrival::Accepted);
        let left = queue.dequeue(Time::ZERO + waited, drops).expect("it was queued");
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
