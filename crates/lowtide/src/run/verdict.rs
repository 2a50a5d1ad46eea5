// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of a transfer, by the bytes that passed through its group.

use jiff::{SignedDuration, Timestamp};
use lowtide_deadline::Time;
use lowtide_kernel::Exit;

use crate::{size, spans};

/// Headers, compression and a tree that changes: an announced size is reached where so much of it was acknowledged. A
/// transfer that exceeds it by as much is [told so](lowtide_deadline::Outlook::SizeExceeded).
const REACHED: f64 = 0.98;
/// A group through which less than this part of the announced bytes went did something else than the transfer.
const LITTLE: f64 = 0.01;
/// So many bytes may go another way beside a transfer: names looked up, handshakes. More of them are the transfer.
const FEW: u64 = 100_000;
/// Where less than this part of all bytes seen was governed, most of the transfer went another way.
const MOST: f64 = 0.5;

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// By its deadline.
    Met,
    /// After its deadline.
    Missed,
    /// Before its deadline, with fewer bytes than announced.
    EndedEarly,
    /// Nothing, or too little, passed through the group: what happened to the transfer is not known.
    NotGoverned,
}

impl Outcome {
    /// As the report names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Outcome::Met => "met",
            Outcome::Missed => "missed",
            Outcome::EndedEarly => "ended-early",
            Outcome::NotGoverned => "not-governed",
        }
    }
}

/// What is known at the end. All times are those of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Verdict {
    /// `None`: there was no deadline, and nothing else to say.
    pub(super) outcome: Option<Outcome>,
    /// The governed bytes as part of those announced, or of those seen where that is more; 0 where neither is known.
    pub(super) governed_fraction: f64,
    seen: Seen,
    done: Option<Timestamp>,
}

/// What was seen of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// Bytes announced, or expected by what the job sent before.
    pub(super) size: Option<u64>,
    /// The size is a guess: PROGRAM's success says that all is sent, however much that was.
    pub(super) guessed: bool,
    /// Bytes acknowledged on governed connections.
    pub(super) governed: u64,
    /// Bytes that went another way: over UDP, or received by a download.
    pub(super) ungoverned: u64,
    /// PROGRAM's status was 0.
    pub(super) succeeded: bool,
    /// When the announced size was acknowledged.
    pub(super) completed: Option<Timestamp>,
    /// When the last byte was acknowledged; the end itself if there was none.
    pub(super) finished: Timestamp,
    pub(super) deadline: Option<Timestamp>,
}

impl Verdict {
    pub(super) fn new(seen: Seen) -> Verdict {
        let all = seen.governed + seen.ungoverned;
        let whole = all.max(seen.size.unwrap_or(0));
        let reached = |part: f64| seen.size.is_none_or(|size| seen.governed as f64 >= part * size as f64);
        let ended_well = seen.succeeded && (seen.guessed || reached(REACHED));
        // what else there was is not what was announced
        let announced = seen.size.is_some() && !seen.guessed && reached(REACHED);
        let elsewhere = !announced && (seen.governed as f64) < MOST * all as f64;
        let done = seen.completed.or(ended_well.then_some(seen.finished));
        let late = |time| seen.deadline.is_some_and(|deadline| time > deadline);
        let outcome = if seen.governed == 0 || elsewhere {
            Some(Outcome::NotGoverned)
        } else if done.is_some_and(late) || late(seen.finished) && done.is_none() {
            Some(Outcome::Missed)
        } else if done.is_some() {
            seen.deadline.map(|_| Outcome::Met)
        } else if !reached(LITTLE) {
            Some(Outcome::NotGoverned)
        } else if seen.size.is_some() {
            Some(Outcome::EndedEarly)
        } else {
            None
        };
        let governed_fraction = seen.governed as f64 / whole.max(1) as f64;
        Verdict { outcome, governed_fraction, seen, done }
    }

    /// For those who only know met and missed.
    pub(super) fn met(&self) -> Option<bool> {
        match self.outcome? {
            Outcome::Met => Some(true),
            Outcome::Missed => Some(false),
            Outcome::EndedEarly | Outcome::NotGoverned => None,
        }
    }

    /// What follows the figures in the summary; `ways`: what was seen to go another way.
    pub(super) fn phrase(&self, ways: &[String]) -> Option<String> {
        let Seen { size, governed, ungoverned, deadline, finished, .. } = self.seen;
        let spare = |end: Timestamp| deadline.map(|deadline| deadline.duration_since(end));
        let span = |length: SignedDuration| spans::show(length.unsigned_abs());
        Some(match self.outcome? {
            Outcome::Met => format!("done {} before the deadline", span(spare(self.done?)?)),
            Outcome::Missed => match self.done {
                Some(done) => format!("done {} after the deadline", span(spare(done)?)),
                None => format!("not done; ended {} after the deadline", span(spare(finished)?)),
            },
            Outcome::EndedEarly => {
                let before = spare(finished).filter(|spare| *spare > SignedDuration::ZERO).map(span);
                let before = before.map(|spare| format!(", {spare} before the deadline")).unwrap_or_default();
                format!("ended after {} of {}{before}", size::show(governed), size::show(size?))
            }
            Outcome::NotGoverned => {
                let of = size.map(|size| format!(" of the {} announced", size::show(size))).unwrap_or_default();
                let met = deadline.map(|_| "whether the deadline was met is not known");
                let why = "the program may hand its work to a daemon or to a connection that was open before";
                let rest: Vec<_> = met.into_iter().chain((ungoverned <= FEW).then_some(why)).collect();
                let rest = if rest.is_empty() { String::new() } else { format!("; {}", rest.join(": ")) };
                let passed = if governed == 0 { "no bytes".to_owned() } else { size::show(governed) };
                let ways = if ways.is_empty() { String::new() } else { format!(" ({})", ways.join(", ")) };
                format!("not governed: {passed}{of} passed through governed connections{ways}{rest}")
            }
        })
    }
}

/// How it all ended.
pub(super) struct Ending {
    pub(super) exit: Exit,
    /// When the last byte was acknowledged, or received; the end itself if there was none.
    pub(super) finished: Time,
    /// TCP sockets that PROGRAM inherited, opened outside its group.
    pub(super) inherited: usize,
    pub(super) verdict: Verdict,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    /// 100 MB announced, due after 60 s, of which all have been acknowledged after 40.
    fn seen() -> Seen {
        Seen {
            size: Some(100_000_000),
            guessed: false,
            governed: 100_000_000,
            ungoverned: 0,
            succeeded: true,
            completed: Some(at(40)),
            finished: at(40),
            deadline: Some(at(60)),
        }
    }

    #[test]
    fn a_verdict_is_about_bytes_seen() {
        let part = |governed| Seen { governed, completed: None, ..seen() };
        let (met, missed, early, not) = (Outcome::Met, Outcome::Missed, Outcome::EndedEarly, Outcome::NotGoverned);
        for (what, seen, outcome, fraction) in [
            ("all by the deadline", seen(), Some(met), 1.0),
            ("all, then failed", Seen { succeeded: false, ..seen() }, Some(met), 1.0),
            ("all, too late", Seen { completed: Some(at(61)), finished: at(61), ..seen() }, Some(missed), 1.0),
            ("more went on after the announced size", Seen { finished: at(90), ..seen() }, Some(met), 1.0),
            ("a little less than announced", part(98_500_000), Some(met), 0.985),
            ("the same, failed", Seen { succeeded: false, ..part(98_500_000) }, Some(early), 0.985),
            ("an incremental of an announced size", part(11_000_000), Some(early), 0.11),
            ("an incremental of a guessed size", Seen { guessed: true, ..part(11_000_000) }, Some(met), 0.11),
            ("ended with less past the deadline", Seen { finished: at(70), ..part(80_000_000) }, Some(missed), 0.8),
            ("a trickle past the deadline", Seen { finished: at(70), ..part(100) }, Some(missed), 1e-6),
            ("over a connection of an ssh master", part(0), Some(not), 0.0),
            ("a handshake alone", part(132_000), Some(not), 0.001_32),
            ("mostly over QUIC", Seen { ungoverned: 60_000_000, ..part(40_000_000) }, Some(not), 0.4),
            ("of a guessed size", Seen { ungoverned: 300_000_000, guessed: true, ..seen() }, Some(not), 0.25),
            ("all, and a larger download", Seen { ungoverned: 300_000_000, ..seen() }, Some(met), 0.25),
            (
                "a larger download, no size",
                Seen { ungoverned: 9, deadline: None, size: None, ..part(5) },
                Some(not),
                5.0 / 14.0,
            ),
            ("a download", Seen { ungoverned: 90_000_000, ..part(2_000_000) }, Some(not), 0.02),
            ("no deadline", Seen { deadline: None, ..seen() }, None, 1.0),
            ("no deadline, less", Seen { deadline: None, ..part(50_000_000) }, Some(early), 0.5),
            ("no deadline, no size", Seen { deadline: None, size: None, ..part(5) }, None, 1.0),
            ("nothing at all", Seen { deadline: None, size: None, ..part(0) }, Some(not), 0.0),
        ] {
            let verdict = Verdict::new(seen);
            assert_eq!(verdict.outcome, outcome, "{what}");
            assert!((verdict.governed_fraction - fraction).abs() < 1e-9, "{what}: {}", verdict.governed_fraction);
        }
    }

    #[test]
    fn the_last_two_say_nothing_of_the_deadline() {
        let met = |governed, finished| Verdict::new(Seen { governed, completed: None, finished, ..seen() }).met();
        assert_eq!(met(100_000_000, at(40)), Some(true));
        assert_eq!(met(100_000_000, at(70)), Some(false));
        assert_eq!((met(50_000_000, at(40)), met(0, at(40))), (None, None));
    }

    #[test]
    fn each_has_a_sentence() {
        let ways = |seen: &Seen| if seen.ungoverned > 0 { vec!["a way".to_owned()] } else { Vec::new() };
        let phrase = |seen| Verdict::new(seen).phrase(&ways(&seen)).unwrap_or_default();
        let part = |governed| Seen { governed, completed: None, ..seen() };
        for (seen, sentence) in [
            (seen(), "done 20 s before the deadline"),
            (Seen { completed: Some(at(3660)), finished: at(3660), ..seen() }, "done 1 h after the deadline"),
            (Seen { finished: at(75), ..part(50) }, "not done; ended 15 s after the deadline"),
            (part(50_000_000), "ended after 50.00 MB of 100.00 MB, 20 s before the deadline"),
            (Seen { deadline: None, ..part(50_000_000) }, "ended after 50.00 MB of 100.00 MB"),
            (
                part(0),
                "not governed: no bytes of the 100.00 MB announced passed through governed connections; whether the \
                 deadline was met is not known: the program may hand its work to a daemon or to a connection that \
                 was open before",
            ),
            (
                Seen { ungoverned: 300, deadline: None, size: None, ..part(0) },
                "not governed: no bytes passed through governed connections (a way); the program may hand its work \
                 to a daemon or to a connection that was open before",
            ),
            (
                Seen { ungoverned: 90_000_000, ..part(2_000_000) },
                "not governed: 2.00 MB of the 100.00 MB announced passed through governed connections (a way); \
                 whether the deadline was met is not known",
            ),
            (
                Seen { ungoverned: 90_000_000, deadline: None, size: None, ..part(0) },
                "not governed: no bytes passed through governed connections (a way)",
            ),
            (Seen { deadline: None, ..seen() }, ""),
        ] {
            assert_eq!(phrase(seen), sentence);
        }
    }
}
