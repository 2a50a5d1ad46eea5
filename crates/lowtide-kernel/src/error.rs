// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong, each in one sentence: what, where, what to do.

use std::{io, path::PathBuf};

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a transfer cannot be governed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No cgroup v2 hierarchy is mounted and none could be.
    #[error(
        "no cgroup v2 hierarchy is in sight and mounting one failed ({0}); run as root, or mount cgroup2 in this container"
    )]
    NoCgroup(io::Error),
    /// The hierarchy is there, but not ours to write.
    #[error("cannot make a cgroup in {path} ({source}); run as root, or delegate that cgroup to this user")]
    CgroupUnwritable {
        /// Where the child was to be made.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The kernel refused the BPF programs.
    #[error("the kernel refused Lowtide's BPF programs: {reason}")]
    Load {
        /// The kernel's reason, with the verifier's last words where there are any.
        reason: String,
    },
    /// The programs are loaded but could not be attached.
    #[error("the kernel refused to attach {what}: {reason}")]
    Attach {
        /// Which program.
        what: &'static str,
        /// The kernel's reason.
        reason: String,
    },
    /// This process's group is none that it can see.
    #[error("this process is in the cgroup {group}, outside what its cgroup namespace and mounts show")]
    GroupOutOfSight {
        /// As the namespace names it.
        group: PathBuf,
    },
    /// A group of the kind whose children take no processes.
    #[error("the cgroup {path} is threaded, so no process can enter a group below it")]
    Threaded {
        /// Where the child was to be made.
        path: PathBuf,
    },
    /// Somebody else's program allows none of ours.
    #[error(
        "the BPF program {id} on the cgroup {group} allows no other below it (it is attached without BPF_F_ALLOW_MULTI), \
         so {what} cannot be attached"
    )]
    ForbiddenByAnother {
        /// Which program of ours.
        what: &'static str,
        /// What the other one is attached to.
        group: PathBuf,
        /// Its number.
        id: u32,
    },
    /// A group to attach to.
    #[error("{0}")]
    Group(String),
    /// Reading the sockets' state failed.
    #[error("cannot read the state of the transfer's sockets: {0}")]
    Observe(io::Error),
    /// Tracing failed.
    #[error("cannot trace: {0}")]
    Trace(io::Error),
    /// A law that Lowtide cannot govern.
    #[error("{0}")]
    Law(String),
    /// The user to run as.
    #[error("{0}")]
    User(String),
    /// There is no such program.
    #[error("cannot run '{program}': there is no such program; check its name and PATH")]
    NoProgram {
        /// As given on the command line.
        program: String,
    },
    /// The program is there, but could not be started.
    #[error("cannot run '{program}': {reason}")]
    Program {
        /// As given on the command line.
        program: String,
        /// Why, and what to do.
        reason: String,
    },
    /// Anything of the operating system that should not fail.
    #[error("{what} failed: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }
}
