// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking for capabilities, and giving them up.

use std::io;

use crate::session::check;

/// `struct __user_cap_data_struct` of the kernel: 32 capabilities each.
#[repr(C)]
#[derive(Default)]
struct Capabilities {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// `_LINUX_CAPABILITY_VERSION_3`: of two such structures. The 0 means the calling thread.
const HEADER: [u32; 2] = [0x2008_0522, 0];

/// linux/capability.h.
const CAP_SETGID: u32 = 6;
const CAP_SETUID: u32 = 7;

/// Whether this thread may become any user. Root may not where its bounding set lacks these two.
pub(crate) fn may_become_others() -> bool {
    const BOTH: u32 = 1 << CAP_SETGID | 1 << CAP_SETUID;
    of_this_thread().is_ok_and(|sets| sets[0].effective & BOTH == BOTH)
}

fn of_this_thread() -> io::Result<[Capabilities; 2]> {
    let mut sets = [Capabilities::default(), Capabilities::default()];
    // SAFETY: a system call with structures as the kernel lays them out, which outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capget, HEADER.as_ptr(), sets.as_mut_ptr()) as libc::c_int })?;
    Ok(sets)
}

/// Capabilities that Lowtide was given are not the program's: clears the ambient set and the inheritable one, by which
/// alone they pass an exec. Makes system calls only.
pub(crate) fn drop_inherited() -> io::Result<()> {
    // SAFETY: a system call with integer arguments.
    check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) })?;
    let mut sets = of_this_thread()?;
    sets.iter_mut().for_each(|set| set.inheritable = 0);
    // SAFETY: a system call with structures as the kernel lays them out, which outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), sets.as_ptr()) as libc::c_int })
}

/// Takes every capability from this thread; other threads keep theirs.
pub(crate) fn drop_of_this_thread() -> io::Result<()> {
    let none = [Capabilities::default(), Capabilities::default()];
    // SAFETY: a system call with structures as the kernel lays them out, which outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), none.as_ptr()) as libc::c_int })
}
