// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections of a group whose controller is gone. The programs for downloads stay with the group, and give each
//! connection its full window back with its next ACK. One on which nothing comes sends none: it gets its window back
//! here.

use std::{mem::MaybeUninit, os::fd::AsFd, path::Path};

use libbpf_rs::{
    MapCore, MapHandle, MapType, OpenObject,
    libbpf_sys::BPF_CGROUP_SOCK_OPS,
    skel::{OpenSkel, SkelBuilder},
};

use crate::{
    Result,
    bpf_skel::{OpenTransferSkel, TransferSkelBuilder},
    foreign,
    hierarchy::processes_below,
    libbpf_log::LibbpfLog,
    networks::Networks,
    programs::attached,
};

/// Of the programs for downloads the one that limits windows, and its map with a record per connection.
const LIMITS: &std::ffi::CStr = c"lt_download_ops";
const DOWNLOADS: &str = "downloads";
/// The iterator.
const FREES: &str = "lt_download_free";

/// Gives the connections of a group's processes their full windows back, where programs for downloads are attached to
/// the group. Its controller must be gone: a live one would limit them again.
///
/// # Errors
/// The kernel does not take the iterator, or a network namespace cannot be entered. Connections that were not reached
/// get their windows back with their next ACK.
pub(crate) fn free_downloads(group: &Path) -> Result<()> {
    let maps = foreign::maps_of(group, BPF_CGROUP_SOCK_OPS, LIMITS);
    let Some(downloads) = maps.into_iter().find(|map| map.name() == DOWNLOADS) else { return Ok(()) };
    let mut networks = Networks::default();
    networks.look(&processes_below(group));
    free(&downloads, &networks)
}

fn free(downloads: &MapHandle, networks: &Networks) -> Result<()> {
    let log = LibbpfLog::listen();
    let mut storage = MaybeUninit::<OpenObject>::uninit();
    let mut open = TransferSkelBuilder::default().open(&mut storage).map_err(|error| log.refusal(error))?;
    choose(&mut open, downloads).map_err(|error| log.refusal(error))?;
    let skeleton = open.load().map_err(|error| log.refusal(error))?;
    let iterator = attached("the program for windows left small", skeleton.progs.lt_download_free.attach(), &log)?;
    networks.read(&iterator, &networks.all()).map(drop)
}

/// Only the iterator is loaded, and its map is that of the programs that stayed.
fn choose(open: &mut OpenTransferSkel<'_>, downloads: &MapHandle) -> libbpf_rs::Result<()> {
    open.maps.downloads.reuse_fd(downloads.as_fd())?;
    for mut map in open.open_object_mut().maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
        map.set_autocreate(false)?;
    }
    for mut program in open.open_object_mut().progs_mut() {
        let is_it = program.name() == FREES;
        program.set_autoload(is_it);
    }
    Ok(())
}
