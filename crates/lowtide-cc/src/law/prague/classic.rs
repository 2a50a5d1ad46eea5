// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection of a classic ECN queue (`tcp_prague.c` v0.6, `prague_classic_ecn_detection()`).
//!
//! A queue that marks as it would drop varies a lot, and is long. A score adds up both, once per update of `alpha`. If
//! it is high the law lowers its window by at least a classic amount.

use std::time::Duration;

/// `lg` of the reference deviation, 750 us.
const V0: f64 = 9.550746785383243;
/// `lg` of the reference depth, 2 ms.
const D0: f64 = 10.965784284662087;
/// Weight of each.
const WEIGHT: f64 = 0.5;
/// Up to here the score means L4S (`L_STICKY`); from one above, classic.
const L4S: f64 = 8.0;
/// The highest score (`C_STICKY`): as far above classic as zero is below L4S.
const MOST: f64 = 17.0;
/// The least `alpha` for a queue that is certainly classic.
const FLOOR: f64 = 0.625;
/// The slowest gain is `2^-18`.
const SLOWEST: u32 = 18;

/// The detector's state; times in microseconds.
#[derive(Clone, Debug)]
pub(super) struct ClassicDetector {
    srtt: Option<f64>,
    mdev: f64,
    least: f64,
    shift: u32,
    score: f64,
}

impl ClassicDetector {
    pub(super) const fn new() -> Self {
        Self { srtt: None, mdev: 1.0, least: f64::INFINITY, shift: SLOWEST, score: 0.0 }
    }

    /// Adds an RTT sample to slow averages.
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        let rtt = rtt.as_secs_f64() * 1e6;
        self.least = self.least.min(rtt);
        let gain = 1.0 / (1u64 << self.shift) as f64;
        let srtt = *self.srtt.get_or_insert(rtt);
        self.mdev += ((rtt - srtt).abs() - self.mdev) * gain / 2.0;
        self.srtt = Some(srtt + (rtt - srtt) * gain);
    }

    /// The averages span about a cycle: the larger the window, the longer.
    pub(super) fn on_reduction(&mut self, ssthresh: f64) {
        let lg = (ssthresh as u32).max(1).ilog2();
        self.shift = (lg + lg / 2 + 1).min(SLOWEST);
    }

    /// Once per update of `alpha`.
    pub(super) fn update(&mut self) {
        let Some(srtt) = self.srtt else { return };
        let lg = |us: f64| libm::log2(us.max(1.0));
        let deviation = lg(self.mdev) - V0;
        let depth = (lg(srtt - self.least) - D0).max(0.0); // only ever towards classic
        self.score = (self.score + WEIGHT * (deviation + depth)).clamp(0.0, MOST);
    }

    /// The least `alpha` for a reduction.
    pub(super) fn alpha_floor(&self) -> f64 {
        FLOOR * (self.score - L4S).clamp(0.0, 1.0)
    }

    pub(super) const fn score(&self) -> f64 {
        self.score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After 100 updates with delays that swing around 15 ms and a depth by some microseconds.
    fn detector(swing: u64, depth: u64) -> ClassicDetector {
        let mut detector = ClassicDetector::new();
        detector.on_reduction(16.0); // shift 7
        detector.on_sample(Duration::from_micros(15_000));
        for _ in 0..100 {
            for n in 0..100 {
                detector.on_sample(Duration::from_micros(15_000 + depth + n % 2 * 2 * swing));
            }
            detector.update();
        }
        detector
    }

    #[test]
    fn a_shallow_steady_queue_is_l4s() {
        let detector = detector(200, 300);
        assert_eq!((detector.score(), detector.alpha_floor()), (0.0, 0.0));
    }

    #[test]
    fn a_deep_swinging_queue_is_classic() {
        let detector = detector(3000, 10_000);
        assert_eq!((detector.score(), detector.alpha_floor()), (MOST, FLOOR));
    }

    #[test]
    fn the_reference_queue_is_neutral() {
        let mut detector =
            ClassicDetector { srtt: Some(17_000.0), least: 15_000.0, mdev: 750.0, shift: 18, score: 8.5 };
        detector.update();
        assert!((detector.score() - 8.5).abs() < 1e-9);
        assert!((detector.alpha_floor() - 0.3125).abs() < 1e-9);
        detector.mdev = 1500.0; // twice: half a point
        detector.update();
        assert!((detector.score() - 9.0).abs() < 1e-9);
    }
}
