// SPDX-License-Identifier: MIT OR Apache-2.0
//! BBR, version 1: Cardwell et al., "BBR: Congestion-Based Congestion Control" (ACM Queue 14(5), 2016), as in Linux
//! `tcp_bbr.c` and draft-cardwell-iccrg-bbr-congestion-control-00.
//!
//! Notable differences from Linux:
//!
//! - Volumes and gains are fractions where Linux rounds to segments and 1/256; the window is still made even.
//! - The maximum of the rate is exact over its window; Linux keeps the three best samples.
//! - Volumes in flight are compared as they are. Linux estimates what will be left at the next departure, as part of
//!   what it counts waits in its pacing queue.
//! - There is no RTT sample before the first ACK, so the initial window is paced for a path of 1 ms.
//! - Marks do not count, as in Linux, whatever begins a reduction episode.

use crate::{CongestionControl, EcnUse, Flow, text::parameters};
use std::time::Duration;

mod machine;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

parameters! {
    /// Parameters of version 1 of BBR.
    pub struct Parameters for "bbr1" {
        /// Gain of Startup, about 2/ln 2: the rate doubles each round.
        high_gain: f64 = 2.885, in 1.0..=10.0;
        /// Pacing gain of Drain: the inverse of Startup's.
        drain_gain: f64 = 1.0 / 2.885, in 0.05..=1.0;
        /// Window gain of ProbeBW.
        cwnd_gain: f64 = 2.0, in 1.0..=10.0;
        /// Pacing gain of the phase up.
        probe_up_gain: f64 = 1.25, in 1.0..=10.0;
        /// Pacing gain of the phase down.
        probe_down_gain: f64 = 0.75, in 0.05..=1.0;
        /// Rounds for which the greatest rate counts.
        bw_window: u32 = 10, in 1..=100;
        /// Full bandwidth is not reached while the rate grows by this factor in a round.
        full_bw_thresh: f64 = 1.25, in 1.0..=4.0;
        /// Rounds without that growth after which it is reached.
        full_bw_count: u32 = 3, in 1..=31;
        /// The least window, segments; also that of ProbeRTT.
        min_pipe_cwnd: f64 = 4.0, in 1.0..=100.0;
        /// How long a minimum RTT counts; ProbeRTT follows if there is no new one.
        min_rtt_window: Duration = Duration::from_secs(10), in Duration::ZERO..=HOUR;
        /// How long ProbeRTT lasts, at least.
        probe_rtt_duration: Duration = Duration::from_millis(200), in Duration::ZERO..=MINUTE;
        /// How much of the ACK aggregation is added to the window; 0: none.
        extra_acked_gain: f64 = 1.0, in 0.0..=10.0;
        /// Rounds for which aggregation is remembered, to twice as many.
        extra_acked_window: u32 = 5, in 1..=31;
        /// The most aggregation that is added, as a time at the estimated rate.
        extra_acked_max: Duration = Duration::from_millis(100), in Duration::ZERO..=MINUTE;
        /// The pacing rate is below the estimated rate by this part.
        pacing_margin: f64 = 0.01, in 0.0..=0.5;
        /// The window has room for three bursts of the host, each of this sending time.
        quantum: Duration = Duration::from_millis(1), in Duration::ZERO..=MINUTE;
        /// Whether to detect token-bucket policers, and then to send at their rate.
        policer: bool = true;
    }
}

impl Parameters {
    /// A flow's state.
    pub fn build(&self, flow: &Flow) -> Box<dyn CongestionControl> {
        Box::new(machine::Bbr1::new(self.clone(), flow))
    }

    /// The law's use of ECN.
    pub const fn ecn_use(&self) -> EcnUse {
        EcnUse::Off
    }
}
