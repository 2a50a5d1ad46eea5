// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a paper claims, and how it is decided whether that holds.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A claim of a paper, or a question that it leaves open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its number: `C-01`.
    pub id: String,
    /// What sort it is of.
    pub kind: Kind,
    /// What the paper says, or asks; in one's own words.
    pub claim: String,
    /// Where the band comes from.
    #[serde(default)]
    pub band: String,
    /// Why it is missed, as far as that was found.
    pub reason: Option<String>,
    /// The target that this one repeats, so that it is not counted twice.
    pub restates: Option<String>,
    /// The answer to a question, with expressions in braces.
    pub answer: Option<String>,
    /// All of these have to hold.
    #[serde(default, rename = "check")]
    pub checks: Vec<Check>,
}

/// Sorts of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Numbers of a paper, or derived from it.
    Quantitative,
    /// An order or a form, as a predicate.
    Shape,
    /// A formula, without a run.
    Unit,
    /// A question without a value in a paper.
    Question,
}

impl Kind {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quantitative => "quantitative",
            Self::Shape => "shape",
            Self::Unit => "unit",
            Self::Question => "question",
        }
    }
}

/// A part of a target: a value with its band, or a predicate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What is looked at, with expressions in braces.
    pub what: String,
    /// One check for each value of these axes, which is a variable then.
    #[serde(default)]
    pub each: Each,
    /// The expression of the value; over cells.
    pub value: Option<String>,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// The value of the paper; a variable of `low` and `high`.
    pub expected: Option<Bound>,
    /// The lower end of the band.
    pub low: Option<Bound>,
    /// Its upper end.
    pub high: Option<Bound>,
    /// In place of a value: the predicate.
    pub holds: Option<String>,
}

/// Names of axes: one, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Each {
    /// None: a single check.
    #[default]
    Once,
    /// One.
    Axis(String),
    /// All combinations.
    Axes(Vec<String>),
}

impl Each {
    /// The names.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Once => &[],
            Self::Axis(name) => std::slice::from_ref(name),
            Self::Axes(names) => names,
        }
    }
}

/// A number, an expression, or one of these for each value of the axis of `each`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// A number.
    Number(f64),
    /// An expression.
    Expression(String),
    /// By the value of the axis, as it is written; of several axes, with commas between them.
    Table(BTreeMap<String, Bound>),
}
