// SPDX-License-Identifier: MIT OR Apache-2.0
//! PROGRAM: started inside the cgroup, as the right user, otherwise as if Lowtide were not there.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
};

use nix::{
    sys::{
        signal::{self, SigHandler, SigSet, SigmaskHow, Signal},
        wait::{WaitStatus, waitpid},
    },
    unistd::{self, ForkResult, Pid},
};

use crate::{Cgroup, Error, Result, User};

/// Whether SIGPIPE was ignored when this process was started. Rust ignores it before `main`, and lets no program inherit
/// that.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's own start.
#[used]
// SAFETY: the section holds functions of the C library's signature, which are called once each.
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note_dispositions;

extern "C" fn note_dispositions() {
    // SAFETY: all zeroes are a valid sigaction, which is only written to.
    let ignored = unsafe {
        let mut found: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut found) == 0 && found.sa_sigaction == libc::SIG_IGN
    };
    PIPE_IGNORED.store(ignored, Ordering::Relaxed);
}

/// A running program.
#[derive(Debug)]
pub struct Program {
    child: Child,
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
    /// Starts `command` (program and arguments) in `cgroup` and as `user` where given, with `mask` as its signal
    /// mask. Signals that were ignored when this process was started are ignored by it.
    ///
    /// # Errors
    /// [`Error::Program`]: no such program, not executable, or no right to become the user.
    pub fn start(command: &[OsString], cgroup: Option<&Cgroup>, user: Option<&User>, mask: SigSet) -> Result<Program> {
        let (program, arguments) = command.split_first().expect("the command line requires a program");
        let mut entrance = cgroup.map(Cgroup::entrance).transpose()?;
        let pipe_ignored = PIPE_IGNORED.load(Ordering::Relaxed);
        let mut child = Command::new(program);
        child.args(arguments);
        let identity = user.map(|user| {
            child.env("HOME", &user.home).env("USER", &user.name).env("LOGNAME", &user.name).env("SHELL", &user.shell);
            (user.uid.as_raw(), user.gid.as_raw(), user.groups.iter().map(|g| g.as_raw()).collect::<Vec<_>>())
        });
        // SAFETY: between fork and exec only system calls are made; everything they need was allocated before.
        unsafe {
            child.pre_exec(move || {
                if let Some(entrance) = &mut entrance {
                    entrance.write_all(b"0")?;
                }
                drop_inherited_capabilities()?;
                if let Some((uid, gid, groups)) = &identity {
                    check(libc::setgroups(groups.len(), groups.as_ptr()))?;
                    check(libc::setresgid(*gid, *gid, *gid))?;
                    check(libc::setresuid(*uid, *uid, *uid))?;
                }
                if pipe_ignored {
                    signal::signal(Signal::SIGPIPE, SigHandler::SigIgn)?;
                }
                signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?;
                Ok(())
            });
        }
        let child = child.spawn().map_err(|error| Error::Program {
            program: program.to_string_lossy().into_owned(),
            reason: match error.kind() {
                io::ErrorKind::NotFound => "there is no such program; check its name and PATH".to_owned(),
                io::ErrorKind::PermissionDenied => "it may not be executed; check its permissions".to_owned(),
                _ => error.to_string(),
            },
        })?;
        Ok(Program { child })
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// How it ended, `None` while it runs.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn poll(&mut self) -> Result<Option<Exit>> {
        let status = self.child.try_wait().map_err(Error::system("waiting for the program"))?;
        Ok(status.map(exit))
    }

    /// Hands a signal on.
    pub fn signal(&self, signal: Signal) {
        // It may have ended a moment ago; as its parent we have not reaped it, so the pid is still its own.
        let _ = signal::kill(Pid::from_raw(self.pid()), signal);
    }
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Capabilities that Lowtide was given are not the program's: clears the ambient set, by which alone they would pass an exec.
fn drop_inherited_capabilities() -> io::Result<()> {
    // SAFETY: a system call with integer arguments.
    check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) })
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

/// Whether a socket that a process of `cgroup` opens knows Lowtide's options, found out by a child that enters it and asks.
pub(crate) fn probe_options(cgroup: &Cgroup) -> Result<()> {
    const SOL_LOWTIDE: libc::c_int = 0x4c54;
    const STATUS: libc::c_int = 2;
    let mut entrance = cgroup.entrance()?;
    let mut ask = || -> io::Result<()> {
        entrance.write_all(b"0")?;
        // SAFETY: system calls; the buffer is as long as is said, the socket goes with the process.
        unsafe {
            let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
            let (mut status, mut length) = ([0u64; 8], 64);
            check(fd)?;
            check(libc::getsockopt(fd, SOL_LOWTIDE, STATUS, status.as_mut_ptr().cast(), &raw mut length))
        }
    };
    // SAFETY: the child makes system calls only, and ends without returning.
    match unsafe { unistd::fork() }.map_err(|error| Error::system("fork")(error.into()))? {
        ForkResult::Child => {
            let code = ask().map_or_else(|error| error.raw_os_error().unwrap_or(libc::EIO), |()| 0);
            // SAFETY: ends the process and does nothing else.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, 0)) => Ok(()),
            Ok(WaitStatus::Exited(_, code)) => {
                Err(Error::system("asking a socket for its status")(io::Error::from_raw_os_error(code)))
            }
            other => Err(Error::system("asking a socket for its status")(io::Error::other(format!("{other:?}")))),
        },
    }
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
