// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cgroup v2 child of its own for PROGRAM, wherever the hierarchy is (pure, hybrid, in a container, out of sight).

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use nix::fcntl::{Flock, FlockArg};

use crate::{Error, Result};

const PREFIX: &str = "lowtide-";

/// A cgroup that exists as long as this value, or until its last process has left it. The owner holds a lock on the
/// directory, by which the next run tells a group in use from one that a killed run left behind.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    lock: Flock<File>,
    // keeps a hierarchy of our own mounted while `path` leads through it
    _mount: Option<OwnedFd>,
}

impl Cgroup {
    /// Makes a group below this process's own, and removes those that killed runs left empty.
    ///
    /// # Errors
    /// [`Error::NoCgroup`], [`Error::CgroupUnwritable`].
    pub fn create() -> Result<Cgroup> {
        let (root, mount) = hierarchy()?;
        sweep(&root);
        let mut parent = root.join(own_group());
        if !parent.join("cgroup.procs").exists() {
            parent = root; // our group lies outside what this namespace shows
        }
        let unwritable = |source| Error::CgroupUnwritable { path: parent.clone(), source };
        // no name twice in a process: who removes a group by its name must not find the next one there
        static NAMES: AtomicU32 = AtomicU32::new(0);
        for _attempt in 0..16 {
            let number = NAMES.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other.map_err(unwritable)?,
            }
            let directory = match open_directory(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue, // swept
                other => other.map_err(unwritable)?,
            };
            let Ok(lock) = Flock::lock(directory, FlockArg::LockExclusiveNonblock) else { continue };
            // a sweep of another run may have come between the calls
            if path.join("cgroup.procs").exists() {
                return Ok(Cgroup { path, lock, _mount: mount });
            }
        }
        Err(unwritable(io::Error::from(io::ErrorKind::AlreadyExists)))
    }

    /// Where it is; through /proc if the hierarchy is mounted for us alone.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory, to attach BPF programs to.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }

    /// The file that a process writes "0" to in order to enter.
    ///
    /// # Errors
    /// [`Error::CgroupUnwritable`].
    pub fn entrance(&self) -> Result<File> {
        OpenOptions::new()
            .write(true)
            .open(self.path.join("cgroup.procs"))
            .map_err(|source| Error::CgroupUnwritable { path: self.path.clone(), source })
    }

    /// Whether any process is in it.
    pub fn is_populated(&self) -> bool {
        fs::read_to_string(self.path.join("cgroup.events")).is_ok_and(|events| events.contains("populated 1"))
    }

    /// Whether somebody has frozen it.
    pub fn is_frozen(&self) -> bool {
        fs::read_to_string(self.path.join("cgroup.events")).is_ok_and(|events| events.contains("frozen 1"))
    }

    /// Processes in it, by pid.
    pub fn processes(&self) -> Vec<i32> {
        fs::read_to_string(self.path.join("cgroup.procs"))
            .map(|pids| pids.lines().filter_map(|pid| pid.parse().ok()).collect())
            .unwrap_or_default()
    }
}

impl Cgroup {
    /// Processes that PROGRAM left behind go on in the group that it was started from.
    fn send_home(&self) {
        let Some(parent) = self.path.parent() else { return };
        let Ok(mut entrance) = OpenOptions::new().write(true).open(parent.join("cgroup.procs")) else { return };
        for pid in self.processes() {
            let _ = entrance.write_all(pid.to_string().as_bytes()); // it may have ended a moment ago
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.send_home();
        // Still busy where that failed: the next run sweeps it.
        let _ = fs::remove_dir(&self.path);
    }
}

/// The v2 hierarchy: where it is mounted, or a mount of our own that nobody else sees (`ip netns exec` hides /sys/fs/cgroup).
fn hierarchy() -> Result<(PathBuf, Option<OwnedFd>)> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    if let Some(path) = mounted(&mounts) {
        return Ok((path, None));
    }
    let mount = mount_detached().map_err(Error::NoCgroup)?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())), Some(mount)))
}

/// The first writable-looking cgroup2 entry of a mounts table, its octal escapes undone.
fn mounted(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (path, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let path = PathBuf::from(path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"));
        // a stale table entry may be covered by another mount
        (kind == "cgroup2" && options.split(',').any(|o| o == "rw") && path.join("cgroup.procs").exists())
            .then_some(path)
    })
}

fn mount_detached() -> io::Result<OwnedFd> {
    let owned = |fd: i64| {
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor to us alone.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    };
    const FSOPEN_CLOEXEC: u32 = 1;
    const FSCONFIG_CMD_CREATE: u32 = 6;
    const FSMOUNT_CLOEXEC: u32 = 1;
    // SAFETY: plain system calls with valid, NUL-terminated or null arguments.
    unsafe {
        let context = owned(libc::syscall(libc::SYS_fsopen, c"cgroup2".as_ptr(), FSOPEN_CLOEXEC))?;
        let null = std::ptr::null::<libc::c_char>();
        if libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, null, null, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        owned(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0))
    }
}

/// This process's group, relative to the hierarchy's root.
fn own_group() -> PathBuf {
    fs::read_to_string("/proc/self/cgroup")
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("0::/").map(PathBuf::from))
        .unwrap_or_default()
}

fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path)
}

/// `lowtide-PID-N`.
fn is_ours(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(pid, n)| pid.parse::<u32>().is_ok() && n.parse::<u32>().is_ok())
}

/// Removes empty groups whose owner is gone, wherever in the hierarchy they were made; the kernel keeps those with processes.
fn sweep(group: &Path) {
    let Ok(entries) = fs::read_dir(group) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let path = entry.path();
        sweep(&path);
        if is_ours(&entry.file_name().to_string_lossy())
            && let Ok(directory) = open_directory(&path)
            // held until it is removed: else a new run could take the group just before that
            && let Ok(_lock) = Flock::lock(directory, FlockArg::LockExclusiveNonblock)
        {
            let _ = fs::remove_dir(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_groups_are_left_alone() {
        assert!(is_ours("lowtide-4711-0"));
        for name in ["lowtide-backup.service", "lowtide-4711", "lowtide-a-0", "user.slice"] {
            assert!(!is_ours(name), "{name}");
        }
    }

    #[test]
    fn a_mounts_table_without_a_live_cgroup2_gives_none() {
        assert_eq!(mounted("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"), None);
        assert_eq!(mounted("cgroup2 /nowhere/at\\040all cgroup2 rw 0 0\n"), None);
    }
}
