// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Lowtide was started with and PROGRAM is to start with, where something changes it before `main`.

use std::{
    mem, ptr,
    sync::atomic::{AtomicBool, Ordering},
};

static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether Lowtide was started with SIGPIPE ignored. Rust ignores it for itself, and gives its children the default.
pub(crate) fn sigpipe_was_ignored() -> bool {
    PIPE_WAS_IGNORED.load(Ordering::Relaxed)
}

extern "C" fn look() {
    // SAFETY: a structure of integers and pointers that may be null, which the call fills in.
    unsafe {
        let mut found: libc::sigaction = mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, ptr::null(), &raw mut found) == 0 {
            PIPE_WAS_IGNORED.store(found.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
        }
    }
}

// SAFETY: what stands in this section is called once, before `main` and before Rust's own start.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
