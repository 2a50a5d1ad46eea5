// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes wrong in the lab.

use std::{fmt::Display, io, path::Path};

/// One sentence: what is wrong, where, and what to do about it if that is not plain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct LabError {
    what: String,
    no_such_cell: bool,
}

impl LabError {
    /// This sentence.
    pub fn new(what: impl Display) -> Self {
        Self { what: what.to_string(), no_such_cell: false }
    }

    /// An expression asks for a cell that the experiment has not.
    pub(crate) fn no_such_cell(what: impl Display) -> Self {
        Self { no_such_cell: true, ..Self::new(what) }
    }

    /// Whether it is one of these.
    pub(crate) fn is_no_such_cell(&self) -> bool {
        self.no_such_cell
    }

    /// For `map_err`: what was tried with this file, and what the system says.
    pub(crate) fn at(what: &str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::new(format!("cannot {what} {}: {error}", path.display()))
    }

    /// The same, with the place before it.
    pub(crate) fn within(self, place: impl Display) -> Self {
        Self { what: format!("{place}: {}", self.what), ..self }
    }
}

impl From<lowtide_sim::scenario::ScenarioError> for LabError {
    fn from(error: lowtide_sim::scenario::ScenarioError) -> Self {
        Self::new(error)
    }
}

/// What most functions here return.
pub(crate) type Result<T, E = LabError> = std::result::Result<T, E>;
