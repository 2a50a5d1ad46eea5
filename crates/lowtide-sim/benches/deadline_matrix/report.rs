// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report in Markdown.

use crate::{
    matrix::{COMPETITORS, CONTROLS, Cell, DEMANDS, HOSTS, QUEUES, RATES, RTTS, pairs},
    measure::{Measured, Plain},
};
use std::fmt::Write;

pub(crate) const HEAD: &str = "# Deadlines: what is met, and at what price\n\n\
<!-- written by `LOWTIDE_WRITE_DOCS=1 make lab-deadlines` -->\n\n\
`make lab-deadlines` runs what is below in the simulator, `make lab-full` all cells of the matrix. What is a cell, and what its transfer\n\
has to send: head of [`deadline_matrix/main.rs`](../../crates/lowtide-sim/benches/deadline_matrix/main.rs). The policy\n\
is that of `lowtide run`, each law takes its weight by its usual actuator, and competitors are CUBIC of RFC 9438, BBRv3, or web sessions\n\
over CUBIC that ask for half of the link.\n\n\
**What can be met.** A transfer is at most one ordinary flow. So each cell is also run with one plain CUBIC flow in the transfer's place: the same\n\
bytes, foreground and seed, no weight and no deadline. If that is done in 85 % of the time given, CUBIC meets the deadline and a law should, too:\n\
\"of what CUBIC meets\" counts these runs, and of them those that the law meets.\n\n\
**What others should keep.** The same cell with strict priority for the foreground: the transfer gets only what that leaves.\n\n";

const LEGEND: &str = "\
- **met**: transfers that were done by their deadline, of all cells; CUBIC does not meet each of these. **late**: the median of those that were not, in parts of the\n  \
  time that they had; \"> 50 %\" was not done half as long again. **pressed**: for how much of the time\n  \
before the deadline the weight of those was 1, where a law is an ordinary one and cannot be pressed harder: the median.\n\
- **kept**: the foreground's rate while the transfer ran, in parts of what strict priority gives it: median, 5th percentile, worst. Of web sessions, by\n  \
  the time that pages take (geometric mean). A transfer that asks for 90 % of a fair share beside one flow cannot but take its part.\n\
- **beyond need**: what greedy competitors lost beyond what the deadline cannot be met without, in parts of what they have under strict priority: median, 95th percentile.\n\
- **idle**: the part that was used of what the foreground leaves under strict priority, where that is a fifth of the link or more: median, 5th percentile.\n\
- **model**: part of the time in which the weight rested on a model.\n\n";

/// Cells of each list of the worst.
const WORST: usize = 15;

/// A cell, and what it came to.
pub(crate) struct Row {
    pub(crate) cell: Cell,
    pub(crate) measured: Measured,
    pub(crate) plain: Plain,
}

/// The part about the matrix.
pub(crate) fn matrix(results: &[Row]) -> String {
    let rows: Vec<&Row> = results.iter().collect();
    let mut text = format!("## The matrix: {} of {} cells\n\n{LEGEND}", rows.len(), 2 * pairs().len());
    head(&mut text, "host, control");
    for control in CONTROLS {
        line(&mut text, &format!("**all, {control}**"), &of(&rows, |cell| cell.control == control));
    }
    for host in HOSTS {
        for control in CONTROLS {
            line(
                &mut text,
                &format!("{host}, {control}"),
                &of(&rows, |cell| cell.host == host && cell.control == control),
            );
        }
    }
    both(&mut text, &rows);
    text += "### By axis\n\n";
    head(&mut text, "cells");
    let mut axis = |name: String, is: &dyn Fn(&Cell) -> bool| {
        for control in CONTROLS {
            line(&mut text, &format!("{name}, {control}"), &of(&rows, |cell| is(cell) && cell.control == control));
        }
    };
    RTTS.iter().for_each(|rtt| axis(format!("{rtt} ms"), &|cell| cell.place.rtt == *rtt));
    RATES.iter().for_each(|rate| axis(format!("{rate} Mbit/s"), &|cell| cell.place.rate == *rate));
    QUEUES.iter().enumerate().for_each(|(n, queue)| axis(queue.name.to_owned(), &|cell| cell.place.queue == n));
    DEMANDS.iter().for_each(|demand| axis(format!("{demand} %"), &|cell| cell.demand == *demand));
    COMPETITORS
        .iter()
        .enumerate()
        .for_each(|(n, it)| axis(format!("beside {}", it.name), &|cell| cell.place.competitors == n));
    worst(&mut text, &rows);
    text
}

fn of<'a>(rows: &[&'a Row], is: impl Fn(&Cell) -> bool) -> Vec<&'a Row> {
    rows.iter().copied().filter(|row| is(&row.cell)).collect()
}

fn head(text: &mut String, first: &str) {
    *text += &format!(
        "| {first} | cells | met | met, of what CUBIC meets | late | pressed | kept | beyond need | idle | model |\n|---|---|---|---|---|---|---|---|---|---|\n"
    );
}

fn line(text: &mut String, name: &str, rows: &[&Row]) {
    if rows.is_empty() {
        return;
    }
    let met = rows.iter().filter(|row| row.measured.met()).count();
    let (by_cubic, of_those) = of_what_cubic_meets(rows);
    let late = values(rows, |it| (!it.met()).then(|| it.late.unwrap_or(f64::INFINITY)));
    let (kept, beyond, idle) = (values(rows, |it| it.kept), values(rows, |it| it.beyond), values(rows, |it| it.idle));
    let late = match late.is_empty() {
        true => "–".into(),
        false if at(&late, 0.5).is_infinite() => "> 50 %".into(),
        false => percent(at(&late, 0.5)),
    };
    let pressed = values(rows, |it| (!it.met()).then_some(it.pressed));
    let modelled = rows.iter().map(|row| row.measured.modelled).sum::<f64>() / rows.len() as f64;
    writeln!(
        text,
        "| {name} | {} | {} | {of_those} of {by_cubic} | {late} | {} | {} | {} | {} | {} |",
        rows.len(),
        percent(met as f64 / rows.len() as f64),
        several(&pressed, &[0.5]),
        several(&kept, &[0.5, 0.05, 0.0]),
        several(&beyond, &[0.5, 0.95]),
        several(&idle, &[0.5, 0.05]),
        percent(modelled),
    )
    .expect("a string");
}

/// How many deadlines CUBIC meets, and how many of those were met.
fn of_what_cubic_meets(rows: &[&Row]) -> (usize, usize) {
    let by_cubic = rows.iter().filter(|row| row.plain.meets());
    (by_cubic.clone().count(), by_cubic.filter(|row| row.measured.met()).count())
}

/// What the one control met and the other did not.
fn both(text: &mut String, rows: &[&Row]) {
    let mut counts = [[0; 2]; 2];
    let mut differences = Vec::new();
    let twins = rows.iter().filter(|row| row.cell.control == CONTROLS[0]).filter_map(|pid| {
        let name = pid.cell.to_string().replacen(CONTROLS[0], CONTROLS[1], 1);
        Some((pid, rows.iter().find(|row| row.cell.to_string() == name)?))
    });
    for (pid, mbc) in twins {
        counts[usize::from(pid.measured.met())][usize::from(mbc.measured.met())] += 1;
        differences.extend(mbc.measured.kept.zip(pid.measured.kept).map(|(mbc, pid)| mbc - pid));
    }
    differences.sort_by(f64::total_cmp);
    let [[neither, mbc], [pid, both]] = counts;
    let pairs = neither + mbc + pid + both;
    text.push('\n');
    if pairs > 0 {
        write!(
            text,
            "Of the {pairs} pairs that differ in the control alone, both met {both}, neither {neither}, only pid {pid}, only mbc {mbc}."
        )
        .expect("a string");
    }
    if !differences.is_empty() {
        write!(
            text,
            " The foreground kept {} more under mbc than under pid in the median, {} and {} at the 5th and the 95th percentile.",
            percent(at(&differences, 0.5)),
            percent(at(&differences, 0.05)),
            percent(at(&differences, 0.95)),
        )
        .expect("a string");
    }
    text.push_str("\n\n");
}

/// The cells to look at.
fn worst(text: &mut String, rows: &[&Row]) {
    *text += "\n### Worst cells\n\n**CUBIC takes**: the part of the time that a plain CUBIC flow in the transfer's place needs.\n\n`cargo bench -p lowtide-sim --bench deadline_matrix -- --cell NAME` prints the scenario of one, and runs it. Where the \
              foreground lost most beyond need:\n\n";
    list(text, rows, |it| it.beyond.map(|beyond| -beyond));
    *text += "\nWhere web pages took longest:\n\n";
    list(&mut *text, rows, |it| it.kept.filter(|_| it.beyond.is_none()));
    *text += "\nWhere least was done by the deadline:\n\n";
    list(text, rows, |it| (!it.met()).then_some(it.done));
    *text += "\nWhere least was done of what CUBIC meets:\n\n";
    let by_cubic: Vec<&Row> = rows.iter().copied().filter(|row| row.plain.meets()).collect();
    list(text, &by_cubic, |it| (!it.met()).then_some(it.done));
    text.push('\n');
}

/// The cells with the smallest values.
fn list(text: &mut String, rows: &[&Row], value: impl Fn(&Measured) -> Option<f64>) {
    let mut rows: Vec<(f64, &Row)> = rows.iter().filter_map(|row| Some((value(&row.measured)?, *row))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    *text += "| cell | done by the deadline | late | CUBIC takes | pressed | kept | beyond need | idle |\n|---|---|---|---|---|---|---|---|\n";
    for (_, Row { cell, measured: it, plain }) in rows.into_iter().take(WORST) {
        let show = |value: Option<f64>| value.map_or("–".into(), percent);
        let late = it.late.map_or("> 50 %".into(), percent);
        let cubic = plain.taken.map_or("> 100 %".into(), percent);
        writeln!(
            text,
            "| `{cell}` | {} | {late} | {cubic} | {} | {} | {} | {} |",
            percent(it.done),
            percent(it.pressed),
            show(it.kept),
            show(it.beyond),
            show(it.idle)
        )
        .expect("a string");
    }
}

/// Sorted.
fn values(rows: &[&Row], value: impl Fn(&Measured) -> Option<f64>) -> Vec<f64> {
    let mut values: Vec<f64> = rows.iter().filter_map(|row| value(&row.measured)).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// A quantile of sorted values: the nearest one.
fn at(sorted: &[f64], quantile: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((quantile * last).round() as usize).copied().unwrap_or(f64::NAN)
}

fn several(sorted: &[f64], quantiles: &[f64]) -> String {
    if sorted.is_empty() {
        return "–".into();
    }
    quantiles.iter().map(|quantile| percent(at(sorted, *quantile))).collect::<Vec<_>>().join(", ")
}

fn percent(part: f64) -> String {
    // no "-0"
    format!("{:.0} %", (100.0 * part).round() + 0.0)
}
