// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pauses of bursts whose segments the stack paces one by one.

use super::native_burst_pace;
use proptest::prelude::*;

const MSS: u32 = 1448;
const BURST: u32 = 4;
/// Bytes per second.
const PACE: u64 = 100_000;

/// The pauses after segments of these lengths, which leave one after the other, in seconds.
fn pauses(first: u32, lengths: &[u32]) -> Vec<f64> {
    let (mut end, mut nxt) = (first, first);
    let mut pause = |length: &u32| {
        // SAFETY: a function of integers and the one it is given.
        let pace = unsafe { native_burst_pace(PACE, &raw mut end, nxt, BURST * MSS, MSS) };
        nxt = nxt.wrapping_add(*length);
        f64::from(*length) / pace as f64
    };
    lengths.iter().map(&mut pause).collect()
}

#[test]
fn after_the_last_segment_of_a_burst_comes_its_pause() {
    let pauses = pauses(u32::MAX - 3 * MSS, &[MSS; 12]);
    let whole = f64::from(BURST * MSS) / PACE as f64;
    for (at, pause) in pauses.into_iter().enumerate() {
        let expected = if at % 4 == 3 { whole } else { f64::from(MSS) / 125e6 };
        assert!((pause / expected - 1.0).abs() < 1e-3, "{at}: {pause} s instead of {expected}");
    }
}

proptest! {
    /// Whatever is left of a burst after segments that were not full, no pause is longer than that of the whole.
    #[test]
    fn no_pause_is_longer_than_that_of_a_burst(first: u32, lengths in prop::collection::vec(1..=MSS, 1..50)) {
        let whole = f64::from(BURST * MSS) / PACE as f64;
        for pause in pauses(first, &lengths) {
            prop_assert!(pause <= 1.001 * whole, "{pause} s instead of {whole}");
        }
    }
}
