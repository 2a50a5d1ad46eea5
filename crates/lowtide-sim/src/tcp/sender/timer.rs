// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender's timers.

use super::{
    Handshake, Sender, Tlp,
    episode::{Cause, Episode},
};
use lowtide_cc::Signal;
use lowtide_net::Time;

impl Sender {
    /// When [`on_timer`](Self::on_timer) and then [`transmit`](Self::transmit) are to be called next.
    pub fn next_timer(&self) -> Option<Time> {
        // Without branches: this runs after every event.
        const NEVER: Time = Time::from_nanos(u64::MAX);
        let at = |timer: Option<Time>| timer.unwrap_or(NEVER);
        let next = at(self.rto).min(at(self.pto)).min(at(self.reo).min(at(self.release))).min(at(self.persist));
        (next < NEVER).then_some(next)
    }

    /// The time that [`next_timer`](Self::next_timer) named has come. A call that comes early does nothing.
    pub fn on_timer(&mut self, now: Time) {
        let due = |timer: Option<Time>| timer.is_some_and(|due| due <= now);
        if self.handshake == Handshake::Sent {
            if due(self.rto) {
                self.handshake = Handshake::Due;
                self.rtt.back_off();
                self.statistics.timeouts += 1;
            }
            return;
        }
        if due(self.reo) {
            self.on_reordering_timer(now);
        }
        if due(self.persist) {
            self.persist = None;
            self.piece_due = true;
        }
        if due(self.pto) {
            self.pto = None;
            self.probe_due = true;
        } else if due(self.rto) {
            self.on_retransmission_timer(now);
        }
    }

    /// What is outstanding since the reordering window passed is lost.
    fn on_reordering_timer(&mut self, now: Time) {
        let in_flight = self.board.in_flight();
        let lost = self.detect_loss(now);
        if lost > 0 && !self.episode.is_repairing() {
            self.begin(now, Cause::Signal(Signal::Loss), in_flight);
            self.reduce(0, false);
        }
    }

    /// RFC 6298, section 5.4 to 5.7.
    fn on_retransmission_timer(&mut self, now: Time) {
        self.rto = None;
        if self.board.in_flight() == 0 {
            return; // what is lost waits for its turn, not for an ACK
        }
        let in_flight = self.board.in_flight();
        let reo_wnd = self.rack.reo_wnd(self.rtt.min(), self.rtt.srtt(), true, self.board.sacked_segments());
        self.rack.mark_losses_on_rto(now, reo_wnd, &mut self.board);
        self.tell_losses(now);
        self.statistics.timeouts += 1;
        // A timeout of what a timeout has already sent again reduces no further (RFC 5681, section 3.1).
        if self.progressed || !matches!(self.episode, Episode::Timeout { .. }) {
            self.begin(now, Cause::Signal(Signal::Timeout), in_flight);
            self.progressed = false;
        }
        self.rtt.back_off();
        self.rto = Some(now + self.rtt.rto());
        self.forced = true;
    }

    /// Sets the retransmission timer anew.
    pub(super) fn restart_rto(&mut self, now: Time) {
        self.rto = (self.board.in_flight() > 0).then(|| now + self.rtt.rto());
    }

    /// Sets the probe timer (RFC 8985, section 7.2), if a lost tail would leave nothing but the retransmission timer.
    pub(super) fn schedule_probe(&mut self, now: Time) {
        let board = &self.board;
        let possible = board.in_flight() > 0
            && board.lost() == 0
            && board.sacked_segments() == 0
            && !self.episode.is_repairing()
            && self.tlp.may_probe();
        self.pto = possible.then(|| {
            let due = now + Tlp::pto(self.rtt.srtt(), self.board.segments());
            self.rto.map_or(due, |rto| due.min(rto))
        });
    }
}
