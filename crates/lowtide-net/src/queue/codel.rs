// SPDX-License-Identifier: MIT OR Apache-2.0
//! CoDel, "controlled delay": RFC 8289.
//!
//! Where this differs from the RFC's pseudocode (section 5):
//!
//! - The RFC's MAXPACKET, the interface's MTU, is the largest packet that arrived so far.
//! - With ECN a packet is marked where it would be dropped (section 3 leaves that to the
//!   implementer). A marked packet is sent, so at most one is marked for each packet sent, while
//!   several may be dropped.
//! - The time of the next drop is rounded down to a nanosecond.

use super::fifo::Fifo;
use super::refuse;
use crate::drops::{Cause, Drops};
use crate::text::{Parameters, print_switch, switch, why, within};
use crate::units::{format_duration, parse_duration};
use crate::{Amount, Arrival, Limit, Queue, Queued, Time};
use std::time::Duration;

/// A FIFO that drops at its head once the waiting time has been above a target for an interval, and
/// then ever more often until it is below. Written `codel:target=5ms,interval=100ms,ecn=on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// Waiting time that is acceptable as a standing queue; RFC 8289, section 4.4: 5 ms. From 1 us
    /// to 10 s.
    pub target: Duration,
    /// How long the waiting time may exceed the target before anything is dropped; of the order of
    /// a large round-trip time. RFC 8289, section 4.3: 100 ms. From 1 us to 100 s.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped. Off unless asked for, as in Linux.
    pub ecn: bool,
}

impl Default for Codel {
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

impl Parameters for Codel {
    const NAME: &'static str = "codel";
    const KEYS: &'static [&'static str] = &["target", "interval", "ecn"];

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "target" => self.target = duration(value, TARGET_MAX)?,
            "interval" => self.interval = duration(value, INTERVAL_MAX)?,
            _ => self.ecn = switch(value)?,
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Option<String> {
        Some(match key {
            "target" => format_duration(self.target),
            "interval" => format_duration(self.interval),
            _ => print_switch(self.ecn),
        })
    }

    fn defaults(&self) -> Self {
        Self::default()
    }
}

const LEAST: Duration = Duration::from_micros(1);
pub(super) const TARGET_MAX: Duration = Duration::from_secs(10);
pub(super) const INTERVAL_MAX: Duration = Duration::from_secs(100);

/// A length of time from 1 us on.
pub(super) fn duration(text: &str, most: Duration) -> Result<Duration, String> {
    within(parse_duration(text).map_err(why)?, LEAST, most, format_duration)
}

/// The state of the control law for one FIFO, with the names of RFC 8289, section 5.1.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// When the waiting time will have been above the target for an interval; `None` if it is below.
    first_above_time: Option<Time>,
    /// When to drop next, while dropping; later, when it would have been.
    drop_next: Time,
    /// Drops since the dropping began.
    count: u32,
    /// `count` when it began.
    last_count: u32,
    dropping: bool,
}

impl Control {
    /// Takes the next packet out of `fifo` and drops those before it that the law has dropped (RFC
    /// 8289, section 5.5). `largest` is the largest packet so far, in bytes.
    pub(super) fn dequeue<T>(
        &mut self,
        now: Time,
        parameters: &Codel,
        largest: u32,
        fifo: &mut Fifo<T>,
        drops: &mut Drops<T>,
    ) -> Option<Queued<T>> {
        let mut head = self.pop(now, parameters, largest, fifo);
        if self.dropping {
            self.dropping = head.excessive;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let sent = head.strike(now, parameters.ecn, drops);
                if !sent {
                    head = self.pop(now, parameters, largest, fifo);
                    self.dropping = head.excessive;
                }
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, parameters.interval, self.count);
                }
                if sent {
                    break;
                }
            }
        } else if head.excessive {
            if !head.strike(now, parameters.ecn, drops) {
                head = self.pop(now, parameters, largest, fifo);
            }
            self.enter(now, parameters.interval);
        }
        head.packet
    }

    /// Begins to drop. After a short pause it goes on at the frequency that it had, as that was about
    /// right (RFC 8289, section 4.2).
    fn enter(&mut self, now: Time, interval: Duration) {
        self.dropping = true;
        let recent = now < self.drop_next + 16 * interval;
        let drops = self.count - self.last_count;
        self.count = if drops > 1 && recent { drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, interval, self.count);
    }

    /// The next packet, and whether the waiting time has been excessive for an interval (the RFC's
    /// `dodequeue`, section 5.6).
    fn pop<T>(&mut self, now: Time, parameters: &Codel, largest: u32, fifo: &mut Fifo<T>) -> Head<T> {
        let packet = fifo.pop();
        let above = packet.as_ref().is_some_and(|packet| {
            // What is left is more than one packet: otherwise dropping would idle the link.
            packet.sojourn(now) >= parameters.target && fifo.backlog().bytes > u64::from(largest)
        });
        let excessive = above && self.first_above_time.is_some_and(|at| now >= at);
        self.first_above_time = above.then(|| self.first_above_time.unwrap_or(now + parameters.interval));
        Head { packet, excessive }
    }
}

/// RFC 8289, section 5.2: each drop comes a little sooner after the last one, so that the rate of a
/// Reno-like flow falls linearly with time.
fn control_law(from: Time, interval: Duration, count: u32) -> Time {
    from + Duration::from_nanos((interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64)
}

struct Head<T> {
    packet: Option<Queued<T>>,
    /// The RFC's `ok_to_drop`.
    excessive: bool,
}

impl<T> Head<T> {
    /// Marks the packet if it may, and drops it otherwise; says whether it will be sent.
    fn strike(&mut self, now: Time, ecn: bool, drops: &mut Drops<T>) -> bool {
        if ecn && self.packet.as_mut().is_some_and(Queued::mark) {
            return true;
        }
        if let Some(packet) = self.packet.take() {
            drops.push(now, Cause::Aqm, packet.packet);
        }
        false
    }
}

/// The queue that [`Codel`] describes.
#[derive(Clone, Debug)]
pub(crate) struct CodelQueue<T> {
    fifo: Fifo<T>,
    parameters: Codel,
    control: Control,
    limit: Limit,
    largest: u32,
}

impl<T> CodelQueue<T> {
    /// An empty queue that, with the packet in service, holds at most `limit`.
    pub(crate) fn new(parameters: Codel, limit: Limit) -> Self {
        Self { fifo: Fifo::default(), parameters, control: Control::default(), limit, largest: 0 }
    }
}

impl<T: Send> Queue<T> for CodelQueue<T> {
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount, drops: &mut Drops<T>) -> Arrival {
        let bytes = packet.packet.bytes;
        self.largest = self.largest.max(bytes);
        if !self.limit.allows(self.fifo.backlog() + in_service + Amount::one(bytes)) {
            return refuse(packet, Cause::Overflow, drops);
        }
        self.fifo.push(packet);
        Arrival::Accepted
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<T>) -> Option<Queued<T>> {
        self.control.dequeue(now, &self.parameters, self.largest, &mut self.fifo, drops)
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

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// A CoDel queue that is emptied by a packet each millisecond, and the milliseconds in which it
    /// dropped or marked something.
    struct Bench {
        queue: CodelQueue<u64>,
        drops: Drops<u64>,
        now: u64,
        struck: Vec<u64>,
    }

    impl Bench {
        fn new(parameters: &str) -> Self {
            let parameters = crate::text::read(Codel::default(), parameters).unwrap();
            let queue = CodelQueue::new(parameters, Limit::Packets(100_000));
            Self { queue, drops: Drops::default(), now: 0, struck: Vec::new() }
        }

        fn fill(&mut self, packets: usize, ecn: Ecn) {
            for _ in 0..packets {
                let packet = ecn_packet(ms(self.now), 1500, ecn);
                assert_eq!(self.queue.enqueue(packet, Amount::ZERO, &mut self.drops), Arrival::Accepted);
            }
        }

        fn run_until(&mut self, end: u64) {
            while self.now < end {
                self.now += 1;
                let before = self.drops.count(Cause::Aqm).packets;
                let sent = self.queue.dequeue(ms(self.now), &mut self.drops);
                let dropped = self.drops.count(Cause::Aqm).packets - before;
                let marked = sent.is_some_and(|sent| sent.marked);
                self.struck.extend((0..dropped + u64::from(marked)).map(|_| self.now));
            }
        }
    }

    /// RFC 8289, sections 4.2 and 5.2: the first drop an interval after the waiting time reached the
    /// target, the second an interval later, then 100/sqrt(2), 100/sqrt(3), ... ms: here at 275.7,
    /// 333.4, 383.4, 428.2, 469.0 and 506.8 ms, each at the next packet sent.
    const LAW: [u64; 8] = [105, 205, 276, 334, 384, 429, 469, 507];

    #[test]
    fn drops_come_closer_with_the_square_root_of_their_number() {
        let mut bench = Bench::new("");
        bench.fill(1000, Ecn::NotEct);
        bench.run_until(510);
        assert_eq!(bench.struck, LAW);
        assert_eq!(bench.queue.backlog().packets, 1000 - 510 - 8);
    }

    #[test]
    fn with_ecn_marks_come_at_the_same_times() {
        let mut bench = Bench::new("ecn=on");
        bench.fill(1000, Ecn::Ect0);
        bench.run_until(510);
        assert_eq!(bench.struck, LAW);
        assert_eq!(bench.drops.count(Cause::Aqm), Amount::ZERO);
        assert_eq!(bench.queue.backlog().packets, 1000 - 510);

        let mut bench = Bench::new("ecn=on");
        bench.fill(1000, Ecn::NotEct);
        bench.run_until(510);
        assert_eq!(bench.drops.count(Cause::Aqm).packets, 8, "what cannot be marked is dropped");
    }

    #[test]
    fn other_parameters_scale_the_law() {
        let mut bench = Bench::new("target=20ms,interval=40ms");
        bench.fill(1000, Ecn::NotEct);
        bench.run_until(150);
        // 20 + 40, + 40, + 28.3, + 23.1
        assert_eq!(bench.struck, [60, 100, 129]);
    }

    #[test]
    fn less_than_an_interval_above_the_target_is_forgiven() {
        let mut bench = Bench::new("");
        // The last packet of 104 waits for 104 ms; above the target for 99 ms.
        for _ in 0..5 {
            bench.fill(104, Ecn::NotEct);
            bench.run_until(bench.now + 150);
        }
        assert_eq!(bench.struck, [0; 0]);
        assert_eq!(bench.queue.backlog(), Amount::ZERO);
    }

    #[test]
    fn dropping_ends_with_the_waiting_time_below_the_target() {
        let mut bench = Bench::new("");
        bench.fill(250, Ecn::NotEct);
        bench.run_until(240);
        assert_eq!(bench.struck, [105, 205]);
        // 8 packets are left, and then none for long: the next burst is judged afresh.
        bench.run_until(300);
        bench.fill(100, Ecn::NotEct);
        bench.run_until(420);
        assert_eq!(bench.struck, [105, 205]);
    }

    /// Drops until `LAW` has struck `first` times, pauses, and returns the time between the first two
    /// drops after it.
    fn spacing_after_pause(first: usize, pause: u64) -> u64 {
        let mut bench = Bench::new("");
        bench.fill(LAW[first - 1] as usize + first + 1, Ecn::NotEct);
        bench.run_until(LAW[first - 1] + 1);
        assert_eq!(bench.struck.len(), first);
        bench.run_until(bench.now + pause);
        bench.fill(1000, Ecn::NotEct);
        bench.run_until(bench.now + 300);
        bench.struck[first + 1] - bench.struck[first]
    }

    #[test]
    fn after_a_short_pause_it_goes_on_where_it_was() {
        // RFC 8289, section 4.2: with the drops since the last entry as count; here 5 - 1.
        assert_eq!(spacing_after_pause(5, 100), 50);
        // A single drop is no reason to begin faster.
        assert_eq!(spacing_after_pause(2, 100), 100);
        // "Short" is up to 16 intervals after the last time that a drop was due, at 383.4 ms. The pause
        // begins at 385 ms, and from its end to the next entry it takes 105 ms.
        let limit = 1983 - 385 - 105;
        assert_eq!(spacing_after_pause(5, limit), 50);
        assert_eq!(spacing_after_pause(5, limit + 1), 100);
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let mut bench = Bench::new("target=1ms,interval=2ms");
        bench.fill(2, Ecn::NotEct);
        // Each waits for 100 ms, and there is always one more behind it.
        for _ in 0..50 {
            bench.now += 100;
            let sent = bench.queue.dequeue(ms(bench.now), &mut bench.drops);
            assert!(sent.is_some());
            bench.fill(1, Ecn::NotEct);
        }
        assert_eq!(bench.drops.count(Cause::Aqm), Amount::ZERO);
        // With two behind it, it is another matter.
        bench.fill(1, Ecn::NotEct);
        bench.now += 100;
        bench.fill(1, Ecn::NotEct);
        bench.run_until(bench.now + 1);
        bench.fill(2, Ecn::NotEct);
        bench.now += 100;
        bench.run_until(bench.now + 1);
        assert!(bench.drops.count(Cause::Aqm).packets > 0);
    }

    #[test]
    fn the_limit_drops_the_newcomer() {
        let drops = &mut Drops::default();
        let mut queue = CodelQueue::new(Codel::default(), Limit::Packets(2));
        let mut offer = |drops: &mut _| queue.enqueue(ecn_packet(ms(0), 1500, Ecn::NotEct), Amount::one(1500), drops);
        assert_eq!(offer(drops), Arrival::Accepted);
        assert_eq!(offer(drops), Arrival::Dropped(Cause::Overflow));
    }
}
