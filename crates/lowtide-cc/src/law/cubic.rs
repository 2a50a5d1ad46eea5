// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP CUBIC: as in RFC 9438, as in Linux, or as in the paper of 2008 (Ha, Rhee and Xu, "CUBIC: a new TCP-friendly
//! high-speed TCP variant", ACM SIGOPS OSR 42(5)).
//!
//! Notable differences from RFC 9438: slow start ends by classic Hybrid Slow Start, not by HyStart++ (`hystart=plus`),
//! as in Linux senders, which are the rivals on real networks and in the lab; the threshold is `beta` times the window,
//! as in Linux, not times the amount in flight; and those of the growth itself (`part::Cubic`).

use super::loss_based::LossBased;
use crate::{
    CongestionControl, EcnUse, Flow,
    part::{Cubic, CubicShape, HyStartKind, HyStartShape, Increase, SlowStart},
    text::{parameters, values},
};

values! {
    /// Which CUBIC.
    pub enum Variant {
        /// RFC 9438: beta 0.7; K bridges the distance from the reduced window to Wmax.
        Rfc9438 = "rfc9438",
        /// Linux since 2.6.27: the same, but that Reno's estimate never grows faster, and with whole segments.
        Linux = "linux",
        /// The paper of 2008: beta 0.8; K follows from Wmax alone; Reno's estimate never grows faster.
        Paper2008 = "2008",
    }
}

parameters! {
    /// Parameters of CUBIC.
    pub struct Parameters for "cubic" defaults by of {
        /// Which CUBIC; decides the defaults of the others.
        variant: Variant = Variant::Rfc9438;
        /// The factor that congestion leaves of the window (RFC 9438, section 4.6).
        beta: f64 = 0.7, in 0.01..=0.99;
        /// C, segments per second cubed (RFC 9438, section 5).
        c: f64 = CubicShape::RFC_9438.c, in 0.0001..=1000.0;
        /// Whether Wmax is lowered when it was not reached again (RFC 9438, section 4.7).
        fast_convergence: bool = true;
        /// Whether to grow at least as Reno would (RFC 9438, section 4.3).
        reno_friendly: bool = true;
        /// Whether a reduction rounds down to whole segments, before and after.
        whole_segments: bool = false;
        /// How slow start ends before the first loss.
        hystart: HyStartKind = HyStartKind::On;
        /// Segments of the window from which Hybrid Slow Start acts (Linux `hystart_low_window`).
        low_window: f64 = HyStartShape::CUBIC.low_window, in 0.0..=1e6;
        /// Whether the transport paces, so that Hybrid Slow Start must expect ACKs spread over the RTT.
        paced: bool = false;
        /// Whether to use classic ECN.
        ecn: bool = false;
    }
}

/// The defaults of a variant.
fn of(variant: Variant) -> Parameters {
    let beta = match variant {
        Variant::Rfc9438 | Variant::Linux => 0.7,
        Variant::Paper2008 => 0.8,
    };
    Parameters { variant, beta, whole_segments: variant == Variant::Linux, ..Parameters::default() }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        let base = match self.variant {
            Variant::Rfc9438 => CubicShape::RFC_9438,
            Variant::Linux => CubicShape::LINUX,
            Variant::Paper2008 => CubicShape::PAPER_2008,
        };
        let shape = CubicShape {
            c: self.c,
            fast_convergence: self.fast_convergence,
            reno_friendly: self.reno_friendly,
            ..base
        };
        let hystart = HyStartShape { low_window: self.low_window, paced: self.paced, ..HyStartShape::CUBIC };
        let slow_start = SlowStart::shaped(self.hystart, hystart);
        let increase = Increase::Cubic(Cubic::new(self.beta, shape));
        Box::new(LossBased::new(flow, slow_start, increase, self.beta).rounding(self.whole_segments))
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::classic(self.ecn)
    }
}

#[cfg(test)]
mod tests {
    use crate::Law;

    #[test]
    fn the_variant_decides_the_defaults() {
        let value = |text: &str, key: &str| {
            let law: Law = text.parse().unwrap();
            law.parameters().into_iter().find(|(name, _)| *name == key).unwrap().1
        };
        assert_eq!(value("cubic", "beta"), "0.7");
        assert_eq!(value("cubic:variant=linux", "beta"), "0.7");
        assert_eq!(value("cubic:variant=2008", "beta"), "0.8");
        assert_eq!(value("cubic:beta=0.7,variant=2008", "beta"), "0.7");
        for text in [
            "cubic",
            "cubic:variant=linux",
            "cubic:variant=2008",
            "cubic:variant=2008,beta=0.7",
            "cubic:hystart=plus,paced=on",
        ] {
            assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
        }
    }
}
