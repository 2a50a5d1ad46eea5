// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outlook in words.

use jiff::{Timestamp, Zoned};
use lowtide_deadline::{Outlook, Time};

use super::clock::Clock;
use crate::{size, when};

/// The outlook's kind, as the report names it.
pub(super) fn kind(outlook: &Outlook) -> &'static str {
    match outlook {
        Outlook::TooEarly => "too_early",
        Outlook::NoDeadline { .. } => "no_deadline",
        Outlook::OnCourse { .. } => "on_course",
        Outlook::CannotFinish { .. } => "cannot_finish",
        Outlook::ProgramLimited { .. } => "program_limited",
        Outlook::Stalled { .. } => "stalled",
        Outlook::Overdue { .. } => "overdue",
        Outlook::Done => "done",
        Outlook::SizeExceeded { .. } => "size_exceeded",
    }
}

/// When the outlook expects the end.
pub(super) fn expected(outlook: &Outlook) -> Option<Time> {
    match outlook {
        Outlook::OnCourse { expected } | Outlook::CannotFinish { expected, .. } => Some(*expected),
        Outlook::NoDeadline { expected } | Outlook::Overdue { expected } | Outlook::ProgramLimited { expected } => {
            *expected
        }
        _ => None,
    }
}

/// One phrase for the live line and the log.
pub(super) fn phrase(outlook: &Outlook, deadline: Option<Timestamp>, clock: &Clock, now: &Zoned) -> String {
    let at = |time: Time| when::show(clock.wall(time), now);
    let by = deadline.map(|deadline| when::show(deadline, now)).unwrap_or_default();
    let then = |expected: &Option<Time>| expected.map(|time| format!("; expected {}", at(time))).unwrap_or_default();
    match outlook {
        Outlook::TooEarly => "too early to tell".to_owned(),
        Outlook::NoDeadline { expected: Some(time) } => format!("in the background, expected {}", at(*time)),
        Outlook::NoDeadline { expected: None } => "in the background".to_owned(),
        Outlook::OnCourse { expected } => format!("on course, expected {}", at(*expected)),
        Outlook::CannotFinish { expected, .. } => {
            format!("cannot finish by {by} at what this network gives now; expected {}", at(*expected))
        }
        Outlook::ProgramLimited { expected } => {
            format!("the program itself sends too slowly to finish by {by}{}", then(expected))
        }
        Outlook::Stalled { since } => format!("stalled: nothing has got through since {}", at(*since)),
        Outlook::Overdue { expected } => {
            format!("past the deadline of {by}, going on as an ordinary flow{}", then(expected))
        }
        Outlook::Done => "all sent".to_owned(),
        Outlook::SizeExceeded { by } => format!("{} more than announced", size::show(*by)),
    }
}
