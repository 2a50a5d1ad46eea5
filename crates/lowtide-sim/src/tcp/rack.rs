// SPDX-License-Identifier: MIT OR Apache-2.0
//! RACK: loss detection by time (RFC 8985, section 6).
//!
//! Notable difference from the RFC: the timer is set for the first segment that may be found lost, not for the last.

use super::scoreboard::{Outstanding, Scoreboard};
use lowtide_net::Time;
use std::time::Duration;

/// SACKed segments from which on reordering is no longer assumed (RFC 5681: duplicate ACKs).
const DUP_THRESH: u64 = 3;
/// Recoveries without a DSACK after which the reordering window shrinks again (section 6.2, step 4).
const REO_WND_PERSIST: u32 = 16;

/// The segment that was sent last of those that arrived, and what is known of reordering.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// `RACK.xmit_ts` and `RACK.end_seq`.
    newest: (Time, u64),
    /// `RACK.rtt`, nanoseconds; 0: nothing has arrived yet.
    rtt: u64,
    /// `RACK.fack`: the highest sequence number delivered.
    fack: u64,
    reordering_seen: bool,
    reo_wnd_mult: u64,
    reo_wnd_persist: u32,
    dsack_round: Option<u64>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            newest: (Time::ZERO, 0),
            rtt: 0,
            fack: 0,
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: REO_WND_PERSIST,
            dsack_round: None,
        }
    }
}

impl Rack {
    /// A segment was delivered (steps 2 and 3). `echo`: the ACK's timestamp echo, if the ACK covers the segment
    /// cumulatively; it tells a retransmission from its original. The echo of a SACK is an older one and tells nothing.
    pub(super) fn on_delivered(&mut self, now: Time, segment: &Outstanding, echo: Option<Time>, min_rtt: Option<u64>) {
        let rtt = now.as_nanos() - segment.sent.as_nanos();
        if segment.retransmitted {
            let of_original =
                echo.is_some_and(|echo| echo < segment.sent) || min_rtt.is_some_and(|min_rtt| rtt < min_rtt);
            if of_original {
                return;
            }
        } else if segment.end() < self.fack {
            self.reordering_seen = true;
        }
        self.fack = self.fack.max(segment.end());
        if (segment.sent, segment.end()) > self.newest {
            self.newest = (segment.sent, segment.end());
            self.rtt = rtt.max(1);
        }
    }

    /// A retransmission has proved needless.
    pub(super) const fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// An ACK arrived, with or without a DSACK.
    pub(super) fn on_ack(&mut self, una: u64, nxt: u64, dsack: bool) {
        if self.dsack_round.is_some_and(|round| una >= round) {
            self.dsack_round = None;
        }
        if dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = REO_WND_PERSIST;
        }
    }

    /// A recovery is over.
    pub(super) const fn on_recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// The reordering window in nanoseconds (step 4).
    pub(super) fn reo_wnd(&self, min_rtt: Option<u64>, srtt: u64, recovering: bool, sacked_segments: u64) -> u64 {
        if !self.reordering_seen && (recovering || sacked_segments >= DUP_THRESH) {
            return 0;
        }
        (self.reo_wnd_mult * (min_rtt.unwrap_or(0) / 4)).min(srtt)
    }

    /// Marks what is lost (step 5). Returns the bytes, and when to look again.
    pub(super) fn detect_loss(&self, now: Time, reo_wnd: u64, board: &mut Scoreboard) -> (u64, Option<Time>) {
        let before = board.lost();
        let timers = [
            self.detect_in(now, reo_wnd, board, Scoreboard::oldest_original),
            self.detect_in(now, reo_wnd, board, Scoreboard::oldest_retransmission),
        ];
        (board.lost() - before, timers.into_iter().flatten().min())
    }

    fn detect_in(
        &self,
        now: Time,
        reo_wnd: u64,
        board: &mut Scoreboard,
        oldest: impl Fn(&mut Scoreboard) -> Option<u64>,
    ) -> Option<Time> {
        while let Some(id) = oldest(board) {
            let segment = board.get(id);
            if (segment.sent, segment.end()) >= self.newest {
                return None;
            }
            let due = self.due(segment, reo_wnd);
            if due > now {
                return Some(due);
            }
            board.mark_lost(id);
        }
        None
    }

    /// The retransmission timer fired: all is lost but what was sent only just now (section 6.3). Returns the bytes.
    pub(super) fn mark_losses_on_rto(&self, now: Time, reo_wnd: u64, board: &mut Scoreboard) -> u64 {
        let una = board.una();
        board.mark_lost_where(|segment| segment.seq == una || self.rtt == 0 || self.due(segment, reo_wnd) <= now)
    }

    /// When a segment is lost if it has not been delivered until then.
    fn due(&self, segment: &Outstanding, reo_wnd: u64) -> Time {
        segment.sent + Duration::from_nanos(self.rtt + reo_wnd)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::rate::Rate, *};

    const MS: u64 = 1_000_000;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * MS)
    }

    /// Segments of 100 bytes, sent at the given times.
    fn sent_at(millis: &[u64]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for &ms in millis {
            board.send(100, false, at(ms), Rate::default().on_sent(at(ms), 100, 0));
        }
        board
    }

    fn sack(rack: &mut Rack, board: &mut Scoreboard, now: u64, segments: std::ops::Range<u64>) {
        board.sack(segments.start * 100, segments.end * 100, |segment| {
            rack.on_delivered(at(now), segment, None, Some(40 * MS));
        });
        board.check();
    }

    #[test]
    fn three_sacks_find_a_loss_at_once_and_fewer_after_a_quarter_of_the_rtt() {
        let (mut rack, mut board) = (Rack::default(), sent_at(&[0, 1, 2, 3]));
        sack(&mut rack, &mut board, 41, 1..2);
        let reo_wnd = rack.reo_wnd(Some(40 * MS), 40 * MS, false, board.sacked_segments());
        assert_eq!(reo_wnd, 10 * MS);
        assert_eq!(rack.detect_loss(at(41), reo_wnd, &mut board), (0, Some(at(50))));
        sack(&mut rack, &mut board, 43, 2..4);
        let reo_wnd = rack.reo_wnd(Some(40 * MS), 40 * MS, false, board.sacked_segments());
        assert_eq!(reo_wnd, 0);
        assert_eq!(rack.detect_loss(at(43), reo_wnd, &mut board), (100, None));
        assert_eq!(board.next_lost(), Some(0));
    }

    #[test]
    fn a_lost_retransmission_is_found_when_a_later_one_arrives() {
        // RFC 8985, section 3.1: the first of three is lost, its retransmission too; a segment sent after it tells.
        let (mut rack, mut board) = (Rack::default(), sent_at(&[0, 0, 0, 0, 1]));
        sack(&mut rack, &mut board, 40, 1..4);
        assert_eq!(rack.detect_loss(at(40), 0, &mut board), (100, None));
        board.resend(0, at(40), Rate::default().on_sent(at(40), 100, 0));
        board.send(100, false, at(41), Rate::default().on_sent(at(41), 100, 0));
        sack(&mut rack, &mut board, 41, 4..5);
        assert_eq!(rack.detect_loss(at(41), 0, &mut board), (0, None), "sent before the retransmission");
        sack(&mut rack, &mut board, 81, 5..6);
        assert_eq!(rack.detect_loss(at(81), 0, &mut board), (100, None));
        assert_eq!(board.in_flight(), 0);
    }

    #[test]
    fn segments_of_one_burst_are_told_apart_by_their_sequence_numbers() {
        let (mut rack, mut board) = (Rack::default(), sent_at(&[0, 0, 0, 0]));
        sack(&mut rack, &mut board, 40, 2..3);
        assert_eq!(rack.detect_loss(at(40), 0, &mut board), (200, None), "the last one was sent after the SACKed one");
    }

    #[test]
    fn reordering_and_dsacks_widen_the_window_for_sixteen_recoveries() {
        let (mut rack, mut board) = (Rack::default(), sent_at(&[0, 0, 0]));
        sack(&mut rack, &mut board, 40, 1..2);
        assert_eq!(rack.reo_wnd(Some(40 * MS), 40 * MS, true, 1), 0);
        sack(&mut rack, &mut board, 41, 0..1);
        assert_eq!(rack.reo_wnd(Some(40 * MS), 40 * MS, true, 9), 10 * MS, "late, but no retransmission");
        rack.on_ack(0, 300, true);
        rack.on_ack(0, 300, true);
        assert_eq!(rack.reo_wnd(Some(40 * MS), 40 * MS, true, 9), 20 * MS, "one step in a round trip");
        rack.on_ack(300, 600, true);
        assert_eq!(rack.reo_wnd(Some(40 * MS), 40 * MS, true, 9), 30 * MS);
        (0..9).for_each(|round| rack.on_ack(600 + 300 * round, 900 + 300 * round, true));
        assert_eq!(rack.reo_wnd(Some(40 * MS), 40 * MS, true, 9), 40 * MS, "SRTT at most");
        (0..16).for_each(|_| rack.on_recovered());
        assert_eq!(rack.reo_wnd(Some(40 * MS), 40 * MS, true, 9), 10 * MS);
    }

    #[test]
    fn an_original_does_not_pass_for_its_retransmission() {
        let (mut rack, mut board) = (Rack::default(), sent_at(&[0, 1]));
        board.mark_lost(0);
        board.resend(0, at(50), Rate::default().on_sent(at(50), 100, 0));
        board.acknowledge(100, |segment| rack.on_delivered(at(60), segment, Some(at(0)), Some(5 * MS)));
        assert_eq!(rack.rtt, 0);
        board.acknowledge(200, |segment| rack.on_delivered(at(62), segment, Some(at(1)), Some(5 * MS)));
        assert_eq!((rack.rtt, rack.newest), (61 * MS, (at(1), 200)));
        let mut board = sent_at(&[0, 1]);
        board.mark_lost(1);
        board.resend(1, at(50), Rate::default().on_sent(at(50), 100, 0));
        sack(&mut rack, &mut board, 60, 1..2);
        assert_eq!(rack.rtt, 61 * MS, "10 ms are less than the smallest round trip");
    }

    #[test]
    fn a_timeout_spares_what_was_just_sent() {
        let (mut rack, mut board) = (Rack::default(), sent_at(&[0, 0, 0, 230]));
        sack(&mut rack, &mut board, 40, 1..2);
        assert_eq!(rack.mark_losses_on_rto(at(240), 0, &mut board), 200);
        assert_eq!(board.in_flight(), 100);
        let mut board = sent_at(&[230, 230]);
        assert_eq!(rack.mark_losses_on_rto(at(240), 0, &mut board), 100, "but never the first");
    }
}
