// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a transfer is to do, and how.

use jiff::Timestamp;
use lowtide_deadline::{Goal, Policy};
use lowtide_kernel::{Direction, Setup, User};

use super::{clock::Clock, history::History, limits::Limits, own_progress::Told, past::PastRuns};
use crate::when::When;

/// What the command line asks for, checked.
pub(super) struct Plan {
    /// Announced, or guessed.
    pub(super) size: Option<u64>,
    /// `--size last`: by what the job sent before, and thought over while it runs.
    pub(super) guessed: bool,
    /// `--progress-from`: the size is what has moved, and what PROGRAM says is left.
    pub(super) told: Option<Told>,
    pub(super) due: Option<When>,
    /// When that is by the wall clock as it is set now.
    pub(super) deadline: Option<Timestamp>,
    pub(super) clock: Clock,
    pub(super) policy: Policy,
    pub(super) setup: Setup,
    pub(super) limits: Limits,
    /// The way that size and deadline are about.
    pub(super) about: Direction,
    pub(super) user: Option<User>,
    pub(super) history: Option<History>,
    pub(super) past: Option<PastRuns>,
    pub(super) wait_group: bool,
    /// As the report has it.
    pub(super) program: Vec<String>,
    pub(super) kind: Kind,
    /// That is wished for on the control socket.
    pub(super) name: String,
}

/// What is governed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A program that was started for it.
    Run,
    /// A group that was there before.
    Attach,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Attach => "attach",
        }
    }
}

impl Plan {
    /// Without a size there is nothing to press for.
    pub(super) fn goal(&self) -> Goal {
        Goal { size: self.size, deadline: self.size.and(self.due).map(|when| self.clock.due(when)) }
    }
}
