// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the matrix of deadlines (`make lab-deadlines`) takes for feasible, and what its page says of that; the matrix
//! itself is benches/deadline_matrix.

// what only the bench calls is not called here
#[allow(dead_code)]
#[path = "../benches/deadline_matrix/matrix.rs"]
mod matrix;
#[allow(dead_code)]
#[path = "../benches/deadline_matrix/measure.rs"]
mod measure;
#[allow(dead_code)]
#[path = "../benches/deadline_matrix/report.rs"]
mod report;

use matrix::Cell;
use measure::{Ideal, Measured, Plain};
use report::Row;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn cell(name: &str) -> Cell {
    Cell::named(name).unwrap()
}

fn plain(cell: &Cell) -> Plain {
    let bound = Ideal::measure(&cell.place).unwrap().bound(&cell.place);
    Plain::measure(&cell.plain(bound), cell.place.begin(), cell.place.time()).unwrap()
}

#[test]
fn cubic_meets_what_it_has_done_in_85_percent_of_the_time() {
    assert!(Plain { taken: Some(0.85) }.meets());
    assert!(!Plain { taken: Some(0.851) }.meets());
    assert!(!Plain { taken: None }.meets());
}

#[test]
fn cubic_in_the_transfers_place_has_the_same_bytes_seed_and_foreground() {
    let cell = cell("tide-pid-d60-50ms-5mbit-droptail1-cubic3");
    let [with, without] = [cell.scenario(4e6), cell.plain(4e6)].map(|text| measure::read(&text).unwrap());
    assert_eq!((with.seed, with.flows.len()), (without.seed, without.flows.len()));
    let (with, without) = (with.flows.split_last().unwrap(), without.flows.split_last().unwrap());
    assert_eq!(format!("{:?}", with.1), format!("{:?}", without.1), "the foreground");
    assert_eq!(with.0.source.size(), Some(90_000_000));
    assert_eq!(without.0.source.size(), Some(90_000_000));
    let transfer = cell.plain(4e6).split("name = \"transfer\"").nth(1).unwrap().to_owned();
    assert!(transfer.contains("cc = \"cubic\"") && !transfer.contains("control") && !transfer.contains("deadline"));
}

#[test]
fn alone_cubic_takes_about_what_is_asked_for_and_meets_60_percent_of_the_bound_but_not_90() {
    let [sixty, ninety] = [60, 90].map(|demand| plain(&cell(&format!("reno-mbc-d{demand}-10ms-5mbit-droptail1-none"))));
    let (sixty_taken, ninety_taken) = (sixty.taken.unwrap(), ninety.taken.unwrap());
    assert!((0.60..0.62).contains(&sixty_taken) && sixty.meets(), "{sixty_taken}");
    assert!((0.90..0.93).contains(&ninety_taken) && !ninety.meets(), "{ninety_taken}");
}

#[test]
fn the_page_counts_what_is_met_of_what_cubic_meets() {
    let row = |late, taken| Row {
        cell: cell("tide-pid-d60-10ms-5mbit-droptail1-none"),
        measured: Measured { late, done: 1.0, kept: None, beyond: None, idle: None, modelled: 0.0, pressed: 1.0 },
        plain: Plain { taken },
    };
    let rows = [
        row(Some(-0.1), Some(0.6)),
        row(Some(0.1), Some(0.6)),
        row(Some(-0.1), Some(0.7)),
        row(Some(-0.1), Some(0.9)),
        row(None, None),
    ];
    let page = report::matrix(&rows);
    assert!(page.contains("| host, control | cells | met | met, of what CUBIC meets |"), "{page}");
    // three of five are met, and of the three that CUBIC meets two
    assert!(page.contains("| tide, pid | 5 | 60 % | 2 of 3 |"), "{page}");
}
