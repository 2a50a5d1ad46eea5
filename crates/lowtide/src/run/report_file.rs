// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place of a report, held from before PROGRAM starts. What a user names for a command of their own is a
//! [`Draft`](crate::draft::Draft), which follows links and keeps owners; root, who writes for a caller here, must not.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use lowtide_kernel::Caller;
use nix::sys::stat::{Mode, SFlag};

use super::place::{Place, parent};

/// A report to be. The file appears whole or not at all, with the rights of who called Lowtide.
#[derive(Debug)]
pub(super) struct ReportFile {
    path: PathBuf,
    place: Place,
    caller: Caller,
}

impl ReportFile {
    /// # Errors
    /// One sentence: the place cannot be written, or is taken by something that is no file.
    pub(super) fn create(path: &Path, caller: Caller) -> Result<ReportFile> {
        let unwritable = || format!("--report {}: cannot write in {}", path.display(), parent(path).display());
        let place = caller.act(|| -> Result<Place> {
            let place = match Place::open(path) {
                Err(error) if error.kind() == ErrorKind::IsADirectory => {
                    bail!("--report {}: {error}", path.display())
                }
                opened => opened.with_context(unwritable)?,
            };
            match place.kind().with_context(unwritable)? {
                None | Some(SFlag::S_IFREG) => {}
                Some(SFlag::S_IFLNK) => {
                    bail!("--report {}: this is a symbolic link; name the file itself", path.display())
                }
                Some(_) => {
                    bail!("--report {}: there is a directory or a device of this name; name a file", path.display())
                }
            }
            place.probe().with_context(unwritable)?;
            Ok(place)
        })??;
        Ok(ReportFile { path: path.to_owned(), place, caller })
    }

    /// # Errors
    /// One sentence. What was there before then still is.
    pub(super) fn write(self, contents: &[u8]) -> Result<()> {
        let write = || self.place.replace(contents, Mode::from_bits_truncate(0o666));
        self.caller.act(write)?.with_context(|| format!("the report {} could not be written", self.path.display()))
    }
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
            (directory.path().join(".."), "it names a directory; name a file"),
            (directory.path().join("new/"), "it names a directory; name a file"),
            (directory.path().join("missing/report.json"), "cannot write in"),
        ] {
            let error = format!("{:#}", create(&path).unwrap_err());
            assert!(error.contains(sentence) && !error.contains('\n'), "{}: {error}", path.display());
        }
    }
}
