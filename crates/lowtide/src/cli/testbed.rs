// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide lab testbed`: its options.

use std::path::PathBuf;

use clap::Args;
#[cfg(target_os = "linux")]
use clap::ValueEnum;

/// `lowtide lab testbed`.
#[derive(Debug, Args)]
pub struct LabTestbedArguments {
    /// The scenario, in TOML, as for `lowtide sim`
    pub scenario: PathBuf,
    /// Seed of all random numbers, in place of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write the recording to this file, as JSON
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The bottleneck between the hosts
    #[cfg(target_os = "linux")]
    #[arg(long, value_enum, default_value_t)]
    pub bottleneck: BottleneckArgument,
    /// Flows that use the kernel's own congestion control of this name in place of the scenario's: cdg-*=cdg
    #[arg(long, value_name = "FLOWS=LAW")]
    pub kernel_law: Vec<String>,
    /// Register Lowtide's law even before Linux 6.4, where it outlives this run: only for a guest that ends with it
    #[arg(long)]
    pub plain_registration: bool,
}

/// What is between the hosts of a testbed.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BottleneckArgument {
    /// Lowtide's emulator: the simulator's own queues, in real time
    #[default]
    Emulator,
    /// The kernel's own queue disciplines
    Tc,
}
