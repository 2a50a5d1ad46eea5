// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that can be traced, found by what they have in the kernel.

use std::{collections::BTreeMap, io};

use libbpf_rs::{
    MapCore, MapFlags, MapHandle, libbpf_sys,
    query::{ProgInfoIter, ProgInfoQueryOptions},
};

use super::names::{self, Value};
use crate::{Error, Result, bpf_skel::types, clock::monotonic_now, programs::text_of};

/// The only key of the maps that have one.
pub(super) const KEY: [u8; 4] = [0; 4];

/// The programs of a transfer, or of a law for the whole machine.
#[derive(Debug)]
pub struct Traceable {
    /// The law's name, without parameters.
    pub law: String,
    /// With them.
    pub text: String,
    /// Whether the law is one of ours.
    pub ours: bool,
    /// Whether it is for the whole machine.
    pub whole_machine: bool,
    pub(super) switch: MapHandle,
    pub(super) ring: MapHandle,
    pub(super) drops: MapHandle,
    programs: Vec<u32>,
}

impl Traceable {
    /// All that are in the kernel now, of any process.
    ///
    /// # Errors
    /// [`Error::Trace`]: they cannot be read. [`Error::OtherVersion`].
    pub fn all() -> Result<Vec<Traceable>> {
        // the programs of one object share its switch
        let mut objects: BTreeMap<u32, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        let mut switches: BTreeMap<u32, bool> = BTreeMap::new();
        let mut is_switch = |id: u32| *switches.entry(id).or_insert_with(|| named(id, "lt_tracing").is_some());
        for program in ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true)) {
            let Some(switch) = program.map_ids.iter().copied().find(|id| is_switch(*id)) else { continue };
            let (programs, maps) = objects.entry(switch).or_default();
            programs.push(program.id);
            maps.extend(program.map_ids);
        }
        let found = objects.into_iter().filter_map(|(switch, (programs, mut maps))| {
            maps.sort_unstable();
            maps.dedup();
            Traceable::open(switch, programs, &maps).transpose()
        });
        found.collect()
    }

    /// `None`: it has gone meanwhile.
    fn open(switch: u32, programs: Vec<u32>, maps: &[u32]) -> Result<Option<Traceable>> {
        let find = |name: &str| maps.iter().find_map(|id| named(*id, name));
        let (Some(switch), Some(ring), Some(drops)) =
            (named(switch, "lt_tracing"), find("lt_trace"), find("lt_trace_drops"))
        else {
            return Ok(None);
        };
        let is_ours = |map: &MapHandle, size: usize| map.value_size() as usize == size;
        let setup = find(".rodata.setup").filter(|map| is_ours(map, size_of::<types::rodata_setup>()));
        let Some(setup) = setup.filter(|_| is_ours(&switch, size_of::<types::lt_tracing>())) else {
            return Err(Error::OtherVersion);
        };
        let bytes = setup.lookup(&KEY, MapFlags::ANY).map_err(unread)?.unwrap_or_default();
        if bytes.len() != size_of::<types::rodata_setup>() {
            return Err(unread(io::Error::from(io::ErrorKind::InvalidData)));
        }
        // SAFETY: integers, for which any bytes are a value; a copy, as the bytes need not be aligned.
        let setup = unsafe { bytes.as_ptr().cast::<types::rodata_setup>().read_unaligned() }.setup;
        let text = text_of(&setup.law_text);
        let law = text.split(':').next().unwrap_or_default().to_owned();
        let (ours, whole_machine) = (setup.ours > 0, setup.whole_machine > 0);
        Ok(Some(Traceable { law, text, ours, whole_machine, switch, ring, drops, programs }))
    }

    /// The values of its law.
    pub fn values(&self) -> &'static [Value] {
        names::values(&self.law, self.ours)
    }

    /// Whether it is being traced.
    ///
    /// # Errors
    /// [`Error::Trace`]: the kernel does not say.
    pub fn is_traced(&self) -> Result<bool> {
        let switch = self.switch.lookup(&KEY, MapFlags::ANY).map_err(unread)?.unwrap_or_default();
        let until = switch.get(..8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
        Ok(until > monotonic_now())
    }

    /// Whether some of its programs are still in the kernel.
    pub(super) fn lives(&self) -> bool {
        self.programs.iter().any(|id| {
            // SAFETY: a system call with an integer.
            let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(*id) };
            // SAFETY: it was opened just now, and has no other owner.
            fd >= 0 && unsafe { libc::close(fd) } == 0
        })
    }
}

/// The map, if it has this name, or ends with it where libbpf puts the object's before.
fn named(id: u32, name: &str) -> Option<MapHandle> {
    let map = MapHandle::from_map_id(id).ok()?;
    let found = map.name().to_str()?;
    let is_it = if name.starts_with('.') { found.ends_with(name) } else { found == name };
    is_it.then_some(map)
}

pub(super) fn unread(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Trace(io::Error::other(error))
}
