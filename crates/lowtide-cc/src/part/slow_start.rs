// SPDX-License-Identifier: MIT OR Apache-2.0
//! Growth below the threshold.

use super::{HyStart, HyStartPlus, HyStartShape, Window};
use crate::{Ack, text::values};

values! {
    /// How slow start ends before the first loss.
    pub enum HyStartKind {
        /// Not before.
        Off = "off",
        /// Hybrid Slow Start (Ha and Rhee, 2008) by ACK trains and by delay, as Linux does it.
        On = "on",
        /// Its ACK trains only.
        Train = "train",
        /// Its delay only.
        Delay = "delay",
        /// HyStart++ (RFC 9406).
        Plus = "plus",
    }
}

/// Slow start (RFC 5681, section 3.1), with or without an early end.
#[derive(Clone, Debug)]
pub enum SlowStart {
    /// One segment per segment acknowledged, until the threshold.
    Standard,
    /// The same with Hybrid Slow Start.
    Hybrid(HyStart),
    /// The same with HyStart++.
    Plus(HyStartPlus),
}

impl SlowStart {
    /// Slow start that ends early as `kind` says; Hybrid Slow Start as Linux's CUBIC has it, from a window of
    /// `low_window` segments on (16 there). The sender is not paced.
    pub fn new(kind: HyStartKind, low_window: f64) -> Self {
        Self::shaped(kind, HyStartShape { low_window, ..HyStartShape::CUBIC })
    }

    /// The same as Linux's CDG has it ([`HyStartShape::CDG`]).
    pub fn cdg(kind: HyStartKind) -> Self {
        Self::shaped(kind, HyStartShape::CDG)
    }

    /// The same with Hybrid Slow Start's constants given. Of these, HyStart++ uses only `paced`.
    pub fn shaped(kind: HyStartKind, shape: HyStartShape) -> Self {
        match kind {
            HyStartKind::Off => Self::Standard,
            HyStartKind::On => Self::Hybrid(HyStart::new(true, true, shape)),
            HyStartKind::Train => Self::Hybrid(HyStart::new(true, false, shape)),
            HyStartKind::Delay => Self::Hybrid(HyStart::new(false, true, shape)),
            HyStartKind::Plus => Self::Plus(HyStartPlus::new(shape.paced)),
        }
    }

    /// Grows the window as far as slow start goes. Returns how many of the acknowledged segments are left over for
    /// congestion avoidance.
    ///
    /// To be called for every ACK outside a reduction episode: one that did not fill the window grows nothing and
    /// leaves nothing over, but its round-trip time still counts.
    pub fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> f64 {
        let (limit, divisor) = match self {
            Self::Standard => (f64::INFINITY, 1.0),
            Self::Hybrid(hystart) => {
                hystart.on_ack(ack, window);
                (f64::INFINITY, 1.0)
            }
            Self::Plus(plus) => plus.on_ack(ack, window),
        };
        if !ack.window_limited {
            return 0.0;
        }
        let packets = f64::from(ack.packets);
        let room = (window.ssthresh - window.cwnd).max(0.0);
        let used = packets.min(room);
        window.cwnd += used.min(limit) / divisor;
        packets - used
    }

    /// Forgets what was measured: after a timeout, or an idle time after which the path may be another.
    pub fn reset(&mut self) {
        match self {
            Self::Standard => {}
            Self::Hybrid(hystart) => hystart.reset(),
            Self::Plus(plus) => plus.reset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flow;

    #[test]
    fn one_segment_per_segment_up_to_the_threshold() {
        let mut window = Window::new(&Flow { mss: 1000, initial_window: 10, seed: 0 });
        let ack = Ack { packets: 4, window_limited: true, ..Ack::default() };
        assert_eq!(SlowStart::Standard.on_ack(&ack, &mut window), 0.0);
        assert_eq!(window.cwnd, 14.0);
        window.ssthresh = 15.5;
        assert_eq!(SlowStart::Standard.on_ack(&ack, &mut window), 2.5);
        assert_eq!(window.cwnd, 15.5);
        assert_eq!(SlowStart::Standard.on_ack(&ack, &mut window), 4.0);
        assert_eq!(window.cwnd, 15.5);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        for kind in [HyStartKind::Off, HyStartKind::On, HyStartKind::Plus] {
            let mut window = Window::new(&Flow { mss: 1000, initial_window: 10, seed: 0 });
            let ack = Ack { packets: 4, ..Ack::default() };
            assert_eq!(SlowStart::new(kind, 16.0).on_ack(&ack, &mut window), 0.0);
            assert_eq!(window.cwnd, 10.0);
        }
    }
}
