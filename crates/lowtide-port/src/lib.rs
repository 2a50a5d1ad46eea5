// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control laws that Lowtide puts into the kernel, in C (`law/*.h`). They use integers only and nothing of the
//! kernel. The BPF programs of `lowtide-kernel` include them. This crate also compiles them for this machine, behind
//! the same trait as the references of [`lowtide_cc`]. Tests drive both with the same events, and the simulator runs
//! either (`cc = "vegas:port=kernel"`).
//!
//! The table of laws (`src/table.rs`) has an entry for each; what has to know of all laws follows from it.
//!
//! [`Ported`] is also where a law's parameters become the numbers that the BPF programs read, so that a law has the
//! same names, defaults and ranges everywhere.

mod download;
#[cfg(test)]
mod native;
mod parameters;
mod port;
#[allow(dead_code)] // build.rs reads the rest
mod table;
pub mod values;

pub use download::{Download, Downloads, Segment};
pub use parameters::{Ported, Refusal, Settable};
pub use port::Port;
