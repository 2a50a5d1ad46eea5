// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control laws that Lowtide puts into the kernel (`crates/lowtide-kernel/bpf/law/*.h`), compiled for this machine:
//! the very code that ships, in integers, behind the same trait as the references of [`lowtide_cc`]. Tests drive both
//! with the same events, and the simulator runs either (`cc = "vegas:port=kernel"`).
//!
//! [`Ported`] is also where a law's parameters become the numbers that the BPF programs read, so that a law has the
//! same names, defaults and ranges everywhere.

mod parameters;
mod port;

pub use parameters::{Ported, Refusal, Settable};
pub use port::Port;
