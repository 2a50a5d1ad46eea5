// SPDX-License-Identifier: MIT OR Apache-2.0
//! ProbeBW in versions 2 and 3: down, cruise, refill, up (draft-ietf-ccwg-bbr, section 5.3.3).

use super::{Recovery, Sample, Version, machine::Bbr, machine::State};
use crate::{Ack, Time};
use std::time::Duration;

/// How the present ACKs relate to the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(in crate::law) enum AckPhase {
    /// No probe, and no feedback of one.
    #[default]
    Init,
    /// The BDP is filled.
    Refilling,
    /// A probe; its feedback is still to come.
    Starting,
    /// Feedback of a probe.
    Feedback,
    /// The probe has ended; feedback still comes.
    Stopping,
}

/// The state of a flow in its cycle of probes.
#[derive(Clone, Copy, Debug)]
pub(in crate::law) struct Cycle {
    /// Time of the latest event.
    pub(in crate::law) now: Time,
    pub(in crate::law) phase: AckPhase,
    /// When the cycle, or its probe, began.
    stamp: Time,
    /// Rounds since the latest probe, from a random start.
    pub(in crate::law) rounds_since_probe: u32,
    /// The longest time until the next probe.
    wait: Duration,
    /// Whether what is acknowledged was sent by a probe that was not too high so far (`is_bw_probe_sample`).
    pub(in crate::law) probe_samples: bool,
    /// Whether the latest probe went too high.
    pub(in crate::law) prev_too_high: bool,
    /// Whether the latest probe ended early, as a precaution (`prev_probe_precautionary`).
    precautionary: bool,
    /// Rounds of this probe in which `inflight_hi` grew.
    pub(in crate::law) up_rounds: u32,
    /// Segments to be acknowledged per segment that `inflight_hi` grows.
    acked_per_increment: f64,
    /// Whether a sample of this probe was not too high (version 2).
    pub(in crate::law) got_ok_sample: bool,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            now: Time::ZERO,
            phase: AckPhase::Init,
            stamp: Time::ZERO,
            rounds_since_probe: 0,
            wait: Duration::ZERO,
            probe_samples: false,
            prev_too_high: false,
            precautionary: false,
            up_rounds: 0,
            acked_per_increment: f64::INFINITY,
            got_ok_sample: false,
        }
    }
}

impl Bbr {
    /// Slower: the queue drains.
    pub(in crate::law) fn start_down(&mut self) {
        self.bounds.reset_signals();
        self.cycle.acked_per_increment = f64::INFINITY;
        self.pick_probe_wait();
        self.cycle.stamp = self.cycle.now;
        self.cycle.phase = AckPhase::Stopping;
        self.rounds.restart();
        self.state = State::Down;
    }

    /// At the path's rate, until it is time to probe.
    pub(in crate::law) fn start_cruise(&mut self) {
        if self.bounds.inflight_lo.is_finite() {
            self.bounds.inflight_lo = self.bounds.inflight_lo.min(self.bounds.inflight_hi);
        }
        self.state = State::Cruise;
    }

    /// Fills the BDP, so that a queue can be recognised. `inflight_hi` will grow by 2^`up_rounds` in the first round.
    pub(in crate::law) fn start_refill(&mut self, up_rounds: u32) {
        self.bounds.reset_short_term();
        self.cycle.up_rounds = up_rounds;
        self.cycle.precautionary = false;
        self.cycle.got_ok_sample = false;
        self.cycle.phase = AckPhase::Refilling;
        self.rounds.restart();
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &Sample) {
        self.cycle.phase = AckPhase::Starting;
        self.rounds.restart();
        self.cycle.stamp = self.cycle.now;
        if matches!(self.settings.version, Version::V3 { .. }) {
            self.full.look_again(sample.bw);
        }
        self.state = State::Up;
        self.raise_slope();
    }

    /// The wait is random, within bounds, so that flows do not probe in step.
    fn pick_probe_wait(&mut self) {
        self.cycle.rounds_since_probe = (self.random.uniform() * f64::from(self.settings.bw_probe_rand_rounds)) as u32;
        let rand = self.random.uniform() * self.settings.bw_probe_rand.as_nanos() as f64;
        self.cycle.wait = self.settings.bw_probe_base + Duration::from_nanos(rand as u64);
    }

    fn has_elapsed(&self, interval: Duration) -> bool {
        self.cycle.now > self.cycle.stamp + interval
    }

    /// As often as a Reno flow with this BDP would lose a packet, so that such flows can coexist.
    fn is_reno_coexistence_time(&self) -> bool {
        let max = f64::from(self.settings.bw_probe_max_rounds);
        let gain = self.settings.bw_probe_reno_gain;
        let rounds = if gain > 0.0 { max.min(gain * self.target_inflight()) } else { max };
        f64::from(self.cycle.rounds_since_probe) >= rounds
    }

    /// Starts to probe if it is time (`IsTimeToProbeBW`).
    fn probe_if_due(&mut self, ack: &Ack) -> bool {
        let gain = self.settings.ecn_reprobe_gain;
        let marks_ceased = gain > 0.0
            && self.marks.eligible
            && self.bounds.ecn_in_cycle
            && !self.bounds.loss_in_cycle
            && self.recovery == Recovery::None
            && !ack.reducing;
        if marks_ceased {
            // The first increment is about `gain` of the bound: 2^n.
            let n = ((gain * self.bounds.inflight_hi) as u64).max(1).ilog2();
            self.start_refill(n.min(30));
        } else if self.has_elapsed(self.cycle.wait) || self.is_reno_coexistence_time() {
            self.start_refill(0);
        } else {
            return false;
        }
        true
    }

    /// One ACK in ProbeBW (`UpdateProbeBWCyclePhase`).
    pub(in crate::law) fn update_cycle(&mut self, ack: &Ack, sample: &Sample) {
        if !self.full.reached || self.adapt_upper_bounds(ack, sample) {
            return;
        }
        let in_flight = self.segments(ack.in_flight);
        match self.state {
            State::Down => {
                if !self.probe_if_due(ack)
                    && in_flight <= self.inflight_with_headroom()
                    && in_flight <= self.inflight(self.max_bw.get(), 1.0)
                {
                    self.start_cruise();
                }
            }
            State::Cruise => {
                self.probe_if_due(ack);
            }
            State::Refill => {
                if self.rounds.start {
                    self.cycle.probe_samples = true;
                    self.start_up(sample);
                }
            }
            State::Up => {
                if self.is_time_to_go_down(ack, sample, in_flight) {
                    self.cycle.prev_too_high = false;
                    self.start_down();
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &Sample, in_flight: f64) -> bool {
        if self.cycle.prev_too_high && in_flight >= self.bounds.inflight_hi {
            // that much was too much the last time: wait for the effect
            self.cycle.precautionary = true;
            return true;
        }
        match self.settings.version {
            Version::V2 { bw_probe_pif_gain, .. } => {
                self.has_elapsed(self.probe_rtt.min_rtt.unwrap_or_default())
                    && in_flight >= self.inflight(self.max_bw.get(), bw_probe_pif_gain)
            }
            Version::V3 { .. } => {
                if ack.window_limited && self.cwnd >= self.bounds.inflight_hi {
                    self.full.look_again(sample.bw); // the bound hides whether there is more
                }
                self.full.now
            }
        }
    }

    /// The feedback of a probe. Returns whether it decided the state.
    pub(in crate::law) fn end_of_feedback(&mut self, sample: &Sample) -> bool {
        if !self.rounds.start {
            return false;
        }
        match self.cycle.phase {
            AckPhase::Starting => self.cycle.phase = AckPhase::Feedback,
            AckPhase::Stopping => {
                self.cycle.probe_samples = false;
                self.cycle.phase = AckPhase::Init;
                if !self.state.is_probe_bw() {
                    return false;
                }
                if !sample.app_limited {
                    self.max_bw.advance(); // one round after the probe its best rate is known
                }
                if self.cycle.precautionary && !self.cycle.prev_too_high {
                    self.start_refill(0); // it went well: on, and further
                    return true;
                }
            }
            AckPhase::Init | AckPhase::Refilling | AckPhase::Feedback => {}
        }
        false
    }

    /// `inflight_hi` grows twice as much as in the round before (`RaiseInflightLongtermSlope`).
    pub(in crate::law) fn raise_slope(&mut self) {
        let growth = (1u64 << self.cycle.up_rounds) as f64;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.acked_per_increment = (self.cwnd / growth).max(1.0);
    }

    /// `ProbeInflightLongtermUpward`: a bound that limits the flow, and does no harm, grows.
    pub(in crate::law) fn probe_upward(&mut self, ack: &Ack) {
        if ack.window_limited && self.cwnd >= self.bounds.inflight_hi {
            self.bounds.inflight_hi += f64::from(ack.packets) / self.cycle.acked_per_increment;
            if self.rounds.start {
                self.raise_slope();
            }
        }
    }
}
