// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the experiments and scenarios into the program, and gives what decides their results a version.

mod sources;

use sources::{below, files, version};
use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// What the result of a run depends on besides the crates that the lab depends on: what turns a run into a number, and
/// the crates of others.
const OWN: [&str; 3] = ["Cargo.lock", "crates/lowtide-lab/src/expression", "crates/lowtide-lab/src/recording"];

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
    let compiler = Command::new(env::var_os("RUSTC").expect("cargo sets it")).arg("--version").output()?;
    let mut sources = below(&top, "lowtide-lab")?;
    sources.extend(OWN.map(PathBuf::from));
    sources.iter().for_each(|source| println!("cargo::rerun-if-changed={}", top.join(source).display()));
    println!("cargo::rustc-env=LOWTIDE_RESULTS_VERSION={}", version(&top, &sources, &compiler.stdout)?);
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
