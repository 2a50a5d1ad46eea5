// SPDX-License-Identifier: MIT OR Apache-2.0
//! One flow on a link with a queue, in virtual time, whose events two laws get: the first one's window sends. Every
//! segment is acknowledged by itself; one that finds the queue full is noticed when its ACK would have come, and
//! repaired at once. With a step, those that wait longer are marked. The link's rate changes now and then, ACKs have a
//! queue of their own on their way back, and the receiver's clock another origin and rate than the sender's. The toy
//! paths of `lowtide-cc` drive one law, and are visible in its own tests only.

use super::Pair;
use lowtide_cc::{Ack, Congestion, CongestionControl, RateSample, Reaction, Recovered, Signal, Time};
use std::{collections::VecDeque, time::Duration};

/// Payload bytes of a segment.
pub(crate) const MSS: u32 = 1000;

struct Arrival {
    at: u64,
    sent: u64,
    received: u64,
    end: u64,
    lost: bool,
    marked: bool,
    /// What had been delivered when it was sent, and when that was.
    delivered: (u64, u64),
}

/// Times are microseconds.
pub(crate) struct Path {
    base: u64,
    service: u64,
    /// Whether ACKs carry timestamps.
    one_way: bool,
    /// Packets that the queue holds.
    buffer: u64,
    /// Waiting time above which a packet is marked.
    step: Option<u64>,
    /// How long the link keeps its rate; then it has half of it, and then all of it again.
    steady: Option<u64>,
    changed: u64,
    /// How often packets of cross traffic come first.
    others: f64,
    /// Packets that pass at once after a pause; and those that the sender still lets go together, and when it may
    /// again, as behind it it paces.
    bucket: u64,
    together: u64,
    resumes: u64,
    /// How often a packet is lost whatever the queue is.
    losses: f64,
    /// Behind fair queues: how long cross traffic is served in turn, and then as long is not.
    turns: Option<u64>,
    random: lowtide_cc::Random,
    now: u64,
    /// When the link has sent all that it has.
    free: u64,
    una: u64,
    nxt: u64,
    srtt: u64,
    /// Its end, and whether it is for a loss.
    episode: Option<(u64, bool)>,
    arrivals: VecDeque<Arrival>,
    /// Decisions that differed.
    pub(crate) apart: u64,
    /// Bytes, and when the latest of them were.
    delivered: (u64, u64),
    /// Bytes, since the latest ACK.
    lost: u64,
    /// When the latest segment came to the receiver, and its ACK to us.
    last: (u64, u64),
}

/// Of the receiver's clock: its origin in microseconds, and by how many parts it is too fast.
const OFFSET: i64 = -987_654_321;
const DRIFT: i64 = 20_000;
/// Half a minute, after which the link changes.
const PERIOD: u64 = 30_000_000;

impl Path {
    /// Of this round trip, packets per second, and packets of buffer.
    pub(crate) fn new(base: Duration, rate: f64, buffer: f64, one_way: bool, seed: u64) -> Self {
        Self {
            base: base.as_micros() as u64,
            service: (1e6 / rate) as u64,
            one_way,
            buffer: buffer as u64,
            step: None,
            steady: None,
            changed: 0,
            others: 0.02,
            bucket: 0,
            together: 0,
            resumes: 0,
            losses: 0.0,
            turns: None,
            random: lowtide_cc::Random::new(seed),
            now: 1,
            free: 0,
            una: 0,
            nxt: 0,
            srtt: 0,
            episode: None,
            arrivals: VecDeque::new(),
            delivered: (0, 1),
            lost: 0,
            last: (0, 0),
            apart: 0,
        }
    }

    /// What the link takes for a packet: as at first, twice as long, half as long.
    const fn service(&self) -> u64 {
        if self.steady.is_some() {
            return self.service;
        }
        match self.now / PERIOD % 3 {
            0 => self.service,
            1 => 2 * self.service,
            _ => self.service / 2,
        }
    }

    /// Marks above this waiting time, and changes the rate every so often.
    pub(crate) fn marking(mut self, step: Duration, steady: Duration) -> Self {
        (self.step, self.steady) = (Some(step.as_micros() as u64), Some(steady.as_micros() as u64));
        self
    }

    /// By itself behind a token bucket of so many packets, at a rate that stays.
    pub(crate) const fn behind_bucket(mut self, packets: u64) -> Self {
        (self.others, self.bucket, self.steady) = (0.0, packets, Some(Duration::MAX.as_secs()));
        self
    }

    /// Packets are lost by chance.
    pub(crate) const fn losing(mut self, part: f64) -> Self {
        self.losses = part;
        self
    }

    /// Queues are fair: cross traffic has one of its own for so long, and then for as long none.
    pub(crate) const fn served_in_turn(mut self, turns: Duration) -> Self {
        self.turns = Some(turns.as_micros() as u64);
        self
    }

    /// Whether cross traffic is served in turn.
    pub(crate) fn is_shared(&self) -> bool {
        self.turns.is_some_and(|turns| self.now / turns % 2 == 1)
    }

    /// Of the time up to the latest ACK, how much the link was busy.
    pub(crate) fn used(&self) -> f64 {
        (self.delivered.0 / u64::from(MSS) * self.service) as f64 / self.now as f64
    }

    /// Whether the law's pace lets a packet go before the next ACK comes.
    fn may_go(&mut self, law: &dyn CongestionControl) -> bool {
        let Some(rate) = law.pacing_rate().filter(|_| self.bucket > 0) else { return true };
        if self.together == 0 {
            let at = self.now.max(self.resumes);
            if self.arrivals.front().is_some_and(|arrival| arrival.at < at) {
                return false;
            }
            (self.now, self.together) = (at, law.least_burst());
            self.resumes = at + 1_000_000 * self.together * u64::from(MSS) / rate;
        }
        self.together -= 1;
        true
    }

    fn send(&mut self, law: &dyn CongestionControl) {
        let window = law.window();
        if self.steady.is_some_and(|steady| self.now / steady > self.changed) {
            self.changed += 1;
            self.service = if self.changed % 2 == 1 { self.service * 2 } else { self.service / 2 };
        }
        let service = self.service();
        while self.nxt + u64::from(MSS) <= self.una + window.max(MSS.into()) && self.may_go(law) {
            // now and then packets of cross traffic come first
            let filled = self.now.saturating_sub(self.bucket * service);
            if self.random.uniform() < self.others {
                self.free = self.free.max(filled) + (self.random.uniform() * 20.0) as u64 * service;
            }
            let queued = self.free.saturating_sub(self.now) / service;
            let lost = queued > self.buffer || (self.losses > 0.0 && self.random.uniform() < self.losses);
            if !lost {
                // a packet of cross traffic is on the link, or comes first
                let theirs = match self.is_shared() {
                    true if self.free > self.now => service,
                    true => (self.random.uniform() * service as f64) as u64,
                    false => 0,
                };
                self.free = self.free.max(filled) + theirs + service;
            }
            let marked = self.step.is_some_and(|step| self.free.saturating_sub(self.now) > step);
            self.nxt += u64::from(MSS);
            // a path that marks is quiet otherwise, but for what keeps queues from being whole packets, at which the
            // last bit would decide
            let quiet = self.steady.is_some();
            let most = if quiet && self.turns.is_none() { 20.0 } else { 200.0 };
            let jitter = |random: &mut lowtide_cc::Random| (random.uniform() * most) as u64;
            let received = self.last.0.max(self.free.max(self.now) + self.base / 2 + jitter(&mut self.random));
            let back = if quiet { 0 } else { received % 7_000_000 / 500 }; // a queue of up to 14 ms
            let at = self.last.1.max(received + self.base / 2 + back + jitter(&mut self.random));
            self.last = (received, at);
            let (sent, delivered) = (self.now, self.delivered);
            self.arrivals.push_back(Arrival { at, sent, received, end: self.nxt, lost, marked, delivered });
        }
    }

    /// Since it began.
    pub(crate) fn lasted(&self) -> Duration {
        Duration::from_micros(self.now)
    }

    /// The next ACK; how many there were.
    pub(crate) fn step(&mut self, pair: &mut Pair) -> u64 {
        self.send(pair.reference.as_ref());
        let Some(arrival) = self.arrivals.pop_front() else { return 0 };
        self.now = self.now.max(arrival.at);
        let (now, in_flight) = (Time::from_nanos(self.now * 1000), self.nxt - self.una);
        if self.episode.is_some_and(|(end, _)| arrival.end > end) {
            self.episode = None;
            let (una, nxt) = (self.una, self.nxt);
            pair.each(|law| law.on_recovered(&Recovered { now, una, nxt }));
        }
        self.una = arrival.end;
        let rtt = self.now - arrival.sent;
        self.srtt = if self.srtt == 0 { rtt } else { self.srtt - self.srtt / 8 + rtt / 8 };
        let (una, nxt) = (self.una, self.nxt);
        let received = arrival.received as i64;
        let one_way_delay = self.one_way.then_some(1000 * (received + received / DRIFT + OFFSET - arrival.sent as i64));
        if arrival.lost {
            self.lost += u64::from(MSS);
            if self.episode.is_none_or(|(_, loss)| !loss) {
                self.episode = Some((nxt, true));
                pair.each(|law| law.on_congestion(&Congestion { now, signal: Signal::Loss, una, nxt, in_flight }));
            }
            return 0;
        }
        let (delivered, at) = arrival.delivered;
        self.delivered = (self.delivered.0 + u64::from(MSS), self.now);
        let interval = Duration::from_micros(self.now - at);
        let rate = RateSample { delivered: self.delivered.0 - delivered, interval, ..RateSample::default() };
        let lost = std::mem::take(&mut self.lost);
        let (reference, port) = pair.ack(&Ack {
            now,
            packets: 1,
            bytes: MSS.into(),
            marked: arrival.marked.into(),
            rtt: Some(Duration::from_micros(rtt)),
            srtt: Duration::from_micros(self.srtt),
            one_way_delay,
            una,
            nxt,
            in_flight,
            window_limited: true,
            reducing: self.episode.is_some(),
            rate: Some(rate),
            lost,
            ..Ack::default()
        });
        self.apart += u64::from(reference != port);
        if reference == Reaction::Reduced && self.episode.is_none() {
            self.episode = Some((nxt, false));
        }
        if arrival.marked && self.episode.is_none() {
            self.episode = Some((nxt, false));
            pair.each(|law| law.on_congestion(&Congestion { now, signal: Signal::Ecn, una, nxt, in_flight }));
        }
        1
    }
}
