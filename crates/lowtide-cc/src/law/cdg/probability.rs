// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probability of a back-off: `P = 1 - exp(-x)` for a hazard `x`.
//!
//! A back-off happens if a uniform number is *below* P. Equation 5 of the deadline paper has it reversed.

use crate::text::values;

values! {
    /// How `exp(-x)` is calculated.
    pub enum Exp {
        /// In floating point.
        Exact = "exact",
        /// Linux's integers: a product of up to 17 factors (thesis, figure 3.4), full scale 2³²-1.
        Product = "product",
        /// FreeBSD's table: steps of 1/128, never quite zero, certain above 5.
        Table = "table",
    }
}

impl Exp {
    /// `1 - exp(-hazard)`.
    pub fn probability(self, hazard: f64) -> f64 {
        match self {
            Self::Exact => -libm::expm1(-hazard),
            Self::Product => f64::from(u32::MAX - product((hazard * 1e6) as u64)) / FULL_SCALE,
            Self::Table => table(hazard),
        }
    }
}

/// One more than the largest random number of 32 bits.
const FULL_SCALE: f64 = 4_294_967_296.0;

/// `exp(-x)·2¹⁶ - 1` for x = 256e-6, 512e-6, … doubled each time up to 8.39 (thesis, figure 3.4).
const FACTORS: [u16; 16] =
    [65518, 65501, 65468, 65401, 65267, 65001, 64470, 63422, 61378, 57484, 50423, 38795, 22965, 8047, 987, 14];

/// `exp(-x)·(2³²-1)`, x in millionths; 0 from 2²⁴ (16.78) on.
fn product(millionths: u64) -> u32 {
    if millionths >= 1 << 24 {
        return 0;
    }
    // The first eight bits linearly, the others as a product of powers.
    let linear = u64::from(u32::MAX) - (millionths & 0xff) * (u64::from(u32::MAX) / 1_000_000);
    let bits = FACTORS.iter().enumerate().filter(|(bit, _)| millionths >> (8 + bit) & 1 == 1);
    bits.fold(linear, |result, (_, factor)| (result * (u64::from(*factor) + 1)) >> 16) as u32
}

/// `probexp[]` of FreeBSD's `cc_cdg.c`, in 2⁻¹⁵, scaled as there to random numbers of 32 bits.
fn table(hazard: f64) -> f64 {
    const STEPS: f64 = 128.0;
    const PRECISION: f64 = 32768.0;
    if hazard > 5.0 {
        return 1.0;
    }
    let entry = match (hazard * STEPS + 0.5).floor() {
        0.0 => 10.0, // "a safety for very low increase gradients"
        index => (-libm::expm1(-index / STEPS) * PRECISION).round(),
    };
    entry * ((FULL_SCALE - 1.0) / PRECISION).floor() / FULL_SCALE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Exp; 3] = [Exp::Exact, Exp::Product, Exp::Table];

    #[test]
    fn limits_and_the_textbook_value() {
        for exp in ALL {
            let p = |gradient: f64, g: f64| exp.probability(gradient / g);
            assert!((p(3.0, 3.0) - 0.632).abs() < 1e-3, "{exp:?}");
            assert!((p(3.0, 1e-4) - 1.0).abs() < 1e-3);
            assert!(p(3.0, 1e6) < 1e-3);
        }
        assert_eq!(Exp::Exact.probability(0.0), 0.0);
    }

    #[test]
    fn the_product_has_full_scale_and_a_cut() {
        assert_eq!(product(0), u32::MAX);
        assert!((1..300).contains(&product((1 << 24) - 1))); // exactly 222
        assert_eq!((product(1 << 24), product(u64::MAX)), (0, 0));
        assert_eq!(Exp::Product.probability(16.78), (FULL_SCALE - 1.0) / FULL_SCALE);
    }

    #[test]
    fn the_table_is_coarse_and_cut_at_five() {
        let entry = |index: f64| (Exp::Table.probability(index / 128.0) * 32768.0).round();
        let known = [(0.0, 10.0), (1.0, 255.0), (2.0, 508.0), (16.0, 3850.0), (128.0, 20713.0), (640.0, 32547.0)];
        for (index, value) in known {
            assert_eq!(entry(index), value, "{index}");
        }
        assert_eq!(entry(0.49), 10.0);
        assert_eq!(entry(0.51), 255.0);
        assert!(Exp::Table.probability(5.0) < 1.0);
        assert_eq!(Exp::Table.probability(5.001), 1.0);
    }

    proptest! {
        #[test]
        fn the_product_is_near(micro in 0u64..1 << 24) {
            let exact = libm::exp(-(micro as f64) * 1e-6);
            prop_assert!((f64::from(product(micro)) / f64::from(u32::MAX) - exact).abs() <= 2e-5);
        }

        #[test]
        fn the_table_is_within_half_a_step(hazard in 0.0..5.0f64) {
            let exact = -libm::expm1(-hazard);
            prop_assert!((Exp::Table.probability(hazard) - exact).abs() <= 0.5 / 128.0 + 1.0 / 16384.0);
        }

        #[test]
        fn it_is_a_probability(hazard in 0.0..1e12f64) {
            for exp in ALL {
                prop_assert!((0.0..=1.0).contains(&exp.probability(hazard)));
            }
        }
    }
}
