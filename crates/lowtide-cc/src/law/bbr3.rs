// SPDX-License-Identifier: MIT OR Apache-2.0
//! BBR, version 3: draft-ietf-ccwg-bbr. The draft does not cover ECN, so that response is that of Google's v3 for Linux
//! (`tcp_bbr.c`).
//!
//! Notable differences from the draft:
//!
//! - Every sample is tested for growth beyond a quarter (Linux), not only that of the first ACK of a round.
//! - Aggregation is remembered for five to ten rounds and bounded by `extra_acked_max` (Linux), not for ten.
//! - In Startup, losses are counted per ACK (Linux), not per range of sequence numbers.
//! - Until full bandwidth was reached, the window grows up to twice the initial one whatever the model is (Linux).
//! - ProbeCruise lowers `inflight_lo` to `inflight_hi` (Linux).
//! - State for an undo is kept once per episode: a later round of the same recovery does not overwrite it.
//! - Signals that begin a reduction episode for marks change nothing: marks are counted as they arrive with ACKs.

use super::bbr::{Bbr, Ecn, Version, settings};
use crate::{CongestionControl, EcnUse, Flow, text::parameters};
use std::time::Duration;

#[cfg(test)]
mod tests;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

parameters! {
    /// Parameters of version 3 of BBR.
    pub struct Parameters for "bbr3" {
        /// Pacing gain of Startup, 4 ln 2: the rate doubles each round (`StartupPacingGain`).
        startup_pacing_gain: f64 = 2.77, in 1.0..=10.0;
        /// Window gain of Startup and Drain.
        startup_cwnd_gain: f64 = 2.0, in 1.0..=10.0;
        /// Pacing gain of Drain (`DrainPacingGain`).
        drain_pacing_gain: f64 = 0.5, in 0.05..=1.0;
        /// Pacing gain of ProbeUp.
        probe_up_pacing_gain: f64 = 1.25, in 1.0..=10.0;
        /// Pacing gain of ProbeDown.
        probe_down_pacing_gain: f64 = 0.9, in 0.05..=1.0;
        /// Window gain of ProbeBW (`DefaultCwndGain`).
        cwnd_gain: f64 = 2.0, in 1.0..=10.0;
        /// Window gain of ProbeUp.
        probe_up_cwnd_gain: f64 = 2.25, in 1.0..=10.0;
        /// Drain ends after so many rounds at the latest.
        drain_rounds: u32 = 3, in 0..=1000;
        /// Full bandwidth is not reached while the rate grows by this factor in a round.
        full_bw_thresh: f64 = 1.25, in 1.0..=4.0;
        /// Rounds without that growth after which it is reached.
        full_bw_count: u32 = 3, in 1..=31;
        /// Startup also ends after a round of recovery with losses on so many ACKs; 0: never (`StartupFullLossCnt`).
        full_loss_count: u32 = 6, in 0..=1000;
        /// The part of a probe's packets that may be lost (`LossThresh`).
        loss_thresh: f64 = 0.02, in 0.0..=0.5;
        /// The factor that a round with losses leaves of the bounds, at least (`Beta`).
        beta: f64 = 0.7, in 0.01..=0.99;
        /// The part of `inflight_hi` that is left to competing flows (`Headroom`).
        headroom: f64 = 0.15, in 0.0..=0.9;
        /// The least window, segments (`MinPipeCwnd`).
        min_pipe_cwnd: f64 = 4.0, in 1.0..=100.0;
        /// How long a minimum RTT counts (`MinRTTFilterLen`).
        min_rtt_window: Duration = Duration::from_secs(10), in Duration::ZERO..=HOUR;
        /// How long without a new minimum before ProbeRTT (`ProbeRTTInterval`).
        probe_rtt_interval: Duration = Duration::from_secs(5), in Duration::ZERO..=HOUR;
        /// How long ProbeRTT lasts, at least (`ProbeRTTDuration`).
        probe_rtt_duration: Duration = Duration::from_millis(200), in Duration::ZERO..=MINUTE;
        /// The part of the BDP that ProbeRTT leaves in flight (`ProbeRTTCwndGain`).
        probe_rtt_cwnd_gain: f64 = 0.5, in 0.0..=1.0;
        /// The longest time between probes for bandwidth, without its random part.
        bw_probe_base: Duration = Duration::from_secs(2), in Duration::ZERO..=MINUTE;
        /// The random part of that time is below this.
        bw_probe_rand: Duration = SECOND, in Duration::ZERO..=MINUTE;
        /// The most rounds between probes (63: what a Reno flow of 25 Mbit/s and 30 ms needs).
        bw_probe_max_rounds: u32 = 63, in 1..=10_000;
        /// A random number of rounds below this is subtracted.
        bw_probe_rand_rounds: u32 = 2, in 0..=100;
        /// Rounds between probes per segment of BDP; 0: `bw_probe_max_rounds` always.
        bw_probe_reno_gain: f64 = 1.0, in 0.0..=10.0;
        /// How much of the ACK aggregation is added to the window; 0: none.
        extra_acked_gain: f64 = 1.0, in 0.0..=10.0;
        /// Rounds for which aggregation is remembered, to twice as many.
        extra_acked_window: u32 = 5, in 1..=31;
        /// The most aggregation that is added, as a time at the estimated rate.
        extra_acked_max: Duration = Duration::from_millis(100), in Duration::ZERO..=SECOND;
        /// The pacing rate is below the estimated rate by this part (`PacingMarginPercent`).
        pacing_margin: f64 = 0.01, in 0.0..=0.5;
        /// The window has room for three bursts of the host, each of this sending time.
        quantum: Duration = Duration::from_millis(1), in Duration::ZERO..=SECOND;
        /// On short paths up to 64 KiB more are sent at once: half of that at this minimum RTT; 0: none.
        quantum_rtt: Duration = Duration::ZERO, in Duration::ZERO..=SECOND;
        /// Whether to use ECN.
        ecn: Ecn = Ecn::Off;
        /// The longest minimum RTT at which marks count; 0: any.
        ecn_max_rtt: Duration = Duration::from_millis(5), in Duration::ZERO..=MINUTE;
        /// Weight of the newest round in the share of marks, `ecn_alpha`.
        ecn_alpha_gain: f64 = 1.0 / 16.0, in 0.0..=1.0;
        /// Its initial value.
        ecn_alpha_init: f64 = 1.0, in 0.0..=1.0;
        /// Marks in a round reduce the bounds by this times `ecn_alpha`.
        ecn_factor: f64 = 1.0 / 3.0, in 0.0..=1.0;
        /// A probe with this share of marks was too high; 0: none.
        ecn_thresh: f64 = 0.5, in 0.0..=1.0;
        /// When marks cease, probe at once, first by this part of `inflight_hi`; 0: wait.
        ecn_reprobe_gain: f64 = 0.5, in 0.0..=2.0;
        /// Startup ends after so many rounds in a row with that share of marks; 0: never.
        full_ecn_count: u32 = 2, in 0..=1000;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(self.machine(flow))
    }

    pub(crate) fn machine(&self, flow: &Flow) -> Bbr {
        Bbr::new(settings!(self, Version::V3 { drain_rounds: self.drain_rounds }), flow)
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        self.ecn.ecn_use()
    }
}
