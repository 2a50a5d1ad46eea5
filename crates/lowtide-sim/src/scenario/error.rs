// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a scenario, and where.

use std::fmt;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// From this place of the file, both counted from 1.
    File { line: usize, column: usize },
    /// From this override.
    Override(String),
    /// From a table that was no text.
    Table,
}

/// The lines of a text, to find many places in it.
pub(super) struct Lines<'a> {
    text: &'a str,
    /// Of each line.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// The place of this byte.
    pub(super) fn at(&self, byte: usize) -> Origin {
        let line = self.starts.partition_point(|start| *start <= byte);
        let before = self.text.get(self.starts[line - 1]..byte).unwrap_or_default();
        Origin::File { line, column: before.chars().count() + 1 }
    }
}

impl Origin {
    /// An error here.
    pub(super) fn error(&self, what: impl Into<String>) -> ScenarioError {
        ScenarioError { file: String::new(), origin: Some(self.clone()), what: what.into() }
    }
}

/// Why a text is no scenario: one sentence that begins with file, line and column, or with the override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    file: String,
    origin: Option<Origin>,
    what: String,
}

impl ScenarioError {
    /// Whether it is about an override, and not about the file.
    pub const fn is_of_override(&self) -> bool {
        matches!(self.origin, Some(Origin::Override(_)))
    }

    /// The whole file is the matter.
    pub(super) fn of_file(what: impl Into<String>) -> Self {
        Self { file: String::new(), origin: None, what: what.into() }
    }

    /// The same in this file.
    pub(super) fn in_file(self, file: &str) -> Self {
        Self { file: file.to_owned(), ..self }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, origin, what } = self;
        match origin {
            Some(Origin::File { line, column }) => write!(f, "{file}:{line}:{column}: {what}"),
            Some(Origin::Override(text)) => write!(f, "{text}: {what}"),
            Some(Origin::Table) | None => write!(f, "{file}: {what}"),
        }
    }
}

impl std::error::Error for ScenarioError {}
