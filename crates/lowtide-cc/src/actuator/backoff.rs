// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scaling the decrease factor (paper 001, section III-D): after real congestion `cwnd = max(2, β·w·cwnd)`.

use crate::{
    Ack, Congestion, CongestionControl, Flow, LinkRates, Lost, Prices, Reaction, Recovered, Restart, Sent, Signal,
    Stance, Weighted, price::Meter,
};
use std::time::Duration;

/// A law whose reductions leave `w` times what they would leave, but no less than the law's minimum.
///
/// All of its real reductions, those that it makes by itself included. What restricts it: a reduction cannot take more
/// than all of the window, so that `w` has little effect below about 0.1 where signals are rare (targets, D-11).
pub struct BackoffScaling {
    law: Box<dyn CongestionControl>,
    weight: f64,
    meter: Meter,
}

impl BackoffScaling {
    /// Around a law; `None` if its window cannot be scaled. `accurate`: it gets exact feedback of marks.
    pub fn new(mut law: Box<dyn CongestionControl>, accurate: bool, flow: &Flow) -> Option<Self> {
        let scalable = law.scale_window(1.0);
        scalable.then(|| Self { law, weight: 1.0, meter: Meter::new(accurate, flow.mss) })
    }

    fn scale(&mut self) {
        if self.weight < 1.0 {
            let _ = self.law.scale_window(self.weight);
        }
    }
}

impl CongestionControl for BackoffScaling {
    fn on_sent(&mut self, sent: &Sent) {
        self.law.on_sent(sent);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.law.on_lost(lost);
    }

    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        let before = self.law.window();
        let reaction = self.law.on_ack(ack);
        self.meter.on_ack(ack, reaction, before, self.law.window());
        if reaction == Reaction::Reduced {
            self.scale();
        }
        reaction
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let before = self.law.window();
        self.law.on_congestion(congestion);
        let after = self.law.window();
        let back = if congestion.signal == Signal::Timeout { self.law.ssthresh().unwrap_or(0) } else { 0 };
        self.meter.on_congestion(congestion.signal, before, after.max(back));
        // A signal that the law ignored leaves the window alone.
        if after < before && congestion.signal != Signal::Phantom {
            self.scale();
        }
    }

    fn on_recovered(&mut self, recovered: &Recovered) {
        self.law.on_recovered(recovered);
    }

    fn on_spurious(&mut self) {
        self.meter.on_spurious();
        self.law.on_spurious();
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.law.on_restart(restart);
    }

    fn window(&self) -> u64 {
        self.law.window()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.law.ssthresh()
    }

    fn least_burst(&self) -> u64 {
        self.law.least_burst()
    }

    fn longest_burst(&self) -> Duration {
        self.law.longest_burst()
    }

    fn stance(&self) -> Stance {
        self.law.stance()
    }

    fn link_rates(&self) -> Option<LinkRates> {
        self.law.link_rates()
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.law.pacing_rate()
    }

    fn steers_recovery(&self) -> bool {
        self.law.steers_recovery()
    }

    fn weighted(&mut self) -> Option<&mut dyn Weighted> {
        Some(self)
    }

    fn scale_window(&mut self, factor: f64) -> bool {
        self.law.scale_window(factor)
    }

    fn prices(&self, prices: &mut Prices) {
        *prices = *self.meter.seen();
        self.law.prices(prices);
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.law.inspect(show);
    }
}

impl Weighted for BackoffScaling {
    fn set_weight(&mut self, weight: f64) {
        self.weight = super::at_most_one(weight);
    }
}
