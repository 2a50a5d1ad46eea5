// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the bench `weights` draws and how it judges, without running it.

#[path = "../benches/weights/cells.rs"]
#[expect(dead_code, reason = "the bench uses all of it")]
mod cells;
#[path = "../benches/weights/verdicts.rs"]
mod verdicts;

use cells::{Cell, all, sample};
use verdicts::{Pair, Row, Share, verdicts};

const CELL: Cell = Cell { rate_mbit: 10, rtt_ms: 40, buffer_bdp: 1.0, jitter_ms: None };

/// A row with these rates beside a flow of CUBIC with `10 - rate`, where plain CUBIC takes five.
fn row(cell: Cell, rates: &[(f64, f64)]) -> Row {
    let share = |rate: f64| {
        let beside = (!cell.alone()).then_some(10.0 - rate);
        Share::of(&[Pair { transfer: rate, beside }]).unwrap()
    };
    Row { cell, plain: share(5.0), shares: rates.iter().map(|(weight, rate)| (*weight, share(*rate))).collect() }
}

/// Whether the four aims hold: ordinary in the median, ordinary in each cell, submissive, monotone.
fn judged(rows: &[Row]) -> Vec<Option<bool>> {
    verdicts(rows).iter().map(|verdict| verdict.holds).collect()
}

#[test]
fn a_sample_covers_each_value_and_begins_a_larger_one() {
    let all = all();
    assert_eq!(all.len(), 48);
    let drawn = sample(24);
    assert_eq!(drawn.len(), 24);
    for (index, cell) in drawn.iter().enumerate() {
        assert!(!drawn[..index].contains(cell), "{cell} twice");
    }
    for number in 0..=48 {
        assert_eq!(sample(number), sample(48)[..number]);
    }
    for cell in &all {
        let has = |number, same: &dyn Fn(&Cell) -> bool| sample(number).iter().any(same);
        assert!(has(4, &|it| it.rate_mbit == cell.rate_mbit), "{cell}");
        assert!(has(4, &|it| it.rtt_ms == cell.rtt_ms), "{cell}");
        assert!(has(4, &|it| it.buffer_bdp == cell.buffer_bdp), "{cell}");
        assert!(has(16, &|it| it.rate_mbit == cell.rate_mbit && it.rtt_ms == cell.rtt_ms), "{cell}");
    }
}

#[test]
fn a_median_is_that_of_the_runs() {
    let pair = |transfer, beside| Pair { transfer, beside: Some(beside) };
    let share = Share::of(&[pair(2.0, 8.0), pair(9.0, 1.0), pair(4.0, 6.0)]).unwrap();
    assert_eq!((share.rate, share.of_beside), (4.0, Some(4.0 / 6.0)));
    assert_eq!(Share::of(&[]), None);
}

#[test]
fn each_aim_can_be_held_and_missed() {
    let good = row(CELL, &[(0.004, 0.1), (0.25, 2.0), (1.0, 5.0)]);
    assert_eq!(judged(std::slice::from_ref(&good)), [Some(true); 4]);
    let weak = row(CELL, &[(0.004, 0.1), (0.25, 2.0), (1.0, 3.4)]);
    assert_eq!(judged(&[good.clone(), good.clone(), weak.clone()]), [Some(true), Some(false), Some(true), Some(true)]);
    assert_eq!(judged(&[weak]), [Some(false), Some(false), Some(true), Some(true)]);
    let strong = row(CELL, &[(0.004, 0.1), (0.25, 2.0), (1.0, 6.6)]);
    assert_eq!(judged(&[strong]), [Some(false), Some(false), Some(true), Some(true)]);
    let greedy = row(CELL, &[(0.004, 0.3), (0.25, 2.0), (1.0, 5.0)]);
    assert_eq!(judged(&[greedy]), [Some(true), Some(true), Some(false), Some(true)]);
    let upside_down = row(CELL, &[(0.004, 0.1), (0.25, 5.2), (1.0, 5.0)]);
    assert_eq!(judged(&[good, upside_down]), [Some(true), Some(true), Some(true), Some(false)]);
}

#[test]
fn a_tiny_link_has_a_bound_of_its_own() {
    let tiny = Cell { rate_mbit: 5, rtt_ms: 10, ..CELL };
    for (rate, holds) in [(0.3, true), (0.6, false)] {
        assert_eq!(judged(&[row(tiny, &[(0.004, rate)])])[2], Some(holds), "{rate}");
    }
}

#[test]
fn a_link_with_jitter_counts_at_the_full_weight() {
    assert_eq!(judged(&[row(Cell::noisy(20), &[(1.0, 0.8)])]), [Some(false), Some(false), None, None]);
    assert_eq!(judged(&[row(Cell::noisy(5), &[(1.0, 4.9)])]), [Some(true), Some(true), None, None]);
}

#[test]
fn what_was_not_measured_does_not_hold() {
    assert_eq!(judged(&[]), [None; 4]);
    assert_eq!(judged(&[row(CELL, &[(0.25, 1.0)])]), [None; 4]);
    let said: Vec<String> = verdicts(&[]).iter().map(ToString::to_string).collect();
    assert!(said.iter().all(|it| it.ends_with("not measured; no cell")), "{said:?}");
    let missed = &verdicts(&[row(CELL, &[(1.0, 2.0)])])[1];
    assert!(missed.to_string().ends_with("missed; in 0 of 1 cells, not in 10 Mbit/s, 40 ms, 1 BDP: 0.40"), "{missed}");
}
