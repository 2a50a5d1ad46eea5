// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections of one transfer over one path under one law: what the law knows belongs to the path, and they divide its
//! window ([`Aggregate`]). A newcomer knows the path at its first packet, one that ends hands nothing over.
//!
//! Many that fill the window together meet in the queue by chance, and hide from each other whether others are served
//! in turn. So one of them has a token: it carries what the window allows, and probes where the law only does that. The
//! others wait, with a segment now and then, as programs give up connections without progress. The token goes round.
//! Application-limited connections need none, nor do those that are new: a short connection never waits.

use crate::{
    Ack, Congestion, CongestionControl, Flow, Lost, Random, Reaction, Recovered, Restart, Sent, Signal, Stance, Time,
    Weighted,
    part::{Aggregate, Member, Usage},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How long one has the token, or is new,
const TOKEN_TIME: Duration = Duration::from_millis(500);
/// and so many round trips at the least.
const TOKEN_ROUND_TRIPS: u32 = 16;
/// Not held back for so long, and four round trips: it is application-limited.
const UNUSED: Duration = Duration::from_millis(50);
/// Between probes, at the most.
const SILENCE: Duration = Duration::from_secs(2);
/// Bytes per second of one that waits while the law probes, or knows little of the link, at the most.
const WAITING_RATE: f64 = 4000.0;
/// All that wait take this part of the link together: a program that sees less than 1,000 bytes per second may give up.
const WAITING_PART: f64 = 50.0;
/// A connection that sends less than a segment in this time is as good as dead to its program.
const FLOOR: f64 = 4.0;
/// A grant of fewer segments is a pace: a host lets half of a window go at once, and a single segment meets the
/// receiver's delayed ACK.
const PACED_BELOW: f64 = 4.0;
/// First segments of a connection that Linux does not pace (`tcp_update_skb_after_send`).
pub const UNPACED_SEGMENTS: u64 = 10;
/// A shorter round trip is not paced, as a pace is kept to a millisecond.
const PACED_ROUND_TRIP: Duration = Duration::from_millis(1);
/// A retransmission timeout is a round trip and this at the least (Linux `TCP_RTO_MIN`).
const TIMEOUT: Duration = Duration::from_millis(200);

/// A law that several connections share.
#[derive(Clone)]
pub struct SharedLaw(Arc<Mutex<Path>>);

/// What the connections share.
struct Path {
    law: Box<dyn CongestionControl>,
    all: Aggregate,
    /// Whether there was an ACK.
    begun: bool,
    /// Connections so far.
    connections: u64,
    /// The connection that has the token.
    token: Option<u64>,
    /// Without a sign of its own it has gone then.
    token_until: Time,
    /// When it got it.
    token_since: Time,
    /// Connections that wait for it.
    waiting: u32,
    /// The one of them that is next, unless it shows no sign until then.
    next: Option<u64>,
    next_until: Time,
    /// Connections that filled the window when the law last received an ACK, and when that was.
    senders: u32,
    latest_ack: Time,
    random: Random,
    mss: u64,
}

/// What is one connection's own.
struct Own {
    number: u64,
    member: Member,
    waits: bool,
    /// Segments that it has sent, of the first ones that are not paced.
    first: u64,
    /// The latest time that it could have sent more.
    limited: Time,
    /// It is new since then.
    since: Time,
}

/// One of the connections, to its transport.
struct Connection {
    path: Arc<Mutex<Path>>,
    own: Own,
    window: u64,
    pace: Option<u64>,
    burst: u64,
    longest_burst: Duration,
    takes_weight: bool,
}

impl SharedLaw {
    /// Connections of `flow`'s kind will share this law.
    pub fn new(law: Box<dyn CongestionControl>, flow: &Flow) -> Self {
        Self(Arc::new(Mutex::new(Path {
            law,
            all: Aggregate::default(),
            begun: false,
            connections: 0,
            token: None,
            token_until: Time::ZERO,
            token_since: Time::ZERO,
            waiting: 0,
            next: None,
            next_until: Time::ZERO,
            senders: 1,
            latest_ack: Time::ZERO,
            random: Random::new(flow.seed),
            mss: u64::from(flow.mss),
        })))
    }

    /// A law for one more connection. It has no part of the window until its
    /// [handshake](CongestionControl::on_established) is done.
    pub fn connect(&self) -> Box<dyn CongestionControl> {
        let mut path = lock(&self.0);
        path.connections += 1;
        let mut own = Own {
            number: path.connections,
            member: Member::default(),
            waits: false,
            first: 0,
            limited: Time::ZERO,
            since: Time::ZERO,
        };
        own.member.grant = Aggregate::INITIAL;
        let takes_weight = path.law.weighted().is_some();
        let mut connection = Connection {
            path: self.0.clone(),
            own,
            window: 0,
            pace: None,
            burst: path.law.least_burst(),
            longest_burst: path.law.longest_burst(),
            takes_weight,
        };
        connection.window = path.window_of(&connection.own);
        Box::new(connection)
    }
}

/// What a panic elsewhere has left is as good as any input of a law.
fn lock(path: &Mutex<Path>) -> MutexGuard<'_, Path> {
    path.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Path {
    /// The law's window, segments.
    fn window(&self) -> f64 {
        self.law.window() as f64 / self.mss as f64
    }

    /// Whether one connection is enough to probe the path.
    fn probes(&self) -> bool {
        self.begun && matches!(self.law.stance(), Stance::Probes { .. })
    }

    fn token_time(&self) -> Duration {
        TOKEN_TIME.max(TOKEN_ROUND_TRIPS * self.all.srtt())
    }

    fn unused(&self) -> Duration {
        UNUSED + 4 * self.all.srtt()
    }

    fn timeout(&self) -> Duration {
        self.all.srtt() + TIMEOUT
    }

    /// Whether a connection has the token, which it takes where it is free or has been with another one for long
    /// enough. `may_send`: at once; one that waits may only when its segment leaves.
    fn holds_token(&mut self, own: &Own, wants: bool, may_send: bool, now: Time) -> bool {
        let probes = self.probes();
        if self.token != Some(own.number) {
            let over = !probes && now - self.token_since > self.token_time();
            let taken = self.token.is_some() && now < self.token_until && !over;
            if !wants || !may_send || taken {
                return false;
            }
            self.token_since = now;
        }
        self.token = wants.then_some(own.number);
        self.token_until = now + self.unused() + if probes { SILENCE } else { Duration::ZERO };
        true
    }

    fn set_waits(&mut self, own: &mut Own, waits: bool) {
        self.waiting = self.waiting + u32::from(waits) - u32::from(own.waits);
        own.waits = waits;
        if !waits && self.next == Some(own.number) {
            self.next = None;
        }
    }

    /// One of those that wait is next. It sends a segment per round trip, and may take the token when one leaves. So a
    /// free token is taken within a round trip, however many wait for a part of the link.
    fn queue_up(&mut self, own: &Own, now: Time) {
        let free = self.next.is_none_or(|next| next == own.number) || now > self.next_until;
        if own.waits && free && !self.probes() {
            (self.next, self.next_until) = (Some(own.number), now + self.unused());
        }
    }

    /// At an ACK: what a connection does with its grant that has more to send than it may, or that is idle, as all that
    /// it had is sent: what comes then is as short as a new connection's, until it is not.
    fn use_of_grant(&mut self, own: &mut Own, limited: bool, idle: bool, now: Time) -> Usage {
        let probes = self.probes();
        if limited {
            own.limited = now;
        }
        let wants = !idle && (limited || (!probes && now - own.limited < self.unused()));
        if !wants {
            own.since = now;
        }
        let holds_token = self.holds_token(own, wants, !own.waits, now);
        let is_new = !own.waits && now - own.since < self.token_time();
        let usage = match wants {
            true if holds_token && self.is_paced() => Usage::HoldsToken,
            true if holds_token || is_new => Usage::Wants,
            true => Usage::Yields,
            false => Usage::Modest,
        };
        let waits = !holds_token && !idle && (probes || (usage == Usage::Yields && own.waits));
        self.set_waits(own, waits);
        self.queue_up(own, now);
        usage
    }

    /// A segment leaves of a connection that has none in flight: it waits, begins, or goes on after a pause. It may
    /// take the token with it.
    fn on_leaving(&mut self, own: &mut Own, sent: &Sent) {
        let holds_token = self.holds_token(own, sent.has_data, true, sent.now);
        if !own.waits {
            own.since = sent.now;
        }
        if holds_token || !own.waits {
            own.limited = sent.now;
        }
        let probes = self.probes();
        let waits = !holds_token && (own.waits || probes);
        self.set_waits(own, waits);
        self.queue_up(own, sent.now);
        if waits {
            self.all.on_beside();
        } else if probes {
            own.member.grant = self.window();
        } else {
            let usage = if holds_token && self.is_paced() { Usage::HoldsToken } else { Usage::Wants };
            let window = self.window();
            self.all.grant(&mut own.member, window, 0, usage);
        }
    }

    /// A connection begins.
    fn join(&mut self, own: &mut Own, now: Time) {
        (own.since, own.limited) = (now, now);
        let taken = self.token.is_some_and(|token| token != own.number);
        let waits = taken && self.probes();
        self.set_waits(own, waits);
        if waits {
            own.member.grant = PACED_BELOW;
        } else {
            let window = if self.begun { self.window() } else { Aggregate::INITIAL };
            self.all.join(&mut own.member, window);
        }
    }

    /// A connection is over.
    fn leave(&mut self, own: &mut Own) {
        self.all.leave(&mut own.member);
        self.set_waits(own, false);
        self.token = self.token.filter(|token| *token != own.number);
    }

    fn on_ack(&mut self, own: &mut Own, ack: &Ack) -> Reaction {
        let now = ack.now;
        // a paced grant does not fill the window of its connection
        let paced = !own.waits && own.member.grant < PACED_BELOW;
        let limited = if paced { ack.has_data } else { ack.window_limited };
        // what others send, paced, is no more than what arrives of one that has no more to send
        let in_flight = if ack.has_data { ack.in_flight / self.mss } else { 0 };
        own.member.in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
        if !self.begun {
            self.all.begin(now, ack.srtt);
            (self.begun, self.latest_ack) = (true, now);
        }
        let (probes, waited) = (self.probes(), own.waits);
        let fills = limited && (probes || self.all.is_full(self.window()));
        let usage = self.use_of_grant(own, if probes || waited { ack.has_data } else { limited }, !ack.has_data, now);
        let mut reaction = Reaction::None;
        if waited || own.waits {
            // the ACK of a single segment may have been kept back
            self.all.on_unheard(ack.bytes);
        } else {
            // a short segment takes less time on the link than others, and would make the base RTT too short
            let rtt = ack.rtt.filter(|_| ack.bytes >= u64::from(ack.packets) * self.mss);
            let ack = self.all.on_ack(&Ack { window_limited: fills, rtt, ..*ack }, own.number);
            (self.senders, self.latest_ack) = (ack.senders, now);
            reaction = self.law.on_ack(&ack);
        }
        let window = self.window();
        if self.probes() {
            own.member.grant = window;
            self.all.count(&mut own.member, 0.0, if ack.has_data { Usage::Wants } else { Usage::Modest });
        } else if !own.waits {
            self.all.grant(&mut own.member, window, if waited { 0 } else { ack.packets }, usage);
            if usage == Usage::Yields && own.member.grant < PACED_BELOW {
                self.set_waits(own, true);
            }
        }
        if own.waits {
            self.all.leave(&mut own.member);
        }
        if !limited && !ack.has_data {
            self.all.has_no_data(self.mss);
        }
        reaction
    }

    fn on_congestion(&mut self, own: &mut Own, congestion: &Congestion) {
        let now = congestion.now;
        let mut signal = congestion.signal;
        // one of several connections may lose its last segments: where others are acknowledged that is a loss
        if signal == Signal::Timeout && self.all.others_want(&own.member) && !self.all.is_silent(now, self.timeout()) {
            signal = Signal::Loss;
        }
        if !self.all.reduces(&own.member, now) && signal != Signal::Timeout {
            return;
        }
        let before = self.window();
        let (una, nxt) = (self.all.una(), Aggregate::nxt(now));
        self.law.on_congestion(&Congestion { signal, una, nxt, ..*congestion });
        self.all.scale(&mut own.member, before, self.window());
    }

    /// The path is idle where no connection has had anything to send for as long as a timeout takes.
    fn on_restart(&mut self, restart: &Restart) {
        let now = restart.now;
        if restart.idle < self.timeout() || !self.begun {
            return;
        }
        let idle = now - self.all.latest();
        self.all.started = now;
        if idle >= self.timeout() {
            let window = self.law.window().min(Aggregate::INITIAL as u64 * self.mss);
            let nxt = Aggregate::nxt(now);
            self.law.on_restart(&Restart { now, idle, nxt, window: Some(window) });
        }
    }

    /// Bytes that a connection may have in flight.
    fn window_of(&self, own: &Own) -> u64 {
        if own.waits {
            return self.mss; // when it leaves, its connection may take the token
        }
        // nothing paces the first segments; a probe's window is whole segments
        let least = if own.first < UNPACED_SEGMENTS || self.probes() { 1.0 } else { PACED_BELOW };
        own.member.grant.max(least) as u64 * self.mss
    }

    /// Bytes per second of all together, where the law paces: on a short path only probes.
    fn all_pace(&self) -> Option<u64> {
        let probes = self.probes();
        self.law.pacing_rate().filter(|_| probes || self.all.srtt() >= PACED_ROUND_TRIP)
    }

    /// Whether the law paces, so that a connection may use at once what it has.
    fn is_paced(&self) -> bool {
        self.all_pace().is_some()
    }

    /// Bytes per second of a connection.
    fn pace_of(&mut self, own: &Own) -> Option<u64> {
        if own.waits {
            return Some(self.waiting_pace(own));
        }
        let pace = self.all_pace();
        if self.probes() {
            return pace;
        }
        // Segments of others that have sent all may leave nothing of the window for the one with the token. It sends
        // one per RTT, since the pace of the segment that leaves now holds until the next one may.
        let least = if self.token == Some(own.number) { 1.0 } else { 0.0 };
        let (grant, window, srtt) = (own.member.grant.max(least), self.window(), self.all.srtt());
        let small = (grant < PACED_BELOW && !srtt.is_zero()).then(|| grant * self.mss as f64 / srtt.as_secs_f64());
        let rate = match pace {
            Some(pace) if grant < window => Some(pace as f64 * grant / window),
            Some(pace) => Some(pace as f64),
            None => small,
        };
        rate.map(|rate| rate.max(self.mss as f64 / FLOOR).max(1.0) as u64)
    }

    /// Bytes per second of one that waits: all of them have a small part of the link. While the law probes it has no
    /// more than it needs; at first it waits as long again as the law has probed, which may be for a few round trips
    /// only. By chance between a half and three halves, since those that began together would all send at once; while
    /// the law measures how much RTTs differ, which their segments would hide, as long as that takes at the least.
    fn waiting_pace(&mut self, own: &Own) -> u64 {
        let mss = self.mss as f64;
        if self.next == Some(own.number) && !self.probes() {
            return (mss / self.all.srtt().as_secs_f64().max(1e-6)) as u64;
        }
        let waiting = f64::from(self.waiting.max(1));
        let part = |rate: u64| rate as f64 / WAITING_PART / waiting;
        let link = self.law.link_rates().unwrap_or_default();
        let rate = part(link.at_most).min(WAITING_RATE);
        let (rate, spread) = match self.law.stance() {
            Stance::Probes { since, measures } if self.begun => {
                let (rate, pause, spread) =
                    if measures { (0.0, Stance::MEASURE_ROUND_TRIPS, 0.5) } else { (rate, 2, 1.0) };
                let waited = (self.latest_ack - since).max(pause * self.all.srtt()).as_secs_f64();
                (rate.max(mss / waited.max(1e-6)), spread)
            }
            _ => (rate.max(part(link.known)), 1.0),
        };
        let rate = rate / 2.0 + rate * self.random.uniform() * spread;
        rate.max(mss / FLOOR).max(1.0) as u64
    }

    /// Segments of a connection that leave at once at the least: pairs where its grant is a pace, and one by one among
    /// the packets of others.
    fn burst_of(&self, own: &Own) -> u64 {
        if own.waits {
            return 1;
        }
        if !self.probes() && own.member.grant < PACED_BELOW {
            return 2;
        }
        if self.senders > 1 && matches!(self.law.stance(), Stance::Fills) {
            return 1;
        }
        self.law.least_burst()
    }
}

impl Connection {
    /// Something has happened to this connection, after which it has another part and another pace.
    fn heed<T>(&mut self, event: impl FnOnce(&mut Path, &mut Own) -> T) -> T {
        let mut path = lock(&self.path);
        let result = event(&mut path, &mut self.own);
        self.window = path.window_of(&self.own);
        self.pace = path.pace_of(&self.own);
        self.burst = path.burst_of(&self.own);
        self.longest_burst = path.law.longest_burst();
        result
    }
}

impl CongestionControl for Connection {
    fn on_established(&mut self, now: Time) {
        self.heed(|path, own| path.join(own, now));
    }

    fn on_closed(&mut self) {
        self.heed(|path, own| path.leave(own));
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.own.first = (self.own.first + 1).min(UNPACED_SEGMENTS);
        // only the first segment of several, and nothing that is repaired
        if sent.in_flight == 0 && !sent.retransmission && lock(&self.path).begun {
            self.heed(|path, own| path.on_leaving(own, sent));
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        lock(&self.path).law.on_lost(lost);
    }

    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        self.heed(|path, own| path.on_ack(own, ack))
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.heed(|path, own| path.on_congestion(own, congestion));
    }

    fn on_recovered(&mut self, recovered: &Recovered) {
        self.heed(|path, _| {
            let (una, nxt) = (path.all.una(), Aggregate::nxt(recovered.now));
            path.law.on_recovered(&Recovered { now: recovered.now, una, nxt });
        });
    }

    fn on_spurious(&mut self) {
        self.heed(|path, own| {
            let before = path.window();
            path.law.on_spurious();
            let after = path.window();
            path.all.scale(&mut own.member, before, after);
        });
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.heed(|path, _| path.on_restart(restart));
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pace
    }

    fn least_burst(&self) -> u64 {
        self.burst
    }

    fn longest_burst(&self) -> Duration {
        self.longest_burst
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        if self.takes_weight { Some(self) } else { None }
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let path = lock(&self.path);
        path.law.inspect(show);
        show("grant", self.own.member.grant);
        show("waits", f64::from(u8::from(self.own.waits)));
    }
}

impl Weighted for Connection {
    fn set_weight(&mut self, weight: f64) {
        self.set_weight_and_ratio(weight, 1.0);
    }

    fn set_weight_and_ratio(&mut self, weight: f64, ratio: f64) {
        if let Some(law) = lock(&self.path).law.weighted() {
            law.set_weight_and_ratio(weight, ratio);
        }
    }
}

#[cfg(test)]
mod tests;
