// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP Reno (RFC 5681): additive increase by one segment per round trip, halving on congestion.
//!
//! Notable differences from the RFC: none. Recovery itself (SACK, PRR) is the transport's.

use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Reaction, Restart, Signal,
    part::{Increase, SlowStart, Window},
    text::parameters,
};

parameters! {
    /// Parameters of Reno.
    pub struct Parameters for "reno" {
        /// The factor that congestion leaves of the window.
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Whether to use classic ECN.
        ecn: bool = false;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(Reno {
            beta: self.beta,
            window: Window::new(flow),
            slow_start: SlowStart::Standard,
            increase: Increase::Reno,
        })
    }

    /// What it asks of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        if self.ecn { EcnUse::Classic } else { EcnUse::Off }
    }
}

struct Reno {
    beta: f64,
    window: Window,
    slow_start: SlowStart,
    increase: Increase,
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if !ack.reducing && ack.window_limited {
            let left = self.slow_start.on_ack(ack, &mut self.window);
            self.increase.on_ack(ack, left, &mut self.window);
        }
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.increase.on_reduction(congestion.now, &self.window);
        let ssthresh = self.beta * self.window.cwnd;
        match congestion.signal {
            Signal::Timeout => self.window.collapse(ssthresh),
            _ => self.window.reduce_to(ssthresh),
        }
    }

    fn on_spurious(&mut self) {
        self.window.restore();
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.window.restart(restart);
        self.increase.on_restart(restart);
    }

    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.window.ssthresh_bytes()
    }
}
