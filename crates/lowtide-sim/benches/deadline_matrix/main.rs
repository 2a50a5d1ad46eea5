// SPDX-License-Identifier: MIT OR Apache-2.0
//! Are deadlines met, at what price for others, and is idle capacity used: host law × control × round-trip time × rate
//! × queue × demand × competitors, 16800 cells (`matrix.rs`).
//!
//! `cargo bench -p lowtide-sim --bench deadline_matrix -- [matrix] [any-law] [--sample CELLS | --full] [--only
//! TEXT,TEXT] [--cell NAME]`
//!
//! Without words: a sample of 300 cells, always the same, then the table of laws (`any_law.rs`). `--only` takes those
//! of the cells whose name has one of the texts in it, as in `--only -5mbit-,-50mbit-`. `--cell NAME` prints the
//! scenario of a cell, to be saved and run by `lowtide sim`, and runs it; also `--cell any-law-cubic-pid-1`. Results
//! go to `target/deadline-matrix.jsonl`, and what is there already is not run again. With LOWTIDE_WRITE_DOCS=1 the
//! report goes to docs/results/deadline-matrix.md.
//!
//! **The yardstick** is the same scenario with strict priority: the transfer's place is taken by a greedy flow whose
//! packets only get spare capacity. The foreground has its own queue there, the cell's.
//!
//! **The feasible bound** is the larger of two rates: what the foreground leaves of the link under the yardstick, in
//! the mean over the transfer's time; and a fair share, capacity / (competitors + 1). The larger, since the framework's
//! transfer may do both: take all that is idle at any weight, and press as hard as one ordinary flow at weight 1. More
//! than that it must not take, and less it need not ask for. (It is the max-min fair rate of an ordinary flow in the
//! transfer's place.) A cell asks for 10, 30, 60 or 90 % of it: size = demand × bound × time. What real laws make of
//! their fair share differs, by round-trip time and by neighbour, so that not every feasible deadline can be met by
//! every host.
//!
//! **What CUBIC meets.** So there is a second yardstick beside the bound: the same cell with a plain CUBIC flow in the
//! transfer's place, with the same bytes and seed, and with no weight and no deadline. If that is done in 85 % of the
//! time, CUBIC meets the deadline, and so should every host; the report says how many of those it met.
//!
//! **Times.** A transfer has 300 s, on paths of more than 100 ms 600 s. The governor updates the weight each sixtieth
//! of the time, or each ten round trips where that is longer: 60 updates, or 40 where a queue of four bandwidth-delay
//! products makes a round trip of 1.5 s. Reno at 500 Mbit/s and 300 ms would need half an hour for one of its
//! saw-teeth; that it does not get there in ten minutes is so for any transfer of ten minutes. Competitors begin 30 s
//! earlier, or 60 s.

mod any_law;
mod journal;
mod matrix;
mod measure;
mod report;
mod workers;

use journal::Journal;
use matrix::{Cell, Place};
use measure::{Ideal, Plain};
use report::Row;
use std::{env, fs, path::PathBuf, sync::Mutex, time::Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Cells of the sample.
const SAMPLE: usize = 300;

struct Arguments {
    matrix: bool,
    any_law: bool,
    sample: Option<usize>,
    only: Option<String>,
    cell: Option<String>,
}

fn main() -> Result<(), Failure> {
    let arguments = arguments()?;
    if let Some(name) = &arguments.cell {
        return single(name);
    }
    let journal = Mutex::new(Journal::open(&target().join("deadline-matrix.jsonl"))?);
    let mut document = String::from(report::HEAD);
    if arguments.matrix {
        let pairs = arguments.sample.map_or_else(matrix::pairs, |cells| matrix::sample(cells / 2));
        let is_wanted = |cell: &Cell| {
            let name = cell.to_string();
            arguments.only.as_ref().is_none_or(|only| only.split(',').any(|text| name.contains(text)))
        };
        let results = run_matrix(pairs.into_iter().flatten().filter(is_wanted).collect(), &journal)?;
        document += &report::matrix(&results);
    }
    if arguments.any_law {
        document += &any_law::table(&journal)?;
    }
    println!("{document}");
    if env::var_os("LOWTIDE_WRITE_DOCS").is_some_and(|value| value == "1") {
        if !(arguments.matrix && arguments.any_law) || arguments.only.is_some() {
            return Err("LOWTIDE_WRITE_DOCS: the document has both parts, whole; leave out words and --only".into());
        }
        fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/deadline-matrix.md"), document)?;
    }
    Ok(())
}

fn arguments() -> Result<Arguments, Failure> {
    let mut arguments = Arguments { matrix: false, any_law: false, sample: Some(SAMPLE), only: None, cell: None };
    let mut words = env::args().skip(1).filter(|word| word != "--bench"); // which cargo adds
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "matrix" => arguments.matrix = true,
            "any-law" => arguments.any_law = true,
            "--full" => arguments.sample = None,
            "--sample" => arguments.sample = Some(value()?.parse()?),
            "--only" => arguments.only = Some(value()?),
            "--cell" => arguments.cell = Some(value()?),
            _ => return Err(format!("{word}: there is no such part or option").into()),
        }
    }
    if !(arguments.matrix || arguments.any_law) {
        (arguments.matrix, arguments.any_law) = (true, true);
    }
    Ok(arguments)
}

/// One run, with its scenario.
fn single(name: &str) -> Result<(), Failure> {
    if let Some(job) = any_law::named(name) {
        return any_law::single(&job);
    }
    let cell = &Cell::named(name).ok_or_else(|| {
        let example = &matrix::sample(1)[0][0];
        format!("{name}: there is no such cell; they are called like {example} or any-law-cubic-pid-1")
    })?;
    let ideal = Ideal::measure(&cell.place)?;
    println!("# {cell}\n{}", cell.scenario(ideal.bound(&cell.place)));
    println!("{:#?}", measure::measure(cell, &ideal)?);
    let plain = cell.plain(ideal.bound(&cell.place));
    println!("# {}\n{plain}", cell.plain_name());
    println!("{:#?}", Plain::measure(&plain, cell.place.begin(), cell.place.time())?);
    Ok(())
}

/// The yardsticks first, then CUBIC in the transfer's place, then the cells; each list with its longest runs first, so
/// that no processor is left over at the end.
fn run_matrix(mut cells: Vec<Cell>, journal: &Mutex<Journal>) -> Result<Vec<Row>, Failure> {
    let length = |place: &Place| std::cmp::Reverse((place.rate as f64 * place.time()) as u64);
    let mut places: Vec<Place> = Vec::new();
    for cell in &cells {
        if !places.contains(&cell.place) {
            places.push(cell.place);
        }
    }
    places.sort_by_key(length);
    cells.sort_by_key(|cell| length(&cell.place));
    let begun = Instant::now();
    let ideals = workers::all(&places, |place| {
        workers::once(journal, &place.ideal(), &format!("ideal-{place}"), || Ideal::measure(place))
    })?;
    eprintln!("{} yardsticks: {:.0} s", places.len(), begun.elapsed().as_secs_f64());
    let ideal = |cell: &Cell| {
        let index = places.iter().position(|place| *place == cell.place);
        index.map(|index| &ideals[index]).ok_or("a place without a yardstick")
    };
    // one run for all cells that have it in common
    let mut plain_names: Vec<String> = Vec::new();
    let mut plain_cells: Vec<Cell> = Vec::new();
    for cell in &cells {
        if !plain_names.contains(&cell.plain_name()) {
            plain_names.push(cell.plain_name());
            plain_cells.push(*cell);
        }
    }
    let plains = workers::all(&plain_cells, |cell| {
        let ideal = ideal(cell)?;
        let scenario = cell.plain(ideal.bound(&cell.place));
        let (begin, time) = (cell.place.begin(), cell.place.time());
        workers::once(journal, &scenario, &cell.plain_name(), || Plain::measure(&scenario, begin, time))
    })?;
    eprintln!("{} runs of CUBIC: {:.0} s", plains.len(), begun.elapsed().as_secs_f64());
    let measured = workers::all(&cells, |cell| {
        let ideal = ideal(cell)?;
        let scenario = cell.scenario(ideal.bound(&cell.place));
        workers::once(journal, &scenario, &cell.to_string(), || measure::measure(cell, ideal))
    })?;
    eprintln!("{} cells: {:.0} s", cells.len(), begun.elapsed().as_secs_f64());
    let plain = |cell: &Cell| {
        let name = cell.plain_name();
        plain_names.iter().position(|it| *it == name).map(|index| plains[index]).ok_or("a cell without a run of CUBIC")
    };
    let rows = cells.into_iter().zip(measured);
    rows.map(|(cell, measured)| Ok(Row { plain: plain(&cell)?, cell, measured })).collect()
}

/// Where cargo puts what is built.
fn target() -> PathBuf {
    let temporary = option_env!("CARGO_TARGET_TMPDIR").map_or_else(env::temp_dir, PathBuf::from);
    temporary.parent().map_or(temporary.clone(), PathBuf::from)
}
