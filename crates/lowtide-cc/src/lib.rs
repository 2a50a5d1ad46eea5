// SPDX-License-Identifier: MIT OR Apache-2.0
//! Congestion control laws as pure state machines: the laws of the papers that Lowtide is built from, and of their
//! rivals.
//!
//! A law learns what happened from [`Ack`], [`Congestion`] and a few rarer events, and says how much may be in flight.
//! It reads no clock, does no I/O, does not allocate and cannot fail once it is made, and knows neither deadlines nor
//! networks. [`Law`] is the choice of a law with its parameters; it is written `cdg:g=2,increase=cubic` and makes the
//! state machine.
//!
//! ```
//! use lowtide_cc::{Flow, Law};
//!
//! let law: Law = "reno:beta=0.7".parse()?;
//! let control = law.build(&Flow { mss: 1448, initial_window: 10, seed: 1 });
//! assert_eq!(control.window(), 10 * 1448);
//! # Ok::<(), lowtide_cc::LawError>(())
//! ```
//!
//! Windows and thresholds are bytes at this border and fractional segments inside, as in the papers.

#![forbid(unsafe_code)]

pub mod actuator;
pub mod law;
pub mod part;

mod control;
mod event;
mod price;
mod random;
mod sharing;
#[cfg(test)]
mod testing;
mod text;
mod time;

pub use actuator::{Actuator, ActuatorError};
pub use control::{CongestionControl, LinkRates, Stance, Weighted};
pub use event::{Ack, Congestion, Lost, RateSample, Reaction, Recovered, Restart, Sent, Signal};
pub use law::{EcnUse, Flow, Law};
pub use price::{Price, Prices};
pub use random::Random;
pub use sharing::{SharedLaw, UNPACED_SEGMENTS};
pub use text::{Described, LawError, Parameters, Value};
pub use time::Time;
