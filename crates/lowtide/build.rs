// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives what decides a recording that is made on a kernel a version.

#[path = "../lowtide-lab/sources.rs"]
mod sources;

use std::{env, io, path::PathBuf};

/// The crates that run a scenario on a kernel, and what does so in this one.
const CRATES: [&str; 3] = ["lowtide-kernel", "lowtide-emu", "lowtide-guest"];
const OWN: [&str; 3] = ["Cargo.lock", "crates/lowtide/src/play", "crates/lowtide/src/guest.rs"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let top = here.join("../..").canonicalize()?;
    let mut sources = sources::with_below(&top, CRATES.map(str::to_owned))?;
    sources.extend(OWN.map(PathBuf::from));
    sources.iter().for_each(|source| println!("cargo::rerun-if-changed={}", top.join(source).display()));
    println!("cargo::rustc-env=LOWTIDE_PLAY_VERSION={}", sources::version(&top, &sources, &[])?);
    Ok(())
}
