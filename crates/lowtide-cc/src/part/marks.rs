// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion marks, counted and averaged.

use crate::Ack;

/// Segments delivered, and those of them with CE, since counting began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    delivered: u64,
    marked: u64,
}

impl Marks {
    /// Counts an ACK.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.delivered = self.delivered.saturating_add(ack.packets.into());
        self.marked = self.marked.saturating_add(ack.marked.into());
    }

    /// The fraction `F` of marked segments, from 0 to 1; counting begins again.
    pub fn take(&mut self) -> f64 {
        let Self { delivered, marked } = std::mem::take(self);
        (marked as f64 / delivered.max(1) as f64).min(1.0)
    }
}

/// The moving average `alpha` of the fraction of marked segments (RFC 8257, section 3.3).
#[derive(Clone, Copy, Debug)]
pub struct MarkAverage {
    /// `alpha`, from 0 to 1.
    pub alpha: f64,
    gain: f64,
    weight: f64,
}

impl MarkAverage {
    /// An average that starts at `alpha` and moves by `gain` (`g`).
    pub const fn new(alpha: f64, gain: f64) -> Self {
        Self { alpha, gain, weight: 1.0 }
    }

    /// Sets the price weight: the average is that of `F/weight`. Inflated before it is averaged, since a full round of
    /// marks (`F` = 1) cannot cost more.
    pub const fn set_weight(&mut self, weight: f64) {
        self.weight = weight.clamp(f64::MIN_POSITIVE, 1.0);
    }

    /// `alpha = alpha * (1 - g) + g * F`.
    pub fn update(&mut self, fraction: f64) {
        let price = (fraction / self.weight).min(1.0);
        self.alpha = self.alpha * (1.0 - self.gain) + self.gain * price;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_is_counted_in_segments() {
        let mut marks = Marks::default();
        marks.on_ack(&Ack { packets: 6, marked: 1, ..Ack::default() });
        marks.on_ack(&Ack { packets: 2, marked: 1, ..Ack::default() });
        assert_eq!(marks.take(), 0.25);
        assert_eq!(marks.take(), 0.0);
    }

    #[test]
    fn a_weight_inflates_the_fraction_before_the_average() {
        let mut average = MarkAverage::new(0.0, 0.25);
        average.set_weight(0.5);
        average.update(0.25);
        assert_eq!(average.alpha, 0.125);
        average.set_weight(0.001);
        average.update(0.25);
        assert_eq!(average.alpha, 0.34375, "a round costs one at most");
        average.update(0.0);
        assert_eq!(average.alpha, 0.2578125, "nothing is nothing at any weight");
    }

    #[test]
    fn alpha_moves_by_a_sixteenth() {
        let mut average = MarkAverage::new(1.0, 1.0 / 16.0);
        average.update(0.0);
        assert_eq!(average.alpha, 0.9375);
        average.update(0.5);
        assert_eq!(average.alpha, 0.91015625);
        for _ in 0..200 {
            average.update(0.125);
        }
        assert!((average.alpha - 0.125).abs() < 1e-5); // (15/16)^200 = 2.5e-6
    }
}
