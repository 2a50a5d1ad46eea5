// SPDX-License-Identifier: MIT OR Apache-2.0
//! Episodes: from a reduction of the window until all that was outstanding then is acknowledged.

use super::{Prr, Sender, law_time};
use lowtide_cc::{Congestion, EcnUse, Recovered, Signal};
use lowtide_net::Time;

/// The episode that the sender is in. `recover` is `snd_nxt` at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Episode {
    /// None.
    Open,
    /// The window is coming down without a loss (Linux: CWR).
    Reduction { recover: u64 },
    /// Fast recovery.
    Recovery { recover: u64 },
    /// Recovery from a timeout, by slow start (Linux: Loss).
    Timeout { recover: u64 },
}

/// Why an episode begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// What the law is notified of.
    Signal(Signal),
    /// The law has done it by itself.
    Law,
}

impl Episode {
    /// Whether the window is on its way down by PRR.
    pub(super) const fn is_reducing(self) -> bool {
        matches!(self, Self::Reduction { .. } | Self::Recovery { .. })
    }

    /// Whether losses are being repaired.
    pub(super) const fn is_repairing(self) -> bool {
        matches!(self, Self::Recovery { .. } | Self::Timeout { .. })
    }
}

impl Sender {
    /// An episode begins, with so much in flight before whatever began it.
    pub(super) fn begin(&mut self, now: Time, cause: Cause, in_flight: u64) {
        let recover = self.board.nxt();
        self.statistics.reductions += 1;
        if let Cause::Signal(signal) = cause {
            let (una, nxt) = (self.board.una(), recover);
            self.law.on_congestion(&Congestion { now: law_time(now), signal, una, nxt, in_flight });
        }
        self.refresh_window();
        self.episode = match cause {
            Cause::Signal(Signal::Loss) => Episode::Recovery { recover },
            Cause::Signal(Signal::Timeout) => Episode::Timeout { recover },
            Cause::Signal(Signal::Ecn | Signal::Phantom) | Cause::Law => Episode::Reduction { recover },
        };
        let walks = self.episode.is_reducing() && !self.law.steers_recovery();
        self.prr = walks.then(|| Prr::new(in_flight));
        if self.episode.is_repairing() {
            self.undo.start(self.board.una());
            self.tlp.cancel();
            self.pto = None;
        }
        if self.ecn == EcnUse::Classic {
            // RFC 3168, section 6.1.2: CWR on the next new segment, once the window is reduced for whatever reason.
            self.cwr_due = true;
            self.ece_from = recover;
        }
    }

    /// Whether all that was outstanding at the start of the episode is acknowledged. A mere reduction lasts until
    /// something above that is acknowledged, so that CWR has arrived (as in Linux).
    pub(super) fn is_over(&self) -> bool {
        let (una, nxt) = (self.board.una(), self.board.nxt());
        match self.episode {
            Episode::Open => false,
            Episode::Reduction { recover } => una > recover || una == nxt,
            Episode::Recovery { recover } | Episode::Timeout { recover } => una >= recover,
        }
    }

    /// The episode is over.
    pub(super) fn end(&mut self, now: Time) {
        if self.episode.is_repairing() {
            self.rack.on_recovered();
        }
        self.episode = Episode::Open;
        self.prr = None;
        self.law.on_recovered(&Recovered { now: law_time(now), una: self.board.una(), nxt: self.board.nxt() });
        self.refresh_window();
    }

    /// The recovery, be it over or not, was needless.
    pub(super) fn take_back(&mut self, now: Time) {
        self.undo.stop();
        self.statistics.spurious += 1;
        self.law.on_spurious();
        self.rack.on_reordering();
        if self.episode.is_repairing() {
            self.board.forgive();
            self.end(now);
            if self.rto.is_none() {
                self.restart_rto(now); // nothing was in flight, now something is again
            }
        }
        self.refresh_window();
    }

    /// Looks for losses, and enters fast recovery if there are any. Returns the bytes newly found lost.
    pub(super) fn detect_loss(&mut self, now: Time) -> u64 {
        let (min_rtt, srtt) = (self.rtt.min(), self.rtt.srtt());
        let reo_wnd = self.rack.reo_wnd(min_rtt, srtt, self.episode.is_repairing(), self.board.sacked_segments());
        let (lost, reo) = self.rack.detect_loss(now, reo_wnd, &mut self.board);
        self.reo = reo;
        self.tell_losses(now);
        lost
    }

    /// Tells the law of each segment that was found lost.
    pub(super) fn tell_losses(&mut self, now: Time) {
        for (bytes, sent, at_send) in self.board.take_newly_lost() {
            self.law.on_lost(&self.rate.on_lost(law_time(now), law_time(sent), bytes, &at_send));
        }
        self.refresh_window();
    }
}
