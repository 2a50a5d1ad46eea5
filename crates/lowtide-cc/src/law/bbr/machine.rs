// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state machine of versions 2 and 3.
//!
//! On each ACK the model of the path is updated, then the state, then rate and window follow from both
//! (draft-ietf-ccwg-bbr, section 5.2.3). How ProbeBW cycles is in `probe_bw`, how losses and marks bound the model in
//! `bounds`.

use super::{
    ExtraAcked, FullPipe, Pacing, ProbeRtt, Quantum, Recovery, Rounds, Sample, Settings, Version,
    bounds::Undo,
    ecn::Marks,
    filter::TwoCycles,
    in_flight_after,
    probe_bw::{AckPhase, Cycle},
};
use crate::{
    Ack, Congestion, CongestionControl, Flow, Lost, Random, Reaction, Recovered, Restart, Signal,
    law::bbr::bounds::Bounds,
};

/// The states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The rate doubles each round until full bandwidth is reached.
    Startup = 0,
    /// The queue of Startup is drained.
    Drain = 1,
    /// ProbeBW: slower than the path delivers, until the queue is drained and there is headroom.
    Down = 2,
    /// ProbeBW: as fast as the path delivers.
    Cruise = 3,
    /// ProbeBW: one round that fills the BDP, without a queue.
    Refill = 4,
    /// ProbeBW: faster, to find out whether there is more.
    Up = 5,
    /// ProbeRTT: little in flight, to measure the minimum RTT.
    ProbeRtt = 6,
}

impl State {
    pub(crate) const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Whether the flow sends more than the model allows (`IsProbingBW`).
    pub(crate) const fn is_probing_bw(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// A flow under version 2 or 3.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    pub(in crate::law) settings: Settings,
    mss: f64,
    initial_window: f64,
    pub(in crate::law) random: Random,
    pub(in crate::law) state: State,
    pub(in crate::law) cwnd: f64,
    /// The window before recovery or ProbeRTT lowered it.
    prior_cwnd: f64,
    pub(in crate::law) recovery: Recovery,
    pub(in crate::law) idle_restart: bool,
    /// The round in which Drain began.
    drain_start_round: u64,
    pub(in crate::law) rounds: Rounds,
    pub(in crate::law) max_bw: TwoCycles,
    pub(in crate::law) full: FullPipe,
    pub(in crate::law) probe_rtt: ProbeRtt,
    extra_acked: ExtraAcked,
    pub(in crate::law) bounds: Bounds,
    pub(in crate::law) cycle: Cycle,
    pub(in crate::law) marks: Marks,
    pacing: Pacing,
    pub(in crate::law) undo: Undo,
}

impl Bbr {
    pub(crate) fn new(settings: Settings, flow: &Flow) -> Self {
        let s = &settings;
        let initial_window = f64::from(flow.initial_window);
        // If ties count, a path that is empty now and then needs no ProbeRTT (Linux); the draft's comparison is strict.
        let ties = matches!(s.version, Version::V2 { .. });
        Self {
            mss: f64::from(flow.mss),
            initial_window,
            random: Random::new(flow.seed),
            state: State::Startup,
            cwnd: initial_window,
            prior_cwnd: 0.0,
            recovery: Recovery::None,
            idle_restart: false,
            drain_start_round: 0,
            rounds: Rounds::default(),
            max_bw: TwoCycles::default(),
            full: FullPipe::new(s.full_bw_thresh, s.full_bw_count),
            probe_rtt: ProbeRtt::new(s.min_rtt_window, s.probe_rtt_interval, s.probe_rtt_duration, ties),
            extra_acked: ExtraAcked::new(s.extra_acked_window),
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            marks: Marks::new(s.ecn, s.ecn_max_rtt, s.ecn_alpha_gain, s.ecn_alpha_init),
            pacing: Pacing::new(s.startup_pacing_gain, s.pacing_margin, initial_window),
            undo: Undo::default(),
            settings,
        }
    }

    /// The present estimate of the path's rate, segments per second (`BBR.bw`).
    pub(in crate::law) fn bw(&self) -> f64 {
        self.max_bw.get().min(self.bounds.bw_lo).min(self.bounds.bw_hi)
    }

    /// `gain` times the BDP at `bw`, segments (`BDPMultiple`).
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        match self.probe_rtt.min_rtt {
            Some(min_rtt) => gain * bw * min_rtt.as_secs_f64(),
            None => self.initial_window,
        }
    }

    /// Room for what the hosts at both ends hold (`QuantizationBudget`).
    fn budget(&self, inflight: f64) -> f64 {
        let Settings { quantum, quantum_rtt, min_pipe_cwnd, .. } = self.settings;
        let single = matches!(self.settings.version, Version::V2 { .. });
        let quantum = Quantum { time: quantum, rtt: quantum_rtt, single };
        let offload = 3.0 * quantum.segments(self.pacing.rate(), self.probe_rtt.min_rtt, self.mss);
        let up = if self.state == State::Up { 2.0 } else { 0.0 };
        inflight.max(offload).max(min_pipe_cwnd) + up
    }

    /// `gain` times the BDP at `bw`, with room for the hosts (`Inflight`).
    pub(in crate::law) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.budget(self.bdp(bw, gain))
    }

    /// `TargetInflight`: what should be in flight.
    pub(in crate::law) fn target_inflight(&self) -> f64 {
        self.inflight(self.bw(), 1.0).min(self.cwnd)
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bw(), self.settings.probe_rtt_cwnd_gain).max(self.settings.min_pipe_cwnd)
    }

    pub(in crate::law) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.settings.startup_pacing_gain,
            State::Drain => self.settings.drain_pacing_gain,
            State::Down => self.settings.probe_down_pacing_gain,
            State::Up => self.settings.probe_up_pacing_gain,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    pub(in crate::law) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => self.settings.startup_cwnd_gain,
            State::Down | State::Cruise | State::Refill => self.settings.cwnd_gain,
            State::Up => self.settings.probe_up_cwnd_gain,
            State::ProbeRtt => 1.0,
        }
    }

    pub(in crate::law) fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mss
    }

    /// Remembers the latest window that neither recovery nor ProbeRTT had lowered (`SaveCwnd`).
    pub(in crate::law) fn save_cwnd(&mut self) {
        self.prior_cwnd = match self.recovery {
            Recovery::None if self.state != State::ProbeRtt => self.cwnd,
            _ => self.prior_cwnd.max(self.cwnd),
        };
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bound_cwnd();
    }

    /// Version 2 compares the best rates of the cycles, version 3 those of rounds, also after Startup.
    fn check_full_pipe(&mut self, sample: &Sample) {
        if sample.app_limited {
            return;
        }
        let start = self.rounds.start;
        match self.settings.version {
            Version::V2 { .. } if start && !self.full.reached => self.full.check(self.max_bw.get(), true),
            Version::V2 { .. } => {}
            Version::V3 { .. } => self.full.check(sample.bw, start),
        }
    }

    fn check_drain(&mut self, in_flight: f64) {
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count;
            self.bounds.reset_signals();
        }
        if self.state == State::Drain {
            let overdue = match self.settings.version {
                Version::V2 { .. } => false,
                Version::V3 { drain_rounds } => self.rounds.count > self.drain_start_round + u64::from(drain_rounds),
            };
            if overdue || in_flight <= self.inflight(self.max_bw.get(), 1.0) {
                self.start_down();
            }
        }
    }

    fn check_probe_rtt(&mut self, ack: &Ack) {
        let due = self.probe_rtt.sample(ack.now, ack.rtt);
        if due && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.cycle.phase = AckPhase::Stopping;
            self.probe_rtt.enter(&self.rounds);
            self.rounds.restart();
        }
        if self.state == State::ProbeRtt {
            let target = (self.probe_rtt_cwnd() * self.mss) as u64;
            if self.probe_rtt.hold(ack.now, in_flight_after(ack), target, &mut self.rounds) {
                self.exit_probe_rtt();
            }
        }
        if ack.bytes > 0 {
            self.idle_restart = false;
        }
    }

    fn exit_probe_rtt(&mut self) {
        self.bounds.reset_short_term();
        if self.full.reached {
            // More in flight risks a loss, so the time to the next probe starts over; the queue is empty already.
            self.start_down();
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
        self.restore_cwnd();
    }

    fn set_cwnd(&mut self, acked: f64) {
        if acked > 0.0 {
            let extra = if self.settings.extra_acked_gain > 0.0 {
                let max = self.bw() * self.settings.extra_acked_max.as_secs_f64();
                (self.settings.extra_acked_gain * self.extra_acked.get()).min(max)
            } else {
                0.0
            };
            let target = self.budget(self.bdp(self.bw(), self.cwnd_gain()) + extra);
            if self.full.reached {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || self.cwnd < 2.0 * self.initial_window {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(self.settings.min_pipe_cwnd);
        }
        self.bound_cwnd();
    }

    /// `BoundCwndForProbeRTT` and `BoundCwndForModel`.
    fn bound_cwnd(&mut self) {
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_hi,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        self.cwnd = self.cwnd.min(cap.min(self.bounds.inflight_lo).max(self.settings.min_pipe_cwnd));
    }

    /// The model and the state follow a sample.
    fn on_sample(&mut self, ack: &Ack, sample: &Sample) {
        let acked = f64::from(ack.packets);
        let loss_round_start = self.update_latest(sample, acked);
        self.update_congestion_signals(sample, ack, loss_round_start);
        if acked > 0.0 {
            let (start, short, bw) = (self.rounds.start, !self.full.reached, self.bw());
            self.extra_acked.on_ack(ack.now, start, short, acked, bw, self.cwnd);
        }
        self.check_startup_losses(sample, ack, loss_round_start);
        self.check_full_pipe(sample);
        self.check_drain(self.segments(in_flight_after(ack)));
        self.update_cycle(ack, sample);
        if loss_round_start {
            self.bounds.bw_latest = sample.bw;
            self.bounds.inflight_latest = sample.delivered;
        }
        self.bounds.loss_in_cycle |= sample.lost > 0.0;
        self.bounds.ecn_in_cycle |= sample.marked > 0.0;
    }
}

impl CongestionControl for Bbr {
    fn on_lost(&mut self, lost: &Lost) {
        self.on_lost_segment(lost);
    }

    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        if ack.lost > 0 {
            self.note_loss();
        } else if self.recovery == Recovery::None {
            self.undo.kept = false;
        }
        self.cycle.now = ack.now;
        self.rounds.on_ack(ack);
        self.marks.on_ack(ack);
        self.pacing.on_rtt(self.cwnd, ack.srtt);
        if self.rounds.start {
            self.cycle.rounds_since_probe = self.cycle.rounds_since_probe.saturating_add(1);
            if let Some(share) = self.marks.on_round(self.probe_rtt.min_rtt) {
                self.check_startup_marks(share);
            }
        }
        self.bounds.ecn_in_round |= self.marks.eligible && ack.marked > 0;
        if let Some(sample) = Sample::new(ack, self.mss) {
            let sample = self.probe_rtt.mark(sample);
            self.on_sample(ack, &sample);
        }
        self.check_probe_rtt(ack);
        self.pacing.set(self.bw(), self.pacing_gain(), self.full.reached);
        self.set_cwnd(f64::from(ack.packets));
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.signal {
            // Marks count one by one, as they arrive with ACKs.
            Signal::Ecn | Signal::Phantom => {}
            Signal::Loss => {
                self.note_loss();
                self.recovery = Recovery::Fast;
            }
            Signal::Timeout => {
                self.note_loss();
                self.save_cwnd();
                self.recovery = Recovery::Timeout;
                self.full.look_again(0.0);
                if !self.state.is_probing_bw() && self.bounds.inflight_lo.is_infinite() {
                    // The window is about to be reduced; its rest at the end of the round says nothing.
                    self.bounds.inflight_lo = self.cwnd.max(self.prior_cwnd);
                }
                self.cwnd = 1.0;
            }
        }
    }

    fn on_recovered(&mut self, _: &Recovered) {
        if self.recovery != Recovery::None {
            self.recovery = Recovery::None;
            self.restore_cwnd();
        }
    }

    fn on_spurious(&mut self) {
        self.undo_losses();
        self.recovery = Recovery::None;
        self.restore_cwnd();
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.idle_restart = true;
        self.cycle.now = restart.now;
        self.extra_acked.restart(restart.now);
        if self.state.is_probe_bw() {
            self.pacing.set(self.bw(), 1.0, self.full.reached);
        } else if self.state == State::ProbeRtt && self.probe_rtt.is_over(restart.now) {
            self.exit_probe_rtt();
        }
    }

    fn window(&self) -> u64 {
        (self.cwnd * self.mss) as u64
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing.bytes_per_second(self.mss))
    }

    fn steers_recovery(&self) -> bool {
        true
    }

    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let mbps = self.mss * 8e-6;
        show("state", f64::from(self.state as u8));
        show("round", self.rounds.count as f64);
        show("max_bw_mbps", self.max_bw.get() * mbps);
        show("bw_mbps", self.bw() * mbps);
        show("pacing_gain", self.pacing_gain());
        show("cwnd_gain", self.cwnd_gain());
        show("extra_acked", self.extra_acked.get());
        show("ecn_alpha", self.marks.alpha);
        if let Some(min_rtt) = self.probe_rtt.min_rtt {
            show("min_rtt", min_rtt.as_secs_f64() * 1e3);
        }
        for (name, bound) in [("inflight_hi", self.bounds.inflight_hi), ("inflight_lo", self.bounds.inflight_lo)] {
            if bound.is_finite() {
                show(name, bound);
            }
        }
    }
}
