// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the laws' headers, which the BPF programs include, for this machine.

const LAWS: &str = "../lowtide-kernel/bpf/law";

fn main() {
    println!("cargo::rerun-if-changed={LAWS}");
    println!("cargo::rerun-if-changed=src/laws.c");
    cc::Build::new()
        .file("src/laws.c")
        .include(LAWS)
        .flag("-fno-strict-aliasing")
        .flag("-Wno-unused-parameter")
        .warnings(true)
        .opt_level(2)
        .compile("lowtide_laws");
}
