// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong.

use std::{io, path::PathBuf};

/// Why a guest could not be started, or did not do what it was started for. Each message is one sentence, and what the
/// guest printed last where it has to do with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No QEMU.
    #[error(
        "qemu-system-x86_64 is not installed; make lab-guest-image installs it (Debian: the package qemu-system-x86)"
    )]
    NoQemu,
    /// No image, or one of another format.
    #[error(
        "there is no guest image in {0}; make lab-guest-image makes one in target/lab/guest, and LOWTIDE_GUEST=DIRECTORY names another place"
    )]
    NoImage(PathBuf),
    /// An image that this program cannot use.
    #[error(
        "the guest image in {0} is of another version of lowtide; make lab-guest-image renews that in target/lab/guest"
    )]
    OldImage(PathBuf),
    /// A program that the guest needs is not there.
    #[error("{0} is not installed here, and the guest needs it")]
    NoProgram(PathBuf),
    /// It did not end in time.
    #[error("the guest was not done after {seconds} s; it printed last:\n{console}")]
    TooLong {
        /// Of the host's time.
        seconds: u64,
        /// The last lines.
        console: String,
    },
    /// The machine ended without a result.
    #[error("the guest ended without a result; it printed last:\n{console}")]
    Broken {
        /// The last lines.
        console: String,
    },
    /// The command failed.
    #[error("the command in the guest failed with status {status}: {said}")]
    Failed {
        /// Its exit status.
        status: i32,
        /// What lowtide said, if it was that, else the last lines.
        said: String,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// Says of a failed system call what it was for.
pub(crate) trait Doing<T> {
    /// `action` completes the sentence "cannot …".
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::System { action: action(), source })
    }
}
