// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state machine of version 1.

use super::Parameters;
use crate::{
    Ack, Congestion, CongestionControl, Flow, Random, Reaction, Recovered, Restart, Signal, Time,
    law::bbr::{
        ExtraAcked, FullPipe, Pacing, Passage, Policer, ProbeRtt, Quantum, Recovery, Rounds, Sample, Verdict,
        WindowedMax, in_flight_after,
    },
};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Phases of the gain cycle of ProbeBW: one up, one down, the others even.
const CYCLE_LEN: u32 = 8;
/// The cycle starts at any of this many phases (all but the one down).
const CYCLE_RAND: f64 = 7.0;
/// In Startup the window grows whatever the model is until this many segments were delivered (`TCP_INIT_CWND`).
const INIT_CWND: f64 = 10.0;

/// The states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The rate doubles each round until full bandwidth is reached.
    Startup = 0,
    /// The queue of Startup is drained.
    Drain = 1,
    /// The gain cycles around 1.
    ProbeBw = 2,
    /// ProbeRTT: four segments in flight, to measure the minimum RTT.
    ProbeRtt = 3,
}

#[derive(Clone, Debug)]
pub(super) struct Bbr1 {
    parameters: Parameters,
    mss: f64,
    initial_window: f64,
    random: Random,
    state: State,
    /// The phase of the gain cycle: 0 is up, 1 is down.
    phase: u32,
    phase_start: Time,
    cwnd: f64,
    /// The window before recovery or ProbeRTT lowered it.
    prior_cwnd: f64,
    recovery: Recovery,
    /// The first round of recovery: as much may leave as is delivered.
    packet_conservation: bool,
    /// Segments in flight after the latest ACK, and how many it acknowledged.
    in_flight: f64,
    acked: f64,
    /// Whether the latest ACK reported the first loss, so that the window was saved.
    saved: bool,
    idle_restart: bool,
    rounds: Rounds,
    max_bw: WindowedMax,
    full: FullPipe,
    probe_rtt: ProbeRtt,
    extra_acked: ExtraAcked,
    policer: Policer,
    pacing: Pacing,
}

impl Bbr1 {
    pub(super) fn new(parameters: Parameters, flow: &Flow) -> Self {
        let p = &parameters;
        let initial_window = f64::from(flow.initial_window);
        Self {
            mss: f64::from(flow.mss),
            initial_window,
            random: Random::new(flow.seed),
            state: State::Startup,
            phase: 0,
            phase_start: Time::ZERO,
            cwnd: initial_window,
            prior_cwnd: 0.0,
            recovery: Recovery::None,
            packet_conservation: false,
            in_flight: 0.0,
            acked: 0.0,
            saved: false,
            idle_restart: false,
            rounds: Rounds::default(),
            max_bw: WindowedMax::new(p.bw_window),
            full: FullPipe::new(p.full_bw_thresh, p.full_bw_count),
            probe_rtt: ProbeRtt::new(p.min_rtt_window, p.min_rtt_window, p.probe_rtt_duration, false),
            extra_acked: ExtraAcked::new(p.extra_acked_window),
            policer: Policer::default(),
            pacing: Pacing::new(p.high_gain, p.pacing_margin, initial_window),
            parameters,
        }
    }

    /// The rate in use, segments per second.
    fn bw(&self) -> f64 {
        self.policer.bw().unwrap_or(self.max_bw.get())
    }

    /// `gain` times the BDP at `bw`, segments.
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        match self.probe_rtt.min_rtt {
            Some(min_rtt) => gain * bw * min_rtt.as_secs_f64(),
            None => self.initial_window,
        }
    }

    /// With room for what the hosts at both ends hold, and even, for receivers that acknowledge every other segment.
    fn budget(&self, inflight: f64) -> f64 {
        let quantum = Quantum { time: self.parameters.quantum, rtt: Duration::ZERO, single: true };
        let offload = 3.0 * quantum.segments(self.pacing.rate(), None, self.mss);
        let up = if self.state == State::ProbeBw && self.phase == 0 { 2.0 } else { 0.0 };
        2.0 * libm::ceil(0.5 * (inflight + offload)) + up
    }

    fn inflight(&self, gain: f64) -> f64 {
        self.budget(self.bdp(self.max_bw.get(), gain))
    }

    fn pacing_gain(&self) -> f64 {
        match (self.state, self.phase) {
            (State::Startup, _) => self.parameters.high_gain,
            (State::Drain, _) => self.parameters.drain_gain,
            (State::ProbeBw, _) if self.policer.bw().is_some() => 1.0,
            (State::ProbeBw, 0) => self.parameters.probe_up_gain,
            (State::ProbeBw, 1) => self.parameters.probe_down_gain,
            _ => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => self.parameters.high_gain,
            State::ProbeBw => self.parameters.cwnd_gain,
            State::ProbeRtt => 1.0,
        }
    }

    /// The rate, the maximum over the latest rounds. An application-limited sample counts if it is greater.
    fn update_bw(&mut self, ack: &Ack, sample: &Sample) {
        if self.rounds.start {
            self.packet_conservation = false;
        }
        self.look_for_policer(ack.now, f64::from(ack.packets), ack.lost, self.rounds.start, sample.app_limited);
        if !sample.app_limited || sample.bw >= self.max_bw.get() {
            self.max_bw.take(self.rounds.count, sample.bw);
        }
    }

    fn look_for_policer(&mut self, now: Time, delivered: f64, lost: u64, round_start: bool, app_limited: bool) {
        if !self.parameters.policer {
            return;
        }
        let lost = lost as f64 / self.mss;
        let probe_bw = self.state == State::ProbeBw;
        let passage = Passage { now, delivered, lost, round_start, app_limited, probe_bw };
        if self.policer.on_ack(&passage, self.mss) == Verdict::ProbeAgain {
            self.start_probe_bw(now);
        }
    }

    /// The gain cycle starts at a random phase, but not with the one down.
    fn start_probe_bw(&mut self, now: Time) {
        self.state = State::ProbeBw;
        let skipped = (self.random.uniform() * CYCLE_RAND) as u32;
        self.phase = (CYCLE_LEN - skipped) % CYCLE_LEN;
        self.phase_start = now;
    }

    /// A phase lasts for a minimum RTT. The phase up lasts until that much more is in flight or is lost, the phase down
    /// until the queue is drained.
    fn update_phase(&mut self, ack: &Ack) {
        if self.state != State::ProbeBw {
            return;
        }
        let full_length = ack.now > self.phase_start + self.probe_rtt.min_rtt.unwrap_or_default();
        let in_flight = ack.in_flight as f64 / self.mss;
        let gain = self.pacing_gain();
        let over = if gain > 1.0 {
            full_length && (ack.lost > 0 || in_flight >= self.inflight(gain))
        } else if gain < 1.0 {
            full_length || in_flight <= self.inflight(1.0)
        } else {
            full_length
        };
        if over {
            self.phase = (self.phase + 1) % CYCLE_LEN;
            self.phase_start = ack.now;
        }
    }

    fn check_drain(&mut self, ack: &Ack) {
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain;
        }
        if self.state == State::Drain && self.in_flight <= self.inflight(1.0) {
            self.start_probe_bw(ack.now);
        }
    }

    fn check_probe_rtt(&mut self, ack: &Ack) {
        let due = self.probe_rtt.sample(ack.now, ack.rtt);
        if due && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt.enter(&self.rounds);
        }
        if self.state == State::ProbeRtt {
            let target = (self.parameters.min_pipe_cwnd * self.mss) as u64;
            if self.probe_rtt.hold(ack.now, in_flight_after(ack), target, &mut self.rounds) {
                self.exit_probe_rtt(ack.now);
            }
        }
        if ack.bytes > 0 {
            self.idle_restart = false;
        }
    }

    fn exit_probe_rtt(&mut self, now: Time) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full.reached {
            self.start_probe_bw(now);
        } else {
            self.state = State::Startup;
        }
    }

    /// Remembers the latest window that neither recovery nor ProbeRTT had lowered.
    fn save_cwnd(&mut self) {
        self.prior_cwnd = match self.recovery {
            Recovery::None if self.state != State::ProbeRtt => self.cwnd,
            _ => self.prior_cwnd.max(self.cwnd),
        };
    }

    fn restore_cwnd(&mut self) {
        self.recovery = Recovery::None;
        self.packet_conservation = false;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full.reached {
            self.cwnd = self.cwnd.min(self.target_cwnd()).max(self.parameters.min_pipe_cwnd);
        }
        self.cap_cwnd();
    }

    fn target_cwnd(&self) -> f64 {
        let p = &self.parameters;
        let extra = if self.full.reached && p.extra_acked_gain > 0.0 {
            (p.extra_acked_gain * self.extra_acked.get()).min(self.bw() * p.extra_acked_max.as_secs_f64())
        } else {
            0.0
        };
        self.budget(self.bdp(self.bw(), self.cwnd_gain()) + extra)
    }

    /// Towards the target by at most what was acknowledged. In the first round of recovery, as much as is delivered.
    fn set_cwnd(&mut self, lost: f64) {
        if self.acked > 0.0 {
            if lost > 0.0 {
                self.cwnd = (self.cwnd - lost).max(1.0);
            }
            if self.packet_conservation {
                self.cwnd = self.cwnd.max(self.in_flight + self.acked);
            } else {
                let target = self.target_cwnd();
                if self.full.reached {
                    self.cwnd = (self.cwnd + self.acked).min(target);
                } else if self.cwnd < target || (self.rounds.delivered as f64) < INIT_CWND * self.mss {
                    self.cwnd += self.acked;
                }
                self.cwnd = self.cwnd.max(self.parameters.min_pipe_cwnd);
            }
        }
        self.cap_cwnd();
    }

    fn cap_cwnd(&mut self) {
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.parameters.min_pipe_cwnd);
        }
    }
}

impl CongestionControl for Bbr1 {
    fn on_ack(&mut self, ack: &Ack) -> Reaction {
        self.saved = ack.lost > 0 && self.recovery == Recovery::None;
        if self.saved {
            self.save_cwnd();
        }
        self.acked = f64::from(ack.packets);
        self.in_flight = in_flight_after(ack) as f64 / self.mss;
        self.rounds.on_ack(ack);
        self.pacing.on_rtt(self.cwnd, ack.srtt);
        if let Some(sample) = Sample::new(ack, self.mss) {
            let sample = self.probe_rtt.mark(sample);
            self.update_bw(ack, &sample);
            if ack.packets > 0 {
                let (start, bw) = (self.rounds.start, self.bw());
                self.extra_acked.on_ack(ack.now, start, false, self.acked, bw, self.cwnd);
            }
            self.update_phase(ack);
            if self.rounds.start && !self.full.reached && !sample.app_limited {
                self.full.check(self.max_bw.get(), true);
            }
        }
        self.check_drain(ack);
        self.check_probe_rtt(ack);
        self.pacing.set(self.bw(), self.pacing_gain(), self.full.reached);
        self.set_cwnd(ack.lost as f64 / self.mss);
        Reaction::None
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.signal {
            Signal::Ecn | Signal::Phantom => {}
            Signal::Loss => {
                if !self.saved {
                    self.save_cwnd();
                }
                self.recovery = Recovery::Fast;
                self.packet_conservation = true;
                self.rounds.restart();
                // An unused part of the window is removed, too.
                self.cwnd = (self.in_flight + self.acked).max(1.0);
                self.cap_cwnd();
            }
            Signal::Timeout => {
                self.save_cwnd();
                self.recovery = Recovery::Timeout;
                self.packet_conservation = false;
                self.full.look_again(0.0);
                self.look_for_policer(congestion.now, 0.0, 1, true, false); // as the end of a round
                self.cwnd = 1.0;
            }
        }
    }

    fn on_recovered(&mut self, _: &Recovered) {
        if self.recovery != Recovery::None {
            self.restore_cwnd();
        }
    }

    fn on_spurious(&mut self) {
        self.full.look_again(0.0);
        self.policer.reset();
        self.restore_cwnd();
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.idle_restart = true;
        self.extra_acked.restart(restart.now);
        if self.state == State::ProbeBw {
            self.pacing.set(self.bw(), 1.0, self.full.reached);
        } else if self.state == State::ProbeRtt && self.probe_rtt.is_over(restart.now) {
            self.exit_probe_rtt(restart.now);
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
        show("phase", f64::from(self.phase));
        show("round", self.rounds.count as f64);
        show("max_bw_mbps", self.max_bw.get() * mbps);
        show("bw_mbps", self.bw() * mbps);
        show("pacing_gain", self.pacing_gain());
        show("cwnd_gain", self.cwnd_gain());
        show("extra_acked", self.extra_acked.get());
        if let Some(min_rtt) = self.probe_rtt.min_rtt {
            show("min_rtt", min_rtt.as_secs_f64() * 1e3);
        }
    }
}
