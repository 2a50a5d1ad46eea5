// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws for the whole machine: registered under their plain names, for every program that asks for them
//! (`setsockopt(TCP_CONGESTION)`, `iperf3 -C lt_vegas`, `ip route … congctl lt_cdg`), without a transfer, a deadline or
//! a group.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::{
    Error, KernelLaw, Result,
    bpf_skel::types,
    law::is_available,
    libbpf_log::LibbpfLog,
    networks::Networks,
    observer::{Observer, walks_states},
    programs::{Programs, text_of},
};

/// Where bpffs is.
const BPFFS: &str = "/sys/fs/bpf";
/// By which a mount of ours is known: one that we made goes with the last law.
const SOURCE: &str = "lowtide";
/// The directory there that holds one for each law.
const DIRECTORY: &str = "lowtide";
/// In a law's: its registration, its sockets (a file to read), its setup and its variables.
const PINS: [&str; 4] = ["law", "sockets", "setup", "variables"];
/// The kernel takes a law away some time after its pin is removed (an RCU grace period and a turn of its workqueue):
/// how often and how many times we look whether it has.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 1000;

/// A law that is there as long as this value, or, once pinned, until it is unloaded or the machine ends.
pub struct MachineLaw {
    registration: Link,
    sockets: Observer,
    programs: Programs,
    name: String,
}

impl std::fmt::Debug for MachineLaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MachineLaw").field("name", &self.name).finish_non_exhaustive()
    }
}

impl MachineLaw {
    /// Registers `law`, one of ours, as `lt_NAME`; `weight` is its price weight, without which it is as published.
    ///
    /// # Errors
    /// The law is not ours or has no weight; the name is taken; or the kernel refuses it, with its reason.
    pub fn load(law: &KernelLaw, weight: Option<f64>) -> Result<MachineLaw> {
        if !law.is_ours() {
            return Err(Error::NotOurs { law: law.name().to_owned() });
        }
        if weight.is_some() && !law.takes_weight() {
            return Err(Error::NoWeight { law: law.name().to_owned() });
        }
        let name = KernelLaw::registered(law.name());
        if is_available(&name) {
            return Err(Error::Loaded { law: law.name().trim_start_matches("lt_").to_owned() });
        }
        let log = LibbpfLog::listen();
        let mut programs = Programs::of_machine(law, weight, &name, &log)?;
        let registration = programs.register(law, &log)?;
        let sockets = programs.observe(&log)?;
        Ok(MachineLaw { registration, sockets, programs, name })
    }

    /// The name under which programs ask for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Leaves it in the kernel when this process ends.
    ///
    /// # Errors
    /// [`Error::System`]: there is no bpffs, or no right to it. The law is gone then.
    pub fn pin(mut self) -> Result<()> {
        let directory = bpffs()?.join(DIRECTORY).join(&self.name);
        fs::create_dir_all(&directory).map_err(Error::system("making a directory in bpffs"))?;
        let [law, sockets, setup, variables] = PINS.map(|pin| directory.join(pin));
        let pinned = self.registration.pin(law).and_then(|()| self.sockets.0.pin(sockets));
        let pinned = pinned.and_then(|()| self.programs.pin_setup(&setup));
        let pinned = pinned.and_then(|()| self.programs.pin_variables(&variables));
        pinned.map_err(|error| {
            let _ = remove(&directory); // what is there of it
            Error::system("pinning the law in bpffs")(io::Error::other(error))
        })
    }
}

/// A law that stays in the kernel.
#[derive(Debug)]
pub struct Pinned {
    /// `lt_NAME`.
    pub name: String,
    directory: PathBuf,
}

/// What a pinned law is and does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The law with its parameters, as it was asked for.
    pub law: String,
    /// Sockets that have it.
    pub sockets: usize,
    /// Reductions that it began by itself.
    pub reductions: u64,
    /// Skipped struct_ops callbacks that were repaired at the next ACK.
    pub missed: u64,
}

impl Pinned {
    /// All that are pinned, by name.
    ///
    /// # Errors
    /// [`Error::System`]: no right to look.
    pub fn all() -> Result<Vec<Pinned>> {
        let directory = Path::new(BPFFS).join(DIRECTORY);
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::system("looking into bpffs")(error)),
        };
        let mut laws: Vec<Pinned> = entries
            .flatten()
            .map(|entry| Pinned { name: entry.file_name().to_string_lossy().into_owned(), directory: entry.path() })
            .collect();
        laws.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(laws)
    }

    /// What it is and does.
    ///
    /// # Errors
    /// [`Error::Observe`], [`Error::System`]: a pin is missing or cannot be read.
    pub fn about(&self) -> Result<About> {
        let [_, sockets, setup, variables] = PINS.map(|pin| self.directory.join(pin));
        let sockets = Link::open(sockets).map_err(|error| Error::Observe(io::Error::other(error)))?;
        let networks = if walks_states() { Networks::default() } else { Networks::of_machine() };
        let records = Observer(sockets).read(&networks)?;
        let [setup, variables] = [contents(&setup)?, contents(&variables)?];
        if setup.len() != size_of::<types::rodata_setup>() || variables.len() != size_of::<types::bss>() {
            return Err(Error::Observe(io::ErrorKind::InvalidData.into()));
        }
        // SAFETY: integers, for which any bytes are a value; copies, as the bytes need not be aligned.
        let (setup, variables) = unsafe {
            let setup = setup.as_ptr().cast::<types::rodata_setup>().read_unaligned().setup;
            (setup, variables.as_ptr().cast::<types::bss>().read_unaligned())
        };
        Ok(About {
            law: text_of(&setup.law_text),
            sockets: records.len() / size_of::<types::lt_socket_record>(),
            reductions: variables.totals.delay_backoffs,
            missed: variables.totals.law_missed,
        })
    }

    /// Takes it out of the kernel; on return it is gone. Sockets that have it keep it until they close; no new one gets
    /// it.
    ///
    /// # Errors
    /// [`Error::System`]: no right to its pins; or the kernel still has the law after ten seconds.
    pub fn unload(self) -> Result<()> {
        remove(&self.directory).map_err(Error::system("removing the law's pins from bpffs"))?;
        for _ in 0..LOOKS {
            if !is_available(&self.name) {
                return Ok(());
            }
            thread::sleep(LOOK);
        }
        Err(Error::system("unloading the law")(io::Error::other(
            "its pins are gone, but another program still holds it",
        )))
    }
}

/// Of a pinned map with one value.
fn contents(path: &Path) -> Result<Vec<u8>> {
    let map = MapHandle::from_pinned_path(path).map_err(|error| Error::Observe(io::Error::other(error)))?;
    let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
    Ok(bytes.map_err(|error| Error::Observe(io::Error::other(error)))?.unwrap_or_default())
}

fn remove(directory: &Path) -> io::Result<()> {
    for pin in PINS {
        match fs::remove_file(directory.join(pin)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(directory)?;
    // the last one takes the directory of all with it
    if directory.parent().is_some_and(|all| fs::remove_dir(all).is_ok()) {
        unmount_ours();
    }
    Ok(())
}

/// What a kernel with CONFIG_BPF_PRELOAD puts into each bpffs.
const PRELOADED: [&str; 2] = ["maps.debug", "progs.debug"];

/// Undoes what [`bpffs`] did: a file system that we mounted, and that no other process uses.
fn unmount_ours() {
    let is_the_kernels = |entry: fs::DirEntry| PRELOADED.iter().any(|name| entry.file_name() == *name);
    let empty = fs::read_dir(BPFFS).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(is_the_kernels)));
    if empty && mounted_bpffs().is_some_and(|source| source == SOURCE) {
        let _ = umount2(BPFFS, MntFlags::UMOUNT_NOFOLLOW); // not if a process has a file of it open
    }
}

/// The source of what is mounted there, if that is bpffs.
fn mounted_bpffs() -> Option<String> {
    let mounted = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let source = |line: &str| {
        let mut words = line.split(' ');
        let source = words.next()?.to_owned();
        words.take(2).eq([BPFFS, "bpf"]).then_some(source)
    };
    mounted.lines().rev().find_map(source)
}

/// Where bpffs is, mounted where it was not, as it is on any machine with systemd.
fn bpffs() -> Result<&'static Path> {
    if mounted_bpffs().is_none() {
        let none: Option<&str> = None;
        let failed = |error: nix::Error| Error::system("mounting bpffs at /sys/fs/bpf")(error.into());
        mount(Some(SOURCE), BPFFS, Some("bpf"), MsFlags::empty(), none).map_err(failed)?;
    }
    Ok(Path::new(BPFFS))
}
