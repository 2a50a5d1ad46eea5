// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ip` and `tc` of iproute2.

use anyhow::{Context, Result, bail};
use std::{
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

/// Runs `ip` or `tc` once in a namespace, for all these commands.
pub(super) fn batch(program: &str, namespace: &str, commands: &str) -> Result<()> {
    let mut child = Command::new(program)
        .args(["-n", namespace, "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0) // a Ctrl-C on the terminal must not interrupt it half-way
        .spawn()
        .with_context(|| format!("running {program} (from the package iproute2)"))?;
    if let Some(mut input) = child.stdin.take() {
        // one that ends without reading says why
        let _broken_pipe = std::io::Write::write_all(&mut input, commands.as_bytes());
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = errors.lines().map(str::trim).collect();
        bail!("{program}: {}", lines.join("; "));
    }
    Ok(())
}
