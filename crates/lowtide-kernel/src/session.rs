// SPDX-License-Identifier: MIT OR Apache-2.0
//! A session for PROGRAM, with a terminal of its own.
//!
//! Who shares a terminal can type into it (TIOCSTI, where the kernel allows it): a program of another user must not
//! have ours.
//!
//! The session has a leader, a process of ours between Lowtide and PROGRAM. It is there because a process group whose
//! parents are all in other sessions is orphaned, and cannot be stopped by Ctrl-Z. It tells Lowtide how PROGRAM stops
//! and ends, and does what only a process of this session can do. If Lowtide is killed it keeps PROGRAM's terminal
//! alive and restores ours.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    process::ExitStatus,
    ptr,
};

use nix::sys::{
    signal::Signal,
    socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair},
};

use crate::{Error, Result, Terminal, terminal::controls_us};

/// What Lowtide asks of the leader, each a number of its own: a signal for PROGRAM, the same below zero for its group,
/// or one of these.
const FOREGROUND: i32 = 1000;
const BACKGROUND: i32 = 1001;
const HANG_UP: i32 = 1002;

/// The leader's side of a start, made before the fork.
pub(crate) struct Start {
    control: OwnedFd,
    slave: RawFd,
    master: RawFd,
    ours: RawFd,
    modes: libc::termios,
    foreground: bool,
    /// Which of the three standard streams are our terminal, and become the other one.
    replaced: [bool; 3],
}

/// Lowtide's side of the leader.
#[derive(Debug)]
pub(crate) struct Leader {
    control: OwnedFd,
}

/// News of PROGRAM.
#[derive(Debug, Clone, Copy)]
pub(crate) enum News {
    Stopped(Signal),
    Ended(ExitStatus),
    /// The leader itself was killed; no more is known.
    Lost,
}

impl Start {
    pub(crate) fn new(terminal: &Terminal, foreground: bool) -> Result<(Start, Leader)> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (control, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
            .map_err(|error| Error::system("making a session for the program")(error.into()))?;
        let start = Start {
            control: other,
            slave: terminal.slave.as_raw_fd(),
            master: terminal.master.as_raw_fd(),
            ours: terminal.ours.as_raw_fd(),
            modes: terminal.modes(),
            foreground,
            replaced: [controls_us(io::stdin()), controls_us(io::stdout()), controls_us(io::stderr())],
        };
        Ok((start, Leader { control }))
    }

    /// Called in the child: makes it the leader of a new session and returns in a child of that, PROGRAM to be.
    ///
    /// # Safety
    /// Between fork and exec only. It makes system calls and nothing else.
    pub(crate) unsafe fn enter(&self) -> io::Result<()> {
        // SAFETY: system calls on descriptors and values that live until exec.
        unsafe {
            let mut all = mem::zeroed();
            libc::sigfillset(&raw mut all);
            check(libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut()))?;
            check(libc::setsid())?;
            check(libc::ioctl(self.slave, libc::TIOCSCTTY, 0))?;
            let child = libc::fork();
            check(child)?;
            if child > 0 {
                libc::setpgid(child, child); // parent and child both call it: the first call takes effect
                self.lead(child);
            }
            let program = libc::getpid();
            check(libc::send(self.control.as_raw_fd(), (&raw const program).cast(), 4, libc::MSG_NOSIGNAL) as i32)?;
            check(libc::setpgid(0, 0))?;
            if self.foreground {
                check(libc::tcsetpgrp(self.slave, libc::getpid()))?;
            }
            for (fd, replaced) in (0..).zip(self.replaced) {
                if replaced {
                    check(libc::dup2(self.slave, fd))?;
                }
            }
            Ok(())
        }
    }

    /// The leader's life. All signals stay blocked: it ends when PROGRAM has.
    unsafe fn lead(&self, program: libc::pid_t) -> ! {
        let control = self.control.as_raw_fd();
        // SAFETY: system calls; what they are given lives as long as they last.
        unsafe {
            keep_only([control, self.slave, self.master, self.ours]);
            let mut children = mem::zeroed();
            libc::sigemptyset(&raw mut children);
            libc::sigaddset(&raw mut children, libc::SIGCHLD);
            let children = libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);

            let mut alone = false;
            let mut master = self.master;
            let mut holder = program; // the group to which the keyboard goes back
            let mut status = 0;
            loop {
                let mut ended = false;
                while !ended && libc::waitpid(program, &raw mut status, libc::WNOHANG | libc::WUNTRACED) == program {
                    libc::send(control, (&raw const status).cast(), 4, libc::MSG_NOSIGNAL);
                    ended = !libc::WIFSTOPPED(status);
                }
                if ended {
                    break;
                }
                let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
                let mut files =
                    [entry(children), entry(if alone { -1 } else { control }), entry(if alone { master } else { -1 })];
                libc::poll(files.as_mut_ptr(), 3, -1);
                if files[0].revents != 0 {
                    let mut info: libc::signalfd_siginfo = mem::zeroed();
                    while libc::read(children, (&raw mut info).cast(), size_of_val(&info)) > 0 {}
                }
                if files[1].revents != 0 {
                    let mut order = 0i32;
                    match libc::recv(control, (&raw mut order).cast(), 4, libc::MSG_DONTWAIT) {
                        4 => self.obey(order, program, &mut holder, &mut master),
                        0 => {
                            alone = true;
                            self.restore();
                        }
                        _ => {}
                    }
                }
                if files[2].revents != 0 {
                    show(master, self.ours);
                }
            }
            if alone {
                while show(master, self.ours) {}
            }
            // whom PROGRAM leaves behind this end is no hang-up
            libc::tcsetpgrp(self.slave, libc::getpid());
            libc::_exit(0)
        }
    }

    /// Gives our terminal its modes back, unless its shell has done so: only Lowtide leaves it without signals.
    unsafe fn restore(&self) {
        // SAFETY: system calls on values that are valid for them.
        unsafe {
            let mut now: libc::termios = mem::zeroed();
            if libc::tcgetattr(self.ours, &raw mut now) == 0 && now.c_lflag & libc::ISIG == 0 {
                libc::tcsetattr(self.ours, libc::TCSANOW, &raw const self.modes);
            }
        }
    }

    unsafe fn obey(&self, order: i32, program: libc::pid_t, holder: &mut libc::pid_t, master: &mut RawFd) {
        // SAFETY: system calls with integer arguments.
        unsafe {
            let leader = libc::getpid();
            let now = libc::tcgetpgrp(self.slave);
            match order {
                FOREGROUND if now == leader => {
                    // the group that had the keyboard may be gone
                    if libc::tcsetpgrp(self.slave, *holder) < 0 {
                        libc::tcsetpgrp(self.slave, program);
                    }
                }
                BACKGROUND if now > 0 && now != leader => {
                    *holder = now;
                    libc::tcsetpgrp(self.slave, leader);
                }
                FOREGROUND | BACKGROUND => {}
                HANG_UP => {
                    libc::close(*master);
                    *master = -1;
                }
                signal if signal < 0 => {
                    libc::kill(-program, -signal);
                }
                signal => {
                    libc::kill(program, signal);
                }
            }
        }
    }
}

/// What a system call says of itself.
pub(crate) fn check(result: libc::c_int) -> io::Result<()> {
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes everything else, so that nothing of Lowtide's and no end of a pipe stays open because of the leader.
pub(crate) unsafe fn keep_only<const N: usize>(mut fds: [RawFd; N]) {
    fds.sort_unstable();
    let mut from = 0;
    for fd in fds {
        if from < fd {
            // SAFETY: a system call with integer arguments.
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - 1, 0) };
        }
        from = fd + 1;
    }
    // SAFETY: the same.
    unsafe { libc::syscall(libc::SYS_close_range, from, libc::c_uint::MAX, 0) };
}

/// Shows what PROGRAM has written; whether there was anything. What a terminal that is gone would have shown is lost
/// with it.
unsafe fn show(master: RawFd, ours: RawFd) -> bool {
    let mut buffer = [0u8; 4096];
    // SAFETY: system calls on a buffer of that length.
    unsafe {
        let length = libc::read(master, buffer.as_mut_ptr().cast(), buffer.len());
        let mut written = 0;
        while written < length {
            match libc::write(ours, buffer.as_ptr().add(written as usize).cast(), (length - written) as usize) {
                some if some > 0 => written += some,
                _ if *libc::__errno_location() == libc::EAGAIN => {
                    let mut file = libc::pollfd { fd: ours, events: libc::POLLOUT, revents: 0 };
                    libc::poll(&raw mut file, 1, -1);
                }
                _ => break,
            }
        }
        length > 0
    }
}

impl Leader {
    pub(crate) fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// PROGRAM's pid, which it says itself before it is executed, and so before all news.
    pub(crate) fn program(&self) -> io::Result<i32> {
        let mut pid = [0; 4];
        match recv(self.control.as_raw_fd(), &mut pid, MsgFlags::empty())? {
            4 => Ok(i32::from_ne_bytes(pid)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The next news, if there is any.
    pub(crate) fn news(&self) -> Option<News> {
        let mut status = [0; 4];
        match recv(self.control.as_raw_fd(), &mut status, MsgFlags::empty()) {
            Ok(4) => {
                let status = i32::from_ne_bytes(status);
                if !libc::WIFSTOPPED(status) {
                    return Some(News::Ended(std::os::unix::process::ExitStatusExt::from_raw(status)));
                }
                Signal::try_from(libc::WSTOPSIG(status)).ok().map(News::Stopped)
            }
            Err(nix::errno::Errno::EAGAIN) => None,
            _ => Some(News::Lost),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.order(signal as i32);
    }

    pub(crate) fn signal_group(&self, signal: Signal) {
        self.order(-(signal as i32));
    }

    pub(crate) fn foreground(&self, foreground: bool) {
        self.order(if foreground { FOREGROUND } else { BACKGROUND });
    }

    pub(crate) fn hang_up(&self) {
        self.order(HANG_UP);
    }

    fn order(&self, order: i32) {
        // a leader that is gone has ended with PROGRAM, and its news says so
        let _ = send(self.control.as_raw_fd(), &order.to_ne_bytes(), MsgFlags::MSG_NOSIGNAL);
    }
}
