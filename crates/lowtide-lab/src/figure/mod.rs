// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures: from results to drawings and tables.

mod data;

use crate::{
    error::{LabError, Result},
    experiment::Figure,
    results::Results,
    score::Scores,
};
use lowtide_draw::{chart::STYLE, svg::Svg};

/// A figure, drawn.
pub struct Drawn<'a> {
    /// The figure.
    pub figure: &'a Figure,
    /// Its parts, in their order.
    pub panels: Vec<DrawnPanel>,
}

/// A part of a figure, drawn.
pub enum DrawnPanel {
    /// A drawing, and what it is for those who cannot see it.
    Drawing(Svg, String),
    /// A table.
    Table(Table),
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Above it.
    pub title: String,
    /// The heads of its columns.
    pub head: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// All figures of an experiment whose runs are there.
///
/// # Errors
/// What is wrong with an expression, with its place.
pub fn draw<'a>(results: &Results<'a>) -> Result<Vec<Drawn<'a>>> {
    let (experiment, scores) = (results.plan.experiment, Scores::new(results)?);
    let mut drawn = Vec::new();
    for figure in &experiment.figures {
        let mut panels = Vec::new();
        for (number, panel) in figure.panels.iter().enumerate() {
            let place = format!("{}: figure {}, panel {}", experiment.id, figure.name, number + 1);
            panels.push(data::panel(&scores, panel).map_err(|error: LabError| error.within(place))?);
        }
        drawn.push(Drawn { figure, panels });
    }
    Ok(drawn)
}

/// Between two panels of a file.
const GAP: f64 = 16.0;
/// Panels side by side in a file.
const ACROSS: usize = 2;

impl Drawn<'_> {
    /// Its name among those of all experiments.
    pub fn name(&self, experiment: &str) -> String {
        format!("{experiment}-{}", self.figure.name)
    }

    /// The drawings as one SVG file that needs nothing else; `None` if all parts are tables.
    pub fn file(&self) -> Option<String> {
        let drawings: Vec<&Svg> = self.panels.iter().filter_map(DrawnPanel::drawing).collect();
        let (width, height) = drawings.iter().map(|svg| svg.size()).reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))?;
        let (across, down) = (drawings.len().min(ACROSS), drawings.len().div_ceil(ACROSS));
        let total = |size: f64, number: usize| size * number as f64 + GAP * (number - 1) as f64;
        let mut file = Svg::new(total(width, across), total(height, down));
        for (number, drawing) in drawings.into_iter().enumerate() {
            let (column, row) = (number % ACROSS, number / ACROSS);
            file.inset((column as f64 * (width + GAP), row as f64 * (height + GAP)), drawing);
        }
        Some(file.finish_styled("plot", STYLE))
    }
}

impl DrawnPanel {
    fn drawing(&self) -> Option<&Svg> {
        match self {
            Self::Drawing(svg, _) => Some(svg),
            Self::Table(_) => None,
        }
    }
}
