// SPDX-License-Identifier: MIT OR Apache-2.0
//! Q of acceleration and overload mode, and `LOWTIDE_LATENCY` in its place.

use super::{native_acceleration_scale_q16, native_overshoot_us};

/// A part of the round trip, in 2⁻²⁴.
const fn part(q24: u32) -> u32 {
    1 << 31 | q24
}

#[test]
fn the_latency_of_a_socket_takes_the_place_of_q() {
    let twentieth = part((1 << 24) / 20);
    for (q, latency_us, expected) in [(1000, 0, 1000), (twentieth, 0, 749), (1000, 5000, 5000), (twentieth, 5000, 5000)]
    {
        // SAFETY: functions of numbers alone.
        let (overshoot, scale) = unsafe {
            let tested = 150 << 16;
            (native_overshoot_us(q, latency_us, 15_000), native_acceleration_scale_q16(tested, q, latency_us, 15_000))
        };
        assert_eq!(overshoot, expected, "{q:#x}, {latency_us}");
        let segments = 150.0 * expected as f64 / 15_000.0;
        assert!((scale as f64 / 65_536.0 - segments).abs() < 0.02, "{q:#x}, {latency_us}: {scale}");
    }
}
