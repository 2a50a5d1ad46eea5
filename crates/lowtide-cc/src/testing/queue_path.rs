// SPDX-License-Identifier: MIT OR Apache-2.0
//! A path for tests: one flow through a queue of fixed rate, in virtual time.
//!
//! Every segment is acknowledged at once. A segment that finds the queue full is lost; the loss is noticed when its ACK
//! would have come and repaired at once.

use crate::{Ack, Congestion, CongestionControl, Flow, Law, RateSample, Reaction, Recovered, Signal, Time};
use std::{collections::VecDeque, time::Duration};

/// Payload bytes of a segment.
pub(crate) const MSS: u32 = 1000;

/// The ACK of a segment that is on its way.
struct Arrival {
    at: Time,
    sent: Time,
    /// Segments that had been delivered when it was sent.
    delivered: u64,
    end: u64,
    lost: bool,
}

/// The path, the flow's transport and its law.
pub(crate) struct Path {
    pub(crate) law: Box<dyn CongestionControl>,
    /// Delay of an empty path, there and back.
    pub(crate) base: Duration,
    /// Time that the link needs for one segment.
    pub(crate) service: Duration,
    /// Time that the queue can hold.
    pub(crate) buffer: Duration,
    /// Delay by the queue of others.
    pub(crate) others: Duration,
    /// Offset of the receiver's clock in nanoseconds; `None`: there are no timestamps.
    pub(crate) offset: Option<i64>,
    pub(crate) now: Time,
    pub(crate) srtt: Duration,
    /// Segments delivered.
    pub(crate) delivered: u64,
    /// Reduction episodes that the law began, and losses.
    pub(crate) episodes: u32,
    pub(crate) losses: u32,
    /// When the link has sent what it has.
    free: Time,
    last_sent: Time,
    /// Segments that leave together, and how many of them are still to leave.
    burst: u64,
    left: u64,
    last_ack: Time,
    una: u64,
    nxt: u64,
    in_flight: u64,
    episode: Option<u64>,
    arrivals: VecDeque<Arrival>,
}

impl Path {
    /// A path of this delay and of this many segments per second, with a second of buffer.
    pub(crate) fn new(law: &str, base: Duration, rate: u32) -> Self {
        let law: Law = law.parse().unwrap();
        Self {
            law: law.build(&Flow { mss: MSS, initial_window: 10, seed: 1 }),
            base,
            service: Duration::from_secs(1) / rate,
            buffer: Duration::from_secs(1),
            others: Duration::ZERO,
            offset: Some(-5_000_000_000),
            now: Time::from_nanos(1_000_000),
            srtt: Duration::ZERO,
            delivered: 0,
            episodes: 0,
            losses: 0,
            free: Time::ZERO,
            last_sent: Time::ZERO,
            burst: 0,
            left: 0,
            last_ack: Time::ZERO,
            una: 0,
            nxt: 0,
            in_flight: 0,
            episode: None,
            arrivals: VecDeque::new(),
        }
    }

    /// The window in segments.
    pub(crate) fn cwnd(&self) -> f64 {
        self.law.window() as f64 / f64::from(MSS)
    }

    /// The flow's own queue, as time.
    pub(crate) fn queue(&self) -> Duration {
        self.free - self.now
    }

    /// An inner value of the law.
    pub(crate) fn value(&self, name: &str) -> f64 {
        let mut found = f64::NAN;
        self.law.inspect(&mut |key, value| {
            if key == name {
                found = value;
            }
        });
        found
    }

    /// Runs for this long and shows the path after every ACK.
    pub(crate) fn run(&mut self, time: Duration, mut watch: impl FnMut(&Self)) {
        let end = self.now + time;
        loop {
            while self.may_send(self.now) {
                self.send();
            }
            let ack = self.arrivals.front().map(|arrival| arrival.at);
            let paced = Some(self.paced_at()).filter(|at| *at > self.now && self.has_room());
            let next = [ack, paced].into_iter().flatten().min().unwrap_or_else(|| self.probe_at()).max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if ack.is_some_and(|at| at <= next) {
                self.receive();
                watch(self);
            }
        }
    }

    /// When a window below one segment allows the next one.
    fn probe_at(&self) -> Time {
        let rounds = f64::from(MSS) / self.law.window().max(1) as f64;
        self.last_sent + Duration::from_nanos((self.srtt.as_nanos() as f64 * rounds) as u64)
    }

    /// When a law that paces allows the next one.
    fn paced_at(&self) -> Time {
        let apart = self.law.pacing_rate().map_or(0.0, |rate| f64::from(MSS) / rate as f64);
        if self.left > 0 {
            return self.last_sent;
        }
        self.last_sent + Duration::from_secs_f64(apart * self.burst as f64)
    }

    fn has_room(&self) -> bool {
        self.in_flight + u64::from(MSS) <= self.law.window()
    }

    fn may_send(&self, now: Time) -> bool {
        if self.law.window() < u64::from(MSS) {
            self.in_flight == 0 && now >= self.probe_at()
        } else {
            self.has_room() && now >= self.paced_at()
        }
    }

    fn send(&mut self) {
        let lost = self.queue() + self.others > self.buffer;
        if !lost {
            self.free = self.free.max(self.now) + self.service;
        }
        let at = (self.free.max(self.now) + self.base + self.others).max(self.last_ack);
        if self.left == 0 {
            self.burst = self.law.least_burst().max(1);
            self.left = self.burst;
        }
        self.left -= 1;
        (self.last_sent, self.last_ack) = (self.now, at);
        self.nxt += u64::from(MSS);
        self.in_flight += u64::from(MSS);
        self.arrivals.push_back(Arrival { at, sent: self.now, delivered: self.delivered, end: self.nxt, lost });
    }

    fn receive(&mut self) {
        let Some(arrival) = self.arrivals.pop_front() else { return };
        let before = self.in_flight;
        self.in_flight -= u64::from(MSS);
        self.una = arrival.end;
        if arrival.lost {
            if self.episode.is_none() {
                self.losses += 1;
                self.episode = Some(self.nxt);
                self.law.on_congestion(&Congestion { signal: Signal::Loss, ..self.congestion() });
            }
        } else {
            self.delivered += 1;
            let rtt = self.now - arrival.sent;
            self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
            let one_way = i64::try_from(rtt.saturating_sub(self.base / 2).as_nanos()).unwrap();
            let reaction = self.law.on_ack(&Ack {
                now: self.now,
                packets: 1,
                bytes: u64::from(MSS),
                rtt: Some(rtt),
                srtt: self.srtt,
                one_way_delay: self.offset.map(|offset| one_way + offset),
                una: self.una,
                nxt: self.nxt,
                in_flight: before,
                window_limited: true,
                reducing: self.episode.is_some(),
                rate: Some(RateSample {
                    delivered: (self.delivered - arrival.delivered) * u64::from(MSS),
                    interval: rtt,
                    prior_delivered: arrival.delivered * u64::from(MSS),
                    total_delivered: self.delivered * u64::from(MSS),
                    ..RateSample::default()
                }),
                ..Ack::default()
            });
            if reaction == Reaction::Reduced {
                assert!(self.episode.is_none(), "a reduction inside an episode");
                self.episodes += 1;
                self.episode = Some(self.nxt);
            }
        }
        if self.episode.is_some_and(|end| self.una > end) {
            self.episode = None;
            self.law.on_recovered(&Recovered { now: self.now, una: self.una, nxt: self.nxt });
        }
    }

    /// What is now, as an event; a timeout.
    pub(crate) fn congestion(&self) -> Congestion {
        Congestion { now: self.now, signal: Signal::Timeout, una: self.una, nxt: self.nxt, in_flight: self.in_flight }
    }
}
