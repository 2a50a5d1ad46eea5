// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spread of a path: how much longer than the base RTT the RTTs of a free link are, as probes measured.

use crate::Stance;

/// What is known of the spread. All times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    /// How much longer RTTs were than the base RTT; 0: no more, or unknown.
    seconds: f64,
    /// The base RTT when that was measured.
    base: f64,
    /// Probes that were to measure it; above [`Self::PROBES`]: that is over.
    probes: u32,
    /// How often noise, or a shorter RTT, asked for a measurement, since the latest spread was found.
    asked: u32,
}

impl Spread {
    /// Probes that may measure it.
    pub(super) const PROBES: u32 = Stance::MEASURE_ROUND_TRIPS;
    /// Least number of probes of the first LISTEN on a path with a spread: three readings.
    pub(super) const FIRST_PROBES: u32 = 12;
    /// How often these may ask, as a measurement takes probes. The first one may find none by chance. With several
    /// connections there may be none, as the probes of LISTEN meet their packets.
    const ASKS: u32 = 2;
    /// Part of the spread by which the base RTT may fall. If an RTT is the sum of two random delays, one per
    /// direction, the readings are about half of its range. The least of sixteen such RTTs exceeds 0.75 of that with a
    /// probability of 1 %. Then it is more likely that probes met a queue of cross traffic.
    const FALL: f64 = 0.75;

    /// None, for the rest of the run unless noise shows one.
    pub(super) const fn none() -> Self {
        Self { seconds: 0.0, base: 0.0, probes: Self::PROBES + 1, asked: 0 }
    }

    /// A probe was measured. `reading`: the spread that the latest ones show; 0: none. Readings differ by chance, so
    /// each is averaged with the one before. `unsure`: they may show one, so more are needed.
    pub(super) fn on_probe(&mut self, reading: Option<f64>, base: f64, unsure: bool) {
        if self.is_none() {
            return;
        }
        self.probes = self.probes.saturating_add(u32::from(!unsure));
        if let Some(spread) = reading {
            self.seconds = if self.seconds > 0.0 { (self.seconds + spread) / 2.0 } else { spread };
            (self.base, self.probes) = (base, Self::PROBES + 1);
        }
    }

    /// Whether probes may still measure it. What they have not found by then is cross traffic.
    pub(super) const fn is_due(&self) -> bool {
        self.seconds == 0.0 && self.probes <= Self::PROBES
    }

    /// Whether probes have found none.
    pub(super) const fn is_none(&self) -> bool {
        self.seconds == 0.0 && self.probes > Self::PROBES
    }

    /// What probes measured was a queue: it is measured anew.
    pub(super) fn forget(&mut self) {
        if self.seconds > 0.0 {
            (self.seconds, self.probes, self.asked) = (0.0, 0, 0);
        }
    }

    /// Probes have found none, and the link is not free for long: they measure it anew.
    pub(super) fn measure_again(&mut self) {
        if self.is_none() {
            self.probes = 0;
        }
    }

    /// RTTs differ in FILL, and no spread is known; or none was found in a queue. Whether it is to be measured.
    pub(super) fn ask(&mut self) -> bool {
        let asks = self.seconds == 0.0 && self.asked < Self::ASKS;
        if asks {
            self.asked += 1;
            self.measure_again();
        }
        asks
    }

    /// The base RTT is `base` now. Forgets the spread if that is too far below the one that it was measured with.
    pub(super) fn on_base(&mut self, base: f64) {
        if self.fell(base) > Self::FALL * self.seconds {
            self.forget();
        }
    }

    /// The spread. Probes measured the longest RTT, which stays as it is if the base RTT falls.
    pub(super) fn seconds(&self, base: f64) -> f64 {
        if self.seconds > 0.0 { (self.seconds + self.fell(base)).min(base) } else { 0.0 }
    }

    /// How much the base RTT has fallen since the spread was measured.
    fn fell(&self, base: f64) -> f64 {
        (self.base - base).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(seconds: f64) -> Spread {
        let mut spread = Spread::default();
        spread.on_probe(Some(seconds), 0.04, false);
        spread
    }

    #[test]
    fn it_grows_as_the_base_rtt_falls_and_is_measured_anew_if_that_falls_too_far() {
        let mut spread = measured(0.01);
        spread.on_base(0.034);
        assert!((spread.seconds(0.034) - 0.016).abs() < 1e-9);
        spread.on_base(0.032);
        assert!(spread.seconds(0.032) == 0.0 && spread.is_due());
    }

    #[test]
    fn noise_asks_twice_for_a_measurement_where_probes_found_no_spread() {
        let mut spread = measured(0.0);
        for _ in 0..2 {
            assert!(spread.is_none() && spread.ask() && spread.is_due());
            (0..=Spread::PROBES).for_each(|_| spread.on_probe(None, 0.04, false));
        }
        assert!(!spread.ask() && spread.is_none());
        spread.measure_again();
        assert!(spread.is_due());
        assert!(!measured(0.01).ask());
    }
}
