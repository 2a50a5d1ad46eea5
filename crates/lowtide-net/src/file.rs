// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are read whole. A pipe or a device would keep its reader waiting, or fill the memory.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Bytes that a file for people to write may have, such as a scenario or a trace of capacity.
pub const MOST: u64 = 64 << 20;

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// What the system says; or in a few words that it is a directory, a pipe or a device, or longer.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // before it is opened, which waits for the other end of a pipe
    regular(&fs::metadata(path)?)?;
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let limit = if most < 1 << 20 { format!("{most} bytes") } else { format!("{} MiB", most >> 20) };
        return Err(io::Error::new(ErrorKind::InvalidInput, format!("it is longer than {limit}")));
    }
    Ok(bytes)
}

/// Whether this is about a regular file.
///
/// # Errors
/// In a few words that it is a directory, a pipe or a device.
pub fn regular(about: &Metadata) -> io::Result<()> {
    let what = match about.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "it is a directory; name a file",
        _ => "it is a pipe or a device; name a regular file",
    };
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}

/// As [`read`], for a text.
///
/// # Errors
/// As for [`read`]; or it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is no text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read_text(&file, 5).unwrap(), "12345");
        assert_eq!(read_text(&file, 4).unwrap_err().to_string(), "it is longer than 4 bytes");
        fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_text(&file, MOST).unwrap_err().to_string(), "it is no text in UTF-8");
        assert_eq!(read(&file, MOST).unwrap(), [0xff]);
        File::create(&file).unwrap().set_len(MOST + 1).unwrap();
        assert_eq!(read(&file, MOST).unwrap_err().to_string(), "it is longer than 64 MiB");
        assert_eq!(read(&directory.path().join("b"), 1).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn what_never_ends_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, what) in [
            (pipe.as_path(), "it is a pipe or a device; name a regular file"),
            (Path::new("/dev/zero"), "it is a pipe or a device; name a regular file"),
            (directory.path(), "it is a directory; name a file"),
        ] {
            assert_eq!(read(path, MOST).unwrap_err().to_string(), what, "{}", path.display());
        }
    }
}
