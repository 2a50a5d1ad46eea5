// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small transport that applies operations to a law and never breaks the rules of the interface.

use crate::{allocations, limits::Limits};
use lowtide_cc::{
    Ack, Actuator, Congestion, CongestionControl, EcnUse, Flow, Law, Lost, RateSample, Reaction, Recovered, Restart,
    Sent, Signal, Time,
};
use std::{collections::VecDeque, time::Duration};

pub(crate) const MSS: u64 = 1000;
/// The receiver's window, segments.
const RECEIVE_WINDOW: usize = 512;
/// No law may reach this window, segments: it may not grow while it is not used, and so not far beyond the receiver's.
const SANE: u64 = 64 * RECEIVE_WINDOW as u64;

/// One step of a transport's life. What is not possible at its time does nothing, or as much of it as is possible.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// The application writes this many segments; they go as far as the windows allow, retransmissions first.
    Send(usize),
    /// The oldest segments in flight are acknowledged, cumulatively up to the first hole, by one ACK.
    Ack(usize),
    /// Some segments are overtaken by others, which are acknowledged selectively.
    Sack { late: usize, segments: usize },
    /// Some segments are found lost by an ACK for later ones.
    Loss { lost: usize, segments: usize },
    /// An ACK for segments of which some, or with classic ECN all, are marked.
    Mark { marked: usize, segments: usize },
    /// The transport makes up a signal.
    Phantom,
    /// The retransmission timer fires.
    Timeout,
    /// The last loss or timeout turns out to have been none.
    Spurious,
    /// Everything is acknowledged; then nothing is sent for so many milliseconds.
    Idle { ms: u64, validate: bool },
    /// Nothing happens for so many microseconds; whatever is in flight is late by as much.
    Wait(u64),
    /// The path's round-trip time is now so many milliseconds.
    RttChange(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Lost,
    Delivered,
}

/// A segment between `una` and `nxt`, with what its rate sample needs.
#[derive(Clone, Copy, Debug)]
struct Segment {
    fate: Fate,
    sent: Time,
    retransmission: bool,
    first_sent: Time,
    delivered_time: Time,
    totals: Totals,
    in_flight: u64,
    app_limited: bool,
}

/// Bytes since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    delivered: u64,
    lost: u64,
    marked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Cwr,
    Recovery,
    Timeout,
}

pub(crate) struct Transport {
    control: Box<dyn CongestionControl>,
    limits: Limits,
    ecn: EcnUse,
    now: Time,
    una: u64,
    segments: VecDeque<Segment>,
    rtt: Duration,
    least_rtt: Duration,
    srtt: Duration,
    first_sent: Time,
    delivered_time: Time,
    totals: Totals,
    /// Until so many bytes are delivered, rates are the application's.
    app_limited: u64,
    /// The present episode and the `snd_nxt` at its start.
    episode: Option<(Kind, u64)>,
    /// The window before the last loss or timeout, as long as that can be taken back.
    undo: Option<u64>,
    /// The `snd_nxt` when the window last kept the sender from sending.
    limited: Option<u64>,
    /// The window after each call.
    pub(crate) windows: Vec<u64>,
    /// The greatest of them before the present call.
    greatest: u64,
}

impl Transport {
    /// `steering`: an actuator and a weight, if the law takes them.
    pub(crate) fn new(law: &Law, steering: Option<&(Actuator, f64)>, seed: u64) -> Self {
        let rtt = Duration::from_millis(20);
        let flow = Flow { mss: MSS as u32, initial_window: 10, seed };
        let weighted = steering.and_then(|(actuator, _)| law.build_weighted(&flow, actuator).ok());
        let mut control = weighted.unwrap_or_else(|| law.build(&flow));
        if let (Some((_, weight)), Some(weighted)) = (steering, control.weighted()) {
            weighted.set_weight(*weight);
        }
        Self {
            control,
            limits: Limits::of(law),
            ecn: law.ecn_use(),
            now: Time::from_nanos(1_000_000_000),
            una: 0,
            segments: VecDeque::new(),
            rtt,
            least_rtt: rtt,
            srtt: Duration::ZERO,
            first_sent: Time::ZERO,
            delivered_time: Time::ZERO,
            totals: Totals::default(),
            app_limited: 0,
            episode: None,
            undo: None,
            limited: None,
            windows: Vec::new(),
            greatest: 0,
        }
    }

    pub(crate) fn window(&self) -> u64 {
        self.control.window()
    }

    pub(crate) fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Send(segments) => self.send(segments),
            Operation::Ack(segments) => self.acknowledge(0, 0, segments, 0),
            Operation::Sack { late, segments } => self.acknowledge(0, late, segments, 0),
            Operation::Loss { lost, segments } => self.acknowledge(lost, 0, segments, 0),
            Operation::Mark { marked, segments } => self.acknowledge(0, 0, segments, marked),
            Operation::Phantom => {
                if self.episode.is_none() {
                    self.congestion(Signal::Phantom, self.in_flight());
                }
            }
            Operation::Timeout => self.timeout(),
            Operation::Spurious => self.spurious(),
            Operation::Idle { ms, validate } => self.idle(Duration::from_millis(ms), validate),
            Operation::Wait(us) => self.now = self.now + Duration::from_micros(us),
            Operation::RttChange(ms) => {
                self.rtt = Duration::from_millis(ms);
                self.least_rtt = self.least_rtt.min(self.rtt);
            }
        }
    }

    /// A time without any trouble and with enough to send, at the least delay that the path has ever had: until the
    /// window is above `goal` bytes, or for 60 round trips and, since some laws grow by the clock, a minute. Returns
    /// whether it got there.
    pub(crate) fn grows_above(&mut self, goal: u64) -> bool {
        self.rtt = self.least_rtt;
        let end = self.now + (60 * self.rtt).max(Duration::from_secs(60));
        self.send(RECEIVE_WINDOW);
        // Half of the ACKs are for one segment, half of them for two.
        for n in 1.. {
            if self.window() > goal || self.now > end {
                break;
            }
            self.acknowledge(0, 0, 1 + n % 2, 0);
            self.send(RECEIVE_WINDOW);
        }
        self.window() > goal
    }

    fn nxt(&self) -> u64 {
        self.una + MSS * self.segments.len() as u64
    }

    fn in_flight(&self) -> u64 {
        MSS * self.segments.iter().filter(|segment| segment.fate == Fate::InFlight).count() as u64
    }

    fn reducing(&self) -> bool {
        matches!(self.episode, Some((Kind::Cwr | Kind::Recovery, _)))
    }

    /// Calls the law, which must not allocate, and looks at what can be seen of it.
    fn call<T>(&mut self, f: impl FnOnce(&mut dyn CongestionControl) -> T) -> T {
        let control = &mut self.control;
        self.greatest = self.greatest.max(control.window());
        let (value, allocations) = allocations::during(|| f(control.as_mut()));
        assert_eq!(allocations, 0, "the law allocated");
        let window = control.window();
        assert!((1..=SANE * MSS).contains(&window), "window {window}");
        assert_ne!(control.ssthresh(), Some(0));
        assert_ne!(control.pacing_rate(), Some(0));
        control.inspect(&mut |name, value| assert!(!value.is_nan(), "{name} is not a number"));
        self.windows.push(window);
        value
    }

    fn send(&mut self, segments: usize) {
        for left in (0..segments).rev() {
            let in_flight = self.in_flight();
            // A window below one segment lets single segments through.
            if in_flight > 0 && in_flight + MSS > self.window() {
                self.limited = Some(self.nxt());
                return;
            }
            self.now = self.now + Duration::from_micros(1);
            if in_flight == 0 {
                (self.first_sent, self.delivered_time) = (self.now, self.now);
            }
            let lost = self.segments.iter_mut().position(|segment| segment.fate == Fate::Lost);
            if lost.is_none() && self.segments.len() == RECEIVE_WINDOW {
                return;
            }
            let segment = Segment {
                fate: Fate::InFlight,
                sent: self.now,
                retransmission: lost.is_some(),
                first_sent: self.first_sent,
                delivered_time: self.delivered_time,
                totals: self.totals,
                in_flight: in_flight + MSS,
                app_limited: self.totals.delivered < self.app_limited,
            };
            match lost {
                Some(n) => self.segments[n] = segment,
                None => self.segments.push_back(segment),
            }
            let sent = Sent {
                now: self.now,
                bytes: MSS,
                in_flight,
                nxt: self.nxt(),
                retransmission: lost.is_some(),
                app_limited: left == 0,
                has_data: left > 0,
            };
            self.call(|control| control.on_sent(&sent));
        }
        self.app_limited = self.totals.delivered + self.in_flight();
    }

    /// One ACK. Of the segments in flight, in the order in which they were sent, some are lost, some are late, and then
    /// as many as `count` have been delivered, the newest `marked` of them with CE.
    fn acknowledge(&mut self, lost: usize, late: usize, count: usize, marked: usize) {
        let mut order: Vec<usize> =
            (0..self.segments.len()).filter(|&n| self.segments[n].fate == Fate::InFlight).collect();
        order.sort_by_key(|&n| self.segments[n].sent);
        let delivered = &order[order.len().min(lost + late)..order.len().min(lost + late + count)];
        let Some(&newest) = delivered.last() else { return };
        let newest = self.segments[newest];
        self.now = (self.now + Duration::from_micros(1)).max(newest.sent + self.rtt);
        let in_flight = self.in_flight();
        let marked = match self.ecn {
            EcnUse::Off => 0,
            EcnUse::Classic => delivered.len() * usize::from(marked > 0),
            EcnUse::Accurate | EcnUse::L4s => marked.min(delivered.len()),
        };
        for &n in &order[..lost] {
            self.lose(n);
        }
        for &n in delivered {
            self.segments[n].fate = Fate::Delivered;
        }
        let (packets, bytes) = (delivered.len(), MSS * delivered.len() as u64);
        self.totals.delivered += bytes;
        self.totals.marked += MSS * marked as u64;
        while self.segments.front().is_some_and(|segment| segment.fate == Fate::Delivered) {
            self.segments.pop_front();
            self.una += MSS;
        }
        let round_trip = self.now - newest.sent;
        let rtt = (!newest.retransmission).then_some(round_trip);
        if let Some(rtt) = rtt {
            self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
        }
        self.end_episode();
        let ack = Ack {
            now: self.now,
            packets: packets as u32,
            bytes,
            marked: marked as u32,
            rtt,
            srtt: self.srtt,
            // All of the queue is on the way there; the clocks differ by an hour.
            one_way_delay: Some((round_trip - self.least_rtt / 2).as_nanos() as i64 - 3_600_000_000_000),
            una: self.una,
            nxt: self.nxt(),
            in_flight,
            window_limited: self.limited.is_some_and(|limited| self.una <= limited),
            reducing: self.reducing(),
            sacked: self.segments.iter().any(|segment| segment.fate == Fate::Delivered),
            lost: MSS * lost as u64,
            rate: self.rate(&newest),
            has_data: true,
            ..Ack::default()
        };
        self.first_sent = newest.sent;
        self.delivered_time = self.now;
        let before = self.window();
        let reaction = self.call(|control| control.on_ack(&ack));
        self.limits.check_ack(&ack, reaction, before, self.window(), self.greatest);
        if reaction == Reaction::Reduced {
            self.episode = Some((Kind::Cwr, self.nxt()));
            self.undo = None;
        }
        if lost > 0 && !matches!(self.episode, Some((Kind::Recovery | Kind::Timeout, _))) {
            self.congestion(Signal::Loss, in_flight);
        } else if marked > 0 && self.episode.is_none() {
            self.congestion(Signal::Ecn, in_flight);
        }
    }

    fn rate(&self, newest: &Segment) -> Option<RateSample> {
        let interval = (newest.sent - newest.first_sent).max(self.now - newest.delivered_time);
        (!interval.is_zero()).then_some(RateSample {
            delivered: self.totals.delivered - newest.totals.delivered,
            interval,
            prior_delivered: newest.totals.delivered,
            total_delivered: self.totals.delivered,
            in_flight_at_send: newest.in_flight,
            lost_since_send: self.totals.lost - newest.totals.lost,
            marked_since_send: self.totals.marked - newest.totals.marked,
            app_limited: newest.app_limited,
        })
    }

    fn end_episode(&mut self) {
        // A mere reduction ends strictly, as in Linux, or with all that there is.
        let over = self.episode.is_some_and(|(kind, end)| match kind {
            Kind::Cwr => self.una > end || self.segments.is_empty(),
            Kind::Recovery | Kind::Timeout => self.una >= end,
        });
        if over {
            self.recovered();
        }
    }

    fn recovered(&mut self) {
        self.episode = None;
        let recovered = Recovered { now: self.now, una: self.una, nxt: self.nxt() };
        self.call(|control| control.on_recovered(&recovered));
    }

    fn congestion(&mut self, signal: Signal, in_flight: u64) {
        let before = self.window();
        let congestion = Congestion { now: self.now, signal, una: self.una, nxt: self.nxt(), in_flight };
        self.call(|control| control.on_congestion(&congestion));
        self.limits.check_other(before, self.window(), self.greatest);
        let kind = match signal {
            Signal::Loss => Kind::Recovery,
            Signal::Ecn | Signal::Phantom => Kind::Cwr,
            Signal::Timeout => Kind::Timeout,
        };
        self.undo = matches!(kind, Kind::Recovery | Kind::Timeout).then_some(before);
        self.episode = Some((kind, self.nxt()));
    }

    fn timeout(&mut self) {
        if self.segments.is_empty() {
            return;
        }
        self.now = self.now + self.srtt + Duration::from_millis(200);
        let known = self.episode.is_some_and(|(kind, _)| kind == Kind::Timeout);
        let in_flight = self.in_flight();
        for n in 0..self.segments.len() {
            if self.segments[n].fate == Fate::InFlight {
                self.lose(n);
            }
        }
        if !known {
            self.congestion(Signal::Timeout, in_flight);
        }
    }

    /// The segment is declared lost, which is no reason to grow.
    fn lose(&mut self, n: usize) {
        self.segments[n].fate = Fate::Lost;
        self.totals.lost += MSS;
        let Segment { sent, in_flight, totals, app_limited, .. } = self.segments[n];
        let lost_since_send = self.totals.lost - totals.lost;
        let lost = Lost { now: self.now, sent, bytes: MSS, in_flight_at_send: in_flight, lost_since_send, app_limited };
        let before = self.window();
        self.call(|control| control.on_lost(&lost));
        self.limits.check_other(before, self.window(), self.greatest);
    }

    fn spurious(&mut self) {
        let Some(before) = self.undo.take() else { return };
        for segment in self.segments.iter_mut().filter(|segment| segment.fate == Fate::Lost) {
            segment.fate = Fate::InFlight;
        }
        let reduced = self.window();
        self.call(|control| control.on_spurious());
        self.limits.check_other(before.max(reduced), self.window(), self.greatest);
        if self.episode.is_some() {
            self.recovered();
        }
    }

    fn idle(&mut self, idle: Duration, validate: bool) {
        while !self.segments.is_empty() {
            self.send(RECEIVE_WINDOW);
            self.acknowledge(0, 0, RECEIVE_WINDOW, 0);
        }
        self.now = self.now + idle;
        let before = self.window();
        // RFC 2861: half of it for each retransmission timeout.
        let timeouts = idle.as_millis() / 200;
        let initial = before.min(10 * MSS);
        let window = validate.then(|| (before >> timeouts.min(40)).max(initial));
        let restart = Restart { now: self.now, idle, nxt: self.nxt(), window };
        self.call(|control| control.on_restart(&restart));
        self.limits.check_other(before.max(10 * MSS), self.window(), self.greatest);
        self.undo = None;
    }
}
