// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual time: what happens next.

use lowtide_net::Time;
use std::{cmp::Ordering, collections::BinaryHeap};

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A link may have something to deliver.
    Link(u32),
    /// A packet is at the end of a pipe.
    Pipe(u32),
    /// A timer of a connection's sender.
    Sender(u32),
    /// A timer of a connection's receiver.
    Receiver(u32),
    /// A flow's application does something.
    Source(u32),
    /// A flow has to stop.
    Stop(u32),
    /// A flow with a deadline looks at its progress.
    Control(u32),
    /// The measured span begins.
    Measure,
    /// A span begins or ends.
    Bound,
    /// The observer gets its samples.
    Sample,
    /// The progress is reported to the observer.
    Progress,
}

struct Entry {
    at: Time,
    /// Events of the same time happen in the order in which they were planned.
    number: u64,
    event: Event,
}

impl Ord for Entry {
    /// The earliest is the greatest, since a heap gives that first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// What is to happen, ordered by time, then by the order of planning.
#[derive(Default)]
pub(super) struct Events {
    heap: BinaryHeap<Entry>,
    planned: u64,
    /// How many have happened, the observer's own left out.
    pub(super) handled: u64,
}

impl Events {
    /// Something shall happen at a time.
    pub(super) fn plan(&mut self, at: Time, event: Event) {
        self.planned += 1;
        self.heap.push(Entry { at, number: self.planned, event });
    }

    /// How many are planned, those included that an earlier one has replaced.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The next event, unless it comes after `end`.
    pub(super) fn next(&mut self, end: Time) -> Option<(Time, Event)> {
        if self.heap.peek()?.at > end {
            return None;
        }
        let entry = self.heap.pop()?;
        // whether there is an observer must not show in what comes out
        self.handled += u64::from(!matches!(entry.event, Event::Sample | Event::Progress));
        Some((entry.at, entry.event))
    }
}

/// When something that changes its mind is called next. Only an earlier time is planned anew: a call that comes too
/// early does nothing but plan the next one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wake(Option<Time>);

impl Wake {
    /// It wants to be called at `next`.
    pub(super) fn arm(&mut self, next: Option<Time>, now: Time, event: Event, events: &mut Events) {
        let Some(next) = next else { return };
        let next = next.max(now);
        if self.0.is_none_or(|planned| next < planned) {
            self.0 = Some(next);
            events.plan(next, event);
        }
    }

    /// Whether the event that happens at `now` is the planned one and not one that an earlier one replaced.
    pub(super) fn due(&mut self, now: Time) -> bool {
        self.0.take_if(|planned| *planned == now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn by_time_then_by_order_of_planning() {
        let mut events = Events::default();
        for (time, number) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            events.plan(at(time), Event::Link(number));
        }
        let order: Vec<_> = std::iter::from_fn(|| events.next(at(5))).collect();
        let expected = [(3, 1), (3, 3), (5, 0), (5, 2)].map(|(time, number)| (at(time), Event::Link(number)));
        assert_eq!(order, expected);
        events.plan(at(6), Event::Measure);
        assert_eq!(events.next(at(5)), None);
        assert_eq!(events.handled, 4);
    }

    #[test]
    fn a_later_wish_does_not_replace_an_earlier_one() {
        let (mut events, mut wake) = (Events::default(), Wake::default());
        for wish in [Some(8), None, Some(9), Some(4)] {
            wake.arm(wish.map(at), at(1), Event::Sample, &mut events);
        }
        assert_eq!(events.next(at(9)), Some((at(4), Event::Sample)));
        assert!(wake.due(at(4)));
        assert_eq!(events.next(at(9)), Some((at(8), Event::Sample)));
        assert!(!wake.due(at(8)), "it had been replaced");
        assert_eq!(events.next(at(9)), None);
    }
}
