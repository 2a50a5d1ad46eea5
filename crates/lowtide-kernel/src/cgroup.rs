// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cgroup v2 child of its own for PROGRAM, wherever the hierarchy is (pure, hybrid, in a container, out of sight).

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use nix::{
    fcntl::{Flock, FlockArg},
    sys::{
        statfs::{CGROUP2_SUPER_MAGIC, fstatfs},
        wait::{WaitStatus, waitpid},
    },
    unistd::Pid,
};

use crate::{
    Error, Result,
    existing::Found,
    hierarchy::{Hierarchy, Purpose, group_of, hierarchy, processes_below},
    leftover::free_downloads,
};

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
        // files that only look like a group's may make their reader wait
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

    /// A TCP socket (IPv4) of this process that belongs to this group, as do the connections that it accepts, though
    /// this process is in another group. A socket belongs to the group of the process that opens it: that is a child
    /// here, which shares the table of descriptors, and the network namespace of this thread.
    ///
    /// # Errors
    /// [`Error::CgroupUnwritable`], [`Error::System`].
    pub fn socket(&self) -> Result<OwnedFd> {
        let failed = |errno| Error::system("opening a socket in the group")(io::Error::from_raw_os_error(errno));
        let entrance = self.entrance()?;
        let place = OwnedFd::from(File::open("/dev/null").map_err(Error::system("opening /dev/null"))?);
        let flags = libc::c_long::from(libc::CLONE_FILES | libc::SIGCHLD);
        // SAFETY: the child has memory of its own, makes system calls only, and ends without returning.
        let child = unsafe {
            match libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) {
                0 => libc::_exit(open_socket_as(place.as_raw_fd(), entrance.as_raw_fd())),
                pid => pid as i32,
            }
        };
        if child < 0 {
            return Err(Error::system("fork")(io::Error::last_os_error()));
        }
        match waitpid(Pid::from_raw(child), None) {
            Ok(WaitStatus::Exited(_, 0)) => Ok(place),
            Ok(WaitStatus::Exited(_, errno)) => Err(failed(errno)),
            Ok(_) => Err(failed(libc::EINTR)),
            Err(errno) => Err(failed(errno as i32)),
        }
    }

    /// Whether any process is in it.
    pub fn is_populated(&self) -> bool {
        self.says("populated 1")
    }

    /// Whether this process is in it or below it.
    pub fn holds(&self, pid: i32) -> bool {
        let own = self.path.file_name();
        group_of(&pid.to_string()).is_some_and(|group| group.iter().any(|name| Some(name) == own))
    }

    /// Whether it is frozen.
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

    /// Downloads of processes that PROGRAM left behind go on as ordinary ones.
    fn let_go(&self) {
        if self.is_populated() {
            let _ = free_downloads(&self.path); // what it does not reach is let go by its next ACK
        }
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
        self.let_go();
        self.send_home();
        // Still busy where that failed: the next run sweeps it.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Enters a group, opens a TCP socket and puts it in the place of a descriptor; the error's number, or 0. Only system
/// calls, as after a fork.
fn open_socket_as(place: RawFd, entrance: RawFd) -> libc::c_int {
    // SAFETY: system calls with integers and one static text.
    unsafe {
        let entered = libc::write(entrance, c"0".as_ptr().cast(), 1) == 1;
        let socket = if entered { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) } else { -1 };
        if socket < 0 || libc::dup3(socket, place, libc::O_CLOEXEC) < 0 || libc::close(socket) < 0 {
            return *libc::__errno_location();
        }
    }
    0
}

fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path)
}

/// `lowtide-PID-N`.
fn is_ours(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(pid, n)| pid.parse::<u32>().is_ok() && n.parse::<u32>().is_ok())
}

/// Removes empty groups whose owner is gone, wherever in the hierarchy they were made. The kernel keeps those with
/// processes, whose downloads are let go.
fn sweep(group: &Path) {
    let Ok(entries) = fs::read_dir(group) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let path = entry.path();
        sweep(&path);
        if is_ours(&entry.file_name().to_string_lossy())
            && let Ok(directory) = open_directory(&path)
            // held until it is removed: else a new run could take the group just before that
            && let Ok(_lock) = Flock::lock(directory, FlockArg::LockExclusiveNonblock)
            && fs::remove_dir(&path).is_err()
        {
            let _ = free_downloads(&path); // what it does not reach is let go by its next ACK
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
}
