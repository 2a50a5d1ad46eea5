// SPDX-License-Identifier: MIT OR Apache-2.0
//! The version of results follows from the crates that a run depends on.

#[path = "../sources.rs"]
mod sources;

use sources::{below, version, with_below};
use std::{collections::BTreeSet, fs, path::Path};
use tempfile::TempDir;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn write(top: &Path, path: &str, text: &str) {
    let path = top.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A workspace in which a lab depends on a simulator, which depends on a port only on some platforms; another crate is
/// apart.
fn workspace() -> TempDir {
    let top = TempDir::new().unwrap();
    let files = [
        ("lowtide-lab/Cargo.toml", "[dependencies]\nlowtide-sim.workspace = true\nserde = \"1\"\n"),
        ("lowtide-lab/src/lib.rs", "// lab"),
        ("lowtide-sim/Cargo.toml", "[target.'cfg(unix)'.dependencies]\nlowtide-port.workspace = true\n"),
        ("lowtide-sim/src/lib.rs", "// sim"),
        ("lowtide-sim/tests/all.rs", "// a test"),
        ("lowtide-port/Cargo.toml", "[package]\n"),
        ("lowtide-port/build.rs", "fn main() {}"),
        ("lowtide-kernel/Cargo.toml", "[dependencies]\nlowtide-port.workspace = true\n"),
        ("lowtide-port/law/reno.h", "/* a law */"),
        ("lowtide-kernel/bpf/egress.h", "/* no law */"),
    ];
    files.iter().for_each(|(path, text)| write(&top.path().join("crates"), path, text));
    top
}

fn of_the_lab(top: &Path) -> String {
    version(top, &below(top, "lowtide-lab").unwrap(), &[]).unwrap()
}

#[test]
fn a_change_counts_where_a_run_depends_on_it() {
    let top = workspace();
    let before = of_the_lab(top.path());
    assert_eq!(of_the_lab(top.path()), before);
    for path in ["lowtide-sim/tests/all.rs", "lowtide-lab/src/lib.rs", "lowtide-kernel/bpf/egress.h"] {
        write(&top.path().join("crates"), path, "changed");
        assert_eq!(of_the_lab(top.path()), before, "{path}");
    }
    let mut versions = BTreeSet::from([before]);
    for path in ["lowtide-sim/src/lib.rs", "lowtide-port/build.rs", "lowtide-port/law/reno.h"] {
        write(&top.path().join("crates"), path, "changed");
        assert!(versions.insert(of_the_lab(top.path())), "{path}");
    }
    write(top.path(), "crates/lowtide-sim/src/new.rs", "// new");
    assert!(versions.insert(of_the_lab(top.path())));
}

#[test]
fn a_crate_that_is_not_there_is_named() {
    let top = workspace();
    write(top.path(), "crates/lowtide-sim/Cargo.toml", "[dependencies]\nlowtide-gone.workspace = true\n");
    assert!(below(top.path(), "lowtide-lab").is_err());
    write(top.path(), "crates/lowtide-sim/Cargo.toml", "dependencies = [");
    assert!(below(top.path(), "lowtide-lab").unwrap_err().to_string().contains("lowtide-sim/Cargo.toml"));
}

#[test]
fn the_laws_in_c_are_among_what_a_run_depends_on() {
    let lab = below(Path::new(TOP), "lowtide-lab").unwrap();
    for path in ["crates/lowtide-port/law", "crates/lowtide-port/src", "crates/lowtide-net/src"] {
        assert!(lab.contains(Path::new(path)), "{path} is not in {lab:?}");
    }
    for path in ["crates/lowtide-kernel", "crates/lowtide-testbed"] {
        assert!(!lab.iter().any(|it| it.starts_with(path)), "{path} is in {lab:?}");
    }
    let kernel = with_below(Path::new(TOP), ["lowtide-kernel".to_owned()]).unwrap();
    assert!(kernel.contains(Path::new("crates/lowtide-kernel/bpf")), "{kernel:?}");
}

/// The version counts the directories of crates: what a build script takes in from outside its own would be missing.
#[test]
fn build_scripts_take_in_nothing_from_outside_their_crate() {
    let lab = below(Path::new(TOP), "lowtide-lab").unwrap();
    let scripts: Vec<_> = lab.iter().filter(|path| path.ends_with("build.rs")).collect();
    assert!(!scripts.is_empty(), "the laws in C are compiled by one");
    for script in scripts {
        let text = fs::read_to_string(Path::new(TOP).join(script)).unwrap();
        let outside = text.split('"').skip(1).step_by(2).find(|literal| literal.contains("../"));
        assert_eq!(outside, None, "{}", script.display());
    }
}
