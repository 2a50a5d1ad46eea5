// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver.

use super::{Acknowledgement, SackBlocks, Segment, ranges::Ranges};
use crate::scenario::Tcp;
use lowtide_cc::EcnUse;
use lowtide_net::Time;
use std::time::Duration;

/// SACK blocks that are remembered for repetition (RFC 2018, section 4).
const REMEMBERED: usize = 4;

/// The receiving end of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    ecn: EcnUse,
    window: u64,
    ack_every: u64,
    ack_delay: Duration,
    quick_acks: u32,
    /// The next sequence number expected (`rcv_nxt`).
    nxt: u64,
    /// What is held above it.
    held: Ranges,
    /// The ranges of `held` that grew last, the newest first.
    recent: [(u64, u64); REMEMBERED],
    /// `nxt` in the last ACK sent (`Last.ACK.sent`).
    last_ack: u64,
    /// `TS.Recent`.
    echo: Time,
    /// When the delayed ACK is due.
    delayed: Option<Time>,
    /// Where the stream ends, once that is known.
    end: Option<u64>,
    /// ECE is set until CWR arrives (classic ECN).
    ece: bool,
    /// The last segment had CE.
    ce: bool,
    ce_packets: u64,
    ce_bytes: u64,
    duplicates: u64,
}

impl Receiver {
    /// The receiver of a connection with these settings, whose sender uses ECN so.
    pub fn new(settings: &Tcp, ecn: EcnUse) -> Self {
        Self {
            ecn,
            window: settings.receive_window,
            ack_every: u64::from(settings.ack_every.max(1)) * u64::from(settings.mss),
            ack_delay: settings.ack_delay,
            quick_acks: settings.quick_acks,
            nxt: 0,
            held: Ranges::default(),
            recent: [(0, 0); REMEMBERED],
            last_ack: 0,
            echo: Time::ZERO,
            delayed: None,
            end: None,
            ece: false,
            ce: false,
            ce_packets: 0,
            ce_bytes: 0,
            duplicates: 0,
        }
    }

    /// A segment arrives, with CE or without. Returns the ACK to be sent at once, if any.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, ce: bool) -> Option<Acknowledgement> {
        if segment.syn {
            self.echo = self.echo.max(segment.sent);
            return Some(Acknowledgement { syn: true, ..self.acknowledgement(now, None) });
        }
        let mut at_once = self.on_ecn(segment, ce);
        // RFC 7323, section 4.3: the echo is that of the segment that advances the left edge, and with delayed ACKs that
        // of the first one since the last ACK.
        if segment.seq <= self.last_ack && segment.sent >= self.echo {
            self.echo = segment.sent;
        }
        if segment.fin {
            self.end = Some(segment.end());
            at_once = true;
        }
        let mut duplicate = None;
        if segment.end() <= self.nxt || self.held.around(segment.seq).is_some_and(|held| held.1 >= segment.end()) {
            // A FIN alone that comes again is as long as one byte.
            duplicate = Some((segment.seq, segment.end()));
            self.duplicates += 1;
            at_once = true;
        } else if segment.seq <= self.nxt {
            self.nxt = segment.end();
            if let Some((_, end)) = self.held.first().filter(|first| first.0 <= self.nxt) {
                self.nxt = self.nxt.max(end);
            }
            // A segment that fills a hole is acknowledged at once (RFC 5681, section 4.2).
            at_once |= !self.held.is_empty();
            self.held.remove_below(self.nxt + 1);
        } else {
            let range = self.held.insert(segment.seq, segment.end(), |_, _| {});
            self.remember(range);
            at_once = true;
        }
        if at_once || self.quick_acks > 0 || self.nxt - self.last_ack >= self.ack_every {
            return Some(self.acknowledgement(now, duplicate));
        }
        self.delayed.get_or_insert(now + self.ack_delay);
        None
    }

    /// The time that [`next_timer`](Self::next_timer) named has come.
    pub fn on_timer(&mut self, now: Time) -> Option<Acknowledgement> {
        self.delayed.filter(|due| *due <= now)?;
        Some(self.acknowledgement(now, None))
    }

    /// When a delayed ACK is due.
    pub const fn next_timer(&self) -> Option<Time> {
        self.delayed
    }

    /// Payload bytes received without a gap.
    pub fn received(&self) -> u64 {
        self.nxt - u64::from(self.is_finished())
    }

    /// Segments received more than once.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Whether the whole stream has arrived, with its end.
    pub fn is_finished(&self) -> bool {
        self.end == Some(self.nxt)
    }

    /// Notes the ECN field. Returns whether it asks for an ACK at once.
    fn on_ecn(&mut self, segment: &Segment, ce: bool) -> bool {
        let mut at_once = false;
        if ce {
            self.ce_packets += 1;
            self.ce_bytes += u64::from(segment.bytes);
        }
        match self.ecn {
            EcnUse::Off => {}
            EcnUse::Classic => {
                // RFC 3168, section 6.1.3. As in Linux an answer to CWR, and the first one to CE, is not held back.
                at_once = (segment.cwr && self.ece) || (ce && !self.ece);
                self.ece = (self.ece && !segment.cwr) || ce;
            }
            // RFC 8257, section 3.2. The counters say which were marked, so that one ACK serves both states.
            EcnUse::Accurate | EcnUse::L4s => at_once = ce != self.ce,
        }
        self.ce = ce;
        at_once
    }

    /// The range becomes the newest of the SACK blocks; those that it has swallowed go.
    fn remember(&mut self, range: (u64, u64)) {
        let mut kept = [(0, 0); REMEMBERED];
        kept[0] = range;
        let nxt = self.nxt;
        let others = self.recent.iter().filter(|block| block.0 > nxt && (block.1 <= range.0 || block.0 >= range.1));
        for (slot, block) in kept[1..].iter_mut().zip(others) {
            *slot = *block;
        }
        self.recent = kept;
    }

    fn acknowledgement(&mut self, now: Time, duplicate: Option<(u64, u64)>) -> Acknowledgement {
        let mut sack = SackBlocks::default();
        if let Some((start, end)) = duplicate {
            sack.push(start, end);
            // RFC 2883, section 4.1: the block that holds the duplicate follows.
            if let Some(range) = self.held.around(start).filter(|_| end > self.nxt) {
                self.remember(range);
            }
        }
        if !self.held.is_empty() {
            self.recent.iter().filter(|block| block.0 > self.nxt).for_each(|block| sack.push(block.0, block.1));
        }
        self.delayed = None;
        self.last_ack = self.nxt;
        self.quick_acks = self.quick_acks.saturating_sub(1);
        Acknowledgement {
            ack: self.nxt,
            window: self.window,
            sack,
            echo: self.echo,
            sent: now,
            syn: false,
            ece: self.ece,
            ce_packets: self.ce_packets,
            ce_bytes: self.ce_bytes,
        }
    }
}
