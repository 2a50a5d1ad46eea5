// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page, as HTML.

use super::Section;
use crate::comparison::{Compared, Comparison};
use crate::{
    experiment::{Experiment, Kind},
    figure::{Drawn, DrawnPanel, Table},
    score::{Checked, Score, Verdict},
};
use lowtide_draw::{axis::label, chart::STYLE};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const PAGE_STYLE: &str = include_str!("style.css");

/// The papers, and what is beside them, by the names of the directories.
const PAPERS: [(&str, &str); 7] = [
    ("000", "Evaluating CAIA Delay Gradient as a candidate for deadline-aware less-than-best-effort transport"),
    ("001", "A framework for less than best effort congestion control with soft deadlines"),
    ("002", "CAIA Delay-Gradient in Linux (thesis)"),
    ("003", "Delay based additive increase for scalable congestion controls"),
    ("004", "Eclipse: a new dynamic delay-based congestion control algorithm for background traffic"),
    ("open", "What the papers leave open"),
    ("beyond", "Beyond the papers"),
];

pub(super) fn page(sections: &[Section<'_>]) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Lowtide: the papers, reproduced" }
                style { (PreEscaped(PAGE_STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "The papers, reproduced" }
                    p { "Every figure, table and claim of the papers that Lowtide comes from, run in its simulator, drawn and scored. "
                        "A band is where a value has to lie; where it comes from stands beside each target." }
                    (totals(sections))
                }
                main {
                    section #scoreboard {
                        h2 { "Scoreboard" }
                        (meanings())
                        @for paper in papers(sections) { (board(paper, sections)) }
                    }
                    @for section in sections { (experiment(section)) }
                }
                footer { p { "Made by " code { "lowtide lab report" } ", version " (env!("CARGO_PKG_VERSION")) "." } }
            }
        }
    }
}

/// The papers that there are experiments of, in their order.
fn papers<'s>(sections: &'s [Section<'_>]) -> Vec<&'s str> {
    let mut papers: Vec<&str> = sections.iter().map(|section| section.experiment.paper.as_str()).collect();
    papers.dedup();
    papers
}

/// `000: its title`; without a number, the title alone; unknown ones by the directory's name.
fn heading(paper: &str) -> String {
    match PAPERS.iter().find(|(name, _)| *name == paper) {
        Some((_, title)) if paper.starts_with(|it: char| it.is_ascii_digit()) => format!("{paper}: {title}"),
        Some((_, title)) => (*title).to_owned(),
        None => paper.to_owned(),
    }
}

/// What an experiment is of: `Paper 000, Fig. 3. `
fn origin(it: &Experiment) -> String {
    let paper = if it.is_of_a_paper() { format!("Paper {}", it.paper) } else { String::new() };
    let parts: Vec<&str> = [paper.as_str(), &it.of].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { String::new() } else { format!("{}. ", parts.join(", ")) }
}

fn totals(sections: &[Section<'_>]) -> Markup {
    let scores: Vec<&Score<'_>> = sections.iter().flat_map(|section| &section.scores).collect();
    let count = |verdict| scores.iter().filter(|score| score.verdict == verdict).count();
    html! {
        ul.totals {
            @for verdict in Verdict::ALL {
                @if count(verdict) > 0 { li { strong { (count(verdict)) } " " (badge(verdict)) } }
            }
            li { "of " (scores.len()) " targets" }
        }
    }
}

fn meanings() -> Markup {
    html! {
        p.note {
            (badge(Verdict::Pass)) " all numbers lie within their bands. " (badge(Verdict::Shape))
            " an order or a form, stated as a predicate, holds. " (badge(Verdict::Answered))
            " a question that the papers leave open. " (badge(Verdict::Miss)) " something does not hold; the reason stands beside it. "
            (badge(Verdict::NotRun)) " there are no results."
        }
    }
}

fn badge(verdict: Verdict) -> Markup {
    let class = verdict.to_string().replace(' ', "-");
    html! { span class={ "badge " (class) } { (verdict) } }
}

fn board(paper: &str, sections: &[Section<'_>]) -> Markup {
    let of_paper = sections.iter().filter(|section| section.experiment.paper == paper);
    let mut scores: Vec<&Score<'_>> = of_paper.flat_map(|section| &section.scores).collect();
    scores.sort_by_key(|score| &score.target.id);
    html! {
        h3 { (heading(paper)) }
        ul.board {
            @for score in scores {
                li {
                    a href={ "#" (score.target.id) } { (score.target.id) }
                    (badge(score.verdict))
                    span.claim { (score.target.claim.trim()) @if score.quick { " " small { "(quick look)" } } }
                }
            }
        }
    }
}

fn experiment(section: &Section<'_>) -> Markup {
    let it = section.experiment;
    html! {
        section.experiment id={ "experiment-" (it.id) } {
            h2 { (it.title) }
            p.note { (origin(it)) (it.source.trim()) }
            (extent(section))
            @for drawn in &section.figures { (figure(it, drawn, "")) }
            @for column in &section.on_testbeds { (column_of(section, column)) }
            @for score in &section.scores { (target(score, &section.on_testbeds)) }
            @if let Some(scenario) = &section.scenario {
                details { summary { "The scenario" @if section.results.plan.cells.len() > 1 { " of the first cell" } }
                    pre { (scenario) } }
            }
            p.run {
                "Run it yourself: " code { (section.command()) }
                @for column in &section.on_testbeds { ", on the " (column.on.title) ": " code { (section.command_on(column)) } }
            }
        }
    }
}

/// How many runs there were.
fn extent(section: &Section<'_>) -> Markup {
    let plan = &section.results.plan;
    let (cells, runs, seeds) = (plan.cells.len(), plan.runs(), plan.seeds.len());
    let plural = |number: usize| if number == 1 { "" } else { "s" };
    html! {
        @if runs > 0 {
            p.note {
                @if section.results.complete() {
                    (runs) " run" (plural(runs)) ": " (cells) " cell" (plural(cells)) ", " (seeds) " seed" (plural(seeds))
                    ", " (plan.extent.cells()) "."
                } @else {
                    "Not run: " (section.results.done()) " of " (runs) " runs are there."
                }
            }
        }
    }
}

fn figure(experiment: &Experiment, drawn: &Drawn<'_>, place: &str) -> Markup {
    let figure = drawn.figure;
    let on = if place.is_empty() { String::new() } else { format!("-on-{place}") };
    html! {
        figure id={ (experiment.id) "-" (figure.name) (on) } {
            h3 { (figure.title) }
            div.panels {
                @for panel in &drawn.panels {
                    @match panel {
                        DrawnPanel::Drawing(svg, label) => (PreEscaped(svg.finish_in_page("plot", label))),
                        DrawnPanel::Table(table) => (self::table(table)),
                    }
                }
            }
            @if !figure.caption.is_empty() { figcaption { (figure.caption.trim()) } }
        }
    }
}

fn table(table: &Table) -> Markup {
    html! {
        div.scroll {
            table {
                @if !table.title.is_empty() { caption { (table.title) } }
                thead { tr { @for head in &table.head { th { (head) } } } }
                tbody { @for row in &table.rows { tr { @for cell in row { td { (cell) } } } } }
            }
        }
    }
}

/// What runs on a testbed, before its numbers.
fn column_of(section: &Section<'_>, column: &Comparison<'_>) -> Markup {
    let plan = &column.results.plan;
    let (cells, seeds) = (plan.cells.len(), plan.seeds.len());
    html! {
        p.note {
            "Also on the " strong { (column.on.title) }
            @if let Some(environment) = &column.environment { " (" (environment) ")" }
            ": "
            @if let Some(why) = &column.results.refused { "not run: " (why) "." }
            @else if column.results.complete() { (cells) " cells with " (seeds) " seeds. Its numbers stand with the targets." }
            @else { "not run: " (column.results.done()) " of " (plan.runs()) " runs are there." }
            @if column.results.outdated > 0 { " Recorded by another version of the program: " (column.results.outdated) " of them." }
            @if let Some(late) = column.results.standstill_ms.filter(|late| *late > 0.0) {
                " The machine stood still for " (short(late)) " ms at the most."
            }
        }
        @for drawn in &column.figures {
            details { summary { (drawn.figure.title) ", on the " (column.on.title) } (figure(section.experiment, drawn, &column.on.name)) }
        }
    }
}

/// The numbers of a target on a testbed, beside those of the same scenarios in the simulator.
fn on_testbed(target: &str, column: &Comparison<'_>) -> Markup {
    let parts = column.compare(target);
    html! {
        @if !parts.is_empty() {
            p.note { "On the " strong { (column.on.title) } ", beside the simulator with the same scenario:" }
            div.scroll {
                table.checks {
                    @if column.results.outdated > 0 { caption { "recorded by another version of the program" } }
                    thead { tr { th { "" } th { (column.on.title) } th { "single runs" } th { "simulator" } th { "paper" } th { "band" } th { "difference" } } }
                    tbody { @for part in &parts { (row_elsewhere(part)) } }
                }
            }
            @if let Some(score) = column.scores.iter().find(|score| score.target.id == target && score.left_out > 0) {
                p.note { (score.left_out) " of the parts above cannot run there." }
            }
            @if let Some(reason) = column.on.reason.get(target) {
                p.reason { strong { "Why they differ: " } (reason.trim()) }
            } @else if parts.iter().any(Compared::is_notable) {
                p.reason { "No reason for the difference has been found yet." }
            }
        }
    }
}

fn row_elsewhere(part: &Compared<'_>) -> Markup {
    let check = part.there;
    let unit = if check.unit.is_empty() { String::new() } else { format!(" {}", check.unit) };
    let number = |value: f64| format!("{}{unit}", short(value));
    let word = |checked: &Checked| if checked.holds { "holds" } else { "does not hold" };
    let simulated = part.simulated;
    html! {
        tr {
            th scope="row" { (check.what) }
            @if check.predicate {
                td data-head="measured" { (word(check)) }
                td.empty {}
                td data-head="simulator" { (simulated.map_or("–", word)) }
                td.empty {} td.empty {}
            } @else {
                td data-head="measured" { (check.value.map_or("nothing".to_owned(), number)) }
                td data-head="single runs" { @if let Some((least, most)) = check.spread { (short(least)) " to " (short(most)) } @else { "–" } }
                td data-head="simulator" { (simulated.and_then(|it| it.value).map_or("–".to_owned(), number)) }
                td data-head="paper" { (check.expected.map_or("–".to_owned(), number)) }
                td data-head="band" { (band(check)) @if !check.holds { ", outside" } }
            }
            td data-head="difference" {
                @if let Some(difference) = part.difference { (format!("{:+.0} %", 100.0 * difference)) " " }
                @if part.is_notable() { span class="badge miss" { "differs" } }
            }
        }
    }
}

fn target(score: &Score<'_>, columns: &[Comparison<'_>]) -> Markup {
    let target = score.target;
    html! {
        article id=(target.id) {
            h4 { (target.id) " " (badge(score.verdict)) " " small { (target.kind.word()) } }
            p { (target.claim.trim()) }
            @if let Some(answer) = &score.answer { p.answer { (answer.trim()) } }
            @if let Some(other) = &target.restates { p.note { "It says again what " (other) " says." } }
            @if !target.band.is_empty() && target.kind != Kind::Unit { p.note { "Band: " (target.band.trim()) } }
            @if !score.checks.is_empty() { (checks(&score.checks)) }
            @if score.verdict == Verdict::Miss {
                p.reason { @match &target.reason {
                    Some(reason) => { strong { "Why: " } (reason.trim()) }
                    None => "No reason has been found yet.",
                } }
            }
            @for column in columns { (on_testbed(&target.id, column)) }
        }
    }
}

fn checks(checks: &[Checked]) -> Markup {
    html! {
        div.scroll {
            table.checks {
                thead { tr { th { "" } th { "measured" } th { "single runs" } th { "paper" } th { "band" } th { "" } } }
                tbody { @for check in checks { (row(check)) } }
            }
        }
    }
}

fn row(check: &Checked) -> Markup {
    let unit = if check.unit.is_empty() { String::new() } else { format!(" {}", check.unit) };
    let number = |value: f64| format!("{}{unit}", short(value));
    html! {
        tr {
            th scope="row" { (check.what) }
            @if check.predicate {
                td data-head="measured" { (if check.holds { "holds" } else { "does not hold" }) }
                td.empty {} td.empty {} td.empty {}
            } @else {
                td data-head="measured" { (check.value.map_or("nothing".to_owned(), number)) }
                td data-head="single runs" { @if let Some((least, most)) = check.spread { (short(least)) " to " (short(most)) } @else { "–" } }
                td data-head="paper" { (check.expected.map_or("–".to_owned(), number)) }
                td data-head="band" { (band(check)) }
            }
            td.verdict { (badge(if check.holds { Verdict::Pass } else { Verdict::Miss })) }
        }
    }
}

/// Its ends in words.
pub(super) fn band(check: &Checked) -> String {
    match check.band {
        (Some(low), Some(high)) => format!("{} to {}", short(low), short(high)),
        (Some(low), None) => format!("at least {}", short(low)),
        (None, Some(high)) => format!("at most {}", short(high)),
        (None, None) => "–".to_owned(),
    }
}

/// A number with three or four digits that mean something.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        return format!("{value:.0}");
    }
    if size > 0.0 && size < 0.001 {
        return format!("{value:.2e}");
    }
    let digits = if size >= 100.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        4
    };
    label(format!("{value:.digits$}").parse().unwrap_or(value))
}
