// SPDX-License-Identifier: MIT OR Apache-2.0
//! One budget for all sockets of a transfer, whether they share a weight or have weights of their own.

use crate::Weight;

/// The weight of each of `n` sending sockets, so that together they take what one socket of weight `w`
/// would: `w * n^(-alpha)` (`docs/how-it-works.md`, "One budget for all sockets").
///
/// `alpha` > 0 is the law's exponent: its rate goes with price^(-1/alpha); 2 for Reno, 4/3 for CUBIC, 1 for
/// Vegas. Count only sockets that are sending; 0 counts as 1. The result may lie below the policy's `w_min`
/// on purpose. An `alpha` that is not a finite number above 0 counts as 2, the most submissive of the three.
#[must_use]
pub fn socket_weight(w: Weight, n: u32, alpha: f64) -> Weight {
    let each = w.get() * libm::pow(f64::from(n.max(1)), -sound(alpha));
    Weight::new(each.max(f64::MIN_POSITIVE)).unwrap_or(w)
}

/// One flow's budget among members that each have a weight of their own: sockets with a goal, and the others as one
/// member.
///
/// A law whose rate goes with price^(-1/alpha) gives a member of weight w the part w^(1/alpha) of an ordinary flow.
/// Those parts add up. As long as their sum is one flow at most each member has what its weight means; beyond that all
/// are cut in the same proportion, so that together they take one ordinary flow and no more.
#[derive(Debug, Clone, PartialEq)]
pub struct Division {
    whole: Weight,
    parts: Vec<f64>,
    alpha: f64,
}

impl Division {
    /// Divides among members of these weights, at least one; what holds for `alpha` in [`socket_weight`] holds here.
    /// Where a weight lies above 1 the limit is the largest of them instead of one flow.
    #[must_use]
    pub fn new(weights: &[Weight], alpha: f64) -> Division {
        let alpha = sound(alpha);
        let rates: Vec<f64> = weights.iter().map(|w| libm::pow(w.get(), 1.0 / alpha)).collect();
        let sum: f64 = rates.iter().sum();
        let most = weights.iter().fold(1.0, |most: f64, w| most.max(w.get()));
        let whole = Weight::new(libm::pow(sum, alpha).min(most)).expect("a sum of positive numbers, limited");
        Division { whole, parts: rates.iter().map(|rate| rate / sum).collect(), alpha }
    }

    /// The weight of one flow that takes what all members take.
    #[must_use]
    pub fn whole(&self) -> Weight {
        self.whole
    }

    /// The part of it that this member takes; all parts together are 1.
    #[must_use]
    pub fn part(&self, member: usize) -> f64 {
        self.parts[member]
    }

    /// The weight that this member applies if it stands for itself: its own, or less where the members ask for more
    /// than one flow.
    #[must_use]
    pub fn weight(&self, member: usize) -> Weight {
        let w = self.whole.get() * libm::pow(self.parts[member], self.alpha);
        Weight::new(w.max(f64::MIN_POSITIVE)).unwrap_or(self.whole)
    }
}

fn sound(alpha: f64) -> f64 {
    if alpha.is_finite() && alpha > 0.0 { alpha } else { 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_sockets_carry_what_one_would() {
        for (alpha, n) in [(2.0, 8), (4.0 / 3.0, 16), (1.0, 3)] {
            for w in [0.004, 0.3, 1.0] {
                let each = socket_weight(Weight::new(w).unwrap(), n, alpha).get();
                // rate(q, w) = (q/w)^(-1/alpha) at the same price q
                let rate = |w: f64| libm::pow(1e-3 / w, -1.0 / alpha);
                let sum = f64::from(n) * rate(each);
                assert!((sum / rate(w) - 1.0).abs() < 1e-12, "{alpha} {n} {w}");
            }
        }
    }

    fn divide(weights: &[f64], alpha: f64) -> Division {
        let weights: Vec<Weight> = weights.iter().map(|w| Weight::new(*w).unwrap()).collect();
        Division::new(&weights, alpha)
    }

    fn close(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-12
    }

    #[test]
    fn within_one_flow_each_member_has_its_own_weight() {
        // at alpha = 2: parts 0.2, 0.1 and 0.5 of a flow
        let division = divide(&[0.04, 0.01, 0.25], 2.0);
        for (member, w) in [0.04, 0.01, 0.25].into_iter().enumerate() {
            assert!(close(division.weight(member).get(), w), "{member}");
        }
        assert!(close(division.whole().get(), 0.64) && close(division.part(2), 0.625));
    }

    #[test]
    fn together_members_never_take_more_than_one_flow() {
        for alpha in [1.0, 4.0 / 3.0, 2.0] {
            for weights in [&[1.0, 1.0, 0.004][..], &[0.5; 40], &[1.0]] {
                let division = divide(weights, alpha);
                let rates = (0..weights.len()).map(|i| libm::pow(division.weight(i).get(), 1.0 / alpha));
                assert!(close(rates.sum(), 1.0), "{alpha} {weights:?}");
                assert_eq!(division.whole().get(), 1.0);
            }
        }
    }

    #[test]
    fn equal_members_are_sockets_that_share_a_weight() {
        let each = socket_weight(Weight::new(1.0).unwrap(), 8, 4.0 / 3.0).get();
        assert!(close(divide(&[1.0; 8], 4.0 / 3.0).weight(3).get(), each));
    }

    #[test]
    fn a_weight_above_one_is_the_limit_then() {
        let division = divide(&[4.0, 1.0], 2.0);
        assert!(close(division.whole().get(), 4.0) && close(division.weight(0).get(), 4.0 * 4.0 / 9.0));
    }

    #[test]
    fn odd_arguments() {
        let w = Weight::new(0.5).unwrap();
        assert_eq!(socket_weight(w, 0, 2.0), w);
        assert_eq!(socket_weight(w, 1, 7.0), w);
        assert_eq!(socket_weight(w, 2, f64::NAN).get(), 0.125);
        assert!(socket_weight(w, u32::MAX, 100.0).get() > 0.0);
    }
}
