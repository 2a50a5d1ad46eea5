// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened in one `run`: everything that screen, summary and report tell.

use std::{collections::BTreeMap, time::Duration};

use lowtide_deadline::{Basis, Decision, Hold, Outlook, Time};
use lowtide_kernel::{Direction, Snapshot, Status, Totals};

use super::{
    control,
    goals::{Goals, Open},
    phrases,
};

/// The rate that people see is the mean over so long.
const RATE_WINDOW: Duration = Duration::from_secs(2);
/// Rows of the series; from there on every second one is dropped and the spacing doubles.
const SERIES_LIMIT: usize = 20_000;
/// Changes by hand that are kept, and statements on the outlook, of which PROGRAM can cause any number.
const KEPT: usize = 1000;
/// Received bytes dominate from here on.
const DOWNLOAD_FLOOR: u64 = 1_000_000;
/// A group that moved nothing for so long may have handed its work to another process.
const SILENCE: Duration = Duration::from_secs(10);

/// One row of the report's series. It holds nothing that grows with the number of sockets: PROGRAM says how many there
/// are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) now: Time,
    pub(super) rate: f64,
    pub(super) status: RowStatus,
    pub(super) goals: Open,
}

/// What a row keeps of a [`Status`].
#[derive(Debug, Clone, Copy)]
pub(super) struct RowStatus {
    pub(super) snapshot: Snapshot,
    pub(super) decision: Decision,
}

/// A statement on the outlook, when it was first made.
#[derive(Debug, Clone)]
pub(super) struct Announcement {
    pub(super) now: Time,
    pub(super) outlook: Outlook,
    pub(super) hold: Hold,
}

#[derive(Debug, Default)]
pub(super) struct RunRecord {
    /// What is governed, and what the goal is about.
    governed: Direction,
    about: Direction,
    size: Option<u64>,
    pub(super) rows: Vec<Row>,
    spacing: Duration,
    recent: Vec<(Time, u64)>,
    pub(super) latest: Option<Status>,
    pub(super) announcements: Vec<Announcement>,
    /// When the last announced byte was acknowledged, or received.
    pub(super) completed: Option<Time>,
    /// When bytes were last acknowledged, or received.
    pub(super) last_progress: Option<Time>,
    pub(super) own_law_sockets: u32,
    /// How long the weight rested on what, while there was a rate to aim for.
    pub(super) bases: BTreeMap<&'static str, Duration>,
    pub(super) goals: Goals,
    /// What was changed by hand while it ran.
    pub(super) changes: Vec<(Time, String)>,
}

impl RunRecord {
    pub(super) fn new(governed: Direction, about: Direction, size: Option<u64>) -> RunRecord {
        RunRecord { governed, about, size, ..RunRecord::default() }
    }

    /// The goal is about what goes this way from now on.
    pub(super) fn is_about(&mut self, direction: Direction) {
        self.about = direction;
    }

    /// The way that the transfer goes.
    pub(super) fn way(&self) -> Direction {
        self.totals().way(self.about)
    }

    /// Another size at which it is complete.
    pub(super) fn expect(&mut self, size: u64) {
        self.size = Some(size);
        if self.moved() < size {
            self.completed = None;
        }
    }

    /// No number of bytes says any more that it is complete.
    pub(super) fn expect_any(&mut self) {
        (self.size, self.completed) = (None, None);
    }

    /// Keeps what was changed by hand.
    pub(super) fn change(&mut self, now: Time, what: String) {
        keep(&mut self.changes, (now, what));
    }

    /// Takes a status in; true if the outlook is of another kind than before.
    pub(super) fn observe(&mut self, status: &Status) -> bool {
        let now = status.now;
        let moved = status.snapshot.totals.moved(self.about);
        if moved > self.moved() {
            self.last_progress = Some(now);
        }
        if self.completed.is_none() && self.size.is_some_and(|size| moved >= size) {
            self.completed = Some(now);
        }
        self.own_law_sockets = self.own_law_sockets.max(status.snapshot.own_law);
        self.goals.record(now, &status.goals);
        self.recent.push((now, moved));
        while self.recent.len() > 2 && now.since(self.recent[1].0) >= RATE_WINDOW {
            self.recent.remove(0);
        }
        self.add_basis(now);
        self.latest = Some(status.clone());
        self.add_row(status);

        let Decision { outlook, hold, .. } = status.decision;
        let kind = |outlook: &Outlook, hold: Hold| (phrases::kind(outlook), phrases::held(hold));
        let said = self.announcements.last().map(|last| kind(&last.outlook, last.hold));
        let news = said != Some(kind(&outlook, hold)) && (outlook != Outlook::TooEarly || hold != Hold::None);
        if news {
            keep(&mut self.announcements, Announcement { now, outlook, hold });
        }
        news
    }

    /// What the last status rested on held until now.
    fn add_basis(&mut self, now: Time) {
        let Some(last) = self.latest.as_ref().filter(|last| last.decision.target_rate.is_some()) else { return };
        *self.bases.entry(control::basis(last.decision.basis)).or_default() += now.since(last.now);
    }

    /// The part of the time, from 0 to 1, in which a model ruled.
    pub(super) fn model_part(&self) -> f64 {
        let all: Duration = self.bases.values().sum();
        let model = self.bases.get(control::basis(Basis::Model)).copied().unwrap_or_default();
        model.as_secs_f64() / all.as_secs_f64().max(1e-3)
    }

    fn add_row(&mut self, status: &Status) {
        let due = self.rows.last().is_none_or(|row| status.now.since(row.now) >= self.spacing);
        if !due {
            return;
        }
        let kept = RowStatus { snapshot: status.snapshot, decision: status.decision };
        self.rows.push(Row { now: status.now, rate: self.rate(), status: kept, goals: self.goals.open() });
        if self.rows.len() >= SERIES_LIMIT {
            let mut keep = false;
            self.rows.retain(|_| {
                keep = !keep;
                keep
            });
            let span = status.now.since(self.rows[0].now);
            self.spacing = span / self.rows.len() as u32;
        }
    }

    /// Bytes per second acknowledged, or received, lately.
    pub(super) fn rate(&self) -> f64 {
        match (self.recent.first(), self.recent.last()) {
            (Some(first), Some(last)) if last.0 > first.0 => {
                (last.1 - first.1) as f64 / last.0.since(first.0).as_secs_f64()
            }
            _ => 0.0,
        }
    }

    pub(super) fn totals(&self) -> Totals {
        self.latest.as_ref().map(|status| status.snapshot.totals).unwrap_or_default()
    }

    /// Payload bytes of the transfer so far, in its direction.
    pub(super) fn moved(&self) -> u64 {
        self.totals().moved(self.about)
    }

    /// More comes in than goes out: a download, which is not governed here.
    pub(super) fn is_download(&self) -> bool {
        let totals = self.totals();
        self.governed == Direction::Up && totals.received > DOWNLOAD_FLOOR.max(totals.acknowledged)
    }

    /// No byte has passed through the group, in or out.
    pub(super) fn moved_nothing(&self) -> bool {
        let totals = self.totals();
        totals.acknowledged + totals.received + totals.udp_sent + totals.udp_received == 0
    }

    /// The group has run for a while and moved nothing.
    pub(super) fn is_silent(&self) -> bool {
        self.moved_nothing() && self.latest.as_ref().is_some_and(|status| status.now >= Time::ZERO + SILENCE)
    }

    /// Least and greatest weight applied.
    pub(super) fn weights(&self) -> Option<(f64, f64)> {
        let weights = self.rows.iter().map(|row| row.status.decision.weight.get());
        weights.fold(None, |range, w| match range {
            None => Some((w, w)),
            Some((least, most)) => Some((w.min(least), w.max(most))),
        })
    }
}

/// Of very many the last ones.
fn keep<T>(list: &mut Vec<T>, new: T) {
    if list.len() == KEPT {
        list.remove(0);
    }
    list.push(new);
}

#[cfg(test)]
mod tests {
    use lowtide_deadline::{Bounds, FallbackReason};
    use lowtide_kernel::SocketGoal;

    use super::*;

    fn after(seconds: u64, totals: Totals) -> Status {
        let decision = Decision {
            weight: Bounds::default().min(),
            target_rate: None,
            achieved_rate: 0.0,
            updated: false,
            limited: false,
            interval: Duration::from_secs(10),
            basis: Basis::Feedback,
            price_ratio: 1.0,
            outlook: Outlook::NoDeadline { expected: None },
            hold: Hold::None,
            most: None,
        };
        let snapshot = Snapshot { totals, ..Snapshot::default() };
        Status {
            now: Time::ZERO + Duration::from_secs(seconds),
            snapshot,
            decision,
            loss_price: None,
            goals: Vec::new(),
        }
    }

    #[test]
    fn a_group_that_moves_no_bytes_is_recognised_after_a_while() {
        let mut record = RunRecord::new(Direction::Up, Direction::Up, None);
        record.observe(&after(9, Totals::default()));
        assert!(!record.is_silent());
        record.observe(&after(10, Totals::default()));
        assert!(record.is_silent());
        record.observe(&after(31, Totals { udp_sent: 1, ..Totals::default() }));
        assert!(!record.is_silent(), "over UDP it does");
    }

    #[test]
    fn a_download_is_more_in_than_out() {
        let mut record = RunRecord::new(Direction::Up, Direction::Up, None);
        record.observe(&after(1, Totals { received: 900_000, ..Totals::default() }));
        assert!(!record.is_download(), "the answers of a talkative server");
        record.observe(&after(2, Totals { received: 9_000_000, acknowledged: 1_000, ..Totals::default() }));
        assert!(record.is_download());
        (record.governed, record.about) = (Direction::Both, Direction::Both);
        assert!(!record.is_download() && record.moved() == 9_000_000, "it is governed");
        assert_eq!(record.way(), Direction::Down);
        (record.governed, record.about) = (Direction::Up, Direction::Up);
        record.observe(&after(3, Totals { received: 9_000_000, acknowledged: 10_000_000, ..Totals::default() }));
        assert!(!record.is_download());
    }

    #[test]
    fn bases_are_added_up_while_there_is_a_target() {
        let mut record = RunRecord::new(Direction::Up, Direction::Up, None);
        for (at, basis, target_rate) in [
            (0, Basis::Fallback(FallbackReason::NoPrice), Some(1e6)),
            (2, Basis::Model, Some(1e6)),
            (8, Basis::Model, None),
            (20, Basis::Feedback, None),
        ] {
            let mut status = after(at, Totals::default());
            (status.decision.basis, status.decision.target_rate) = (basis, target_rate);
            record.observe(&status);
        }
        let seconds: Vec<_> = record.bases.iter().map(|(basis, time)| (*basis, time.as_secs())).collect();
        assert_eq!(seconds, [("model", 6), ("no_price", 2)]);
        assert_eq!(record.model_part(), 0.75);
    }

    #[test]
    fn rows_count_goals_and_do_not_keep_them() {
        fn owns_nothing<T: Copy>(_rows: &[T]) {}
        let mut record = RunRecord::new(Direction::Up, Direction::Up, None);
        let goal = |id| SocketGoal { id, serial: 1, size: 100, deadline: Time::MAX, ..SocketGoal::default() };
        record.observe(&Status { goals: (1..=4096).map(goal).collect(), ..after(1, Totals::default()) });
        record.observe(&after(2, Totals::default()));
        owns_nothing(&record.rows);
        let goals: Vec<_> = record.rows.iter().map(|row| row.goals).collect();
        assert_eq!(goals, [Open { number: 4096, behind: 0 }, Open::default()]);
    }

    #[test]
    fn of_outlooks_that_never_rest_the_last_ones_are_kept() {
        let mut record = RunRecord::new(Direction::Up, Direction::Up, None);
        for at in 0..1100 {
            let mut status = after(at, Totals::default());
            if at % 2 == 1 {
                status.decision.outlook = Outlook::Waiting { connected: false };
            }
            assert!(record.observe(&status));
        }
        let seconds: Vec<_> = record.announcements.iter().map(|said| said.now.as_secs_f64()).collect();
        assert_eq!((seconds.len(), seconds[0], seconds[999]), (1000, 100.0, 1099.0));
    }

    #[test]
    fn the_last_announced_byte_completes_the_transfer() {
        let mut record = RunRecord::new(Direction::Up, Direction::Up, Some(100));
        record.observe(&after(1, Totals { acknowledged: 99, ..Totals::default() }));
        assert_eq!(record.completed, None);
        record.observe(&after(2, Totals { acknowledged: 100, ..Totals::default() }));
        record.observe(&after(3, Totals { acknowledged: 120, ..Totals::default() }));
        assert_eq!(record.completed, Some(Time::ZERO + Duration::from_secs(2)));
        assert_eq!(record.last_progress, Some(Time::ZERO + Duration::from_secs(3)));
    }
}
