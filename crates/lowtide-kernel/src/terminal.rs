// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terminal that controls us, and a second one that stands for it where PROGRAM is.

use std::{
    fs::OpenOptions,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
};

use nix::{
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    pty::{Winsize, openpty},
    sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr},
    unistd,
};

use crate::{Error, Result, User};

nix::ioctl_read_bad!(window_size, libc::TIOCGWINSZ, Winsize);
nix::ioctl_write_ptr_bad!(set_window_size, libc::TIOCSWINSZ, Winsize);

/// Our terminal, and a pty for PROGRAM with the same modes and the same size.
#[derive(Debug)]
pub struct Terminal {
    /// Opened by ourselves, so that others who have the terminal do not meet our O_NONBLOCK.
    pub(crate) ours: OwnedFd,
    pub(crate) master: OwnedFd,
    pub(crate) slave: OwnedFd,
    modes: Termios,
}

impl Terminal {
    /// `None` where no terminal controls us. The pty belongs to `user`, who may open it by its name.
    ///
    /// # Errors
    /// [`Error::System`]: no pty can be had.
    pub fn open(user: Option<&User>) -> Result<Option<Terminal>> {
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let ours = match OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/tty") {
            Ok(file) => OwnedFd::from(file),
            Err(_) => return Ok(None), // the kernel's way to say that there is none
        };
        let open = || -> nix::Result<Terminal> {
            let modes = tcgetattr(&ours)?;
            let pty = openpty(&size(ours.as_fd())?, &modes)?;
            for fd in [&pty.master, &pty.slave] {
                fcntl(fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
            }
            fcntl(&pty.master, FcntlArg::F_SETFL(OFlag::O_RDWR | OFlag::O_NONBLOCK))?;
            if let Some(user) = user {
                unistd::fchown(&pty.slave, Some(user.uid), None)?;
            }
            Ok(Terminal { ours, master: pty.master, slave: pty.slave, modes })
        };
        open().map(Some).map_err(|error| Error::system("making a terminal for the program")(error.into()))
    }

    /// Our own side: keys come from here, and what PROGRAM shows goes here. It never blocks.
    pub fn ours(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }

    /// PROGRAM's side: what it shows comes from here, and keys go here. It never blocks.
    pub fn master(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// Whether this process's job has the terminal now.
    pub fn is_in_foreground(&self) -> bool {
        unistd::tcgetpgrp(&self.ours).is_ok_and(|group| group == unistd::getpgrp())
    }

    /// Keys pass as they are: it is PROGRAM's terminal that makes lines and signals of them.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn make_raw(&self) -> io::Result<()> {
        let mut raw = self.modes.clone();
        cfmakeraw(&mut raw);
        Ok(tcsetattr(&self.ours, SetArg::TCSANOW, &raw)?)
    }

    /// The modes that we found. A terminal that belongs to another job by now is left to that.
    pub fn restore(&self) {
        if self.is_in_foreground() {
            let _ = tcsetattr(&self.ours, SetArg::TCSANOW, &self.modes); // it may be gone, and then needs none
        }
    }

    /// The modes in the form in which a process after a fork may set them.
    pub(crate) fn modes(&self) -> libc::termios {
        self.modes.clone().into()
    }

    /// Rows and columns; PROGRAM's terminal has them, too, from now on.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn pass_size_on(&self) -> io::Result<(u16, u16)> {
        let size = size(self.ours())?;
        // SAFETY: the value is valid for the call.
        unsafe { set_window_size(self.master.as_raw_fd(), &size) }?;
        Ok((size.ws_row, size.ws_col))
    }
}

/// Whether this descriptor is the terminal that controls us, the only one into which one could type.
pub fn controls_us(fd: impl AsFd) -> bool {
    // SAFETY: a system call with integer arguments.
    unsafe { libc::tcgetsid(fd.as_fd().as_raw_fd()) >= 0 }
}

fn size(terminal: BorrowedFd) -> nix::Result<Winsize> {
    let mut size = Winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the value is valid for the call.
    unsafe { window_size(terminal.as_raw_fd(), &mut size) }?;
    Ok(size)
}
