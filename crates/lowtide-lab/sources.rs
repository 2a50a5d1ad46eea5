// SPDX-License-Identifier: MIT OR Apache-2.0
//! For build scripts: the version of a part of the workspace.

use sha2::{Digest, Sha256};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use walkdir::WalkDir;

/// A hash of files and directories, by their paths from the top of the workspace, and of what else is given.
pub(crate) fn version(top: &Path, sources: &[&str], more: &[u8]) -> io::Result<String> {
    let mut hash = Sha256::new();
    for source in sources.iter().map(|source| top.join(source)) {
        println!("cargo::rerun-if-changed={}", source.display());
        for path in files(&source)? {
            hash.update(path.strip_prefix(top).expect("it is in there").display().to_string());
            hash.update([0]);
            hash.update(fs::read(&path)?);
        }
    }
    hash.update(more);
    Ok(hash.finalize()[..8].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// All files under a directory, or the file itself, in the order of their names.
pub(crate) fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = WalkDir::new(path).sort_by_file_name().into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(entries.into_iter().filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path).collect())
}
