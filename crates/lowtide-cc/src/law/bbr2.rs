// SPDX-License-Identifier: MIT OR Apache-2.0
//! BBR, version 2: draft-cardwell-iccrg-bbr-congestion-control-02 with the numbers and the ECN response of Google's
//! v2alpha for Linux (`tcp_bbr2.c`).
//!
//! Notable differences:
//!
//! - Volumes and gains are fractions where Linux rounds to segments and 1/256.
//! - Volumes in flight are compared as they are. Linux estimates what will be left at the next departure, as part of
//!   what it counts waits in its pacing queue.
//! - State for an undo is kept from the first loss of an episode on, as in version 3, not from the start of recovery.
//! - Leaving out ECN (`ecn=off`) is the source's default. Its marks count only on paths of at most `ecn_max_rtt`.
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
    /// Parameters of version 2 of BBR. The names are Linux's where it has one.
    pub struct Parameters for "bbr2" {
        /// Pacing gain of Startup, about 2/ln 2: the rate doubles each round (Linux `high_gain`).
        startup_pacing_gain: f64 = 2.885, in 1.0..=10.0;
        /// Window gain of Startup and Drain.
        startup_cwnd_gain: f64 = 2.885, in 1.0..=10.0;
        /// Pacing gain of Drain: the inverse of Startup's.
        drain_pacing_gain: f64 = 1.0 / 2.885, in 0.05..=1.0;
        /// Pacing gain of ProbeUp.
        probe_up_pacing_gain: f64 = 1.25, in 1.0..=10.0;
        /// Pacing gain of ProbeDown.
        probe_down_pacing_gain: f64 = 0.75, in 0.05..=1.0;
        /// Window gain of ProbeBW.
        cwnd_gain: f64 = 2.0, in 1.0..=10.0;
        /// Window gain of ProbeUp.
        probe_up_cwnd_gain: f64 = 2.0, in 1.0..=10.0;
        /// ProbeUp ends when this many estimated BDPs are in flight, after a minimum RTT.
        bw_probe_pif_gain: f64 = 1.25, in 1.0..=10.0;
        /// Full bandwidth is not reached while the rate grows by this factor in a round.
        full_bw_thresh: f64 = 1.25, in 1.0..=4.0;
        /// Rounds without that growth after which it is reached.
        full_bw_count: u32 = 3, in 1..=31;
        /// Startup also ends after a round of recovery with losses on so many ACKs; 0: never.
        full_loss_count: u32 = 8, in 0..=1000;
        /// The part of a probe's packets that may be lost.
        loss_thresh: f64 = 0.02, in 0.0..=0.5;
        /// The factor that a round with losses leaves of the bounds, at least.
        beta: f64 = 0.7, in 0.01..=0.99;
        /// The part of `inflight_hi` that is left to competing flows.
        headroom: f64 = 0.15, in 0.0..=0.9;
        /// The least window, segments.
        min_pipe_cwnd: f64 = 4.0, in 1.0..=100.0;
        /// How long a minimum RTT counts.
        min_rtt_window: Duration = Duration::from_secs(10), in Duration::ZERO..=HOUR;
        /// How long without a new minimum before ProbeRTT.
        probe_rtt_interval: Duration = Duration::from_secs(5), in Duration::ZERO..=HOUR;
        /// How long ProbeRTT lasts, at least.
        probe_rtt_duration: Duration = Duration::from_millis(200), in Duration::ZERO..=MINUTE;
        /// The part of the BDP that ProbeRTT leaves in flight.
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
        /// The pacing rate is below the estimated rate by this part.
        pacing_margin: f64 = 0.01, in 0.0..=0.5;
        /// The window has room for three bursts of the host, each of this sending time.
        quantum: Duration = Duration::from_millis(1), in Duration::ZERO..=SECOND;
        /// On short paths up to 64 KiB more are sent at once: half of that at this minimum RTT; 0: none.
        quantum_rtt: Duration = Duration::from_micros(512), in Duration::ZERO..=SECOND;
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
        ecn_reprobe_gain: f64 = 0.0, in 0.0..=2.0;
        /// Startup ends after so many rounds in a row with that share of marks; 0: never.
        full_ecn_count: u32 = 2, in 0..=1000;
        /// Whether marks lower the rate between probes, too.
        ecn_bw_lo: bool = true;
        /// Whether marks lower the rate after a probe that went too high.
        ecn_bw_hi: bool = true;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(self.machine(flow))
    }

    pub(crate) fn machine(&self, flow: &Flow) -> Bbr {
        let Self { bw_probe_pif_gain, ecn_bw_lo, ecn_bw_hi, .. } = *self;
        Bbr::new(settings!(self, Version::V2 { bw_probe_pif_gain, ecn_bw_lo, ecn_bw_hi }), flow)
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        self.ecn.ecn_use()
    }
}
