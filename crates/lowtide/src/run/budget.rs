// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--group`: transfers of this machine that share one budget. Each asks the others, over their control sockets, what
//! they have to send and by when, makes the same schedule of it ([`lowtide_deadline::group`]), and takes its own
//! turn in it.
//!
//! There is no keeper. One that ends, or is killed, does not answer any more, and the others' next schedule is without
//! it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use lowtide_deadline::{
    Time, Turn,
    group::{self, Member},
};

use super::clock::Clock;
use crate::operate::{client::everybody, directory::Directory, protocol::Status};

/// Between two questions to the others.
const ASK: Duration = Duration::from_millis(500);

/// The others of a group, asked again and again as long as this value lives.
#[derive(Debug)]
pub(super) struct Peers {
    /// The group's name.
    pub(super) group: String,
    seen: Arc<Mutex<Vec<Status>>>,
    ends: Arc<AtomicBool>,
    /// The weight of the transfer whose turn was before this one's.
    pub(super) weight: Option<f64>,
}

impl Peers {
    /// Begins to ask. Signals should be blocked by now, as the thread inherits that.
    pub(super) fn ask(group: String, own: String) -> std::io::Result<Peers> {
        let (seen, ends) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let peers = Peers { group: group.clone(), seen: seen.clone(), ends: ends.clone(), weight: None };
        let ask = move || {
            while !ends.load(Ordering::SeqCst) {
                // who does not answer has no part in the schedule
                let all = Directory::usual().and_then(|directory| everybody(&directory));
                let (all, _silent) = all.unwrap_or_default();
                let of_the_group = |it: &Status| it.budget.as_ref() == Some(&group) && it.name != own;
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = all.into_iter().filter(of_the_group).collect();
                thread::sleep(ASK);
            }
        };
        thread::Builder::new().name("group".into()).spawn(ask)?;
        Ok(peers)
    }

    /// As the others were when they were last asked.
    pub(super) fn seen(&self) -> Vec<Status> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
    }
}

/// A transfer as its group sees it; `None`: it has no part in the schedule, as it is paused or has no deadline.
fn member(status: &Status, clock: &Clock, now: Time) -> Option<Member> {
    let (deadline, aim) = (clock.time_of(status.deadline?), clock.time_of(status.aim?));
    let idle = matches!(status.outlook.as_str(), "waiting" | "program_limited" | "stalled");
    let from = match status.hold.as_deref() {
        _ if idle => None,
        Some("window") => status.opens.map(|opens| clock.time_of(opens)),
        _ => Some(now),
    };
    let left = status.size_bytes?.saturating_sub(status.acknowledged_bytes);
    (!status.paused).then_some(Member { deadline, aim, left, from })
}

/// Its turn beside others; `None`: its own goal alone rules.
pub(super) fn turn(own: &Status, others: &[Status], clock: &Clock) -> Option<Turn> {
    let now = clock.now();
    // in one order everywhere, so that all make the same schedule of the same numbers; by the deadline, as this clock
    // cannot tell apart what was due before it began
    let mut all: Vec<_> = others.iter().chain([own]).collect();
    all.sort_by_key(|status| (status.deadline, &status.name));
    let (names, members): (Vec<_>, Vec<_>) =
        all.iter().filter_map(|status| Some((&status.name, member(status, clock, now)?))).unzip();
    let place = names.iter().position(|name| **name == own.name)?;
    group::turn(&members, place, now)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::operate::example;

    /// With so many bytes left, due in so many seconds.
    fn status(name: &str, clock: &Clock, bytes: u64, due: i64) -> Status {
        let deadline = clock.wall(clock.now()) + SignedDuration::from_secs(due);
        Status {
            name: name.into(),
            deadline: Some(deadline),
            aim: Some(deadline),
            size_bytes: Some(bytes + 7),
            acknowledged_bytes: 7,
            ..example()
        }
    }

    fn rate(own: &Status, others: &[&Status], clock: &Clock) -> Option<f64> {
        let others: Vec<_> = others.iter().map(|it| (*it).clone()).collect();
        turn(own, &others, clock).map(|turn| turn.rate)
    }

    #[test]
    fn who_is_due_first_sends_for_all() {
        let clock = Clock::start();
        let [a, b, c] = [("a", 20), ("b", 40), ("c", 60)].map(|(name, due)| status(name, &clock, 20_000_000, due));
        let first = rate(&a, &[&b, &c], &clock).unwrap();
        assert!((first / 1e6 - 1.0).abs() < 0.01, "{first}");
        assert_eq!(rate(&b, &[&a, &c], &clock), Some(0.0));
        assert_eq!(rate(&c, &[&b, &a], &clock), Some(0.0));
        // it is gone
        assert!(rate(&b, &[&c], &clock).unwrap() > 0.4e6);
        assert_eq!(rate(&c, &[], &clock), None, "nobody else: its own governor knows best");
    }

    #[test]
    fn who_cannot_send_keeps_nobody_waiting() {
        let clock = Clock::start();
        let [a, b] = [("a", 20), ("b", 40)].map(|(name, due)| status(name, &clock, 20_000_000, due));
        for idle in [
            Status { outlook: "waiting".into(), ..a.clone() },
            Status { paused: true, ..a.clone() },
            Status { deadline: None, aim: None, ..a.clone() },
            Status { acknowledged_bytes: 30_000_000, ..a.clone() },
            Status { hold: Some("window".into()), opens: None, ..a.clone() },
        ] {
            assert_eq!(rate(&b, &[&idle], &clock), None, "{idle:?}");
        }
        let later = clock.wall(clock.now()) + SignedDuration::from_secs(10);
        let closed = Status { hold: Some("window".into()), opens: Some(later), ..a };
        assert!(rate(&b, &[&closed], &clock).unwrap() > 0.0, "until its window opens");
        assert_eq!(rate(&closed, &[&b], &clock), Some(0.0));
    }

    #[test]
    fn who_is_late_lets_others_be_on_time() {
        let clock = Clock::start();
        let [late, later, b] =
            [("z", -20), ("y", -10), ("b", 40)].map(|(name, due)| status(name, &clock, 20_000_000, due));
        assert_eq!(rate(&late, &[&b], &clock), Some(0.0));
        assert_eq!(rate(&b, &[&late], &clock), None);
        assert_eq!(rate(&late, &[&later], &clock), None, "one of those that are late goes on");
        assert_eq!(rate(&later, &[&late], &clock), Some(0.0));
    }
}
