// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/etc/lowtide.toml`: what callers of `lowtide run` through sudo may do. Without that file they may run PROGRAM as
//! any user.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use anyhow::{Context, Result, anyhow, bail};
use lowtide_kernel::{Caller, User};
use serde::Deserialize;

/// The file. root's alone, or it is no restriction.
const FILE: &str = "/etc/lowtide.toml";
const LARGEST: u64 = 1 << 16;

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default)]
    run: Run,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Run {
    /// The users that `--user` may name, besides the caller; all users unless given.
    users: Option<Vec<String>>,
}

/// Whether this caller may have PROGRAM run as this user.
///
/// # Errors
/// One sentence: not that user; or the file is not what it has to be, and only root may call.
pub(super) fn check(caller: &Caller, wanted: Option<&User>) -> Result<()> {
    let Some(name) = caller.name() else { return Ok(()) };
    let unusable =
        || format!("{FILE}, which restricts who may run what, cannot be used as it is; ask root to correct it");
    let Some(contents) = read(Path::new(FILE)).with_context(unusable)? else { return Ok(()) };
    let (Some(users), Some(wanted)) = (contents.run.users, wanted) else { return Ok(()) };
    if wanted.name() == name || users.iter().any(|user| user == wanted.name()) {
        return Ok(());
    }
    bail!("--user {}: {FILE} does not allow this to {name}; leave it out, or ask root", wanted.name())
}

/// `None` if there is no such file.
fn read(path: &Path) -> Result<Option<Contents>> {
    // a FIFO would wait for its writer
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let about = file.metadata()?;
    if !about.is_file() || about.uid() != 0 || about.mode() & 0o022 != 0 {
        bail!("it has to be a file that belongs to root and that nobody else can write");
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        bail!("it is larger than 64 KiB"); // what is cut off could restrict, too
    }
    let Ok(text) = String::from_utf8(bytes) else { bail!("it is no text in UTF-8") };
    parse(&text).map(Some)
}

fn parse(text: &str) -> Result<Contents> {
    toml::from_str(text).map_err(|error| anyhow!(in_one_line(&error, text)))
}

/// Reads the text of such a file.
///
/// # Errors
/// What is wrong with it, in one line.
pub(crate) fn accept(text: &str) -> Result<()> {
    parse(text).map(|_| ())
}

/// What a parser says of a text, and where.
fn in_one_line(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let message = error.message().replace('\n', ", ");
    format!("line {}: {message}", before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    #[ignore = "needs root: -- --include-ignored"]
    fn only_a_file_of_roots_restricts() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lowtide.toml");
        assert_eq!(read(&file).unwrap(), None);
        let users = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        for (text, mode, expected) in [
            ("", 0o644, Some(None)),
            ("[run]\nusers = []\n", 0o600, Some(users(&[]))),
            ("[run]\nusers = [\"backup\"]\n", 0o644, Some(users(&["backup"]))),
            ("[run]\nusers = [\"backup\"]\n", 0o664, None),
            ("[run]\nuser = [\"backup\"]\n", 0o644, None),
            ("[run\n", 0o644, None),
            (&"#".repeat(LARGEST as usize + 1), 0o644, None),
        ] {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let found = read(&file).ok().flatten().map(|contents| contents.run.users);
            assert_eq!(found, expected, "{text:.80} {mode:o}");
        }
        fs::write(&file, "").unwrap();
        std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("belongs to root"));
    }

    #[test]
    #[ignore = "needs root: -- --include-ignored"]
    fn what_is_wrong_is_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lowtide.toml");
        for (text, said) in [
            (&b"\n[run]\nusres = []\n"[..], "line 3: unknown field `usres`, expected `users`"),
            (b"[run]\nusers = 7\n", "line 2: invalid type: integer `7`, expected a sequence"),
            (b"[run\n", "line 1: unclosed table, expected `]`"),
            (b"\xff", "it is no text in UTF-8"),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(read(&file).unwrap_err().to_string(), said);
        }
        fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("has to be a file"));
    }
}
