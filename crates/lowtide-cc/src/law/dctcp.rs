// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data Center TCP (RFC 8257): the window is reduced by half of the fraction of marked segments.
//!
//! With `accel` and `overload` also the two modes for transients of J. Misund ("Delay based additive increase for
//! scalable congestion controls"), who calls that `dctcp-fast`.
//!
//! Notable differences from the RFC:
//! - As in Linux (`tcp_dctcp.c`), the fraction is counted in segments, and the window does not grow during the
//!   reduction round. `cwr_increase` enables that; the paper's two marks per RTT need it.
//! - `alpha` is not rounded: Linux keeps 10 bits of it, and lowers it by at least one of those per round.
//! - A window may have fractions of a segment.
//! - The receiver's part (echoing every mark), and the fallback without negotiated ECN, belong to the transport. With
//!   `ecn=off` the law is Reno without ECN, as DCTCP is then.
//!
//! A phantom signal ([`Signal::Phantom`]) lowers the window by `alpha`, too. Its source must count it in
//! [`Ack::marked`], else `alpha` does not include it.

use super::reno;
use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Reaction, Recovered, Restart, Signal, Weighted,
    part::{
        Acceleration, Increase, Judged, MarkAverage, Marks, Overload, OverloadSettings, Overshoot, Phase, Rounds,
        SlowStart, Transients, Window,
    },
    text::parameters,
};
use std::time::Duration;

parameters! {
    /// Parameters of DCTCP.
    pub struct Parameters for "dctcp" {
        /// Gain `g` of the average of marks (RFC 8257, section 4.2).
        gain: f64 = 1.0 / 16.0, in 0.001..=1.0;
        /// `alpha` at the start (RFC 8257, section 4.2): the first mark halves the window.
        alpha: f64 = 1.0, in 0.0..=1.0;
        /// The factor that a loss leaves of the window (RFC 8257, section 3.5).
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Whether the window also grows in the RTT after a mark.
        cwr_increase: bool = false;
        /// Sends at this multiple of `cwnd/srtt`, twice that below half of the threshold; 0: not paced.
        pacing: f64 = 0.0, in 0.0..=4.0;
        /// Whether ECN can be used. If not, this is Reno.
        ecn: bool = true;
        /// Acceleration mode (Misund, section 3).
        accel: bool = false;
        /// Acceleration's acceptable queue overshoot `Q`.
        accel_q: Overshoot = Overshoot::MILLISECOND;
        /// Gain of acceleration's averages (Misund, section 3.3).
        accel_gain: f64 = 1.0 / 16.0, in 0.001..=1.0;
        /// Cycles that must have been seen before acceleration.
        accel_cycles: u32 = 4, in 0..=1000;
        /// Whether to use the formulas exactly as the paper prints them.
        accel_literal: bool = false;
        /// Overload mode (Misund, sections 1 and 6.2).
        overload: bool = false;
        /// How far above its usual delay a queue is overload.
        overload_q: Overshoot = Overshoot::MILLISECOND;
        /// Gain of the average of the queue's usual delay.
        overload_gain: f64 = 1.0 / 16.0, in 0.001..=1.0;
        /// Standing queue of an AQM, which is left after a reduction for overload.
        overload_aqm: Duration = Duration::ZERO, in OverloadSettings::Q_AQM;
        /// How long a minimum RTT counts as that of the path; 0s: for the connection's life.
        overload_base: Duration = Duration::ZERO, in OverloadSettings::BASE_WINDOW;
        /// Which rounds overload judges.
        overload_rounds: Judged = Judged::Fresh;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        if !self.ecn {
            return reno::Parameters { beta: self.beta, ..reno::Parameters::default() }.build(flow);
        }
        Box::new(Dctcp {
            beta: self.beta,
            cwr_increase: self.cwr_increase,
            pacing: self.pacing,
            window: Window::new(flow),
            increase: Increase::Reno,
            rounds: Rounds::default(),
            marks: Marks::default(),
            average: MarkAverage::new(self.alpha, self.gain),
            transients: Transients::new(self.acceleration_mode(), self.overload_mode()),
            recovering: false,
            undoable: false,
            srtt: Duration::ZERO,
        })
    }

    fn acceleration_mode(&self) -> Option<Acceleration> {
        let Self { accel_q, accel_gain, accel_cycles, accel_literal, .. } = *self;
        self.accel.then(|| Acceleration::new(accel_q, accel_gain, accel_cycles, accel_literal))
    }

    fn overload_mode(&self) -> Option<Overload> {
        self.overload.then(|| {
            Overload::new(OverloadSettings {
                q: self.overload_q,
                gain: self.overload_gain,
                q_aqm: self.overload_aqm,
                base_window: self.overload_base,
                judged: self.overload_rounds,
            })
        })
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        if self.ecn { EcnUse::Accurate } else { EcnUse::Off }
    }
}

struct Dctcp {
    beta: f64,
    cwr_increase: bool,
    pacing: f64,
    window: Window,
    increase: Increase,
    rounds: Rounds,
    marks: Marks,
    average: MarkAverage,
    transients: Transients,
    /// From a loss to the end of its recovery.
    recovering: bool,
    /// Whether the latest reduction was for a loss or a timeout, and may be spurious.
    undoable: bool,
    srtt: Duration,
}

impl Dctcp {
    fn grow(&mut self, ack: &Ack) {
        let may = !ack.reducing || (self.cwr_increase && !self.recovering);
        if may && ack.window_limited {
            let left = SlowStart::Standard.on_ack(ack, &mut self.window);
            self.increase.on_ack(ack, left * self.transients.scale(), &mut self.window);
        }
    }

    /// Reduces the window to the part `left`.
    fn reduce(&mut self, left: f64) {
        self.transients.on_reaction(left, self.window.in_slow_start());
        self.window.reduce_to(self.window.cwnd * left);
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        let before = self.window.cwnd;
        self.srtt = ack.srtt;
        self.grow(ack);
        self.marks.on_ack(ack);
        if self.rounds.next(ack.una, ack.nxt) {
            self.average.update(self.marks.take());
        }
        let slow_start = self.window.in_slow_start();
        let phase = Phase { cwnd: self.window.cwnd, slow_start, recovering: self.recovering };
        match self.transients.on_ack(ack, phase) {
            Some(left) if left < 1.0 && self.window.cwnd > self.window.minimum => {
                self.undoable = false;
                self.window.reduce_to(self.window.cwnd * left);
                // false if this ACK's own growth was more
                if self.window.cwnd < before { Reaction::Reduced } else { Reaction::None }
            }
            _ => Reaction::None,
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.signal {
            Signal::Ecn | Signal::Phantom if self.transients.is_answered() => {}
            Signal::Ecn | Signal::Phantom => {
                self.undoable = false;
                self.reduce(1.0 - self.average.alpha / 2.0);
            }
            Signal::Loss => {
                (self.recovering, self.undoable) = (true, true);
                self.reduce(self.beta);
            }
            Signal::Timeout => {
                (self.recovering, self.undoable) = (false, true);
                self.transients.reset();
                self.window.collapse(self.window.cwnd * self.beta);
            }
        }
    }

    fn on_recovered(&mut self, _recovered: &Recovered) {
        self.recovering = false;
    }

    fn on_spurious(&mut self) {
        if std::mem::take(&mut self.undoable) {
            self.window.restore();
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart(restart);
        self.transients.reset();
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        Some(self)
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

    fn pacing_rate(&self) -> Option<u64> {
        if self.pacing == 0.0 || self.srtt.is_zero() {
            return None;
        }
        let boost = if self.window.cwnd < self.window.ssthresh / 2.0 { 2.0 } else { 1.0 };
        let rate = boost * self.pacing * self.window.cwnd * self.window.mss() / self.srtt.as_secs_f64();
        Some((rate as u64).max(1))
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("alpha", self.average.alpha);
        self.transients.inspect(show);
    }
}

impl Weighted for Dctcp {
    /// The congestion price is the marked fraction.
    fn set_weight(&mut self, weight: f64) {
        self.average.set_weight(weight);
    }
}

#[cfg(test)]
mod tests;
