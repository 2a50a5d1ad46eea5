// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP Prague (`L4STeam/linux`, `net/ipv4/tcp_prague.c`, v0.6 and v0.7; RFC 9331, section 4): DCTCP for the Internet.
//!
//! With `accel` and `overload` also the two modes for transients of J. Misund ("Delay based additive increase for
//! scalable congestion controls"); the paper built on v0.6.
//!
//! Notable differences from the source:
//! - Real numbers instead of fixed point; what is rounded there by half a unit is not rounded here.
//! - The window is reduced at once and the transport walks to it by PRR; there it falls by a segment per ACK.
//! - After a timeout, slow start from one segment to half of the window (RFC 5681); there the window falls to two, and
//!   slow start ends at an older threshold.
//! - v0.7 chooses smaller segments below 1 Mbit/s and limits bursts to 250 us, v0.6 too: both belong to the transport.
//! - v0.7 has no other [`RttMode`] than `rate`; here all are available.
//! - A law does not know whether ECN was negotiated. With `ecn=off` it is Reno, as Prague is then.
//! - When steered by rate, the window follows the rate no faster than in slow start, and both are continuous when that
//!   begins: a long-term average of RTTs converts one into the other, where the source starts with the latest.
//!
//! A phantom signal ([`Signal::Phantom`]) lowers the window by `alpha`, too. Its source must count it in
//! [`Ack::marked`], else `alpha` does not include it.

mod classic;
mod parameters;
mod rate;
mod rtt;

#[cfg(test)]
mod tests;

pub use parameters::{AlphaMode, CwndMode, Parameters, Variant};
pub use rtt::RttMode;

use crate::{
    Ack, Congestion, CongestionControl, Flow, Reaction, Recovered, Restart, Signal, Time, Weighted,
    part::{MarkAverage, Marks, Phase, Rounds, SlowStart, Transients, Window},
};
use classic::ClassicDetector;
use rate::Rate;

/// Bytes that IP and TCP with timestamps add to a segment's payload.
const HEADERS: f64 = 52.0;

/// v0.7 counts the additive increase in segments of so many bytes with headers (`MTU_SYS`).
const MTU_SYS: f64 = 1500.0;

/// Segments per second without a `min_rate`, since a rate that is only halved would vanish: one in the longest timeout.
const LEAST_RATE: f64 = 1.0 / 60.0;

/// The least window that a transport can use, segments.
const MIN_CWND: f64 = 2.0;

struct Prague {
    parameters: Parameters,
    window: Window,
    /// Factor of the additive increase of v0.7, as segments differ in size.
    size: f64,
    rate: Rate,
    average: MarkAverage,
    marks: Marks,
    /// The period between two updates of `alpha`, in sequence numbers.
    period: Rounds,
    /// Periods since slow start.
    periods: u32,
    updated: Option<Time>,
    reduced: Option<Time>,
    saw_ce: bool,
    /// Whether the first signal has arrived, which halves the window if `alpha` starts at 0.
    halved: bool,
    /// From a loss to the end of its recovery.
    in_loss: bool,
    /// Window and threshold before the latest reduction, if that was for a loss or a timeout.
    before_loss: Option<(f64, f64)>,
    classic: Option<ClassicDetector>,
    transients: Transients,
    /// Smoothed RTT, seconds.
    srtt: f64,
    pacing: Option<f64>,
}

impl Prague {
    fn new(parameters: Parameters, flow: &Flow) -> Self {
        let mtu = f64::from(flow.mss) + HEADERS;
        let alpha = if parameters.alpha_mode == AlphaMode::One { 1.0 } else { 0.0 };
        let least = (parameters.min_rate * 1e3 / 8.0 / f64::from(flow.mss)).max(LEAST_RATE);
        Self {
            window: Window::new(flow),
            size: if parameters.variant == Variant::V07 { MTU_SYS / mtu } else { 1.0 },
            rate: Rate::new(parameters.cwnd_mode, parameters.cwnd_transit * MTU_SYS / mtu, least),
            average: MarkAverage::new(alpha, parameters.gain),
            marks: Marks::default(),
            period: Rounds::default(),
            periods: 0,
            updated: None,
            reduced: None,
            saw_ce: false,
            halved: parameters.alpha_mode == AlphaMode::One,
            in_loss: false,
            before_loss: None,
            classic: parameters.fallback.then(ClassicDetector::new),
            transients: Transients::new(parameters.acceleration_mode(), parameters.overload_mode()),
            srtt: 0.0,
            pacing: None,
            parameters,
        }
    }

    fn target(&self) -> f64 {
        self.parameters.mode.target(self.parameters.target.as_secs_f64(), self.srtt)
    }

    /// Whether the flow is old enough to be independent of its RTT.
    fn is_independent(&self) -> bool {
        self.parameters.mode != RttMode::None
            && !self.window.in_slow_start()
            && self.periods >= self.parameters.transition
    }

    fn steers_by_rate(&self) -> bool {
        self.rate.is_chosen() && self.is_independent() && self.srtt > 0.0
    }

    /// The additive increase, segments per RTT.
    fn increase(&self) -> f64 {
        let scaled = self.periods >= self.parameters.transition
            && self.srtt > 0.0
            && self.srtt <= self.parameters.max_rtt.as_secs_f64();
        if scaled { self.parameters.mode.increase(self.parameters.target.as_secs_f64(), self.srtt) } else { 1.0 }
    }

    /// Whether the time since an event in seconds is shorter than the target.
    fn is_within_target(&self, since: Option<Time>, now: Time) -> bool {
        since.is_some_and(|since| (now - since).as_secs_f64() < self.target())
    }

    /// Additive increase by unmarked segments, also during a reduction (note 4), but not in loss recovery.
    fn grow(&mut self, ack: &Ack) {
        let unmarked = ack.packets.saturating_sub(ack.marked);
        if unmarked == 0 || self.in_loss || !ack.window_limited {
            return;
        }
        let acked = SlowStart::Standard.on_ack(&Ack { packets: unmarked, ..*ack }, &mut self.window);
        let segments = acked * self.size * self.transients.scale();
        if self.steers_by_rate() {
            self.rate.grow(segments, self.target().max(self.srtt));
            let follows = self.rate.window().min(self.window.cwnd + acked);
            self.window.cwnd = self.window.cwnd.max(follows);
        } else {
            self.window.cwnd += (segments * self.increase() / self.window.cwnd).min(acked);
        }
    }

    /// `alpha` is updated once per RTT; once independent, not before the target RTT has passed.
    fn update_alpha(&mut self, ack: &Ack) {
        let early = self.is_independent() && self.is_within_target(self.updated, ack.now);
        if early || !self.period.next(ack.una, ack.nxt) {
            return;
        }
        let fraction = self.marks.take();
        if self.saw_ce {
            if let Some(classic) = &mut self.classic {
                classic.update();
            }
            self.average.update(fraction);
            self.updated = Some(ack.now);
        }
        self.rate.on_round(self.srtt);
        if !self.window.in_slow_start() {
            self.periods = self.periods.saturating_add(1);
        }
    }

    /// The least window after a reduction, segments.
    fn floor(&self) -> f64 {
        match self.parameters.variant {
            Variant::V06 => MIN_CWND,
            Variant::V07 => (self.rate.least() * self.srtt).clamp(1.0 / 64.0, MIN_CWND),
        }
    }

    /// Reduces window and rate to the part `left`.
    fn reduce(&mut self, left: f64) {
        self.before_loss = None;
        self.window.minimum = self.floor().min(self.window.cwnd);
        self.window.reduce_to(self.window.cwnd * left);
        self.rate.reduce(left);
        if let Some(classic) = &mut self.classic {
            classic.on_reduction(self.window.ssthresh);
        }
    }

    /// A mark, the first since the last episode.
    fn on_mark(&mut self, now: Time) {
        let slow_start = self.window.in_slow_start();
        let first = !std::mem::replace(&mut self.halved, true);
        if !first && self.is_independent() && self.is_within_target(self.reduced, now) {
            self.transients.on_reaction(1.0, slow_start);
            return;
        }
        self.reduced = Some(now);
        let floor = self.classic.as_ref().map_or(0.0, ClassicDetector::alpha_floor);
        let left = if first { 0.5 } else { 1.0 - self.average.alpha.max(floor) / 2.0 };
        self.transients.on_reaction(left, slow_start);
        self.reduce(left);
    }

    /// The pacing rate, bytes per second.
    fn pace(&self, ack: &Ack) -> Option<f64> {
        if !self.parameters.pacing || self.srtt == 0.0 {
            return None;
        }
        let segments = if self.steers_by_rate() {
            let half = self.target().max(self.srtt) / 2.0;
            let first_half = self.updated.is_some_and(|updated| (ack.now - updated).as_secs_f64() < half);
            let offset = self.parameters.rate_offset;
            self.rate.segments() * if first_half { 1.0 + offset } else { 1.0 - offset }
        } else {
            let in_flight = self.window.segments(ack.in_flight.saturating_sub(ack.bytes));
            (self.window.cwnd.max(in_flight) / self.srtt).max(self.rate.least())
        };
        let boost = if self.window.cwnd < self.window.ssthresh / 2.0 { 2.0 } else { 1.0 };
        Some(boost * segments * self.window.mss())
    }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        let before = self.window.cwnd;
        self.srtt = ack.srtt.as_secs_f64();
        self.rate.on_ack(self.srtt);
        self.saw_ce |= ack.marked > 0;
        if let (Some(classic), Some(rtt)) = (&mut self.classic, ack.rtt) {
            classic.on_sample(rtt);
        }
        self.marks.on_ack(ack);
        self.grow(ack);
        self.update_alpha(ack);
        let slow_start = self.window.in_slow_start();
        let phase = Phase { cwnd: self.window.cwnd, slow_start, recovering: self.in_loss };
        let reaction = match self.transients.on_ack(ack, phase) {
            Some(left) if left < 1.0 && self.window.cwnd > self.floor() => {
                self.reduced = Some(ack.now);
                self.reduce(left);
                // false if this ACK's own growth was more
                if self.window.cwnd < before { Reaction::Reduced } else { Reaction::None }
            }
            _ => Reaction::None,
        };
        self.rate.choose(self.saw_ce, self.window.cwnd.max(MIN_CWND));
        if !self.steers_by_rate() {
            self.rate.follow(self.window.cwnd);
        }
        self.pacing = self.pace(ack);
        reaction
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.signal {
            Signal::Ecn | Signal::Phantom if self.transients.is_answered() => {}
            Signal::Ecn | Signal::Phantom => self.on_mark(congestion.now),
            Signal::Loss | Signal::Timeout => {
                let timeout = congestion.signal == Signal::Timeout;
                self.in_loss = !timeout;
                if timeout {
                    self.transients.reset();
                } else {
                    self.transients.on_reaction(self.parameters.beta, self.window.in_slow_start());
                }
                let before = (self.window.cwnd, self.window.ssthresh);
                self.reduce(self.parameters.beta);
                self.before_loss = Some(before);
                if timeout {
                    self.window.cwnd = self.window.cwnd.min(1.0);
                }
            }
        }
    }

    fn on_recovered(&mut self, _recovered: &Recovered) {
        self.in_loss = false;
    }

    fn on_spurious(&mut self) {
        self.in_loss = false;
        if let Some((cwnd, ssthresh)) = self.before_loss.take() {
            self.window.cwnd = self.window.cwnd.max(cwnd);
            self.window.ssthresh = self.window.ssthresh.max(ssthresh);
            self.rate.follow(self.window.cwnd);
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart(restart);
        self.rate.follow(self.window.cwnd);
        self.transients.reset();
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        Some(self)
    }

    fn scale_window(&mut self, factor: f64) -> bool {
        self.window.scale(factor);
        self.rate.reduce(factor);
        true
    }

    /// v0.7 rounds up: below, the rate is what limits.
    fn window(&self) -> u64 {
        match self.parameters.variant {
            Variant::V06 => self.window.bytes(),
            Variant::V07 => (libm::ceil(self.window.cwnd).max(MIN_CWND) * self.window.mss()) as u64,
        }
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh_bytes()
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pacing.map(|rate| (rate as u64).max(1))
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("alpha", self.average.alpha);
        show("cwnd", self.window.cwnd);
        show("increase", self.increase());
        show("independent", f64::from(u8::from(self.is_independent())));
        show("by_rate", f64::from(u8::from(self.steers_by_rate())));
        if let Some(classic) = &self.classic {
            show("classic", classic.score());
        }
        self.transients.inspect(show);
    }
}

impl Weighted for Prague {
    /// The congestion price is the marked fraction.
    fn set_weight(&mut self, weight: f64) {
        self.average.set_weight(weight);
    }
}
