// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulator against what is known: textbooks, RFCs, the papers, and the conservation of packets.
//!
//! Every expectation is a band with its source beside it. Scenarios are deterministic, so a band is there for what the
//! source leaves open, not for noise.

mod any_law;
mod competition;
mod connections;
mod conservation;
mod da_lbe;
mod deadline;
mod delay;
mod determinism;
mod downloads;
mod engine;
mod shared;
mod support;
mod textbook;
mod tide;
mod transport;
