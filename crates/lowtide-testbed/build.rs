// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives what decides on a testbed's recording a version.

#[path = "../lowtide-lab/sources.rs"]
mod sources;

use std::{env, io, path::PathBuf};

/// The crates that run a scenario on a kernel, besides this one. The lab, which this one depends on, only names what is
/// run.
const CRATES: [&str; 3] = ["lowtide-kernel", "lowtide-emu", "lowtide-guest"];
const OWN: [&str; 2] = ["Cargo.lock", "crates/lowtide-testbed/src"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let top = here.join("../..").canonicalize()?;
    let mut sources = sources::with_below(&top, CRATES.map(str::to_owned))?;
    sources.extend(OWN.map(PathBuf::from));
    sources.iter().for_each(|source| println!("cargo::rerun-if-changed={}", top.join(source).display()));
    println!("cargo::rustc-env=LOWTIDE_TESTBED_VERSION={}", sources::version(&top, &sources, &[])?);
    Ok(())
}
