// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transport in a few lines.

use crate::{Ack, Congestion, CongestionControl, Flow, Law, Reaction, Recovered, Restart, Signal, Time};
use std::time::Duration;

const MSS: u64 = 1000;

/// A flow whose whole window is acknowledged by one ACK, so that each ACK is a round.
pub(super) struct Driver {
    pub(super) law: Box<dyn CongestionControl>,
    now: Time,
    pub(super) una: u64,
    nxt: u64,
    pub(super) reducing: bool,
}

impl Driver {
    pub(super) fn seeded(law: &str, seed: u64) -> Self {
        let law = law.parse::<Law>().unwrap().build(&Flow { mss: MSS as u32, initial_window: 100, seed });
        Self { law, now: Time::from_nanos(1_000_000_000), una: 0, nxt: 1, reducing: false }
    }

    pub(super) fn new(law: &str) -> Self {
        Self::seeded(law, 1)
    }

    /// A variant with these further parameters.
    pub(super) fn of(variant: &str, rest: &str) -> Self {
        let comma = if rest.is_empty() { "" } else { "," };
        Self::new(&format!("cdg:variant={variant}{comma}{rest}"))
    }

    /// Out of slow start, at a window of 50.
    pub(super) fn in_avoidance(mut self) -> Self {
        self.congestion(Signal::Loss);
        self.recovered();
        assert_eq!(self.cwnd(), 50.0);
        self
    }

    pub(super) fn ack(&self, rtt: Duration) -> Ack {
        let packets = self.cwnd().round().max(2.0) as u32;
        Ack {
            now: self.now,
            packets,
            bytes: u64::from(packets) * MSS,
            rtt: Some(rtt),
            srtt: rtt,
            una: self.una,
            nxt: self.nxt,
            window_limited: true,
            reducing: self.reducing,
            ..Ack::default()
        }
    }

    pub(super) fn step(&mut self) {
        // A round of a whole number of milliseconds, so that a millisecond clock reads no noise.
        self.now = self.now + Duration::from_millis(100);
        self.una = self.nxt + 1;
        self.nxt = self.una + 1000;
    }

    /// A round with this RTT in milliseconds.
    pub(super) fn round(&mut self, rtt_ms: f64) -> Reaction {
        self.step();
        self.law.on_ack(&self.ack(Duration::from_nanos((rtt_ms * 1e6) as u64)))
    }

    /// A round with the transport's episode: it begins with a reduction, and ends one round later.
    pub(super) fn live(&mut self, rtt_ms: f64) {
        if self.round(rtt_ms) == Reaction::Reduced {
            self.reducing = true;
        } else if self.reducing {
            self.recovered();
        }
    }

    pub(super) fn rounds(&mut self, rtts: &[f64]) {
        for rtt in rtts {
            let _ = self.round(*rtt);
        }
    }

    pub(super) fn congestion(&mut self, signal: Signal) {
        self.law.on_congestion(&Congestion { now: self.now, signal, una: self.una, nxt: self.nxt, in_flight: 0 });
    }

    pub(super) fn recovered(&mut self) {
        self.reducing = false;
        self.una = self.nxt;
        self.law.on_recovered(&Recovered { now: self.now, una: self.una, nxt: self.nxt });
    }

    pub(super) fn restart(&mut self) {
        let window = Some(self.law.window());
        self.law.on_restart(&Restart { now: self.now, idle: Duration::from_secs(9), nxt: self.nxt, window });
    }

    pub(super) fn cwnd(&self) -> f64 {
        self.law.window() as f64 / MSS as f64
    }

    pub(super) fn ssthresh(&self) -> f64 {
        self.law.ssthresh().unwrap() as f64 / MSS as f64
    }

    pub(super) fn probe(&self, name: &str) -> f64 {
        let mut found = None;
        self.law.inspect(&mut |shown, value| {
            if shown == name {
                found = Some(value);
            }
        });
        found.unwrap()
    }
}
