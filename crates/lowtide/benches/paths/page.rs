// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables, what breaks a rule, and the page that both go to.

use super::{
    Cell, Failure,
    links::{Class, Link},
    options::command,
    traffic::{Quantity, REFERENCE, Traffic},
};
use std::{collections::BTreeMap, fmt::Write, fs, path::Path};

const HEAD: &str = "\
# Paths

What laws get and leave on many paths, on this machine's kernel and, in brackets, in the simulator. All in percent of
what CUBIC has in the same place, but for Jain's index. A law is the transfer's, as published; `tide` is the default of
`lowtide run`. The buffer has one BDP, at least 16 packets, where nothing else is said. Jitter and delay are those of
`lowtide emulate`; jitter and random loss are in both directions. Traces of radio and cable are generated
(`benches/paths/traces.rs`). Senders and emulator have real-time priority.

- *Alone*: rate of the transfer, from second 4 to 14. *Kept*: rate of a CUBIC flow that comes then and stays for 20 s
  (where it is said, of Reno or BBR). *After*: rate of the transfer from 3 s and 10 RTTs after it has left, for 10 s.
- *Pages*: speed of 45 pages that take 15 % of the link, one every 0.354 s, in percent of what they have without the
  transfer. *On-off*:
  rate of CUBIC flows of a second, one every two.
- *Used*: three transfers of different hosts together, from second 10 to 40. *Jain*: Jain's index of their rates.

Rules (for `tide`): kept ≥ 97 on clean paths, ≥ 94 elsewhere; alone ≥ 90 on clean paths, ≥ 80 with jitter of up to 5 ms
or random loss, ≥ 60 elsewhere; after ≥ 80 on clean paths; pages ≥ 95 on clean paths of 20 Mbit/s; used ≥ 90 and Jain ≥
0.75 on clean paths. What breaks one is in bold.
";

/// The values of each run of each cell.
#[derive(Debug)]
pub(crate) struct Cells(pub(crate) Vec<(Cell, Vec<BTreeMap<Quantity, f64>>)>);

/// What has been measured.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) kernel: Option<Cells>,
    pub(crate) simulator: Cells,
}

impl Cells {
    /// The median of what was measured, absolute.
    fn value(&self, cell: &Cell, quantity: Quantity) -> Option<f64> {
        let same = |it: &&(Cell, _)| it.0.to_string() == cell.to_string();
        let (_, runs) = self.0.iter().find(same)?;
        let mut values: Vec<f64> = runs.iter().filter_map(|run| run.get(&quantity).copied()).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// In percent of the reference; Jain's index as it is.
    fn relative(&self, cell: &Cell, quantity: Quantity) -> Option<f64> {
        let value = self.value(cell, quantity)?;
        let reference = || self.value(&Cell { law: REFERENCE.to_owned(), ..cell.clone() }, quantity);
        match quantity {
            Quantity::Jain => Some(value),
            Quantity::Pages => Some(100.0 * reference()? / value),
            _ => Some(100.0 * value / reference()?),
        }
    }
}

/// The least that the default may have.
fn floor(link: &Link, quantity: Quantity) -> Option<f64> {
    match (quantity, link.class) {
        (Quantity::Kept, Class::Clean) => Some(97.0),
        (Quantity::Kept, Class::Noisy | Class::Rough) => Some(94.0),
        (Quantity::Alone, Class::Clean) => Some(90.0),
        (Quantity::Alone, Class::Noisy) | (Quantity::After, Class::Clean) => Some(80.0),
        (Quantity::Alone, Class::Rough) => Some(60.0),
        (Quantity::Pages, Class::Clean) if link.rate_mbit == 20 => Some(95.0),
        (Quantity::Used, Class::Clean) => Some(90.0),
        (Quantity::Jain, Class::Clean) => Some(0.75),
        _ => None,
    }
}

/// Tables and verdicts.
pub(crate) fn body(results: &Results) -> String {
    let judged = results.kernel.as_ref().unwrap_or(&results.simulator);
    let mut text = verdicts(judged);
    if results.kernel.is_some() {
        text += &apart(results);
    }
    for traffic in Traffic::ALL {
        text += &table(traffic, results);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The laws that were measured, without the reference.
fn laws(cells: &Cells) -> Vec<&str> {
    let mut laws = Vec::new();
    for (cell, _) in &cells.0 {
        if cell.law != REFERENCE && !laws.contains(&cell.law.as_str()) {
            laws.push(cell.law.as_str());
        }
    }
    laws
}

fn breaks(cells: &Cells, cell: &Cell, quantity: Quantity) -> Option<bool> {
    let (value, floor) = (cells.relative(cell, quantity)?, floor(&cell.link, quantity)?);
    Some(round(quantity, value) < floor)
}

/// As it is shown.
fn round(quantity: Quantity, value: f64) -> f64 {
    if quantity == Quantity::Jain { (100.0 * value).round() / 100.0 } else { value.round() }
}

fn verdicts(cells: &Cells) -> String {
    let mut text = String::from("| law | values that break a rule | median alone, clean | rough | median kept |\n");
    text += "|---|--:|--:|--:|--:|\n";
    let mut faults = String::new();
    for law in laws(cells) {
        let (mut all, mut broken) = (0, 0);
        for (cell, quantity) in values_of(cells, law) {
            if let Some(breaks) = breaks(cells, cell, quantity) {
                (all, broken) = (all + 1, broken + usize::from(breaks));
                if breaks && law == "tide" {
                    let value = shown(cells, cell, quantity);
                    let _ = writeln!(faults, "- {}: {quantity:?} {value}", place(cell)); // a String takes it
                }
            }
        }
        let median = |quantity, class: Option<Class>| {
            let of = |(cell, it): (&Cell, Quantity)| {
                let is_meant = it == quantity && class.is_none_or(|class| cell.link.class == class);
                if is_meant { cells.relative(cell, quantity) } else { None }
            };
            let mut values: Vec<f64> = values_of(cells, law).into_iter().filter_map(of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).map_or("–".to_owned(), |value| format!("{value:.0}"))
        };
        let medians = [
            median(Quantity::Alone, Some(Class::Clean)),
            median(Quantity::Alone, Some(Class::Rough)),
            median(Quantity::Kept, None),
        ];
        let _ = writeln!(text, "| `{law}` | {broken} of {all} | {} |", medians.join(" | "));
    }
    if !faults.is_empty() {
        let _ = write!(text, "\nThose of `tide`:\n\n{faults}");
    }
    text.push('\n');
    text
}

/// Every value of a law.
fn values_of<'a>(cells: &'a Cells, law: &str) -> Vec<(&'a Cell, Quantity)> {
    let of_law = cells.0.iter().map(|(cell, _)| cell).filter(|cell| cell.law == law);
    of_law.flat_map(|cell| cell.traffic.quantities().iter().map(move |quantity| (cell, *quantity))).collect()
}

/// Where the simulator is more than a fifth from the kernel, for the default.
fn apart(results: &Results) -> String {
    let Some(kernel) = &results.kernel else { return String::new() };
    let mut lines = String::new();
    for (cell, quantity) in values_of(kernel, "tide") {
        let values = (kernel.relative(cell, quantity), results.simulator.relative(cell, quantity));
        let (Some(real), Some(simulated)) = values else { continue };
        if !(1.0 / 1.2..=1.2).contains(&(simulated / real)) {
            let (real, simulated) = (shown(kernel, cell, quantity), shown(&results.simulator, cell, quantity));
            let _ = writeln!(lines, "- {}: {quantity:?} {real}, {simulated}", place(cell));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    format!("Kernel and simulator more than a fifth apart, `tide`:\n\n{lines}\n")
}

fn place(cell: &Cell) -> String {
    let beside = if cell.foreground == "cubic" { String::new() } else { format!(", {}", cell.foreground) };
    format!("{}{beside}", cell.link.name())
}

fn shown(cells: &Cells, cell: &Cell, quantity: Quantity) -> String {
    match cells.relative(cell, quantity) {
        None => "–".to_owned(),
        Some(value) if quantity == Quantity::Jain => format!("{value:.2}"),
        Some(value) => format!("{value:.0}"),
    }
}

fn table(traffic: Traffic, results: &Results) -> String {
    let cells = results.kernel.as_ref().unwrap_or(&results.simulator);
    let laws = laws(cells);
    let rows = cells.0.iter().map(|(cell, _)| cell).filter(|cell| cell.traffic == traffic && cell.law == REFERENCE);
    let rows: Vec<&Cell> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let names = traffic.quantities().iter().map(|quantity| format!("{quantity:?}")).collect::<Vec<_>>().join(", ");
    let heads: Vec<String> = laws.iter().map(|law| format!("`{law}`")).collect();
    let mut text =
        format!("## {names}\n\n| path | CUBIC | {} |\n|---|{}\n", heads.join(" | "), "--:|".repeat(1 + heads.len()));
    for row in rows {
        let absolute = |quantity: &Quantity| {
            let digits = if *quantity == Quantity::Jain { 2 } else { 1 };
            cells.value(row, *quantity).map_or("–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let reference = traffic.quantities().iter().map(absolute).collect::<Vec<_>>().join(", ");
        let of_law = |law: &&str| {
            let cell = Cell { law: (*law).to_owned(), ..row.clone() };
            let show = |quantity: &Quantity| {
                let real = shown(cells, &cell, *quantity);
                let simulated = results.kernel.as_ref().map(|_| shown(&results.simulator, &cell, *quantity));
                let simulated = simulated.map_or(String::new(), |value| format!(" ({value})"));
                match breaks(cells, &cell, *quantity) {
                    Some(true) if *law == "tide" => format!("**{real}**{simulated}"),
                    _ => format!("{real}{simulated}"),
                }
            };
            traffic.quantities().iter().map(show).collect::<Vec<_>>().join(", ")
        };
        let all: Vec<String> = laws.iter().map(of_law).collect();
        let _ = writeln!(text, "| {} | {reference} | {} |", place(row), all.join(" | "));
    }
    text.push('\n');
    text
}

/// What a run gave, for a line of progress.
pub(crate) fn show(values: &BTreeMap<Quantity, f64>) -> String {
    let one = |(quantity, value): (&Quantity, &f64)| format!("{quantity:?} {value:.2}");
    values.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Writes the page. A relative path is one of the repository, as cargo runs this in the crate's folder.
pub(crate) fn write(path: &Path, body: &str, runs: u64, simulator_runs: u64) -> Result<(), Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let day = jiff::Zoned::now().date();
    let made = format!(
        "`{}`, or `make lab-paths`, wrote this page on {day}, kernel {}; medians of {runs} on the kernel and of {simulator_runs} in \
         the simulator.",
        command("paths"),
        kernel.trim()
    );
    fs::write(&path, format!("{HEAD}\n{made}\n\n{body}")).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(())
}
