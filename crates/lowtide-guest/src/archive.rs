// SPDX-License-Identifier: MIT OR Apache-2.0
//! Archives in the format "newc" of cpio, which the kernel unpacks into its first file system. It takes several, one
//! after the other.

use std::collections::BTreeSet;

/// What the kernel expects an archive to begin at.
const ALIGNMENT: usize = 4;
const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;

/// An archive in the making.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    number: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Adds a file, by its absolute path, and the directories above it.
    pub(crate) fn file(&mut self, path: &str, content: &[u8], executable: bool) {
        let path = path.trim_start_matches('/');
        for (end, _) in path.match_indices('/') {
            if self.directories.insert(path[..end].to_owned()) {
                self.entry(&path[..end], DIRECTORY, 2, &[]);
            }
        }
        self.entry(path, if executable { PROGRAM } else { FILE }, 1, content);
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, 1, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, links: u32, content: &[u8]) {
        self.number += 1;
        let (size, name_size) = (u32::try_from(content.len()).expect("below 4 GB"), name.len() as u32 + 1);
        // inode, mode, owner, group, links, time, size, two devices of two numbers each, the name's length, no checksum
        let fields = [self.number, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.align();
        self.bytes.extend(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_once_and_before_what_is_in_them() {
        let mut archive = Archive::default();
        archive.file("/usr/lib/a", b"1", false);
        archive.file("/usr/lib/b", b"22", true);
        let bytes = archive.finish();
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        let text = String::from_utf8(bytes).unwrap();
        let names: Vec<&str> = ["usr\0", "usr/lib\0", "usr/lib/a\0", "usr/lib/b\0", "TRAILER!!!\0"].into();
        let places: Vec<usize> = names.iter().map(|name| text.find(name).unwrap()).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(text.matches("070701").count(), names.len());
    }

    #[test]
    fn a_header_has_110_characters() {
        let mut archive = Archive::default();
        archive.file("a", b"xyz", false);
        let bytes = archive.finish();
        // the name and its zero end on a multiple of four
        assert_eq!(&bytes[110..112], b"a\0");
        assert_eq!(&bytes[112..115], b"xyz");
        assert_eq!(&bytes[116..122], b"070701");
        assert_eq!(&bytes[14..22], format!("{FILE:08x}").as_bytes());
        assert_eq!(&bytes[54..62], b"00000003");
    }
}
