// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limit on how fast the weight may rise.

/// l_w of the framework: eq. 19, the value from Fig. 2.
pub const DEFAULT_INCREASE_LIMIT: f64 = 0.05;

/// A weight after the limit, and whether the limit bit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limited {
    /// The weight to apply.
    pub weight: f64,
    /// True if less than the requested weight was granted. Model-based control must not update its model
    /// error then.
    pub limited: bool,
}

/// Limit the increase from `previous` to `requested` (the framework, eq. 19):
/// if `requested - previous > l_w * requested` then `previous + l_w * requested`. Decreases are free.
///
/// `l_w` in (0, 1]; 1 switches the limit off. From any weight below, w = 1 takes at least `1/l_w` updates
/// less one.
#[must_use]
pub fn limit_increase(previous: f64, requested: f64, l_w: f64) -> Limited {
    if requested - previous > l_w * requested {
        Limited { weight: previous + l_w * requested, limited: true }
    } else {
        Limited { weight: requested, limited: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The framework's eq. 19 by hand: 0.1 + 0.05 * 0.5.
    #[test]
    fn a_tenth_to_a_half_gives_an_eighth() {
        let l = limit_increase(0.1, 0.5, 0.05);
        assert!((l.weight - 0.125).abs() < 1e-15, "{l:?}");
        assert!(l.limited);
    }

    #[test]
    fn decreases_are_free_and_small_increases_pass() {
        let free = |w| Limited { weight: w, limited: false };
        assert_eq!(limit_increase(1.0, 0.004, 0.05), free(0.004));
        assert_eq!(limit_increase(0.100, 0.105, 0.05), free(0.105));
        assert_eq!(limit_increase(0.3, 0.3, 0.05), free(0.3));
        assert_eq!(limit_increase(0.004, 1.0, 1.0), free(1.0));
    }

    #[test]
    fn twenty_updates_to_the_top() {
        let (mut w, mut n) = (0.004, 0);
        while w < 1.0 {
            w = limit_increase(w, 1.0, 0.05).weight;
            n += 1;
        }
        assert_eq!(n, 20);
    }
}
