// SPDX-License-Identifier: MIT OR Apache-2.0
//! How losses and marks bound the model in versions 2 and 3 (draft-ietf-ccwg-bbr, sections 5.5.10 and 5.5.11).
//!
//! `inflight_hi` (the draft's `inflight_longterm`) is what a probe found to be too much; `bw_lo` and `inflight_lo` (its
//! `…_shortterm`) follow congestion between the probes, and the next probe forgets them.

use super::{Recovery, Sample, Version, machine::Bbr, machine::State};
use crate::{Ack, Lost};

/// The bounds, and the signals that set them.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Bounds {
    /// Segments per second; version 3 has no `bw_hi`.
    pub(in crate::law) bw_lo: f64,
    pub(in crate::law) bw_hi: f64,
    /// Segments.
    pub(in crate::law) inflight_lo: f64,
    pub(in crate::law) inflight_hi: f64,
    /// The best rate and volume delivered in this round.
    pub(in crate::law) bw_latest: f64,
    pub(in crate::law) inflight_latest: f64,
    pub(in crate::law) loss_in_round: bool,
    pub(in crate::law) ecn_in_round: bool,
    pub(in crate::law) loss_in_cycle: bool,
    pub(in crate::law) ecn_in_cycle: bool,
    /// Bytes delivered at which the round that is watched for losses ends.
    loss_round_delivered: u64,
    /// ACKs with losses in this round of Startup.
    loss_events: u32,
    /// Rounds of Startup with many marks in a row.
    startup_ecn_rounds: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        let none = f64::INFINITY;
        Self {
            bw_lo: none,
            bw_hi: none,
            inflight_lo: none,
            inflight_hi: none,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_in_round: false,
            ecn_in_round: false,
            loss_in_cycle: false,
            ecn_in_cycle: false,
            loss_round_delivered: 1, // from the end of the first flight
            loss_events: 0,
            startup_ecn_rounds: 0,
        }
    }
}

impl Bounds {
    /// `ResetShortTermModel`.
    pub(in crate::law) const fn reset_short_term(&mut self) {
        self.bw_lo = f64::INFINITY;
        self.inflight_lo = f64::INFINITY;
    }

    /// `ResetCongestionSignals`.
    pub(in crate::law) const fn reset_signals(&mut self) {
        self.loss_in_round = false;
        self.ecn_in_round = false;
        self.loss_in_cycle = false;
        self.ecn_in_cycle = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }
}

/// What an episode of losses has changed, to restore it if they were spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::law) struct Undo {
    bw_lo: f64,
    inflight_lo: f64,
    inflight_hi: f64,
    /// The state that the losses ended (version 3).
    state: Option<State>,
    /// Whether this was kept for the present episode, so that its later losses do not overwrite it.
    pub(in crate::law) kept: bool,
}

impl Bbr {
    /// `InflightWithHeadroom`: the bound, less room for competing flows.
    pub(in crate::law) fn inflight_with_headroom(&self) -> f64 {
        let hi = self.bounds.inflight_hi;
        if hi.is_infinite() {
            return hi;
        }
        (hi - (self.settings.headroom * hi).max(1.0)).max(self.settings.min_pipe_cwnd)
    }

    /// `UpdateLatestDeliverySignals`. Returns whether the round that is watched for losses is over.
    pub(in crate::law) fn update_latest(&mut self, sample: &Sample, acked: f64) -> bool {
        if acked <= 0.0 {
            return false;
        }
        self.bounds.bw_latest = self.bounds.bw_latest.max(sample.bw);
        self.bounds.inflight_latest = self.bounds.inflight_latest.max(sample.delivered);
        let over = sample.prior_delivered >= self.bounds.loss_round_delivered;
        if over {
            self.bounds.loss_round_delivered = self.rounds.delivered;
        }
        over
    }

    /// `UpdateCongestionSignals`: the best rate, and once a round the effect of losses and marks.
    pub(in crate::law) fn update_congestion_signals(&mut self, sample: &Sample, ack: &Ack, round_over: bool) {
        if ack.packets == 0 {
            return;
        }
        if !sample.app_limited || sample.bw >= self.max_bw.get() {
            self.max_bw.take(sample.bw);
        }
        if round_over {
            if !self.state.is_probing_bw() {
                self.adapt_lower_bounds();
            }
            self.bounds.loss_in_round = false;
            self.bounds.ecn_in_round = false;
        }
    }

    /// The part of a bound that marks leave.
    fn ecn_cut(&self) -> f64 {
        1.0 - self.marks.alpha * self.settings.ecn_factor
    }

    /// `AdaptLowerBoundsFromCongestion`: towards what was delivered recently, but by at most `beta` per round.
    pub(in crate::law) fn adapt_lower_bounds(&mut self) {
        let marked = self.bounds.ecn_in_round && self.settings.ecn_factor > 0.0;
        let lost = self.bounds.loss_in_round;
        let (cut, beta) = (self.ecn_cut(), self.settings.beta);
        let marks_lower_bw = marked && matches!(self.settings.version, Version::V2 { ecn_bw_lo: true, .. });
        let (max_bw, cwnd) = (self.max_bw.get(), self.cwnd);
        let bounds = &mut self.bounds;
        if (lost || marks_lower_bw) && bounds.bw_lo.is_infinite() {
            bounds.bw_lo = max_bw;
        }
        if (lost || marked) && bounds.inflight_lo.is_infinite() {
            bounds.inflight_lo = cwnd;
        }
        let ecn_bw_lo = if marks_lower_bw { cut * bounds.bw_lo } else { f64::INFINITY };
        let ecn_inflight_lo = if marked { cut * bounds.inflight_lo } else { f64::INFINITY };
        if lost {
            bounds.bw_lo = bounds.bw_latest.max(beta * bounds.bw_lo);
            bounds.inflight_lo = bounds.inflight_latest.max(beta * bounds.inflight_lo);
        }
        bounds.bw_lo = bounds.bw_lo.min(ecn_bw_lo);
        bounds.inflight_lo = bounds.inflight_lo.min(ecn_inflight_lo);
    }

    /// `IsInflightTooHigh`: too many losses, or marks.
    fn is_too_high(&self, sample: &Sample) -> bool {
        let marks = sample.marked > 0.0
            && self.marks.eligible
            && self.settings.ecn_thresh > 0.0
            && sample.marked >= self.settings.ecn_thresh * sample.delivered;
        sample.lost > self.settings.loss_thresh * sample.tx_in_flight || marks
    }

    /// `HandleInflightTooHigh`: a probe went too high. Once per probe.
    fn handle_too_high(&mut self, sample: &Sample) {
        self.cycle.prev_too_high = true;
        self.cycle.probe_samples = false;
        if !sample.app_limited {
            self.bounds.inflight_hi = sample.tx_in_flight.max(self.settings.beta * self.target_inflight());
            let lower_bw = matches!(self.settings.version, Version::V2 { ecn_bw_hi: true, .. });
            if lower_bw && self.marks.eligible && !self.cycle.got_ok_sample {
                let hi = self.bounds.bw_hi;
                self.bounds.bw_hi = if hi.is_finite() { hi } else { self.max_bw.get() } * self.ecn_cut();
            }
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down();
        }
    }

    /// `AdaptLongTermModel`: the result of a probe. Returns whether that decided the state.
    pub(in crate::law) fn adapt_upper_bounds(&mut self, ack: &Ack, sample: &Sample) -> bool {
        if self.end_of_feedback(sample) {
            return true;
        }
        if self.is_too_high(sample) {
            if self.cycle.probe_samples {
                self.handle_too_high(sample);
            }
            return false;
        }
        self.cycle.got_ok_sample |= self.cycle.probe_samples;
        if sample.bw > self.bounds.bw_hi {
            self.bounds.bw_hi = sample.bw;
        }
        if self.bounds.inflight_hi.is_finite() {
            // To survive random losses, the bound rises whenever more proves to be safe.
            self.bounds.inflight_hi = self.bounds.inflight_hi.max(sample.tx_in_flight);
            if self.state == State::Up {
                self.probe_upward(ack);
            }
        }
        false
    }

    /// `CheckStartupHighLoss`, at the end of each round of recovery.
    pub(in crate::law) fn check_startup_losses(&mut self, sample: &Sample, ack: &Ack, round_over: bool) {
        if self.full.reached {
            return;
        }
        self.bounds.loss_events += u32::from(ack.lost > 0);
        if round_over {
            let enough = self.settings.full_loss_count;
            let many = enough > 0 && self.bounds.loss_events >= enough && self.recovery == Recovery::Fast;
            if many && self.is_too_high(sample) {
                self.end_startup();
            }
            self.bounds.loss_events = 0;
        }
    }

    /// Startup ends after some rounds with many marks (Linux `bbr_check_ecn_too_high_in_startup`).
    pub(in crate::law) fn check_startup_marks(&mut self, share: f64) {
        if self.full.reached || self.settings.full_ecn_count == 0 || self.settings.ecn_thresh <= 0.0 {
            return;
        }
        let many = share >= self.settings.ecn_thresh;
        self.bounds.startup_ecn_rounds = if many { self.bounds.startup_ecn_rounds + 1 } else { 0 };
        if self.bounds.startup_ecn_rounds >= self.settings.full_ecn_count {
            self.end_startup();
        }
    }

    /// The queue is too long for Startup to go on.
    fn end_startup(&mut self) {
        self.full.reached = true;
        self.undo.state = Some(State::Startup);
        let bdp = self.inflight(self.max_bw.get(), 1.0);
        self.bounds.inflight_hi = match self.settings.version {
            Version::V2 { .. } => bdp,
            Version::V3 { .. } => bdp.max(self.bounds.inflight_latest),
        };
    }

    /// `NoteLoss`: the round that begins with the first loss is observed, and the state before the episode kept.
    pub(in crate::law) fn note_loss(&mut self) {
        if !self.bounds.loss_in_round {
            self.bounds.loss_round_delivered = self.rounds.delivered;
            if !self.undo.kept {
                self.save_cwnd();
                let Bounds { bw_lo, inflight_lo, inflight_hi, .. } = self.bounds;
                self.undo = Undo { bw_lo, inflight_lo, inflight_hi, state: None, kept: true };
            }
        }
        self.bounds.loss_in_round = true;
        self.bounds.loss_in_cycle = true;
    }

    /// `HandleLostPacket`: if a probe sent it, was that too much, and from where on?
    pub(in crate::law) fn on_lost_segment(&mut self, lost: &Lost) {
        self.note_loss();
        self.cycle.now = lost.now;
        if !self.cycle.probe_samples {
            return;
        }
        let sample = Sample {
            tx_in_flight: self.segments(lost.in_flight_at_send),
            lost: self.segments(lost.lost_since_send),
            app_limited: lost.app_limited,
            ..Sample::default()
        };
        if self.is_too_high(&sample) {
            let tx_in_flight = self.inflight_at_loss(&sample, self.segments(lost.bytes));
            self.handle_too_high(&Sample { tx_in_flight, ..sample });
        }
    }

    /// `InflightAtLoss`: the volume in flight at which losses crossed the threshold.
    pub(in crate::law) fn inflight_at_loss(&self, sample: &Sample, size: f64) -> f64 {
        let thresh = self.settings.loss_thresh;
        let inflight_prev = (sample.tx_in_flight - size).max(0.0);
        let lost_prev = (sample.lost - size).max(0.0);
        let lost_prefix = (thresh * inflight_prev - lost_prev) / (1.0 - thresh);
        inflight_prev + lost_prefix.max(0.0)
    }

    /// `HandleSpuriousLossDetection`: undoes the effect of the losses.
    pub(in crate::law) fn undo_losses(&mut self) {
        let undo = std::mem::take(&mut self.undo);
        self.bounds.loss_in_round = false;
        self.full.look_again(0.0);
        self.bounds.bw_lo = self.bounds.bw_lo.max(undo.bw_lo);
        self.bounds.inflight_lo = self.bounds.inflight_lo.max(undo.inflight_lo);
        self.bounds.inflight_hi = self.bounds.inflight_hi.max(undo.inflight_hi);
        if matches!(self.settings.version, Version::V2 { .. }) {
            return;
        }
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => self.start_refill(0),
            _ => {}
        }
    }
}
