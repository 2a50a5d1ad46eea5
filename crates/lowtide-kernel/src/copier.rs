// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of what PROGRAM writes, for Lowtide to read.
//!
//! Between PROGRAM and where its output goes there is a process of ours, which passes everything on at once and
//! unchanged. It is a process and not a thread because PROGRAM, and those whom it leaves behind, write on where Lowtide
//! is killed or has ended: it lives as long as a process can write.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    ptr,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, recv, shutdown, socketpair},
    unistd::{ForkResult, fork, pipe2},
};

use crate::{Error, Result, session::keep_only};

/// What is read and passed on at a time.
const PIECE: usize = 4096;

/// The first byte of a message from the copying process.
const WHOLE: u8 = 0;
/// Lowtide did not read fast enough, and pieces before this one are missing in its copy.
const GAP: u8 = 1;
/// Not a piece, but the number of the error with which passing on ended.
const FAILED: u8 = 2;

/// One of a program's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    /// Ours, where PROGRAM's output is to go.
    #[must_use]
    pub fn ours(self) -> BorrowedFd<'static> {
        let fd = match self {
            Stream::Out => libc::STDOUT_FILENO,
            Stream::Err => libc::STDERR_FILENO,
        };
        // SAFETY: nothing in this process closes its standard streams, and a runtime opens those that were closed.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }
}

/// What comes of PROGRAM's output.
#[derive(Debug)]
pub enum Piece<'a> {
    /// What it wrote.
    Written(&'a [u8]),
    /// What it wrote, after something that is missing here. It is not missing where the output goes.
    AfterGap(&'a [u8]),
    /// Its output could not be passed on, and takes nothing any more.
    Failed(io::Error),
}

/// Lowtide's side of the copying process.
#[derive(Debug)]
pub struct Copier {
    control: OwnedFd,
    stream: Stream,
    /// PROGRAM's end, until it is given away.
    input: Option<OwnedFd>,
}

impl Copier {
    /// Starts to pass on to our own `stream` what is written to [`input`](Copier::take_input).
    ///
    /// # Errors
    /// [`Error::System`]: no pipe, or no process for it.
    pub fn start(stream: Stream) -> Result<Copier> {
        let start = || -> nix::Result<Copier> {
            let (output, input) = pipe2(OFlag::O_CLOEXEC)?;
            // PROGRAM's end has a description of its own, and still blocks
            fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            let (control, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
            // SAFETY: the child makes system calls only, and ends without returning.
            match unsafe { fork() }? {
                // SAFETY: the descriptors live as long as the child.
                ForkResult::Child => unsafe { copy(output.as_raw_fd(), stream.ours().as_raw_fd(), other.as_raw_fd()) },
                ForkResult::Parent { .. } => Ok(Copier { control, stream, input: Some(input) }),
            }
        };
        start().map_err(|error| Error::system("passing on the program's output")(error.into()))
    }

    /// PROGRAM's end, for [`Program::start`](crate::Program::start); `None` once it was taken.
    pub fn take_input(&mut self) -> Option<(Stream, OwnedFd)> {
        self.input.take().map(|input| (self.stream, input))
    }

    /// Hands over what has come since the last time, without waiting.
    pub fn read(&mut self, mut hear: impl FnMut(Piece)) {
        while self.next(&mut hear) {}
    }

    /// PROGRAM has ended: hands over the rest of what it wrote, once it is where it goes. What others write to the same
    /// output from now on is passed on unheard.
    pub fn finish(mut self, mut hear: impl FnMut(Piece)) {
        self.input = None;
        if shutdown(self.control.as_raw_fd(), Shutdown::Write).is_err() {
            return;
        }
        loop {
            while self.next(&mut hear) {}
            let mut file = [PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
            let waited = poll(&mut file, PollTimeout::NONE);
            if waited.is_ok() && !self.next(&mut hear) {
                return; // the other side has nothing more to say
            }
        }
    }

    /// The next message, without waiting; false: there is none, or there will be none any more.
    fn next(&mut self, hear: &mut impl FnMut(Piece)) -> bool {
        let mut message = [0; 1 + PIECE];
        match recv(self.control.as_raw_fd(), &mut message, MsgFlags::MSG_DONTWAIT) {
            Ok(length @ 1..) => {
                let piece = &message[1..length];
                hear(match message[0] {
                    WHOLE => Piece::Written(piece),
                    FAILED => Piece::Failed(Errno::from_raw(piece.first().copied().unwrap_or_default().into()).into()),
                    _ => Piece::AfterGap(piece),
                });
                true
            }
            Err(Errno::EINTR) => true,
            Ok(0) | Err(_) => false,
        }
    }
}

/// The copying process's life. All signals stay blocked: it ends when no process can write any more, or when its output
/// takes nothing any more; then PROGRAM's next write fails as it would have failed there.
unsafe fn copy(input: RawFd, output: RawFd, mut control: RawFd) -> ! {
    // SAFETY: system calls; what they are given lives as long as they last.
    unsafe {
        let mut all = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
        keep_only([input, output, control]);
        let mut message = [0u8; 1 + PIECE];
        let mut gap = false;
        // how much PROGRAM has written that is not passed on yet, once it has ended
        let mut rest: Option<libc::c_int> = None;
        loop {
            let entry = |fd, events| libc::pollfd { fd, events, revents: 0 };
            let mut files = [entry(input, libc::POLLIN), entry(control, libc::POLLRDHUP)];
            libc::poll(files.as_mut_ptr(), 2, -1);
            if files[1].revents != 0 && rest.is_none() {
                let mut waiting = 0;
                libc::ioctl(input, libc::FIONREAD, &raw mut waiting);
                rest = Some(waiting);
            }
            if rest.is_some_and(|rest| rest <= 0) {
                libc::close(control);
                (control, rest) = (-1, None);
            }
            if files[0].revents == 0 {
                continue;
            }
            let length = libc::read(input, message.as_mut_ptr().add(1).cast(), PIECE);
            if length == 0 {
                libc::_exit(0);
            }
            if length < 0 {
                continue;
            }
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            if let Err(error) = pass_on(&message[1..=length as usize], output) {
                let failed = [FAILED, error as u8];
                libc::send(control, failed.as_ptr().cast(), 2, flags);
                libc::_exit(1);
            }
            rest = rest.map(|rest| rest - length as libc::c_int);
            message[0] = if gap { GAP } else { WHOLE };
            gap = control >= 0 && libc::send(control, message.as_ptr().cast(), 1 + length as usize, flags) < 0;
        }
    }
}

/// Writes all of it, and waits where it has to; the error's number if it cannot.
unsafe fn pass_on(mut bytes: &[u8], output: RawFd) -> std::result::Result<(), i32> {
    while !bytes.is_empty() {
        // SAFETY: system calls on a buffer of that length, and on values that live as long as they last.
        unsafe {
            let written = libc::write(output, bytes.as_ptr().cast(), bytes.len());
            if written >= 0 {
                bytes = &bytes[written as usize..];
                continue;
            }
            match *libc::__errno_location() {
                libc::EAGAIN => {
                    let mut file = libc::pollfd { fd: output, events: libc::POLLOUT, revents: 0 };
                    libc::poll(&raw mut file, 1, -1);
                }
                libc::EINTR => {}
                error => return Err(error),
            }
        }
    }
    Ok(())
}
