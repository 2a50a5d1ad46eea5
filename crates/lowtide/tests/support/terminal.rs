// SPDX-License-Identifier: MIT OR Apache-2.0
//! A terminal with a shell and job control on it, for tests of what a person sees and types.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    fs::File,
    io::{Read, Write},
    num::NonZeroU16,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::Command,
    thread,
    time::{Duration, Instant},
};

use nix::{
    pty::{Winsize, openpty},
    sys::termios::{LocalFlags, tcgetattr},
};

use super::lifecycle::{PATIENCE, Running, is_alive, until};

nix::ioctl_write_ptr_bad!(set_window_size, libc::TIOCSWINSZ, Winsize);

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// A program that can stop at any time once it is ready. A shell cannot while a child of its has stopped in vfork(2).
pub(crate) const STOPS: &str = "exec perl -e \"\\$|=1; print qq(ready\\n); select undef, undef, undef, 2; exit 6\"";

/// A terminal, and what has been shown on it.
pub(crate) struct Terminal {
    master: File,
    /// Kept, so that what is shown last can be read after the end.
    slave: OwnedFd,
    shell: Running,
    bytes: Vec<u8>,
    pub(crate) shown: String,
}

/// An empty screen.
pub(crate) fn screen(rows: u16, columns: u16) -> vt100::Parser {
    vt100::Parser::new(NonZeroU16::new(rows).unwrap(), NonZeroU16::new(columns).unwrap(), 0)
}

impl Terminal {
    /// Starts a shell like an interactive one, with job control, that runs a script.
    pub(crate) fn start(script: &str) -> Terminal {
        Terminal::sized(script, 24, 80)
    }

    /// The same, on a terminal of so many rows and columns.
    pub(crate) fn sized(script: &str, rows: u16, columns: u16) -> Terminal {
        let pty = openpty(&size(rows, columns), None).unwrap();
        let (master, slave) = (pty.master, pty.slave);
        let mut command = Command::new("bash");
        command.args(["-mc", script]).env("TERM", "xterm").env_remove("SUDO_UID");
        let (terminal, other) = (slave.as_raw_fd(), master.as_raw_fd());
        // SAFETY: between fork and exec only system calls are made, on a descriptor that the child has.
        unsafe {
            command.pre_exec(move || {
                nix::unistd::setsid()?;
                if libc::ioctl(terminal, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                for fd in 0..3 {
                    if libc::dup2(terminal, fd) < 0 {
                        return Err(std::io::Error::last_os_error());
                    }
                }
                for fd in [terminal, other] {
                    libc::close(fd); // only the test has the other side
                }
                Ok(())
            });
        }
        let shell = Running::start(&mut command);
        // SAFETY: a system call with integer arguments.
        unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Terminal { master: master.into(), slave, shell, bytes: Vec::new(), shown: String::new() }
    }

    /// The shell's process.
    pub(crate) fn shell(&self) -> i32 {
        self.shell.pid()
    }

    /// Waits until this has been shown.
    pub(crate) fn shows(&mut self, text: &str) {
        let limit = Instant::now() + PATIENCE;
        while !self.shown.contains(text) {
            assert!(Instant::now() < limit, "no {text:?} in {:?}", self.shown);
            self.read();
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until this is on the screen of 24 rows and 80 columns: what stays as it is, is not sent again.
    pub(crate) fn has_on_screen(&mut self, text: &str) {
        until(text, || {
            self.read();
            let mut screen = screen(24, 80);
            screen.process(&self.bytes);
            screen.screen().contents().contains(text).then_some(())
        });
    }

    pub(crate) fn read(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = self.master.read(&mut buffer) {
            self.bytes.extend_from_slice(&buffer[..read]);
        }
        self.shown = String::from_utf8_lossy(&self.bytes).into_owned();
    }

    /// A key with Ctrl, or a line's end.
    pub(crate) fn key(&mut self, control: u8) {
        self.types(&[control]);
    }

    /// What is typed.
    pub(crate) fn types(&mut self, keys: &[u8]) {
        self.master.write_all(keys).unwrap();
    }

    /// Whether keys pass through it as they are.
    pub(crate) fn is_raw(&self) -> bool {
        !tcgetattr(&self.slave).unwrap().local_flags.intersects(LocalFlags::ISIG | LocalFlags::ICANON)
    }

    /// The window is resized.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        // SAFETY: the value is valid for the call.
        unsafe { set_window_size(self.master.as_raw_fd(), &size(rows, columns)) }.unwrap();
    }

    /// The shell's status, and all that was shown.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let shell = self.shell.pid();
        until("the shell's end", || {
            self.read();
            (!is_alive(shell)).then_some(())
        });
        self.read();
        (self.shell.end().status.code(), self.shown)
    }
}
