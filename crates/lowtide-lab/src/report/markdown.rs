// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiments as a page of Markdown, for docs/.

use super::{
    Section,
    page::{band, short},
};
use crate::{
    comparison::{Compared, Comparison},
    figure::{Drawn, DrawnPanel, Table},
};
use std::fmt::Write as _;

/// The page. Drawings are `plots/EXPERIMENT-FIGURE.svg` beside it.
pub(super) fn markdown(sections: &[Section<'_>]) -> String {
    let mut text = String::from("<!-- written by `lowtide lab report` -->\n");
    for section in sections {
        let (it, plan) = (section.experiment, &section.results.plan);
        let _ = write!(text, "# {}\n\n{}\n\n", it.title, it.source.trim());
        if section.results.complete() && plan.runs() > 0 {
            let _ = write!(
                text,
                "{} runs in {} cells, {}; `{}`.\n\n",
                plan.runs(),
                plan.cells.len(),
                plan.extent.cells(),
                section.command()
            );
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
    tables(drawn).for_each(|it| table(text, it));
}

fn tables<'d>(drawn: &'d Drawn<'_>) -> impl Iterator<Item = &'d Table> {
    drawn.panels.iter().filter_map(|panel| match panel {
        DrawnPanel::Table(it) => Some(it),
        DrawnPanel::Drawing(..) => None,
    })
}

fn table(text: &mut String, table: &Table) {
    if !table.title.is_empty() {
        let _ = write!(text, "**{}**\n\n", table.title);
    }
    rows(text, &table.head, &table.rows);
}

fn rows(text: &mut String, head: &[String], rows: &[Vec<String>]) {
    let mut row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    row(head);
    row(&head.iter().enumerate().map(|(n, _)| if n == 0 { "---" } else { "--:" }.to_owned()).collect::<Vec<_>>());
    rows.iter().for_each(|cells| row(cells));
    text.push('\n');
}

/// A page of what came of the experiments on kernels, beside the simulator.
pub(super) fn on_testbeds(sections: &[Section<'_>]) -> String {
    let mut text = String::from(
        "<!-- written by `lowtide lab report` -->\n# The experiments on kernels\n\n\
         What was measured with the TCP of a kernel, beside what the simulator makes of the same scenario; the difference is to the simulator's, or a part of the band where that is nothing beside it, and bold where it asks for a reason: \
         more than a fifth, or the one within the band and the other not. Each line is a part of a target of [the lab](../lab.md).\n\n",
    );
    for section in sections.iter().filter(|section| !section.on_testbeds.is_empty()) {
        let _ = write!(text, "## {}\n\n", section.experiment.title);
        section.on_testbeds.iter().for_each(|column| column_of(&mut text, section, column));
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn column_of(text: &mut String, section: &Section<'_>, column: &Comparison<'_>) {
    let (results, plan) = (&column.results, &column.results.plan);
    let _ = write!(text, "**On the {}**", column.on.title);
    if let Some(why) = &results.refused {
        let _ = write!(text, " not run: {why}.\n\n");
        return;
    }
    if !results.complete() {
        let _ = write!(text, " not run: {} of {} runs are there.\n\n", results.done(), plan.runs());
        return;
    }
    let environment = column.environment.as_deref().unwrap_or_default();
    let command = section.command_on(column);
    let _ = write!(text, " ({environment}): {} cells with {} seeds; `{command}`.", plan.cells.len(), plan.seeds.len());
    if results.outdated > 0 {
        let _ = write!(text, " Recorded by another version of the program: {} of them.", results.outdated);
    }
    if let Some(late) = results.standstill_ms.filter(|late| *late > 0.0) {
        let _ = write!(text, " The machine stood still for {} ms at the most.", short(late));
    }
    text.push_str("\n\n");
    let head = ["", &column.on.title, "single runs", "simulator", "paper", "band", "difference"].map(str::to_owned);
    let targets = || column.scores.iter().map(|score| score.target.id.as_str());
    let lines = targets().flat_map(|target| column.compare(target).into_iter().map(move |part| line(target, &part)));
    rows(text, &head, &lines.collect::<Vec<_>>());
    for target in targets() {
        if let Some(reason) = column.on.reason.get(target) {
            let _ = write!(text, "{target}: {}\n\n", reason.trim());
        } else if column.compare(target).iter().any(Compared::is_notable) {
            let _ = write!(text, "{target}: no reason for the difference has been found yet.\n\n");
        }
    }
    for drawn in &column.figures {
        for it in tables(drawn) {
            let _ = write!(text, "**{}, {}**\n\n", drawn.figure.title, column.on.title);
            table(text, it);
        }
    }
}

fn line(target: &str, part: &Compared<'_>) -> Vec<String> {
    let there = part.there;
    let unit = if there.unit.is_empty() { String::new() } else { format!(" {}", there.unit) };
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{}{unit}", short(value)));
    let word = |holds: bool| if holds { "holds" } else { "does not hold" }.to_owned();
    let mut cells = vec![format!("{target}: {}", there.what)];
    if there.predicate {
        let simulated = part.simulated.map_or("–".to_owned(), |simulated| word(simulated.holds));
        cells.extend([word(there.holds), String::new(), simulated, String::new(), String::new()]);
    } else {
        let spread =
            there.spread.map_or("–".to_owned(), |(least, most)| format!("{} to {}", short(least), short(most)));
        let simulated = number(part.simulated.and_then(|simulated| simulated.value));
        let outside = if there.holds { "" } else { ": **outside**" };
        cells.extend([number(there.value), spread, simulated, number(there.expected), band(there) + outside]);
    }
    let difference = part.difference.map_or(String::new(), |difference| format!("{:+.0} %", 100.0 * difference));
    cells.push(if part.is_notable() { format!("**{difference}**").replace("****", "**differs**") } else { difference });
    cells
}
