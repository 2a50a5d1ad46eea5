// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: virtual time, the network between the hosts, and what the applications do.

mod connection;
mod control;
mod events;
mod flow;
mod group;
mod measure;
mod network;
mod simulation;
mod spans;
mod traffic;

pub use simulation::run;
