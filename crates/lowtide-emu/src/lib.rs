// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! A network bottleneck in real time, for real traffic of the real kernel.
//!
//! An [`Emulator`] makes two network namespaces, A and B, joined by a `lowtide-net` link in each direction. Programs
//! started in A and B see an ordinary network; what they send to each other passes through the link: its rate or
//! schedule, delay, queue, loss, jitter and reordering. It needs root, `/dev/net/tun` and the `ip` and `tc` commands of
//! iproute2, and no kernel module for traffic control.
//!
//! ```no_run
//! use lowtide_emu::{Config, Emulator};
//! use lowtide_net::units::parse_duration;
//! use std::process::Command;
//!
//! let config = Config {
//!     discipline: "codel:ecn=on".parse()?,
//!     buffer: "0.5bdp".parse()?,
//!     ..Config::new("left", "right", "20mbit".parse()?, parse_duration("40ms")?)
//! };
//! let emulator = Emulator::start(config)?;
//! let mut ping = Command::new("ping");
//! ping.args(["-c", "3", &emulator.b4().to_string()]);
//! emulator.a().enter_command(&mut ping);
//! ping.status()?;
//! println!("{:?}", emulator.stop()?.forward);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod emulator;
mod engine;
mod error;
mod far;
mod iproute;
mod namespace;
mod ownership;
mod report;
mod tun;

pub use config::Config;
pub use emulator::{DEVICE, Emulator};
pub use error::Error;
pub use namespace::Namespace;
pub use report::{Arrived, Second, Totals};
