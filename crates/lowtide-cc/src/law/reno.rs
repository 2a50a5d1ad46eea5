// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP Reno (RFC 5681): additive increase by one segment per RTT, halving on congestion.
//!
//! Notable differences from the RFC: the window is counted in fractions of segments, so that it also grows on an ACK
//! that completes no segment. Recovery itself (SACK, PRR) is the transport's.

use super::loss_based::LossBased;
use crate::{
    CongestionControl, EcnUse, Flow,
    part::{HyStartKind, HyStartShape, Increase, IncreaseKind, SlowStart},
    text::parameters,
};

parameters! {
    /// Parameters of Reno.
    pub struct Parameters for "reno" {
        /// The factor that congestion leaves of the window.
        beta: f64 = 0.5, in 0.01..=0.99;
        /// Whether a reduction rounds down to whole segments, before and after, as Linux does.
        whole_segments: bool = false;
        /// How slow start ends before the first loss.
        hystart: HyStartKind = HyStartKind::Off;
        /// Whether the transport paces, so that Hybrid Slow Start must expect ACKs spread over the RTT.
        paced: bool = false;
        /// Whether to use classic ECN.
        ecn: bool = false;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        let slow_start = SlowStart::shaped(self.hystart, HyStartShape { paced: self.paced, ..HyStartShape::CUBIC });
        let reno = LossBased::new(flow, slow_start, Increase::new(IncreaseKind::Reno, self.beta), self.beta);
        Box::new(reno.rounding(self.whole_segments))
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}
