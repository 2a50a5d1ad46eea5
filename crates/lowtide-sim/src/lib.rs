// SPDX-License-Identifier: MIT OR Apache-2.0
//! A packet-level simulator of congestion control in virtual time.
//!
//! A [`Scenario`](scenario::Scenario) says which flows share which bottlenecks. The same scenario and seed give the
//! same bytes on every machine. Data is counted, not carried.
//!
//! [`fluid`] is a model of its own, of rates instead of packets.

#![forbid(unsafe_code)]

pub mod fluid;
pub mod observe;
pub mod output;
pub mod scenario;
pub mod tcp;

mod engine;
mod fair;
mod outcome;

pub use engine::run;
pub use fair::FairShares;
pub use outcome::{
    BasisTimes, BottleneckOutcome, CompletedTransfer, DeadlineOutcome, FlowOutcome, Outcome, SpanFlow, SpanOutcome,
};
