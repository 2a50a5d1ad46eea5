// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network namespaces of processes. The kernel's iterator over TCP sockets shows those of one namespace.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
};

use libbpf_rs::{Iter, Link};
use nix::sched::{CloneFlags, setns};

use crate::{Error, Result};

/// The network namespaces of processes, and that of this thread, each held by a file, by its number.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    known: BTreeMap<u64, File>,
}

/// A process can be in as many as it likes, one after the other, and what is held stays: so no more are held than this.
const MOST_NETWORKS: usize = 256;
/// A look takes a millisecond or more for each new one, and we have other things to do: after the first look no more
/// than these at a time.
const NEW_NETWORKS: usize = 16;

impl Networks {
    /// Those that these processes have come to be in since the last look, and this thread's, where PROGRAM begins and
    /// may have data in flight when it has ended: the numbers of the new ones; and how many more there was no room for.
    /// Those without processes make room.
    pub(crate) fn look(&mut self, processes: &[i32]) -> (Vec<u64>, u32) {
        // one that has ended meanwhile is in none; CAP_SYS_PTRACE shows another user's, which is here in most cases
        let places = processes.iter().map(|pid| PathBuf::from(format!("/proc/{pid}/ns/net"))).chain([HERE.into()]);
        let now: BTreeMap<u64, PathBuf> = places.filter_map(|path| Some((number(&path)?, path))).collect();
        let new: Vec<_> = now.iter().filter(|(number, _)| !self.known.contains_key(number)).collect();
        if self.known.len() + new.len() > MOST_NETWORKS {
            self.known.retain(|number, _| now.contains_key(number));
        }
        let room = MOST_NETWORKS.saturating_sub(self.known.len());
        let most = if self.known.is_empty() { room } else { room.min(NEW_NETWORKS) };
        let mut taken = Vec::new();
        for (_, path) in new.iter().take(most) {
            // the process may be elsewhere by now
            let Ok(network) = File::open(path) else { continue };
            let Ok(about) = network.metadata() else { continue };
            if self.known.insert(about.ino(), network).is_none() {
                taken.push(about.ino());
            }
        }
        (taken, new.len().saturating_sub(room) as u32)
    }

    /// The same for all processes of the machine.
    pub(crate) fn of_machine() -> Networks {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        let mut networks = Networks::default();
        networks.look(&processes);
        networks
    }

    pub(crate) fn all(&self) -> Vec<u64> {
        self.known.keys().copied().collect()
    }

    /// What the iterator writes in these namespaces.
    ///
    /// # Errors
    /// [`Error::Observe`]: no right to enter one, or the read fails; all others have been read then.
    pub(crate) fn read(&self, iterator: &Link, networks: &[u64]) -> Result<Vec<u8>> {
        let (mut bytes, mut failed) = (Vec::new(), None);
        let here = number(Path::new(HERE));
        for (number, network) in networks.iter().filter_map(|number| self.known.get_key_value(number)) {
            let answer = if Some(*number) == here { read_here(iterator) } else { read_in(network, iterator) };
            match answer {
                Ok(more) => bytes.extend(more),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(bytes), |error| Err(Error::Observe(error)))
    }
}

/// Where this thread is.
const HERE: &str = "/proc/thread-self/ns/net";

fn number(path: &Path) -> Option<u64> {
    Some(fs::metadata(path).ok()?.ino())
}

/// Needs no CAP_SYS_ADMIN.
fn read_here(iterator: &Link) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Iter::new(iterator).map_err(io::Error::other)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A thread of its own enters the namespace and ends with it: this one stays where it is.
fn read_in(network: &File, iterator: &Link) -> io::Result<Vec<u8>> {
    // a link is no thread's own, but its type does not say so
    struct Shared<'a>(&'a Link);
    // SAFETY: reading takes the link's descriptor and nothing else, and this thread waits for the other one.
    unsafe impl Send for Shared<'_> {}
    let shared = Shared(iterator);
    let read = move || {
        let shared = shared;
        setns(network, CloneFlags::CLONE_NEWNET)?;
        read_here(shared.0)
    };
    thread::scope(|scope| scope.spawn(read).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
