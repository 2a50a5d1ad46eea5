// SPDX-License-Identifier: MIT OR Apache-2.0
//! PROGRAM: started inside the cgroup, as the right user, otherwise as if Lowtide were not there.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write},
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Command, ExitStatus},
};

use nix::{
    sys::signal::{self, SigHandler, SigSet, SigmaskHow, Signal},
    unistd::Pid,
};

use crate::{
    Cgroup, Error, Result, Stream, Terminal, User, capabilities,
    dispositions::sigpipe_was_ignored,
    session::{Leader, News, Start, check},
};

/// Where a program stands in relation to our session and its terminal.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// Where we are: in our process group, on our terminal.
    Ours,
    /// In a session without a terminal.
    Apart,
    /// In a session on a terminal of its own, which has to be relayed, and whose keyboard it has if it is in the
    /// foreground.
    On {
        /// Ours and its own.
        terminal: &'a Terminal,
        /// It has the keyboard.
        foreground: bool,
    },
}

/// A running program.
#[derive(Debug)]
pub struct Program {
    /// The program, or the leader of its session.
    child: Child,
    /// The program's own.
    pid: i32,
    leader: Option<Leader>,
    stopped: Option<Signal>,
    ended: Option<Exit>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Program {
    /// Starts `command` (program and arguments) in `cgroup` and as `user` where given, at `place`, with `mask` as its
    /// signal mask, and with `output` in place of one of our own outputs. Signals that were ignored when this process
    /// was started are ignored by it.
    ///
    /// # Errors
    /// [`Error::Program`]: no such program, not executable, or no right to become the user. [`Error::System`]: no
    /// session for it.
    pub fn start(
        command: &[OsString],
        cgroup: Option<&Cgroup>,
        user: Option<&User>,
        place: Place,
        mask: SigSet,
        output: Option<(Stream, OwnedFd)>,
    ) -> Result<Program> {
        let (program, arguments) = command.split_first().expect("the command line requires a program");
        let mut entrance = cgroup.map(Cgroup::entrance).transpose()?;
        let mut child = Command::new(program);
        child.args(arguments);
        match output {
            Some((Stream::Out, output)) => child.stdout(output),
            Some((Stream::Err, output)) => child.stderr(output),
            None => &mut child,
        };
        let identity = user.map(|user| {
            child.env("HOME", &user.home).env("USER", &user.name).env("LOGNAME", &user.name).env("SHELL", &user.shell);
            (user.uid.as_raw(), user.gid.as_raw(), user.groups.iter().map(|g| g.as_raw()).collect::<Vec<_>>())
        });
        let (session, leader) = match place {
            Place::On { terminal, foreground } => {
                let (start, leader) = Start::new(terminal, foreground)?;
                (Some(start), Some(leader))
            }
            Place::Ours | Place::Apart => (None, None),
        };
        let apart = matches!(place, Place::Apart);
        // SAFETY: between fork and exec only system calls are made; everything they need was allocated before.
        unsafe {
            child.pre_exec(move || {
                if let Some(session) = &session {
                    session.enter()?;
                }
                if apart {
                    check(libc::setsid())?;
                }
                if let Some(entrance) = &mut entrance {
                    entrance.write_all(b"0")?;
                }
                capabilities::drop_inherited()?;
                if let Some((uid, gid, groups)) = &identity {
                    check(libc::setgroups(groups.len(), groups.as_ptr()))?;
                    check(libc::setresgid(*gid, *gid, *gid))?;
                    check(libc::setresuid(*uid, *uid, *uid))?;
                }
                if sigpipe_was_ignored() {
                    signal::signal(Signal::SIGPIPE, SigHandler::SigIgn)?;
                }
                signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?;
                Ok(())
            });
        }
        let spawned = child.spawn();
        drop(child); // and with it our copy of the leader's end
        let child = spawned.map_err(|error| {
            let program = program.to_string_lossy().into_owned();
            match error.kind() {
                io::ErrorKind::NotFound => Error::NoProgram { program },
                io::ErrorKind::PermissionDenied => {
                    Error::Program { program, reason: "it may not be executed; check its permissions".to_owned() }
                }
                _ => Error::Program { program, reason: error.to_string() },
            }
        })?;
        let pid = match &leader {
            Some(leader) => leader.program().map_err(Error::system("starting the program's session"))?,
            None => child.id() as i32,
        };
        Ok(Program { child, pid, leader, stopped: None, ended: None })
    }

    /// The program's process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// How it ended, `None` while it runs.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn poll(&mut self) -> Result<Option<Exit>> {
        if self.ended.is_none() {
            self.ended = self.ask().map_err(Error::system("waiting for the program"))?;
        }
        Ok(self.ended)
    }

    fn ask(&mut self) -> io::Result<Option<Exit>> {
        let Some(leader) = &self.leader else { return Ok(self.child.try_wait()?.map(exit)) };
        while let Some(news) = leader.news() {
            let ended = match news {
                News::Stopped(signal) => {
                    self.stopped = Some(signal);
                    continue;
                }
                News::Ended(status) => exit(status),
                News::Lost => Exit::Signal(libc::SIGKILL),
            };
            self.child.wait()?; // the leader ends with it
            self.leader = None;
            return Ok(Some(ended));
        }
        Ok(None)
    }

    /// The signal that stopped it since this was asked last; only of one on a terminal of its own.
    pub fn take_stop(&mut self) -> Option<Signal> {
        self.stopped.take()
    }

    /// Readable when there is news for [`poll`](Program::poll); `None` where SIGCHLD says so.
    pub fn news(&self) -> Option<BorrowedFd<'_>> {
        self.leader.as_ref().map(Leader::control)
    }

    /// Hands a signal on.
    pub fn signal(&self, signal: Signal) {
        match &self.leader {
            Some(leader) => leader.signal(signal),
            // It may have ended a moment ago; as its parent we have not reaped it, so the pid is still its own.
            None if self.ended.is_none() => drop(signal::kill(Pid::from_raw(self.pid()), signal)),
            None => {}
        }
    }

    /// Hands a signal on to its process group, as a terminal does; only to one on a terminal of its own.
    pub fn signal_group(&self, signal: Signal) {
        if let Some(leader) = &self.leader {
            leader.signal_group(signal);
        }
    }

    /// Gives it the keyboard of its own terminal, or takes it.
    pub fn foreground(&self, foreground: bool) {
        if let Some(leader) = &self.leader {
            leader.foreground(foreground);
        }
    }

    /// Its own terminal is about to go.
    pub fn hang_up(&self) {
        if let Some(leader) = &self.leader {
            leader.hang_up();
        }
    }
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

/// TCP sockets that PROGRAM inherits from us: opened before, outside its group, hence not governed.
pub fn inherited_tcp_sockets() -> usize {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| {
            let fd: i32 = entry.file_name().to_str()?.parse().ok()?;
            let target = fs::read_link(entry.path()).ok()?;
            target.to_string_lossy().starts_with("socket:").then_some(fd)
        })
        .filter(|fd| protocol(*fd) == Some(libc::IPPROTO_TCP) && !closes_on_exec(*fd))
        .count()
}

/// Whether a socket that a process of `cgroup` opens knows Lowtide's options, found out by a child that enters it and
/// asks.
pub(crate) fn probe_options(cgroup: &Cgroup) -> Result<()> {
    const SOL_LOWTIDE: libc::c_int = 0x4c54;
    const STATUS: libc::c_int = 2;
    let socket = cgroup.socket()?;
    let (mut status, mut length) = ([0u64; 8], 64);
    // SAFETY: the buffer is as long as is said.
    let asked = unsafe {
        libc::getsockopt(socket.as_raw_fd(), SOL_LOWTIDE, STATUS, status.as_mut_ptr().cast(), &raw mut length)
    };
    check(asked).map_err(Error::system("asking a socket for its status"))
}

fn protocol(fd: i32) -> Option<i32> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: value and length are valid for the call.
    let result =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL, (&raw mut value).cast(), &raw mut length) };
    (result == 0).then_some(value)
}

fn closes_on_exec(fd: i32) -> bool {
    // SAFETY: a system call with integer arguments.
    unsafe { libc::fcntl(fd, libc::F_GETFD) & libc::FD_CLOEXEC != 0 }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, os::fd::AsRawFd};

    use super::*;

    #[test]
    fn only_tcp_sockets_that_survive_exec_are_inherited() {
        let before = inherited_tcp_sockets();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(inherited_tcp_sockets(), before);
        // SAFETY: the descriptor is the listener's.
        unsafe { libc::fcntl(listener.as_raw_fd(), libc::F_SETFD, 0) };
        assert_eq!(inherited_tcp_sockets(), before + 1);
    }
}
