// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two bottlenecks of the testbed.

/// What is between the hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bottleneck {
    /// Lowtide's emulator: the simulator's own queues, in real time.
    #[default]
    Emulator,
    /// The kernel's own queue disciplines.
    Tc,
}
