// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the commands of iproute2.

use crate::Error;
use crate::error::Doing;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs `ip` with these arguments and returns what it prints.
pub(crate) fn ip(arguments: &[&str]) -> Result<String, Error> {
    run("ip", arguments, "")
}

/// Runs `ip` or `tc` once in the namespace, for all these commands, one a line.
pub(crate) fn batch(program: &str, namespace: &str, commands: &str) -> Result<(), Error> {
    run(program, &["-n", namespace, "-batch", "-"], commands).map(drop)
}

fn run(program: &str, arguments: &[&str], input: &str) -> Result<String, Error> {
    let cannot_run = || format!("run {program} (from the package iproute2)");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0) // a Ctrl-C on the terminal must not interrupt the clean-up
        .spawn()
        .doing(cannot_run)?;
    let stdin = child.stdin.take();
    // A command that ends without reading says why on its standard error.
    stdin.map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().doing(cannot_run)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = printed.lines().map(str::trim).collect();
    Err(Error::Iproute { command: format!("{program} {}", arguments.join(" ")), message: lines.join("; ") })
}
