// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock that the BPF programs read.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds: the clock that the BPF programs read.
pub fn monotonic_now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has a monotonic clock");
    Duration::from(now).as_nanos() as u64
}
