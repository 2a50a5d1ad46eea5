// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws of `law/`, compiled natively: tests of the very code that the kernel runs.

mod aggregate;
mod beta;
mod burst;
mod cdg;
mod cubic;
mod grant;
mod network;
mod owd;
mod price;
mod transients;
mod values;

use crate::{Ported, parameters::PARAMETERS};
use lowtide_cc::Law;
use proptest::prelude::*;

const Q16: u64 = 1 << 16;
const UNLIMITED: u32 = u32::MAX;
const WINDOW: u32 = 8;
const G0_US: u32 = 125_000;

/// Room for `struct cdg` and `struct phantom`; their sizes are checked.
#[repr(C, align(8))]
struct State([u8; 4096]);

unsafe extern "C" {
    fn native_exp_neg_q32(x_q16: u64) -> u32;
    fn native_budget_grow(window_q16: u64, ssthresh: u32, acked: u32, increase_q16: u64, sockets: u32) -> u64;
    fn native_budget_cut(window_q16: u64, keep_q10: u32, kept_q16: u64, sockets: u32) -> u64;
    fn native_budget_cwnd(window_q16: u64) -> u32;
    fn native_budget_pacing(window_q16: u64, mss: u32, srtt_us: u32) -> u32;
    fn native_burst_pace(pace: u64, end: *mut u32, nxt: u32, length: u32, handed: u32) -> u64;
    fn native_queue_is_empty(round_min_us: u32, min_rtt_us: u32, floor_us: u32) -> bool;
    fn native_cdg_size() -> u64;
    fn native_cdg_reset(state: *mut State, cwnd: u32);
    fn native_cdg_sample(state: *mut State, parameters: *const Parameters, rtt_us: u32, acked: u32, holes: bool);
    fn native_cdg_round(state: *mut State, parameters: *const Parameters, slow_start: bool) -> i64;
    fn native_cdg_hystart(state: *mut State, parameters: *const Parameters, now_us: u32, window_limited: bool) -> bool;
    fn native_cdg_excuses(state: *mut State, parameters: *const Parameters, mark: bool) -> bool;
    fn native_cdg_cut_by_delay(
        state: *mut State,
        parameters: *const Parameters,
        window_q16: u64,
        kept_q16: u64,
        sockets: u32,
    ) -> u64;
    fn native_cdg_cut_by_congestion(
        state: *mut State,
        parameters: *const Parameters,
        window_q16: u64,
        kept_q16: u64,
        sockets: u32,
        loss: bool,
    ) -> u64;
    fn native_cdg_grow(
        state: *mut State,
        parameters: *const Parameters,
        window_q16: u64,
        ssthresh_q16: u64,
        acked: u32,
        round_over: bool,
        sockets: u32,
        now_us: u64,
    ) -> u64;
    fn native_cdg_hazard_q16(gradient_sum_us: u64, window: u32, g0_us: u32, surplus_q16: u64) -> u64;
    fn native_cdg_price_q32(gradient_sum_us: u64, window: u32, g0_us: u32) -> u64;
    fn native_cdg_backs_off(state: *mut State, parameters: *const Parameters, hazard_q16: u64, random: u32) -> bool;
    fn native_price_size() -> u64;
    fn native_price_new_event(state: *mut State, ca_state: u32, high_seq: u32, snd_una: u32, delivered_ce: u32)
    -> bool;
    fn native_owd_size() -> u64;
    fn native_owd_delay(state: *mut State, stamped: bool, tsval: u32, now_us: u64, rtt_us: u32) -> u32;
    fn native_owd_use(state: *const State) -> u32;
    fn native_overshoot_us(q: u32, latency_us: u32, rtt_us: u32) -> u64;
    fn native_acceleration_scale_q16(tested_q16: u64, q: u32, latency_us: u32, srtt_us: u32) -> u64;
    fn native_phantom_size() -> u64;
    fn native_phantom_start(state: *mut State, now_ns: u64);
    fn native_phantom_real_signal(state: *mut State, now_ns: u64);
    fn native_phantom_round(state: *mut State, rtt_us: u32);
    fn native_phantom_chance_q32(
        state: *const State,
        now_ns: u64,
        srtt_us: u32,
        min_rtt_us: u32,
        slow_start: bool,
        surplus_q16: u64,
        chance_q32: u64,
        segments: u32,
    ) -> u64;
}

// SAFETY of all calls below: plain functions of integers, and of a state that is large enough and ours alone.

fn exp_neg(x: f64) -> f64 {
    f64::from(unsafe { native_exp_neg_q32((x * Q16 as f64) as u64) }) / 4_294_967_296.0
}

/// `struct cdg_parameters`.
type Parameters = [u32; PARAMETERS];

/// Mainline's CDG with the G of a weight; its slow start ends by delay alone.
const MAINLINE: &str = "g=125,hystart=delay";

/// That, but for these parameters.
fn mainline(but: &str) -> String {
    format!("{MAINLINE},{but}")
}

struct Cdg(Box<State>, Parameters);

impl Cdg {
    fn new() -> Cdg {
        Cdg::with(MAINLINE)
    }

    fn with(parameters: &str) -> Cdg {
        assert!(unsafe { native_cdg_size() } as usize <= size_of::<State>());
        let mut state = Box::new(State([0xa5; 4096]));
        unsafe { native_cdg_reset(&mut *state, 10) };
        let law: Law = format!("cdg:{parameters}").parse().unwrap();
        Cdg(state, *Ported::new(&law).unwrap().parameters())
    }

    fn sample(&mut self, rtt_us: u32, acked: u32) {
        unsafe { native_cdg_sample(&mut *self.0, &raw const self.1, rtt_us, acked, false) }
    }

    /// A round with these extremes; the sum of the window's gradients.
    fn round(&mut self, min_us: u32, max_us: u32) -> i64 {
        self.sample(min_us, 2);
        self.sample(max_us, 2);
        self.end_round(false)
    }

    fn end_round(&mut self, slow_start: bool) -> i64 {
        unsafe { native_cdg_round(&mut *self.0, &raw const self.1, slow_start) }
    }

    /// Whether a round of this hazard backs off, where chance has it so.
    fn backs_off(&mut self, hazard_q16: u64, random: u32) -> bool {
        unsafe { native_cdg_backs_off(&mut *self.0, &raw const self.1, hazard_q16, random) }
    }
}

struct Phantom(Box<State>);

impl Phantom {
    fn starting_at(now_ns: u64) -> Phantom {
        assert!(unsafe { native_phantom_size() } as usize <= size_of::<State>());
        let mut state = Box::new(State([0; 4096]));
        unsafe { native_phantom_start(&mut *state, now_ns) };
        Phantom(state)
    }

    fn real_signal(&mut self, now_ns: u64) {
        unsafe { native_phantom_real_signal(&mut *self.0, now_ns) }
    }

    /// A round whose smallest round trip was this.
    fn round(&mut self, rtt_us: u32) {
        unsafe { native_phantom_round(&mut *self.0, rtt_us) }
    }

    /// At 40 ms, with p(1/w - 1) = 1 % a segment.
    fn chance(&self, now_ns: u64, slow_start: bool, surplus: f64) -> f64 {
        let (surplus, chance) = ((surplus * Q16 as f64) as u64, 42_949_673);
        let q32 =
            unsafe { native_phantom_chance_q32(&*self.0, now_ns, 40_000, 40_000, slow_start, surplus, chance, 1) };
        q32 as f64 / 4_294_967_296.0
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the platform's exponential is good to far more than the bound")]
fn the_exponential_is_right_to_2e_5() {
    for i in 0..=2300 {
        let x = f64::from(i * 655) / Q16 as f64; // exact in the law's own scale
        assert!((exp_neg(x) - (-x).exp()).abs() < 2e-5, "exp(-{x}) = {}", exp_neg(x));
    }
    assert_eq!(exp_neg(30.0), 0.0);
}

#[test]
fn a_gradient_of_g_backs_off_with_probability_0_632() {
    // "Evaluating CAIA Delay Gradient ...", eqs. 4, 6 and 7 (docs/deviations.md has the full title).
    // G = 3 ms means 1/w - 1 = 125/3; a smoothed gradient of 3 ms is a sum of 24 ms
    let surplus = (125.0 / 3.0 * Q16 as f64) as u64;
    let hazard = unsafe { native_cdg_hazard_q16(24_000, WINDOW, G0_US, surplus) };
    assert!((1.0 - exp_neg(hazard as f64 / Q16 as f64) - 0.632).abs() < 1e-3);
    // no delay back-off at w = 1, always one for G -> 0
    assert_eq!(unsafe { native_cdg_hazard_q16(24_000, WINDOW, G0_US, 0) }, 0);
    let certain = unsafe { native_cdg_hazard_q16(24_000, WINDOW, G0_US, 1 << 40) };
    assert_eq!(exp_neg(certain as f64 / Q16 as f64), 0.0);
}

#[test]
fn delay_is_priced_by_the_law_s_own_measure() {
    for (sum_us, price) in [(0, 0.0), (1, 1e-6), (24_000, 0.024), (1 << 23, 8.388_607), (1 << 40, 8.388_607)] {
        let q32 = unsafe { native_cdg_price_q32(sum_us, WINDOW, G0_US) };
        assert!((q32 as f64 / 4_294_967_296.0 - price).abs() < 1e-9, "{sum_us}");
        // the hazard at 1/w - 1 = 1 is that price
        let hazard = unsafe { native_cdg_hazard_q16(sum_us, WINDOW, G0_US, Q16) };
        assert!((hazard as f64 / Q16 as f64 - price).abs() < 2e-5, "{sum_us}");
    }
}

#[test]
fn no_gradient_no_back_off() {
    let mut cdg = Cdg::new();
    for random in [0, 1, u32::MAX / 2, u32::MAX] {
        assert!(!cdg.backs_off(0, random));
        assert_eq!(cdg.backs_off(30 * Q16, random), random > 0);
    }
}

#[test]
fn ineffectual_back_offs_end_after_five_if_asked() {
    let mut cdg = Cdg::with(&mainline("ineff=5"));
    let taken: Vec<bool> = (0..7).map(|_| cdg.backs_off(30 * Q16, u32::MAX)).collect();
    assert_eq!(taken, [true, true, true, true, true, false, false]);
}

#[test]
fn gradients_telescope_and_a_part_filled_ring_is_extrapolated() {
    let mut cdg = Cdg::new();
    assert_eq!(cdg.round(40_000, 41_000), 0, "nothing to compare with");
    for n in 1..WINDOW {
        // every round 100 us more: the sum over a full window would be 800
        assert_eq!(cdg.round(40_000 + 100 * n, 41_000 + 100 * n), 800, "round {n}");
    }
    for n in WINDOW..40 {
        assert_eq!(cdg.round(40_000 + 100 * n, 41_000 + 100 * n), 800, "round {n}");
    }
    // the minima fall, the maxima rise: the maxima speak
    let mut cdg = Cdg::new();
    for n in 0..20 {
        let sum = cdg.round(60_000 - 100 * n, 70_000 + 50 * n);
        assert_eq!(sum, if n == 0 { 0 } else { 400 });
    }
}

#[test]
fn a_delayed_ack_does_not_look_like_a_queue() {
    let mut cdg = Cdg::new();
    cdg.sample(40_000, 2); // earns a credit
    cdg.sample(80_000, 1); // spends it: the receiver's timer
    assert_eq!(cdg.end_round(false), 0);
    cdg.sample(40_000, 2);
    assert_eq!(cdg.end_round(false), 0, "neither extreme moved");
}

#[test]
fn slow_start_ends_when_delay_rises_by_an_eighth() {
    for (rtt_us, ends) in [(44_900, false), (45_100, true)] {
        let mut cdg = Cdg::new();
        cdg.sample(40_000, 2);
        cdg.end_round(false);
        cdg.sample(rtt_us, 2);
        let ended = (0..9).any(|i| unsafe { native_cdg_hystart(&mut *cdg.0, &raw const cdg.1, 1 + i * 10_000, true) });
        assert_eq!(ended, ends, "{rtt_us}");
    }
}

#[test]
fn an_empty_queue_is_told_by_the_base_round_trip() {
    for (round, base, floor, empty) in [
        (40_500, 40_000, 2_000, true),
        (42_500, 40_000, 2_000, true), // a sixteenth of the base
        (42_600, 40_000, 2_000, false),
        (11_900, 10_000, 2_000, true), // the floor
        (12_100, 10_000, 2_000, false),
        (40_000, 40_000, 0, false), // switched off
        (0, 40_000, 2_000, false),  // nothing seen
    ] {
        assert_eq!(unsafe { native_queue_is_empty(round, base, floor) }, empty, "{round} {base} {floor}");
    }
}

#[test]
fn phantom_signals_end_three_intervals_after_the_last_loss() {
    const S: u64 = 1_000_000_000;
    let mut phantom = Phantom::starting_at(S);
    for loss in [3, 5, 7] {
        phantom.real_signal(loss * S);
    }
    phantom.round(60_000);
    let chance = |t: f64| phantom.chance((t * S as f64) as u64, false, 9.0);
    assert!((chance(7.1) - 0.01).abs() < 1e-6 && (chance(12.9) - 0.01).abs() < 1e-6);
    assert_eq!(chance(13.1), 0.0);
    assert_eq!(phantom.chance(8 * S, false, 0.0), 0.0, "nothing is added at w = 1");
}

#[test]
fn phantom_signals_end_on_an_empty_queue() {
    let mut phantom = Phantom::starting_at(1);
    phantom.real_signal(2_000_000_000);
    phantom.round(40_100);
    assert_eq!(phantom.chance(2_100_000_000, false, 9.0), 0.0);
    phantom.round(50_000);
    assert!(phantom.chance(2_100_000_000, false, 9.0) > 0.0);
}

#[test]
fn before_the_first_loss_a_quarter_of_the_segments_until_slow_start_ends() {
    const S: u64 = 1_000_000_000;
    let phantom = Phantom::starting_at(S);
    assert_eq!(phantom.chance(2 * S, true, 249.0), 0.25);
    assert_eq!(phantom.chance(2 * S, true, 0.1), phantom.chance(2 * S, true, 0.1).min(0.11), "less where w is high");
    assert_eq!(phantom.chance(2 * S, false, 249.0), 0.0);
    assert_eq!(phantom.chance(5 * S, true, 249.0), 0.0, "and for three seconds at most");
}

/// The sum of `sockets` shares after `rounds` round trips without loss.
fn grown(sockets: u32, start: u64, rounds: u32) -> f64 {
    let mut shares = vec![(start / u64::from(sockets), 0); sockets as usize];
    for _ in 0..rounds {
        for (share, sent) in &mut shares {
            // the share is acknowledged once a round trip, in whole segments
            *sent += *share;
            while *sent >= Q16 {
                *share = unsafe { native_budget_grow(*share, 2, 1, Q16, sockets) };
                *sent -= Q16;
            }
        }
    }
    shares.iter().map(|(share, _)| share).sum::<u64>() as f64 / Q16 as f64
}

#[test]
fn many_sockets_grow_as_one() {
    let one = grown(1, 64 * Q16, 50);
    for sockets in [2, 8, 16] {
        let many = grown(sockets, 64 * Q16, 50);
        assert!((many - one).abs() / one < 0.03, "{sockets}: {many} instead of {one}");
    }
}

#[test]
fn a_weight_above_one_grows_faster() {
    let slow = unsafe { native_budget_grow(10 * Q16, 2, 10, Q16, 1) } - 10 * Q16;
    let fast = unsafe { native_budget_grow(10 * Q16, 2, 10, 2 * Q16, 1) } - 10 * Q16;
    assert!(slow.abs_diff(Q16) < 10 && fast.abs_diff(2 * Q16) < 10, "{slow} {fast}");
}

#[test]
fn a_small_share_is_paced() {
    assert_eq!(unsafe { native_budget_pacing(4 * Q16, 1448, 50_000) }, UNLIMITED);
    // a short round trip: no pacing, unless the share needs it
    assert_eq!(unsafe { native_budget_pacing(4 * Q16, 1448, 999) }, 0);
    assert_eq!(unsafe { native_budget_pacing(2 * Q16, 1448, 100) }, 28_960_000);
    assert_eq!(unsafe { native_budget_cwnd(Q16 / 2) }, 4, "so that segments leave in pairs");
    // half a segment per 50 ms
    assert_eq!(unsafe { native_budget_pacing(Q16 / 2, 1448, 50_000) }, 14_480);
    // but never so slow that a connection looks dead
    assert_eq!(unsafe { native_budget_pacing(1, 1448, 10_000_000) }, 1448 / 4);
}

proptest! {
    #[test]
    fn shares_grow_within_bounds(
        window in 1u64..(1 << 40), ssthresh in 2u32..0x7fff_ffff, acked in 0u32..100_000, sockets in 0u32..10_000,
    ) {
        let grown = unsafe { native_budget_grow(window, ssthresh, acked, Q16, sockets) };
        prop_assert!(grown >= window);
        // slow start doubles at most; below a segment, one acknowledged segment adds at most one over the share it came
        // from
        let most = u64::from(acked) * (Q16 * Q16 / window).max(Q16);
        prop_assert!(grown - window <= most, "{window} -> {grown}");
    }

    #[test]
    fn cuts_keep_two_segments_together(
        window in 0u64..(1 << 40), keep in 1u32..=1024, kept in 0..=Q16, sockets in 1u32..10_000,
    ) {
        let cut = unsafe { native_budget_cut(window, keep, kept, sockets) };
        prop_assert!(cut >= 2 * Q16 / u64::from(sockets));
        prop_assert!(cut <= window.max(2 * Q16 / u64::from(sockets)));
        let cwnd = unsafe { native_budget_cwnd(cut) };
        prop_assert!(cwnd >= 2);
    }

    #[test]
    fn any_history_leaves_cdg_sane(rounds in prop::collection::vec((1u32..10_000_000, 0u32..10_000_000), 1..600)) {
        let mut cdg = Cdg::new();
        for (min, spread) in rounds {
            let sum = cdg.round(min, min.saturating_add(spread));
            // at most the largest change times the window, extrapolated
            prop_assert!(sum.unsigned_abs() < 8 * 20_000_000);
            let hazard = unsafe { native_cdg_hazard_q16(sum.max(0) as u64, WINDOW, G0_US, 1 << 40) };
            prop_assert!(hazard > 0 || sum <= 0);
        }
    }

    #[test]
    fn hazards_grow_with_gradient_and_surplus(g in 0u64..1 << 22, more in 0u64..1 << 20, s in 0u64..1 << 39) {
        let hazard = |g, s| unsafe { native_cdg_hazard_q16(g, WINDOW, G0_US, s) };
        prop_assert!(hazard(g, s) <= hazard(g + more, s));
        prop_assert!(hazard(g, s) <= hazard(g, s + (s >> 1)));
    }
}
