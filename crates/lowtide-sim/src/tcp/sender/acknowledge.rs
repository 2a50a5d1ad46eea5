// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an acknowledgement does.

use super::{
    Acked, Handshake, Sender,
    episode::{Cause, Episode},
    law_time, nanos,
};
use crate::tcp::{
    Acknowledgement,
    rate::Newest,
    scoreboard::{Fate, Outstanding},
};
use lowtide_cc::{Ack, EcnUse, Reaction, Signal};
use lowtide_net::Time;
use std::time::Duration;

/// What an ACK newly delivers.
#[derive(Default)]
struct Delivered {
    packets: u32,
    bytes: u64,
    /// Sequence numbers, the end of the stream included.
    len: u64,
    newest: Option<Newest>,
    /// When the oldest and the newest segment left that the ACK newly covers and that were sent but once.
    acked: Option<(Time, Time)>,
    /// The same of those that it SACKs.
    sacked: Option<(Time, Time)>,
    /// It covers a segment that was sent again.
    retransmission: bool,
}

/// Adds a point in time to a span.
fn extend(span: &mut Option<(Time, Time)>, sent: Time) {
    let (from, to) = span.unwrap_or((sent, sent));
    *span = Some((from.min(sent), to.max(sent)));
}

/// The duplicate that an ACK reports (RFC 2883): its first block lies below the ACK or within the second block.
fn duplicate(ack: &Acknowledgement) -> Option<(u64, u64)> {
    let blocks = ack.sack.as_slice();
    let first = *blocks.first()?;
    let within = |outer: &(u64, u64)| outer.0 <= first.0 && first.1 <= outer.1;
    (first.1 <= ack.ack || blocks.get(1).is_some_and(within)).then_some(first)
}

impl Sender {
    /// An acknowledgement arrives.
    pub fn on_acknowledgement(&mut self, now: Time, ack: &Acknowledgement) -> Acked {
        self.echo = self.echo.max(ack.sent);
        if ack.syn || self.handshake != Handshake::Done {
            self.on_syn_ack(now, ack);
            return Acked::default();
        }
        if ack.ack > self.board.nxt() {
            return Acked::default(); // of something never sent
        }
        self.right_edge = self.right_edge.max(ack.ack + ack.window);

        let (in_flight, una) = (self.board.in_flight(), self.board.una());
        let delivered = self.deliver(now, ack);
        let advanced = self.board.una() > una;
        let (rtt, one_way_delay) = self.sample_rtt(now, ack, &delivered, advanced).unzip();
        let marks = self.count_marks(ack, delivered.packets);

        let dsack = duplicate(ack);
        self.rack.on_ack(self.board.una(), self.board.nxt(), dsack.is_some());
        self.look_for_needless_recovery(now, ack, dsack, advanced);
        let probe_repaired = self.tlp.on_ack(ack.ack, dsack.map(|dsack| dsack.1), !advanced && delivered.packets == 0);
        let lost = self.detect_loss(now);

        let rate = self.rate.sample(delivered.newest.as_ref(), self.rtt.min());
        self.latest_rate = rate.or(self.latest_rate);
        // The episode ends before the law receives the ACK that ends it, which is the first that may grow the window.
        let mut marked = marks.seen;
        if self.is_over() {
            // A mark on it is from before a recovery's end.
            marked &= !self.episode.is_repairing();
            self.end(now);
        }
        let reaction = self.law.on_ack(&Ack {
            now: law_time(now),
            packets: delivered.packets,
            bytes: delivered.bytes,
            marked: marks.told,
            rtt,
            srtt: Duration::from_nanos(self.rtt.srtt()),
            one_way_delay,
            una: self.board.una(),
            nxt: self.board.nxt(),
            in_flight,
            window_limited: self.is_window_limited(),
            reducing: self.episode.is_reducing(),
            sacked: self.board.sacked_segments() > 0,
            lost,
            rate,
            has_data: self.unsent() > 0,
            ..Ack::default()
        });
        self.refresh_window();

        if probe_repaired && !self.episode.is_repairing() {
            // RFC 8985, section 7.4.2: a loss that is already repaired reduces the window all the same.
            self.begin(now, Cause::Signal(Signal::Loss), in_flight);
            self.undo.stop();
            self.end(now);
        }
        let cause = match self.episode {
            Episode::Open | Episode::Reduction { .. } if self.board.lost() > 0 => Some(Cause::Signal(Signal::Loss)),
            Episode::Open if marked => Some(Cause::Signal(Signal::Ecn)),
            Episode::Open if reaction == Reaction::Reduced => Some(Cause::Law),
            _ => None,
        };
        if let Some(cause) = cause {
            self.begin(now, cause, in_flight);
            if self.board.una() == self.board.nxt() {
                self.end(now); // nothing is outstanding
            }
        }
        if delivered.len > 0 || cause.is_some() {
            self.reduce(delivered.len, advanced && lost == 0);
        }
        self.after_ack(now, advanced, delivered.len > 0);
        Acked { packets: delivered.packets, bytes: delivered.bytes, rtt, one_way_delay, rate }
    }

    /// The window on the way down, by PRR.
    pub(super) fn reduce(&mut self, delivered: u64, safe: bool) {
        let target = self.window.max(self.mss);
        if let Some(prr) = &mut self.prr {
            self.prr_cwnd = prr.on_ack(delivered, self.board.in_flight(), target, safe, self.mss);
        }
    }

    fn on_syn_ack(&mut self, now: Time, ack: &Acknowledgement) {
        if !ack.syn || self.handshake == Handshake::Done {
            return;
        }
        self.handshake = Handshake::Done;
        self.right_edge = ack.window;
        // The echo says which SYN is answered, so that even a repeated one gives a sample (RFC 7323, section 4).
        let rtt = nanos(now - ack.echo);
        self.rtt.on_sample(rtt);
        self.rtt.on_min_sample(rtt);
        self.rtt.reset_backoff();
        self.latest_rtt = Some(rtt);
        self.rto = None;
        self.law.on_established(law_time(now));
        self.refresh_window();
    }

    /// Takes note of what the ACK covers.
    fn deliver(&mut self, now: Time, ack: &Acknowledgement) -> Delivered {
        let mut delivered = Delivered::default();
        let (rate, rack, min_rtt) = (&mut self.rate, &mut self.rack, self.rtt.min());
        let mut count = |delivered: &mut Delivered, segment: &Outstanding, echo| {
            delivered.packets += 1;
            delivered.bytes += u64::from(segment.bytes);
            delivered.len += segment.len();
            rate.on_delivered(now, segment.len(), segment.sent, segment.end(), &segment.at_send, &mut delivered.newest);
            rack.on_delivered(now, segment, echo, min_rtt);
        };
        self.board.acknowledge(ack.ack, |segment| {
            if segment.retransmitted {
                delivered.retransmission = true;
            } else if segment.fate != Fate::Sacked {
                extend(&mut delivered.acked, segment.sent);
            }
            if segment.fate != Fate::Sacked {
                count(&mut delivered, segment, Some(ack.echo));
            }
        });
        // Most blocks only repeat what the last ACK has said.
        let repeated = std::mem::replace(&mut self.last_sack, ack.sack);
        for &(start, end) in ack.sack.as_slice().iter().filter(|block| !repeated.as_slice().contains(block)) {
            self.board.sack(start, end, |segment| {
                if !segment.retransmitted {
                    extend(&mut delivered.sacked, segment.sent);
                }
                count(&mut delivered, segment, None);
            });
        }
        self.progressed |= delivered.packets > 0;
        delivered
    }

    /// Takes a round-trip sample if there is one that cannot be of a retransmission (Karn), and returns that of the
    /// newest segment, with its one-way delay. The timeout is fed with that of the oldest, which contains the
    /// receiver's delay.
    fn sample_rtt(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        delivered: &Delivered,
        advanced: bool,
    ) -> Option<(Duration, i64)> {
        let span = delivered.acked.filter(|_| !delivered.retransmission).or(delivered.sacked);
        if advanced {
            self.rtt.reset_backoff();
        }
        let Some((oldest, newest)) = span else {
            if advanced {
                // RFC 7323, section 4: the echo of an ACK that covers new data is a sample for the timeout.
                self.rtt.on_sample(nanos(now - ack.echo));
            }
            return None;
        };
        let rtt = nanos(now - newest);
        self.rtt.on_sample(nanos(now - oldest));
        self.rtt.on_min_sample(rtt);
        self.tlp.on_sample();
        self.latest_rtt = Some(rtt);
        let one_way_delay = ack.sent.as_nanos() as i64 - newest.as_nanos() as i64;
        self.latest_delay = Some(one_way_delay);
        Some((Duration::from_nanos(rtt), one_way_delay))
    }

    /// Counts the marks that the ACK reports, where it delivers so many packets.
    fn count_marks(&mut self, ack: &Acknowledgement, packets: u32) -> Marks {
        match self.ecn {
            EcnUse::Off => Marks::default(),
            EcnUse::Classic => {
                let seen = ack.ece && (ack.ack > self.ece_from || self.ece_from == 0);
                self.statistics.marks += u64::from(ack.ece);
                Marks { seen, told: if ack.ece { packets } else { 0 } }
            }
            EcnUse::Accurate | EcnUse::L4s => {
                let fresh = ack.ce_packets.saturating_sub(self.ce_seen.0);
                self.rate.on_marked(ack.ce_bytes.saturating_sub(self.ce_seen.1));
                self.ce_seen = (self.ce_seen.0.max(ack.ce_packets), self.ce_seen.1.max(ack.ce_bytes));
                self.statistics.marks += fresh;
                // A duplicate may carry a mark too; it is reported with the next packet.
                self.ce_untold += fresh;
                let told = self.ce_untold.min(u64::from(packets)) as u32;
                self.ce_untold -= u64::from(told);
                Marks { seen: fresh > 0, told }
            }
        }
    }

    /// A recovery whose segments had only been late is taken back.
    fn look_for_needless_recovery(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        dsack: Option<(u64, u64)>,
        advanced: bool,
    ) {
        let all_duplicate =
            dsack.is_some_and(|(start, end)| self.undo.on_dsack(end, (end - start).div_ceil(self.mss).max(1)));
        // In fast recovery one late segment does not acquit those that are still being repaired.
        let late = advanced
            && !(matches!(self.episode, Episode::Recovery { .. }) && self.board.retransmission_flying())
            && self.undo.on_advance(ack.echo);
        if all_duplicate || late {
            self.take_back(now);
        }
    }

    /// Sets the timers after an ACK.
    fn after_ack(&mut self, now: Time, advanced: bool, delivered: bool) {
        if self.board.una() == self.board.nxt() {
            (self.rto, self.pto, self.reo) = (None, None, None);
            if self.unsent() == 0 {
                self.idle_since.get_or_insert(now);
            }
        } else if advanced {
            self.restart_rto(now);
            self.schedule_probe(now);
        } else if delivered {
            self.pto = None; // something is SACKed: RACK is at work
        }
    }
}

/// Marks on an ACK.
#[derive(Default)]
struct Marks {
    /// There are new ones.
    seen: bool,
    /// Marked packets that are reported to the law.
    told: u32,
}
