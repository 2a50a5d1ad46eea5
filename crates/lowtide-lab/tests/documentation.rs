// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/lab.md lists all functions of the expressions: `LOWTIDE_WRITE_DOCS=1 cargo test -p lowtide-lab --test
//! documentation` writes the list.

use lowtide_lab::expression::{Context, Language};
use std::{fmt::Write as _, fs, path::Path};

const BEGIN: &str = "<!-- functions: written by crates/lowtide-lab/tests/documentation.rs -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn all_functions_are_listed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the mark where the list begins");
    let (_, after) = rest.split_once(END).expect("the mark where it ends");
    let expected = format!("{before}{BEGIN}{}{END}{after}", list());
    if std::env::var_os("LOWTIDE_WRITE_DOCS").is_some() {
        fs::write(&path, expected).unwrap();
    } else {
        assert!(
            page == expected,
            "docs/lab.md is not up to date; LOWTIDE_WRITE_DOCS=1 cargo test -p lowtide-lab writes it"
        );
    }
}

fn list() -> String {
    let language = Language::new(Context::Nothing);
    let (mut text, mut group) = (String::new(), "");
    for function in language.functions() {
        if function.group != group {
            group = function.group;
            let _ = write!(text, "\n### {group}\n\n| | |\n|---|---|\n");
        }
        let _ = writeln!(text, "| `{}` | {} |", function.form, function.about.replace('|', "\\|"));
    }
    text + "\n"
}

/// Each function can be called by the form that the page shows.
#[test]
fn forms_are_those_of_calls() {
    for function in Language::new(Context::Nothing).functions() {
        let (name, rest) = function.form.split_once('(').unwrap_or_else(|| panic!("{}", function.form));
        assert!(rest.ends_with(')') && !function.about.is_empty(), "{}", function.form);
        assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || "._".contains(it)), "{}", function.form);
    }
}
