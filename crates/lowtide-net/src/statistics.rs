// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a link counts.

use crate::Amount;
use std::time::Duration;

/// What happened on one direction of a link, since its start or within an interval.
///
/// Each thing is counted when it happens, so within an interval `arrived` need not be the sum of
/// the others: some packets are still on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Offered to the link.
    pub arrived: Amount,
    /// Came out at the far end.
    pub delivered: Amount,
    /// Dropped because the buffer was full.
    pub overflow: Amount,
    /// Dropped by the queue's law before the buffer was full (active queue management).
    pub aqm: Amount,
    /// Dropped by the policer.
    pub policed: Amount,
    /// Lost at random.
    pub lost: Amount,
    /// Marked CE by the queue. Counted as the packet leaves the queue.
    pub marked: Amount,
    /// Sum, over the delivered packets, of the time from arrival to the start of transmission.
    pub queueing_delay_sum: Duration,
    /// The longest such time.
    pub queueing_delay_max: Duration,
    /// The most that was in the buffer at any moment, the packet in service included.
    pub queue_max: Amount,
    /// The largest packet that arrived, in bytes.
    pub largest_packet: u32,
}

impl Statistics {
    /// All that was dropped on purpose: by the queue, for either reason, and by the policer.
    pub fn dropped(&self) -> Amount {
        self.overflow + self.aqm + self.policed
    }

    /// Mean queueing delay of the delivered packets; zero if there were none.
    pub fn queueing_delay_mean(&self) -> Duration {
        let nanos = self.queueing_delay_sum.as_nanos().checked_div(u128::from(self.delivered.packets)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// What was counted since `earlier`, with the maxima of `self`.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            arrived: self.arrived - earlier.arrived,
            delivered: self.delivered - earlier.delivered,
            overflow: self.overflow - earlier.overflow,
            aqm: self.aqm - earlier.aqm,
            policed: self.policed - earlier.policed,
            lost: self.lost - earlier.lost,
            marked: self.marked - earlier.marked,
            queueing_delay_sum: self.queueing_delay_sum - earlier.queueing_delay_sum,
            ..*self
        }
    }

    /// The same counts with the larger of both maxima.
    fn with_maxima_of(&self, other: &Self) -> Self {
        Self {
            queueing_delay_max: self.queueing_delay_max.max(other.queueing_delay_max),
            queue_max: self.queue_max.max(other.queue_max),
            largest_packet: self.largest_packet.max(other.largest_packet),
            ..*self
        }
    }
}

/// Counts since the start, from which an interval's are the difference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Sums since the start, and maxima of the present interval.
    pub(crate) now: Statistics,
    /// Sums and maxima up to the end of the interval before.
    before: Statistics,
}

impl Counters {
    /// Since the start.
    pub(crate) fn total(&self) -> Statistics {
        self.now.with_maxima_of(&self.before)
    }

    /// What was counted since the last call.
    pub(crate) fn take_interval(&mut self) -> Statistics {
        let interval = self.now.since(&self.before);
        self.before = self.total();
        self.now =
            Statistics { queueing_delay_max: Duration::ZERO, queue_max: Amount::ZERO, largest_packet: 0, ..self.now };
        interval
    }
}
