// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the versions of BBR share: a model of the path, of the maximum delivery rate and the minimum RTT, and how to
//! pace by it.
//!
//! Version 1 ([`bbr1`](super::bbr1)) is built from these parts directly. Versions 2 and 3 ([`bbr2`](super::bbr2),
//! [`bbr3`](super::bbr3)) are one state machine, `machine`, whose few differences `Version` names.
//!
//! Volumes are segments and rates segments per second, both with fractions. BBR needs the delivery-rate samples of the
//! transport ([`Ack::rate`]). Versions 2 and 3 are more exact if the transport reports each loss
//! ([`Lost`](crate::Lost)).

mod aggregation;
mod bounds;
mod ecn;
mod filter;
mod full_pipe;
mod machine;
mod pacing;
mod policer;
mod probe_bw;
mod probe_rtt;
mod rounds;
mod settings;

pub(crate) use aggregation::ExtraAcked;
pub use ecn::Ecn;
pub(crate) use filter::WindowedMax;
pub(crate) use full_pipe::FullPipe;
pub(crate) use machine::Bbr;
#[cfg(test)]
pub(crate) use machine::State;
pub(crate) use pacing::{Pacing, Quantum};
pub(crate) use policer::{Passage, Policer, Verdict};
pub(crate) use probe_rtt::ProbeRtt;
pub(crate) use rounds::Rounds;
pub(crate) use settings::{Settings, Version, settings};

use crate::Ack;

/// What the transport is repairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// Nothing.
    None,
    /// Losses, by fast recovery.
    Fast,
    /// All that was outstanding at a timeout.
    Timeout,
}

/// A delivery-rate sample in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Delivery rate, segments per second.
    pub(crate) bw: f64,
    /// Delivered since the sampled segment was sent.
    pub(crate) delivered: f64,
    /// In flight just after it was sent.
    pub(crate) tx_in_flight: f64,
    /// Lost since it was sent.
    pub(crate) lost: f64,
    /// Delivered with CE since it was sent.
    pub(crate) marked: f64,
    /// Whether the rate may be application-limited.
    pub(crate) app_limited: bool,
    /// Bytes delivered in total when it was sent.
    pub(crate) prior_delivered: u64,
}

impl Sample {
    /// The sample of this ACK, if it has a valid one.
    pub(crate) fn new(ack: &Ack, mss: f64) -> Option<Self> {
        let rate = ack.rate.filter(|rate| !rate.interval.is_zero())?;
        let segments = |bytes: u64| bytes as f64 / mss;
        Some(Self {
            bw: segments(rate.delivered) / rate.interval.as_secs_f64(),
            delivered: segments(rate.delivered),
            tx_in_flight: segments(rate.in_flight_at_send),
            lost: segments(rate.lost_since_send),
            marked: segments(rate.marked_since_send),
            app_limited: rate.app_limited,
            prior_delivered: rate.prior_delivered,
        })
    }
}

/// Bytes still in flight after this ACK.
pub(crate) const fn in_flight_after(ack: &Ack) -> u64 {
    ack.in_flight.saturating_sub(ack.bytes).saturating_sub(ack.lost)
}
