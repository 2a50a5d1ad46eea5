// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver.

use super::{Acknowledgement, SackBlocks, Segment, ranges::Ranges};
use crate::scenario::Tcp;
use lowtide_cc::EcnUse;
use lowtide_net::Time;
use lowtide_port::{self as port, Download};
use std::time::Duration;

/// SACK blocks that are remembered for repetition (RFC 2018, section 4).
const REMEMBERED: usize = 4;

/// Segments of the first window.
const LAW_INITIAL_WINDOW: u32 = 10;
/// Windows are offered in units of so many bytes, as with the window scale of Linux for windows up to 16 MB.
const WINDOW_UNIT: u64 = 256;
/// Segments that Linux makes room for when one arrives (`tcp_grow_window`).
const WINDOW_ROOM: u64 = 2;

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Receiver {
    ecn: EcnUse,
    window: u64,
    mss: u64,
    /// What chooses the window; `None`: it is `window`.
    download: Option<Download>,
    /// The right edge that has been offered.
    edge: u64,
    ack_every: u64,
    ack_delay: Duration,
    /// ACKs that are not delayed: so many are left, of so many at the start and after a pause.
    quick_acks: (u32, u32),
    /// A pause this long has the sender begin anew.
    pause: Duration,
    /// When the last segment arrived.
    latest: Time,
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
            mss: u64::from(settings.mss),
            download: None,
            edge: 0,
            ack_every: u64::from(settings.ack_every.max(1)) * u64::from(settings.mss).min(settings.receive_window),
            ack_delay: settings.ack_delay,
            quick_acks: (settings.quick_acks, settings.quick_acks),
            pause: settings.rto_min,
            latest: Time::ZERO,
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

    /// Has its window chosen by a law.
    pub fn governed(self, download: Option<Download>) -> Self {
        Self { download, ..self }
    }

    /// The connection is over: its part of the window is the others'.
    pub fn leave(&mut self) {
        self.download = None;
    }

    /// A segment arrives, with CE or without. Returns the ACK to be sent at once, if any.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, ce: bool) -> Option<Acknowledgement> {
        if segment.syn {
            self.echo = self.echo.max(segment.sent);
            self.latest = now;
            return Some(Acknowledgement { syn: true, ..self.acknowledgement(now, None) });
        }
        // A sender that crawls, or starts again, is not held up (Linux: `tcp_event_data_recv`).
        if now - self.latest > self.pause {
            self.quick_acks.0 = self.quick_acks.1;
        }
        self.latest = now;
        self.govern(now, segment, ce);
        let mut at_once = self.on_ecn(segment, ce);
        // RFC 7323, section 4.3: the echo is that of the segment that advances the left edge, and with delayed ACKs
        // that of the first one since the last ACK.
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
        if at_once || self.doubles(now) || self.quick_acks.0 > 0 || self.nxt - self.last_ack >= self.ack_every {
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

    /// Tells the law of a segment.
    fn govern(&mut self, now: Time, segment: &Segment, ce: bool) {
        let Some(download) = &mut self.download else { return };
        if segment.bytes > 0 {
            download.arrives(&port::Segment {
                now_us: now.as_nanos() / 1000,
                seq: segment.seq as u32, // sequence numbers and timestamps wrap
                payload: segment.bytes,
                size: segment.bytes,
                pushed: (u64::from(segment.bytes) < self.mss).into(),
                tsval: millis(segment.sent),
                tsecr: millis(segment.echo),
                marked: ce.into(),
            });
        }
    }

    /// What has been offered and has not arrived, bytes.
    fn held(&self) -> u64 {
        self.edge.saturating_sub(self.nxt)
    }

    /// Whether an ACK would double a window that a law keeps small: then it leaves at once (Linux: `tcp_cleanup_rbuf`).
    fn doubles(&self, now: Time) -> bool {
        let held = self.held();
        let window = self.download.as_ref().and_then(|download| download.window(law_time(now), held as u32));
        window.is_some_and(|window| u64::from(window) + WINDOW_ROOM * self.mss >= 2 * held)
    }

    /// The window to offer. No right edge moves left.
    fn offer(&mut self, now: Time) -> u64 {
        let held = self.held();
        let Some(download) = &mut self.download else { return self.window };
        // the first window is an initial window, as the sender's
        let first = (self.edge == 0).then_some(LAW_INITIAL_WINDOW * self.mss as u32);
        let window = first.or_else(|| download.window(law_time(now), held as u32)).map_or(self.window, u64::from);
        let window = window.min(self.window).max(held).next_multiple_of(WINDOW_UNIT);
        self.edge = self.nxt + window;
        download.leaves(law_time(now), millis(now), self.edge as u32, self.nxt as u32);
        window
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
        self.quick_acks.0 = self.quick_acks.0.saturating_sub(1);
        Acknowledgement {
            ack: self.nxt,
            window: self.offer(now),
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

const fn law_time(now: Time) -> lowtide_cc::Time {
    lowtide_cc::Time::from_nanos(now.as_nanos())
}

/// A timestamp, in milliseconds as those of Linux.
const fn millis(time: Time) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(ecn: EcnUse, ack_every: u32) -> Receiver {
        let settings = Tcp {
            port: false,
            law: "reno".parse().expect("it exists"),
            mss: 100,
            header: 52,
            initial_window: 10,
            receive_window: 1 << 20,
            ack_every,
            ack_delay: Duration::from_millis(40),
            quick_acks: 0,
            rto_min: Duration::from_millis(200),
            pacing: false,
            validate_window: true,
        };
        Receiver::new(&settings, ecn)
    }

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    /// The segment of this number, sent at this time.
    fn segment(number: u64, sent: u64) -> Segment {
        Segment { seq: 100 * number, bytes: 100, sent: at(sent), echo: Time::ZERO, syn: false, fin: false, cwr: false }
    }

    /// What the receiver says to segments that arrive one each millisecond.
    fn say(receiver: &mut Receiver, numbers: &[u64]) -> Vec<Option<Acknowledgement>> {
        let say = |(ms, &number)| receiver.on_segment(at(100 + ms as u64), &segment(number, ms as u64), false);
        numbers.iter().enumerate().map(say).collect()
    }

    #[test]
    fn sack_blocks_name_the_newest_first() {
        let mut receiver = receiver(EcnUse::Off, 2);
        let acks = say(&mut receiver, &[0, 2, 4, 6, 8, 3, 9]);
        let blocks: Vec<_> = acks[1..].iter().map(|ack| ack.expect("at once").sack.as_slice().to_vec()).collect();
        assert_eq!(blocks[0], [(200, 300)]);
        assert_eq!(blocks[2], [(600, 700), (400, 500), (200, 300)]);
        assert_eq!(blocks[3], [(800, 900), (600, 700), (400, 500)], "three at most");
        assert_eq!(blocks[4], [(200, 500), (800, 900), (600, 700)], "two became one");
        assert_eq!(blocks[5], [(800, 1000), (200, 500), (600, 700)]);
        let ack = receiver.on_segment(at(200), &segment(1, 50), false).expect("it fills a hole");
        assert_eq!((ack.ack, ack.sack.as_slice()), (500, &[(800, 1000), (600, 700)][..]));
    }

    #[test]
    fn blocks_that_are_no_longer_above_a_hole_are_forgotten() {
        let mut receiver = receiver(EcnUse::Off, 8);
        let acks = say(&mut receiver, &[0, 8, 10, 4, 2, 1, 3, 12]);
        assert_eq!(acks[5].expect("it fills a hole").ack, 300);
        assert_eq!(acks[7].expect("at once").sack.as_slice(), [(1200, 1300), (1000, 1100), (800, 900)]);
    }

    #[test]
    fn a_duplicate_is_reported_first_with_the_block_around_it() {
        let mut receiver = receiver(EcnUse::Off, 2);
        let acks = say(&mut receiver, &[0, 1, 4, 6, 7, 1, 6]);
        assert_eq!(acks[5].expect("at once").sack.as_slice(), [(100, 200), (600, 800), (400, 500)]);
        assert_eq!(acks[6].expect("at once").sack.as_slice(), [(600, 700), (600, 800), (400, 500)]);
        assert_eq!(receiver.duplicates(), 2);
    }

    #[test]
    fn the_echo_is_of_the_first_segment_since_the_last_ack() {
        // RFC 7323, section 4.3, cases A (delayed ACKs) and B (a hole, then its filling).
        let mut delaying = receiver(EcnUse::Off, 3);
        let acks = say(&mut delaying, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(acks.iter().flatten().map(|ack| ack.echo).collect::<Vec<_>>(), [at(0), at(3)]);
        let mut prompt = receiver(EcnUse::Off, 1);
        let acks = say(&mut prompt, &[0, 2, 4, 1, 3]);
        assert_eq!(acks.iter().flatten().map(|ack| ack.echo).collect::<Vec<_>>(), [0, 0, 0, 3, 4].map(at));
    }

    #[test]
    fn acks_wait_for_the_second_segment_or_the_timer() {
        let mut receiver = receiver(EcnUse::Off, 2);
        let acks = say(&mut receiver, &[0, 1, 2]);
        assert_eq!(acks.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(receiver.next_timer(), Some(at(142)));
        assert_eq!(receiver.on_timer(at(141)), None);
        assert_eq!(receiver.on_timer(at(142)).map(|ack| ack.ack), Some(300));
        assert_eq!(receiver.next_timer(), None);
        let end = Segment { fin: true, ..segment(3, 9) };
        assert_eq!(receiver.on_segment(at(150), &end, false).map(|ack| ack.ack), Some(401), "the end is not held back");
        assert!(receiver.is_finished());
        assert_eq!(receiver.received(), 400);
    }

    #[test]
    fn classic_ecn_echoes_until_cwr() {
        let mut receiver = receiver(EcnUse::Classic, 2);
        let mut say = |number, cwr, ce| {
            let ack = receiver.on_segment(at(number), &Segment { cwr, ..segment(number, 0) }, ce);
            ack.map(|ack| ack.ece)
        };
        assert_eq!(say(0, false, true), Some(true), "the first mark is not held back");
        assert_eq!(say(1, false, false), None);
        assert_eq!(say(2, false, false), Some(true));
        assert_eq!(say(3, true, false), Some(false));
        assert_eq!(say(4, true, true), Some(true), "a mark on the segment with CWR is a new one");
    }

    #[test]
    fn a_change_of_marks_is_told_at_once() {
        let mut receiver = receiver(EcnUse::Accurate, 2);
        let mut say = |number, ce| receiver.on_segment(at(number), &segment(number, 0), ce);
        assert!(say(0, false).is_none());
        assert_eq!(say(1, true).map(|ack| (ack.ce_packets, ack.ce_bytes, ack.ece)), Some((1, 100, false)));
        assert!(say(2, true).is_none(), "the same state");
        assert_eq!(say(3, true).map(|ack| ack.ce_packets), Some(3));
        assert_eq!(say(4, false).map(|ack| ack.ce_packets), Some(3));
    }
}
