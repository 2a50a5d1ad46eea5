// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are written anew. What has the name stays until the new one is ready, whatever goes wrong before.
//! These are what users name for commands of their own, on every system: links are followed, pipes and devices written.
//! A link that another user may have planted is refused. What root writes for a caller goes by a directory held open
//! instead (run/place.rs).

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// A file under way.
#[derive(Debug)]
pub struct Draft {
    name: PathBuf,
    place: Place,
    /// What has the name now.
    before: Option<Metadata>,
}

#[derive(Debug)]
enum Place {
    /// In the same directory, until it is ready.
    Beside(NamedTempFile),
    /// A pipe, a device, or a file that only a descriptor leads to (/proc/PID/fd/N): nothing can take its place.
    Itself(File),
}

impl Draft {
    /// Begins a file that is to have this name.
    ///
    /// # Errors
    /// It is a directory or may not be written, or none can be made beside it; or it is a link that another user made
    /// where everyone may write.
    pub fn create(path: &Path) -> io::Result<Draft> {
        // a link stays a link: what it leads to is replaced
        let name = follow(path.to_owned())?;
        // one that may not be written is not replaced, either
        let before = match OpenOptions::new().write(true).open(&name) {
            Ok(file) => {
                let about = file.metadata()?;
                if !about.is_file() || is_nameless(&about) {
                    return Ok(Draft { name, place: Place::Itself(file), before: None });
                }
                Some(about)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let directory = name.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".lowtide-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666)); // less what the umask takes
        let file = builder.tempfile_in(directory)?;
        Ok(Draft { name, place: Place::Beside(file), before })
    }

    /// For those who write on when it is ready.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn file(&self) -> io::Result<File> {
        match &self.place {
            Place::Beside(file) => file.as_file().try_clone(),
            Place::Itself(file) => file.try_clone(),
        }
    }

    /// Takes the name, with owner and permissions of what had it.
    ///
    /// # Errors
    /// What was written is not on the disk, or what has the name cannot be replaced. Then that stays.
    pub fn ready(self) -> io::Result<()> {
        let Place::Beside(file) = self.place else { return Ok(()) };
        if let Some(before) = self.before {
            inherit(file.as_file(), &before)?;
        }
        file.as_file().sync_all()?;
        file.persist(&self.name).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Links in a row that are followed (MAXSYMLINKS of Linux).
const LINKS: usize = 40;

/// The file that the name leads to; a link that leads to no name (a pipe of /proc/PID/fd) stays itself.
fn follow(mut name: PathBuf) -> io::Result<PathBuf> {
    for _ in 0..LINKS {
        let directory = match name.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.canonicalize()?,
            _ => PathBuf::from("."),
        };
        let Some(file) = name.file_name() else { return Ok(name) };
        let here = directory.join(file);
        let Ok(about) = here.symlink_metadata() else { return Ok(here) };
        if !about.is_symlink() {
            return Ok(here);
        }
        if is_planted(&about, &directory.metadata()?) {
            return Err(io::Error::new(
                ErrorKind::PermissionDenied,
                "it is a link that another user made in a directory where everyone may write; remove it or take \
                 another directory",
            ));
        }
        let target = directory.join(here.read_link()?);
        if target.symlink_metadata().is_err() {
            return Ok(here);
        }
        name = target;
    }
    Err(io::Error::other("too many links lead on from it"))
}

/// Whether another user can have put this link there. The rule is that of Linux's `fs.protected_symlinks`, and holds
/// without the sticky bit, too. (On other systems nothing of Lowtide needs root.)
#[cfg(target_os = "linux")]
fn is_planted(link: &Metadata, directory: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    const ANYONE_WRITES: u32 = 0o002;
    let ours = nix::unistd::geteuid().as_raw();
    directory.mode() & ANYONE_WRITES != 0 && link.uid() != ours && link.uid() != directory.uid()
}

#[cfg(not(target_os = "linux"))]
fn is_planted(_link: &Metadata, _directory: &Metadata) -> bool {
    false
}

/// A file that has no name any more, or never had one.
#[cfg(unix)]
fn is_nameless(about: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(about) == 0
}

#[cfg(not(unix))]
fn is_nameless(_about: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn inherit(file: &File, before: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        // only root may give a file away; another caller's file is its own
        let _ = fchown(file, Some(before.uid()), Some(before.gid()));
    }
    file.set_permissions(before.permissions())
}

#[cfg(not(unix))]
fn inherit(_file: &File, _before: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Writes a file whole, or leaves what has its name.
///
/// # Errors
/// As for [`Draft::create`] and [`Draft::ready`], or the disk is full.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = Draft::create(path)?;
    draft.file()?.write_all(bytes)?;
    draft.ready()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_has_the_name_stays_until_the_new_one_is_ready() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        write(&file, b"old").unwrap();
        let draft = Draft::create(&file).unwrap();
        draft.file().unwrap().write_all(b"ne").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        // a process that goes on writing writes to the same file
        let mut on = draft.file().unwrap();
        draft.ready().unwrap();
        on.write_all(b"w").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        drop(Draft::create(&file).unwrap());
        assert_eq!(
            (fs::read_to_string(&file).unwrap(), names(directory.path())),
            ("new".to_owned(), vec!["a".to_owned()])
        );
    }

    #[test]
    fn a_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Draft::create(directory.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(Draft::create(&directory.path().join("no/a")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_without_a_name_is_written_itself() {
        use std::{io::Read, os::fd::AsRawFd};
        let mut file = tempfile::tempfile().unwrap();
        write(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())), b"new").unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "new");
    }

    /// As `lowtide demo --out /tmp` meets it.
    #[cfg(target_os = "linux")]
    #[test]
    #[ignore = "needs root: -- --include-ignored"]
    fn a_link_that_another_user_planted_is_not_followed() {
        use std::os::unix::fs::{PermissionsExt, lchown, symlink};
        let shared = tempfile::tempdir().unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let (victim, link) = (shared.path().join("victim"), shared.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        symlink("victim", &link).unwrap();
        let on = shared.path().join("on"); // our own link, which leads to theirs
        symlink("link", &on).unwrap();
        lchown(&link, Some(65534), Some(65534)).unwrap();
        for name in [&link, &on] {
            let error = write(name, b"new").unwrap_err();
            assert!(error.to_string().contains("a link that another user made"), "{error}");
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        // where only root may write, root gave it to them
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!((fs::read_to_string(&victim).unwrap(), names(shared.path()).len()), ("new".to_owned(), 3));
    }

    #[cfg(unix)]
    #[test]
    fn links_permissions_and_devices_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a"), directory.path().join("link"));
        write(&file, b"old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a", &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        let round = directory.path().join("round");
        symlink("round", &round).unwrap();
        assert!(write(&round, b"new").is_err());
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
