// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of the command `lowtide`; see [`cli`] for what it understands.

#[cfg(target_os = "linux")]
pub mod cc;
pub mod cli;
pub mod demo;
#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(target_os = "linux")]
pub mod emulate;
#[cfg(target_os = "linux")]
pub mod guest;
#[cfg(target_os = "linux")]
pub mod interruption;
pub mod lab;
#[cfg(target_os = "linux")]
pub mod play;
pub mod players;
#[cfg(target_os = "linux")]
pub mod run;
pub mod sim;
#[cfg(target_os = "linux")]
pub mod size;
#[cfg(target_os = "linux")]
pub mod spans;
pub mod trace;
#[cfg(target_os = "linux")]
pub mod traffic;
#[cfg(target_os = "linux")]
pub mod when;
