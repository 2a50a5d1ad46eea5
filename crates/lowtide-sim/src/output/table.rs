// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary as a table for people.

use super::Summary;
use crate::DeadlineOutcome;
use std::fmt;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = self.flows.iter().map(|flow| {
            vec![
                flow.name.clone(),
                flow.cc.clone(),
                rate(flow.mean_bps),
                data(flow.acked_bytes),
                number(flow.finished_s, 2),
                flow.retransmits.to_string(),
                number(flow.min_rtt_ms, 1),
                number(flow.mean_rtt_ms, 1),
                number(flow.p95_rtt_ms, 1),
                number(flow.mean_queue_ms, 1),
                number(flow.p95_queue_ms, 1),
            ]
        });
        let head = ["flow", "cc", "Mbit/s", "MB", "done/s", "resent", "min RTT/ms", "mean", "p95", "queue/ms", "p95"];
        write_columns(f, &head, 2, flows)?;
        f.write_str("\n")?;
        let links = self.links().iter().map(|link| {
            vec![
                link.name.clone(),
                format!("{:.1} %", link.utilisation * 100.0),
                number(Some(link.mean_queue_ms), 1),
                number(Some(link.p95_queue_ms), 1),
                link.drops.to_string(),
                link.marks.to_string(),
            ]
        });
        write_columns(f, &["bottleneck", "used", "queue/ms", "p95", "drops", "marks"], 1, links)?;
        f.write_str("\n")?;
        self.write_deadlines(f)?;
        self.write_spans(f)?;
        if let Some(jain) = self.jain {
            write!(f, "Jain's index {jain:.3}; ")?;
        }
        writeln!(f, "{} packets, {} events, {:.2} s; seed {}", self.packets, self.events, self.wall_s, self.seed)
    }
}

impl Summary {
    /// A line for each transfer with a deadline, if there are any.
    fn write_deadlines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.flows.iter().flat_map(|flow| flow.deadlines.iter().map(|it| (&flow.name, it))).collect();
        if all.is_empty() {
            return Ok(());
        }
        let rows = all.iter().map(|(name, it)| {
            let times = &it.basis_s;
            let share = |seconds: f64| {
                if seconds > 0.0 { format!("{seconds:.1}") } else { "-".to_owned() }
            };
            vec![
                (*name).clone(),
                verdict(it),
                data(it.bytes),
                number(Some(it.start_s), 2),
                number(it.finished_s, 2),
                number(Some(it.due_s), 2),
                share(times.model),
                share(times.feedback),
                share(times.fallback()),
            ]
        });
        let head =
            ["transfer", "deadline", "MB", "start/s", "done/s", "due/s", "by model/s", "feedback/s", "fallback/s"];
        write_columns(f, &head, 2, rows)?;
        f.write_str("\n")
    }

    /// A line for each flow of each span, if there are any.
    fn write_spans(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.spans.is_empty() {
            return Ok(());
        }
        let rows = self.spans.iter().flat_map(|span| {
            span.flows.iter().enumerate().map(move |(n, flow)| {
                let percent = flow.of_fair_share.map_or("-".to_owned(), |part| format!("{:.0} %", 100.0 * part));
                vec![
                    if n == 0 { format!("{}-{} s", span.from_s, span.to_s) } else { String::new() },
                    flow.name.clone(),
                    rate(flow.mean_bps),
                    percent,
                    flow.target_bps.map_or("-".to_owned(), rate),
                    number(flow.weight, 4),
                ]
            })
        });
        write_columns(f, &["span", "flow", "Mbit/s", "of a fair share", "target", "weight"], 2, rows)?;
        f.write_str("\n")
    }
}

/// Whether a deadline was met, in words.
fn verdict(transfer: &DeadlineOutcome) -> String {
    match (transfer.late_s, transfer.finished_s) {
        (None, _) => "open".to_owned(),
        (Some(late), Some(_)) if late <= 0.0 => format!("met, {:.1} s early", -late),
        (Some(late), Some(_)) => format!("missed by {late:.1} s"),
        (Some(late), None) => format!("missed by more than {late:.1} s"),
    }
}

/// Mbit/s with three digits after the point or fewer.
fn rate(bps: f64) -> String {
    let mbps = bps / 1e6;
    if mbps < 1.0 { format!("{mbps:.3}") } else { format!("{mbps:.2}") }
}

fn data(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1e6)
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
}

/// Columns as wide as they need to be, the first `left` of them flush left.
fn write_columns(
    f: &mut fmt::Formatter<'_>,
    head: &[&str],
    left: usize,
    rows: impl Iterator<Item = Vec<String>>,
) -> fmt::Result {
    let head = head.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> =
        (0..columns).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            let cell = if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            line += gap;
            line += &cell;
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}
