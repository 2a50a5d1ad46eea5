// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! The texts that fuzz/corpus keeps: those that people write, and those that once went wrong.

use lowtide::fuzzing::TARGETS;
use std::{collections::BTreeSet, fs, path::Path};

#[test]
fn what_is_kept_goes_well() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let files = fs::read_dir(corpus.join(name)).unwrap_or_else(|error| panic!("fuzz/corpus/{name}: {error}"));
        let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= 3, "fuzz/corpus/{name} has next to nothing");
        for file in files {
            println!("{}", file.display());
            target(&fs::read(&file).unwrap());
        }
    }
}

#[test]
fn each_target_has_its_program_and_its_texts() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let names = |directory: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(fuzz.join(directory)).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for name in targets {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "fuzz/Cargo.toml has no {name}");
        let program = fs::read_to_string(fuzz.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("lowtide::fuzzing::{name}")), "{name}: {program}");
    }
}
