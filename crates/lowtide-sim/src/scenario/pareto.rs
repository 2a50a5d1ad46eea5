// SPDX-License-Identifier: MIT OR Apache-2.0
//! Heavy-tailed sizes.

use libm::{log, pow};

/// The Pareto distribution, cut off at a largest value: most values are small, most of their sum comes from few.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundedPareto {
    mean: f64,
    alpha: f64,
    largest: f64,
    smallest: f64,
}

impl BoundedPareto {
    /// The one with this mean, shape and largest value; `None` unless 0 < `mean` < `largest` and `alpha` is from 0.1 to
    /// 10.
    pub fn new(mean: f64, alpha: f64, largest: f64) -> Option<Self> {
        let possible = 0.0 < mean && mean < largest && largest.is_finite() && (0.1..=10.0).contains(&alpha);
        // the mean grows with the smallest value, from 0 to `largest`; 100 halvings exhaust the digits of a double
        let (mut low, mut high) = (0.0, largest);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if mean_between(middle, largest, alpha) < mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        possible.then_some(Self { mean, alpha, largest, smallest: high })
    }

    /// The mean.
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// The exponent of the tail; the variance is large below 2, and below 1 the largest values decide the mean.
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The largest value.
    pub const fn largest(&self) -> f64 {
        self.largest
    }

    /// The value below which a part `u` of all values lies, 0 <= `u` < 1: with a uniform `u`, a random value.
    pub fn quantile(&self, u: f64) -> f64 {
        let Self { alpha, largest, smallest, .. } = *self;
        let below = 1.0 - pow(smallest / largest, alpha);
        (smallest * pow(1.0 - u * below, -1.0 / alpha)).clamp(smallest, largest)
    }
}

/// The mean of the distribution between these bounds.
fn mean_between(smallest: f64, largest: f64, alpha: f64) -> f64 {
    let ratio = smallest / largest;
    let below = 1.0 - pow(ratio, alpha);
    if below <= 0.0 {
        return largest;
    }
    if (alpha - 1.0).abs() < 1e-9 {
        return smallest * -log(ratio) / below;
    }
    alpha / (alpha - 1.0) * smallest * (1.0 - pow(ratio, alpha - 1.0)) / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_worked_example() {
        // alpha 1.5 from 1 to 4: mean = 3·(1 - 1/2)/(1 - 1/8) = 12/7; the median is (1 - 7/16)^(-2/3)
        let pareto = BoundedPareto::new(12.0 / 7.0, 1.5, 4.0).unwrap();
        assert!((pareto.smallest - 1.0).abs() < 1e-12);
        assert!((pareto.quantile(0.5) - pow(9.0 / 16.0, -2.0 / 3.0)).abs() < 1e-12);
        assert_eq!(pareto.quantile(0.0), pareto.smallest);
    }

    #[test]
    fn impossible_ones_are_refused() {
        for (mean, alpha, largest) in
            [(0.0, 1.2, 1.0), (1.0, 1.2, 1.0), (1.0, 0.0, 2.0), (1.0, f64::NAN, 2.0), (f64::NAN, 1.2, 2.0)]
        {
            assert_eq!(BoundedPareto::new(mean, alpha, largest), None, "{mean} {alpha} {largest}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn values_have_the_mean_and_stay_within_bounds(
            alpha in prop_oneof![0.5..3.0, Just(1.0)],
            part in 0.01..0.9,
        ) {
            let pareto = BoundedPareto::new(part, alpha, 1.0).unwrap();
            let values: Vec<f64> = (0..100_000).map(|n| pareto.quantile((f64::from(n) + 0.5) / 1e5)).collect();
            prop_assert!(values.iter().all(|value| (pareto.smallest..=1.0).contains(value)));
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            prop_assert!((mean - part).abs() < 0.01 * part, "{mean} instead of {part}");
        }
    }
}
