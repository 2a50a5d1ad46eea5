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
    /// A BPF program of another owner allows none of ours.
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
    /// A path to a group that leads nowhere.
    #[error("{}: {reason}", path.display())]
    NoGroupThere {
        /// As it was given.
        path: PathBuf,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// A directory that is no group.
    #[error("{}: it is no group of cgroup v2", .0.display())]
    NotAGroup(PathBuf),
    /// The group of the whole machine.
    #[error(
        "{}: it is the root group, whose processes are those of the whole machine; give what is to be governed a group \
         of its own, for example by systemd-run",
        .0.display()
    )]
    RootGroup(PathBuf),
    /// Two of us would take the same connections from each other.
    #[error("{}: another Lowtide governs it; lowtide status tells which", .0.display())]
    Governed(PathBuf),
    /// A text that is no network.
    #[error("{text:?} is no network; write 192.0.2.0/24, 2001:db8::/32 or an address")]
    NoNetwork {
        /// As it was given.
        text: String,
    },
    /// There is no process of this number.
    #[error("there is no such process")]
    NoProcess,
    /// No group has this name.
    #[error("no group of this name; it does not run")]
    NoGroup,
    /// Several groups have this name.
    #[error("there are several, as {} and {}; choose one by its path", .0.display(), .1.display())]
    SeveralGroups(PathBuf, PathBuf),
    /// The only group of this name is one that a user has made, who may have chosen the name for this.
    #[error("the only group of this name was made by user {user}, not by the system; if it is meant, choose {} by its path", .path.display())]
    UsersGroup {
        /// Its directory.
        path: PathBuf,
        /// The user's number.
        user: u32,
    },
    /// No container has this name.
    #[error("{engines} know none of this name")]
    NoContainer {
        /// What was asked, with commas.
        engines: String,
    },
    /// Reading the sockets' state failed.
    #[error("cannot read the state of the transfer's sockets: {0}")]
    Observe(io::Error),
    /// What runs was started by another version of Lowtide, whose records may be others.
    #[error("a transfer or a law in the kernel is of another version of lowtide; trace it with that one")]
    OtherVersion,
    /// There is a trace of it, and one at a time.
    #[error("{law} is being traced already; there is one trace at a time")]
    TracedAlready {
        /// Its law.
        law: String,
    },
    /// Tracing failed.
    #[error("cannot trace: {0}")]
    Trace(io::Error),
    /// A law of Lowtide's own that cannot be read.
    #[error("{text}: {reason}")]
    LawText {
        /// As it was asked for.
        text: String,
        /// What is wrong with it.
        reason: lowtide_cc::LawError,
    },
    /// A law of Lowtide's own that the kernel does not have like this.
    #[error("{text}: {refusal}")]
    NotPorted {
        /// As it was asked for.
        text: String,
        /// What the kernel has instead.
        refusal: lowtide_port::Refusal,
    },
    /// A law that ignores congestion signals.
    #[error(
        "{law} cannot be governed: it ignores congestion signals, so no weight would have an effect; take tide, cubic or reno"
    )]
    DeafLaw {
        /// Its name.
        law: String,
    },
    /// A law that this kernel does not have.
    #[error(
        "{law} is not registered in this kernel; there are {ours} (Lowtide's own) and {others} (others: modprobe tcp_NAME)"
    )]
    UnknownLaw {
        /// As it was asked for.
        law: String,
        /// Lowtide's own, with commas.
        ours: String,
        /// Those of this kernel, with commas.
        others: String,
    },
    /// A law of the kernel's own, where one of ours is to be loaded.
    #[error("{law} is the kernel's own; there is nothing to load (modprobe tcp_{law})")]
    NotOurs {
        /// Its name.
        law: String,
    },
    /// A law that is in the kernel under our name for it.
    #[error("lt_{law} is loaded already; lowtide cc unload {law} unloads it")]
    Loaded {
        /// Its name.
        law: String,
    },
    /// A law that takes no weight of its own.
    #[error("{law} has no weight of its own")]
    NoWeight {
        /// Its name.
        law: String,
    },
    /// An actuator that this law does not take.
    #[error("the law {law} {why}; take the actuator phantom, or cdg, Lowtide's own law")]
    Actuator {
        /// The law's name.
        law: String,
        /// Why not: the rest of a sentence about the law.
        why: &'static str,
    },
    /// The weight would act on signals, which this law does not answer.
    #[error(
        "the law {law} reacts only to its own signals, so the weight would have no effect; take its usual actuator, or cdg"
    )]
    DeafToActuator {
        /// The law's name.
        law: String,
    },
    /// There is no such user.
    #[error("'{user}' is no user of this system")]
    NoUser {
        /// By name or number.
        user: String,
    },
    /// The caller that sudo names is no user.
    #[error("SUDO_UID names '{uid}', which is no user of this system")]
    NoCaller {
        /// As it stands there.
        uid: String,
    },
    /// Only root becomes another user, and not without these capabilities.
    #[error(
        "only root can run a program as another user, {user}, and needs CAP_SETUID and CAP_SETGID; leave that out, or use sudo"
    )]
    OtherUser {
        /// The name.
        user: String,
    },
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
