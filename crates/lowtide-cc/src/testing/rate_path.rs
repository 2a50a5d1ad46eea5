// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small model of a path, for tests: one bottleneck with a constant delay, in virtual time.
//!
//! A segment that is lost is declared so when the third one after it is acknowledged. What is sent again is not told
//! from what is sent first: only the law is of interest, not the stream.

use crate::{Ack, Congestion, CongestionControl, Lost, Random, RateSample, Recovered, Restart, Sent, Signal, Time};
use std::{collections::VecDeque, time::Duration};

/// Bytes of a segment.
pub(crate) const MSS: u32 = 1000;
const SIZE: u64 = MSS as u64;

#[derive(Clone, Copy)]
struct Segment {
    seq: u64,
    sent: Time,
    acked: Time,
    lost: bool,
    marked: bool,
    first_sent: Time,
    delivered_time: Time,
    delivered: u64,
    lost_before: u64,
    marked_before: u64,
    in_flight: u64,
    app_limited: bool,
}

/// The path, and one sender that always has something to send, or has it at a rate.
pub(crate) struct Path<C> {
    pub(crate) law: C,
    pub(crate) now: Time,
    /// Bytes per second of the bottleneck.
    pub(crate) rate: f64,
    pub(crate) rtt: Duration,
    /// Segments that the bottleneck can hold.
    pub(crate) buffer: u64,
    /// The queue above which it marks, segments.
    pub(crate) mark_above: u64,
    /// The part of segments that it loses by chance.
    pub(crate) loss: f64,
    /// Bytes per second that the application has to send.
    pub(crate) app_rate: f64,
    /// Whether each loss is reported by itself, too.
    pub(crate) tells_losses: bool,
    /// The longest queue since this was set to zero, segments.
    pub(crate) peak_queue: u64,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    marked: u64,
    random: Random,
    flying: VecDeque<Segment>,
    missing: VecDeque<Segment>,
    /// When the bottleneck is done with what it holds, in nanoseconds.
    busy: f64,
    /// When the pacer and the application have the next segment.
    next_send: f64,
    next_app: f64,
    first_sent: Time,
    delivered_time: Time,
    in_flight: u64,
    nxt: u64,
    una: u64,
    srtt: Duration,
    /// Recovery ends when what was outstanding at its start has arrived,
    recovery_end: Option<u64>,
    /// and the repairs too: about when what was sent with them has.
    repaired: u64,
    reducing: bool,
    limited: bool,
}

impl<C: CongestionControl> Path<C> {
    /// A path of this many Mbit/s and milliseconds with a buffer of this many segments.
    pub(crate) fn new(law: C, mbps: f64, rtt_ms: u64, buffer: u64) -> Self {
        Self {
            law,
            now: Time::ZERO + Duration::from_secs(100), // laws must not take the origin for their start
            rate: mbps * 125_000.0,
            rtt: Duration::from_millis(rtt_ms),
            buffer,
            mark_above: u64::MAX,
            loss: 0.0,
            app_rate: f64::INFINITY,
            tells_losses: true,
            peak_queue: 0,
            delivered: 0,
            lost: 0,
            marked: 0,
            random: Random::new(1),
            flying: VecDeque::new(),
            missing: VecDeque::new(),
            busy: 0.0,
            next_send: 0.0,
            next_app: 0.0,
            first_sent: Time::ZERO,
            delivered_time: Time::ZERO,
            in_flight: 0,
            nxt: 0,
            una: 0,
            srtt: Duration::ZERO,
            recovery_end: None,
            repaired: 0,
            reducing: false,
            limited: false,
        }
    }

    /// One of the law's inner values.
    pub(crate) fn show(&self, name: &str) -> f64 {
        let mut value = f64::NAN;
        self.law.inspect(&mut |key, shown| {
            if key == name {
                value = shown;
            }
        });
        value
    }

    /// Runs for so long; `each` is called after every ACK, until it says stop. Returns whether it did.
    pub(crate) fn run_until(&mut self, time: Duration, mut each: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + time;
        loop {
            let may_send = self.in_flight + SIZE <= self.law.window();
            self.limited |= !may_send;
            let send = Time::from_nanos(self.next_send.max(self.next_app) as u64).max(self.now);
            let ack = self.flying.front().map(|segment| segment.acked);
            match ack {
                Some(ack) if !may_send || ack <= send => {
                    if ack > end {
                        break;
                    }
                    self.now = ack;
                    if let Some(segment) = self.flying.pop_front()
                        && !segment.lost
                    {
                        self.on_ack(&segment);
                        if each(self) {
                            return true;
                        }
                    }
                }
                None if !may_send => self.time_out(),
                _ if send > end => break,
                _ => {
                    self.now = send;
                    self.send();
                }
            }
        }
        self.now = end;
        false
    }

    pub(crate) fn run(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Runs for so long and returns the rate at which it delivered, Mbit/s.
    pub(crate) fn throughput(&mut self, time: Duration) -> f64 {
        let before = self.delivered;
        self.run(time);
        (self.delivered - before) as f64 * 8e-6 / time.as_secs_f64()
    }

    /// Nothing is sent for so long.
    pub(crate) fn idle(&mut self, time: Duration) {
        let restart = self.now + time;
        self.next_app = restart.as_nanos() as f64; // the last ACKs arrive, nothing more is sent
        self.run(time - Duration::from_nanos(1));
        assert_eq!(self.in_flight, 0);
        self.law.on_restart(&Restart { now: restart, idle: time, nxt: self.nxt, window: None });
        self.now = restart;
    }

    fn send(&mut self) {
        if self.in_flight == 0 {
            (self.first_sent, self.delivered_time) = (self.now, self.now);
        }
        let now = self.now.as_nanos() as f64;
        self.next_send = now + 1e9 * SIZE as f64 / self.law.pacing_rate().map_or(1e12, |rate| rate as f64);
        let app_limited = self.app_rate.is_finite();
        if app_limited {
            self.next_app = self.next_app.max(now - 1e7) + 1e9 * SIZE as f64 / self.app_rate;
        }
        let start = self.busy.max(now);
        let queue = ((start - now) * self.rate / 1e9 / SIZE as f64) as u64;
        let lost = queue >= self.buffer || self.random.uniform() < self.loss;
        if !lost {
            self.peak_queue = self.peak_queue.max(queue);
            self.busy = start + 1e9 * SIZE as f64 / self.rate;
        }
        let sent = Sent {
            now: self.now,
            bytes: SIZE,
            in_flight: self.in_flight,
            nxt: self.nxt + SIZE,
            retransmission: false,
            app_limited,
            has_data: !app_limited,
        };
        self.law.on_sent(&sent);
        self.in_flight += SIZE;
        self.flying.push_back(Segment {
            seq: self.nxt,
            sent: self.now,
            acked: Time::from_nanos(self.busy.max(now) as u64) + self.rtt,
            lost,
            marked: queue > self.mark_above,
            first_sent: self.first_sent,
            delivered_time: self.delivered_time,
            delivered: self.delivered,
            lost_before: self.lost,
            marked_before: self.marked,
            in_flight: self.in_flight,
            app_limited,
        });
        self.nxt += SIZE;
        if lost {
            self.missing.push_back(*self.flying.back().unwrap());
        }
    }

    fn on_ack(&mut self, segment: &Segment) {
        let now = self.now;
        let in_flight = self.in_flight;
        let lost = self.detect_losses(segment);
        let marked = u64::from(segment.marked) * SIZE;
        self.delivered += SIZE;
        self.marked += marked;
        self.delivered_time = now;
        self.first_sent = segment.sent;
        self.in_flight -= SIZE;
        let rtt = now - segment.sent;
        self.srtt = if self.srtt.is_zero() { rtt } else { (7 * self.srtt + rtt) / 8 };
        self.una = segment.seq + SIZE;
        let limited = std::mem::replace(&mut self.limited, false);
        let ack = Ack {
            now,
            packets: 1,
            bytes: SIZE,
            marked: u32::from(segment.marked),
            rtt: Some(rtt),
            srtt: self.srtt,
            una: self.una,
            nxt: self.nxt,
            in_flight,
            window_limited: limited,
            reducing: self.reducing,
            lost,
            rate: Some(RateSample {
                delivered: self.delivered - segment.delivered,
                interval: (segment.sent - segment.first_sent).max(now - segment.delivered_time),
                prior_delivered: segment.delivered,
                total_delivered: self.delivered,
                in_flight_at_send: segment.in_flight,
                lost_since_send: self.lost - segment.lost_before,
                marked_since_send: self.marked - segment.marked_before,
                app_limited: segment.app_limited,
            }),
            ..Ack::default()
        };
        let _ = self.law.on_ack(&ack);
        if lost > 0 && self.recovery_end.is_none() {
            self.recovery_end = Some(self.nxt);
            self.reducing = true;
            self.law.on_congestion(&self.congestion(Signal::Loss));
        }
        if self.recovery_end.is_some_and(|end| self.una >= end.max(self.repaired)) {
            self.recovery_end = None;
            self.reducing = false;
            self.law.on_recovered(&Recovered { now, una: self.una, nxt: self.nxt });
        }
    }

    pub(crate) fn congestion(&self, signal: Signal) -> Congestion {
        Congestion { now: self.now, signal, una: self.una, nxt: self.nxt, in_flight: self.in_flight }
    }

    /// The retransmission timer: all that is out is lost.
    fn time_out(&mut self) {
        self.now = self.now + 4 * self.rtt;
        while let Some(missing) = self.missing.pop_front() {
            self.declare_lost(&missing);
        }
        self.recovery_end = Some(self.nxt);
        self.reducing = false;
        self.law.on_congestion(&self.congestion(Signal::Timeout));
    }

    fn declare_lost(&mut self, missing: &Segment) {
        self.lost += SIZE;
        if self.recovery_end.is_none_or(|end| missing.seq < end) {
            self.repaired = self.nxt;
        }
        self.in_flight -= SIZE;
        if self.tells_losses {
            self.law.on_lost(&Lost {
                now: self.now,
                sent: missing.sent,
                bytes: SIZE,
                in_flight_at_send: missing.in_flight,
                lost_since_send: self.lost - missing.lost_before,
                app_limited: missing.app_limited,
            });
        }
    }

    /// Declares lost what was sent three segments before this one, or earlier. Returns the bytes.
    fn detect_losses(&mut self, acked: &Segment) -> u64 {
        let before = self.lost;
        while let Some(missing) = self.missing.front().copied().filter(|lost| lost.seq + 3 * SIZE <= acked.seq) {
            self.missing.pop_front();
            self.declare_lost(&missing);
        }
        self.lost - before
    }
}
