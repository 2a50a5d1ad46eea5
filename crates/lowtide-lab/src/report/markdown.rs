// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiments as a page of Markdown, for docs/.

use super::Section;
use crate::figure::{Drawn, DrawnPanel, Table};
use std::fmt::Write as _;

/// The page. Drawings are `plots/EXPERIMENT-FIGURE.svg` beside it.
pub(super) fn markdown(sections: &[Section<'_>]) -> String {
    let mut text = String::from("<!-- written by `lowtide lab report --markdown` -->\n");
    for section in sections {
        let (it, plan) = (section.experiment, &section.results.plan);
        let _ = write!(text, "# {}\n\n{}\n\n", it.title, it.source.trim());
        if section.results.complete() && plan.runs() > 0 {
            let quick = if plan.extent.quick { ", a quick look" } else { "" };
            let _ =
                write!(text, "{} runs in {} cells{quick}; `{}`.\n\n", plan.runs(), plan.cells.len(), section.command());
        } else if plan.runs() > 0 {
            let _ = write!(text, "Not run: {} of {} runs are there.\n\n", section.results.done(), plan.runs());
        }
        for score in &section.scores {
            let answer = score.answer.as_deref().unwrap_or_default().trim();
            let _ =
                write!(text, "**{}, {}.** {} {answer}\n\n", score.target.id, score.verdict, score.target.claim.trim());
        }
        for drawn in &section.figures {
            figure(&mut text, &it.id, drawn);
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn figure(text: &mut String, experiment: &str, drawn: &Drawn<'_>) {
    let _ = write!(text, "## {}\n\n", drawn.figure.title);
    if !drawn.figure.caption.is_empty() {
        let _ = write!(text, "{}\n\n", drawn.figure.caption.trim());
    }
    let labels = drawn.panels.iter().filter_map(|panel| match panel {
        DrawnPanel::Drawing(_, label) => Some(label.as_str()),
        DrawnPanel::Table(_) => None,
    });
    let labels: Vec<&str> = labels.collect();
    if !labels.is_empty() {
        let _ = write!(text, "![{}](plots/{}.svg)\n\n", labels.join("; "), drawn.name(experiment));
    }
    for panel in &drawn.panels {
        if let DrawnPanel::Table(it) = panel {
            table(text, it);
        }
    }
}

fn table(text: &mut String, table: &Table) {
    if !table.title.is_empty() {
        let _ = write!(text, "**{}**\n\n", table.title);
    }
    let mut row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    row(&table.head);
    row(&table.head.iter().enumerate().map(|(n, _)| if n == 0 { "---" } else { "--:" }.to_owned()).collect::<Vec<_>>());
    table.rows.iter().for_each(|cells| row(cells));
    text.push('\n');
}
