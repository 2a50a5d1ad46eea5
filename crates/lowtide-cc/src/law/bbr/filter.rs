// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maxima over a window of RTTs or of probing cycles.

/// The greatest sample of this round and of the `window` rounds before it.
#[derive(Clone, Debug)]
pub(crate) struct WindowedMax {
    /// The maximum of each round, by round modulo length.
    ring: Box<[f64]>,
    round: u64,
    /// The maximum of the ring.
    max: f64,
}

impl WindowedMax {
    pub(crate) fn new(window: u32) -> Self {
        Self { ring: vec![0.0; window as usize + 1].into(), round: 0, max: 0.0 }
    }

    /// Takes a sample of round number `round`; rounds never go back.
    pub(crate) fn take(&mut self, round: u64, sample: f64) {
        let len = self.ring.len() as u64;
        let passed = (round - self.round).min(len);
        for n in 1..=passed {
            self.ring[((round - passed + n) % len) as usize] = 0.0;
        }
        self.round = round;
        let slot = &mut self.ring[(round % len) as usize];
        *slot = slot.max(sample);
        self.max = if passed == 0 { self.max.max(sample) } else { self.ring.iter().copied().fold(0.0, f64::max) };
    }

    pub(crate) const fn get(&self) -> f64 {
        self.max
    }
}

/// The greatest sample of this probing cycle and of the one before (`MaxBwFilterLen` = 2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TwoCycles {
    previous: f64,
    current: f64,
}

impl TwoCycles {
    pub(crate) const fn take(&mut self, sample: f64) {
        self.current = self.current.max(sample);
    }

    /// The next cycle begins. A cycle without samples does not count.
    pub(crate) fn advance(&mut self) {
        if self.current > 0.0 {
            *self = Self { previous: self.current, current: 0.0 };
        }
    }

    pub(crate) const fn get(&self) -> f64 {
        self.previous.max(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_maximum_lasts_for_its_window() {
        let mut max = WindowedMax::new(10);
        max.take(3, 7.0);
        for round in 4..=13 {
            max.take(round, 1.0);
            assert_eq!(max.get(), 7.0, "round {round}");
        }
        max.take(14, 2.0);
        assert_eq!(max.get(), 2.0);
        max.take(1000, 1.0);
        assert_eq!(max.get(), 1.0);
    }

    #[test]
    fn a_maximum_lasts_for_two_cycles_that_have_samples() {
        let mut max = TwoCycles::default();
        max.take(7.0);
        max.advance();
        max.advance();
        assert_eq!(max.get(), 7.0);
        max.take(2.0);
        assert_eq!(max.get(), 7.0);
        max.advance();
        assert_eq!(max.get(), 2.0);
    }

    proptest! {
        #[test]
        fn the_window_is_exact(window in 1u32..12, steps in prop::collection::vec((0u64..4, 0.0..100.0), 1..80)) {
            let mut max = WindowedMax::new(window);
            let mut round = 0;
            let mut all: Vec<(u64, f64)> = Vec::new();
            for (step, sample) in steps {
                round += step;
                all.push((round, sample));
                max.take(round, sample);
                let recent = all.iter().filter(|(at, _)| at + u64::from(window) >= round);
                prop_assert_eq!(max.get(), recent.map(|(_, sample)| *sample).fold(0.0, f64::max));
            }
        }
    }
}
