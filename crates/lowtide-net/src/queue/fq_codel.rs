// SPDX-License-Identifier: MIT OR Apache-2.0
//! FQ-CoDel, flow queueing with CoDel: RFC 8290.
//!
//! Where this differs from the RFC:
//!
//! - The flow of a packet is what its maker says ([`crate::Packet::flow`]); the RFC hashes the
//!   5-tuple (section 4.1.1), which the emulator does too. It is hashed here once more, with the
//!   link's seed, into the queues.
//! - On overflow one packet after the other is dropped at the head of the longest queue until the
//!   newcomer fits (section 4.1.2); the batches of section 5.1 only save processor time.
//! - Each flow's CoDel leaves alone the last packet of its own queue. (Linux looks at the backlog of
//!   all queues there.)

use super::codel::{Codel, Control, INTERVAL_MAX, TARGET_MAX, duration};
use super::fifo::Fifo;
use crate::drops::{Cause, Drops};
use crate::text::{Parameters, print_switch, switch, whole};
use crate::units::format_duration;
use crate::{Amount, Arrival, Limit, Queue, Queued, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// A queue with CoDel for each flow, served by deficit round robin, new flows first. Written
/// `fq_codel:flows=1024,quantum=1514,limit=10240,target=5ms,interval=100ms,ecn=on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodel {
    /// Number of queues that flows are hashed into. RFC 8290, section 5.2.4: 1024. From 1 to 65536.
    pub flows: u32,
    /// Bytes that a flow may send in its turn. RFC 8290, section 5.2.3: 1514. From 1 to 1,000,000.
    pub quantum: u32,
    /// Packets that all queues hold together, beside the link's own limit. RFC 8290, section 5.2.2:
    /// 10240. From 1 to 10,000,000.
    pub limit: u32,
    /// CoDel's target for each flow. RFC 8290, section 5.2.5: 5 ms. From 1 us to 10 s.
    pub target: Duration,
    /// CoDel's interval for each flow. RFC 8290, section 5.2.1: 100 ms. From 1 us to 100 s.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped. RFC 8290, section 5.2.6: on.
    pub ecn: bool,
}

impl Default for FqCodel {
    fn default() -> Self {
        let Codel { target, interval, .. } = Codel::default();
        Self { flows: 1024, quantum: 1514, limit: 10_240, target, interval, ecn: true }
    }
}

impl Parameters for FqCodel {
    const NAME: &'static str = "fq_codel";
    const KEYS: &'static [&'static str] = &["flows", "quantum", "limit", "target", "interval", "ecn"];

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "flows" => self.flows = whole(value, 1, 1 << 16)?,
            "quantum" => self.quantum = whole(value, 1, 1_000_000)?,
            "limit" => self.limit = whole(value, 1, 10_000_000)?,
            "target" => self.target = duration(value, TARGET_MAX)?,
            "interval" => self.interval = duration(value, INTERVAL_MAX)?,
            _ => self.ecn = switch(value)?,
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Option<String> {
        Some(match key {
            "flows" => self.flows.to_string(),
            "quantum" => self.quantum.to_string(),
            "limit" => self.limit.to_string(),
            "target" => format_duration(self.target),
            "interval" => format_duration(self.interval),
            _ => print_switch(self.ecn),
        })
    }

    fn defaults(&self) -> Self {
        Self::default()
    }
}

/// One flow, or several that the hash has put together.
#[derive(Clone, Debug)]
struct Flow<T> {
    fifo: Fifo<T>,
    control: Control,
    /// Bytes that it may still send in this round.
    deficit: i64,
    /// Whether it is in one of the lists.
    active: bool,
}

impl<T> Default for Flow<T> {
    fn default() -> Self {
        Self { fifo: Fifo::default(), control: Control::default(), deficit: 0, active: false }
    }
}

/// The queue that [`FqCodel`] describes.
#[derive(Clone, Debug)]
pub(crate) struct FqCodelQueue<T> {
    parameters: FqCodel,
    codel: Codel,
    limit: Limit,
    seed: u64,
    flows: Vec<Flow<T>>,
    /// Flows that began to send a moment ago: they go first.
    new: VecDeque<usize>,
    /// Flows that have used up a quantum.
    old: VecDeque<usize>,
    backlog: Amount,
    /// The largest packet so far, in bytes.
    largest: u32,
}

impl<T> FqCodelQueue<T> {
    /// Empty queues that, with the packet in service, hold at most `limit` together.
    pub(crate) fn new(parameters: FqCodel, limit: Limit, seed: u64) -> Self {
        let FqCodel { target, interval, ecn, .. } = parameters;
        Self {
            parameters,
            codel: Codel { target, interval, ecn },
            limit,
            seed,
            flows: std::iter::repeat_with(Flow::default).take(parameters.flows as usize).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Amount::ZERO,
            largest: 0,
        }
    }

    /// RFC 8290, section 4.1.1: which queue a flow has.
    fn classify(&self, flow: u64) -> usize {
        (mix(flow ^ self.seed) % u64::from(self.parameters.flows)) as usize
    }

    fn overflows(&self, in_service: Amount) -> bool {
        self.backlog.packets > u64::from(self.parameters.limit) || !self.limit.allows(self.backlog + in_service)
    }

    /// Makes room at the head of the queue with the most bytes: its flow is the one that causes the
    /// delay, and a drop there is noticed soonest (RFC 8290, section 4.1.2).
    fn drop_from_longest(&mut self, now: Time, drops: &mut Drops<T>) {
        let active = self.new.iter().chain(&self.old);
        let longest = active.max_by_key(|flow| self.flows[**flow].fifo.backlog().bytes);
        if let Some(packet) = longest.and_then(|&flow| self.flows[flow].fifo.pop()) {
            self.backlog -= Amount::one(packet.packet.bytes);
            drops.push(now, Cause::Overflow, packet.packet);
        }
    }
}

/// splitmix64's output function (Steele, Lea and Flood, 2014): every bit depends on every bit.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl<T: Send> Queue<T> for FqCodelQueue<T> {
    fn enqueue(&mut self, packet: Queued<T>, in_service: Amount, drops: &mut Drops<T>) -> Arrival {
        let (now, bytes, index) = (packet.arrived, packet.packet.bytes, self.classify(packet.packet.flow));
        self.largest = self.largest.max(bytes);
        self.backlog += Amount::one(bytes);
        let flow = &mut self.flows[index];
        flow.fifo.push(packet);
        if !flow.active {
            flow.active = true;
            flow.deficit = i64::from(self.parameters.quantum);
            self.new.push_back(index);
        }
        while self.overflows(in_service) {
            self.drop_from_longest(now, drops);
        }
        Arrival::Accepted
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<T>) -> Option<Queued<T>> {
        // RFC 8290, section 4.2.
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.parameters.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = flow.fifo.backlog();
            let packet = flow.control.dequeue(now, &self.codel, self.largest, &mut flow.fifo, drops);
            let after = flow.fifo.backlog();
            self.backlog -= before;
            self.backlog += after;
            let Some(packet) = packet else {
                list.pop_front();
                if is_new {
                    // Not out of the lists at once: otherwise a flow could stay new for ever, and
                    // starve the old ones.
                    self.old.push_back(index);
                } else {
                    flow.active = false;
                }
                continue;
            };
            flow.deficit -= i64::from(packet.packet.bytes);
            return Some(packet);
        }
    }

    fn backlog(&self) -> Amount {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use crate::queue::testing::ecn_packet;

    const LIMIT: Limit = Limit::Packets(1_000_000);

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn offer(queue: &mut FqCodelQueue<u64>, at: Time, flow: u64, bytes: u32, number: u64) {
        let mut packet = ecn_packet(at, bytes, Ecn::NotEct);
        (packet.packet.flow, packet.packet.payload) = (flow, number);
        assert_eq!(queue.enqueue(packet, Amount::ZERO, &mut Drops::default()), Arrival::Accepted);
    }

    fn send(queue: &mut FqCodelQueue<u64>, at: Time) -> (u64, u64) {
        let packet = queue.dequeue(at, &mut Drops::default()).expect("packets wait").packet;
        (packet.flow, packet.payload)
    }

    fn queue(parameters: &str) -> FqCodelQueue<u64> {
        FqCodelQueue::new(crate::text::read(FqCodel::default(), parameters).unwrap(), LIMIT, 1)
    }

    #[test]
    fn a_sparse_flow_goes_first() {
        let mut queue = queue("");
        for number in 0..100 {
            offer(&mut queue, ms(0), 1, 1500, number);
        }
        // The bulk flow uses up its first quantum with its second packet.
        assert_eq!([send(&mut queue, ms(0)), send(&mut queue, ms(0))], [(1, 0), (1, 1)]);
        for number in 0..10 {
            // Packets of a flow that has been empty are never behind the bulk flow's queue.
            offer(&mut queue, ms(0), 2, 100, number);
            assert_eq!(send(&mut queue, ms(0)), (2, number));
            // It has to pass through the list of old flows before it is new again.
            assert_eq!(send(&mut queue, ms(0)).0, 1);
            assert_eq!(send(&mut queue, ms(0)).0, 1);
        }
    }

    #[test]
    fn a_sparse_flow_interrupts_the_turn_of_another() {
        let mut queue = queue("");
        for number in 0..100 {
            offer(&mut queue, ms(0), 1, 100, number);
        }
        // 16 packets of 100 bytes use up the first quantum; then the flow is old, and in its turn.
        for number in 0..20 {
            assert_eq!(send(&mut queue, ms(0)), (1, number));
        }
        offer(&mut queue, ms(0), 2, 100, 0);
        assert_eq!([send(&mut queue, ms(0)), send(&mut queue, ms(0))], [(2, 0), (1, 20)]);
    }

    #[test]
    fn a_flow_cannot_stay_new_by_emptying_its_queue() {
        let mut queue = queue("");
        for number in 0..100 {
            offer(&mut queue, ms(0), 1, 1500, number);
        }
        send(&mut queue, ms(0));
        send(&mut queue, ms(0));
        // Flow 2 has a packet whenever the last one was sent: half of the capacity, not all of it.
        let mut sent = [0, 0, 0];
        for number in 0..100 {
            if queue.flows[queue.classify(2)].fifo.backlog() == Amount::ZERO {
                offer(&mut queue, ms(0), 2, 1500, number);
            }
            sent[send(&mut queue, ms(0)).0 as usize] += 1;
        }
        assert!((45..=55).contains(&sent[1]), "{sent:?}");
    }

    #[test]
    fn flows_share_in_bytes_whatever_their_packets() {
        let mut queue = queue("");
        for number in 0..10_000 {
            offer(&mut queue, ms(0), 1, 1500, number);
            offer(&mut queue, ms(0), 2, 300, number);
        }
        let mut bytes = [0_i64, 0, 0];
        for _ in 0..6000 {
            let (flow, _) = send(&mut queue, ms(0));
            bytes[flow as usize] += if flow == 1 { 1500 } else { 300 };
            // RFC 8290, section 3: within a quantum and a packet, at any time.
            assert!((bytes[1] - bytes[2]).abs() <= 2 * (1514 + 1500), "{bytes:?}");
        }
        assert!(bytes[1] > 1_000_000);
    }

    #[test]
    fn a_flow_keeps_its_order() {
        let mut queue = queue("flows=4");
        for number in 0..400 {
            offer(&mut queue, ms(0), number % 7, 1000, number);
        }
        let order: Vec<(u64, u64)> = (0..400).map(|_| send(&mut queue, ms(0))).collect();
        for flow in 0..7 {
            let numbers: Vec<u64> = order.iter().filter(|sent| sent.0 == flow).map(|sent| sent.1).collect();
            assert!(numbers.is_sorted() && numbers.len() >= 57);
        }
        assert_eq!(queue.backlog(), Amount::ZERO);
        assert!(queue.dequeue(ms(0), &mut Drops::default()).is_none());
    }

    #[test]
    fn overflow_hits_the_head_of_the_longest_queue() {
        let mut queue = queue("limit=10");
        let drops = &mut Drops::default();
        drops.keep();
        let mut offer = |flow, bytes, number| {
            let mut packet = ecn_packet(ms(0), bytes, Ecn::NotEct);
            (packet.packet.flow, packet.packet.payload) = (flow, number);
            assert_eq!(queue.enqueue(packet, Amount::ZERO, drops), Arrival::Accepted);
        };
        // In bytes flow 1 has the longest queue, in packets flow 2.
        for number in 0..4 {
            offer(1, 1500, number);
        }
        for number in 0..6 {
            offer(2, 100, number);
        }
        offer(3, 100, 0);
        offer(2, 100, 6);
        let dropped: Vec<_> = drops.take().map(|it| (it.cause, it.packet.flow, it.packet.payload)).collect();
        assert_eq!(dropped, [(Cause::Overflow, 1, 0), (Cause::Overflow, 1, 1)]);
        assert_eq!(queue.backlog().packets, 10);
    }

    #[test]
    fn the_limit_of_the_link_holds_too() {
        let mut queue = FqCodelQueue::new(FqCodel::default(), Limit::Bytes(4500), 1);
        let drops = &mut Drops::default();
        for flow in 0..5 {
            let mut packet = ecn_packet(ms(0), 1500, Ecn::NotEct);
            packet.packet.flow = flow;
            queue.enqueue(packet, Amount::one(1500), drops);
            assert!(queue.backlog().bytes <= 3000);
        }
        assert_eq!(drops.count(Cause::Overflow).packets, 3);
    }

    #[test]
    fn codel_governs_each_flow_by_itself() {
        let mut queue = queue("");
        let drops = &mut Drops::default();
        drops.keep();
        for number in 0..2000 {
            offer(&mut queue, ms(0), 1, 1500, number);
        }
        // Flow 2 sends a packet each 10 ms, which leaves at once.
        for now in 1..1000 {
            if now % 10 == 0 {
                offer(&mut queue, ms(now), 2, 1500, now);
            }
            let packet = queue.dequeue(ms(now), drops).unwrap();
            assert!(packet.packet.flow == 1 || packet.sojourn(ms(now)) <= Duration::from_millis(2));
        }
        let dropped: Vec<_> = drops.take().map(|it| (it.cause, it.packet.flow)).collect();
        assert!(dropped.len() > 10);
        assert!(dropped.iter().all(|it| *it == (Cause::Aqm, 1)), "{dropped:?}");
    }
}
