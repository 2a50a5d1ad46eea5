// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel and its first file system, as `scripts/guest-image.sh` makes them.

use crate::error::{Doing, Error};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The first line of `about`: what this program and the script agree on.
const FORMAT: &str = "format 2\n";

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub struct Image {
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: PathBuf,
    about: String,
}

impl Image {
    /// The one in a directory.
    ///
    /// # Errors
    /// [`Error::NoImage`], [`Error::OldImage`].
    pub fn find(directory: &Path) -> Result<Self, Error> {
        let about = match fs::read_to_string(directory.join("about")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoImage(directory.to_owned()));
            }
            read => read.doing(|| format!("read {}", directory.join("about").display()))?,
        };
        let Some(about) = about.strip_prefix(FORMAT) else {
            return Err(Error::OldImage(directory.to_owned()));
        };
        let about = about.trim_end().to_owned();
        let full = fs::canonicalize(directory).doing(|| format!("find {}", directory.display()))?;
        Ok(Self { kernel: full.join("kernel"), initramfs: full.join("initramfs.cpio"), about })
    }

    /// What it was made of: the packages, with their versions.
    pub fn about(&self) -> &str {
        &self.about
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_says_what_it_is_made_of() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(Image::find(directory.path()), Err(Error::NoImage(_))));
        fs::write(directory.path().join("about"), "format 0\nkernel k=1\n").unwrap();
        assert!(matches!(Image::find(directory.path()), Err(Error::OldImage(_))));
        fs::write(directory.path().join("about"), format!("{FORMAT}kernel k=1\nbusybox b=2\n")).unwrap();
        assert_eq!(Image::find(directory.path()).unwrap().about(), "kernel k=1\nbusybox b=2");
    }
}
