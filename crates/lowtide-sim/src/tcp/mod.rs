// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TCP sender and receiver without I/O: the caller passes the time and what arrived; they return what to send and
//! when to be called again. Data is counted, not carried; sequence numbers count bytes from 0 and never wrap.
//!
//! The sender recovers from losses with SACK, RACK-TLP (RFC 8985), PRR (RFC 9937) and a retransmission timer (RFC
//! 6298), and takes back what was spurious (Eifel, RFC 3522, and DSACK, RFC 3708). When to send how much is the control
//! law's.
//!
//! Notable differences from Linux: segments are never cut anew when they are sent again; there is no Nagle algorithm,
//! no PAWS check (sequence numbers do not wrap), no probe of a window of zero (there is none); timestamps count
//! nanoseconds; the window is not decayed while an application leaves it partly unused.

mod law;
mod pacing;
mod prr;
mod rack;
mod ranges;
mod rate;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod tlp;
mod undo;

#[cfg(test)]
mod tests;

pub use law::{is_shared, law, shared_law};
pub use receiver::Receiver;
pub use segment::{Acknowledgement, SackBlocks, Segment};
pub use sender::{Acked, Sender, Statistics};
