// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pacing rate, and how much is sent at once (draft-ietf-ccwg-bbr, sections 5.6.2 and 5.6.3).

use std::time::Duration;

/// The RTT that is assumed before the first sample.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

/// The pacing rate, segments per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacing {
    rate: f64,
    /// The part of the rate that is used: 1 less the margin.
    scale: f64,
    startup_gain: f64,
    seen_rtt: bool,
}

impl Pacing {
    /// Sends the initial window at `startup_gain` times what would fill a nominal RTT.
    pub(crate) fn new(startup_gain: f64, margin: f64, initial_window: f64) -> Self {
        let mut pacing = Self { rate: 0.0, scale: 1.0 - margin, startup_gain, seen_rtt: false };
        pacing.set_initial(initial_window, NOMINAL_RTT);
        pacing
    }

    fn set_initial(&mut self, cwnd: f64, rtt: Duration) {
        self.rate = self.startup_gain * cwnd / rtt.as_secs_f64() * self.scale;
    }

    /// The first RTT sample: with the window sent it gives the rate.
    pub(crate) fn on_rtt(&mut self, cwnd: f64, srtt: Duration) {
        if !self.seen_rtt && !srtt.is_zero() {
            self.seen_rtt = true;
            self.set_initial(cwnd, srtt);
        }
    }

    /// Paces at `gain` times `bw`, less the margin. Until full bandwidth is reached, the rate only grows.
    pub(crate) fn set(&mut self, bw: f64, gain: f64, full_pipe: bool) {
        let rate = gain * bw * self.scale;
        if full_pipe && bw > 0.0 || rate > self.rate {
            self.rate = rate;
        }
    }

    /// Segments per second.
    pub(crate) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Bytes per second.
    pub(crate) fn bytes_per_second(&self, mss: f64) -> u64 {
        ((self.rate * mss) as u64).max(1)
    }
}

/// How much a host sends at once (TSO, GSO): what is sent in `time`, up to [`Quantum::MAX`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantum {
    /// The sending time that one quantum holds.
    pub(crate) time: Duration,
    /// 64 KiB more at once on the shortest paths, halved for each such time of the minimum RTT; zero: none.
    pub(crate) rtt: Duration,
    /// Below [`Quantum::SINGLE_RATE`], one segment at a time instead of at least two.
    pub(crate) single: bool,
}

impl Quantum {
    /// The greatest quantum, bytes.
    pub(crate) const MAX: f64 = 65_536.0;

    /// Linux `bbr_min_tso_rate`: 1.2 Mbit/s, in bytes per second.
    pub(crate) const SINGLE_RATE: f64 = 150_000.0;

    /// The quantum at this rate (segments per second), in segments.
    pub(crate) fn segments(&self, rate: f64, min_rtt: Option<Duration>, mss: f64) -> f64 {
        let mut bytes = rate * mss * self.time.as_secs_f64();
        if let Some(min_rtt) = min_rtt
            && !self.rtt.is_zero()
        {
            let halvings = min_rtt.as_nanos() / self.rtt.as_nanos();
            bytes += if halvings < 32 { Self::MAX / (1u64 << halvings) as f64 } else { 0.0 };
        }
        let least = if self.single && rate * mss < Self::SINGLE_RATE { 1.0 } else { 2.0 };
        (bytes.min(Self::MAX) / mss).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_rate_and_the_margin() {
        let mut pacing = Pacing::new(2.885, 0.01, 10.0);
        assert!((pacing.rate() - 2.885 * 10.0 / 0.001 * 0.99).abs() < 1e-6);
        pacing.on_rtt(10.0, Duration::from_millis(100));
        assert!((pacing.rate() - 285.615).abs() < 1e-9);
        pacing.on_rtt(10.0, Duration::from_millis(10)); // only the first counts
        pacing.set(50.0, 2.885, false); // lower: not yet
        assert!((pacing.rate() - 285.615).abs() < 1e-9);
        pacing.set(50.0, 1.0, true);
        assert!((pacing.rate() - 49.5).abs() < 1e-9);
        assert_eq!(pacing.bytes_per_second(1000.0), 49_500);
    }

    #[test]
    fn quanta() {
        let ms = Duration::from_millis;
        let quantum = Quantum { time: ms(1), rtt: Duration::ZERO, single: true };
        assert_eq!(quantum.segments(149.0, None, 1000.0), 1.0);
        assert_eq!(quantum.segments(150.0, None, 1000.0), 2.0);
        assert_eq!(quantum.segments(8000.0, None, 1000.0), 8.0);
        assert_eq!(quantum.segments(1e9, None, 1000.0), 65.536);
        // 64 KiB with an RTT of zero, halved for each 512 us.
        let quantum = Quantum { time: ms(1), rtt: Duration::from_micros(512), single: false };
        assert_eq!(quantum.segments(0.0, Some(Duration::from_micros(511)), 1000.0), 65.536);
        assert_eq!(quantum.segments(0.0, Some(Duration::from_micros(1024)), 1000.0), 16.384);
        assert_eq!(quantum.segments(8000.0, Some(ms(100)), 1000.0), 8.0);
    }
}
