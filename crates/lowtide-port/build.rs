// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the laws for this machine, and tells the build scripts of crates that depend on this one where their headers are
//! (`DEP_LOWTIDE_LAWS_INCLUDE`, for `#include "law/NAME.h"`).

use std::env;

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo::metadata=include={here}");
    for source in ["law", "src/laws.c", "src/native.c"] {
        println!("cargo::rerun-if-changed={source}");
    }
    compile("src/laws.c", "lowtide_laws");
    compile("src/native.c", "lowtide_laws_native");
}

fn compile(file: &str, library: &str) {
    cc::Build::new()
        .file(file)
        .include("law")
        .flag("-fno-strict-aliasing")
        .flag("-Wno-unused-parameter")
        .warnings(true)
        .opt_level(2)
        .compile(library);
}
