// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes wrong in the lab.

use std::{fmt::Display, io, path::Path};

/// One sentence: what is wrong, where, and what to do about it if that is not plain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LabError(String);

impl LabError {
    /// This sentence.
    pub fn new(what: impl Display) -> Self {
        Self(what.to_string())
    }

    /// For `map_err`: what was tried with this file, and what the system says.
    pub(crate) fn at(what: &str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self(format!("cannot {what} {}: {error}", path.display()))
    }

    /// The same, with the place before it.
    pub(crate) fn within(self, place: impl Display) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl From<lowtide_sim::scenario::ScenarioError> for LabError {
    fn from(error: lowtide_sim::scenario::ScenarioError) -> Self {
        Self(error.to_string())
    }
}

/// What most functions here return.
pub(crate) type Result<T, E = LabError> = std::result::Result<T, E>;
