// SPDX-License-Identifier: MIT OR Apache-2.0
//! Steering by rate instead of by window (`tcp_prague.c` v0.7, `cwnd_mode`): for windows of a few segments.

use super::CwndMode;

/// Shift of the average of RTTs that converts rates into windows (`HSRTT_SHIFT`).
const GAIN: f64 = 1.0 / 128.0;

/// A rate in segments per second, and when to use it.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    mode: CwndMode,
    /// Up to this window the mode [`CwndMode::Switch`] steers by rate, segments.
    transit: f64,
    chosen: bool,
    rate: f64,
    least: f64,
    /// Long-term average of the RTT, seconds; zero before the first.
    srtt: f64,
}

impl Rate {
    pub(super) fn new(mode: CwndMode, transit: f64, least: f64) -> Self {
        Self { mode, transit, chosen: mode == CwndMode::Rate, rate: least, least, srtt: 0.0 }
    }

    pub(super) const fn is_chosen(&self) -> bool {
        self.chosen
    }

    /// Chooses for a window.
    pub(super) fn choose(&mut self, saw_ce: bool, cwnd: f64) {
        if self.mode == CwndMode::Switch {
            self.chosen = saw_ce && libm::ceil(cwnd) <= self.transit;
        }
    }

    pub(super) const fn segments(&self) -> f64 {
        self.rate
    }

    /// The least rate, segments per second.
    pub(super) const fn least(&self) -> f64 {
        self.least
    }

    /// The first RTT starts the average.
    pub(super) fn on_ack(&mut self, srtt: f64) {
        if self.srtt == 0.0 {
            self.srtt = srtt;
        }
    }

    pub(super) fn on_round(&mut self, srtt: f64) {
        self.srtt += GAIN * (srtt - self.srtt);
    }

    /// The window of the rate.
    pub(super) fn window(&self) -> f64 {
        self.rate * self.srtt
    }

    /// The rate of a window.
    pub(super) fn follow(&mut self, cwnd: f64) {
        if self.srtt > 0.0 {
            self.rate = (cwnd / self.srtt).max(self.least);
        }
    }

    /// One segment per virtual RTT, once in it.
    pub(super) fn grow(&mut self, segments: f64, virtual_rtt: f64) {
        let window = libm::ceil(self.rate * virtual_rtt);
        if window > 0.0 {
            self.rate += segments / virtual_rtt / window;
        }
    }

    pub(super) fn reduce(&mut self, left: f64) {
        self.rate = (self.rate * left).max(self.least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_acks_adds_a_segment_per_virtual_round_trip() {
        let mut rate = Rate::new(CwndMode::Rate, 4.0, 1.0);
        rate.on_ack(0.010);
        rate.follow(2.0);
        assert_eq!((rate.segments(), rate.window()), (200.0, 2.0));
        // In 25 ms five segments are acknowledged: 1/25 ms more.
        rate.grow(5.0, 0.025);
        assert!((rate.segments() - 240.0).abs() < 1e-9, "{}", rate.segments());
        rate.reduce(0.5);
        assert!((rate.segments() - 120.0).abs() < 1e-9);
        rate.reduce(0.001);
        assert_eq!(rate.segments(), 1.0);
    }

    #[test]
    fn the_round_trip_that_converts_is_averaged_over_128() {
        let mut rate = Rate::new(CwndMode::Rate, 4.0, 0.0);
        rate.on_ack(0.010);
        rate.follow(2.0);
        rate.on_ack(0.138);
        rate.on_round(0.138);
        assert!((rate.window() - 2.2).abs() < 1e-9, "{}", rate.window());
    }

    #[test]
    fn only_small_windows_with_marks_choose_the_rate() {
        let mut rate = Rate::new(CwndMode::Switch, 4.0, 0.0);
        for (saw_ce, cwnd, chosen) in [(false, 2.0, false), (true, 4.0, true), (true, 4.1, false)] {
            rate.choose(saw_ce, cwnd);
            assert_eq!(rate.is_chosen(), chosen);
        }
    }
}
