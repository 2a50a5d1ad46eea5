// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hierarchy of cgroups: where it is mounted, and which group a process is in.

use std::{
    fs, io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use crate::{Error, Result};

/// The v2 hierarchy as far as it is in sight.
#[derive(Debug)]
pub(crate) struct Hierarchy {
    pub(crate) root: PathBuf,
    /// The directory of this process's group, at `root` or below.
    pub(crate) own: PathBuf,
    /// Keeps it mounted for us alone.
    pub(crate) mount: Option<OwnedFd>,
}

/// Why groups are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To attach to one that exists: a read-only mount suffices (systemd's `ProtectControlGroups`).
    Attach,
    /// To make one.
    Make,
}

/// Where it is mounted so that our own group is in it. Else a mount of our own that no other process sees: `ip netns
/// exec` hides /sys/fs/cgroup, and in a container the host's mount shows more than the container's namespace has names
/// for.
pub(crate) fn hierarchy(purpose: Purpose) -> Result<Hierarchy> {
    showing(&group_of("self").unwrap_or_else(|| PathBuf::from("/")), purpose)
}

/// The same for the hierarchy in which this group is in sight.
pub(crate) fn showing(own: &Path, purpose: Purpose) -> Result<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(found) = mounted(&mounts, own, purpose) {
        return Ok(found);
    }
    let mount = mount_detached().map_err(Error::NoCgroup)?;
    let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
    match directory(&root, Path::new("/"), own) {
        Some(own) => Ok(Hierarchy { root, own, mount: Some(mount) }),
        None => Err(Error::GroupOutOfSight { group: own.to_owned() }),
    }
}

/// The first cgroup2 entry of a mountinfo table that shows our group and is fit for the purpose, its octal escapes
/// undone.
fn mounted(mounts: &str, own: &Path, purpose: Purpose) -> Option<Hierarchy> {
    let plain = |path: &str| PathBuf::from(path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"));
    let writable = |options: &str| options.split(',').any(|option| option == "rw");
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (top, root, options) = (plain(mount.next()?), plain(mount.next()?), mount.next()?);
        let mut kind = kind.split(' ');
        let is_cgroup2 = kind.next() == Some("cgroup2");
        let fits = purpose == Purpose::Attach || writable(options) && kind.nth(1).is_some_and(writable);
        if !is_cgroup2 || !fits {
            return None;
        }
        let own = directory(&root, &top, own)?;
        Some(Hierarchy { root, own, mount: None })
    })
}

/// Our group's directory in a mount at `root` that shows what is below the group `top`. Both groups have the names of
/// our cgroup namespace, in which what lies above its root is `/..`; a way down from there has no name.
fn directory(root: &Path, top: &Path, own: &Path) -> Option<PathBuf> {
    let below = own.strip_prefix(top).ok()?;
    let known = !below.components().any(|part| part == Component::ParentDir);
    let own = root.join(below);
    // an entry of the table may be covered by another mount
    (known && own.join("cgroup.procs").exists()).then_some(own)
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

/// A process's group, from the root of this process's cgroup namespace. `None`: there is no such process, or it is in
/// none.
pub(crate) fn group_of(process: &str) -> Option<PathBuf> {
    group_among(&fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?)
}

/// The group of cgroup v2 among those of a process.
pub(crate) fn group_among(groups: &str) -> Option<PathBuf> {
    groups.lines().find_map(|line| line.strip_prefix("0::")).map(PathBuf::from)
}

/// The processes of a group and of those below it.
pub(crate) fn processes_below(group: &Path) -> Vec<i32> {
    let own = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut all: Vec<i32> = own.lines().filter_map(|pid| pid.parse().ok()).collect();
    let below = fs::read_dir(group).into_iter().flatten().flatten();
    for child in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        all.extend(processes_below(&child.path()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_group_is_found_in_the_mount_that_shows_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for group in ["", "a", "a/b"] {
            fs::create_dir_all(root.join(group)).unwrap();
            fs::write(root.join(group).join("cgroup.procs"), "").unwrap();
        }
        let found_for = |purpose, top: &str, own: &str, options: &str, kind: &str| {
            let line = format!("30 24 0:26 {top} {} {options} shared:4 - {kind}\n", root.display());
            let found = mounted(&line, Path::new(own), purpose);
            found.map(|found| found.own.strip_prefix(root).unwrap().display().to_string())
        };
        let found = |top: &str, own: &str, options: &str, kind: &str| found_for(Purpose::Make, top, own, options, kind);
        let (rw, kind) = ("rw,nosuid", "cgroup2 cgroup2 rw,nsdelegate");
        for (top, own, group) in [
            ("/", "/", Some("")),
            ("/", "/a/b", Some("a/b")),
            ("/docker/1", "/docker/1", Some("")),
            ("/docker/1", "/docker/1/a", Some("a")),
            ("/..", "/../a", Some("a")),
            // the host's mount in a container: the way from there to its group has no name
            ("/..", "/", None),
            ("/../..", "/..", None),
            ("/", "/../a", None),
            ("/docker/1", "/docker/2", None),
            ("/", "/elsewhere", None),
        ] {
            assert_eq!(found(top, own, rw, kind).as_deref(), group, "{own} in a mount of {top}");
        }
        assert_eq!(found("/", "/", "ro,nosuid", kind), None);
        assert_eq!(found("/", "/", rw, "cgroup2 cgroup2 ro"), None);
        assert_eq!(found("/", "/", rw, "cgroup cgroup rw,cpu"), None);
        assert_eq!(found_for(Purpose::Attach, "/", "/a", "ro,nosuid", kind).as_deref(), Some("a"));
        assert_eq!(found_for(Purpose::Attach, "/", "/a", "ro,nosuid", "cgroup cgroup rw,cpu"), None);
        let nowhere = "30 24 0:26 / /nowhere/at\\040all rw - cgroup2 cgroup2 rw\n";
        assert!(mounted(nowhere, Path::new("/"), Purpose::Make).is_none());
    }
}
