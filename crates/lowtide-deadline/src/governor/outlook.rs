// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the governor reports: the outlook of the transfer, and whether the network or the program limits it.

use super::{Governor, SILENT_INTERVALS};
use crate::{Outlook, Time};
use std::time::Duration;

/// So many such intervals in a row, and the program is said to set the pace, or to wait; and as many others, and it no
/// longer is ...
const PACE_INTERVALS: u32 = 3;
/// ... but not within less than this, so that the sentence does not follow each pause of a short transfer.
const PACE_TIME: Duration = Duration::from_secs(3);
/// A program that has sent nothing for so many intervals, and for so long, without a sign of its peer, is too slow
/// itself.
const PATIENCE_INTERVALS: u32 = 10;
/// See [`PATIENCE_INTERVALS`].
const PATIENCE: Duration = Duration::from_secs(10);
/// A program that was found too late is so until it would be done this part of the time left before the deadline.
const LATE_MARGIN: f64 = 0.05;
/// Bytes beyond the announced size that are overhead, not a wrong announcement.
const OVERHEAD: f64 = 0.02;

/// Who sets the pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// The network.
    Network,
    /// The program, which sends little at a time.
    Program,
    /// The program, which sends nothing.
    Nobody,
}

impl Governor {
    /// Another pace counts when it has lasted.
    pub(super) fn keep_pace(&mut self, seen: Pace) {
        if seen == self.pace {
            self.off_pace = 0;
            return;
        }
        self.off_pace += 1;
        let least = (PACE_TIME.as_secs_f64() / self.interval.as_secs_f64()).ceil() as u32;
        if self.off_pace >= least.max(PACE_INTERVALS) {
            self.pace = seen;
            self.off_pace = 0;
        }
    }

    /// What there is to say where not the network sets the pace.
    fn of_the_program(&mut self, now: Time, deadline: Time, expected: Option<Time>) -> Option<Outlook> {
        if self.idle_so_far && now.since(self.goal_set) >= PACE_TIME {
            return Some(Outlook::Waiting { connected: self.connected });
        }
        if self.pace == Pace::Network {
            self.program_late = false;
            return None;
        }
        let margin = if self.program_late { deadline.since(now).mul_f64(LATE_MARGIN) } else { Duration::ZERO };
        self.program_late = expected.is_none_or(|expected| expected > deadline - margin);
        if !self.program_late {
            return None;
        }
        let patience = PATIENCE.max(self.interval * PATIENCE_INTERVALS);
        if self.pace == Pace::Nobody && now.since(self.last_activity) < patience {
            return Some(Outlook::Waiting { connected: self.connected });
        }
        Some(Outlook::ProgramLimited { expected })
    }

    /// What there is to say at this moment.
    pub(super) fn outlook(&mut self, now: Time) -> Outlook {
        let outlook = self.outlook_in_counted_time(now);
        self.outlook_by_the_clock(now, outlook)
    }

    fn outlook_in_counted_time(&mut self, now: Time) -> Outlook {
        if let Some(size) = self.goal.size
            && self.acknowledged >= size
        {
            let by = self.acknowledged - size;
            return if by as f64 <= OVERHEAD * size as f64 { Outlook::Done } else { Outlook::SizeExceeded { by } };
        }
        let silent = now.since(self.last_sign_of_life) >= self.interval * SILENT_INTERVALS;
        let question = self.question(now);
        let remaining = question.map(|question| question.remaining).or(self.remaining().map(|bytes| bytes as f64));
        let expected = remaining.filter(|_| !silent).and_then(|bytes| self.forecast.completion(now, bytes));
        if self.goal.deadline.is_none() {
            return Outlook::NoDeadline { expected };
        }
        let Some(question) = question else {
            return Outlook::Overdue { expected };
        };
        if silent {
            return Outlook::Stalled { since: self.last_sign_of_life };
        }
        if let Some(outlook) = self.of_the_program(now, question.deadline, expected) {
            return outlook;
        }
        self.forecast.outlook(&question)
    }
}
