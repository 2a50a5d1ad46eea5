// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the BPF programs into a skeleton.

use std::{env, ffi::OsString, fs, path::PathBuf, process::Command};

use libbpf_cargo::SkeletonBuilder;

const CLANG_MIN: u32 = 16;
const CANDIDATES: [&str; 8] =
    ["clang", "clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16"];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=include");
    // the crate of the laws says where they are
    let [laws, generated] = ["DEP_LOWTIDE_LAWS_INCLUDE", "DEP_LOWTIDE_LAWS_GENERATED"]
        .map(|name| env::var(name).unwrap_or_else(|_| panic!("the build script of lowtide-port sets {name}")));
    println!("cargo::rerun-if-changed={laws}/law");
    println!("cargo::rerun-if-changed={generated}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));

    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let args: Vec<OsString> = [
        "-mcpu=v3",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unused-parameter",
        &format!("-I/usr/include/{arch}-linux-gnu"),
        "-Iinclude",
        "-Ibpf", // for the generated headers
        &format!("-I{laws}"),
        &format!("-I{generated}"),
    ]
    .iter()
    .map(OsString::from)
    .collect();
    let clang = clang();
    // the tests compile a broken variant in the same way
    println!("cargo::rustc-env=LOWTIDE_CLANG={}", clang.display());
    println!("cargo::rustc-env=LOWTIDE_CLANG_INCLUDE=/usr/include/{arch}-linux-gnu");
    println!("cargo::rustc-env=LOWTIDE_LAWS_INCLUDE={laws}");
    println!("cargo::rustc-env=LOWTIDE_LAWS_GENERATED={generated}");
    let object = out.join("transfer.bpf.o");
    if let Err(error) = SkeletonBuilder::new()
        .source("bpf/transfer.bpf.c")
        .obj(&object)
        .clang(&clang)
        .clang_args(&args)
        .build_and_generate(out.join("transfer.skel.rs"))
    {
        panic!("the BPF programs do not compile: {error:#}");
    }
    let object = fs::read(&object).unwrap_or_else(|error| panic!("{}: {error}", object.display()));
    println!("cargo::rustc-env=LOWTIDE_BPF_BUILD={:016x}", fnv1a(&object));
}

/// A number for these bytes: the 64-bit hash FNV-1a.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// The first clang that can build the programs; struct_ops by link and CO-RE bitfields need clang 16.
fn clang() -> PathBuf {
    let chosen = env::var("CLANG").ok();
    let candidates = chosen.as_deref().map_or(CANDIDATES.to_vec(), |clang| vec![clang]);
    for name in candidates {
        if version(name).is_some_and(|major| major >= CLANG_MIN) {
            return PathBuf::from(name);
        }
    }
    panic!(
        "clang {CLANG_MIN} or newer is needed to compile the BPF programs; \
         install it (Debian: apt-get install clang-19) or name it in the variable CLANG"
    );
}

fn version(clang: &str) -> Option<u32> {
    let output = Command::new(clang).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split("version ").nth(1)?.split('.').next()?.parse().ok()
}
