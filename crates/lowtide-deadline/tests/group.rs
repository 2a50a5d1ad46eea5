// SPDX-License-Identifier: MIT OR Apache-2.0
//! Three transfers due one after the other beside one ordinary flow: with a schedule for all, and each by itself.

use std::time::Duration;

use lowtide_deadline::{
    Goal, Governor, Policy, Progress, Time,
    schedule::{Job, turns},
};

/// Bytes per second of the link.
const LINK: f64 = 2.5e6;
/// Of each transfer.
const SIZE: f64 = 15e6;
/// By when they are due, in seconds.
const DUE: [f64; 3] = [20.0, 40.0, 60.0];
const TICK: f64 = 0.1;

#[derive(Debug)]
struct Outcome {
    /// When each was done, in seconds.
    done: [f64; 3],
    /// The most bytes per second of all three together, over five seconds.
    peak: f64,
    /// The least of the ordinary flow, likewise.
    foreground: f64,
}

/// The rates of flows of these weights whose price is that of Reno: they go with the root of the weight, and together
/// fill the link beside one ordinary flow.
fn shares(weights: &[f64]) -> Vec<f64> {
    let sum: f64 = 1.0 + weights.iter().map(|w| w.sqrt()).sum::<f64>();
    weights.iter().map(|w| LINK * w.sqrt() / sum).collect()
}

fn run(together: bool) -> Outcome {
    let at = |seconds: f64| Time::ZERO.plus_secs_f64(seconds);
    let goal = |due: f64| Goal { size: Some(SIZE as u64), deadline: Some(at(due)) };
    let mut governors = DUE.map(|due| Governor::new(Policy::default(), goal(due), Time::ZERO).unwrap());
    let (mut sent, mut done, mut last) = ([0.0; 3], [f64::INFINITY; 3], None);
    let mut rows: Vec<f64> = Vec::new();
    for step in 1..800 {
        let now = TICK * f64::from(step);
        let active: Vec<usize> = (0..3).filter(|n| sent[*n] < SIZE).collect();
        let weights: Vec<f64> = active.iter().map(|n| governors[*n].weight().get()).collect();
        let rates = shares(&weights);
        rows.push(rates.iter().sum());
        for (n, rate) in active.iter().zip(rates) {
            sent[*n] += TICK * rate;
            if sent[*n] >= SIZE {
                done[*n] = now;
            }
        }
        let waiting: Vec<usize> = (0..3).filter(|n| sent[*n] < SIZE && now < DUE[*n]).collect();
        if together {
            let job = |n: &usize| Job {
                release: at(now),
                due: governors[*n].aim().unwrap().max(at(now + TICK)),
                bytes: SIZE - sent[*n],
            };
            let jobs: Vec<Job> = waiting.iter().map(job).collect();
            for (n, turn) in waiting.iter().zip(turns(&jobs, at(now))) {
                governors[*n].set_turn(Some(turn), last);
                if turn.rate > 0.0 {
                    last = Some(governors[*n].weight().get());
                }
            }
        }
        for n in 0..3 {
            governors[n].tick(&Progress {
                now: at(now),
                acknowledged_bytes: sent[n] as u64,
                active: sent[n] < SIZE,
                connected: true,
                rtt: Some(Duration::from_millis(40)),
                ..Progress::default()
            });
        }
    }
    let mean = |rows: &[f64]| rows.iter().sum::<f64>() / rows.len() as f64;
    let peak = rows.windows(50).map(mean).fold(0.0, f64::max);
    Outcome { done, peak, foreground: LINK - peak }
}

#[test]
fn a_schedule_for_all_meets_the_deadlines_with_a_lower_peak() {
    let (together, alone) = (run(true), run(false));
    println!("with a schedule {together:?}\neach by itself  {alone:?}");
    for (done, due) in together.done.iter().zip(DUE) {
        assert!(*done <= due, "{together:?}");
    }
    assert!(together.peak < 0.85 * alone.peak, "{together:?} {alone:?}");
    assert!(together.foreground > 1.2 * alone.foreground);
}
