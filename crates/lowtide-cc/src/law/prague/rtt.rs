// SPDX-License-Identifier: MIT OR Apache-2.0
//! Independence of the RTT (RFC 9331, section 4.3; `tcp_prague.c`, note 1).

use crate::text::values;

values! {
    /// How the rate of a flow depends on its RTT.
    pub enum RttMode {
        /// As that of any window-based law.
        None = "none",
        /// Not at all, below the target: one segment per target RTT, at the same rate.
        Rate = "rate",
        /// Partly: more than with [`RttMode::Rate`] at very short RTTs, so that at least one mark comes in eight RTTs.
        Scalable = "scalable",
        /// As if it were longer by the target.
        Additive = "additive",
    }
}

/// Scales of [`RttMode::Scalable`], about 16 and 1.5 ms in seconds.
const R0: f64 = 0.016384;
const R1: f64 = 0.001536;

impl RttMode {
    /// The RTT that the flow behaves like, seconds.
    pub fn target(self, target: f64, srtt: f64) -> f64 {
        if self == Self::Additive { target + srtt } else { target }
    }

    /// The additive increase, segments per RTT. Times are seconds.
    pub fn increase(self, target: f64, srtt: f64) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Rate | Self::Additive => {
                let ratio = (srtt / self.target(target, srtt)).min(1.0);
                ratio * ratio
            }
            Self::Scalable => (R0 / 8.0 + (srtt - R1).clamp(0.0, R0)) * srtt / (R0 * R0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RttMode::{Additive, None, Rate, Scalable};

    #[test]
    fn the_increase_by_round_trip_time() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert_eq!(None.increase(0.025, 0.005), 1.0);
        assert!(near(Rate.increase(0.025, 0.010), 0.16)); // (10/25)^2
        assert_eq!((Rate.increase(0.025, 0.025), Rate.increase(0.025, 0.060)), (1.0, 1.0));
        assert!(near(Additive.increase(0.025, 0.025), 0.25)); // (25/50)^2
        assert_eq!(Additive.target(0.025, 0.015), 0.040);
        assert!(near(Scalable.increase(0.025, 0.0001), 0.0001 / (8.0 * 0.016384))); // the floor: an eighth of the ratio
        assert!(near(Scalable.increase(0.025, 0.016384 + 0.001536), 1.125 * (0.016384 + 0.001536) / 0.016384));
    }
}
