// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report: one page that needs nothing but itself, the scoreboard as JSON, and the figures as files.

mod markdown;
mod page;

use crate::{
    Comparison, Extent, LabError, Library, Place, Results, cache,
    error::Result,
    experiment::Experiment,
    figure::{self, Drawn},
    score::{self, Score},
    scoreboard,
};
use std::{fs, path::Path};

/// The command that runs the experiment of a name, to an extent, at a place: options belong to the program that writes
/// the report.
pub type CommandFor = fn(&str, Extent, Place) -> String;

/// An experiment with what came of it.
pub struct Section<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its results.
    pub results: Results<'a>,
    /// Its targets.
    pub scores: Vec<Score<'a>>,
    /// Its figures; none if runs are missing.
    pub figures: Vec<Drawn<'a>>,
    /// The scenario of its first run, as `lowtide sim` reads it.
    pub scenario: Option<String>,
    /// What came of it on testbeds.
    pub on_testbeds: Vec<Comparison<'a>>,
    command_for: CommandFor,
}

impl<'a> Section<'a> {
    /// Scores and draws.
    ///
    /// # Errors
    /// What is wrong with an expression, with its place.
    pub fn new(library: &Library, results: Results<'a>, command_for: CommandFor) -> Result<Self> {
        let experiment = results.plan.experiment;
        let scores = score::score(&results)?;
        let figures = if results.complete() { figure::draw(&results)? } else { Vec::new() };
        let has_runs = results.plan.runs() > 0;
        let scenario = has_runs.then(|| results.plan.scenario(library, 0, 0)).transpose()?;
        Ok(Self { experiment, results, scores, figures, scenario, on_testbeds: Vec::new(), command_for })
    }

    /// Of the whole experiment if that was run, else of a quick look if that was.
    ///
    /// # Errors
    /// As [`Section::new`], or what is wrong with the plans.
    pub fn best(library: &Library, whole: Results<'a>, quick: Results<'a>, command_for: CommandFor) -> Result<Self> {
        let quick_instead = !whole.complete() && quick.complete();
        Self::new(library, if quick_instead { quick } else { whole }, command_for)
    }

    /// The command that runs it.
    fn command(&self) -> String {
        (self.command_for)(&self.experiment.id, self.results.plan.extent, Place::Sim)
    }

    /// The one that runs it there.
    fn command_on(&self, column: &Comparison<'_>) -> String {
        (self.command_for)(&self.experiment.id, column.results.plan.extent, column.on.place)
    }
}

/// Writes `index.html`, `scoreboard.json` and `figures/` into a directory.
///
/// # Errors
/// A file cannot be written.
pub fn write(sections: &[Section<'_>], directory: &Path) -> Result<()> {
    cache::write(&directory.join("index.html"), page(sections).as_bytes())?;
    let scores: Vec<Score<'_>> = sections.iter().flat_map(|section| section.scores.iter().cloned()).collect();
    let columns: Vec<&Comparison<'_>> = sections.iter().flat_map(|section| &section.on_testbeds).collect();
    cache::write(&directory.join("scoreboard.json"), scoreboard(&scores, &columns).as_bytes())?;
    let figures = directory.join("figures");
    fs::create_dir_all(&figures).map_err(LabError::at("make", &figures))?;
    for section in sections {
        let own = section.figures.iter().map(|drawn| (String::new(), drawn));
        let of_column = |column: &'_ Comparison<'_>| format!("-on-{}", column.on.name);
        let on_testbeds = section.on_testbeds.iter();
        let on_testbeds = on_testbeds.flat_map(|it| it.figures.iter().map(move |drawn| (of_column(it), drawn)));
        for (place, drawn) in own.chain(on_testbeds) {
            if let Some(file) = drawn.file() {
                let name = format!("{}{place}.svg", drawn.name(&section.experiment.id));
                cache::write(&figures.join(name), file.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Writes a page of Markdown, and its drawings into `plots/` beside it.
///
/// # Errors
/// A file cannot be written.
pub fn write_markdown(sections: &[Section<'_>], path: &Path) -> Result<()> {
    cache::write(path, markdown(sections).as_bytes())?;
    let plots = path.parent().unwrap_or(Path::new("")).join("plots");
    for section in sections {
        for drawn in &section.figures {
            if let Some(file) = drawn.file() {
                let name = format!("{}.svg", drawn.name(&section.experiment.id));
                cache::write(&plots.join(name), file.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Writes a page of Markdown of what was run on kernels, beside the simulator.
///
/// # Errors
/// The file cannot be written.
pub fn write_kernels(sections: &[Section<'_>], path: &Path) -> Result<()> {
    cache::write(path, markdown::on_testbeds(sections).as_bytes())
}

/// The page of Markdown.
pub fn markdown(sections: &[Section<'_>]) -> String {
    markdown::markdown(sections)
}

/// The page.
pub fn page(sections: &[Section<'_>]) -> String {
    page::page(sections).into_string()
}
