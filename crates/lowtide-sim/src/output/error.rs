// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a result cannot be written.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a result cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The directory holds something else.
    #[error("{} is not empty and not a result of lowtide sim; choose another directory", .0.display())]
    Occupied(PathBuf),
    /// The file or directory cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl OutputError {
    /// For `map_err`.
    pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Write { path: path.to_owned(), error }
    }
}
