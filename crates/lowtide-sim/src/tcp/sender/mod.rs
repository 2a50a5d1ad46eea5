// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender.

mod acknowledge;
mod episode;
mod timer;
mod transmit;

use super::{
    SackBlocks,
    pacing::Pacer,
    prr::Prr,
    rack::Rack,
    rate::Rate,
    rtt::{Rtt, nanos},
    scoreboard::Scoreboard,
    tlp::Tlp,
    undo::Undo,
};
use crate::scenario::Tcp;
use episode::Episode;
use lowtide_cc::{CongestionControl, EcnUse, RateSample};
use lowtide_net::Time;
use std::time::Duration;
use transmit::Usage;

/// How far the connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    /// A SYN is to be sent.
    Due,
    /// A SYN is on its way.
    Sent,
    /// The SYN-ACK has arrived.
    Done,
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// Segments newly delivered, cumulatively or selectively.
    pub packets: u32,
    /// Their payload in bytes.
    pub bytes: u64,
    /// A new round-trip sample; never from a retransmission.
    pub rtt: Option<Duration>,
    /// Receiver's timestamp minus the transmit time of the newest segment acknowledged, nanoseconds.
    pub one_way_delay: Option<i64>,
    /// A new sample of the delivery rate.
    pub rate: Option<RateSample>,
}

/// Counts since the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Data segments sent, repeated ones included.
    pub segments: u64,
    /// Of those, how many were repeated.
    pub retransmits: u64,
    /// Of those, how many were tail loss probes.
    pub probes: u64,
    /// Times that the window was reduced: by loss, marks, timeouts, or the law itself.
    pub reductions: u64,
    /// Times that the retransmission timer fired, for a SYN or for data.
    pub timeouts: u64,
    /// Recoveries that proved needless and were taken back.
    pub spurious: u64,
    /// Marks that the receiver reported: packets with accurate ECN, ACKs with ECE with classic ECN.
    pub marks: u64,
}

/// The sending end of a connection.
///
/// After each call of [`write`](Self::write), [`close`](Self::close), [`on_acknowledgement`](Self::on_acknowledgement)
/// or [`on_timer`](Self::on_timer), call [`transmit`](Self::transmit) until it returns `None`, then ask
/// [`next_timer`](Self::next_timer). The first call of `transmit` opens the connection.
pub struct Sender {
    law: Box<dyn CongestionControl>,
    /// The law's window, bytes.
    window: u64,
    ecn: EcnUse,
    mss: u64,
    initial_window: u64,
    paced: bool,
    validate_window: bool,

    handshake: Handshake,
    /// Bytes that the application has written.
    written: u64,
    closed: bool,
    fin_sent: bool,
    /// The end of the receiver's window.
    right_edge: u64,
    /// `sent` of the newest ACK.
    echo: Time,
    /// When the last segment left.
    last_sent: Time,
    /// Since when nothing is in flight for want of data.
    idle_since: Option<Time>,

    board: Scoreboard,
    rtt: Rtt,
    rack: Rack,
    tlp: Tlp,
    rate: Rate,
    pacer: Pacer,
    usage: Usage,
    episode: Episode,
    prr: Option<Prr>,
    /// The window during a reduction, by PRR.
    prr_cwnd: u64,
    undo: Undo,
    /// Something was delivered since the last timeout.
    progressed: bool,

    /// The SACK blocks of the last ACK.
    last_sack: SackBlocks,
    /// CE marks that the receiver has reported (accurate ECN), packets and bytes.
    ce_seen: (u64, u64),
    /// Of those packets, how many have not been reported to the law yet.
    ce_untold: u64,
    /// ECE counts on ACKs above this sequence number; CWR has arrived then (classic ECN).
    ece_from: u64,
    cwr_due: bool,

    /// One segment leaves, whatever the window says.
    forced: bool,
    probe_due: bool,
    rto: Option<Time>,
    pto: Option<Time>,
    reo: Option<Time>,
    release: Option<Time>,
    /// The persist timer: the receiver's window has no room for a segment, and nothing is in flight.
    persist: Option<Time>,
    piece_due: bool,

    latest_rtt: Option<u64>,
    latest_delay: Option<i64>,
    latest_rate: Option<RateSample>,
    statistics: Statistics,
}

impl Sender {
    /// The sender of a connection with these settings, under this law: see [`law`](crate::tcp::law).
    pub fn new(settings: &Tcp, law: Box<dyn CongestionControl>) -> Self {
        Self::with_law(settings, law, settings.law.ecn_use())
    }

    pub(super) fn with_law(settings: &Tcp, law: Box<dyn CongestionControl>, ecn: EcnUse) -> Self {
        Self {
            window: law.window(),
            law,
            ecn,
            // A receiver's window below one segment is one small segment.
            mss: u64::from(settings.mss).min(settings.receive_window).max(1),
            initial_window: u64::from(settings.mss) * u64::from(settings.initial_window),
            paced: settings.pacing,
            validate_window: settings.validate_window,
            handshake: Handshake::Due,
            written: 0,
            closed: false,
            fin_sent: false,
            right_edge: 0,
            echo: Time::ZERO,
            last_sent: Time::ZERO,
            idle_since: None,
            board: Scoreboard::default(),
            rtt: Rtt::new(settings.rto_min),
            rack: Rack::default(),
            tlp: Tlp::default(),
            rate: Rate::default(),
            pacer: Pacer::default(),
            usage: Usage::default(),
            episode: Episode::Open,
            prr: None,
            prr_cwnd: 0,
            undo: Undo::default(),
            progressed: true,
            last_sack: SackBlocks::default(),
            ce_seen: (0, 0),
            ce_untold: 0,
            ece_from: 0,
            cwr_due: false,
            forced: false,
            probe_due: false,
            rto: None,
            pto: None,
            reo: None,
            release: None,
            persist: None,
            piece_due: false,
            latest_rtt: None,
            latest_delay: None,
            latest_rate: None,
            statistics: Statistics::default(),
        }
    }

    /// The application has so many more bytes to send. [`u64::MAX`]: more than will ever be sent.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.closed, "the stream is closed");
        // Half of the numbers is enough for a stream without end.
        self.written = self.written.saturating_add(bytes).min(u64::MAX / 2);
    }

    /// The application takes back what has not been sent yet.
    pub fn discard_unsent(&mut self) {
        if !self.fin_sent {
            self.written = self.board.nxt();
        }
    }

    /// The stream ends after what is written.
    pub const fn close(&mut self) {
        self.closed = true;
    }

    /// The connection is over: its law may be one that others share.
    pub fn leave(&mut self) {
        self.law.on_closed();
    }

    /// Whether all is sent and acknowledged, with the end of the stream.
    pub fn is_finished(&self) -> bool {
        self.fin_sent && self.board.una() == self.board.nxt()
    }

    /// Payload bytes written and not sent yet.
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.board.nxt())
    }

    /// Payload bytes acknowledged without a gap.
    pub fn acked_bytes(&self) -> u64 {
        self.board.una().min(self.written)
    }

    /// Bytes in flight: sent, and neither delivered nor taken for lost.
    pub const fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// How much may be in flight now, bytes: the law's window, or what PRR allows on the way down to it.
    pub fn cwnd(&self) -> u64 {
        if self.prr.is_some() { self.prr_cwnd } else { self.window }
    }

    /// The slow-start threshold, bytes, if the law has one and it is set.
    pub fn ssthresh(&self) -> Option<u64> {
        self.law.ssthresh()
    }

    /// Whether the window was reduced less than a round trip ago, or losses are being repaired.
    pub fn is_recovering(&self) -> bool {
        self.episode != Episode::Open
    }

    /// The newest round-trip sample that is not of a retransmission.
    pub fn latest_rtt(&self) -> Option<Duration> {
        self.latest_rtt.map(Duration::from_nanos)
    }

    /// The smoothed round-trip time (RFC 6298).
    pub fn srtt(&self) -> Option<Duration> {
        Some(self.rtt.srtt()).filter(|srtt| *srtt > 0).map(Duration::from_nanos)
    }

    /// The smallest round-trip sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.rtt.min().map(Duration::from_nanos)
    }

    /// The newest one-way delay, nanoseconds: see [`Acked::one_way_delay`].
    pub const fn latest_one_way_delay(&self) -> Option<i64> {
        self.latest_delay
    }

    /// The newest sample of the delivery rate.
    pub const fn latest_rate(&self) -> Option<RateSample> {
        self.latest_rate
    }

    /// The retransmission timeout as it is now.
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// The rate at which segments leave, bytes per second; `None`: as the window allows.
    pub fn pacing_rate(&self) -> Option<u64> {
        let srtt = self.rtt.srtt();
        let per_round_trip = |bytes: u64| (u128::from(bytes) * 1_000_000_000 / u128::from(srtt)) as u64;
        let chosen = self.law.pacing_rate().or_else(|| {
            if !self.paced || srtt == 0 {
                return None;
            }
            // As Linux (`tcp_update_pacing_rate`): twice the window's rate while it may double, 1.2 times later.
            let doubles = self.law.ssthresh().is_none_or(|ssthresh| self.window < ssthresh / 2);
            let percent = if doubles { 200 } else { 120 };
            Some(per_round_trip(self.window.max(self.mss)).saturating_mul(percent) / 100)
        });
        // A window below one segment is one segment every so many round trips.
        if self.window < self.mss && srtt > 0 {
            let crawl = per_round_trip(self.window);
            return Some(chosen.map_or(crawl, |rate| rate.min(crawl)).max(1));
        }
        chosen.map(|rate| rate.max(1))
    }

    /// The control law.
    pub fn law(&self) -> &dyn CongestionControl {
        &*self.law
    }

    /// Gives the law its price weight, in (0, 1], if it takes one.
    pub fn set_weight(&mut self, weight: f64) {
        self.set_weight_and_ratio(weight, 1.0);
    }

    /// The same with the ratio of its prices to those of others; see [`Weighted`](lowtide_cc::Weighted).
    pub fn set_weight_and_ratio(&mut self, weight: f64, ratio: f64) {
        if let Some(law) = self.law.weighted() {
            law.set_weight_and_ratio(weight, ratio);
        }
        self.refresh_window();
    }

    /// What was counted.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Asserts what must hold after each call of `transmit` that returned `None`.
    #[cfg(test)]
    pub(super) fn check(&self) {
        self.board.check();
        let waits = self.rto.is_some() || self.release.is_some();
        assert!(waits || self.board.una() == self.board.nxt(), "outstanding data needs a timer");
        assert!(self.board.in_flight() == 0 || self.rto.is_some(), "data in flight needs the retransmission timer");
        assert_eq!(self.prr.is_some(), self.episode.is_reducing() && !self.law.steers_recovery());
        assert_eq!(self.window, self.law.window());
    }

    /// The law was called: its window may have changed.
    fn refresh_window(&mut self) {
        self.window = self.law.window();
    }
}

/// The time as the laws count it.
const fn law_time(now: Time) -> lowtide_cc::Time {
    lowtide_cc::Time::from_nanos(now.as_nanos())
}
