// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table for people, and the page that it goes to.

use super::{Failure, Options, options::command, verdicts};
use std::{fmt::Write, fs, path::Path};
use verdicts::{Row, Share, verdicts};

const HEAD: &str = "\
# The table of weights

What a weight is worth on this machine's kernel: the share of a greedy transfer under
`lowtide run --w-min W --w-max W --cc LAW` beside one unpaced flow of the kernel's CUBIC, on emulated links with a
droptail buffer. All flows are iperf3's. The yardstick is plain CUBIC, a second unpaced flow of it, in the place of the
transfer. Each pair runs in both orders, the second flow two seconds after the first; rates are means over the orders.
Sockets may use 64 MB of memory, so that the law alone limits the window. What counts is the payload at the receivers'
sockets.

The table shows the transfer's rate in parts of the rate of the CUBIC flow beside it and, in brackets, in parts of the
rate of plain CUBIC in its place. On a link with jitter, in both directions, nothing competes: the column of plain CUBIC
has the rate of one flow alone, and the brackets are parts of that.
";

/// Tables and verdicts, law by law.
pub(crate) fn body(tables: &[(&str, Vec<Row>)], weights: &[f64]) -> String {
    let mut body = String::new();
    for (law, rows) in tables {
        let _ = writeln!(body, "## `{law}`\n\n{}", table(rows, weights)); // writing to a String cannot fail
        for verdict in verdicts(rows) {
            let _ = writeln!(body, "- {verdict}");
        }
        body.push('\n');
    }
    body.truncate(body.trim_end().len());
    body.push('\n');
    body
}

fn table(rows: &[Row], weights: &[f64]) -> String {
    let mut columns = weights.to_vec();
    if !columns.contains(&1.0) && rows.iter().any(|row| row.at(1.0).is_some()) {
        columns.push(1.0); // of the links with jitter
    }
    let mut head = vec!["link".to_owned(), "plain CUBIC".to_owned()];
    head.extend(columns.iter().map(|weight| format!("w = {weight}")));
    let mut lines = vec![head.join(" | "), vec!["---"; head.len()].join(" | ")];
    for row in rows {
        let plain = match row.plain.of_beside {
            Some(part) => format!("{part:.2}"),
            None => format!("{:.2} Mbit/s", row.plain.rate),
        };
        let mut cells = vec![row.cell.to_string(), plain];
        let at = |weight: &f64| row.at(*weight).map_or("–".to_owned(), |share| show(share, row, *weight));
        cells.extend(columns.iter().map(at));
        lines.push(cells.join(" | "));
    }
    lines.iter().map(|line| format!("| {line} |\n")).collect()
}

fn show(share: Share, row: &Row, weight: f64) -> String {
    let relative = row.relative(weight).map_or("–".to_owned(), |part| format!("{part:.3}"));
    share.of_beside.map_or(format!("({relative})"), |part| format!("{part:.3} ({relative})"))
}

/// Writes the page, whole.
pub(crate) fn write(path: &Path, body: &str, options: &Options, kernel: &str) -> Result<(), Failure> {
    let connections = match options.connections {
        1 => "one connection".to_owned(),
        several => format!("{several} connections"),
    };
    let how = format!(
        "Measured on {} with kernel {kernel}; runs of each order: {}; {} s after {} s; {connections} under the \
         transfer; links at a time: {}.",
        jiff::Zoned::now().date(),
        options.runs,
        options.measure,
        options.warm,
        options.battery.parallel,
    );
    let text = format!("{HEAD}\n{how}\n\n```\n{}\n```\n\n{body}", command("weights"));
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}
