// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files to send, and whether they arrived.

use super::Failure;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};
use walkdir::WalkDir;

/// So many files of so many bytes, or connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl Shape {
    /// Random files, so that no program can compress or deduplicate them.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        let chance = File::open("/dev/urandom")?;
        (0..self.count).try_for_each(|number| {
            let mut file = File::create(directory.join(format!("file-{number:04}")))?;
            io::copy(&mut (&chance).take(self.bytes), &mut file).map(|_| ())
        })
    }
}

/// The bytes of all files of a directory.
pub(crate) fn size(root: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in WalkDir::new(root) {
        let entry = entry?;
        if entry.file_type().is_file() {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Whether two directories hold the same files, by the SHA-256 of each.
pub(crate) fn same(sent: &Path, arrived: &Path) -> Result<bool, Failure> {
    let sent = digests(sent)?;
    Ok(!sent.is_empty() && sent == digests(arrived)?)
}

fn digests(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, Failure> {
    let mut digests = BTreeMap::new();
    for entry in WalkDir::new(root) {
        let entry = entry?;
        if entry.file_type().is_file() {
            let mut hash = Sha256::new();
            hash.update(fs::read(entry.path())?);
            digests.insert(entry.path().strip_prefix(root)?.to_owned(), hash.finalize().to_vec());
        }
    }
    Ok(digests)
}
