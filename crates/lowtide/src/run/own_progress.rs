// SPDX-License-Identifier: MIT OR Apache-2.0
//! PROGRAM's own progress, as of its latest report.

use crate::{
    operate::protocol::OwnProgress,
    progress::{Progress, Source},
};

/// `--progress-from`, and what came of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) source: Source,
    pub(super) latest: Option<Progress>,
    /// That it says nothing has been said.
    pub(super) complained: bool,
}

impl Told {
    pub(super) fn new(source: Source) -> Told {
        Told { source, latest: None, complained: false }
    }

    /// The size rests on it.
    pub(super) fn counts(told: Option<Told>) -> bool {
        told.is_some_and(|told| told.latest.is_some())
    }

    /// For those who ask.
    pub(super) fn shown(self) -> OwnProgress {
        OwnProgress {
            from: self.source.name().to_owned(),
            done_bytes: self.latest.map(|progress| progress.done),
            total_bytes: self.latest.map(|progress| progress.total),
        }
    }
}
