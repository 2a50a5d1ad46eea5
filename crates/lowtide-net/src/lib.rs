// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a network bottleneck: a [`Link`] with a rate, a propagation delay, a finite
//! queue and random loss.
//!
//! The crate never reads a clock. Whoever drives a link passes the [`Time`] in, which is a count of
//! nanoseconds from any origin. The same code therefore runs in a simulator's virtual time and, in
//! `lowtide-emu`, in real time.
//!
//! ```
//! use lowtide_net::{Discipline, Ecn, Limit, Link, LinkConfig, Packet, Probability, Time};
//! use std::time::Duration;
//!
//! let mut link = Link::new(&LinkConfig {
//!     rate: "12mbit".parse()?,
//!     delay: Duration::from_millis(20),
//!     limit: Limit::Packets(10),
//!     discipline: Discipline::TailDrop,
//!     loss: Probability::NEVER,
//!     seed: 1,
//! });
//! link.arrive(Time::ZERO, Packet { bytes: 1500, ecn: Ecn::NotEct, payload: "hello" });
//! let due = link.next_event().expect("a packet is under way");
//! assert_eq!(due, Time::from_nanos(21_000_000)); // 1 ms on the wire, 20 ms to travel
//! assert_eq!(link.poll(due).expect("it is due").packet.payload, "hello");
//! # Ok::<(), lowtide_net::units::UnitError>(())
//! ```

pub mod ip;
pub mod units;

mod discipline;
mod link;
mod loss;
mod packet;
mod queue;
mod statistics;
mod step;
mod tail_drop;
mod time;

pub use discipline::Discipline;
pub use link::{Arrival, Delivery, Link, LinkConfig};
pub use packet::{Amount, Ecn, Packet};
pub use queue::{Admission, Limit, Queue, Queued};
pub use statistics::Statistics;
pub use step::Step;
pub use tail_drop::TailDrop;
pub use time::Time;
pub use units::{BufferSize, Probability, Rate};
