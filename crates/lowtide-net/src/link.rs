// SPDX-License-Identifier: MIT OR Apache-2.0
//! The link: loss, queue, transmitter and wire, in this order.

use crate::loss::Loss;
use crate::statistics::Counters;
use crate::{Admission, Amount, Discipline, Limit, Packet, Probability, Queue, Queued, Rate, Statistics, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// What a link is like.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    /// Transmission rate, counted in IP bytes.
    pub rate: Rate,
    /// One-way propagation delay, from the last bit sent to its arrival.
    pub delay: Duration,
    /// Size of the buffer.
    pub limit: Limit,
    /// Which queue the buffer has.
    pub discipline: Discipline,
    /// Probability of the loss of each arriving packet, before it reaches the queue.
    pub loss: Probability,
    /// Seed of the losses.
    pub seed: u64,
}

/// What became of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is on its way.
    Accepted,
    /// The queue dropped it.
    Dropped,
    /// It was lost at random.
    Lost,
}

/// A packet that came out of a link.
#[derive(Clone, Debug)]
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
    packet: Packet<T>,
    queueing_delay: Duration,
    ends: Time,
}

/// One direction of a link.
///
/// The times that are passed in must not decrease. It does not matter how late [`Link::poll`] is
/// called: transmissions follow each other without a gap while packets wait, and each packet has
/// the delivery time that an infinitely fast caller would have seen.
pub struct Link<T> {
    rate: Rate,
    delay: Duration,
    loss: Loss,
    queue: Box<dyn Queue<T>>,
    in_service: Option<InService<T>>,
    /// End of the latest transmission.
    idle_since: Time,
    /// The part of a nanosecond by which `idle_since` is too early, in units of 1/rate ns.
    remainder: u64,
    on_the_wire: VecDeque<Delivery<T>>,
    counters: Counters,
}

impl<T: Send + 'static> Link<T> {
    /// An idle link.
    pub fn new(config: &LinkConfig) -> Self {
        Self {
            rate: config.rate,
            delay: config.delay,
            loss: Loss::new(config.loss, config.seed),
            queue: config.discipline.queue(config.limit),
            in_service: None,
            idle_since: Time::ZERO,
            remainder: 0,
            on_the_wire: VecDeque::new(),
            counters: Counters::default(),
        }
    }
}

impl<T> Link<T> {
    /// A packet reaches the link at `now`.
    pub fn arrive(&mut self, now: Time, packet: Packet<T>) -> Arrival {
        self.transmit_until(now);
        let bytes = packet.bytes;
        let amount = Amount::one(bytes);
        self.counters.count(|s| {
            s.arrived += amount;
            s.largest_packet = s.largest_packet.max(bytes);
        });
        if self.loss.strikes() {
            self.counters.count(|s| s.lost += amount);
            return Arrival::Lost;
        }
        let in_service = self.transmitting();
        if self.queue.enqueue(Queued::new(now, packet), in_service) == Admission::Dropped {
            self.counters.count(|s| s.dropped += amount);
            return Arrival::Dropped;
        }
        let queued = self.queued();
        self.counters.count(|s| s.queue_max = s.queue_max.max(queued));
        if self.in_service.is_none() {
            self.start_transmission(now);
        }
        Arrival::Accepted
    }

    /// The next packet that has come out of the link by `now`, in order. Call it until it returns
    /// `None`.
    pub fn poll(&mut self, now: Time) -> Option<Delivery<T>> {
        self.transmit_until(now);
        if self.on_the_wire.front()?.at > now {
            return None;
        }
        let delivery = self.on_the_wire.pop_front()?;
        let (bytes, delay) = (delivery.packet.bytes, delivery.queueing_delay);
        self.counters.count(|s| {
            s.delivered += Amount::one(bytes);
            s.queueing_delay_sum += delay;
            s.queueing_delay_max = s.queueing_delay_max.max(delay);
        });
        Some(delivery)
    }

    /// When the next packet comes out, if any is under way. A packet that arrives later never comes
    /// out earlier.
    pub fn next_event(&self) -> Option<Time> {
        let on_the_wire = self.on_the_wire.front().map(|next| next.at);
        let in_service = || self.in_service.as_ref().map(|next| next.ends + self.delay);
        on_the_wire.or_else(in_service)
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
        self.counters.total
    }

    /// Counts since the last call of this function.
    pub fn take_interval(&mut self) -> Statistics {
        self.counters.take_interval()
    }

    fn transmitting(&self) -> Amount {
        self.in_service.as_ref().map_or(Amount::ZERO, |it| Amount::one(it.packet.bytes))
    }

    /// Catches up with all transmissions that end by `now`, each beginning where the one before it
    /// ended.
    fn transmit_until(&mut self, now: Time) {
        while let Some(done) = self.in_service.take_if(|it| it.ends <= now) {
            self.on_the_wire.push_back(Delivery {
                at: done.ends + self.delay,
                queueing_delay: done.queueing_delay,
                packet: done.packet,
            });
            self.start_transmission(done.ends);
        }
    }

    /// Puts the next packet of the queue, if any, on the idle transmitter.
    fn start_transmission(&mut self, now: Time) {
        let Some(next) = self.queue.dequeue(now) else {
            return;
        };
        let bytes = next.packet.bytes;
        if next.marked {
            self.counters.count(|s| s.marked += Amount::one(bytes));
        }
        let ends = now + self.serialisation_time(now, bytes);
        self.idle_since = ends;
        self.in_service = Some(InService { queueing_delay: next.sojourn(now), packet: next.packet, ends });
    }

    /// Time to send `bytes` from `now` on. What is lost by rounding down to a nanosecond is carried
    /// over to the packet that follows without a gap, so that the rate is exact in the long run.
    fn serialisation_time(&mut self, now: Time, bytes: u32) -> Duration {
        const NANOS_PER_SECOND: u128 = 1_000_000_000;
        if now > self.idle_since {
            self.remainder = 0;
        }
        let rate = u128::from(self.rate.bits_per_second());
        let work = u128::from(bytes) * 8 * NANOS_PER_SECOND + u128::from(self.remainder);
        self.remainder = (work % rate) as u64; // below the rate, which has 64 bits
        Duration::from_nanos(u64::try_from(work / rate).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    fn config(rate: &str, limit: Limit) -> LinkConfig {
        LinkConfig {
            rate: rate.parse().unwrap(),
            delay: Duration::from_millis(10),
            limit,
            discipline: Discipline::TailDrop,
            loss: Probability::NEVER,
            seed: 1,
        }
    }

    fn packet(bytes: u32, payload: u32) -> Packet<u32> {
        Packet { bytes, ecn: Ecn::Ect0, payload }
    }

    fn drain(link: &mut Link<u32>, now: Time) -> Vec<(u32, Time, Duration)> {
        std::iter::from_fn(|| link.poll(now)).map(|out| (out.packet.payload, out.at, out.queueing_delay)).collect()
    }

    const FOREVER: Time = Time::from_nanos(u64::MAX);

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_packet_is_sent_then_travels() {
        let mut link = Link::new(&config("12mbit", Limit::Packets(5)));
        assert_eq!(link.next_event(), None);
        link.arrive(ms(3), packet(1500, 1));
        assert_eq!(link.next_event(), Some(ms(14)));
        assert!(link.poll(Time::from_nanos(13_999_999)).is_none());
        assert_eq!(drain(&mut link, ms(14)), [(1, ms(14), Duration::from_millis(0))]);
        assert_eq!(link.next_event(), None);
    }

    #[test]
    fn a_late_caller_loses_no_capacity() {
        let mut link = Link::new(&config("12mbit", Limit::Packets(5)));
        for n in 0..3 {
            link.arrive(ms(0), packet(1500, n));
        }
        link.arrive(ms(500), packet(1500, 3));
        assert_eq!(
            drain(&mut link, ms(900)),
            [
                (0, ms(11), Duration::from_millis(0)),
                (1, ms(12), Duration::from_millis(1)),
                (2, ms(13), Duration::from_millis(2)),
                (3, ms(511), Duration::from_millis(0)),
            ]
        );
    }

    #[test]
    fn the_limit_drops_the_newcomer() {
        let mut link = Link::new(&config("12mbit", Limit::Bytes(3000)));
        assert_eq!(link.arrive(ms(0), packet(1500, 0)), Arrival::Accepted);
        assert_eq!(link.arrive(ms(0), packet(1500, 1)), Arrival::Accepted);
        assert_eq!(link.arrive(ms(0), packet(40, 2)), Arrival::Dropped);
        assert_eq!(link.arrive(ms(1), packet(1500, 3)), Arrival::Accepted);
        let order: Vec<u32> = drain(&mut link, FOREVER).iter().map(|out| out.0).collect();
        assert_eq!(order, [0, 1, 3]);
        let statistics = link.statistics();
        assert_eq!(statistics.dropped, Amount::one(40));
        assert_eq!(statistics.queue_max.bytes, 3000);
        assert_eq!(statistics.queueing_delay_max, Duration::from_millis(1));
        assert_eq!(statistics.queueing_delay_mean(), Duration::from_nanos(666_666));
    }

    #[test]
    fn the_rate_is_exact_in_the_long_run() {
        // 40 bytes at 7 Mbit/s take 45714.28… ns.
        let mut link = Link::new(&config("7mbit", Limit::Packets(7000)));
        for n in 0..7000 {
            link.arrive(ms(0), packet(40, n));
        }
        let last = drain(&mut link, FOREVER).last().unwrap().1;
        assert_eq!(last, ms(10 + 320)); // 7000 × 320 bit / 7 Mbit/s, then 10 ms
    }

    #[test]
    fn a_fraction_of_a_nanosecond_does_not_outlive_an_idle_time() {
        let mut link = Link::new(&config("7mbit", Limit::Packets(1)));
        for n in 0..9 {
            let arrived = ms(100 * u64::from(n));
            link.arrive(arrived, packet(40, n));
            let [(_, at, _)] = drain(&mut link, FOREVER)[..] else {
                panic!("one packet at a time");
            };
            assert_eq!(at - arrived, Duration::from_nanos(10_045_714));
        }
    }

    #[test]
    fn step_marks_what_waited_and_counts_it() {
        let threshold = Duration::from_micros(1500);
        let discipline = Discipline::Step { threshold };
        let mut link = Link::new(&LinkConfig { discipline, ..config("12mbit", Limit::Packets(9)) });
        for n in 0..4 {
            link.arrive(ms(0), packet(1500, n));
        }
        let marked: Vec<bool> =
            std::iter::from_fn(|| link.poll(FOREVER)).map(|out| out.packet.ecn == Ecn::Ce).collect();
        assert_eq!(marked, [false, false, true, true]);
        assert_eq!(link.statistics().marked.packets, 2);
        assert_eq!(link.statistics().marked.bytes, 3000);
    }

    #[test]
    fn intervals_add_up_to_the_total() {
        let mut link = Link::new(&config("12mbit", Limit::Packets(2)));
        for n in 0..3 {
            link.arrive(ms(0), packet(1500, n));
        }
        drain(&mut link, ms(11));
        let first = link.take_interval();
        drain(&mut link, ms(12));
        let second = link.take_interval();
        assert_eq!((first.arrived.packets, second.arrived.packets), (3, 0));
        assert_eq!((first.dropped.packets, second.dropped.packets), (1, 0));
        assert_eq!((first.delivered.packets, second.delivered.packets), (1, 1));
        assert_eq!(second.queueing_delay_mean(), Duration::from_millis(1));
        assert_eq!(link.take_interval(), Statistics::default());
        assert_eq!(link.statistics().delivered.packets, 2);
    }
}
