// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of the command `lowtide`; see [`cli`] for what it understands.

pub mod cli;
pub mod demo;
pub mod doctor;
pub mod emulate;
pub mod run;
pub mod sim;
pub mod size;
pub mod traffic;
pub mod when;
