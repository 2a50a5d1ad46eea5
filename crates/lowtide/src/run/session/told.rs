// SPDX-License-Identifier: MIT OR Apache-2.0
//! What PROGRAM says of its own progress, in place of what was announced.

use std::time::Duration;

use lowtide_deadline::Time;
use lowtide_kernel::{Direction, Status};

use super::Session;
use crate::{
    progress::{Progress, Reader},
    size,
};

/// After so long a program that says how far it is has said so.
const SILENCE: Duration = Duration::from_secs(30);

impl Session {
    /// Takes in what PROGRAM has said since the last look.
    pub(super) fn listen(&mut self, status: &Status) {
        let Some(told) = self.plan.told else { return };
        if let Some(progress) = self.screen.job.reader().and_then(Reader::news) {
            let unfinished = if self.plan.about == Direction::Down { 0 } else { status.snapshot.unfinished_bytes };
            // what PROGRAM has read counts as done for it, and may still wait in its memory
            let gone = self.record.moved().saturating_add(unfinished);
            let held = progress.done.saturating_sub(gone).min(told.source.holds());
            self.heed(progress, unfinished.saturating_add(held));
        } else if told.latest.is_none() && status.now >= Time::ZERO + SILENCE {
            self.complain();
        }
    }

    /// Its last word: nothing is on its way any more.
    pub(super) fn listen_to_the_end(&mut self, reader: Option<Reader>) {
        let Some(told) = self.plan.told else { return };
        if let Some(progress) = reader.and_then(|reader| reader.latest()) {
            self.heed(progress, 0);
        } else if told.latest.is_none() {
            self.complain();
        }
    }

    fn heed(&mut self, progress: Progress, underway: u64) {
        let Some(told) = &mut self.plan.told else { return };
        let first = told.latest.replace(progress).is_none();
        let name = told.source.name();
        let left = progress.remaining().saturating_add(underway);
        let size = self.record.moved().saturating_add(left).max(1);
        if first {
            // its success says that all is sent, however much that was
            self.plan.guessed = true;
            self.record.expect_any();
            let (left, total) = (size::show(progress.remaining()), size::show(progress.total));
            self.screen.say(&format!("{name} says that {left} of {total} are left, which is what counts from now on"));
        }
        let had = self.plan.size.replace(size);
        self.screen.expect(size);
        match had {
            None => self.set_goal(),
            Some(_) => self.controller.governor().set_size(size),
        }
    }

    fn complain(&mut self) {
        let Some(told) = self.plan.told.as_mut().filter(|told| !told.complained) else { return };
        told.complained = true;
        let (name, options) = (told.source.name(), told.source.options());
        let then = match self.plan.size {
            Some(_) => "the size stays as it was announced",
            None => "without a size it stays in the background",
        };
        self.screen.say(&format!("nothing of {name}'s progress in its output, for which it needs {options}: {then}"));
    }
}
