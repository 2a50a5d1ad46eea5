// SPDX-License-Identifier: MIT OR Apache-2.0
//! BPF programs of others, in groups above ours, that allow no further ones below.

use std::{
    ffi::CStr,
    fs::File,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use libbpf_rs::{
    MapHandle,
    libbpf_sys::{self, BPF_F_ALLOW_MULTI, BPF_F_ALLOW_OVERRIDE, bpf_attach_type},
};

/// A program, and the group that it is attached to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) group: PathBuf,
    /// As `bpftool prog show id` takes it.
    pub(crate) id: u32,
}

/// The program that keeps `group` from having one of this type: as the kernel does, the nearest group above that has
/// any decides.
pub(crate) fn forbidding(group: &Path, attach_type: bpf_attach_type) -> Option<Foreign> {
    let above = group.ancestors().skip(1).take_while(|above| above.join("cgroup.procs").exists());
    for above in above {
        let (flags, id) = attached(above, attach_type)?;
        if flags & BPF_F_ALLOW_MULTI != 0 {
            return None;
        }
        if let Some(id) = id {
            return (flags & BPF_F_ALLOW_OVERRIDE == 0).then(|| Foreign { group: above.to_owned(), id });
        }
    }
    None
}

/// All programs of this type on `group` and above it, which see what happens in it.
pub(crate) fn seeing(group: &Path, attach_type: bpf_attach_type) -> Vec<Foreign> {
    let groups = group.ancestors().take_while(|above| above.join("cgroup.procs").exists());
    let of = |above: &Path| {
        let ids = all_attached(above, attach_type);
        ids.into_iter().map(|id| Foreign { group: above.to_owned(), id }).collect::<Vec<_>>()
    };
    groups.flat_map(of).collect()
}

/// Whether `group` itself has a program of this type and name besides `ours`, which came before that.
pub(crate) fn has_older(group: &Path, attach_type: bpf_attach_type, name: &CStr, ours: BorrowedFd<'_>) -> bool {
    let ours = about(ours).id;
    all_attached(group, attach_type).into_iter().any(|id| id < ours && named(id, name).is_some())
}

/// The maps of the program of this type and name that `group` itself has.
pub(crate) fn maps_of(group: &Path, attach_type: bpf_attach_type, name: &CStr) -> Vec<MapHandle> {
    let Some(program) = all_attached(group, attach_type).into_iter().find_map(|id| named(id, name)) else {
        return Vec::new();
    };
    let mut ids = vec![0u32; about(program.as_fd()).nr_map_ids as usize];
    let mut info = libbpf_sys::bpf_prog_info {
        nr_map_ids: ids.len() as u32,
        map_ids: ids.as_mut_ptr().addr() as u64,
        ..Default::default()
    };
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most so many bytes into a structure of integers, and so many ids.
    unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut length) };
    ids.into_iter().filter_map(|id| MapHandle::from_map_id(id).ok()).collect()
}

/// The program with this number, if it has this name.
fn named(id: u32, name: &CStr) -> Option<OwnedFd> {
    // SAFETY: the kernel has just returned this descriptor to us alone; or an error, which is below 0.
    let program = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
    // SAFETY: the same.
    let program = (program >= 0).then(|| unsafe { OwnedFd::from_raw_fd(program) })?;
    has_name(&about(program.as_fd()), name).then_some(program)
}

/// All zero if the kernel does not say.
pub(crate) fn about(program: BorrowedFd<'_>) -> libbpf_sys::bpf_prog_info {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most so many bytes into a structure of integers.
    unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut length) };
    info
}

fn has_name(info: &libbpf_sys::bpf_prog_info, name: &CStr) -> bool {
    let bytes = info.name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0);
    bytes.eq(name.to_bytes().iter().copied())
}

/// The first programs of a type on a group; more than these are not reported.
fn all_attached(group: &Path, attach_type: bpf_attach_type) -> Vec<u32> {
    let Ok(directory) = File::open(group) else { return Vec::new() };
    let mut ids = [0; 16];
    let (mut flags, mut number) = (0, ids.len() as u32);
    // SAFETY: the kernel writes at most `number` ids, and one value each to the others.
    unsafe {
        let ids = ids.as_mut_ptr();
        libbpf_sys::bpf_prog_query(directory.as_raw_fd(), attach_type, 0, &raw mut flags, ids, &raw mut number)
    };
    ids.into_iter().take_while(|id| *id != 0).collect()
}

/// How a group's programs of a type are attached, and the first of them. `None`: the kernel does not say.
fn attached(group: &Path, attach_type: bpf_attach_type) -> Option<(u32, Option<u32>)> {
    let directory = File::open(group).ok()?;
    let (mut flags, mut number, mut ids) = (0, 1, [0]);
    // SAFETY: the kernel writes at most `number` ids, and one value each to the others.
    let result = unsafe {
        let ids = ids.as_mut_ptr();
        libbpf_sys::bpf_prog_query(directory.as_raw_fd(), attach_type, 0, &raw mut flags, ids, &raw mut number)
    };
    // of more than one the first is given all the same
    let known = result == 0 || result == -libc::ENOSPC;
    known.then(|| (flags, (number > 0).then_some(ids[0])))
}
