// SPDX-License-Identifier: MIT OR Apache-2.0
//! The segments that are sent and not yet cumulatively acknowledged, and what became of each.
//!
//! They lie in a ring in the order of their sequence numbers. A segment's number (`id`) is its place in the stream of
//! segments, so it stays valid while the ring moves on. Everything is amortised O(1) per segment, except for the search
//! for the end of a SACK block and the order of retransmissions, which are O(log n).

use super::{ranges::Ranges, rate::Snapshot};
use lowtide_net::Time;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// What became of a segment's latest transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is on its way, as far as is known.
    Flying,
    /// It is taken for lost and waits to be sent again.
    Lost,
    /// The receiver holds it.
    Sacked,
}

/// A segment that is sent and not yet cumulatively acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) seq: u64,
    /// Payload bytes.
    pub(super) bytes: u32,
    /// It ends the stream, which takes a sequence number of its own.
    pub(super) fin: bool,
    pub(super) retransmitted: bool,
    pub(super) fate: Fate,
    /// When it was last sent.
    pub(super) sent: Time,
    pub(super) at_send: Snapshot,
}

impl Outstanding {
    /// Sequence numbers that it takes.
    pub(super) const fn len(&self) -> u64 {
        self.bytes as u64 + self.fin as u64
    }

    pub(super) const fn end(&self) -> u64 {
        self.seq + self.len()
    }
}

/// The sender's view of what is outstanding.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<Outstanding>,
    /// The id of the first segment in the ring.
    base: u64,
    una: u64,
    nxt: u64,
    /// What is SACKed above `una`.
    sacked: Ranges,
    sacked_segments: u64,
    in_flight: u64,
    lost: u64,
    /// Segments that are flying a second time.
    retransmitted_flying: u64,
    /// Length and snapshot of the segments found lost that have not been reported yet.
    newly_lost: Vec<(u64, Time, Snapshot)>,
    /// The ids of lost segments, lowest first, and of some that no longer are.
    lost_ids: BinaryHeap<Reverse<u64>>,
    /// No segment below this id is flying for the first time.
    first_original: u64,
    /// Retransmissions in the order of time, and some that are over.
    retransmissions: VecDeque<(u64, Time)>,
}

impl Scoreboard {
    /// The lowest sequence number that is not cumulatively acknowledged (`snd_una`).
    pub(super) const fn una(&self) -> u64 {
        self.una
    }

    /// The next sequence number to be sent (`snd_nxt`).
    pub(super) const fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Bytes in flight: sent, and neither delivered nor taken for lost (`pipe` of RFC 6675).
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Bytes that are taken for lost and not sent again yet.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Segments above `una` that the receiver holds.
    pub(super) const fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    /// Whether a retransmission is on its way.
    pub(super) const fn retransmission_flying(&self) -> bool {
        self.retransmitted_flying > 0
    }

    /// Segments outstanding.
    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The id of the last segment outstanding.
    pub(super) fn last(&self) -> Option<u64> {
        (self.base + self.segments.len() as u64).checked_sub(1).filter(|last| *last >= self.base)
    }

    pub(super) fn get(&self, id: u64) -> &Outstanding {
        &self.segments[(id - self.base) as usize]
    }

    /// A segment is sent for the first time.
    pub(super) fn send(&mut self, bytes: u32, fin: bool, now: Time, at_send: Snapshot) {
        let segment =
            Outstanding { seq: self.nxt, bytes, fin, retransmitted: false, fate: Fate::Flying, sent: now, at_send };
        self.nxt = segment.end();
        self.in_flight += segment.len();
        self.segments.push_back(segment);
    }

    /// A segment is sent again.
    pub(super) fn resend(&mut self, id: u64, now: Time, at_send: Snapshot) {
        let segment = &mut self.segments[(id - self.base) as usize];
        let len = segment.len();
        match segment.fate {
            Fate::Lost => {
                self.lost -= len;
                self.in_flight += len;
                self.retransmitted_flying += 1;
            }
            // A probe (TLP): still one copy in flight.
            Fate::Flying => self.retransmitted_flying += u64::from(!segment.retransmitted),
            Fate::Sacked => unreachable!("the receiver holds it"),
        }
        segment.fate = Fate::Flying;
        segment.retransmitted = true;
        segment.sent = now;
        segment.at_send = at_send;
        self.retransmissions.push_back((id, now));
    }

    /// Everything below `ack` has arrived. Calls `delivered` for each segment below, with the fate that it had.
    pub(super) fn acknowledge(&mut self, ack: u64, mut delivered: impl FnMut(&Outstanding)) {
        while self.segments.front().is_some_and(|segment| segment.end() <= ack) {
            let Some(segment) = self.segments.pop_front() else { break };
            self.base += 1;
            self.land(&segment);
            self.sacked_segments -= u64::from(segment.fate == Fate::Sacked);
            delivered(&segment);
        }
        self.una = self.una.max(ack);
        self.first_original = self.first_original.max(self.base);
        self.sacked.remove_below(self.una);
    }

    /// The receiver holds `[start, end)`. Calls `delivered` for each segment of it that was not known to be held, with
    /// the fate that it had.
    pub(super) fn sack(&mut self, start: u64, end: u64, mut delivered: impl FnMut(&Outstanding)) {
        let (start, end) = (start.max(self.una), end.min(self.nxt));
        if start >= end {
            return;
        }
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.insert(start, end, |low, high| {
            let mut index = self.index(low);
            while index < self.segments.len() && self.segments[index].seq < high {
                let before = self.segments[index].clone();
                debug_assert!(before.seq >= low && before.end() <= high && before.fate != Fate::Sacked);
                self.land(&before);
                self.sacked_segments += 1;
                self.segments[index].fate = Fate::Sacked;
                delivered(&before);
                index += 1;
            }
        });
        self.sacked = sacked;
    }

    /// A segment with this fate is neither flying nor lost any more.
    fn land(&mut self, segment: &Outstanding) {
        match segment.fate {
            Fate::Flying => {
                self.in_flight -= segment.len();
                self.retransmitted_flying -= u64::from(segment.retransmitted);
            }
            Fate::Lost => self.lost -= segment.len(),
            Fate::Sacked => {}
        }
    }

    /// The index in the ring of the segment that begins at `seq`. Most segments are full, so the place follows from the
    /// size of the first one.
    fn index(&self, seq: u64) -> usize {
        let Some(first) = self.segments.front() else { return 0 };
        let guess = ((seq - first.seq) / first.len().max(1)) as usize;
        match self.segments.get(guess) {
            Some(segment) if segment.seq == seq => guess,
            _ => self.segments.partition_point(|segment| segment.seq < seq),
        }
    }

    /// A flying segment is taken for lost.
    pub(super) fn mark_lost(&mut self, id: u64) {
        let segment = &mut self.segments[(id - self.base) as usize];
        debug_assert_eq!(segment.fate, Fate::Flying);
        self.in_flight -= segment.len();
        self.lost += segment.len();
        self.retransmitted_flying -= u64::from(segment.retransmitted);
        segment.fate = Fate::Lost;
        self.newly_lost.push((segment.len(), segment.sent, segment.at_send));
        self.lost_ids.push(Reverse(id));
    }

    /// The segments found lost since the last call: their lengths, when each was sent, and what was known then.
    pub(super) fn take_newly_lost(&mut self) -> impl Iterator<Item = (u64, Time, Snapshot)> + '_ {
        self.newly_lost.drain(..)
    }

    /// The flying segments for which `lost` holds are taken for lost. Returns their bytes.
    pub(super) fn mark_lost_where(&mut self, mut lost: impl FnMut(&Outstanding) -> bool) -> u64 {
        let before = self.lost;
        for id in self.base..self.base + self.segments.len() as u64 {
            let segment = self.get(id);
            if segment.fate == Fate::Flying && lost(segment) {
                self.mark_lost(id);
            }
        }
        self.lost - before
    }

    /// What was taken for lost and not sent again was only late.
    pub(super) fn forgive(&mut self) {
        for segment in self.segments.iter_mut().filter(|segment| segment.fate == Fate::Lost && !segment.retransmitted) {
            segment.fate = Fate::Flying;
            self.lost -= segment.len();
            self.in_flight += segment.len();
        }
        self.first_original = self.base;
    }

    /// The first segment that waits to be sent again.
    pub(super) fn next_lost(&mut self) -> Option<u64> {
        if self.lost == 0 {
            if !self.lost_ids.is_empty() {
                self.lost_ids.clear();
            }
            return None;
        }
        while let Some(&Reverse(id)) = self.lost_ids.peek() {
            if id >= self.base && self.get(id).fate == Fate::Lost {
                return Some(id);
            }
            self.lost_ids.pop();
        }
        unreachable!("lost bytes have a segment")
    }

    /// The segment that was sent first of those that fly for the first time.
    pub(super) fn oldest_original(&mut self) -> Option<u64> {
        let mut index = (self.first_original - self.base) as usize;
        while self.segments.get(index).is_some_and(|segment| segment.fate != Fate::Flying || segment.retransmitted) {
            index += 1;
        }
        self.first_original = self.base + index as u64;
        (index < self.segments.len()).then_some(self.first_original)
    }

    /// The retransmission that was sent first of those that are flying.
    pub(super) fn oldest_retransmission(&mut self) -> Option<u64> {
        while let Some(&(id, sent)) = self.retransmissions.front() {
            if id >= self.base {
                let segment = self.get(id);
                if segment.fate == Fate::Flying && segment.sent == sent {
                    return Some(id);
                }
            }
            self.retransmissions.pop_front();
        }
        None
    }

    /// Counts everything anew.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let sum = |fate| -> u64 { self.segments.iter().filter(|s| s.fate == fate).map(Outstanding::len).sum() };
        assert_eq!(self.in_flight, sum(Fate::Flying), "in flight");
        assert_eq!(self.lost, sum(Fate::Lost), "lost");
        assert_eq!(self.in_flight + self.lost + sum(Fate::Sacked), self.nxt - self.una, "all of it");
        let sacked = self.segments.iter().filter(|segment| segment.fate == Fate::Sacked).count();
        assert_eq!(self.sacked_segments, sacked as u64, "SACKed segments");
        let flying = |segment: &&Outstanding| segment.fate == Fate::Flying && segment.retransmitted;
        assert_eq!(self.retransmitted_flying, self.segments.iter().filter(flying).count() as u64, "retransmissions");
        for segment in &self.segments {
            assert_eq!(self.sacked.around(segment.seq).is_some(), segment.fate == Fate::Sacked);
        }
        assert_eq!(self.segments.front().map_or(self.nxt, |first| first.seq), self.una);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::rate::Rate, *};

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn snapshot() -> Snapshot {
        Rate::default().on_sent(Time::ZERO, 100, 0)
    }

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..segments).for_each(|ms| board.send(100, false, at(ms), snapshot()));
        board
    }

    #[test]
    fn losses_are_sent_again_in_order() {
        let mut board = board(6);
        [4, 1, 2].into_iter().for_each(|id| board.mark_lost(id));
        board.sack(200, 300, |segment| assert_eq!(segment.fate, Fate::Lost));
        assert_eq!((board.in_flight(), board.lost(), board.next_lost()), (300, 200, Some(1)));
        board.resend(1, at(10), snapshot());
        assert_eq!(board.next_lost(), Some(4));
        board.resend(4, at(11), snapshot());
        assert_eq!(board.next_lost(), None);
        board.check();
    }

    #[test]
    fn retransmissions_are_known_by_their_time() {
        let mut board = board(3);
        [0, 1].into_iter().for_each(|id| board.mark_lost(id));
        board.resend(0, at(10), snapshot());
        board.resend(1, at(15), snapshot());
        board.mark_lost(0);
        board.resend(0, at(20), snapshot());
        assert_eq!(board.oldest_retransmission(), Some(1));
        board.acknowledge(200, |_| {});
        assert_eq!(board.oldest_retransmission(), None);
        board.check();
    }

    #[test]
    fn what_is_forgiven_flies_again() {
        let mut board = board(4);
        (0..3).for_each(|id| board.mark_lost(id));
        board.resend(0, at(10), snapshot());
        assert_eq!(board.oldest_original(), Some(3));
        board.forgive();
        assert_eq!((board.oldest_original(), board.next_lost(), board.in_flight()), (Some(1), None, 400));
        board.check();
    }

    #[test]
    fn a_probe_is_still_one_copy_in_flight() {
        let mut board = board(2);
        board.resend(1, at(10), snapshot());
        assert_eq!((board.in_flight(), board.retransmission_flying()), (200, true));
        board.check();
        board.acknowledge(200, |_| {});
        assert_eq!((board.in_flight(), board.retransmission_flying()), (0, false));
        board.check();
    }

    #[test]
    fn a_block_is_found_among_segments_of_any_size() {
        let mut board = Scoreboard::default();
        for bytes in [7, 100, 1, 100, 100, 50] {
            board.send(bytes, false, at(0), snapshot());
        }
        let mut found = Vec::new();
        board.sack(107, 208, |segment| found.push(segment.seq));
        board.sack(7, 308, |segment| found.push(segment.seq));
        assert_eq!(found, [107, 108, 7, 208]);
        board.check();
    }
}
