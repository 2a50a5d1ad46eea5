// SPDX-License-Identifier: MIT OR Apache-2.0
//! The price weight and the range policy allows it.

use std::fmt;

/// Default lower bound of the weight: about G = 0.5 ms for CDG (`docs/deviations.md`, 17), low enough to
/// yield, high enough to fill an idle link.
pub const DEFAULT_W_MIN: f64 = 0.004;
/// Default upper bound of the weight: an ordinary best-effort flow, never more.
pub const DEFAULT_W_MAX: f64 = 1.0;

/// A price weight, dimensionless, finite and greater than 0: w of the framework, eq. 5.
///
/// The sender sees the congestion price `q/w`. 1 is best effort; values above 1 take more than a fair
/// share and are only reached when the policy's `w_max` says so.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Weight(f64);

impl Weight {
    /// An ordinary best-effort flow.
    pub const ONE: Weight = Weight(1.0);

    /// A weight of `w`.
    ///
    /// # Errors
    /// [`WeightError::NotAWeight`] unless `w` is finite and greater than 0.
    pub fn new(w: f64) -> Result<Weight, WeightError> {
        if w.is_finite() && w > 0.0 { Ok(Weight(w)) } else { Err(WeightError::NotAWeight(w)) }
    }

    /// The number, finite and greater than 0.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The range of weights that policy allows: `0 < w_min <= w_max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    min: f64,
    max: f64,
}

impl Bounds {
    /// The range `w_min..=w_max`.
    ///
    /// # Errors
    /// [`WeightError::NotAWeight`] if one of them is not a weight, [`WeightError::Inverted`] if
    /// `w_min > w_max`.
    pub fn new(w_min: f64, w_max: f64) -> Result<Bounds, WeightError> {
        let (min, max) = (Weight::new(w_min)?.get(), Weight::new(w_max)?.get());
        if min > max {
            return Err(WeightError::Inverted { min, max });
        }
        Ok(Bounds { min, max })
    }

    /// The most submissive weight allowed.
    #[must_use]
    pub const fn min(&self) -> Weight {
        Weight(self.min)
    }

    /// The most aggressive weight allowed.
    #[must_use]
    pub const fn max(&self) -> Weight {
        Weight(self.max)
    }

    /// `w` brought into the range. A NaN becomes `w_min`: when in doubt, yield.
    #[must_use]
    pub fn clamp(&self, w: f64) -> Weight {
        if w.is_nan() {
            return self.min();
        }
        Weight(w.clamp(self.min, self.max))
    }

    /// The weight of a transfer past its deadline: best effort, or `w_max` where that is less
    /// (the framework gives no rule for that time). Never above 1, whatever `w_max` is, unless `w_min` already is.
    #[must_use]
    pub fn overdue(&self) -> Weight {
        self.clamp(1.0)
    }
}

impl Default for Bounds {
    /// [`DEFAULT_W_MIN`] to [`DEFAULT_W_MAX`].
    fn default() -> Bounds {
        Bounds { min: DEFAULT_W_MIN, max: DEFAULT_W_MAX }
    }
}

/// Why a weight or a range of weights was refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WeightError {
    /// Not a finite number greater than 0.
    NotAWeight(f64),
    /// The lower bound lies above the upper one.
    Inverted {
        /// The lower bound given.
        min: f64,
        /// The upper bound given.
        max: f64,
    },
}

impl fmt::Display for WeightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WeightError::NotAWeight(w) => {
                write!(f, "a price weight must be a finite number greater than 0, not {w}")
            }
            WeightError::Inverted { min, max } => {
                write!(f, "the smallest weight ({min}) must not be greater than the largest ({max})")
            }
        }
    }
}

impl std::error::Error for WeightError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_checked() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Bounds::new(bad, 1.0), Err(WeightError::NotAWeight(_))));
            assert!(matches!(Bounds::new(0.1, bad), Err(WeightError::NotAWeight(_))));
        }
        assert_eq!(Bounds::new(0.5, 0.1), Err(WeightError::Inverted { min: 0.5, max: 0.1 }));
        assert_eq!(Bounds::new(0.5, 0.5).unwrap().clamp(3.0).get(), 0.5);
        let d = Bounds::default();
        assert_eq!((d.min().get(), d.max().get()), (0.004, 1.0));
        assert_eq!(d.clamp(f64::NAN).get(), 0.004);
        assert_eq!(d.clamp(f64::INFINITY).get(), 1.0);
    }

    #[test]
    fn overdue_is_best_effort_or_less() {
        assert_eq!(Bounds::new(0.01, 4.0).unwrap().overdue().get(), 1.0);
        assert_eq!(Bounds::new(0.01, 0.3).unwrap().overdue().get(), 0.3);
    }

    #[test]
    fn errors_are_one_sentence() {
        let e = Bounds::new(0.5, 0.1).unwrap_err().to_string();
        assert_eq!(e, "the smallest weight (0.5) must not be greater than the largest (0.1)");
    }
}
