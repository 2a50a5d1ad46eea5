// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of the command `lowtide`; see [`cli`] for what it understands.

// standard output is written to with writeln!, whose error says that it has been closed; println! panics
#![deny(clippy::print_stdout)]

use std::{
    fmt,
    io::{self, Write},
};

/// In place of the standard one, which panics if standard error has been closed.
macro_rules! eprintln {
    ($($words:tt)*) => {
        $crate::complain(format_args!($($words)*))
    };
}

#[cfg(target_os = "linux")]
pub mod cc;
pub mod cli;
pub mod demo;
#[cfg(target_os = "linux")]
pub mod doctor;
pub mod draft;
#[cfg(target_os = "linux")]
pub mod emulate;
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(target_os = "linux")]
pub mod hours;
#[cfg(target_os = "linux")]
pub mod interruption;
pub mod lab;
pub mod manual;
#[cfg(target_os = "linux")]
pub mod operate;
#[cfg(target_os = "linux")]
pub mod progress;
#[cfg(target_os = "linux")]
pub mod run;
pub mod sim;
pub mod size;
#[cfg(target_os = "linux")]
pub mod spans;
mod terminal;
pub mod testbeds;
pub mod trace;
#[cfg(target_os = "linux")]
pub mod traffic;
#[cfg(target_os = "linux")]
pub mod tree;
pub mod when;

/// A line on standard error. If that has been closed, the line is lost.
pub fn complain(words: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{words}");
}
