// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outlook as people read it.

use jiff::{Timestamp, Zoned};
use lowtide_deadline::{Hold, Outlook, Time};
use lowtide_kernel::Direction;

use super::clock::Clock;
use crate::{size, when};

/// While a transfer is paused.
pub(super) const PAUSED: &str = "paused: a trickle keeps the connections alive";

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
        Outlook::Behind { .. } => "behind",
        Outlook::Waiting { .. } => "waiting",
    }
}

/// Why a transfer takes spare capacity alone, as the status names it.
pub(super) fn held(hold: Hold) -> Option<&'static str> {
    match hold {
        Hold::None => None,
        Hold::Closed { .. } => Some("window"),
        Hold::Turn { .. } => Some("turn"),
    }
}

/// One phrase for the live line and the log.
pub(super) fn phrase(
    outlook: &Outlook,
    hold: Hold,
    direction: Direction,
    deadline: Option<Timestamp>,
    clock: &Clock,
    now: &Zoned,
) -> String {
    let at = |time: Time| when::show(clock.wall(time), now);
    let by = deadline.map(|deadline| when::show(deadline, now)).unwrap_or_default();
    let why = match hold {
        _ if outlook.is_complete() => None,
        Hold::None => None,
        Hold::Closed { opens: Some(opens) } => Some(format!("outside its window until {}", at(opens))),
        Hold::Closed { opens: None } => Some("outside its windows".to_owned()),
        Hold::Turn { done: Time::MAX } => return "late, and another transfer of its group goes first".to_owned(),
        Hold::Turn { done } => {
            return format!("another transfer of its group goes first; planned to be done {}", at(done));
        }
    };
    let Some(why) = why else { return goal_in_words(outlook, direction, deadline, clock, now) };
    let then = outlook.expected().map(|time| format!(", expected {}", at(time))).unwrap_or_default();
    match outlook {
        Outlook::Overdue { .. } => format!("{why}; past the deadline of {by}{then}"),
        Outlook::Behind { .. } | Outlook::CannotFinish { .. } | Outlook::ProgramLimited { .. } => {
            format!("{why}; too slow so far to finish by {by}{then}")
        }
        Outlook::OnCourse { .. } => format!("{why}; on course{then}"),
        _ => format!("{why}{then}"),
    }
}

/// What there is to say where its goal rules.
fn goal_in_words(
    outlook: &Outlook,
    direction: Direction,
    deadline: Option<Timestamp>,
    clock: &Clock,
    now: &Zoned,
) -> String {
    let down = direction == Direction::Down;
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
        Outlook::Behind { expected, can_press } => {
            let ordinary = if down { "receiving as an ordinary flow" } else { "sending as an ordinary flow" };
            let policy = if *can_press { "pressing harder step by step" } else { ordinary };
            format!("behind: too slow so far to finish by {by}, {policy}{}", then(expected))
        }
        Outlook::Waiting { connected: false } => "waiting for the program's connection".to_owned(),
        Outlook::Waiting { connected: true } if down => "waiting: nothing comes in yet".to_owned(),
        Outlook::Waiting { connected: true } => "waiting: the program has nothing to send yet".to_owned(),
        Outlook::ProgramLimited { expected } => {
            let who = if down { "the sender" } else { "the program" };
            format!("{who} itself sends too slowly to finish by {by}{}", then(expected))
        }
        Outlook::Stalled { since } => format!("stalled: nothing has got through since {}", at(*since)),
        Outlook::Overdue { expected } => {
            format!("past the deadline of {by}, going on as an ordinary flow{}", then(expected))
        }
        Outlook::Done if down => "all received".to_owned(),
        Outlook::Done => "all sent".to_owned(),
        Outlook::SizeExceeded { by } => format!("{} more than announced", size::show(*by)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The sentences say what is known and no more: "expected" where there is a time, the network's name only where it
    /// is to blame.
    #[test]
    fn each_outlook_has_a_sentence_of_its_own() {
        let clock = Clock::start();
        let now = Zoned::now();
        let at = |seconds: u64| Time::ZERO + Duration::from_secs(seconds);
        let deadline = clock.wall(at(100));
        let say = |outlook: Outlook| phrase(&outlook, Hold::None, Direction::Up, Some(deadline), &clock, &now);
        let say_down = |outlook: Outlook| phrase(&outlook, Hold::None, Direction::Down, Some(deadline), &clock, &now);
        let (by, later) = (when::show(deadline, &now), when::show(clock.wall(at(130)), &now));
        let behind = |expected, can_press| say(Outlook::Behind { expected, can_press });
        for (sentence, expected) in [
            (
                behind(Some(at(130)), true),
                format!("behind: too slow so far to finish by {by}, pressing harder step by step; expected {later}"),
            ),
            (behind(None, false), format!("behind: too slow so far to finish by {by}, sending as an ordinary flow")),
            (say(Outlook::Waiting { connected: false }), "waiting for the program's connection".to_owned()),
            (say(Outlook::Waiting { connected: true }), "waiting: the program has nothing to send yet".to_owned()),
            (
                say(Outlook::ProgramLimited { expected: None }),
                format!("the program itself sends too slowly to finish by {by}"),
            ),
            (
                say(Outlook::CannotFinish { expected: at(130), at_ceiling_rate: 1.0 }),
                format!("cannot finish by {by} at what this network gives now; expected {later}"),
            ),
            (say(Outlook::OnCourse { expected: at(130) }), format!("on course, expected {later}")),
            (
                say_down(Outlook::Behind { expected: None, can_press: false }),
                format!("behind: too slow so far to finish by {by}, receiving as an ordinary flow"),
            ),
            (say_down(Outlook::Waiting { connected: true }), "waiting: nothing comes in yet".to_owned()),
            (
                say_down(Outlook::ProgramLimited { expected: None }),
                format!("the sender itself sends too slowly to finish by {by}"),
            ),
            (say_down(Outlook::Done), "all received".to_owned()),
        ] {
            assert_eq!(sentence, expected);
        }
        let opens = when::show(clock.wall(at(50)), &now);
        let closed = |opens| move |outlook: Outlook| (outlook, Hold::Closed { opens });
        let (until, for_good) = (closed(Some(at(50))), closed(None));
        for ((outlook, hold), expected) in [
            (
                until(Outlook::OnCourse { expected: at(130) }),
                format!("outside its window until {opens}; on course, expected {later}"),
            ),
            (until(Outlook::TooEarly), format!("outside its window until {opens}")),
            (for_good(Outlook::Overdue { expected: None }), format!("outside its windows; past the deadline of {by}")),
            (
                until(Outlook::Behind { expected: None, can_press: true }),
                format!("outside its window until {opens}; too slow so far to finish by {by}"),
            ),
            (until(Outlook::Done), "all sent".to_owned()),
            (
                (Outlook::TooEarly, Hold::Turn { done: at(130) }),
                format!("another transfer of its group goes first; planned to be done {later}"),
            ),
        ] {
            assert_eq!(phrase(&outlook, hold, Direction::Up, Some(deadline), &clock, &now), expected);
        }
    }
}
