// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all laws that follow loss have in common: slow start × increase × a constant factor of decrease.

use crate::{
    Ack, Congestion, CongestionControl, Flow, Reaction, Restart, Signal,
    part::{Increase, SlowStart, Window},
};

/// A law that grows until congestion is found, and then keeps a constant part of its window.
pub(super) struct LossBased {
    window: Window,
    slow_start: SlowStart,
    increase: Increase,
    beta: f64,
}

impl LossBased {
    /// A flow's state. `beta` is the factor that congestion leaves.
    pub(super) fn new(flow: &Flow, slow_start: SlowStart, increase: Increase, beta: f64) -> Self {
        Self { window: Window::new(flow), slow_start, increase, beta }
    }
}

impl CongestionControl for LossBased {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if !ack.reducing {
            let left = self.slow_start.on_ack(ack, &mut self.window);
            self.increase.on_ack(ack, left, &mut self.window);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let ssthresh = self.beta * self.window.cwnd;
        if congestion.signal == Signal::Timeout {
            self.slow_start.reset();
            self.increase.on_timeout(congestion.now, &self.window);
            self.window.collapse(ssthresh);
        } else {
            self.increase.on_reduction(congestion.now, &self.window);
            self.window.reduce_to(ssthresh);
        }
    }

    fn on_spurious(&mut self) {
        self.increase.on_spurious();
        self.window.restore();
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.increase.on_restart(restart);
        self.window.restart(restart);
    }

    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh_bytes()
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.increase.inspect(show);
    }
}
