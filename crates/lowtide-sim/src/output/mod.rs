// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is left of a run: a summary, time series, a plot, a capture.

pub mod fluid;

mod capture;
mod directory;
mod error;

mod plot;
mod results;
mod series;
mod summary;
mod table;
mod together;
mod wire;

pub use capture::Side;
pub use error::OutputError;
pub use results::{Results, Wanted};
pub use summary::{FlowSummary, LinkSummary, Summary};
