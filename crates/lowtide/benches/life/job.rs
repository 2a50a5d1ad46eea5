// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a program, and what it transfers.

use super::tree::Shape;

/// One run. Every file and place of its own has its name in it.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    /// In all.
    pub(crate) bytes: u64,
}

/// The directory that is transferred: of the near end in an upload, of the far end in a download.
pub(crate) const DATA: &str = "data";
