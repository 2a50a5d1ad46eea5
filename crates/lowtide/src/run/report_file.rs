// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a report goes: a directory held open from the start, and a name in it. What others do to the path meanwhile has no effect.

use std::{
    ffi::OsStr,
    fs::File,
    io::Write,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use lowtide_kernel::Caller;
use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat},
    sys::stat::{Mode, SFlag, fstatat},
    unistd::{UnlinkatFlags, unlinkat},
};

/// The place of a report, tried before PROGRAM starts. The file appears whole or not at all, with the rights of who called Lowtide.
#[derive(Debug)]
pub(super) struct ReportFile {
    path: PathBuf,
    directory: OwnedFd,
    name: PathBuf,
    caller: Caller,
}

impl ReportFile {
    /// # Errors
    /// One sentence: the place cannot be written, or is taken by something that is no file.
    pub(super) fn create(path: &Path, caller: Caller) -> Result<ReportFile> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            bail!("--report {}: there is a directory of this name; name a file", path.display());
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let unwritable = || format!("--report {}: cannot write in {}", path.display(), parent.display());
        let directory = caller.act(|| -> Result<OwnedFd> {
            let directory = openat(AT_FDCWD, parent, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
                .with_context(unwritable)?;
            let kind = fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)
                .map(|found| SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT);
            match kind {
                Ok(SFlag::S_IFREG) | Err(Errno::ENOENT) => {}
                Ok(SFlag::S_IFLNK) => {
                    bail!("--report {}: this is a symbolic link; name the file itself", path.display())
                }
                Ok(_) => {
                    bail!("--report {}: there is a directory or a device of this name; name a file", path.display())
                }
                Err(error) => return Err(error).with_context(unwritable),
            }
            // nameless, so that nothing stays behind if this process is killed; some file systems have no such files
            match openat(&directory, ".", OFlag::O_TMPFILE | OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
                Err(Errno::EOPNOTSUPP | Errno::EISDIR) => {
                    let (_, temporary) = temporary(&directory, name).with_context(unwritable)?;
                    remove(&directory, &temporary);
                }
                other => drop(other.with_context(unwritable)?),
            }
            Ok(directory)
        })??;
        Ok(ReportFile { path: path.to_owned(), directory, name: name.into(), caller })
    }

    /// # Errors
    /// One sentence. What was there before then still is.
    pub(super) fn write(self, contents: &[u8]) -> Result<()> {
        let write = || -> Result<()> {
            let (mut file, temporary) = temporary(&self.directory, self.name.as_os_str())?;
            let written = file
                .write_all(contents)
                .and_then(|()| file.sync_all())
                .and_then(|()| Ok(renameat(&self.directory, &temporary, &self.directory, &self.name)?));
            if written.is_err() {
                remove(&self.directory, &temporary);
            }
            Ok(written?)
        };
        let caller = &self.caller;
        caller.act(write)?.with_context(|| format!("the report {} could not be written", self.path.display()))
    }
}

/// A new file beside that of this name, with the mode that the umask gives.
fn temporary(directory: &OwnedFd, name: &OsStr) -> nix::Result<(File, PathBuf)> {
    let temporary = PathBuf::from(format!(".{}.{}", name.display(), std::process::id()));
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let file = openat(directory, &temporary, flags, Mode::from_bits_truncate(0o666))?;
    Ok((File::from(file), temporary))
}

fn remove(directory: &OwnedFd, name: &Path) {
    // somebody may have removed it, or moved it away: it is theirs then
    let _ = unlinkat(directory.as_fd(), name, UnlinkatFlags::NoRemoveDir);
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn create(path: &Path) -> Result<ReportFile> {
        ReportFile::create(path, Caller::of_this_process())
    }

    #[test]
    fn it_appears_whole_in_the_place_of_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        fs::write(&path, "older").unwrap();
        let file = create(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "older");
        file.write(b"{}").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_planted_before_is_refused_and_one_planted_meanwhile_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (path, victim) = (directory.path().join("report.json"), directory.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &path).unwrap();
        assert!(create(&path).unwrap_err().to_string().contains("symbolic link"));
        fs::remove_file(&path).unwrap();
        let file = create(&path).unwrap();
        symlink(&victim, &path).unwrap();
        file.write(b"{}").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn a_parent_swapped_meanwhile_gets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (place, moved, other) =
            (directory.path().join("place"), directory.path().join("moved"), directory.path().join("other"));
        fs::create_dir(&place).unwrap();
        fs::create_dir(&other).unwrap();
        let file = create(&place.join("report.json")).unwrap();
        fs::rename(&place, &moved).unwrap();
        symlink(&other, &place).unwrap();
        file.write(b"{}").unwrap();
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(moved.join("report.json")).unwrap(), "{}");
    }

    #[test]
    fn a_place_that_is_none_is_one_sentence() {
        let directory = tempfile::tempdir().unwrap();
        for (path, sentence) in [
            (directory.path().to_owned(), "a directory or a device"),
            (directory.path().join(".."), "there is a directory"),
            (directory.path().join("missing/report.json"), "cannot write in"),
        ] {
            let error = format!("{:#}", create(&path).unwrap_err());
            assert!(error.contains(sentence) && !error.contains('\n'), "{}: {error}", path.display());
        }
    }
}
