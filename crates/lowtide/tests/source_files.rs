// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every source file of the workspace: its licence is that of its folder (LICENSES.md), its length is
//! limited, and it uses the terms of the field.

use std::{fs, path::Path};
use walkdir::{DirEntry, WalkDir};

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The licence of each folder; the longest prefix of a file's path applies.
const LICENCES: [(&str, &str); 3] = [
    ("", "MIT OR Apache-2.0"),
    ("crates/lowtide-kernel/bpf/", "GPL-2.0-only"),
    ("crates/lowtide-port/law/", "GPL-2.0-only OR MIT OR Apache-2.0"),
];

/// The kinds of file that are source code, by the ends of their names.
const SOURCES: [&str; 10] = [".rs", ".c", ".cc", ".h", ".py", ".sh", ".toml", ".css", "Makefile", ".ci/run"];

/// Folders of build products, of Git, and of inputs that tools wrote.
const LEFT_OUT: [&str; 4] = ["target", ".git", "corpus", "proptest-regressions"];

/// Lines that a file of code may have. Scenarios and experiments (TOML) are data, and not limited.
const MOST_LINES: usize = 600;

/// Columns that a line of a comment may have.
const WIDTH: usize = 120;

const LAWS: &str = "crates/lowtide-port/law/";

/// The paths of all source files, from the top of the workspace, and their texts.
fn sources() -> Vec<(String, String)> {
    let left_out = |entry: &DirEntry| LEFT_OUT.iter().any(|name| entry.file_name() == *name);
    WalkDir::new(TOP)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| !left_out(entry))
        .map(|entry| entry.expect("the workspace can be read"))
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| (entry.path().strip_prefix(TOP).unwrap().display().to_string(), entry))
        .filter(|(path, _)| SOURCES.iter().any(|end| path.ends_with(end)))
        .map(|(path, entry)| (path, fs::read_to_string(entry.path()).expect("source code is text")))
        .collect()
}

/// The licence that a file of this path has to name.
fn due(path: &str) -> &'static str {
    LICENCES.iter().filter(|(folder, _)| path.starts_with(folder)).max_by_key(|(folder, _)| folder.len()).unwrap().1
}

/// The licence that a file names, in its first line or below the line that names its interpreter.
fn named(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| !line.starts_with("#!"))?;
    let expression = line.split_once("SPDX-License-Identifier:")?.1;
    Some(expression.trim_end_matches("*/").trim())
}

/// What is wrong with the licence of a file, as a sentence.
fn fault(path: &str, text: &str) -> Option<String> {
    match named(text) {
        Some(licence) if licence == due(path) => None,
        Some(licence) => Some(format!("{path} is under `{licence}`, but its folder is under `{}`", due(path))),
        None => Some(format!("{path} names no licence in its first line: its folder is under `{}`", due(path))),
    }
}

#[test]
fn every_source_file_names_the_licence_of_its_folder() {
    let sources = sources();
    for (folder, _) in LICENCES {
        assert!(sources.iter().any(|(path, _)| path.starts_with(folder)), "no source file is in `{folder}`");
    }
    let faults: Vec<_> = sources.iter().filter_map(|(path, text)| fault(path, text)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_missing_and_a_wrong_licence_are_told_apart() {
    let of = |licence: &str| format!("/* SPDX-License-Identifier: {licence} */\n#include \"law.h\"\n");
    let law = format!("{LAWS}vegas.h");
    assert_eq!(fault(&law, &of("GPL-2.0-only OR MIT OR Apache-2.0")), None);
    assert!(fault(&law, &of("GPL-2.0-only")).unwrap().contains("is under `GPL-2.0-only`, but"));
    assert!(fault(&law, "#include \"law.h\"\n").unwrap().contains("names no licence"));
    let program = "crates/lowtide-kernel/bpf/egress.h";
    assert_eq!(fault(program, &of("GPL-2.0-only")), None);
    assert!(fault(program, &of("MIT OR Apache-2.0")).unwrap().contains("its folder is under `GPL-2.0-only`"));
    assert_eq!(fault("scripts/need.sh", "#!/bin/sh\n# SPDX-License-Identifier: MIT OR Apache-2.0\n"), None);
    assert!(fault("scripts/need.sh", "#!/bin/sh\n").is_some());
}

/// The headers of the laws go into the native code of the program file, so what is GPL-2.0-only must not come in with
/// them.
#[test]
fn the_laws_include_nothing_but_each_other() {
    let sources = sources();
    let laws = sources.iter().filter(|(path, _)| path.starts_with(LAWS) && path.ends_with(".h"));
    for (path, text) in laws {
        for included in text.lines().filter_map(|line| line.strip_prefix("#include ")) {
            let own = included.trim().trim_matches('"');
            let there = !own.contains('/') && Path::new(TOP).join(LAWS).join(own).is_file();
            assert!(there, "{path} includes {included}, which is no header of {LAWS}");
        }
    }
}

#[test]
fn no_file_of_code_is_too_long() {
    let too_long = |(path, text): &(String, String)| !path.ends_with(".toml") && text.lines().count() > MOST_LINES;
    let found: Vec<_> = sources().into_iter().filter(too_long).map(|(path, _)| path).collect();
    assert!(found.is_empty(), "more than {MOST_LINES} lines, to be split by what the parts are: {}", found.join(", "));
}

/// Lines of code may be longer where the formatter leaves them so; of comments no line needs to.
#[test]
fn comments_are_within_their_width() {
    let is_comment = |line: &str| ["//", "/*", "* ", "# "].iter().any(|begin| line.trim_start().starts_with(begin));
    let width = |line: &str| line.chars().map(|c| if c == '\t' { 8 } else { 1 }).sum::<usize>();
    let too_wide = |line: &&str| is_comment(line) && width(line) > WIDTH;
    let found: Vec<_> = sources()
        .iter()
        .filter_map(|(path, text)| text.lines().find(too_wide).map(|line| format!("{path}: {line}")))
        .collect();
    assert!(found.is_empty(), "comments of more than {WIDTH} columns:\n{}", found.join("\n"));
}

/// A word of our own, and the term of the field for it.
const TERMS: [(&str, &str); 12] = [
    ("empty round trip", "base RTT"),
    ("what others leave", "spare capacity"),
    ("somebody else", "cross traffic"),
    ("who is there", "cross traffic"),
    ("probe hears", "the probe measures"),
    ("little to send", "application-limited"),
    ("stands still", "a scheduling stall, or no progress"),
    ("the pipe holds", "BDP"),
    ("takes its turn", "has the token"),
    ("its weight is worth", "weighted share"),
    ("half in view", "tuning set"),
    ("half that is held out", "held-out set"),
];

#[test]
fn code_and_pages_use_the_terms_of_the_field() {
    let is_page = |entry: &DirEntry| entry.path().extension().is_some_and(|end| end == "md");
    let pages = WalkDir::new(Path::new(TOP).join("docs")).into_iter().map(|entry| entry.expect("pages can be read"));
    let pages = pages.filter(is_page).map(|entry| entry.into_path());
    let pages = pages.chain(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| Path::new(TOP).join(name)));
    let mut texts = sources();
    texts.retain(|(path, _)| !path.ends_with("tests/source_files.rs"));
    texts.extend(pages.map(|path| (path.display().to_string(), fs::read_to_string(&path).expect("a page is text"))));
    let found: Vec<_> = texts
        .iter()
        .flat_map(|(path, text)| text.lines().map(move |line| (path, line.to_lowercase())))
        .filter_map(|(path, line)| {
            let (word, term) = TERMS.iter().find(|(word, _)| line.contains(word))?;
            Some(format!("{path}: instead of `{word}` say `{term}`: {}", line.trim()))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Behind the statements of docs/security.md stand tests, by their names and those of their files.
#[test]
fn the_tests_that_the_page_on_security_names_are_there() {
    let page = fs::read_to_string(Path::new(TOP).join("docs/security.md")).unwrap();
    let words: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let sources = sources();
    let mut texts = String::new();
    for file in words.iter().filter(|word| word.ends_with(".rs")) {
        let found = sources.iter().filter(|(path, _)| Path::new(path).ends_with(file)).map(|(_, text)| text.as_str());
        let before = texts.len();
        texts.extend(found);
        assert!(texts.len() > before, "there is no {file}");
    }
    let plain = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let names: Vec<&&str> = words.iter().filter(plain).filter(|word| word.matches('_').count() > 1).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(
            texts.contains(&format!(" fn {name}()")) || texts.contains(&format!("\nfn {name}()")),
            "no test {name}"
        );
    }
}
