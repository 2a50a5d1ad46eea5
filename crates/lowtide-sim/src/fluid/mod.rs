// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numerical model of "A Framework for Less than Best Effort Congestion Control with Soft Deadlines" (Hayes, Ros,
//! Petlund, Ahmed; below: the paper), its sections III-C and IV-A.1: rates instead of packets, one link, alpha-fair
//! sources.
//!
//! In each step of time the link's prices follow from its load as in an M/M/1/K queue, each source's wish from its
//! price, x = (q/(w·φ))^(−1/α), and its rate goes a part γ of the way there. The weights come from `lowtide-deadline`,
//! as they do everywhere else.
//!
//! Rates are in *units*; the paper's link has about 90 of them. Scenarios with `model = "fluid"` are read as those of
//! packets are: [`ScenarioFile`](crate::scenario::ScenarioFile).

mod model;
mod outcome;
mod queue;
mod run;
mod spans;
mod state;

pub(crate) use model::TCP;
pub use model::{Capacity, DueTransfer, Model, Price, Ratio, Role, Source, Window};
pub use outcome::{
    LinkOutcome, Outcome, Sample, SourceOutcome, SourceSample, SourceState, SpanOutcome, SpanSource, TransferOutcome,
};
pub use queue::{blocking, longer_than};
pub use run::run;
