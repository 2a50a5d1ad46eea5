// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laboratory: the papers' figures, tables and claims as experiments.
//!
//! An [experiment](experiment::Experiment) is data: a scenario of `lowtide sim`, the axes along which it varies, what
//! is measured, what the paper says with the band in which it holds, and how it is drawn. A [plan](Plan) is its runs,
//! the [runner](Runner) does what the [cache](Cache) does not know yet, [scores](score::score) say what holds, and the
//! [report](report::page) shows all of it. No control law is here, and no parameter that is not in the scenario.

#![forbid(unsafe_code)]

pub mod experiment;
pub mod expression;
pub mod figure;
pub mod report;
pub mod score;
pub mod testbed;

mod cache;
mod check;
mod comparison;
mod error;
mod place;
mod plan;
mod progress;
mod recording;
mod results;
mod runner;
mod scenario;
mod scoreboard;
mod shard;
mod statistics;

pub use cache::{Cache, Curve, Entry, VERSION};
pub use check::check;
pub use comparison::{Compared, Comparison};
pub use error::LabError;
pub use experiment::Library;
pub use place::Place;
pub use plan::{Extent, Half, Plan, PlannedCell};
pub use recording::{Arrival, Packets, RecordedTransfer, Recording, Track};
pub use results::Results;
pub use runner::Runner;
pub use scoreboard::scoreboard;
pub use shard::{NoShard, Shard};
