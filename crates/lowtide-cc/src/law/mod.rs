// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laws, one file each, and their registry.

use crate::text::laws;

mod loss_based;

pub mod cdg;
pub mod cubic;
pub mod eclipse;
pub mod reno;

/// The flow that a law is to control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Segments of the initial window (RFC 6928: 10). Laws that define their own ignore it.
    pub initial_window: u32,
    /// Seed of the chances that the law takes.
    pub seed: u64,
}

/// What a law asks of Explicit Congestion Notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnUse {
    /// No ECN: packets are not ECT.
    #[default]
    Off,
    /// RFC 3168: ECT(0), the receiver echoes until it sees CWR.
    Classic,
    /// ECT(0) with exact feedback of every mark, as DCTCP has it (RFC 8257).
    Accurate,
    /// ECT(1) with exact feedback (RFC 9331).
    L4s,
}

laws! {
    /// A law with its parameters. Written as its name and what differs from its defaults, `reno` or `cubic:beta=0.8`.
    pub enum Law {
        /// CDG: delay gradients.
        Cdg(cdg),
        /// TCP CUBIC.
        Cubic(cubic),
        /// Eclipse: a small part of the delay's range.
        Eclipse(eclipse),
        /// TCP Reno.
        Reno(reno),
    }
}
