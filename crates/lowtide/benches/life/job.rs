// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of a program, and what it sends.

use super::tree::Shape;

/// One run. Every file and place of its own has its name in it.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

/// The directory of the near end that is sent.
pub(crate) const DATA: &str = "data";
