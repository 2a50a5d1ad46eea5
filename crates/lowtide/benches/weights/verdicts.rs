// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the runs amount to, and whether that is what is aimed at.

use super::cells::Cell;
use std::{fmt, ops::RangeInclusive};

/// The least weight of `lowtide run`, which the bound on submission is for.
const W_MIN: f64 = 0.004;
/// At w = 1, of what plain CUBIC has in its place: the median of all cells, and each of them.
const MEDIAN: RangeInclusive<f64> = 0.85..=1.15;
const EACH: RangeInclusive<f64> = 0.7..=1.3;
/// At the least weight, of the competing CUBIC's rate: at most; and where the BDP is four segments.
const SUBMISSIVE: f64 = 0.02;
const SUBMISSIVE_TINY: f64 = 0.05;

/// Means over the orders: Mbit/s of what is measured, and of the CUBIC flow beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) transfer: f64,
    pub(crate) beside: Option<f64>,
}

/// What a weight, or plain CUBIC, has in a cell: medians over the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    /// Mbit/s.
    pub(crate) rate: f64,
    /// The same in parts of the rate of the CUBIC flow beside it.
    pub(crate) of_beside: Option<f64>,
}

impl Share {
    /// `None` without runs.
    pub(crate) fn of(runs: &[Pair]) -> Option<Self> {
        let rate = median(runs.iter().map(|run| run.transfer))?;
        let of_beside = median(runs.iter().filter_map(|run| Some(run.transfer / run.beside?)));
        Some(Self { rate, of_beside })
    }
}

/// A law in a cell.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    /// Plain CUBIC in the place of the transfer.
    pub(crate) plain: Share,
    /// By rising weight.
    pub(crate) shares: Vec<(f64, Share)>,
}

impl Row {
    /// The rate at a weight in parts of that of plain CUBIC in its place.
    pub(crate) fn relative(&self, weight: f64) -> Option<f64> {
        Some(self.at(weight)?.rate / self.plain.rate)
    }

    /// What it has at a weight.
    pub(crate) fn at(&self, weight: f64) -> Option<Share> {
        self.shares.iter().find(|it| it.0 == weight).map(|it| it.1)
    }
}

/// What is aimed at, and what was measured. Without a measurement it does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) aim: &'static str,
    pub(crate) measured: String,
    /// `None` if nothing was measured that it is about.
    pub(crate) holds: Option<bool>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.holds {
            Some(true) => "holds",
            Some(false) => "missed",
            None => "not measured",
        };
        write!(f, "{}: {verdict}; {}", self.aim, self.measured)
    }
}

/// All verdicts on a law.
pub(crate) fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    vec![ordinary_in_the_median(rows), ordinary_in_each(rows), submissive(rows), monotone(rows)]
}

fn ordinary_in_the_median(rows: &[Row]) -> Verdict {
    let middle = median(rows.iter().filter_map(|row| row.relative(1.0)));
    Verdict {
        aim: "w = 1 has 0.85 to 1.15 of what plain CUBIC has in its place, in the median of the cells",
        measured: middle.map_or("no cell".to_owned(), |it| format!("{it:.2}")),
        holds: middle.map(|it| MEDIAN.contains(&it)),
    }
}

fn ordinary_in_each(rows: &[Row]) -> Verdict {
    let outside = |row: &Row| {
        let relative = row.relative(1.0)?;
        Some((!EACH.contains(&relative)).then(|| format!("{}: {relative:.2}", row.cell)))
    };
    in_each("w = 1 has 0.7 to 1.3 of what plain CUBIC has in its place, in each cell", rows, outside)
}

fn submissive(rows: &[Row]) -> Verdict {
    let above = |row: &Row| {
        let share = row.at(W_MIN)?.of_beside?;
        let most = if row.cell.tiny() { SUBMISSIVE_TINY } else { SUBMISSIVE };
        Some((share > most).then(|| format!("{}: {:.1} %", row.cell, 100.0 * share)))
    };
    let aim = "w = 0.004 has at most 2 % of the rate of the CUBIC beside it (5 % at 5 Mbit/s and 10 ms), in each cell";
    in_each(aim, rows, above)
}

fn monotone(rows: &[Row]) -> Verdict {
    let falls = |row: &Row| {
        let mut steps = row.shares.iter().zip(row.shares.iter().skip(1)).peekable();
        steps.peek()?;
        let fall = steps.find(|(less, more)| more.1.rate <= less.1.rate);
        let say = |(less, more): (&(f64, Share), &(f64, Share))| {
            format!("{}: {:.2} Mbit/s at w = {}, {:.2} at {}", row.cell, less.1.rate, less.0, more.1.rate, more.0)
        };
        Some(fall.map(say))
    };
    in_each("a greater weight has a higher rate, in each cell", rows, falls)
}

/// `fault` says of a row `None` if it does not count, `Some(None)` if all is well, and else what is wrong.
fn in_each(aim: &'static str, rows: &[Row], fault: impl Fn(&Row) -> Option<Option<String>>) -> Verdict {
    let judged: Vec<Option<String>> = rows.iter().filter_map(fault).collect();
    let faults: Vec<&str> = judged.iter().flatten().map(String::as_str).collect();
    let (good, all) = (judged.len() - faults.len(), judged.len());
    if all == 0 {
        return Verdict { aim, measured: "no cell".to_owned(), holds: None };
    }
    let not = if faults.is_empty() { String::new() } else { format!(", not in {}", faults.join("; ")) };
    Verdict { aim, measured: format!("in {good} of {all} cells{not}"), holds: Some(faults.is_empty()) }
}

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some((values[last / 2] + values[values.len() / 2]) / 2.0)
}
