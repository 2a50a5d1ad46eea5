// SPDX-License-Identifier: MIT OR Apache-2.0
//! CUBIC's arithmetic: the cube root and the curve in integers.

use proptest::prelude::*;

unsafe extern "C" {
    fn native_cubic_root(x: u64) -> u64;
    fn native_cubic_k_q20(below_q16: u64, c_q22: u32) -> u64;
    fn native_cubic_curve_q16(c_q22: u32, t_q20: u64) -> u64;
}

const Q22: f64 = 4_194_304.0;
const Q20: f64 = 1_048_576.0;
const Q16: f64 = 65_536.0;
/// Segments: what the curve may differ from its plateau by.
const MOST: f64 = 2_147_483_648.0;

/// K in seconds, for C in 2⁻²².
fn k(below_q16: u64, c_q22: u32) -> f64 {
    (unsafe { native_cubic_k_q20(below_q16, c_q22) }) as f64 / Q20
}

/// C t³ in segments.
fn curve(c_q22: u32, t_q20: u64) -> f64 {
    (unsafe { native_cubic_curve_q16(c_q22, t_q20) }) as f64 / Q16
}

fn root_is_exact(x: u64) -> bool {
    let root = u128::from(unsafe { native_cubic_root(x) });
    root.pow(3) <= u128::from(x) && (root + 1).pow(3) > u128::from(x)
}

#[test]
fn the_cube_root_is_exact_at_the_edges() {
    for x in [1 << 61, (1 << 61) + 1, u64::MAX, u64::MAX - 1, 1 << 63] {
        assert!(root_is_exact(x), "{x}");
    }
    for root in [1_321_123u64, 1_321_124, 1_500_000, 2_000_001, 2_642_245] {
        let x = root.pow(3);
        for x in [x - 1, x, x + 1] {
            assert!(root_is_exact(x), "{root}");
        }
    }
}

#[test]
fn k_of_rfc_9438() {
    let c = (0.4 * Q22).round() as u32;
    assert_eq!(k(0, c), 0.0);
    // cbrt((1000 - 700)/0.4)
    assert!((k(300 << 16, c) - 9.085_602_964).abs() < 2e-5, "{}", k(300 << 16, c));
    // a last bit of the window is 34 ms
    assert!((k(1, c) - 0.033_67).abs() < 1e-5, "{}", k(1, c));
    assert!(k(u64::MAX, 419) <= 4096.0, "bounded");
}

proptest! {
    #[test]
    fn the_cube_root_is_rounded_down(x in (1u64 << 61)..) {
        prop_assert!(root_is_exact(x));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the platform's cube root is good to far more than the bound")]
    fn k_is_right_to_a_millionth_and_a_microsecond(below in 1u64..1 << 47, c in 419u32..=4_194_304_000) {
        let exact = (below as f64 / Q16 / (f64::from(c) / Q22)).cbrt().min(4096.0);
        prop_assert!((k(below, c) - exact).abs() <= exact * 1e-6 + 1e-6, "{} instead of {exact}", k(below, c));
    }

    /// 2^-16 of C t and of t² are lost, and of the whole.
    #[test]
    fn the_curve_is_right_to_what_its_factors_lose(c in 419u32..=4_194_304_000, t in 0u64..1 << 32) {
        let (rate, t) = (f64::from(c) / Q22, t as f64 / Q20);
        let exact = (rate * t * t * t).min(MOST);
        let lost = (t * t + rate * t + 1.0) / Q16 + exact * 1e-6;
        let got = curve(c, (t * Q20) as u64);
        prop_assert!((got - exact).abs() <= lost, "{got} instead of {exact}");
    }
}
