// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the experiments and scenarios into the program, and gives what decides their results a version.

use sha2::{Digest, Sha256};
use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};
use walkdir::WalkDir;

/// What the result of a run depends on, from the top of the workspace.
const SOURCES: [&str; 11] = [
    "Cargo.lock",
    "crates/lowtide-cc/src",
    "crates/lowtide-cc/Cargo.toml",
    "crates/lowtide-deadline/src",
    "crates/lowtide-deadline/Cargo.toml",
    "crates/lowtide-net/src",
    "crates/lowtide-net/Cargo.toml",
    "crates/lowtide-sim/src",
    "crates/lowtide-sim/Cargo.toml",
    "crates/lowtide-lab/src/expression",
    "crates/lowtide-lab/src/recording",
];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let top = here.join("../..").canonicalize()?;
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let code = format!(
        "/// The experiments: where each is, and its text.\n\
         pub(crate) static EXPERIMENTS: &[(&str, &str)] = &{};\n\
         /// The scenarios of the workspace, likewise.\n\
         pub(crate) static SCENARIOS: &[(&str, &str)] = &{};\n",
        texts(&here.join("experiments"))?,
        texts(&top.join("scenarios"))?
    );
    fs::write(out.join("texts.rs"), code)?;
    println!("cargo::rustc-env=LOWTIDE_RESULTS_VERSION={}", version(&top)?);
    Ok(())
}

/// An array of (path, text) of all TOML files under a directory.
fn texts(directory: &Path) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut code = "[".to_owned();
    for path in files(directory)?.iter().filter(|path| path.extension().is_some_and(|it| it == "toml")) {
        let name = path.strip_prefix(directory).expect("it is in there").display().to_string();
        let _ = write!(code, "({name:?}, include_str!({:?})), ", path.display().to_string());
    }
    Ok(code + "]")
}

/// A hash of [`SOURCES`] and of the compiler.
fn version(top: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    for source in SOURCES.map(|source| top.join(source)) {
        println!("cargo::rerun-if-changed={}", source.display());
        for path in files(&source)? {
            hash.update(path.strip_prefix(top).expect("it is in there").display().to_string());
            hash.update([0]);
            hash.update(fs::read(&path)?);
        }
    }
    let compiler = Command::new(env::var_os("RUSTC").expect("cargo sets it")).arg("--version").output()?;
    hash.update(compiler.stdout);
    Ok(hash.finalize()[..8].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// All files under a directory, or the file itself, in the order of their names.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = WalkDir::new(path).sort_by_file_name().into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(entries.into_iter().filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path).collect())
}
