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

/// What the metadata of `cargo deb` puts where.
fn packaged() -> Vec<(String, String)> {
    let manifest: toml::Table = toml::from_str(include_str!("../Cargo.toml")).unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let text = |asset: &toml::Value, n: usize| asset[n].as_str().unwrap().to_owned();
    assets.iter().map(|asset| (text(asset, 0), text(asset, 1))).collect()
}

/// The files that the spec for RPM lists, as patterns.
fn listed() -> Vec<String> {
    let spec = include_str!("../../../packaging/rpm/lowtide.spec");
    assert!(spec.contains(&format!("\nVersion:        {}\n", env!("CARGO_PKG_VERSION"))), "it is of another version");
    let macros = [
        ("%{_bindir}", "usr/bin"),
        ("%{_mandir}", "usr/share/man"),
        ("%{_datadir}", "usr/share"),
        ("%{_unitdir}", "usr/lib/systemd/system"),
    ];
    let files = spec.split_once("\n%files\n").unwrap().1.lines();
    files.map(|line| macros.iter().fold(line.to_owned(), |line, (name, path)| line.replace(name, path))).collect()
}

/// Whether a pattern, with a `*` in the last part of its path, is that of a file.
fn exists(folder: &Path, pattern: &str) -> bool {
    let path = folder.join(pattern);
    let name = path.file_name().unwrap().to_str().unwrap();
    let (begin, end) = name.split_once('*').unwrap_or((name, ""));
    let fits =
        |found: &str| if name.contains('*') { found.starts_with(begin) && found.ends_with(end) } else { found == name };
    let entries = std::fs::read_dir(path.parent().unwrap()).into_iter().flatten().map(Result::unwrap);
    entries.into_iter().any(|entry| fits(entry.file_name().to_str().unwrap()))
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
        "usr/lib/systemd/system/lowtide-attach@.service",
        "usr/lib/systemd/system/lowtide-metrics.timer",
        "usr/share/man/man1/lowtide-top.1",
    ] {
        assert!(installed.contains(Path::new(file)), "{file} is not among {installed:?}");
    }
    let read = |file: &str| std::fs::read_to_string(place.path().join(file)).unwrap();
    let page = read("usr/share/man/man1/lowtide-run.1");
    assert!(page.contains("\\-\\-deadline") && page.contains("lowtide\\-run"), "{page:.400}");
    assert!(read("usr/share/bash-completion/completions/lowtide").contains("--deadline"));
    let version = Command::new(place.path().join("usr/bin/lowtide")).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("lowtide "));
    assert!(read("usr/lib/systemd/system/lowtide-attach@.service").contains("ExecStart=/usr/bin/lowtide attach "));
    for (from, _) in packaged() {
        let below = from.strip_prefix("../../target/deb/").map(|file| (place.path().to_owned(), file.to_owned()));
        let (folder, pattern) =
            below.unwrap_or_else(|| (Path::new(env!("CARGO_MANIFEST_DIR")).to_owned(), from.clone()));
        assert!(
            from == "target/release/lowtide" || exists(&folder, &pattern),
            "{from}: there is no such file to package"
        );
    }
    // rpmbuild refuses what is installed and not listed; it compresses manual pages
    for file in &installed {
        let file = file.to_str().unwrap();
        let fits = |pattern: &String| match pattern.split_once('*') {
            Some((begin, _)) => file.starts_with(begin),
            None => file == pattern,
        };
        assert!(listed().iter().any(fits), "packaging/rpm/lowtide.spec does not list {file}");
    }
    make("uninstall", place.path());
    assert_eq!(files(place.path()), BTreeSet::new());
}
