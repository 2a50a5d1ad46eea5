// SPDX-License-Identifier: MIT OR Apache-2.0
//! The link: loss, policer, queue, transmitter and wire, in this order.

use crate::drops::{Arrival, Cause, Dropped, Drops};
use crate::jitter::Delays;
use crate::loss::Loss;
use crate::police::Policer;
use crate::statistics::Counters;
use crate::transmitter::Transmitter;
use crate::{
    Amount, DelaySchedule, Discipline, Jitter, Limit, LossModel, Packet, Police, Queue, Queued, Rate, Reordering,
    Schedule, Statistics, Time,
};
use std::collections::VecDeque;
use std::time::Duration;

/// What a link is like.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// What it can carry, and when, counted in IP bytes. A rate becomes one by `.into()`.
    pub capacity: Schedule,
    /// Size of the shaper's token bucket in bytes: so much of what the idle link could have carried
    /// is saved, and then sent at once. Zero: nothing is saved. The bucket is full in the beginning.
    pub burst: u64,
    /// One-way propagation delay, from the last bit sent to its arrival, over time. A length of time becomes one by
    /// `.into()`. A packet has the delay of the moment at which its last bit is sent. Where the delay falls, what is
    /// sent from then on does not overtake what is under way: it comes out together with the last of that, or later.
    /// Only `reordering` exempts a packet from that.
    pub delay: DelaySchedule,
    /// Random delay on top of it that keeps the order.
    pub jitter: Jitter,
    /// Packets that fall back behind others.
    pub reordering: Reordering,
    /// Size of the buffer.
    pub limit: Limit,
    /// Which queue the buffer has.
    pub discipline: Discipline,
    /// Random loss of arriving packets, before they reach the policer and the queue.
    pub loss: LossModel,
    /// Policing of arriving packets, before they reach the queue.
    pub police: Option<Police>,
    /// Seed of all that is random. Each source of chance has numbers of its own.
    pub seed: u64,
}

impl LinkConfig {
    /// A link with tail drop, and with nothing random about it.
    pub fn new(capacity: impl Into<Schedule>, delay: impl Into<DelaySchedule>, limit: Limit) -> Self {
        Self {
            capacity: capacity.into(),
            burst: 0,
            delay: delay.into(),
            jitter: Jitter::NONE,
            reordering: Reordering::NONE,
            limit,
            discipline: Discipline::DropTail,
            loss: LossModel::NONE,
            police: None,
            seed: 1,
        }
    }

    /// A way that only takes time: no packet waits there until another one is sent.
    pub fn wire(delay: impl Into<DelaySchedule>) -> Self {
        let unlimited = Rate::from_bits_per_second(u64::MAX).expect("it is above zero");
        Self::new(unlimited, delay, Limit::Packets(u64::MAX))
    }
}

/// A packet that came out of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// When it came out, whenever that was noticed.
    pub at: Time,
    /// How long it waited between its arrival and the start of its transmission.
    pub queueing_delay: Duration,
    /// The packet.
    pub packet: Packet<T>,
}

/// A packet on the transmitter.
#[derive(Debug)]
struct InService<T> {
    ends: Time,
    delivery: Delivery<T>,
}

/// One direction of a link.
///
/// The times that are passed in must not decrease. It does not matter how late [`Link::poll`] is
/// called: transmissions follow each other without a gap while packets wait, and each packet has
/// the delivery time that an infinitely fast caller would have seen.
pub struct Link<T> {
    delay: DelaySchedule,
    /// The least of them.
    least_delay: Duration,
    delays: Delays,
    loss: Loss,
    policer: Option<Policer>,
    queue: Box<dyn Queue<T>>,
    transmitter: Transmitter,
    in_service: Option<InService<T>>,
    /// When the next transmission begins, if none is going on and packets wait.
    starts: Option<Time>,
    /// In the order of their delivery.
    on_the_wire: VecDeque<Delivery<T>>,
    /// Delivery of the latest packet that kept its place.
    latest: Time,
    drops: Drops<T>,
    counters: Counters,
}

impl<T: Send + 'static> Link<T> {
    /// An idle link.
    pub fn new(config: &LinkConfig) -> Self {
        Self {
            delay: config.delay.clone(),
            least_delay: config.delay.least(),
            delays: Delays::new(config.jitter, config.reordering, config.seed),
            loss: Loss::new(config.loss, config.seed),
            policer: config.police.map(Policer::new),
            queue: config.discipline.queue(config.limit, config.seed),
            transmitter: Transmitter::new(&config.capacity, config.burst),
            in_service: None,
            starts: None,
            on_the_wire: VecDeque::new(),
            latest: Time::ZERO,
            drops: Drops::default(),
            counters: Counters::default(),
        }
    }
}

impl<T> Link<T> {
    /// A packet reaches the link at `now`.
    pub fn arrive(&mut self, now: Time, packet: Packet<T>) -> Arrival {
        self.transmit_until(now);
        let counts = &mut self.counters.now;
        counts.arrived += Amount::one(packet.bytes);
        counts.largest_packet = counts.largest_packet.max(packet.bytes);
        let refused = if self.loss.strikes() {
            Some(Cause::Lost)
        } else if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, packet.bytes)) {
            Some(Cause::Policed)
        } else {
            None
        };
        if let Some(cause) = refused {
            self.drops.push(now, cause, packet);
            return Arrival::Dropped(cause);
        }
        let in_service = self.transmitting();
        let arrival = self.queue.enqueue(Queued::new(now, packet), in_service, &mut self.drops);
        if arrival == Arrival::Accepted {
            let queued = self.queue.backlog() + in_service;
            self.counters.now.queue_max = self.counters.now.queue_max.max(queued);
            if self.in_service.is_none() && self.starts.is_none() {
                self.starts = self.transmitter.ready(now);
                self.transmit_until(now);
            }
        }
        arrival
    }

    /// The next packet that has come out of the link by `now`, in the order of their delivery. Call
    /// it until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<Delivery<T>> {
        self.transmit_until(now);
        if self.on_the_wire.front()?.at > now {
            return None;
        }
        let delivery = self.on_the_wire.pop_front()?;
        let counts = &mut self.counters.now;
        counts.delivered += Amount::one(delivery.packet.bytes);
        counts.queueing_delay_sum += delivery.queueing_delay;
        counts.queueing_delay_max = counts.queueing_delay_max.max(delivery.queueing_delay);
        Some(delivery)
    }

    /// When to call [`Link::poll`] next: no packet comes out earlier, whatever arrives until then.
    /// Mostly it is when the next packet does come out; where that depends on what is not decided yet
    /// (after an outage, or with reordering) it may be earlier, and a call at that time brings nothing
    /// but a later one. `None` if nothing is under way, or nothing will ever come out.
    pub fn next_event(&self) -> Option<Time> {
        let on_the_wire = self.on_the_wire.front().map(|next| next.at);
        let next = match &self.in_service {
            // A packet behind it could overtake it.
            Some(next) if self.delays.reorders() => Some(next.ends + self.least_delay),
            Some(next) => Some(next.delivery.at),
            None => self.starts.map(|starts| starts + self.least_delay),
        };
        let next = next.filter(|at| *at != Time::NEVER);
        [on_the_wire, next].into_iter().flatten().min()
    }

    /// What is in the buffer, the packet in service included, as of the latest call of
    /// [`Link::arrive`] or [`Link::poll`].
    pub fn queued(&self) -> Amount {
        self.queue.backlog() + self.transmitting()
    }

    /// What has been sent and not been delivered yet.
    pub fn propagating(&self) -> Amount {
        self.on_the_wire.iter().map(|next| Amount::one(next.packet.bytes)).fold(Amount::ZERO, |sum, one| sum + one)
    }

    /// Counts since the link was made.
    pub fn statistics(&self) -> Statistics {
        self.with_drops(self.counters.total())
    }

    /// Counts since the last call of this function.
    pub fn take_interval(&mut self) -> Statistics {
        self.counters.now = self.with_drops(self.counters.now);
        self.counters.take_interval()
    }

    /// From now on keeps every dropped packet, until [`Link::take_dropped`] takes it out.
    pub fn keep_dropped(&mut self) {
        self.drops.keep();
    }

    /// Takes out the packets that were dropped since the last call, whether on arrival or later, in
    /// order. Nothing without [`Link::keep_dropped`].
    pub fn take_dropped(&mut self) -> impl Iterator<Item = Dropped<T>> + '_ {
        self.drops.take()
    }

    fn with_drops(&self, statistics: Statistics) -> Statistics {
        Statistics {
            overflow: self.drops.count(Cause::Overflow),
            aqm: self.drops.count(Cause::Aqm),
            policed: self.drops.count(Cause::Policed),
            lost: self.drops.count(Cause::Lost),
            ..statistics
        }
    }

    fn transmitting(&self) -> Amount {
        self.in_service.as_ref().map_or(Amount::ZERO, |it| Amount::one(it.delivery.packet.bytes))
    }

    /// Catches up with all transmissions that end by `now`, each beginning where the one before it
    /// ended or, if there was no capacity then, as soon as there was.
    fn transmit_until(&mut self, now: Time) {
        loop {
            if let Some(it) = &self.in_service {
                if it.ends > now || it.ends == Time::NEVER {
                    return;
                }
                let InService { ends, delivery } = self.in_service.take().expect("it is there");
                self.put_on_the_wire(delivery);
                if self.queue.backlog().packets > 0 {
                    self.starts = self.transmitter.ready(ends);
                } else {
                    // It asks all the same, as the queue's law may have to know that nothing is left.
                    let nothing = self.queue.dequeue(ends, &mut self.drops);
                    debug_assert!(nothing.is_none(), "the queue is empty");
                }
            }
            let Some(starts) = self.starts.take_if(|starts| *starts <= now) else {
                return;
            };
            self.start_transmission(starts);
            if self.in_service.is_none() {
                return; // the queue dropped all it had
            }
        }
    }

    /// Puts the next packet of the queue, if any, on the idle transmitter.
    fn start_transmission(&mut self, now: Time) {
        let Some(next) = self.queue.dequeue(now, &mut self.drops) else {
            return;
        };
        let bytes = next.packet.bytes;
        if next.marked {
            self.counters.now.marked += Amount::one(bytes);
        }
        let ends = self.transmitter.transmit(now, bytes);
        let mut at = ends + self.delay.at(ends) + self.delays.jitter();
        match self.delays.setback() {
            Some(setback) => at = at + setback,
            None => {
                at = at.max(self.latest);
                self.latest = at;
            }
        }
        let queueing_delay = next.sojourn(now);
        self.in_service = Some(InService { ends, delivery: Delivery { at, queueing_delay, packet: next.packet } });
    }

    fn put_on_the_wire(&mut self, delivery: Delivery<T>) {
        if self.on_the_wire.back().is_none_or(|last| last.at <= delivery.at) {
            self.on_the_wire.push_back(delivery);
        } else {
            let place = self.on_the_wire.partition_point(|earlier| earlier.at <= delivery.at);
            self.on_the_wire.insert(place, delivery);
        }
    }
}

#[cfg(test)]
mod tests;
