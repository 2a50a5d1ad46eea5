// SPDX-License-Identifier: MIT OR Apache-2.0
//! The testbed: scenarios of the simulator, run with the TCP of a kernel, and recorded in the simulator's shape.
//!
//! Two network namespaces have a bottleneck between them. Each flow has a sender on one side and a receiver on the
//! other, under real-time scheduling. The kernel is this machine's, in real time ([`KernelTestbed`]), or that of a
//! guest under QEMU, in virtual time ([`GuestTestbed`]). What of a scenario a kernel cannot do is refused; docs/lab.md
//! says what it can. Errors are sentences for a person, and nothing decides by their kind: they are `anyhow`'s.
//!
//! Elsewhere than on Linux only [`VERSION`] is there, by which reports know recordings; so each module has its
//! condition.

#[cfg(target_os = "linux")]
mod access;
#[cfg(target_os = "linux")]
mod board;
#[cfg(target_os = "linux")]
mod bottleneck;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod datagrams;
#[cfg(target_os = "linux")]
mod emulated;
#[cfg(target_os = "linux")]
mod governed;
#[cfg(target_os = "linux")]
mod guest;
#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod laws;
#[cfg(target_os = "linux")]
mod modules;
#[cfg(target_os = "linux")]
mod priority;
#[cfg(target_os = "linux")]
mod queues;
#[cfg(target_os = "linux")]
mod receiver;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod route;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod shares;
#[cfg(target_os = "linux")]
mod sink;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(target_os = "linux")]
mod supported;
#[cfg(target_os = "linux")]
mod tc;
#[cfg(target_os = "linux")]
mod traffic;

#[cfg(target_os = "linux")]
pub use bottleneck::Bottleneck;
#[cfg(target_os = "linux")]
pub use guest::{GuestTestbed, image_directory};
#[cfg(target_os = "linux")]
pub use kernel::KernelTestbed;
#[cfg(target_os = "linux")]
pub use run::{Options, run};

/// A hash of all sources that run a scenario on a kernel. Recordings keep it.
pub const VERSION: &str = env!("LOWTIDE_TESTBED_VERSION");
