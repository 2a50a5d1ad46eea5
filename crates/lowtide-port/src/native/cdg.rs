// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen of CDG: mainline's behaviour and the thesis', part by part.

use super::*;

const ONE: u64 = Q16;

const THESIS: &str = "variant=thesis";

impl Cdg {
    fn excuses(&mut self, mark: bool) -> bool {
        unsafe { native_cdg_excuses(&mut *self.0, &raw const self.1, mark) }
    }

    /// Segments that a delay back-off leaves of so many.
    fn delay(&mut self, window: u64) -> f64 {
        (unsafe { native_cdg_cut_by_delay(&mut *self.0, &raw const self.1, window * ONE, ONE, 1) }) as f64 / ONE as f64
    }

    /// And a loss.
    fn loss(&mut self, window: u64) -> f64 {
        let left = unsafe { native_cdg_cut_by_congestion(&mut *self.0, &raw const self.1, window * ONE, ONE, 1, true) };
        left as f64 / ONE as f64
    }

    /// The window after so many segments acknowledged, at this time.
    fn grown(&mut self, window: f64, ssthresh: u64, acked: u32, round_over: bool, now_us: u64) -> f64 {
        let window = (window * ONE as f64) as u64;
        let (state, p) = (&raw mut *self.0, &raw const self.1);
        let grown = unsafe { native_cdg_grow(state, p, window, ssthresh * ONE, acked, round_over, 1, now_us) };
        grown as f64 / ONE as f64
    }

    /// Slow start for so many ACKs that are so far apart: whether it ends.
    fn hystart(&mut self, acks: u32, gap_us: u32, limited: impl Fn(u32) -> bool) -> bool {
        (0..acks).any(|n| unsafe { native_cdg_hystart(&mut *self.0, &raw const self.1, 1 + n * gap_us, limited(n)) })
    }
}

#[test]
fn the_delayed_ack_filter_can_be_switched_off() {
    for (filter, sum) in [("on", 0), ("off", 320_000)] {
        let mut cdg = Cdg::with(&mainline(&format!("filter={filter}")));
        cdg.round(40_000, 40_000);
        cdg.sample(40_000, 2);
        cdg.sample(80_000, 1); // the receiver's timer
        assert_eq!(cdg.end_round(false), sum);
    }
}

#[test]
fn a_ring_that_is_not_full_is_extrapolated_or_padded() {
    for (extrapolate, sum) in [("on", 8000), ("off", 1000)] {
        let mut cdg = Cdg::with(&mainline(&format!("extrapolate={extrapolate}")));
        cdg.round(40_000, 40_000);
        assert_eq!(cdg.round(41_000, 41_000), sum);
    }
}

#[test]
fn slow_start_can_prefer_what_is_not_smoothed() {
    for (unsmoothed, slow_start, sum) in [("off", true, 1000), ("on", false, 1000), ("on", true, 8000)] {
        let mut cdg = Cdg::with(&mainline(&format!("unsmoothed={unsmoothed},extrapolate=off")));
        cdg.round(40_000, 40_000);
        cdg.sample(41_000, 2);
        assert_eq!(cdg.end_round(slow_start), sum, "{unsmoothed} {slow_start}");
    }
    // the least falls, the greatest rises: first what is smoothed of the one, then the other as it is
    let mut cdg = Cdg::with(THESIS);
    cdg.round(40_000, 50_000);
    cdg.sample(39_000, 2);
    cdg.sample(52_000, 2);
    assert_eq!(cdg.end_round(true), 16_000);
}

#[test]
fn the_thesis_has_means_in_whole_microseconds() {
    for (parameters, rise, sum) in [(THESIS, 3, 0), (THESIS, 4, 8), (mainline("extrapolate=off").as_str(), 3, 3)] {
        let mut cdg = Cdg::with(parameters);
        cdg.round(40_000, 40_000);
        assert_eq!(cdg.round(40_000 + rise, 40_000 + rise), sum);
    }
}

/// After these back-offs and a fall of the delay by so much, are the next ones taken again?
fn forgives(parameters: &str, fall_us: u32) -> bool {
    let mut cdg = Cdg::with(parameters);
    cdg.round(40_000, 40_000);
    for _ in 0..6 {
        cdg.backs_off(30 * Q16, u32::MAX);
    }
    assert!(!cdg.backs_off(30 * Q16, u32::MAX));
    cdg.round(40_000 - fall_us, 40_000 - fall_us);
    cdg.backs_off(30 * Q16, u32::MAX)
}

#[test]
fn ineffectual_back_offs_end_with_a_falling_delay() {
    let (mainline, thesis) = (mainline("ineff=5"), format!("{THESIS},hold=100"));
    assert_eq!([31, 32].map(|fall| forgives(&mainline, fall)), [false, true]);
    assert_eq!([3, 4].map(|fall| forgives(&thesis, fall)), [false, true], "a mean of half a microsecond is one");
}

#[test]
fn the_thesis_holds_five_and_begins_anew() {
    let mut cdg = Cdg::with(THESIS);
    let taken: Vec<bool> = (0..20).map(|_| cdg.backs_off(30 * Q16, u32::MAX)).collect();
    let cycle = [[true; 5], [false; 5]].concat();
    assert_eq!(taken, [cycle.clone(), cycle].concat());
}

#[test]
fn a_loss_leaves_half_of_the_shadow_window() {
    // back-offs from 40 segments on, then a loss: the shadow remembers 40
    for (parameters, left) in [(MAINLINE, 7.0), (mainline("shadow=on").as_str(), 14.0), (THESIS, 20.0)] {
        let mut cdg = Cdg::with(parameters);
        cdg.delay(40);
        assert_eq!(cdg.loss(14), left, "mainline bounds the shadow by the window");
    }
}

#[test]
fn an_unused_window_bounds_its_shadow() {
    // growth by what the window grows, in mainline; by a segment a round in the thesis
    for (parameters, rounds, left) in [(mainline("shadow=on").as_str(), 10, 20.0), (THESIS, 10, 25.0)] {
        let mut cdg = Cdg::with(parameters);
        cdg.delay(40);
        for _ in 0..rounds {
            cdg.grown(20.0, 10, 20, true, 0);
        }
        assert!((cdg.loss(20) - left).abs() < 0.01, "{parameters}");
    }
}

#[test]
fn an_empty_queue_empties_the_thesis_shadow() {
    for (parameters, left) in [(mainline("shadow=on").as_str(), 20.0), (THESIS, 10.0)] {
        let mut cdg = Cdg::with(parameters);
        cdg.delay(40);
        cdg.round(40_000, 50_000);
        cdg.round(40_000, 45_000); // the greatest delay falls, the least does not
        assert_eq!(cdg.loss(20), left);
    }
}

#[test]
fn losses_are_excused_while_the_queue_is_not_full() {
    let (tolerant, thesis) = (&*mainline("tolerance=on"), &*format!("{THESIS},tolerance=on"));
    for (parameters, min, max, excused) in [
        (tolerant, 41_000, 51_000, true),  // both rise
        (tolerant, 41_000, 50_000, false), // only the least: full
        (tolerant, 39_000, 49_000, true),  // both fall
        (tolerant, 40_031, 50_031, false), // too little to be read
        (thesis, 40_031, 50_031, true),
        (MAINLINE, 41_000, 51_000, false),
    ] {
        let mut cdg = Cdg::with(parameters);
        cdg.round(40_000, 50_000);
        cdg.round(min, max);
        assert_eq!(cdg.excuses(false), excused, "{parameters} {min} {max}");
    }
    // a mark tells the thesis that the queue is not known
    for (parameters, excused) in [(tolerant, true), (thesis, false)] {
        let mut cdg = Cdg::with(parameters);
        cdg.round(40_000, 50_000);
        cdg.round(41_000, 51_000);
        assert_eq!(cdg.excuses(true), excused);
    }
    // a delay back-off is no state of the queue
    let mut cdg = Cdg::with(tolerant);
    cdg.round(40_000, 50_000);
    cdg.round(41_000, 51_000);
    cdg.delay(20);
    assert!(!cdg.excuses(false));
}

#[test]
fn slow_start_ends_by_a_train_longer_than_half_the_round_trip() {
    // ACKs a millisecond apart, of a round trip of 40 ms
    let train = "g=125,hystart=train";
    let paced = &*format!("{train},paced=on");
    for (parameters, acks, ends) in
        [(train, 21, false), (train, 22, true), (paced, 41, false), (paced, 42, true), ("g=125,hystart=off", 99, false)]
    {
        let mut cdg = Cdg::with(parameters);
        cdg.sample(40_000, 2);
        assert_eq!(cdg.hystart(acks, 1000, |_| true), ends, "{parameters} {acks}");
    }
    let mut cdg = Cdg::with(train);
    cdg.sample(40_000, 2);
    assert!(!cdg.hystart(99, 3000, |_| true), "too far apart for a train");
    let mut cdg = Cdg::with(train);
    cdg.sample(40_000, 2);
    assert!(!cdg.hystart(40, 1000, |n| n % 20 != 0), "an unused window ends the train");
}

#[test]
fn growth_can_be_renos_the_thesis_or_cubics() {
    let grown = |increase: &str, seconds: u64| {
        let mut cdg = Cdg::with(&mainline(&format!("increase={increase}")));
        cdg.sample(100_000, 2);
        let mut window = cdg.delay(200);
        for round in 0..10 * seconds {
            let segments = window as u64;
            for n in 0..segments {
                window = cdg.grown(window, 20, 1, n == 0, round * 100_000 + n * 100_000 / segments);
            }
        }
        window
    };
    // Reno and the thesis: a segment in each of 100 rounds
    assert!((grown("reno", 10) - 241.4).abs() < 5.0, "{}", grown("reno", 10));
    assert!((grown("round", 10) - 241.4).abs() < 1.0, "{}", grown("round", 10));
    // CUBIC: 200 + 0.4 (t - cbrt(58.6/0.4))^3
    assert!((grown("cubic", 5) - 200.0).abs() < 2.0, "{}", grown("cubic", 5));
    assert!((grown("cubic", 10) - 243.0).abs() < 4.0, "{}", grown("cubic", 10));
}

#[test]
fn the_thesis_slow_start_goes_one_beyond_its_threshold() {
    let mut cdg = Cdg::with(THESIS);
    assert_eq!(cdg.grown(18.0, 20, 1, false, 0), 19.0);
    assert_eq!(cdg.grown(19.0, 20, 2, false, 0), 21.0);
    assert_eq!(cdg.grown(21.0, 20, 2, false, 0), 21.0, "nothing but at the end of a round");
    assert_eq!(cdg.grown(21.0, 20, 2, true, 0), 22.0);
}

/// All sockets together follow the curve that one would.
#[test]
fn many_sockets_grow_as_one_cubic() {
    let grown = |sockets: u32| {
        let n = f64::from(sockets);
        let mut cdg = Cdg::with(&mainline("increase=cubic"));
        cdg.sample(100_000, 2);
        let left = unsafe {
            native_cdg_cut_by_delay(&mut *cdg.0, &raw const cdg.1, 800 * ONE / u64::from(sockets), ONE, sockets)
        };
        let mut window = left;
        for round in 0..100 {
            for n in 0..10u64 {
                let acked = (window / ONE / 10) as u32;
                let now_us = round * 100_000 + n * 10_000;
                let (state, p) = (&raw mut *cdg.0, &raw const cdg.1);
                window = unsafe { native_cdg_grow(state, p, window, 4 * ONE, acked, false, sockets, now_us) };
            }
        }
        window as f64 / ONE as f64 * n
    };
    let one = grown(1);
    assert!(one > 790.0, "{one}");
    assert!((grown(8) - one).abs() < 0.03 * one, "{} instead of {one}", grown(8));
}
