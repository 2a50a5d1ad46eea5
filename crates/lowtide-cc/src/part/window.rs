// SPDX-License-Identifier: MIT OR Apache-2.0
//! The window and its threshold.

use crate::{Flow, Restart};

/// Congestion window and slow-start threshold in segments, which may be fractions.
#[derive(Clone, Debug)]
pub struct Window {
    /// The congestion window.
    pub cwnd: f64,
    /// Below it, slow start; infinite until congestion was first found.
    pub ssthresh: f64,
    /// The least that a reduction leaves.
    pub minimum: f64,
    /// Window and threshold before the latest reduction.
    before: (f64, f64),
    mss: f64,
}

impl Window {
    /// The initial window, with no threshold yet and a minimum of two segments (RFC 5681, equation 4).
    pub fn new(flow: &Flow) -> Self {
        let cwnd = f64::from(flow.initial_window);
        Self { cwnd, ssthresh: f64::INFINITY, minimum: 2.0, before: (cwnd, f64::INFINITY), mss: f64::from(flow.mss) }
    }

    /// Bytes per segment.
    pub const fn mss(&self) -> f64 {
        self.mss
    }

    /// The window in bytes.
    pub fn bytes(&self) -> u64 {
        (self.cwnd * self.mss) as u64
    }

    /// The threshold in bytes, if there is one.
    pub fn ssthresh_bytes(&self) -> Option<u64> {
        self.ssthresh.is_finite().then_some((self.ssthresh * self.mss) as u64)
    }

    /// An amount of bytes in segments.
    pub fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mss
    }

    /// Whether the window is below its threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Window and threshold come down to this many segments, or the minimum.
    pub fn reduce_to(&mut self, segments: f64) {
        self.before = (self.cwnd, self.ssthresh);
        self.ssthresh = segments.max(self.minimum);
        self.cwnd = self.ssthresh;
    }

    /// The same, but a window that is below the minimum already stays where it is.
    pub fn lower_to(&mut self, segments: f64) {
        let cwnd = self.cwnd;
        self.reduce_to(segments);
        self.cwnd = self.cwnd.min(cwnd);
    }

    /// A timeout: slow start from one segment to this threshold (RFC 5681, section 3.1).
    pub fn collapse(&mut self, ssthresh: f64) {
        self.reduce_to(ssthresh);
        self.cwnd = 1.0;
    }

    /// Window and threshold come down further, to this part of them or the minimum. Taken back with the latest
    /// reduction.
    pub fn scale(&mut self, factor: f64) {
        let scaled = |segments: f64| segments.min((segments * factor).max(self.minimum));
        (self.cwnd, self.ssthresh) = (scaled(self.cwnd), scaled(self.ssthresh));
    }

    /// Takes the latest reduction back, if the window is still below what it was.
    pub fn restore(&mut self) {
        self.cwnd = self.cwnd.max(self.before.0);
        self.ssthresh = self.ssthresh.max(self.before.1);
    }

    /// After an idle time: congestion window validation. The threshold remembers three quarters of the old window
    /// (RFC 2861, section 3.1).
    pub fn restart(&mut self, restart: &Restart) {
        let Some(bytes) = restart.window else { return };
        let cwnd = self.segments(bytes).max(1.0);
        if cwnd < self.cwnd {
            self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
            self.cwnd = cwnd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use std::time::Duration;

    fn window() -> Window {
        Window::new(&Flow { mss: 1000, initial_window: 20, seed: 0 })
    }

    fn restart(window: Option<u64>) -> Restart {
        Restart { now: Time::ZERO, idle: Duration::from_secs(1), nxt: 0, window }
    }

    #[test]
    fn a_reduction_is_bounded_and_can_be_taken_back() {
        let mut window = window();
        window.reduce_to(1.5);
        assert_eq!((window.cwnd, window.ssthresh), (2.0, 2.0));
        window.restore();
        assert_eq!((window.cwnd, window.ssthresh), (20.0, f64::INFINITY));
        window.collapse(10.0);
        assert_eq!((window.cwnd, window.ssthresh, window.in_slow_start()), (1.0, 10.0, true));
        window.cwnd = 30.0; // it has grown since
        window.restore();
        assert_eq!(window.cwnd, 30.0);
    }

    #[test]
    fn idleness_remembers_three_quarters() {
        let mut window = window();
        window.ssthresh = 10.0;
        window.restart(&restart(None));
        assert_eq!((window.cwnd, window.ssthresh), (20.0, 10.0));
        window.restart(&restart(Some(30_000)));
        assert_eq!((window.cwnd, window.ssthresh), (20.0, 10.0));
        window.restart(&restart(Some(4000)));
        assert_eq!((window.cwnd, window.ssthresh), (4.0, 15.0));
        window.ssthresh = 40.0;
        window.restart(&restart(Some(0)));
        assert_eq!((window.cwnd, window.ssthresh), (1.0, 40.0));
    }
}
