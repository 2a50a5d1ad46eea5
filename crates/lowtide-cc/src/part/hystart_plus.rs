// SPDX-License-Identifier: MIT OR Apache-2.0
//! HyStart++ (RFC 9406): slow start ends by delay, but carefully: a slower growth first shows whether it was a mistake.
//!
//! Notable differences from the RFC: a round ends when something sent after its start is acknowledged, one ACK later
//! than `windowEnd` itself.

use super::{Rounds, Window};
use crate::Ack;
use std::time::Duration;

/// Least rise of the delay that matters (section 4.3).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// Greatest rise of the delay that is needed.
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// In between, this part of the last round's minimum.
const MIN_RTT_DIVISOR: u32 = 8;
/// Round-trip samples of a round before its minimum is trusted.
const N_RTT_SAMPLE: u32 = 8;
/// How much slower Conservative Slow Start (CSS) grows.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// Rounds of CSS before slow start is over.
const CSS_ROUNDS: u32 = 5;
/// Segments by which one ACK may grow the window, without pacing.
const L: f64 = 8.0;

/// HyStart++. It acts in the first slow start only (section 4.3), that is while there is no threshold.
#[derive(Clone, Debug)]
pub struct HyStartPlus {
    paced: bool,
    rounds: Rounds,
    last_round_min: Option<Duration>,
    current_round_min: Option<Duration>,
    samples: u32,
    css: Option<Css>,
}

/// Conservative Slow Start.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// The round's minimum that led here. Anything below shows that slow start ended too soon.
    baseline: Duration,
    /// Rounds begun; the one in which CSS was entered counts.
    rounds: u32,
}

impl HyStartPlus {
    /// With a `paced` transport, the window's growth per ACK is not limited to L.
    pub fn new(paced: bool) -> Self {
        Self { paced, rounds: Rounds::default(), last_round_min: None, current_round_min: None, samples: 0, css: None }
    }

    /// Looks at the delay and sets the threshold if slow start is over. Returns the greatest number of segments that
    /// this ACK may count for, and the divisor of growth.
    pub fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> (f64, f64) {
        if window.ssthresh.is_finite() {
            return (f64::INFINITY, 1.0);
        }
        if self.rounds.next(ack.una, ack.nxt) {
            self.last_round_min = self.current_round_min.take();
            self.samples = 0;
            self.next_css_round(window);
        }
        if let Some(rtt) = ack.rtt {
            self.current_round_min = Some(self.current_round_min.map_or(rtt, |min| min.min(rtt)));
            self.samples += 1;
            if self.samples >= N_RTT_SAMPLE {
                self.compare();
            }
        }
        let limit = if self.paced { f64::INFINITY } else { L };
        (limit, if self.css.is_some() { CSS_GROWTH_DIVISOR } else { 1.0 })
    }

    /// Forgets what was measured.
    pub fn reset(&mut self) {
        *self = Self::new(self.paced);
    }

    fn next_css_round(&mut self, window: &mut Window) {
        if let Some(css) = &mut self.css {
            if css.rounds == CSS_ROUNDS {
                window.ssthresh = window.cwnd;
                self.css = None;
            } else {
                css.rounds += 1;
            }
        }
    }

    fn compare(&mut self) {
        let Some(current) = self.current_round_min else { return };
        match (self.css, self.last_round_min) {
            (Some(css), _) if current < css.baseline => self.css = None,
            (None, Some(last)) => {
                let thresh = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + thresh {
                    self.css = Some(Css { baseline: current, rounds: 1 });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Flow,
        part::{HyStartKind, SlowStart},
    };

    const MSS: u64 = 1000;

    struct Path {
        slow_start: SlowStart,
        window: Window,
        una: u64,
    }

    impl Path {
        fn new() -> Self {
            let window = Window::new(&Flow { mss: MSS as u32, initial_window: 10, seed: 0 });
            Self { slow_start: SlowStart::new(HyStartKind::Plus, 16.0), window, una: 0 }
        }

        /// A round of ten ACKs with this round-trip time. Returns by how much the window grew on the first and on the
        /// last ACK.
        fn round(&mut self, rtt_us: u64) -> (f64, f64) {
            let nxt = self.una + 10 * MSS;
            let mut growth = Vec::new();
            for _ in 0..10 {
                self.una += MSS;
                let before = self.window.cwnd;
                let rtt = Some(Duration::from_micros(rtt_us));
                let ack = Ack { packets: 1, rtt, una: self.una, nxt, window_limited: true, ..Ack::default() };
                self.slow_start.on_ack(&ack, &mut self.window);
                growth.push(self.window.cwnd - before);
            }
            (growth[0], growth[9])
        }
    }

    #[test]
    fn the_threshold_lies_between_4_and_16_ms() {
        for (min, bound) in [(10_000, 14_000), (80_000, 90_000), (400_000, 416_000)] {
            for (rtt, growth) in [(bound - 1, 1.0), (bound, 0.25)] {
                let mut path = Path::new();
                path.round(min);
                path.round(min);
                assert_eq!(path.round(rtt), (1.0, growth));
            }
        }
    }

    #[test]
    fn conservative_slow_start_lasts_five_rounds() {
        let mut path = Path::new();
        path.round(20_000);
        path.round(20_000);
        assert_eq!(path.round(30_000), (1.0, 0.25)); // round 1, entered in its middle
        for _ in 0..4 {
            assert_eq!(path.round(30_000), (0.25, 0.25));
            assert!(path.window.in_slow_start());
        }
        assert_eq!(path.round(30_000), (0.0, 0.0));
        assert_eq!(path.window.ssthresh, path.window.cwnd);
    }

    #[test]
    fn a_lower_delay_resumes_slow_start() {
        let mut path = Path::new();
        path.round(20_000);
        path.round(20_000);
        assert_eq!(path.round(30_000).1, 0.25);
        assert_eq!(path.round(29_999), (0.25, 1.0));
        assert!(path.window.ssthresh.is_infinite());
    }

    #[test]
    fn one_ack_counts_for_eight_segments_at_most_unless_paced() {
        let ack = Ack { packets: 30, window_limited: true, ..Ack::default() };
        for (paced, growth) in [(false, 8.0), (true, 30.0)] {
            let mut path = Path::new();
            path.slow_start = SlowStart::Plus(HyStartPlus::new(paced));
            assert_eq!(path.slow_start.on_ack(&ack, &mut path.window), 0.0);
            assert_eq!(path.window.cwnd, 10.0 + growth);
        }
    }

    #[test]
    fn later_slow_starts_are_plain() {
        let mut path = Path::new();
        path.window.ssthresh = 1000.0;
        path.round(20_000);
        path.round(20_000);
        assert_eq!(path.round(90_000), (1.0, 1.0));
    }
}
