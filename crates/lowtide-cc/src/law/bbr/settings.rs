// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of versions 2 and 3.

use super::Ecn;
use std::time::Duration;

/// Where the versions differ in more than values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Version {
    /// Version 2 (Linux v2alpha).
    V2 {
        /// ProbeUp ends when this many estimated BDPs are in flight.
        bw_probe_pif_gain: f64,
        /// Whether marks lower `bw_lo`, and with it the pacing rate.
        ecn_bw_lo: bool,
        /// Whether marks lower `bw_hi` after a probe that went too high.
        ecn_bw_hi: bool,
    },
    /// Version 3 (draft-ietf-ccwg-bbr).
    V3 {
        /// Drain ends after this many rounds at the latest.
        drain_rounds: u32,
    },
}

/// Declares [`Settings`], and how they are taken from the parameters of a version.
macro_rules! declare {
    ($($field:ident: $type:ty,)*) => {
        /// The parameters that versions 2 and 3 share. They are documented where they have their defaults,
        /// in [`bbr2`](crate::law::bbr2) and [`bbr3`](crate::law::bbr3).
        #[derive(Clone, Debug)]
        pub(crate) struct Settings {
            pub(crate) version: Version,
            $(pub(crate) $field: $type,)*
        }

        macro_rules! settings {
            ($parameters:expr, $version:expr) => {
                $crate::law::bbr::Settings { version: $version, $($field: $parameters.$field,)* }
            };
        }
        pub(crate) use settings;
    };
}

declare! {
    startup_pacing_gain: f64,
    startup_cwnd_gain: f64,
    drain_pacing_gain: f64,
    probe_up_pacing_gain: f64,
    probe_down_pacing_gain: f64,
    cwnd_gain: f64,
    probe_up_cwnd_gain: f64,
    full_bw_thresh: f64,
    full_bw_count: u32,
    full_loss_count: u32,
    loss_thresh: f64,
    beta: f64,
    headroom: f64,
    min_pipe_cwnd: f64,
    min_rtt_window: Duration,
    probe_rtt_interval: Duration,
    probe_rtt_duration: Duration,
    probe_rtt_cwnd_gain: f64,
    bw_probe_base: Duration,
    bw_probe_rand: Duration,
    bw_probe_max_rounds: u32,
    bw_probe_rand_rounds: u32,
    bw_probe_reno_gain: f64,
    extra_acked_gain: f64,
    extra_acked_window: u32,
    extra_acked_max: Duration,
    pacing_margin: f64,
    quantum: Duration,
    quantum_rtt: Duration,
    ecn: Ecn,
    ecn_max_rtt: Duration,
    ecn_alpha_gain: f64,
    ecn_alpha_init: f64,
    ecn_factor: f64,
    ecn_thresh: f64,
    ecn_reprobe_gain: f64,
    full_ecn_count: u32,
}
