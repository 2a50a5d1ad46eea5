// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where control sockets are: a directory for their owner alone, a socket for each transfer, by its name.

use std::{
    fs::{self, DirBuilder, File, FileType, OpenOptions, Permissions},
    io::{self, ErrorKind},
    os::{
        fd::AsRawFd,
        unix::{
            fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr, socket},
    unistd::geteuid,
};

/// root's.
const OF_ROOT: &str = "/run/lowtide/control";
const ENDING: &str = ".sock";
const LOCK_ENDING: &str = ".group";
/// Bytes of a name: a path of a socket has 107.
const LONGEST_NAME: usize = 48;
/// So many transfers may ask for the same name.
const MOST_OF_A_NAME: u32 = 10_000;
/// Another transfer that begins at the same time needs milliseconds.
const PATIENCE: usize = 200;
/// Many of a group may begin at the same time, and each loads its programs.
const ENTRY_PATIENCE: usize = 3000;
const PAUSE: Duration = Duration::from_millis(10);

/// A directory of control sockets.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

/// A name that is taken, with its socket. Both go with this value.
#[derive(Debug)]
pub struct Claim {
    pub(super) name: String,
    pub(super) listener: UnixListener,
    pub(super) path: PathBuf,
}

impl Directory {
    /// root's, or that of the user who runs this.
    ///
    /// # Errors
    /// The user has no directory for such things.
    pub fn usual() -> Result<Directory> {
        if geteuid().is_root() {
            return Ok(Directory { path: OF_ROOT.into() });
        }
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| Path::new(path).is_absolute());
        let runtime =
            runtime.ok_or_else(|| anyhow!("XDG_RUNTIME_DIR names no directory for control sockets; use root"))?;
        Ok(Directory { path: Path::new(&runtime).join("lowtide/control") })
    }

    /// Another one.
    pub fn at(path: impl Into<PathBuf>) -> Directory {
        Directory { path: path.into() }
    }

    /// Takes the name, or one like it, and makes its socket. What transfers that are dead left goes first.
    ///
    /// # Errors
    /// The directory cannot be made, or is not its owner's alone.
    pub fn claim(&self, wanted: &str) -> Result<Claim> {
        let claim = || -> Result<Claim> {
            self.make()?;
            let _lock = lock(self.open()?, PATIENCE)?;
            self.sweep()?;
            for number in 1..MOST_OF_A_NAME {
                let name = if number == 1 { wanted.to_owned() } else { format!("{wanted}-{number}") };
                let path = self.path_of(&name);
                match UnixListener::bind(&path) {
                    Ok(listener) => {
                        let claim = Claim { name, listener, path };
                        fs::set_permissions(&claim.path, Permissions::from_mode(0o600))?;
                        return Ok(claim);
                    }
                    Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                    Err(error) => return Err(error.into()),
                }
            }
            bail!("there are too many transfers named {wanted}")
        };
        claim().with_context(|| format!("control sockets in {}", self.path.display()))
    }

    /// Of transfers of a group one at a time has this value, while it begins.
    ///
    /// # Errors
    /// The directory cannot be made, or is not its owner's alone; or another one takes very long.
    pub fn enter(&self, group: &str) -> Result<Entry> {
        let enter = || -> Result<Entry> {
            self.make()?;
            drop(self.open()?);
            let path = self.entry_path(group);
            loop {
                let file = to_lock().create(true).truncate(false).mode(0o600).open(&path)?;
                // the one before has removed the file, and perhaps another one made it again
                if let Some(entry) = Entry::with(lock(file, ENTRY_PATIENCE)?, &path) {
                    return Ok(entry);
                }
            }
        };
        enter().with_context(|| format!("control sockets in {}", self.path.display()))
    }

    fn make(&self) -> io::Result<()> {
        for (path, mode) in [(self.path.parent(), 0o755), (Some(&*self.path), 0o700)] {
            let made = path.map_or(Ok(()), |path| DirBuilder::new().mode(mode).create(path));
            made.or_else(|error| if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
        }
        Ok(())
    }

    /// The names of the transfers that live; none where there is no directory.
    ///
    /// # Errors
    /// The directory cannot be read, or is not its owner's alone.
    pub fn names(&self) -> Result<Vec<String>> {
        let names = || -> Result<Vec<String>> {
            match self.open() {
                Err(error) if is_missing(&error) => return Ok(Vec::new()),
                other => drop(other?),
            }
            let mut names: Vec<String> = self.sockets()?.into_iter().filter(|name| !self.is_stale(name)).collect();
            names.sort();
            Ok(names)
        };
        names().with_context(|| format!("control sockets in {}", self.path.display()))
    }

    /// # Errors
    /// There is no such transfer; the sentence names those that there are.
    pub fn connect(&self, name: &str) -> Result<UnixStream> {
        let none = || -> anyhow::Error {
            match self.names() {
                Ok(names) if names.is_empty() => anyhow!("no transfer is running; so there is none named {name:?}"),
                Ok(names) => anyhow!("there is no transfer named {name:?}; there are: {}", names.join(", ")),
                Err(error) => error,
            }
        };
        if slug(name) != name {
            return Err(none());
        }
        match self.open() {
            Err(error) if is_missing(&error) => return Err(none()),
            other => drop(other?),
        }
        connect(&self.path_of(name)).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => none(),
            ErrorKind::WouldBlock => {
                anyhow!("{name} does not answer, and many wait for it: its process may be stopped")
            }
            _ => anyhow!("the control socket of {name}: {error}"),
        })
    }

    /// The directory itself, if it is for its owner alone, and that is who asks.
    fn open(&self) -> Result<File> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let directory = OpenOptions::new().read(true).custom_flags(flags).open(&self.path)?;
        let about = directory.metadata()?;
        if about.uid() != geteuid().as_raw() || about.mode() & 0o077 != 0 {
            bail!("the directory has to belong to {} and be closed to everybody else (mode 0700)", geteuid());
        }
        Ok(directory)
    }

    fn sockets(&self) -> io::Result<Vec<String>> {
        self.files(FileTypeExt::is_socket, ENDING)
    }

    /// The names of the files of this kind with this ending, without it.
    fn files(&self, is_one: fn(&FileType) -> bool, ending: &str) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.path)?.flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| is_one(&kind)));
        let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(ending)?.to_owned());
        Ok(files.filter_map(name).filter(|name| slug(name) == *name).collect())
    }

    /// No process listens: it was killed.
    fn is_stale(&self, name: &str) -> bool {
        connect(&self.path_of(name)).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }

    /// Removes the sockets of transfers that were killed, and the files of groups of which one was killed while it
    /// began.
    fn sweep(&self) -> io::Result<()> {
        for name in self.sockets()? {
            if self.is_stale(&name) {
                let _ = fs::remove_file(self.path_of(&name)); // its owner may have come first
            }
        }
        for group in self.files(FileType::is_file, LOCK_ENDING)? {
            let path = self.entry_path(&group);
            let file = to_lock().open(&path);
            let lock = file.ok().and_then(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock).ok());
            drop(lock.and_then(|lock| Entry::with(lock, &path))); // the file goes with it
        }
        Ok(())
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{ENDING}"))
    }

    fn entry_path(&self, group: &str) -> PathBuf {
        self.path.join(format!("{group}{LOCK_ENDING}"))
    }
}

impl Claim {
    /// The name that it came to.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The right to be the one transfer of a group that begins. It goes with this value.
#[derive(Debug)]
pub struct Entry {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Entry {
    /// `None`: the locked file is not the one that has this name now.
    fn with(lock: Flock<File>, path: &Path) -> Option<Entry> {
        let (ours, now) = (lock.metadata().ok()?, fs::symlink_metadata(path).ok()?);
        (ours.ino() == now.ino()).then(|| Entry { path: path.to_owned(), _lock: lock })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // those that wait for it find that it is gone
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // another process may have done it
    }
}

/// A name as a file can have it and a person can type it: letters, digits and `._-` stay, all else becomes `-`.
#[must_use]
pub fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = text.chars().map(plain).collect();
    let name = name.trim_matches(['-', '.']);
    let name = name[..name.len().min(LONGEST_NAME)].trim_end_matches(['-', '.']);
    if name.is_empty() { "transfer".to_owned() } else { name.to_owned() }
}

/// Connects at once or not at all: a listener whose process is stopped takes so many connections, and the next one
/// would wait for ever.
///
/// # Errors
/// [`ErrorKind::WouldBlock`]: so many wait already.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    socket::connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
}

/// How the file of a group is opened.
fn to_lock() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NOFOLLOW);
    options
}

/// One transfer at a time; tries so many times.
fn lock(mut file: File, tries: usize) -> Result<Flock<File>> {
    for _ in 0..tries {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((again, Errno::EWOULDBLOCK)) => file = again,
            Err((_, errno)) => return Err(io::Error::from(errno).into()),
        }
        thread::sleep(PAUSE);
    }
    bail!("another process holds the lock on the directory, or on its group")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place() -> (tempfile::TempDir, Directory) {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::at(parent.path().join("lowtide"));
        (parent, directory)
    }

    #[test]
    fn names_can_be_typed() {
        for (text, name) in [
            ("rsync", "rsync"),
            ("night job: /srv", "night-job---srv"),
            ("../../etc/passwd", "etc-passwd"),
            (".hidden", "hidden"),
            ("Grüße", "Gr--e"),
            ("a\u{1b}[31m", "a--31m"),
            ("", "transfer"),
            ("日本", "transfer"),
            (&"x".repeat(300), &"x".repeat(48)),
        ] {
            assert_eq!(slug(text), name, "{text:?}");
            assert_eq!(slug(name), name);
        }
    }

    #[test]
    fn each_transfer_has_a_name_and_a_socket_of_its_own() {
        let (_parent, directory) = place();
        assert!(directory.names().unwrap().is_empty(), "there is no directory yet");
        let first = directory.claim("rsync").unwrap();
        let second = directory.claim("rsync").unwrap();
        assert_eq!((first.name(), second.name()), ("rsync", "rsync-2"));
        assert_eq!(directory.names().unwrap(), ["rsync", "rsync-2"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&directory.path), mode(&second.path)), (0o700, 0o600));
        drop(first);
        assert_eq!(directory.names().unwrap(), ["rsync-2"]);
        assert_eq!(directory.claim("rsync").unwrap().name(), "rsync");
    }

    #[test]
    fn those_that_begin_together_have_different_names() {
        let (_parent, directory) = place();
        let claims: Vec<_> = thread::scope(|scope| {
            let begin = || directory.claim("job").unwrap();
            let threads = [(); 8].map(|()| scope.spawn(begin));
            threads.map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(directory.names().unwrap().len(), claims.len());
    }

    #[test]
    fn transfers_of_a_group_begin_one_after_the_other() {
        let (_parent, directory) = place();
        let inside = std::sync::atomic::AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let _entry = directory.enter("nightly").unwrap();
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
        let (a, b) = (directory.enter("nightly").unwrap(), directory.enter("weekly").unwrap());
        assert_ne!(a.path, b.path);
        drop((a, b));
        assert_eq!(fs::read_dir(&directory.path).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn the_file_of_a_group_that_a_killed_transfer_left_goes_and_no_other() {
        let (_parent, directory) = place();
        let held = directory.enter("held").unwrap();
        let left = directory.entry_path("left");
        fs::write(&left, "").unwrap(); // its lock went with its process
        drop(directory.enter("left").unwrap());
        assert!(!left.exists(), "with the next of the group");
        fs::write(&left, "").unwrap();
        drop(directory.claim("of no group").unwrap());
        assert!(!left.exists(), "with the next transfer, whatever its group");
        assert!(held.path.exists(), "one that begins keeps its own");
        drop(held);
        assert_eq!(fs::read_dir(&directory.path).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn what_a_killed_transfer_left_goes_and_other_things_stay() {
        let (_parent, directory) = place();
        let live = directory.claim("live").unwrap();
        drop(UnixListener::bind(directory.path_of("dead")).unwrap()); // a socket whose listener has gone
        fs::write(directory.path.join("file.sock"), "").unwrap();
        drop(UnixListener::bind(directory.path.join("other")).unwrap());
        assert_eq!(directory.names().unwrap(), ["live"], "a dead one is not shown");
        assert_eq!(directory.claim("dead").unwrap().name(), "dead");
        assert!(directory.path.join("file.sock").exists() && directory.path.join("other").exists());
        let error = directory.connect("dead").unwrap_err().to_string();
        assert!(error.contains("no transfer named \"dead\"; there are: live"), "{error}");
        assert!(directory.connect("../live").is_err());
        directory.connect("live").unwrap();
        drop(live);
    }

    #[test]
    fn one_that_is_stopped_keeps_nobody_waiting() {
        let (_parent, directory) = place();
        let stopped = directory.claim("stopped").unwrap(); // no process accepts
        let waiting: Vec<_> = std::iter::from_fn(|| connect(&stopped.path).ok()).collect();
        assert!(waiting.len() < 100_000);
        assert_eq!(directory.names().unwrap(), ["stopped"]);
        let error = directory.connect("stopped").unwrap_err().to_string();
        assert!(error.contains("stopped does not answer"), "{error}");
        assert_eq!(directory.claim("stopped").unwrap().name(), "stopped-2");
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        let (parent, directory) = place();
        for mode in [0o755, 0o770, 0o707] {
            let _ = fs::create_dir(&directory.path);
            fs::set_permissions(&directory.path, Permissions::from_mode(mode)).unwrap();
            let error = format!("{:#}", directory.claim("a").unwrap_err());
            assert!(error.contains("closed to everybody else"), "{error}");
            assert!(directory.names().is_err() && directory.connect("a").is_err());
        }
        let link = Directory::at(parent.path().join("link"));
        symlink("lowtide", &link.path).unwrap();
        fs::set_permissions(&directory.path, Permissions::from_mode(0o700)).unwrap();
        assert!(directory.claim("a").is_ok() && link.claim("a").is_err(), "a link is not followed");
    }

    #[test]
    #[ignore = "needs root: -- --include-ignored"]
    fn a_directory_of_another_users_is_refused() {
        let (_parent, directory) = place();
        fs::create_dir(&directory.path).unwrap();
        fs::set_permissions(&directory.path, Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&directory.path, Some(65534), None).unwrap();
        let error = format!("{:#}", directory.claim("a").unwrap_err());
        assert!(error.contains("has to belong to 0"), "{error}");
        assert!(directory.names().is_err() && directory.connect("a").is_err());
    }
}
