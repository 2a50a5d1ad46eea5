// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which namespaces are ours, and whether their owner lives.
//!
//! The owner of a namespace holds an exclusive `flock` on a record, a file with the namespace's
//! name. The kernel drops that lock when the process dies, however it dies, so a record that can be
//! locked is what a crashed owner left. The namespace itself carries a mark (the alias of its
//! loopback device), so that we never delete one that another process made under the same name.

use crate::error::Doing;
use crate::{Error, iproute};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const RECORDS: &str = "/run/lowtide/emulate";

/// Alias of the loopback device in our namespaces.
const MARK: &str = "lowtide-emulate";

/// Second line of the record of a namespace that carries the mark.
const READY: &str = "ready";

/// Where iproute2 keeps the namespace of this name.
pub(crate) fn namespace_path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

/// The records, locked against all other emulators of this machine.
pub(crate) struct Records {
    _lock: Flock<File>,
}

/// The proof that a namespace is ours, for as long as it exists.
pub(crate) struct Record {
    file: Flock<File>,
    name: String,
}

impl Records {
    /// Waits for the lock.
    pub(crate) fn lock() -> Result<Self, Error> {
        let cannot_lock = || format!("keep records in {RECORDS}");
        loop {
            fs::create_dir_all(RECORDS).doing(cannot_lock)?;
            let directory = File::open(RECORDS).doing(cannot_lock)?;
            let lock =
                Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, errno)| errno).doing(cannot_lock)?;
            // The last owner may have removed the directory while we waited.
            let locked = lock.metadata().doing(cannot_lock)?.ino();
            if fs::metadata(RECORDS).is_ok_and(|current| current.ino() == locked) {
                return Ok(Self { _lock: lock });
            }
        }
    }

    /// Removes what crashed emulators left behind.
    pub(crate) fn sweep(&self) -> Result<(), Error> {
        let entries = fs::read_dir(RECORDS).doing(|| format!("read {RECORDS}"))?;
        for name in entries.flatten().map(|entry| entry.file_name()) {
            let Some(record) = name.to_str().and_then(Record::of_the_dead) else {
                continue;
            };
            if namespace_path(&record.name).exists() && record.made_its_namespace() {
                iproute::ip(&["netns", "delete", &record.name])?;
            }
            record.remove();
        }
        Ok(())
    }

    /// Makes a namespace, its loopback device up, and the record that it is ours.
    ///
    /// # Errors
    /// [`Error::NamespaceInUse`] and [`Error::ForeignNamespace`] if the name is taken.
    pub(crate) fn make_namespace(&self, name: &str) -> Result<Record, Error> {
        let mut record = Record::new(name)?;
        if namespace_path(name).exists() {
            record.remove();
            return Err(Error::ForeignNamespace(name.to_owned()));
        }
        let made = iproute::ip(&["netns", "add", name])
            .and_then(|_| iproute::ip(&["-n", name, "link", "set", "lo", "up", "alias", MARK]))
            .and_then(|_| record.write(READY));
        match made {
            Ok(()) => Ok(record),
            Err(error) => {
                // The first error is the one to report.
                drop(self.delete_namespace(&record));
                Err(error)
            }
        }
    }

    /// Deletes a namespace and its record. Processes in it keep it alive, without a name, until
    /// they end.
    pub(crate) fn delete_namespace(&self, record: &Record) -> Result<(), Error> {
        let deleted = match namespace_path(&record.name).exists() {
            true => iproute::ip(&["netns", "delete", &record.name]).map(drop),
            false => Ok(()),
        };
        record.remove();
        deleted
    }
}

impl Drop for Records {
    /// Leaves no empty directory of ours.
    fn drop(&mut self) {
        let _not_empty = fs::remove_dir(RECORDS);
    }
}

impl Record {
    /// A record of our own, locked.
    fn new(name: &str) -> Result<Self, Error> {
        let cannot_write = || format!("write {RECORDS}/{name}");
        let file =
            OpenOptions::new().create(true).append(true).open(Path::new(RECORDS).join(name)).doing(cannot_write)?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Err(Error::NamespaceInUse(name.to_owned())),
            Err((_, errno)) => return Err(errno).doing(cannot_write),
        };
        let name = name.to_owned();
        let mut record = Self { file, name };
        record.write(&std::process::id().to_string())?;
        Ok(record)
    }

    /// The record of this name, if its owner is dead.
    fn of_the_dead(name: &str) -> Option<Self> {
        let file = File::open(Path::new(RECORDS).join(name)).ok()?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()?;
        let name = name.to_owned();
        Some(Self { file, name })
    }

    /// Whether the namespace that now has this name is the one that the record is about: it carries
    /// our mark, or its owner died before he could set it.
    fn made_its_namespace(&self) -> bool {
        let text = fs::read_to_string(Path::new(RECORDS).join(&self.name)).unwrap_or_default();
        let marked = || {
            iproute::ip(&["-n", &self.name, "-o", "link", "show", "lo"])
                .is_ok_and(|text| text.contains(&format!("alias {MARK}")))
        };
        !text.lines().any(|line| line == READY) || marked()
    }

    fn write(&mut self, line: &str) -> Result<(), Error> {
        writeln!(self.file, "{line}").doing(|| format!("write {RECORDS}/{}", self.name))
    }

    fn remove(&self) {
        let _already_gone = fs::remove_file(Path::new(RECORDS).join(&self.name));
    }
}
