// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results as a page in Markdown.

use super::{
    axes::{CONDITIONS, DEFAULT, LAWS, Law, ONE_FLOW, PLAIN, Path},
    programs::Program,
    verdict::{
        Condition, Due, End, Run, Yardsticks, failed, fault, feasible, has_rule, kept, median, outlooks, seconds,
    },
};
use std::fmt::Write;

/// The runs of one program on one path, in one condition and under one law.
pub(crate) struct Cell {
    pub(crate) program: &'static Program,
    pub(crate) path: &'static Path,
    pub(crate) condition: Condition,
    pub(crate) law: &'static Law,
    pub(crate) runs: Vec<Run>,
}

/// All of them, those without Lowtide among them.
pub(crate) struct Results(pub(crate) Vec<Cell>);

impl Results {
    fn cell(&self, program: &str, path: &str, condition: Condition, law: &str) -> Option<&Cell> {
        let is = |cell: &&Cell| {
            (cell.program.name, cell.path.name, cell.condition, cell.law.name) == (program, path, condition, law)
        };
        self.0.iter().find(is)
    }

    fn yardsticks(&self, cell: &Cell) -> Yardsticks<'_> {
        let of = |law: &Law| {
            self.cell(cell.program.name, cell.path.name, cell.condition, law.name).map_or(&[][..], |cell| &cell.runs)
        };
        Yardsticks { plain: of(PLAIN), one_flow: of(if cell.program.connections == 1 { PLAIN } else { ONE_FLOW }) }
    }

    /// What a cell breaks. Those without Lowtide are the yardstick, and break nothing.
    fn fault(&self, cell: &Cell) -> Option<String> {
        let governed = cell.law.options.is_some();
        governed.then(|| fault(cell.condition, cell.program.connections, &cell.runs, self.yardsticks(cell))).flatten()
    }

    /// A table for each condition, with a line for each program and path, and a column for each law.
    pub(crate) fn tables(&self) -> String {
        let mut text = String::new();
        let mut rows: Vec<(&Program, &Path)> = Vec::new();
        for cell in &self.0 {
            if !rows.iter().any(|row| (row.0.name, row.1.name) == (cell.program.name, cell.path.name)) {
                rows.push((cell.program, cell.path));
            }
        }
        for (condition, _) in CONDITIONS {
            let laws = self.laws(|cell| cell.condition == condition);
            if laws.is_empty() {
                continue;
            }
            let _ = writeln!(text, "## {}\n\n{}\n", head(condition), legend(condition));
            let _ = writeln!(text, "| program | path | {} |", laws.join(" | "));
            let _ = writeln!(text, "|---|---|{}", "--:|".repeat(laws.len()));
            for (program, path) in &rows {
                let show = |law: &&str| match self.cell(program.name, path.name, condition, law) {
                    None => "–".to_owned(),
                    Some(cell) if self.fault(cell).is_some() => format!("**{}**", self.show(cell)),
                    Some(cell) => self.show(cell),
                };
                let shown: Vec<String> = laws.iter().map(show).collect();
                let _ = writeln!(text, "| {} | {} | {} |", program.name, path.name, shown.join(" | "));
            }
            text.push('\n');
        }
        text
    }

    /// The laws of these cells, in the order of the page.
    fn laws(&self, of: impl Fn(&Cell) -> bool) -> Vec<&'static str> {
        let all = [PLAIN.name, ONE_FLOW.name].into_iter().chain(LAWS[1..].iter().map(|law| law.name));
        all.filter(|law| self.0.iter().any(|cell| cell.law.name == *law && of(cell))).collect()
    }

    fn show(&self, cell: &Cell) -> String {
        let runs = &cell.runs;
        let mut text = match cell.condition {
            Condition::Idle => format!("{:.1} s", seconds(runs)),
            Condition::Far => kept(runs).map_or("–".to_owned(), |kept| format!("{:.1} %", 100.0 * kept)),
            Condition::Third => self.third(cell),
        };
        for (end, words) in
            [(End::GaveUp, "gave up"), (End::TooSlow, "ended at its limit"), (End::WrongData, "data wrong")]
        {
            match runs.iter().filter(|run| run.end == end).count() {
                0 => {}
                count if runs.len() == 1 && count == 1 => text += &format!(", {words}"),
                count => text += &format!(", {words} {count} of {}", runs.len()),
            }
        }
        text
    }

    fn third(&self, cell: &Cell) -> String {
        let runs = &cell.runs;
        let rate = kept(runs).map_or("–".to_owned(), |kept| format!("{:.0}", 100.0 * kept));
        let dues: Vec<_> = runs.iter().filter_map(|run| run.due).collect();
        if dues.is_empty() {
            return format!("{:.1} s; {rate} %", seconds(runs));
        }
        let (given, took) = (median(dues.iter().map(|due| due.given)), median(dues.iter().map(|due| due.took)));
        let outlooks = outlooks(runs).map_or("–".to_owned(), |count| format!("{count:.0}"));
        let wrong = |due: &Due| due.late() > 0.0 && due.said.is_some_and(|said| said.on_course_late);
        let course = dues.iter().any(wrong);
        format!(
            "{took:.1} of {given:.0} s{}; {rate} %; {outlooks}{}",
            if feasible(runs, self.yardsticks(cell)) { "" } else { " (not feasible)" },
            if course { ", \"on course\"" } else { "" }
        )
    }

    /// How many cells break the rules under each law, and which do under the default.
    pub(crate) fn verdicts(&self) -> String {
        let governed = |cell: &Cell| cell.law.options.is_some();
        let laws = self.laws(governed);
        if laws.is_empty() {
            return String::new();
        }
        let mut text =
            format!("| cells that break a rule | {} |\n|---|{}\n", laws.join(" | "), "--:|".repeat(laws.len()));
        for (condition, _) in CONDITIONS {
            let count = |law: &&str| {
                let is_judged = |it: &&Cell| has_rule(condition, it.program.connections);
                let cells = self.0.iter().filter(|it| it.law.name == *law && it.condition == condition);
                let cells: Vec<&Cell> = cells.filter(is_judged).collect();
                match cells.iter().filter(|cell| self.fault(cell).is_some()).count() {
                    _ if cells.is_empty() => "–".to_owned(),
                    broken => format!("{broken} of {}", cells.len()),
                }
            };
            let counts: Vec<String> = laws.iter().map(count).collect();
            let _ = writeln!(text, "| {} | {} |", head(condition), counts.join(" | "));
        }
        let _ = writeln!(text, "\nThose of `{}`:\n", DEFAULT.name);
        let mut cells = self.0.iter().filter(|cell| cell.law.name == DEFAULT.name).peekable();
        let is_measured = cells.peek().is_some();
        let faults: Vec<String> =
            cells.filter_map(|cell| Some(format!("- {}: {}\n", place(cell), self.fault(cell)?))).collect();
        match faults.is_empty() {
            false => text += &faults.concat(),
            true if is_measured => text += "- none\n",
            true => text += "- not measured\n",
        }
        text
    }

    /// Runs under each law that did not do their work, for a first look.
    pub(crate) fn failures(&self) -> usize {
        self.0.iter().filter(|cell| cell.law.name != ONE_FLOW.name).map(|cell| failed(&cell.runs)).sum()
    }
}

fn place(cell: &Cell) -> String {
    let condition = CONDITIONS.iter().find(|it| it.0 == cell.condition).map_or("", |it| it.1);
    format!("{} {} {condition}", cell.program.name, cell.path.name)
}

fn head(condition: Condition) -> &'static str {
    match condition {
        Condition::Idle => "Idle link",
        Condition::Far => "Beside one CUBIC flow, due in eight hours",
        Condition::Third => "Beside one CUBIC flow, with a deadline that needs a third of the link",
    }
}

fn legend(condition: Condition) -> &'static str {
    match condition {
        Condition::Idle => "Seconds from the program's start to its end.",
        Condition::Far => {
            "Foreground throughput kept, of its solo throughput, while both are there: until the program ends, for at most 12 s (24 s beside \
             the curls). Then the foreground ends, and the program goes on alone."
        }
        Condition::Third => {
            "Seconds to the last byte, of those given (`plain`: seconds to the program's end, without a deadline); foreground \
             throughput kept; how often the outlook was another. *One CUBIC flow*: seconds until one plain CUBIC connection has delivered as \
             many bytes as the program put on the idle link, in its place; for a program of one connection `plain` is that. *Not feasible*: \
             one of these two takes more than 85 % of the time given. *On course*: said in the last tenth of a deadline that was missed. The time given is \
             three times what the program takes alone on the link, or its bytes do if that is more."
        }
    }
}
