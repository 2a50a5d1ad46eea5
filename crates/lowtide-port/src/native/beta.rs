// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scaling the decrease factor: the cut of the law in the kernel against that of the reference.

use super::{Q16, native_budget_cut};
use lowtide_cc::{Ack, Actuator, Congestion, CongestionControl, Flow, Law, Reaction, Signal, Time};
use std::time::Duration;

const MSS: u32 = 1448;
/// What mainline's CDG keeps at a delay back-off.
const MAINLINE_Q10: u32 = 724;
const WEIGHTS: [f64; 6] = [1.0, 0.7, 0.5, 0.1, 0.02, 0.004];
const WINDOWS: [u32; 5] = [3, 10, 57, 400, 20_000];

/// The reference with a window of so many segments, whose delay back-offs are certain.
fn reference(window: u32, weight: f64) -> Box<dyn CongestionControl> {
    let law: Law = "cdg:g=0.0001,hystart=off".parse().unwrap();
    let mut law = law.build_weighted(&Flow { mss: MSS, initial_window: window, seed: 1 }, &Actuator::Beta).unwrap();
    law.weighted().unwrap().set_weight(weight);
    law
}

fn segments(law: &dyn CongestionControl) -> f64 {
    law.window() as f64 / f64::from(MSS)
}

/// The law in the kernel.
fn cut(window: f64, keep_q10: u32, weight: f64) -> f64 {
    let scaled = |value: f64| (value * Q16 as f64) as u64;
    // SAFETY: a function of integers.
    let left = unsafe { native_budget_cut(scaled(window), keep_q10, scaled(weight), 1) };
    left as f64 / Q16 as f64
}

/// To the rounding of both: 2^-16 of the window, and the reference's whole bytes.
fn close(ours: f64, theirs: f64, what: &str) {
    assert!((ours - theirs).abs() <= 1e-3 + theirs * 1e-3, "{what}: {ours} instead of {theirs}");
}

#[test]
fn a_loss_leaves_what_the_reference_leaves() {
    for window in WINDOWS {
        for weight in WEIGHTS {
            let mut law = reference(window, weight);
            let (una, nxt, in_flight) = (1, 2, 1);
            let congestion = Congestion { now: Time::ZERO, signal: Signal::Loss, una, nxt, in_flight };
            law.on_congestion(&congestion);
            close(cut(f64::from(window), 512, weight), segments(&*law), &format!("{window} segments at w = {weight}"));
        }
    }
}

#[test]
fn a_delay_back_off_leaves_what_the_reference_leaves() {
    for window in WINDOWS {
        for weight in WEIGHTS {
            let mut law = reference(window, weight);
            let (mut una, mut before) = (0, 0.0);
            // a round trip per ACK, each longer than the one before
            let reduced = (0..50u64).any(|round| {
                una += 2;
                before = segments(&*law);
                let rtt = Duration::from_millis(20 + round);
                let now = Time::from_nanos(1_000_000_000 + round * 40_000_000);
                let ack = Ack { now, packets: 2, rtt: Some(rtt), srtt: rtt, una, nxt: una + 1, ..Ack::default() };
                law.on_ack(&ack) == Reaction::Reduced
            });
            assert!(reduced, "the reference backs off");
            close(cut(before, MAINLINE_Q10, weight), segments(&*law), &format!("{before} segments at w = {weight}"));
        }
    }
}
