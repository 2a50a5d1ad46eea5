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
    /// Dropped by the queue.
    pub dropped: Amount,
    /// Lost at random.
    pub lost: Amount,
    /// Marked CE by the queue.
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
    /// Mean queueing delay of the delivered packets; zero if there were none.
    pub fn queueing_delay_mean(&self) -> Duration {
        let nanos = self.queueing_delay_sum.as_nanos().checked_div(u128::from(self.delivered.packets)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Counts since the start and since the last time somebody asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) total: Statistics,
    interval: Statistics,
}

impl Counters {
    /// Applies `change` to both counts.
    pub(crate) fn count(&mut self, change: impl Fn(&mut Statistics)) {
        change(&mut self.total);
        change(&mut self.interval);
    }

    /// What was counted since the last call.
    pub(crate) fn take_interval(&mut self) -> Statistics {
        std::mem::take(&mut self.interval)
    }
}
