// SPDX-License-Identifier: MIT OR Apache-2.0
//! `SIZE`: amounts of data as people write them, or as a tree of files holds them, and as they read them.

use std::{collections::HashSet, fs, io, os::unix::fs::MetadataExt, path::PathBuf};

use anyhow::{Context, Result, bail};
use walkdir::WalkDir;

/// Reads `120GiB`, `40MB` or bytes.
///
/// # Errors
/// One sentence: unreadable, or 0.
pub fn parse(text: &str) -> Result<u64> {
    match parse_size::parse_size(text) {
        Ok(0) => bail!("--size {text} leaves nothing to send; give what PROGRAM has to move, such as 120GiB"),
        Ok(bytes) => Ok(bytes),
        Err(_) => bail!("cannot read the size '{text}'; write 120GiB, 40MB or a number of bytes"),
    }
}

/// What the files under `paths` hold together. Symbolic links are not followed and hard links count once, as in backup programs; what
/// vanishes during the walk does not count.
///
/// # Errors
/// One sentence: a path that cannot be read, or nothing in it.
pub fn of_paths(paths: &[PathBuf]) -> Result<u64> {
    let mut bytes = 0;
    let mut linked = HashSet::new();
    for path in paths {
        fs::symlink_metadata(path).with_context(|| format!("--size-of {}", path.display()))?;
        for entry in WalkDir::new(path) {
            match entry.and_then(|entry| entry.metadata()) {
                Ok(file) if file.is_file() && (file.nlink() == 1 || linked.insert((file.dev(), file.ino()))) => {
                    bytes += file.len();
                }
                Ok(_) => {}
                Err(error) if error.io_error().is_some_and(|e| e.kind() == io::ErrorKind::NotFound) => {}
                Err(error) => return Err(error).context("--size-of"),
            }
        }
    }
    if bytes == 0 {
        let list: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        bail!("--size-of {}: there are no bytes in it", list.join(" "));
    }
    Ok(bytes)
}

/// `4.2 MB`.
pub fn show(bytes: u64) -> String {
    indicatif::DecimalBytes(bytes).to_string()
}

/// `8.1 Mbit/s`, from bytes per second.
pub fn show_rate(bytes_per_second: f64) -> String {
    let bits = bytes_per_second * 8.0;
    let (value, unit) = match bits {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b => (b / 1e3, "kbit/s"),
    };
    let decimals = if value < 10.0 { 2 } else { 1 };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_say_it() {
        for (text, bytes) in [("120GiB", 120 << 30), ("40MB", 40_000_000), ("1.5 GB", 1_500_000_000), ("12345", 12345)]
        {
            assert_eq!(parse(text).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn nothing_and_nonsense_are_refused() {
        assert!(parse("0").unwrap_err().to_string().contains("nothing to send"));
        for text in ["", "much", "-4MB", "4 parsecs"] {
            assert!(parse(text).unwrap_err().to_string().contains("cannot read the size"), "{text}");
        }
    }

    #[test]
    fn a_tree_is_walked() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("sub")).unwrap();
        fs::write(tree.path().join("a"), [0; 1000]).unwrap();
        fs::write(tree.path().join("sub/b"), [0; 234]).unwrap();
        std::os::unix::fs::symlink("a", tree.path().join("link")).unwrap();
        fs::hard_link(tree.path().join("a"), tree.path().join("sub/hard")).unwrap();
        assert_eq!(of_paths(&[tree.path().to_owned()]).unwrap(), 1234);

        let missing = tree.path().join("missing");
        assert!(format!("{:#}", of_paths(&[missing]).unwrap_err()).contains("missing"));
        let empty = tempfile::tempdir().unwrap();
        assert!(of_paths(&[empty.path().to_owned()]).unwrap_err().to_string().contains("no bytes"));
    }

    #[test]
    fn rates_are_shown_in_bits() {
        assert_eq!(show_rate(1_250_000.0), "10.0 Mbit/s");
        assert_eq!(show_rate(1_000.0), "8.00 kbit/s");
    }
}
