// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the headers that follow from the table of laws, compiles the laws for this machine, and tells the build
//! scripts of crates that depend on this one where the headers are: `DEP_LOWTIDE_LAWS_INCLUDE` has those of the laws
//! (`#include "law/NAME.h"`), `DEP_LOWTIDE_LAWS_GENERATED` those that are written here.

#[allow(dead_code, unreachable_pub)] // the rest of it is for the crate
#[path = "src/table.rs"]
mod table;

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};
use table::{Entry, Hooks, LAWS};

fn main() -> io::Result<()> {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let generated = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("include");
    fs::create_dir_all(&generated)?;
    fs::write(generated.join("laws.h"), laws())?;
    fs::write(generated.join("window_laws.h"), window_laws())?;
    fs::write(generated.join("names.rs"), names())?;
    println!("cargo::metadata=include={here}");
    println!("cargo::metadata=generated={}", generated.display());
    for source in ["build.rs", "law", "src/table.rs", "src/laws.c", "src/download.c", "src/native.c"] {
        println!("cargo::rerun-if-changed={source}");
    }
    compile("src/laws.c", "lowtide_laws", &generated);
    compile("src/download.c", "lowtide_download", &generated);
    compile("src/native.c", "lowtide_laws_native", &generated);
    Ok(())
}

fn compile(file: &str, library: &str, generated: &Path) {
    cc::Build::new()
        .file(file)
        .includes([Path::new("."), Path::new("law"), generated])
        .flag("-fno-strict-aliasing")
        .flag("-Wno-unused-parameter")
        .warnings(true)
        .opt_level(2)
        .compile(library);
}

const HEAD: &str = "/* Written by crates/lowtide-port/build.rs from src/table.rs. */\n";

/// The laws that `window_law.h` of lowtide-kernel connects to the kernel.
fn of_windows() -> impl Iterator<Item = &'static Entry> {
    LAWS.iter().filter(|law| matches!(law.hooks, Hooks::Window | Hooks::Timeouts | Hooks::Marks))
}

/// `names.rs`: the names on the command line.
fn names() -> String {
    let spelled: Vec<_> = LAWS.iter().flat_map(|law| law.spelled).collect();
    let kernels: Vec<_> = LAWS.iter().filter(|law| !law.spelled.contains(&law.name)).map(|law| law.name).collect();
    format!("const SPELLED: &[&str] = &{spelled:?};\nconst KERNELS: &[&str] = &{kernels:?};\n")
}

/// `laws.h`: all laws, and macros that name each.
fn laws() -> String {
    let mut text = format!("{HEAD}#ifndef LOWTIDE_LAWS_H\n#define LOWTIDE_LAWS_H\n\n");
    for law in LAWS {
        let _ = writeln!(text, "#include \"law/{}.h\"", law.prefix);
    }
    text += "\n/* X(law, hooks) for each. */\n#define LAWS(X)";
    for law in LAWS {
        let _ = write!(text, " \\\n\tX({}, {})", law.prefix, format!("{:?}", law.hooks).to_uppercase());
    }
    text += "\n\n/* X(law) for each that window_law.h connects to the kernel. */\n#define WINDOW_LAWS(X)";
    for law in of_windows() {
        let _ = write!(text, " \\\n\tX({})", law.prefix);
    }
    text + "\n\n#endif\n"
}

/// `window_laws.h`: the programs of each law that `window_law.h` connects to the kernel.
fn window_laws() -> String {
    let mut text = HEAD.to_owned();
    for law in of_windows() {
        let define = format!("#define LAW {}\n#include \"window_law.h\"\n", law.prefix);
        text += &match law.hooks {
            Hooks::Timeouts => format!("#define LAW_OF_TIMEOUTS\n{define}#undef LAW_OF_TIMEOUTS\n"),
            Hooks::Marks => format!("#define LAW_OF_MARKS\n{define}#undef LAW_OF_MARKS\n"),
            _ => define,
        };
    }
    text
}
