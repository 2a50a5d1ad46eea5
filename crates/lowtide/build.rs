// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives what decides a recording that is made on a kernel a version.

#[path = "../lowtide-lab/sources.rs"]
mod sources;

use std::{env, io, path::PathBuf};

/// What plays, from the top of the workspace.
const SOURCES: [&str; 8] = [
    "crates/lowtide-kernel/bpf",
    "crates/lowtide-kernel/src",
    "crates/lowtide-emu/src",
    "crates/lowtide-net/src",
    "crates/lowtide-deadline/src",
    "crates/lowtide-guest/src",
    "crates/lowtide/src/play",
    "crates/lowtide/src/guest.rs",
];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let top = here.join("../..").canonicalize()?;
    println!("cargo::rustc-env=LOWTIDE_PLAY_VERSION={}", sources::version(&top, &SOURCES, &[])?);
    Ok(())
}
