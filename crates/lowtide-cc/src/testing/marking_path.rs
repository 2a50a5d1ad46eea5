// SPDX-License-Identifier: MIT OR Apache-2.0
//! A toy path for tests: one flow, one queue that marks and never drops, in virtual time. Every segment is
//! acknowledged.

use crate::{
    Ack, Congestion, CongestionControl, Flow, Law, Random, Reaction, Recovered, Sent, Signal, Time, law::EcnUse,
};
use std::{collections::VecDeque, time::Duration};

/// Payload of a segment, bytes.
pub(crate) const MSS: u32 = 1448;
/// The same with headers, as the link carries it.
const MTU: f64 = 1500.0;

/// How the queue marks.
#[derive(Clone, Debug)]
pub(crate) enum Marking {
    /// Every segment that waited for longer than this, seconds.
    Step(f64),
    /// By chance, with this probability.
    Chance(f64, Random),
    /// Evenly: one segment in so many.
    Even(f64),
}

/// What happened in a stretch of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) rounds: u32,
    pub(crate) acked: u64,
    pub(crate) marked: u64,
    /// The longest wait in the queue, seconds.
    pub(crate) longest: f64,
    /// Episodes that the law began by itself.
    pub(crate) reduced: u32,
}

struct Flying {
    sent: f64,
    acked: f64,
    wait: f64,
    end: u64,
    marked: bool,
}

/// A flow on a path of some bit/s and round-trip time.
pub(crate) struct Path {
    pub(crate) law: Box<dyn CongestionControl>,
    pub(crate) now: f64,
    /// Capacity, segments per second, from a time on; the latest entry that has begun holds.
    capacity: Vec<(f64, f64)>,
    base: f64,
    marking: Marking,
    flying: VecDeque<Flying>,
    free_at: f64,
    paced_until: f64,
    nxt: u64,
    una: u64,
    srtt: f64,
    /// The end of the reduction episode.
    episode: Option<u64>,
    round_end: u64,
    since_mark: f64,
    /// Time and the segment's wait in the queue, seconds, for each ACK.
    pub(crate) trace: Vec<(f64, f64)>,
}

impl Path {
    pub(crate) fn new(law: &str, mbit: f64, base: f64, marking: Marking) -> Self {
        let law: Law = law.parse().unwrap();
        assert!(matches!(law.ecn_use(), EcnUse::Accurate | EcnUse::L4s));
        Self {
            law: law.build(&Flow { mss: MSS, initial_window: 10, seed: 1 }),
            now: 0.0,
            capacity: vec![(0.0, mbit * 1e6 / 8.0 / MTU)],
            base,
            marking,
            flying: VecDeque::new(),
            free_at: 0.0,
            paced_until: 0.0,
            nxt: 0,
            una: 0,
            srtt: 0.0,
            episode: None,
            round_end: 0,
            since_mark: 0.0,
            trace: Vec::new(),
        }
    }

    pub(crate) fn set_capacity(&mut self, mbit: f64) {
        self.capacity.push((self.now, mbit * 1e6 / 8.0 / MTU));
    }

    pub(crate) fn inner(&self, name: &str) -> f64 {
        let mut value = f64::NAN;
        self.law.inspect(&mut |key, x| {
            if key == name {
                value = x;
            }
        });
        value
    }

    /// The share of the capacity that was used since `from`.
    pub(crate) fn utilisation(&self, from: f64) -> f64 {
        let acked = self.trace.iter().filter(|ack| ack.0 >= from).count();
        acked as f64 / (self.capacity.last().unwrap().1 * (self.now - from))
    }

    /// When in bins of 50 ms since `from` the capacity was first used to this share, seconds after it.
    pub(crate) fn time_to(&self, share: f64, from: f64) -> f64 {
        const BIN: f64 = 0.05;
        let rate = self.capacity.last().unwrap().1;
        let bins = ((self.now - from) / BIN) as usize;
        let mut counts = vec![0u32; bins + 1];
        for ack in self.trace.iter().filter(|ack| ack.0 >= from) {
            counts[((ack.0 - from) / BIN) as usize] += 1;
        }
        let full = counts.iter().position(|&count| f64::from(count) >= share * rate * BIN);
        full.map_or(f64::INFINITY, |bin| bin as f64 * BIN)
    }

    /// When the queue was last longer than this, seconds after `from`.
    pub(crate) fn drained_after(&self, wait: f64, from: f64, until: f64) -> f64 {
        let late = self.trace.iter().rev().find(|ack| ack.0 < until && ack.1 > wait);
        late.map_or(0.0, |ack| (ack.0 - from).max(0.0))
    }

    pub(crate) fn run(&mut self, seconds: f64) -> Seen {
        let end = self.now + seconds;
        let mut seen = Seen::default();
        loop {
            self.send();
            let ack = self.flying.front().map_or(f64::INFINITY, |segment| segment.acked);
            let next = if self.may_send() { ack.min(self.paced_until) } else { ack };
            if next > end {
                self.now = end;
                return seen;
            }
            self.now = next;
            if ack <= next {
                self.receive(&mut seen);
            }
        }
    }

    fn in_flight(&self) -> u64 {
        self.flying.len() as u64 * u64::from(MSS)
    }

    fn may_send(&self) -> bool {
        self.in_flight() + u64::from(MSS) <= self.law.window()
    }

    fn send(&mut self) {
        while self.may_send() && self.now >= self.paced_until {
            if let Some(rate) = self.law.pacing_rate() {
                self.paced_until = self.now + f64::from(MSS) / rate as f64;
            }
            let start = self.now.max(self.free_at);
            let rate = self.capacity.iter().rev().find(|entry| entry.0 <= start).unwrap().1;
            self.free_at = start + 1.0 / rate;
            let wait = start - self.now;
            let in_flight = self.in_flight();
            self.nxt += u64::from(MSS);
            let marked = self.marks(wait);
            self.flying.push_back(Flying {
                sent: self.now,
                acked: self.free_at + self.base,
                wait,
                end: self.nxt,
                marked,
            });
            self.law.on_sent(&Sent {
                now: time(self.now),
                bytes: MSS.into(),
                in_flight,
                nxt: self.nxt,
                retransmission: false,
                app_limited: false,
                has_data: true,
            });
        }
    }

    fn marks(&mut self, wait: f64) -> bool {
        match &mut self.marking {
            Marking::Step(threshold) => wait > *threshold,
            Marking::Chance(p, random) => random.uniform() < *p,
            Marking::Even(every) => {
                self.since_mark += 1.0;
                let marks = self.since_mark >= *every;
                if marks {
                    self.since_mark -= *every;
                }
                marks
            }
        }
    }

    fn receive(&mut self, seen: &mut Seen) {
        let in_flight = self.in_flight();
        let segment = self.flying.pop_front().unwrap();
        let rtt = segment.acked - segment.sent;
        self.srtt = if self.srtt == 0.0 { rtt } else { self.srtt + (rtt - self.srtt) / 8.0 };
        self.una = segment.end;
        if self.una > self.round_end {
            self.round_end = self.nxt;
            seen.rounds += 1;
        }
        // Strictly, as in Linux: the last segment sent before the reduction belongs to the episode with its mark.
        if self.episode.is_some_and(|end| self.una > end) {
            self.episode = None;
            self.law.on_recovered(&Recovered { now: time(self.now), una: self.una, nxt: self.nxt });
        }
        let reaction = self.law.on_ack(&Ack {
            now: time(self.now),
            packets: 1,
            bytes: MSS.into(),
            marked: segment.marked.into(),
            rtt: Some(Duration::from_secs_f64(rtt)),
            srtt: Duration::from_secs_f64(self.srtt),
            una: self.una,
            nxt: self.nxt,
            in_flight,
            window_limited: true,
            reducing: self.episode.is_some(),
            ..Ack::default()
        });
        seen.acked += 1;
        seen.marked += u64::from(segment.marked);
        seen.longest = seen.longest.max(segment.wait);
        seen.reduced += u32::from(reaction == Reaction::Reduced);
        self.trace.push((self.now, segment.wait));
        if reaction == Reaction::Reduced {
            self.episode.get_or_insert(self.nxt);
        }
        if segment.marked && self.episode.is_none() {
            self.episode = Some(self.nxt);
            self.law.on_congestion(&Congestion {
                now: time(self.now),
                signal: Signal::Ecn,
                una: self.una,
                nxt: self.nxt,
                in_flight: self.in_flight(),
            });
        }
    }
}

pub(crate) fn time(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9) as u64)
}
