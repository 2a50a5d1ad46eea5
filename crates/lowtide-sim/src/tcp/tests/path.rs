// SPDX-License-Identifier: MIT OR Apache-2.0
//! A path with one queue and scripted mishaps.

use super::super::{Acknowledgement, Receiver, Segment, Sender, law};
use crate::scenario::Tcp;
use lowtide_cc::Law;
use lowtide_net::{Ecn, Time};
use std::{collections::BTreeMap, time::Duration};

/// Payload bytes of a full segment in the tests.
pub(super) const MSS: u64 = 1000;

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    Drop,
    /// It is marked CE, if its ECN field allows it.
    Mark,
    /// It comes so much later, without delaying those behind it.
    Late(Duration),
    /// No packet leaves the queue until then.
    Hold(Time),
    /// A copy follows after this time.
    Twice(Duration),
}

enum Event {
    Segment(Segment, bool),
    Ack(Acknowledgement),
    Write(u64),
    Close,
}

type Fault<T> = Box<dyn FnMut(Time, &T) -> Fate>;

pub(super) struct Path {
    pub(super) now: Time,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// Every segment that was sent, with its ECN field.
    pub(super) sent: Vec<(Segment, Ecn)>,
    /// Every ACK that was sent.
    pub(super) acks: Vec<Acknowledgement>,
    /// The most that was in flight, bytes.
    pub(super) peak: u64,
    pub(super) faults: Fault<Segment>,
    pub(super) ack_faults: Fault<Acknowledgement>,
    /// Bytes per second of the queue.
    rate: u64,
    pub(super) delay: Duration,
    /// The queue drops what would wait longer.
    pub(super) buffer: Duration,
    busy_until: Time,
    events: BTreeMap<(Time, u64), Event>,
    sequence: u64,
}

pub(super) fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

pub(super) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Reno without delayed ACKs.
pub(super) fn settings() -> Tcp {
    Tcp {
        port: false,
        law: "reno".parse::<Law>().expect("it exists"),
        mss: MSS as u32,
        header: 52,
        initial_window: 10,
        receive_window: 1 << 30,
        ack_every: 1,
        ack_delay: millis(40),
        quick_acks: 16,
        rto_min: millis(200),
        pacing: false,
        validate_window: true,
    }
}

impl Path {
    /// 1000 segments per second and a base round-trip time of 40 ms, with endless buffers: a window of 40 segments.
    pub(super) fn new(settings: &Tcp) -> Self {
        let sender = Sender::new(settings, law(settings, None, 1));
        Self::with(sender, Receiver::new(settings, settings.law.ecn_use()))
    }

    pub(super) fn with(sender: Sender, receiver: Receiver) -> Self {
        Self {
            now: Time::ZERO,
            sender,
            receiver,
            sent: Vec::new(),
            acks: Vec::new(),
            peak: 0,
            faults: Box::new(|_, _| Fate::Pass),
            ack_faults: Box::new(|_, _| Fate::Pass),
            rate: 1000 * MSS,
            delay: millis(20),
            buffer: Duration::MAX,
            busy_until: Time::ZERO,
            events: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// The application writes so many segments at this time.
    pub(super) fn write(self, when: Time, segments: u64) -> Self {
        self.write_bytes(when, segments * MSS)
    }

    pub(super) fn write_bytes(mut self, when: Time, bytes: u64) -> Self {
        self.schedule(when, Event::Write(bytes));
        self
    }

    pub(super) fn close(mut self, when: Time) -> Self {
        self.schedule(when, Event::Close);
        self
    }

    pub(super) fn faults(mut self, faults: impl FnMut(Time, &Segment) -> Fate + 'static) -> Self {
        self.faults = Box::new(faults);
        self
    }

    /// Drops the first transmissions of these segments.
    pub(super) fn dropping(self, segments: impl IntoIterator<Item = u64>) -> Self {
        let mut left: Vec<u64> = segments.into_iter().collect();
        self.faults(move |_, segment| {
            match left.iter().position(|number| !segment.syn && segment.seq == number * MSS) {
                Some(found) => {
                    left.swap_remove(found);
                    Fate::Drop
                }
                None => Fate::Pass,
            }
        })
    }

    pub(super) fn ack_faults(mut self, faults: impl FnMut(Time, &Acknowledgement) -> Fate + 'static) -> Self {
        self.ack_faults = Box::new(faults);
        self
    }

    /// Runs until nothing is left to happen, or until `end`.
    pub(super) fn run(&mut self, end: Time) {
        self.transmit();
        loop {
            let packet = self.events.keys().next().map(|key| key.0);
            let timers = [packet, self.sender.next_timer(), self.receiver.next_timer()];
            let Some(next) = timers.into_iter().flatten().min().filter(|next| *next <= end) else { break };
            assert!(next >= self.now, "a timer in the past");
            self.now = next;
            if packet == Some(next) {
                let (_, event) = self.events.pop_first().expect("there is one");
                self.happen(event);
            } else if self.receiver.next_timer() == Some(next) {
                let ack = self.receiver.on_timer(next);
                self.send_ack(ack);
            } else {
                self.sender.on_timer(next);
            }
            self.transmit();
        }
    }

    /// Runs until all is delivered, which it must be; returns when.
    pub(super) fn finish(&mut self) -> Time {
        self.run(at(100_000_000));
        assert!(
            self.sender.is_finished() && self.receiver.is_finished(),
            "ended unfinished at {:?}: {} acknowledged, {} received, {:?}",
            self.now,
            self.sender.acked_bytes(),
            self.receiver.received(),
            self.sender.statistics()
        );
        assert_eq!(self.receiver.received(), self.sender.acked_bytes());
        assert_eq!(self.sender.next_timer(), None);
        self.now
    }

    /// Segments that were sent more often than once.
    pub(super) fn retransmits(&self) -> u64 {
        self.sender.statistics().retransmits
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Segment(segment, ce) => {
                let ack = self.receiver.on_segment(self.now, &segment, ce);
                self.send_ack(ack);
            }
            Event::Ack(ack) => {
                self.sender.on_acknowledgement(self.now, &ack);
            }
            Event::Write(bytes) => self.sender.write(bytes),
            Event::Close => self.sender.close(),
        }
    }

    fn transmit(&mut self) {
        while let Some((segment, ecn)) = self.sender.transmit(self.now) {
            self.sent.push((segment, ecn));
            let fate = (self.faults)(self.now, &segment);
            let ce = fate == Fate::Mark && ecn != Ecn::NotEct;
            if fate == Fate::Drop || self.busy_until - self.now > self.buffer {
                continue;
            }
            if let Fate::Hold(until) = fate {
                self.busy_until = self.busy_until.max(until);
            }
            let nanos = u64::from(segment.bytes) * 1_000_000_000 / self.rate;
            self.busy_until = self.busy_until.max(self.now) + Duration::from_nanos(nanos);
            self.travel(fate, self.busy_until, || Event::Segment(segment, ce));
        }
        self.peak = self.peak.max(self.sender.in_flight());
        self.sender.check();
    }

    fn send_ack(&mut self, ack: Option<Acknowledgement>) {
        let Some(ack) = ack else { return };
        self.acks.push(ack);
        let fate = (self.ack_faults)(self.now, &ack);
        if fate != Fate::Drop {
            self.travel(fate, self.now, || Event::Ack(ack));
        }
    }

    fn travel(&mut self, fate: Fate, from: Time, event: impl Fn() -> Event) {
        let arrival = from + self.delay;
        match fate {
            Fate::Late(by) => self.schedule(arrival + by, event()),
            Fate::Twice(after) => {
                self.schedule(arrival, event());
                self.schedule(arrival + after, event());
            }
            _ => self.schedule(arrival, event()),
        }
    }

    fn schedule(&mut self, when: Time, event: Event) {
        self.events.insert((when, self.sequence), event);
        self.sequence += 1;
    }
}
