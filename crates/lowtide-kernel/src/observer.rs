// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a record of each socket that has a state of our programs.
//!
//! The kernel's iterator over these states shows the sockets of all network namespaces, and no others. Some hardened
//! kernels refuse iterators over maps. There the iterator over TCP sockets is read in each namespace that a process of
//! the group is in. It walks, and locks, the sockets of all programs; and a connection of a namespace without such a
//! process is seen only when it closes.

use std::{
    ffi::CStr,
    io::{self, Read},
    os::fd::{FromRawFd, OwnedFd},
    ptr::null,
    sync::OnceLock,
};

use libbpf_rs::{
    Iter, Link,
    libbpf_sys::{self, BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, bpf_insn, bpf_prog_load_opts},
};

use crate::{Error, Result, networks::Networks};

/// The iterator over the states, and the one over TCP sockets: one of them is loaded.
pub(crate) const OBSERVERS: [&str; 2] = ["lt_observe", "lt_observe_tcp"];

/// Reads the records.
pub(crate) struct Observer(pub(crate) Link);

impl Observer {
    /// A record for each socket, as the iterator writes them. `networks`: the namespaces that count where the iterator
    /// shows one only.
    ///
    /// # Errors
    /// [`Error::Observe`]: the read fails, or there is no right to enter a network namespace.
    pub(crate) fn read(&self, networks: &Networks) -> Result<Vec<u8>> {
        if !walks_states() {
            return networks.read(&self.0, &networks.all());
        }
        let mut bytes = Vec::new();
        let read = Iter::new(&self.0).map_err(io::Error::other);
        read.and_then(|mut iter| iter.read_to_end(&mut bytes)).map_err(Error::Observe)?;
        Ok(bytes)
    }
}

/// The one of [`OBSERVERS`] for this kernel.
pub(crate) fn observer() -> &'static str {
    OBSERVERS[usize::from(!walks_states())]
}

/// Whether this kernel takes iterators over the states of sockets. Without any right it does not say, and refuses both
/// kinds.
pub(crate) fn walks_states() -> bool {
    static WALKS: OnceLock<bool> = OnceLock::new();
    *WALKS.get_or_init(|| {
        let refused = try_iterator(c"bpf_sk_storage_map").err();
        refused.is_none_or(|error| error.kind() != io::ErrorKind::PermissionDenied)
    })
}

/// Loads the least program for an iterator, which returns 0.
fn try_iterator(target: &CStr) -> io::Result<()> {
    const MOVE: u8 = (libbpf_sys::BPF_ALU64 | libbpf_sys::BPF_MOV) as u8; // r0 = 0
    const EXIT: u8 = (libbpf_sys::BPF_JMP | libbpf_sys::BPF_EXIT) as u8;
    let instructions = [MOVE, EXIT].map(|code| bpf_insn { code, ..Default::default() });
    // SAFETY: a NUL-terminated name.
    let id = unsafe { libbpf_sys::libbpf_find_vmlinux_btf_id(target.as_ptr(), BPF_TRACE_ITER) };
    let mut options = bpf_prog_load_opts {
        sz: size_of::<bpf_prog_load_opts>() as libbpf_sys::size_t,
        expected_attach_type: BPF_TRACE_ITER,
        attach_btf_id: u32::try_from(id).map_err(|_| io::Error::from_raw_os_error(-id))?,
        ..Default::default()
    };
    let count = instructions.len() as libbpf_sys::size_t;
    // SAFETY: so many instructions, and options of the size that they name.
    let fd = unsafe {
        let (license, code) = (c"GPL".as_ptr(), instructions.as_ptr());
        libbpf_sys::bpf_prog_load(BPF_PROG_TYPE_TRACING, null(), license, code, count, &raw mut options)
    };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just returned this descriptor to us alone.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}
