// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a file of ours goes: a directory held open, and a name in it. What others do to the path has no effect then.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, ErrorKind, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat},
    sys::stat::{Mode, SFlag, fstatat},
    unistd::{UnlinkatFlags, unlinkat},
};

/// So many files of a run that was killed may lie beside the name.
const LEFT_BEHIND: u32 = 100;

#[derive(Debug)]
pub(super) struct Place {
    directory: OwnedFd,
    name: OsString,
}

impl Place {
    /// # Errors
    /// There is no such directory, or the path names one itself.
    pub(super) fn open(path: &Path) -> io::Result<Place> {
        let no_name = || io::Error::new(ErrorKind::IsADirectory, "it names a directory; name a file");
        // "a/" and "a/." name a directory, too
        let file = !path.as_os_str().as_bytes().ends_with(b"/") && !path.as_os_str().as_bytes().ends_with(b"/.");
        let name = path.file_name().filter(|_| file).ok_or_else(no_name)?.to_owned();
        let directory = openat(AT_FDCWD, parent(path), OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(Place { directory, name })
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// What has the name now; a link is itself.
    pub(super) fn kind(&self) -> io::Result<Option<SFlag>> {
        match fstatat(&self.directory, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT)),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens what has the name, for reading. A link is refused, and a FIFO is not waited for.
    pub(super) fn read(&self) -> io::Result<File> {
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        Ok(openat(&self.directory, self.name.as_os_str(), flags, Mode::empty())?.into())
    }

    /// Whether a file can be made here.
    pub(super) fn probe(&self) -> io::Result<()> {
        // nameless, so that nothing stays behind if this process is killed; some file systems have no such files
        match openat(&self.directory, ".", OFlag::O_TMPFILE | OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
            Err(Errno::EOPNOTSUPP | Errno::EISDIR) => {
                let (_, temporary) = self.temporary(Mode::empty())?;
                self.remove(&temporary);
            }
            other => drop(other?),
        }
        Ok(())
    }

    /// Puts a new file in the place of what has the name, whole or not at all; its mode is this, less the umask.
    pub(super) fn replace(&self, contents: &[u8], mode: Mode) -> io::Result<()> {
        let (mut file, temporary) = self.temporary(mode)?;
        let written = file.write_all(contents).and_then(|()| file.sync_all()).and_then(|()| {
            Ok(renameat(&self.directory, temporary.as_os_str(), &self.directory, self.name.as_os_str())?)
        });
        if written.is_err() {
            self.remove(&temporary);
        }
        written
    }

    /// A new file beside that of the name.
    fn temporary(&self, mode: Mode) -> io::Result<(File, OsString)> {
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let mut number = 0;
        loop {
            let mut temporary = OsString::from(".");
            temporary.push(&self.name);
            temporary.push(format!(".{}.{number}", std::process::id()));
            match openat(&self.directory, temporary.as_os_str(), flags, mode) {
                Err(Errno::EEXIST) if number < LEFT_BEHIND => number += 1,
                opened => return Ok((opened?.into(), temporary)),
            }
        }
    }

    fn remove(&self, name: &OsStr) {
        // another process may have removed it, or moved it away: it is not ours then
        let _ = unlinkat(&self.directory, name, UnlinkatFlags::NoRemoveDir);
    }
}

/// The directory of a file of this path.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_left_behind_under_the_same_number_are_no_obstacle() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let left = directory.path().join(format!(".a.{}.0", std::process::id()));
        fs::write(&left, "left").unwrap();
        let place = Place::open(&path).unwrap();
        assert_eq!(place.kind().unwrap(), None);
        place.probe().unwrap();
        place.replace(b"new", Mode::from_bits_truncate(0o600)).unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), fs::read_to_string(left).unwrap()),
            ("new".into(), "left".into())
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_directory_in_the_place_stays_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("a")).unwrap();
        let place = Place::open(&directory.path().join("a")).unwrap();
        assert_eq!(place.kind().unwrap(), Some(SFlag::S_IFDIR));
        assert!(place.replace(b"new", Mode::empty()).is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        for name in ["/", "/tmp/..", "/tmp/new/", "/tmp/new/."] {
            assert_eq!(Place::open(Path::new(name)).unwrap_err().kind(), ErrorKind::IsADirectory, "{name}");
        }
    }
}
