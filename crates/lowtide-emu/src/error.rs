// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong.

use std::io;

/// Why an emulator could not be started, or did not run as it should. Each message is one sentence
/// that says what to do where something can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not root.
    #[error("emulating a network needs root, to make network namespaces and TUN devices; try sudo")]
    NotRoot,
    /// A value of the configuration is out of range.
    #[error("{0}")]
    Config(String),
    /// There is a namespace of this name, made by another process.
    #[error("a network namespace {0} exists and was not made by lowtide; choose another name")]
    ForeignNamespace(String),
    /// There is a namespace of this name that another living emulator uses.
    #[error("the network namespace {0} belongs to another lowtide that is running; choose another name")]
    NamespaceInUse(String),
    /// The `ip` or `tc` command failed.
    #[error("`{command}` failed: {message}")]
    Iproute {
        /// The command line.
        command: String,
        /// What it printed.
        message: String,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Packets above the MTU came in; they were dropped, so the traffic is not what it should be.
    #[error(
        "{packets} packets were larger than the MTU of {mtu} bytes and were dropped; leave the MTU of the emulator's devices as it is"
    )]
    Oversized {
        /// How many.
        packets: u64,
        /// The MTU in bytes.
        mtu: u32,
    },
    /// The emulator's thread ended early.
    #[error("the emulation stopped by itself: {0}")]
    Stopped(String),
}

/// Says of a failed system call what it was for.
pub(crate) trait Doing<T> {
    /// `action` completes the sentence "cannot …".
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::System { action: action(), source: source.into() })
    }
}
