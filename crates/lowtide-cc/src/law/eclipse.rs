// SPDX-License-Identifier: MIT OR Apache-2.0
//! Eclipse: keeps the one-way delay at a small part of the range that was measured.
//!
//! H. Adhari, T. Dreibholz, S. Werner and E. P. Rathgeb, "Eclipse: A New Dynamic Delay-based Congestion Control
//! Algorithm for Background Traffic". With `s_min` and `s_max` the one-way smoothed extremes of the delay τ (section
//! III):
//!
//! ```text
//! δ = β(s_max - s_min)      cwnd += (δ - (τ - s_min))/δ · acked/cwnd
//! ```
//!
//! Notable differences from the paper, which leaves much open; each has a parameter:
//! - The adaptation interval μ can grow. As printed it is the distance of two times within itself: it never can grow,
//!   may be negative, and collapses to the distance of two samples (`mu=literal` takes its absolute value).
//! - δ is at least 0.1 ms, and the law's factor is bounded by [-(1/β - 1), 1], so that a range of zero does no harm.
//! - α weights the new value, as in the formula. The sentence below it ("higher values smooth better") has it reversed.
//! - With a price weight (`weighted.rs`) β follows from it.
//! - Slow start, losses, idle times, and the minimum window are our choices; 4 segments reproduce the paper's figures.
//! - Without one-way delays the RTT takes their place.

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Price, Prices, Reaction, Recovered, Restart, Signal, Time,
    Weighted,
    part::{DelaySignal, Episode, SlowStart, Window},
    text::{parameters, values},
    time::{millis, nanos},
};
use std::time::Duration;

mod interval;
#[cfg(test)]
mod tests;
mod weighted;

use interval::Interval;
use weighted::Threshold;

values! {
    /// How the adaptation interval μ changes at its end.
    pub enum Mu {
        /// It doubles while a trend runs through it, shrinks if the delay is stable, and else covers the time from the
        /// minimum to the maximum delay.
        Adaptive = "adaptive",
        /// The distance of the times of the minimum and the maximum delay (section III-C2), without bounds.
        Literal = "literal",
        /// Never.
        Fixed = "fixed",
    }
}

values! {
    /// What ends slow start.
    pub enum Exit {
        /// A delay above the target. Slow start until a loss would leave a queue of the buffer's size in `s_max`.
        Delay = "delay",
        /// Only congestion.
        Loss = "loss",
    }
}

parameters! {
    /// Parameters of Eclipse.
    pub struct Parameters for "eclipse" {
        /// β: the part of the delay's range that the law fills (section III-A).
        beta: f64 = 0.15, in 0.001..=0.999;
        /// α: the weight of an interval's extreme in the smoothed one (section III-C1).
        alpha: f64 = 0.125, in 0.0..=1.0;
        /// The minimum window, segments. 4 is the minimum of the paper's SCTP, 2 that of TCP.
        cwnd_min: f64 = 4.0, in 1.0..=100.0;
        /// How the adaptation interval changes.
        mu: Mu = Mu::Adaptive;
        /// The first adaptation interval.
        mu_initial: Duration = Duration::from_secs(1), in Duration::from_millis(1)..=Duration::from_secs(3600);
        /// The shortest one.
        mu_min: Duration = Duration::from_millis(200), in Duration::ZERO..=Duration::from_secs(3600);
        /// The shortest one in smoothed RTTs.
        mu_rtts: f64 = 4.0, in 0.0..=1000.0;
        /// The longest one.
        mu_max: Duration = Duration::from_secs(30), in Duration::from_millis(1)..=Duration::from_secs(3600);
        /// A range of delays within an interval below this, or below the packet time of the link, is no variation.
        stable: Duration = Duration::from_millis(2), in Duration::ZERO..=Duration::from_secs(1);
        /// The minimum of δ, so that nothing is divided by zero.
        delta_min: Duration = Duration::from_micros(100), in Duration::from_micros(1)..=Duration::from_secs(1);
        /// The minimum of δ in packet times (smoothed RTT over window). 1 costs less throughput on long paths; but
        /// above half of the natural ripple it makes `s_min` climb, so use it with `guard`.
        delta_floor: f64 = 0.0, in 0.0..=100.0;
        /// Whether `s_min` rises only if the delay was above it by more than 5/4 δ throughout an interval, which the
        /// self-induced queue cannot explain.
        guard: bool = false;
        /// How often the window is lowered to its minimum, so that the queue drains and all flows see the base delay,
        /// but at most for a tenth of the time; 0: never.
        drain: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(3600);
        /// For how many smoothed RTTs.
        drain_rtts: f64 = 2.5, in 0.1..=10.0;
        /// What ends slow start.
        slow_start: Exit = Exit::Delay;
        /// The factor that a loss leaves of the window.
        beta_loss: f64 = 0.5, in 0.01..=0.99;
        /// Whether to use classic ECN.
        ecn: bool = false;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(Eclipse::new(self, flow))
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}

/// Delay samples before slow start may end by them.
const MIN_SAMPLES: u32 = 8;

/// The least pause between two drains, in lengths of a drain.
const DRAIN_PAUSE: u32 = 9;

/// A delay this many δ above `s_min` is not self-induced (`guard`).
const GUARD: f64 = 1.25;

/// Delays are milliseconds above the first sample, which removes the clocks' offset.
struct Eclipse {
    parameters: Parameters,
    window: Window,
    slow_start: SlowStart,
    episode: Episode,
    signal: DelaySignal,
    /// The first sample, nanoseconds.
    origin: Option<i64>,
    samples: u32,
    s_min: f64,
    s_max: f64,
    /// The minimum RTT, milliseconds.
    base_rtt: f64,
    /// When the last segment arrived, nanoseconds from an unknown origin, and the least time between two in this
    /// interval, milliseconds: an upper bound of the packet time of the slowest link. It counts for one interval only,
    /// so that nothing rare counts for ever.
    arrived: Option<i64>,
    segment_gap: f64,
    interval: Option<Interval>,
    /// μ, milliseconds.
    mu: f64,
    /// δ, milliseconds.
    delta: f64,
    /// When the last drain began or ended.
    drain: Option<Time>,
    draining: bool,
    /// The latest factor of the law.
    off: f64,
    /// The price takes the place of β once a weight is set.
    threshold: Option<Threshold>,
    /// Sum of the price of delay so far.
    price: Price,
}

impl Eclipse {
    fn new(parameters: &Parameters, flow: &Flow) -> Self {
        let mut window = Window::new(flow);
        window.minimum = parameters.cwnd_min;
        window.cwnd = window.cwnd.max(window.minimum);
        Self {
            window,
            slow_start: SlowStart::Standard,
            episode: Episode::default(),
            signal: DelaySignal::default(),
            origin: None,
            samples: 0,
            s_min: 0.0,
            s_max: 0.0,
            base_rtt: f64::INFINITY,
            arrived: None,
            segment_gap: f64::INFINITY,
            interval: None,
            mu: millis(parameters.mu_initial),
            delta: millis(parameters.delta_min),
            drain: None,
            draining: false,
            off: 0.0,
            threshold: None,
            price: Price::default(),
            parameters: parameters.clone(),
        }
    }

    /// The delay of a segment that was sent once (Karn), milliseconds above the first.
    fn sample(&mut self, ack: &Ack) -> Option<f64> {
        self.base_rtt = self.base_rtt.min(millis(ack.rtt?)); // Karn
        let delay = self.signal.sample(ack)?;
        let origin = *self.origin.get_or_insert(delay);
        self.samples = self.samples.saturating_add(1);
        // Sent an RTT ago, it arrived after its one-way delay. ACKs that wait on the return path and arrive together do
        // not change that. If the delay is the RTT these are the arrivals of ACKs, and those at one time give no bound.
        let arrived = nanos(ack.now - Time::ZERO) - nanos(ack.rtt?) + delay;
        if let Some(gap) = self.arrived.replace(arrived).map(|before| arrived - before).filter(|gap| *gap > 0) {
            self.segment_gap = self.segment_gap.min(gap as f64 / 1e6 / f64::from(ack.packets.max(1)));
        }
        Some(delay.saturating_sub(origin) as f64 / 1e6)
    }

    /// The packet time at the present rate, milliseconds.
    fn packet_time(&self, ack: &Ack) -> f64 {
        millis(ack.srtt) / self.window.cwnd
    }

    /// Updates the smoothed extremes (section III-C1) and δ.
    fn measure(&mut self, ack: &Ack, tau: f64) {
        self.s_min = self.s_min.min(tau);
        self.s_max = self.s_max.max(tau);
        let interval = self.interval.get_or_insert(Interval::new(ack.now, tau));
        interval.on_sample(ack.now, tau);
        if interval.length(ack.now) >= self.mu {
            let ended = *interval;
            self.interval = None;
            self.end_interval(ack, &ended);
        }
        let floor = millis(self.parameters.delta_min).max(self.parameters.delta_floor * self.packet_time(ack));
        let range = self.s_max - self.s_min;
        self.delta = match self.threshold {
            None => floor.max(self.parameters.beta * range),
            Some(threshold) => threshold.delta(range, floor, self.base_rtt),
        };
    }

    fn end_interval(&mut self, ack: &Ack, interval: &Interval) {
        let p = &self.parameters;
        let own = if p.guard || self.threshold.is_some() { GUARD * self.delta } else { 0.0 };
        if interval.min() > self.s_min + own {
            self.s_min += p.alpha * (interval.min() - self.s_min);
        }
        if interval.max() < self.s_max {
            self.s_max += p.alpha * (interval.max() - self.s_max);
        }
        let segment_gap = std::mem::replace(&mut self.segment_gap, f64::INFINITY);
        self.mu = match p.mu {
            Mu::Fixed => self.mu,
            Mu::Literal => interval.distance().abs(),
            Mu::Adaptive => {
                // Beside cross traffic an own packet takes far longer than the link needs for it, which would hide
                // changes.
                let stable = millis(p.stable).max(self.packet_time(ack).min(segment_gap));
                let least = millis(p.mu_min).max(p.mu_rtts * millis(ack.srtt));
                interval.next_mu(ack.now, self.mu, stable).max(least).min(millis(p.mu_max))
            }
        };
    }

    /// Begins and ends drains. Slow start leads back to the window before.
    fn drain(&mut self, ack: &Ack) {
        if self.parameters.drain.is_zero() {
            return;
        }
        let since = ack.now - *self.drain.get_or_insert(ack.now);
        let length = ack.srtt.mul_f64(self.parameters.drain_rtts);
        let pause = self.parameters.drain.max(length.saturating_mul(DRAIN_PAUSE));
        if self.draining && since >= length {
            self.draining = false;
            self.drain = Some(ack.now);
        } else if !self.draining && since >= pause && !self.window.in_slow_start() {
            self.draining = true;
            self.drain = Some(ack.now);
            self.window.ssthresh = self.window.cwnd;
            self.window.cwnd = self.window.cwnd.min(self.window.minimum);
        }
    }

    /// Growth below the threshold.
    fn start(&mut self, ack: &Ack, tau: Option<f64>) {
        let above = tau.is_some_and(|tau| tau - self.s_min > self.delta);
        if above && self.samples >= MIN_SAMPLES && self.parameters.slow_start == Exit::Delay {
            self.window.ssthresh = self.window.cwnd;
        } else {
            let _ = self.slow_start.on_ack(ack, &mut self.window);
        }
    }

    /// The law (section III-B).
    fn steer(&mut self, ack: &Ack, tau: f64) {
        let cwnd = self.window.cwnd;
        let rounds = self.window.segments(ack.bytes) / cwnd;
        let delay = tau - self.s_min;
        let most = match self.threshold {
            None => 1.0 / self.parameters.beta - 1.0,
            Some(threshold) => {
                let paid = threshold.price(delay, self.s_max - self.s_min) * rounds;
                self.price.indications += paid;
                self.price.removed += paid / cwnd;
                cwnd / 2.0
            }
        };
        self.off = (1.0 - delay / self.delta).max(-most).min(1.0);
        let change = self.off * rounds;
        if self.off < 0.0 {
            self.window.cwnd = (cwnd + change).max(cwnd.min(self.window.minimum));
            self.window.ssthresh = self.window.ssthresh.min(self.window.cwnd); // no slow start back
        } else if ack.window_limited {
            self.window.cwnd += change;
        }
    }
}

impl CongestionControl for Eclipse {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        let tau = self.sample(ack);
        if let Some(tau) = tau {
            self.measure(ack, tau);
        }
        if ack.reducing {
            return Reaction::None;
        }
        self.drain(ack);
        if self.draining {
            return Reaction::None;
        }
        if self.window.in_slow_start() {
            self.start(ack, tau);
        } else if let Some(tau) = tau {
            self.steer(ack, tau);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if !self.episode.begin(congestion) {
            return;
        }
        let before = self.window.cwnd;
        let ssthresh = self.parameters.beta_loss * before;
        match congestion.signal {
            Signal::Timeout => self.window.collapse(ssthresh),
            _ => self.window.reduce_to(ssthresh),
        }
        // A window that a timeout left below the minimum stays there.
        self.window.cwnd = self.window.cwnd.min(before);
    }

    fn on_recovered(&mut self, _recovered: &Recovered) {
        self.episode.finish();
    }

    fn on_spurious(&mut self) {
        if self.episode.undo() {
            self.window.restore();
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        if millis(restart.idle) > self.mu {
            self.interval = None;
            self.s_max = self.s_min;
        }
        self.window.restart(restart);
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        Some(self)
    }

    /// With a weight the window reacts to the inflated price.
    fn prices(&self, prices: &mut Prices) {
        if self.threshold.is_some() {
            prices.delay = self.price;
        }
    }

    fn scale_window(&mut self, factor: f64) -> bool {
        self.window.scale(factor);
        true
    }

    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh_bytes()
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("s_min", self.s_min);
        show("s_max", self.s_max);
        show("delta", self.delta);
        show("mu", self.mu);
        show("off", self.off);
    }
}

impl Weighted for Eclipse {
    fn set_weight(&mut self, weight: f64) {
        self.threshold = Some(Threshold::new(weight));
    }
}
