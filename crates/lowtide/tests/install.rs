// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make install` and `make uninstall`, as a package would call them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use walkdir::WalkDir;

fn make(target: &str, destination: &Path) {
    let mut make = Command::new("make");
    make.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).args([
        "-s",
        "-o",
        "build",
        target,
        "PREFIX=/usr",
    ]);
    make.arg(format!("DESTDIR={}", destination.display()));
    make.arg(format!("BINARY={}", env!("CARGO_BIN_EXE_lowtide"))); // the one that is built already
    let output = make.output().expect("make is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn files(below: &Path) -> BTreeSet<PathBuf> {
    let entries = WalkDir::new(below).into_iter().map(Result::unwrap).filter(|entry| !entry.file_type().is_dir());
    entries.map(|entry| entry.path().strip_prefix(below).unwrap().to_owned()).collect()
}

#[test]
fn what_is_installed_works_and_uninstall_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    make("install", place.path());
    let installed = files(place.path());
    for file in [
        "usr/bin/lowtide",
        "usr/share/man/man1/lowtide.1",
        "usr/share/man/man1/lowtide-run.1",
        "usr/share/man/man1/lowtide-attach.1",
        "usr/share/man/man1/lowtide-status.1",
        "usr/share/bash-completion/completions/lowtide",
        "usr/share/zsh/site-functions/_lowtide",
        "usr/share/fish/vendor_completions.d/lowtide.fish",
    ] {
        assert!(installed.contains(Path::new(file)), "{file} is not among {installed:?}");
    }
    let read = |file: &str| std::fs::read_to_string(place.path().join(file)).unwrap();
    let page = read("usr/share/man/man1/lowtide-run.1");
    assert!(page.contains("\\-\\-deadline") && page.contains("lowtide\\-run"), "{page:.400}");
    assert!(read("usr/share/bash-completion/completions/lowtide").contains("--deadline"));
    let version = Command::new(place.path().join("usr/bin/lowtide")).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("lowtide "));
    make("uninstall", place.path());
    assert_eq!(files(place.path()), BTreeSet::new());
}
