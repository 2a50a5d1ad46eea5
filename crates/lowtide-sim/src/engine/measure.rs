// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means and percentiles in constant memory.

use hdrhistogram::Histogram;
use std::time::Duration;

/// A distribution of times; percentiles are exact to 1 %.
#[derive(Clone)]
pub(super) struct Times {
    sum: u128,
    smallest: u64,
    counts: Histogram<u64>,
}

/// Longer times count as this, in nanoseconds: 1000 s.
const LONGEST: u64 = 1_000_000_000_000;

impl Times {
    pub(super) fn new() -> Self {
        let counts = Histogram::new_with_bounds(1000, LONGEST, 2).expect("constant bounds");
        Self { sum: 0, smallest: u64::MAX, counts }
    }

    pub(super) fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.sum += u128::from(nanos);
        self.smallest = self.smallest.min(nanos);
        self.counts.saturating_record(nanos);
    }

    pub(super) fn min_ms(&self) -> Option<f64> {
        (!self.counts.is_empty()).then_some(self.smallest as f64 / 1e6)
    }

    pub(super) fn mean_ms(&self) -> Option<f64> {
        let number = self.counts.len();
        (number > 0).then(|| self.sum as f64 / number as f64 / 1e6)
    }

    pub(super) fn p95_ms(&self) -> Option<f64> {
        (!self.counts.is_empty()).then(|| self.counts.value_at_quantile(0.95) as f64 / 1e6)
    }
}

/// Jain's index of fairness (Jain, Chiu and Hawe, 1984); `None` for fewer than two rates, or none above zero.
pub(super) fn jain(rates: &[f64]) -> Option<f64> {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    (rates.len() >= 2 && squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_to_a_percent() {
        let mut times = Times::new();
        assert_eq!((times.min_ms(), times.mean_ms(), times.p95_ms()), (None, None, None));
        for ms in 1..=100 {
            times.record(Duration::from_millis(ms));
        }
        assert_eq!((times.min_ms(), times.mean_ms()), (Some(1.0), Some(50.5)));
        let p95 = times.p95_ms().unwrap();
        assert!((94.0..=96.0).contains(&p95), "{p95}");
    }

    #[test]
    fn jain_of_equals_is_one_and_of_a_monopoly_one_nth() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[0.0, 8.0]), Some(0.5));
        assert_eq!(jain(&[1.0]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }
}
