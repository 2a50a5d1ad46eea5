// SPDX-License-Identifier: MIT OR Apache-2.0
//! One budget for all sockets of a transfer.

use crate::Weight;

/// The weight of each of `n` sending sockets, so that together they take what one socket of weight `w`
/// would: `w * n^(-alpha)` (`docs/how-it-works.md`, "One budget for all sockets").
///
/// `alpha` > 0 is the law's exponent: its rate goes with price^(-1/alpha); 2 for Reno, 4/3 for CUBIC, 1 for
/// Vegas. Count only sockets that are sending; 0 counts as 1. The result may lie below the policy's `w_min`
/// on purpose. An `alpha` that is not a finite number above 0 counts as 2, the most submissive of the three.
#[must_use]
pub fn socket_weight(w: Weight, n: u32, alpha: f64) -> Weight {
    let alpha = if alpha.is_finite() && alpha > 0.0 { alpha } else { 2.0 };
    let each = w.get() * libm::pow(f64::from(n.max(1)), -alpha);
    Weight::new(each.max(f64::MIN_POSITIVE)).unwrap_or(w)
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

    #[test]
    fn odd_arguments() {
        let w = Weight::new(0.5).unwrap();
        assert_eq!(socket_weight(w, 0, 2.0), w);
        assert_eq!(socket_weight(w, 1, 7.0), w);
        assert_eq!(socket_weight(w, 2, f64::NAN).get(), 0.125);
        assert!(socket_weight(w, u32::MAX, 100.0).get() > 0.0);
    }
}
