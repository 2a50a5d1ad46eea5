// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is sent, and when.

use super::{Handshake, Sender, law_time, nanos};
use crate::tcp::{Segment, pacing::Bursts};
use lowtide_cc::{EcnUse, Restart, Sent, UNPACED_SEGMENTS};
use lowtide_net::{Ecn, Time};

/// How much of the window was used in the last round trip (Linux: `tcp_cwnd_validate`).
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    /// The window was what limited the sender.
    limited: bool,
    /// The most that was outstanding, bytes.
    max_outstanding: u64,
    /// The round trip ends when this is acknowledged.
    end: u64,
}

impl Usage {
    fn update(&mut self, limited: bool, una: u64, nxt: u64) {
        if una >= self.end || limited || (!self.limited && nxt - una > self.max_outstanding) {
            *self = Self { limited, max_outstanding: nxt - una, end: nxt };
        }
    }
}

impl Sender {
    /// The next segment to be sent now, with its ECN field.
    pub fn transmit(&mut self, now: Time) -> Option<(Segment, Ecn)> {
        self.release = None;
        if self.handshake != Handshake::Done {
            return self.transmit_syn(now);
        }
        if std::mem::take(&mut self.probe_due)
            && let Some(last) = self.board.last()
        {
            return Some(self.transmit_probe(now, last));
        }
        if let Some(id) = self.board.next_lost() {
            let len = self.board.get(id).len();
            if std::mem::take(&mut self.forced) || self.may_send(now, len) {
                return Some(self.resend(now, id));
            }
            return None;
        }
        self.forced = false;
        let Some((bytes, fin)) = self.next_data().or_else(|| self.next_piece()) else {
            self.wait_for_room(now);
            return None;
        };
        if self.board.una() == self.board.nxt() {
            self.restart(now);
        }
        self.may_send(now, u64::from(bytes)).then(|| self.send_new(now, bytes, fin))
    }

    /// Whether the window was what limited the sender in the last round trip. In slow start it may grow to twice what
    /// was used (Linux: `tcp_is_cwnd_limited`).
    pub(super) fn is_window_limited(&self) -> bool {
        self.usage.limited
            || (self.law.ssthresh().is_none_or(|ssthresh| self.window < ssthresh)
                && self.window < 2 * self.usage.max_outstanding)
    }

    fn transmit_syn(&mut self, now: Time) -> Option<(Segment, Ecn)> {
        if self.handshake == Handshake::Sent {
            return None;
        }
        self.handshake = Handshake::Sent;
        self.rto = Some(now + self.rtt.rto());
        // As Linux for laws that need ECN; RFC 3168 forbids it for others.
        let ecn = if self.ecn == EcnUse::Classic { Ecn::NotEct } else { self.ect() };
        Some((Segment { seq: 0, bytes: 0, sent: now, echo: Time::ZERO, syn: true, fin: false, cwr: false }, ecn))
    }

    /// A tail loss probe: new data if there is any, or else the last segment once more (RFC 8985, section 7.3).
    fn transmit_probe(&mut self, now: Time, last: u64) -> (Segment, Ecn) {
        self.statistics.probes += 1;
        let new = self.next_data();
        let segment = match new {
            Some((bytes, fin)) => self.send_new(now, bytes, fin),
            None => self.resend(now, last),
        };
        self.tlp.on_probe(self.board.nxt(), new.is_none());
        self.pto = None;
        self.rto = Some(now + self.rtt.rto());
        segment
    }

    /// Payload and end mark of the next new segment, if there is one and the receiver has room for it.
    fn next_data(&mut self) -> Option<(u32, bool)> {
        let unsent = self.unsent();
        let bytes = unsent.min(self.mss);
        let fin = self.closed && bytes == unsent && !self.fin_sent;
        if bytes == 0 && !fin {
            if self.board.in_flight() < self.cwnd() {
                self.rate.on_app_limited(self.board.in_flight());
            }
            return None;
        }
        (self.board.nxt() + bytes <= self.right_edge).then_some((bytes as u32, fin))
    }

    /// The persist timer has expired: what the receiver's window has room for, less than a segment (Linux:
    /// `tcp_write_wakeup`).
    fn next_piece(&mut self) -> Option<(u32, bool)> {
        let room = self.right_edge.saturating_sub(self.board.nxt());
        let piece = std::mem::take(&mut self.piece_due) && room > 0 && room < self.unsent().min(self.mss);
        piece.then_some((room as u32, false))
    }

    /// Nothing is in flight whose ACK could open the receiver's window: the persist timer runs (RFC 9293, section
    /// 3.8.6.2.1).
    fn wait_for_room(&mut self, now: Time) {
        let waits = self.unsent() > 0 && self.board.una() == self.board.nxt();
        self.persist = waits.then(|| self.persist.unwrap_or_else(|| now + self.rtt.rto()));
    }

    /// Whether the window and the pace allow a segment of this length. At least one may always be in flight.
    fn may_send(&mut self, now: Time, len: u64) -> bool {
        let in_flight = self.board.in_flight();
        if in_flight > 0 && in_flight + len > self.cwnd() {
            self.usage.update(true, self.board.una(), self.board.nxt());
            return false;
        }
        if let Some(rate) = self.pace() {
            let bursts = Bursts { least: self.law.least_burst(), longest: self.law.longest_burst() };
            let release = self.pacer.release(rate, self.mss, bursts, self.cwnd());
            if release > now {
                self.release = Some(release);
                if self.would_fill_window(rate) {
                    self.usage.update(true, self.board.una(), self.board.nxt());
                }
                return false;
            }
        }
        true
    }

    /// The pace that holds back the next segment, bytes per second.
    fn pace(&self) -> Option<u64> {
        self.pacing_rate().filter(|_| self.statistics.segments >= UNPACED_SEGMENTS)
    }

    /// Whether the window would be full but for a pace that is the window's own: one that gives a window in each round
    /// trip keeps the flight just below it for ever (RFC 9002, section 7.8). The pace follows the window by an ACK,
    /// hence the tenth.
    fn would_fill_window(&self, rate: u64) -> bool {
        let sendable = self.unsent().min(self.right_edge.saturating_sub(self.board.nxt()));
        let per_round_trip = u128::from(rate) * u128::from(self.rtt.srtt()) / 1_000_000_000;
        self.board.in_flight().saturating_add(sendable) + self.mss > self.cwnd()
            && 10 * per_round_trip >= 9 * u128::from(self.cwnd())
    }

    /// New data is about to be sent while nothing is outstanding.
    fn restart(&mut self, now: Time) {
        let Some(since) = self.idle_since.take() else { return };
        let rto = nanos(self.rtt.rto());
        let unused = nanos(now - self.last_sent);
        // RFC 2861, section 3.1: halved for each timeout that has passed, down to the restart window of RFC 5681.
        let window = (self.validate_window && unused > rto).then(|| {
            let halvings = ((unused - 1) / rto).min(63);
            (self.window >> halvings).max(self.window.min(self.initial_window))
        });
        self.law.on_restart(&Restart { now: law_time(now), idle: now - since, nxt: self.board.nxt(), window });
        self.refresh_window();
    }

    fn send_new(&mut self, now: Time, bytes: u32, fin: bool) -> (Segment, Ecn) {
        let cwr = std::mem::take(&mut self.cwr_due) && bytes > 0;
        let segment = Segment { seq: self.board.nxt(), bytes, sent: now, echo: self.echo, syn: false, fin, cwr };
        let before = self.board.in_flight();
        let at_send = self.rate.on_sent(now, segment.end() - segment.seq, before);
        self.board.send(bytes, fin, now, at_send);
        self.fin_sent |= fin;
        self.persist = None;
        let limited = self.board.in_flight() + self.mss > self.cwnd();
        self.usage.update(limited, self.board.una(), self.board.nxt());
        self.on_sent(now, &segment, before, false);
        self.schedule_probe(now);
        (segment, self.ect())
    }

    fn resend(&mut self, now: Time, id: u64) -> (Segment, Ecn) {
        let lost = self.board.get(id);
        let (seq, bytes, fin) = (lost.seq, lost.bytes, lost.fin);
        let segment = Segment { seq, bytes, sent: now, echo: self.echo, syn: false, fin, cwr: false };
        let before = self.board.in_flight();
        let at_send = self.rate.on_sent(now, segment.end() - segment.seq, before);
        self.board.resend(id, now, at_send);
        self.undo.on_retransmission(now);
        self.statistics.retransmits += 1;
        if segment.seq == self.board.una() {
            self.rto = None; // it runs anew from here, as in Linux
        }
        self.on_sent(now, &segment, before, true);
        // RFC 3168, section 6.1.5: no ECT on what is sent again. Accurate feedback has it on every segment.
        let ecn = if self.ecn == EcnUse::Classic { Ecn::NotEct } else { self.ect() };
        (segment, ecn)
    }

    fn on_sent(&mut self, now: Time, segment: &Segment, in_flight: u64, retransmission: bool) {
        let len = segment.end() - segment.seq;
        if let Some(prr) = &mut self.prr {
            prr.on_sent(len);
        }
        if let Some(rate) = self.pace() {
            self.pacer.on_sent(now, u64::from(segment.bytes), rate);
        }
        self.statistics.segments += 1;
        self.last_sent = now;
        self.rto.get_or_insert_with(|| now + self.rtt.rto());
        self.law.on_sent(&Sent {
            now: law_time(now),
            bytes: u64::from(segment.bytes),
            in_flight,
            nxt: self.board.nxt(),
            retransmission,
            app_limited: self.unsent() == 0 && self.board.in_flight() < self.cwnd(),
            has_data: self.unsent() > 0,
        });
        self.refresh_window();
    }

    /// The ECN field of new segments.
    const fn ect(&self) -> Ecn {
        match self.ecn {
            EcnUse::Off => Ecn::NotEct,
            EcnUse::Classic | EcnUse::Accurate => Ecn::Ect0,
            EcnUse::L4s => Ecn::Ect1,
        }
    }
}
