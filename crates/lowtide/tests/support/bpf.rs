// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process has in the kernel's BPF, and that it goes.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{collections::BTreeSet, fs, process::Command, time::Duration};

use super::lifecycle::within;

/// The ids of the BPF programs, maps and links that a process holds.
pub(crate) fn bpf_of(pid: i32) -> BTreeSet<(&'static str, u32)> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten() {
        let info = fs::read_to_string(entry.path()).unwrap_or_default();
        let value = |key: &str| info.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        // a link names its program too
        if let Some(id) = value("link_id:") {
            found.insert(("link", id));
        }
        if let Some(id) = value("map_id:") {
            found.insert(("map", id));
        }
        if let Some(id) = value("prog_id:") {
            found.insert(("prog", id));
        }
    }
    found
}

pub(crate) fn is_in_the_kernel(&(kind, id): &(&'static str, u32)) -> bool {
    Command::new("bpftool").args([kind, "show", "id", &id.to_string()]).output().expect("bpftool").status.success()
}

/// Waits until none of these is in the kernel any more. It frees a law after grace periods for which every task has to
/// leave the kernel or sleep: seconds on a busy machine.
pub(crate) fn leave_the_kernel(mut left: BTreeSet<(&'static str, u32)>) {
    while !left.is_empty() {
        let before = left.len();
        within(Duration::from_secs(60), &format!("the end of one of {left:?}"), || {
            left.retain(is_in_the_kernel);
            (left.len() < before).then_some(())
        });
    }
}
