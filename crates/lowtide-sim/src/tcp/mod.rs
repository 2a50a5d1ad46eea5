// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TCP sender and receiver without I/O: they are told the time and what arrived, and say what to send and when to be
//! called again. Data is counted, not carried; sequence numbers count bytes from 0 and never wrap.

mod segment;

pub use segment::{Acknowledgement, SackBlocks, Segment};
