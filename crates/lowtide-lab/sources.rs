// SPDX-License-Identifier: MIT OR Apache-2.0
//! For build scripts: the source files that a crate is made of, and their version.

use sha2::{Digest, Sha256};
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};
use walkdir::WalkDir;

/// How the names of our crates begin; those of others are in Cargo.lock.
const OURS: &str = "lowtide-";
/// What is in a crate's directory and not in the crate.
const BESIDE: [&str; 4] = ["tests", "benches", "examples", "proptest-regressions"];

/// The source files of all crates of the workspace that a crate depends on, directly or not, and none of its own.
#[allow(dead_code)] // each build script uses one of these two
pub(crate) fn below(top: &Path, name: &str) -> io::Result<BTreeSet<PathBuf>> {
    with_below(top, dependencies(&manifest(top, name)?))
}

/// The source files of these crates and of those that they depend on. Files and directories, by their paths from the
/// top of the workspace.
pub(crate) fn with_below(top: &Path, names: impl IntoIterator<Item = String>) -> io::Result<BTreeSet<PathBuf>> {
    let (mut found, mut paths) = (BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<String> = names.into_iter().collect();
    while let Some(name) = open.pop() {
        if !found.insert(name.clone()) {
            continue;
        }
        let (directory, manifest) = (Path::new("crates").join(&name), manifest(top, &name)?);
        for entry in fs::read_dir(top.join(&directory))? {
            let file = entry?.file_name();
            if BESIDE.iter().all(|beside| file != *beside) {
                paths.insert(directory.join(file));
            }
        }
        open.extend(dependencies(&manifest));
    }
    Ok(paths)
}

fn manifest(top: &Path, name: &str) -> io::Result<toml::Table> {
    let path = top.join("crates").join(name).join("Cargo.toml");
    fs::read_to_string(&path)?.parse().map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// Our crates that a manifest names in `[dependencies]` and `[build-dependencies]`, for whatever platform.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    let tables = platforms.into_iter().flat_map(|it| it.values().filter_map(toml::Value::as_table)).chain([manifest]);
    let kinds = ["dependencies", "build-dependencies"];
    let lists = tables.flat_map(|table| kinds.map(|kind| table.get(kind).and_then(toml::Value::as_table)));
    lists.flatten().flat_map(toml::Table::keys).filter(|name| name.starts_with(OURS)).cloned().collect()
}

/// A hash of files and directories, given by their paths from the top of the workspace, and of what else is given.
pub(crate) fn version(top: &Path, sources: &BTreeSet<PathBuf>, more: &[u8]) -> io::Result<String> {
    let mut hash = Sha256::new();
    for source in sources.iter().map(|source| top.join(source)) {
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
