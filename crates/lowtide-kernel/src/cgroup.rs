// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cgroup v2 child of its own for PROGRAM, wherever the hierarchy is (pure, hybrid, in a container, out of sight).

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use nix::{
    fcntl::{Flock, FlockArg},
    sys::statfs::{CGROUP2_SUPER_MAGIC, fstatfs},
};

use crate::{Error, Result, existing::Found, takeover::processes_below};

const PREFIX: &str = "lowtide-";
/// Of a group's directory: what is in it can be looked at by its name. Who can open the directory itself can lock it.
const MODE: u32 = 0o711;

/// A cgroup that exists as long as this value, or until its last process has left it; or one that was there before.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    directory: Directory,
    // keeps a hierarchy of our own mounted while `path` leads through it
    _mount: Option<OwnedFd>,
}

#[derive(Debug)]
enum Directory {
    /// It is ours, and goes with this value. By its lock the next run tells a group in use from one that a killed run
    /// left behind.
    Made(Flock<File>),
    /// It was there before.
    Found(File),
}

impl Directory {
    fn file(&self) -> &File {
        match self {
            Directory::Made(lock) => lock,
            Directory::Found(file) => file,
        }
    }
}

impl Cgroup {
    /// Makes a group below this process's own, and removes those that killed runs left empty.
    ///
    /// # Errors
    /// [`Error::NoCgroup`], [`Error::GroupOutOfSight`], [`Error::CgroupUnwritable`], [`Error::Threaded`].
    pub fn create() -> Result<Cgroup> {
        let Hierarchy { root, own: parent, mount } = hierarchy(Purpose::Make)?;
        sweep(&root);
        let unwritable = |source| Error::CgroupUnwritable { path: parent.clone(), source };
        // no name twice in a process: who removes a group by its name must not find the next one there
        static NAMES: AtomicU32 = AtomicU32::new(0);
        for _attempt in 0..16 {
            let number = NAMES.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(MODE).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other.map_err(unwritable)?,
            }
            if fs::read_to_string(path.join("cgroup.type")).is_ok_and(|kind| kind.trim() == "domain invalid") {
                let _ = fs::remove_dir(&path);
                return Err(Error::Threaded { path: parent });
            }
            let directory = match open_directory(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue, // swept
                other => other.map_err(unwritable)?,
            };
            let Ok(lock) = Flock::lock(directory, FlockArg::LockExclusiveNonblock) else { continue };
            // a sweep of another run may have come between the calls
            if path.join("cgroup.procs").exists() {
                return Ok(Cgroup { path, directory: Directory::Made(lock), _mount: mount });
            }
        }
        Err(unwritable(io::Error::from(io::ErrorKind::AlreadyExists)))
    }

    /// A group that is there already. It stays as it is.
    ///
    /// # Errors
    /// [`Error::NoGroupThere`], [`Error::NotAGroup`], [`Error::RootGroup`].
    pub fn existing(found: Found) -> Result<Cgroup> {
        let Found { path, mount, .. } = found;
        let directory = open_directory(&path).map_err(|reason| Error::NoGroupThere { path: path.clone(), reason })?;
        // files that only look like a group's may make whoever reads them wait
        if !fstatfs(&directory).is_ok_and(|about| about.filesystem_type() == CGROUP2_SUPER_MAGIC) {
            return Err(Error::NotAGroup(path));
        }
        if !path.join("cgroup.type").exists() {
            return Err(Error::RootGroup(path));
        }
        Ok(Cgroup { path, directory: Directory::Found(directory), _mount: mount })
    }

    /// Its number, and those of the groups above and below it.
    pub fn kin(&self) -> BTreeSet<u64> {
        let id = |group: &Path| fs::metadata(group).ok().map(|about| about.ino());
        let above = self.path.ancestors().take_while(|group| group.join("cgroup.procs").exists());
        let mut kin: BTreeSet<u64> = above.filter_map(id).collect();
        let mut below = vec![self.path.clone()];
        while let Some(group) = below.pop() {
            kin.extend(id(&group));
            let entries = fs::read_dir(group).into_iter().flatten().flatten();
            let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            below.extend(groups.map(|entry| entry.path()));
        }
        kin
    }

    /// Where it is; through /proc if the hierarchy is mounted for us alone.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its number in the kernel, by which BPF programs know it.
    pub fn id(&self) -> u64 {
        self.directory.file().metadata().map_or(0, |about| about.ino())
    }

    /// The directory, to attach BPF programs to.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.file().as_fd()
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
        self.says("populated 1")
    }

    /// Whether somebody has frozen it.
    pub fn is_frozen(&self) -> bool {
        self.says("frozen 1")
    }

    fn says(&self, event: &str) -> bool {
        fs::read_to_string(self.path.join("cgroup.events")).is_ok_and(|events| events.contains(event))
    }

    /// Processes in it and below it, by pid.
    pub fn processes(&self) -> Vec<i32> {
        processes_below(&self.path)
    }

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
        if matches!(self.directory, Directory::Found(_)) {
            return;
        }
        self.send_home();
        // Still busy where that failed: the next run sweeps it.
        let _ = fs::remove_dir(&self.path);
    }
}

/// The v2 hierarchy as far as it is in sight.
#[derive(Debug)]
pub(crate) struct Hierarchy {
    pub(crate) root: PathBuf,
    /// The directory of this process's group, at `root` or below.
    pub(crate) own: PathBuf,
    /// Keeps it mounted for us alone.
    pub(crate) mount: Option<OwnedFd>,
}

/// What groups are looked for, for which a mount that can only be read suffices (systemd's `ProtectControlGroups`), or
/// not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To attach to one that is there.
    Attach,
    /// To make one.
    Make,
}

/// Where it is mounted so that our own group is in it. Else a mount of our own that nobody else sees: `ip netns exec`
/// hides /sys/fs/cgroup, and in a container the host's mount shows more than the container's namespace has names for.
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

/// The first cgroup2 entry of a mountinfo table that shows our group and looks fit for the purpose, its octal escapes
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

fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path)
}

/// `lowtide-PID-N`.
fn is_ours(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(pid, n)| pid.parse::<u32>().is_ok() && n.parse::<u32>().is_ok())
}

/// Removes empty groups whose owner is gone, wherever in the hierarchy they were made; the kernel keeps those with
/// processes.
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
