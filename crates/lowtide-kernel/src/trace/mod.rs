// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces: what the laws of running transfers and of the whole machine know and decide, as it happens.
//! [`Traceable::all`] finds the programs of all processes, [`Tracer`] reads their records, [`Record`] is one of
//! them, and [`names`] says what the laws' values are.

mod find;
mod record;
mod tracer;

pub use find::Traceable;
pub use lowtide_port::values as names;
pub use record::{DOWNLOAD_STATES, EVENTS, Record, STATES};
pub use tracer::Tracer;
