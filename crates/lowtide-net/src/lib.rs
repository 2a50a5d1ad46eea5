// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a network bottleneck: a [`Link`] with a capacity and a propagation delay that
//! may change, a finite queue of one of several disciplines, and chance: loss, jitter and reordering.
//!
//! The crate never reads a clock. The caller passes the [`Time`] in, which is a count of
//! nanoseconds from any origin. The same code therefore runs in a simulator's virtual time and, in
//! `lowtide-emu`, in real time.
//!
//! ```
//! use lowtide_net::{Class, Ecn, Limit, Link, LinkConfig, Packet, Rate, Time};
//! use std::time::Duration;
//!
//! let rate: Rate = "12mbit".parse()?;
//! let mut link = Link::new(&LinkConfig {
//!     discipline: "codel:target=5ms,ecn=on".parse()?,
//!     loss: "0".parse()?,
//!     ..LinkConfig::new(rate, Duration::from_millis(20), Limit::Packets(10))
//! });
//! let packet = Packet { bytes: 1500, ecn: Ecn::NotEct, class: Class::Foreground, flow: 0, payload: "hello" };
//! link.arrive(Time::ZERO, packet);
//! let due = link.next_event().expect("a packet is under way");
//! assert_eq!(due, Time::from_nanos(21_000_000)); // 1 ms on the wire, 20 ms to travel
//! assert_eq!(link.poll(due).expect("it is due").packet.payload, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod file;
pub mod ip;
pub mod units;

mod delay;
mod discipline;
mod drops;
mod jitter;
mod link;
mod loss;
mod packet;
mod police;
mod queue;
mod random;
mod schedule;
mod statistics;
mod steps;
mod supply;
mod text;
mod time;
mod transmitter;

pub use delay::DelaySchedule;
pub use discipline::Discipline;
pub use drops::{Arrival, Cause, Dropped, Drops};
pub use jitter::{Jitter, JitterShape, Reordering};
pub use link::{Delivery, Link, LinkConfig};
pub use loss::{GilbertElliott, LossModel};
pub use packet::{Amount, Class, Ecn, Packet};
pub use police::Police;
pub use queue::codel::Codel;
pub use queue::dualpi2::{DualPi2, DualPi2Variant};
pub use queue::fq_codel::FqCodel;
pub use queue::pie::Pie;
pub use queue::step::Step;
pub use queue::{Limit, Queue, Queued};
pub use schedule::Schedule;
pub use statistics::Statistics;
pub use text::{TextError, nearest};
pub use time::Time;
pub use units::{BufferSize, Probability, Rate};
