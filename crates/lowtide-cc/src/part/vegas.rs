// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vegas' comparison of the expected with the actual rate, once per round trip, as Linux does it.

use super::Window;
use crate::Ack;
use std::time::Duration;

/// Samples that a round needs before its minimum means something: with two, both may be from delayed ACKs.
const TOO_FEW: u32 = 2;

/// Keeps between `alpha` and `beta` segments in the bottleneck's queue.
#[derive(Clone, Debug)]
pub struct VegasRound {
    /// The window grows while fewer segments than these are queued.
    pub alpha: f64,
    /// It shrinks while more than these are queued.
    pub beta: f64,
    /// Slow start ends once more than these are queued.
    pub gamma: f64,
    /// The least round trip of the connection.
    base: Duration,
    /// The least round trip of this round.
    minimum: Duration,
    samples: u32,
    diff: f64,
}

impl VegasRound {
    /// With these thresholds, in segments.
    pub const fn new(alpha: f64, beta: f64, gamma: f64) -> Self {
        Self { alpha, beta, gamma, base: Duration::MAX, minimum: Duration::MAX, samples: 0, diff: 0.0 }
    }

    /// A round-trip sample.
    pub fn on_sample(&mut self, rtt: Duration) {
        // As Linux, so that no round trip is zero.
        let rtt = rtt.saturating_add(Duration::from_micros(1));
        self.base = self.base.min(rtt);
        self.minimum = self.minimum.min(rtt);
        self.samples = self.samples.saturating_add(1);
    }

    /// A round begins.
    pub const fn restart(&mut self) {
        self.minimum = Duration::MAX;
        self.samples = 0;
    }

    /// The path may be another one: the base is measured anew.
    pub const fn forget(&mut self) {
        self.base = Duration::MAX;
        self.restart();
    }

    /// Whether the round had enough samples to decide.
    pub const fn is_measured(&self) -> bool {
        self.samples > TOO_FEW
    }

    /// Samples of this round.
    pub const fn samples(&self) -> u32 {
        self.samples
    }

    /// The least round trip of the connection, seconds; zero before the first sample.
    pub fn base(&self) -> f64 {
        if self.base == Duration::MAX { 0.0 } else { self.base.as_secs_f64() }
    }

    /// Segments in the queue by the latest decision.
    pub const fn diff(&self) -> f64 {
        self.diff
    }

    /// Whether more than `gamma` segments are queued at the end of a measured round in slow start. If so, slow start is
    /// over, with a window as large as the actual rate fills.
    pub fn ends_slow_start(&mut self, window: &mut Window) -> bool {
        self.compare(window.cwnd);
        let ends = window.in_slow_start() && self.diff > self.gamma;
        if ends {
            let actual = libm::floor(window.cwnd * self.base.as_nanos() as f64 / self.minimum.as_nanos() as f64);
            window.cwnd = window.cwnd.min(actual + 1.0);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
        ends
    }

    /// One segment more, one less or neither, at the end of a measured round in congestion avoidance. A step down
    /// leaves one segment, and a window that is not used does not grow.
    pub fn avoid(&mut self, ack: &Ack, window: &mut Window) {
        self.compare(window.cwnd);
        if self.diff > self.beta {
            window.cwnd = (window.cwnd - 1.0).max(window.cwnd.min(1.0));
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if self.diff < self.alpha && ack.window_limited {
            window.cwnd += 1.0;
        }
        // Linux remembers three quarters of a grown window as its threshold (tcp_current_ssthresh()).
        window.ssthresh = window.ssthresh.max(0.75 * window.cwnd);
    }

    /// The rate that `cwnd` is expected to give, less the actual one, in whole segments: more than the queue holds, by
    /// the factor rtt/base.
    fn compare(&mut self, cwnd: f64) {
        // whole numbers, so that a quotient that is one comes out as one
        let (base, rtt) = (self.base.as_nanos() as f64, self.minimum.as_nanos() as f64);
        self.diff = libm::floor(cwnd * (rtt - base) / base);
    }
}
