// SPDX-License-Identifier: MIT OR Apache-2.0
//! How aggressive must a background transfer be to finish by its deadline, and can it?
//!
//! This is the upper half of "A Framework for Less than Best Effort Congestion Control with Soft Deadlines"
//! (Hayes, Ros, Petlund, Ahmed; in this crate: the framework, or the paper): from *how much is left*,
//! *how long there is* and *what the network gave* it makes one number, the **price weight** `w`. A sender
//! with weight `w` behaves as if the network's congestion price were `1/w` times what it measured: `w_min`
//! is the most submissive, 1 an ordinary best-effort flow.
//!
//! The crate is pure. It reads no clock ([`Time`] is passed in), does no I/O and knows neither TCP nor sockets nor how
//! any control law works: only the rates at which some of them rest ([`Model`]). Units everywhere: **bytes**, **bytes
//! per second**, **nanoseconds** in [`Time`], and the dimensionless weight.
//!
//! * [`Governor`] is what most callers want: feed it [`Progress`], apply the [`Decision`].
//! * [`WeightControl`] is the small interface behind it; [`Pid`] and [`ModelBased`] implement it.
//! * [`Calendar`] says when a transfer may press, and how fast it may be then.
//! * [`schedule`] divides one budget among several transfers; [`group`] says what that comes to for one of them.
//! * [`PriceRatio`] is for a law that reacts to another price than the flows beside it.
//! * [`Forecast`] answers "will it be done by then?" with an [`Outlook`].
//! * [`socket_weight`] splits one transfer's budget over its sockets.
//!
//! ```
//! use lowtide_deadline::{Goal, Governor, Policy, Progress, Time};
//! use std::time::Duration;
//!
//! let start = Time::ZERO;
//! let goal = Goal { size: Some(40_000_000), deadline: Some(start + Duration::from_secs(50)) };
//! let mut governor = Governor::new(Policy::default(), goal, start).unwrap();
//! let decision = governor.tick(&Progress {
//!     now: start + Duration::from_millis(100),
//!     acknowledged_bytes: 14_600,
//!     active: true,
//!     app_limited: false,
//!     rtt: Some(Duration::from_millis(40)),
//!     ..Progress::default()
//! });
//! assert_eq!(decision.weight.get(), 0.004); // submissive until it must press
//! ```
#![forbid(unsafe_code)]

mod calendar;
mod control;
mod forecast;
mod governor;
pub mod group;
mod interval;
mod limit;
mod model;
mod model_based;
mod pid;
mod policy;
mod ratio;
pub mod schedule;
mod share;
mod signals;
mod time;
mod weight;

pub use calendar::{Allowance, Calendar};
pub use control::{Basis, Control, FallbackReason, Step, WeightControl};
pub use forecast::{Forecast, Observation, Outlook, Question};
pub use governor::{Decision, Governor, Hold, Progress, Rates, Turn};
pub use interval::{
    INTERVAL_FLOOR, INTERVALS_PER_TRANSFER, NOMINAL_INTERVAL, ROUND_TRIPS_PER_INTERVAL, update_interval,
};
pub use limit::{DEFAULT_INCREASE_LIMIT, Limited, limit_increase};
pub use model::{Cubic, Model};
pub use model_based::{ModelBased, PriceAverage};
pub use pid::{Gains, Pid};
pub use policy::{Goal, GoalError, Policy, PolicyError};
pub use ratio::{DEFAULT_RATIO_INCREASE_LIMIT, PriceRatio, RatioPolicy, RatioRule};
pub use share::{Division, socket_weight};
pub use signals::{Conditions, PathState, Signal, SignalKind, Signals};
pub use time::Time;
pub use weight::{Bounds, DEFAULT_W_MAX, DEFAULT_W_MIN, Weight, WeightError};
