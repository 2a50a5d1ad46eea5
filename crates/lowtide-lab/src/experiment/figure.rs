// SPDX-License-Identifier: MIT OR Apache-2.0
//! How results are drawn.

use super::Bound;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A figure or a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its name, for files: `fig-3`.
    pub name: String,
    /// Its title: `Fig. 3: share of the two CDG flows`.
    pub title: String,
    /// What one sees.
    #[serde(default)]
    pub caption: String,
    /// Its parts.
    #[serde(rename = "panel")]
    pub panels: Vec<Panel>,
}

/// A part of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// What it draws.
    pub plot: Plot,
    /// Above it.
    #[serde(default)]
    pub title: String,
    /// The measure, of `lines`, `boxes` and `cdf`.
    pub measure: Option<String>,
    /// In place of a measure, an expression over cells; of `lines`. Of `points`, where they are along y.
    pub value: Option<String>,
    /// An expression over cells: where `points` are along x.
    pub x_value: Option<String>,
    /// The axis along x, of `lines` and `boxes`; the axis of the rows, of `table`.
    pub x: Option<String>,
    /// The axis with a line, a box or a point for each of its values.
    pub each: Option<String>,
    /// The time series, of `series`.
    #[serde(default)]
    pub series: Vec<String>,
    /// Only the cells at these values of axes.
    #[serde(default, rename = "where")]
    pub place: BTreeMap<String, toml::Value>,
    /// The columns, of `table`.
    #[serde(default, rename = "column")]
    pub columns: Vec<Column>,
    /// The column by which the rows are in order, the greatest first; of `table`.
    pub sort: Option<String>,
    /// Below the x axis.
    pub x_label: Option<String>,
    /// Above the y axis.
    pub y_label: Option<String>,
    /// Least and greatest value of the x axis.
    pub x_range: Option<[f64; 2]>,
    /// Least and greatest value of the y axis.
    pub y_range: Option<[f64; 2]>,
    /// The x axis has powers at equal distances.
    #[serde(default)]
    pub x_log: bool,
    /// The y axis has.
    #[serde(default)]
    pub y_log: bool,
    /// Values that a paper quotes.
    #[serde(default, rename = "mark")]
    pub marks: Vec<Mark>,
}

/// What a panel draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plot {
    /// The median of a measure over an axis, with the range of the runs.
    Lines,
    /// Quantities over time, of the first run of a cell.
    Series,
    /// Distributions: the part of the values below x.
    Cdf,
    /// Boxes: median, quartiles, least and greatest value.
    Boxes,
    /// A point for each value of an axis, with its name: two quantities against each other.
    Points,
    /// A table.
    Table,
}

/// A column of a table; it has one of `value`, `text`, `least` and `greatest`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its head.
    pub title: String,
    /// Its value in a row.
    pub value: Option<Bound>,
    /// A text with expressions in braces.
    pub text: Option<String>,
    /// The cell of the row where this measure has its least value.
    pub least: Option<String>,
    /// The cell where it has its greatest.
    pub greatest: Option<String>,
    /// Digits after the point.
    #[serde(default = "one")]
    pub digits: u8,
}

impl Column {
    /// How many of those it has.
    pub(super) fn parts(&self) -> usize {
        let Self { value, text, least, greatest, .. } = self;
        [value.is_some(), text.is_some(), least.is_some(), greatest.is_some()].into_iter().filter(|it| *it).count()
    }
}

/// A value that the paper quotes: a point, or a line where only one of x and y is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Where, along x.
    pub x: Option<f64>,
    /// Where, along y.
    pub y: Option<f64>,
    /// The value of `each` whose colour it has.
    pub of: Option<toml::Value>,
    /// What stands beside it.
    #[serde(default)]
    pub text: String,
}

const fn one() -> u8 {
    1
}
