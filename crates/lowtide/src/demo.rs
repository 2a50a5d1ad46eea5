// SPDX-License-Identifier: MIT OR Apache-2.0
//! demo placeholder until written
pub fn demo(_: &crate::cli::DemoArguments) -> anyhow::Result<std::process::ExitCode> { anyhow::bail!("not yet") }
