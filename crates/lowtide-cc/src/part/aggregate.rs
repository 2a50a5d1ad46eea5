// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several connections over one path as one flow (the Congestion Manager, RFC 3124): a law receives the ACKs of all of
//! them as those of one flow, and its window is divided among them by what they have to send.
//!
//! Sequence numbers of different connections say nothing of each other, times do. So the law's `una` is the time when
//! the latest segment left that has been acknowledged, of whichever connection, and its `nxt` is now, in microseconds.
//! The delivery rate is that of all together.

use crate::{Ack, RateSample, Time};
use std::time::Duration;

/// What a connection does with its grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Usage {
    /// It does not use it up.
    #[default]
    Modest,
    /// It would use more.
    Wants,
    /// It would, but leaves it to others.
    Yields,
    /// It takes at once what the other connections leave of the window, which it may where it is paced.
    HoldsToken,
}

impl Usage {
    const fn wants(self) -> bool {
        matches!(self, Self::Wants | Self::HoldsToken)
    }
}

/// A connection's part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Member {
    /// Segments that it may have in flight.
    pub grant: f64,
    /// Of that, in the sum of all.
    counted: f64,
    usage: Usage,
    /// Segments, as of its latest ACK, before it; none if it had no more to send.
    pub in_flight: u32,
}

/// How far all were at an ACK.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Time,
    /// When the latest segment left that had been acknowledged.
    sent: Time,
    /// Bytes so far.
    delivered: u64,
    app_limited: bool,
}

/// That delivery rates are measured from: four round trips,
const MARKS: usize = 32;
/// each with so many of them.
const SPACING: u32 = 8;

/// All connections together.
#[derive(Clone, Debug, Default)]
pub struct Aggregate {
    /// The latest ACK of a segment.
    acked: Time,
    /// The number of its connection.
    acked_of: Option<u64>,
    /// The latest ACK that followed one of another connection.
    mixed: Option<Time>,
    /// The latest time that a connection began to send after a pause.
    pub started: Time,
    reduced: Option<Time>,
    /// Segments that the connections use, or may use at once.
    granted: f64,
    /// Of that, what those use that do not use up their grant.
    modest: f64,
    /// Connections that do, or would.
    wanting: u32,
    /// Over the samples of all, nanoseconds, in eighths.
    srtt_8: u64,
    sent: Time,
    /// Bytes: a short segment takes less time on the link than another one.
    delivered: u64,
    /// Up to this count the program limited what was sent.
    app_limited: Option<u64>,
    /// Segments outside of the window that were sent in this round trip, and in the two before, the latest first.
    beside: [u32; 3],
    /// Segments of initial windows, which left at once, likewise.
    burst: u32,
    burst_before: u32,
    counts_since: Time,
    /// Numbers of marks: the latest, and the one that the latest sample began with.
    last: usize,
    from: usize,
    marks: [Mark; MARKS],
}

impl Aggregate {
    /// Segments that a connection may begin with (RFC 6928).
    pub const INITIAL: f64 = 10.0;

    /// The first ACK arrives.
    pub const fn begin(&mut self, now: Time, srtt: Duration) {
        (self.acked, self.started) = (now, now);
        self.sent = Time::from_nanos(now.as_nanos().saturating_sub(1000));
        self.srtt_8 = 8 * srtt.as_nanos() as u64;
        (self.last, self.from, self.app_limited) = (0, 0, None);
        self.marks[0] = Mark { at: now, sent: self.sent, delivered: self.delivered, app_limited: false };
    }

    /// The smoothed round-trip time.
    pub const fn srtt(&self) -> Duration {
        Duration::from_nanos(self.srtt_8 / 8)
    }

    /// What is acknowledged, on the law's scale.
    pub const fn una(&self) -> u64 {
        self.sent.as_nanos() / 1000 + 1
    }

    /// What is sent, on the law's scale.
    pub const fn nxt(now: Time) -> u64 {
        now.as_nanos() / 1000
    }

    /// Connections that would use more than they may.
    pub const fn wanting(&self) -> u32 {
        self.wanting
    }

    /// Segments that all connections use, or may use at once.
    pub const fn granted(&self) -> f64 {
        self.granted
    }

    /// The latest time that something was sent after a pause, or acknowledged.
    pub fn latest(&self) -> Time {
        self.acked.max(self.started)
    }

    /// Whether nothing has been acknowledged for so long.
    pub fn is_silent(&self, now: Time, time: Duration) -> bool {
        now - self.acked >= time
    }

    /// The delivery rate over the time since the segment left that this ACK is for, as of one flow: over the longer of
    /// what it took to send and to acknowledge (draft-ietf-ccwg-bbr, section 4.1.2.3). Where one connection alone
    /// is acknowledged, its own sample is better, and stays.
    fn rate(&mut self, now: Time, rtt: Duration) -> Option<RateSample> {
        let sent = Time::from_nanos(now.as_nanos().saturating_sub(rtt.as_nanos() as u64));
        self.from = self.from.max((self.last + 1).saturating_sub(MARKS));
        while self.from != self.last && self.marks[(self.from + 1) % MARKS].at <= sent {
            self.from += 1;
        }
        let mark = &self.marks[self.from % MARKS];
        if mark.at > sent {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - mark.delivered,
            interval: (now - mark.at).max(sent - mark.sent),
            prior_delivered: mark.delivered,
            total_delivered: self.delivered,
            app_limited: mark.app_limited,
            ..RateSample::default()
        })
    }

    /// Whether several connections have been acknowledged within a round trip.
    fn is_mixed(&self, now: Time) -> bool {
        self.mixed.is_some_and(|mixed| now - mixed <= self.srtt())
    }

    /// The ACK of the connection of this number becomes that of all.
    pub fn on_ack(&mut self, ack: &Ack, number: u64) -> Ack {
        let now = ack.now;
        self.delivered += ack.bytes;
        if ack.packets > 0 {
            if self.acked_of.is_some_and(|other| other != number) {
                self.mixed = Some(now);
            }
            (self.acked, self.acked_of) = (now, Some(number));
        }
        if let Some(rtt) = ack.rtt {
            let nanos = rtt.as_nanos() as u64;
            self.srtt_8 = if self.srtt_8 > 0 { self.srtt_8 - self.srtt_8 / 8 + nanos } else { 8 * nanos };
            self.sent = self.sent.max(Time::from_nanos(now.as_nanos().saturating_sub(nanos)));
        }
        let rate = if self.is_mixed(now) { ack.rtt.and_then(|rtt| self.rate(now, rtt)) } else { ack.rate };
        self.app_limited = self.app_limited.filter(|until| self.delivered <= *until);
        let app_limited = self.app_limited.is_some();
        if now - self.marks[self.last % MARKS].at >= self.srtt() / SPACING {
            self.last += 1;
            self.marks[self.last % MARKS] = Mark { at: now, sent: self.sent, delivered: self.delivered, app_limited };
        }
        if now - self.counts_since > self.srtt() {
            let [this, before, _] = self.beside;
            (self.beside, self.burst_before) = ([0, this, before], self.burst);
            (self.burst, self.counts_since) = (0, now);
        }
        Ack {
            srtt: self.srtt(),
            una: self.una(),
            nxt: Self::nxt(now),
            rate,
            senders: self.wanting,
            // packets that waited behind them are acknowledged up to two round trips later
            beside: self.beside[1] + self.beside[0].max(self.beside[2]),
            burst: self.burst + self.burst_before,
            ..*ack
        }
    }

    /// An ACK that is not passed on to the law.
    pub const fn on_unheard(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// A segment leaves outside of the window.
    pub const fn on_beside(&mut self) {
        self.beside[0] += 1;
    }

    /// A connection has no more to send. If none has, what is delivered from here on says little of the link.
    pub fn has_no_data(&mut self, mss: u64) {
        if self.wanting == 0 {
            // what sums of fractions lack is no segment
            self.app_limited = Some((self.delivered + (self.granted + 1e-6) as u64 * mss).max(1));
        }
    }

    /// Whether any other connection would use more.
    pub const fn others_want(&self, member: &Member) -> bool {
        self.wanting > member.usage.wants() as u32
    }

    /// Whether what a connection lost was sent after the latest reduction, since one overflow of a queue meets several
    /// connections. Alone, each is one.
    pub fn reduces(&mut self, member: &Member, now: Time) -> bool {
        let anew = !self.others_want(member) || self.reduced.is_none_or(|reduced| now - reduced > self.srtt());
        if anew {
            self.reduced = Some(now);
        }
        anew
    }

    /// So much of a connection's grant, and its use, are in the sums from now on.
    pub fn count(&mut self, member: &mut Member, counted: f64, usage: Usage) {
        let modest = |usage, counted: f64| if usage == Usage::Modest { counted } else { 0.0 };
        self.granted += counted - member.counted;
        self.modest += modest(usage, counted) - modest(member.usage, member.counted);
        self.wanting = self.wanting + u32::from(usage.wants()) - u32::from(member.usage.wants());
        (member.counted, member.usage) = (counted, usage);
    }

    /// Whether the connections use all of the window, but for what is held back for want of whole segments.
    pub fn is_full(&self, window: f64) -> bool {
        self.granted + 2.0 >= window - window / 16.0
    }

    /// A connection is in none of the sums any more.
    pub fn leave(&mut self, member: &mut Member) {
        member.in_flight = 0;
        self.count(member, 0.0, Usage::Modest);
    }

    /// What the other connections leave of the window.
    fn left(&self, member: &Member, window: f64) -> f64 {
        (window - (self.granted - member.counted)).max(0.0)
    }

    /// An equal part of what those have together that want more; nothing for one that yields.
    fn equal(&self, member: &Member, window: f64, usage: Usage) -> f64 {
        if usage == Usage::Yields {
            return 0.0;
        }
        let modest = self.modest - if member.usage == Usage::Modest { member.counted } else { 0.0 };
        let wanting = self.wanting + 1 - u32::from(member.usage.wants());
        (window - modest).max(0.0) / f64::from(wanting)
    }

    /// A connection begins: with an initial window at the most.
    pub fn join(&mut self, member: &mut Member, window: f64) {
        member.grant = 0.0;
        self.grant(member, window, 0, Usage::Wants);
        self.burst += (member.grant + 0.49) as u32; // the nearest, a half down: that is the same in fixed point
    }

    /// The part of a connection at its ACK for so many segments. It grows by what is acknowledged, as in slow start,
    /// into what the parts of others leave free. It has its equal part at once, up to an initial window. Where others
    /// would use more, a part above the equal one is reduced by half of what is acknowledged.
    pub fn grant(&mut self, member: &mut Member, window: f64, packets: u32, usage: Usage) {
        let (equal, left) = (self.equal(member, window, usage), self.left(member, window));
        let (others, packets) = (self.others_want(member), f64::from(packets));
        let grown = match usage {
            Usage::HoldsToken => left,
            Usage::Yields if others => member.grant,
            _ => member.grant + packets,
        };
        member.grant = equal.min(Self::INITIAL).max(grown.min(left));
        if member.grant > equal && others {
            member.grant = equal.max(member.grant - packets / 2.0);
        }
        let used = if usage == Usage::Modest { f64::from(member.in_flight) } else { f64::INFINITY };
        self.count(member, member.grant.min(used), usage);
    }

    /// The window of all went from one to the other at once: so does a connection's part.
    pub fn scale(&mut self, member: &mut Member, from: f64, to: f64) {
        member.grant *= to / from;
        self.count(member, member.counted.min(member.grant), member.usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn at(ms: u64) -> Time {
        Time::from_nanos(1_000_000 * ms)
    }

    fn ack(ms: u64, packets: u32, rtt_ms: u64) -> Ack {
        let rtt = Some(Duration::from_millis(rtt_ms)).filter(|rtt| !rtt.is_zero());
        Ack { now: at(ms), packets, bytes: u64::from(packets) * MSS, rtt, ..Ack::default() }
    }

    fn joined(all: &mut Aggregate, window: f64) -> Member {
        let mut member = Member::default();
        all.join(&mut member, window);
        member
    }

    #[test]
    fn segments_are_ordered_by_the_time_when_they_left() {
        let mut all = Aggregate::default();
        all.begin(at(100), Duration::from_millis(40));
        assert_eq!(all.una(), 100_000, "nothing that is sent from here on is acknowledged");
        let late = all.on_ack(&ack(150, 1, 30), 1);
        assert_eq!((late.una, late.nxt), (120_001, 150_000));
        let earlier = all.on_ack(&ack(155, 1, 50), 2);
        assert_eq!((earlier.una, earlier.nxt), (120_001, 155_000), "of a connection whose round trip is longer");
        // 40 ms, an eighth of the way to 30 ms, and of that to 50 ms
        assert_eq!(earlier.srtt, Duration::from_nanos(40_156_250));
    }

    #[test]
    fn a_delivery_rate_is_that_of_all_together() {
        let mut all = Aggregate::default();
        all.begin(at(100), Duration::from_millis(40));
        let own = Some(RateSample { delivered: 1, ..RateSample::default() });
        let alone = all.on_ack(&Ack { rate: own, ..ack(100, 1, 40) }, 1);
        assert_eq!(alone.rate, own, "where one connection is acknowledged its own sample stays");
        let mut members = [joined(&mut all, 8.0), joined(&mut all, 8.0)];
        let mut rates = Vec::new();
        for ms in 101..=400 {
            // a segment each in every 2 ms
            rates.push(all.on_ack(&ack(ms, 1, 40), 1 + ms % 2).rate);
        }
        assert_eq!(rates[..39].iter().flatten().count(), 0, "what left before it began tells nothing");
        for rate in rates.iter().skip(60).map(|rate| rate.expect("a sample")) {
            let per_second = rate.delivered as f64 / rate.interval.as_secs_f64();
            assert!((per_second - 1e6).abs() < 1e3 && rate.interval >= Duration::from_millis(40), "{rate:?}");
            assert!(!rate.app_limited);
        }
        for member in &mut members {
            all.count(member, 6.0, Usage::Modest);
        }
        all.has_no_data(MSS);
        members.iter_mut().for_each(|member| all.join(member, 8.0));
        let limited: Vec<_> =
            (401..=500).map(|ms| all.on_ack(&ack(ms, 1, 40), 1 + ms % 2).rate.expect("a sample")).collect();
        assert!(limited.iter().any(|rate| rate.app_limited) && !limited[99].app_limited);
        // an RTT after the latest ACK of another connection
        let rates = [501, 540, 541].map(|ms| all.on_ack(&Ack { rate: own, ..ack(ms, 1, 40) }, 1).rate);
        assert_eq!(rates.map(|rate| rate == own), [false, false, true]);
    }

    #[test]
    fn a_delivery_rate_counts_bytes_as_short_segments_take_less_time_on_the_link() {
        let mut all = Aggregate::default();
        all.begin(at(100), Duration::from_millis(40));
        let _members = [joined(&mut all, 8.0), joined(&mut all, 8.0)];
        for ms in 101..=300 {
            // a segment in a millisecond of 1,000 bytes, and of 100 bytes
            let ack = Ack { bytes: if ms % 2 == 0 { 100 } else { MSS }, ..ack(ms, 1, 40) };
            let rate = all.on_ack(&ack, ms % 2).rate;
            if let Some(rate) = rate {
                let per_second = rate.delivered as f64 / rate.interval.as_secs_f64();
                assert!((per_second - 550e3).abs() < 15e3, "{rate:?}");
            }
        }
    }

    #[test]
    fn grants_go_by_what_connections_have_to_send() {
        let mut all = Aggregate::default();
        // three begin at once: an initial window, half of the window, a third of it
        let mut members = [joined(&mut all, 12.0), joined(&mut all, 12.0), joined(&mut all, 12.0)];
        assert_eq!(members.map(|it| it.grant), [10.0, 6.0, 4.0]);
        for member in &mut members {
            all.grant(member, 12.0, 2, Usage::Wants);
        }
        assert_eq!((members.map(|it| it.grant), all.granted(), all.wanting()), ([4.0, 4.0, 4.0], 12.0, 3));
        // one is application-limited: the others take what it leaves, as fast as they are acknowledged
        members[0].in_flight = 1;
        all.grant(&mut members[0], 12.0, 1, Usage::Modest);
        assert_eq!((all.granted(), all.wanting()), (9.0, 2));
        all.grant(&mut members[1], 12.0, 1, Usage::Wants);
        all.grant(&mut members[2], 12.0, 9, Usage::Wants);
        assert_eq!(members.map(|it| it.grant), [4.0, 5.5, 5.5]);
        // one yields, and the one that has the token has an initial window at once, then what is left
        all.grant(&mut members[1], 12.0, 2, Usage::Yields);
        all.grant(&mut members[2], 12.0, 0, Usage::HoldsToken);
        assert_eq!(members.map(|it| it.grant), [4.0, 4.5, 10.0]);
        all.grant(&mut members[1], 12.0, 2, Usage::Yields);
        all.grant(&mut members[2], 12.0, 0, Usage::HoldsToken);
        assert_eq!(members.map(|it| it.grant), [4.0, 0.0, 11.0]);
        // and keeps no more than it has when that one has gone, as no connection would use more
        all.leave(&mut members[2]);
        all.grant(&mut members[1], 12.0, 3, Usage::Yields);
        assert_eq!((members[1].grant, all.granted(), all.wanting()), (3.0, 4.0, 0));
        members.iter_mut().for_each(|member| all.leave(member));
        assert_eq!((all.granted(), all.modest), (0.0, 0.0));
    }

    #[test]
    fn a_newcomer_has_its_equal_part_of_an_initial_window_and_grows_into_what_is_left() {
        let mut all = Aggregate::default();
        let mut members = [joined(&mut all, 60.0), joined(&mut all, 60.0)];
        all.grant(&mut members[0], 60.0, 0, Usage::HoldsToken);
        assert_eq!(members.map(|it| it.grant), [50.0, 10.0]);
        assert!(all.is_full(60.0));
        // nothing is left for it until the one that has the token makes room, a segment for two that are acknowledged
        all.grant(&mut members[1], 60.0, 4, Usage::Wants);
        assert_eq!(members[1].grant, 10.0);
        all.grant(&mut members[0], 60.0, 4, Usage::HoldsToken);
        all.grant(&mut members[1], 60.0, 4, Usage::Wants);
        assert_eq!(members.map(|it| it.grant), [48.0, 12.0]);
        // a connection without further data gives up all of its part
        all.grant(&mut members[0], 60.0, 1, Usage::Modest);
        all.grant(&mut members[1], 60.0, 1, Usage::HoldsToken);
        assert_eq!((members[1].grant, all.granted()), (60.0, 60.0));
    }

    #[test]
    fn one_overflow_is_one_reduction() {
        let mut all = Aggregate::default();
        all.begin(at(100), Duration::from_millis(40));
        let mut members = [joined(&mut all, 20.0), joined(&mut all, 20.0)];
        assert_eq!([100, 101, 140, 141].map(|ms| all.reduces(&members[1], at(ms))), [true, false, false, true]);
        all.scale(&mut members[0], 20.0, 10.0);
        assert_eq!((members[0].grant, all.granted()), (5.0, 15.0));
        all.leave(&mut members[0]);
        assert!(
            [142, 143].map(|ms| all.reduces(&members[1], at(ms))).iter().all(|reduces| *reduces),
            "alone each is one"
        );
    }

    #[test]
    fn what_was_sent_beside_and_at_once_counts_for_two_or_three_round_trips() {
        let mut all = Aggregate::default();
        all.begin(at(100), Duration::from_millis(40));
        all.on_ack(&ack(101, 1, 40), 1);
        all.on_beside();
        all.on_beside();
        joined(&mut all, 7.0);
        let heard = [120, 142, 160, 184, 200, 225].map(|ms| all.on_ack(&ack(ms, 1, 40), 1));
        assert_eq!(heard.map(|ack| (ack.beside, ack.burst)), [(2, 7), (2, 7), (2, 7), (2, 0), (2, 0), (0, 0)]);
    }
}
