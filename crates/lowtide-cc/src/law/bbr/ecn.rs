// SPDX-License-Identifier: MIT OR Apache-2.0
//! ECN in versions 2 and 3: the marked share of what was delivered, smoothed as DCTCP does it.

use crate::{Ack, EcnUse, text::values};
use std::time::Duration;

values! {
    /// Which marks BBR uses.
    pub enum Ecn {
        /// None.
        Off = "off",
        /// ECT(0), with exact feedback of every mark.
        On = "on",
        /// ECT(1), with exact feedback of every mark.
        L4s = "l4s",
    }
}

impl Ecn {
    /// What that requires of the transport.
    pub const fn ecn_use(self) -> EcnUse {
        match self {
            Self::Off => EcnUse::Off,
            Self::On => EcnUse::Accurate,
            Self::L4s => EcnUse::L4s,
        }
    }
}

/// The smoothed share of marks (`ecn_alpha`), and whether it counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    enabled: bool,
    max_rtt: Duration,
    gain: f64,
    /// The smoothed share, 0 to 1.
    pub(crate) alpha: f64,
    /// Whether the path is short enough for marks to count (`ecn_eligible`). This stays set.
    pub(crate) eligible: bool,
    delivered: f64,
    marked: f64,
}

impl Marks {
    /// Marks count with `ecn` if the minimum RTT is at most `max_rtt` (zero: any).
    pub(crate) fn new(ecn: Ecn, max_rtt: Duration, gain: f64, alpha: f64) -> Self {
        Self { enabled: ecn != Ecn::Off, max_rtt, gain, alpha, eligible: false, delivered: 0.0, marked: 0.0 }
    }

    /// Counts an ACK.
    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        self.delivered += f64::from(ack.packets);
        self.marked += f64::from(ack.marked);
    }

    /// A round is over. Returns the share of marks in it, if they count and something was delivered.
    pub(crate) fn on_round(&mut self, min_rtt: Option<Duration>) -> Option<f64> {
        self.eligible |=
            self.enabled && (self.max_rtt.is_zero() || min_rtt.is_some_and(|min_rtt| min_rtt <= self.max_rtt));
        if self.delivered <= 0.0 {
            return None;
        }
        let share = (self.marked / self.delivered).min(1.0);
        self.alpha = (1.0 - self.gain) * self.alpha + self.gain * share;
        (self.delivered, self.marked) = (0.0, 0.0);
        self.eligible.then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut marks = Marks::new(Ecn::On, Duration::from_millis(5), 1.0 / 16.0, 1.0);
        marks.on_ack(&Ack { packets: 10, marked: 5, ..Ack::default() });
        assert_eq!(marks.on_round(Some(Duration::from_millis(5))), Some(0.5));
        assert_eq!(marks.alpha, 15.0 / 16.0 + 0.5 / 16.0);
        assert_eq!(marks.on_round(None), None);
        assert_eq!(marks.alpha, 15.0 / 16.0 + 0.5 / 16.0);
    }

    #[test]
    fn only_short_paths_are_eligible() {
        let eligible = |ecn, max_rtt, min_rtt| {
            let mut marks = Marks::new(ecn, Duration::from_millis(max_rtt), 0.1, 1.0);
            marks.on_round(Some(Duration::from_micros(min_rtt)));
            marks.eligible
        };
        assert!(eligible(Ecn::On, 5, 5000));
        assert!(!eligible(Ecn::On, 5, 5001));
        assert!(eligible(Ecn::L4s, 0, 500_000));
        assert!(!eligible(Ecn::Off, 0, 100));
    }
}
