// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and its like end what is under way in order, so that its processes and namespaces go.

use std::{io, os::fd::AsFd, time::Duration};

use anyhow::{Context, Result};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
        signalfd::{SfdFlags, SignalFd},
    },
};

/// The signals that ask to end, blocked and waited for.
#[derive(Debug)]
pub struct Interruption {
    file: SignalFd,
    inherited: SigSet,
}

impl Interruption {
    /// Blocks them in this thread and those that it starts.
    ///
    /// # Errors
    /// The system refuses.
    pub fn block() -> Result<Interruption> {
        let set = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT]);
        let mut inherited = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), Some(&mut inherited)).context("cannot block signals")?;
        let file = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .context("cannot wait for signals")?;
        Ok(Interruption { file, inherited })
    }

    /// The mask for processes that are started.
    pub fn inherited(&self) -> SigSet {
        self.inherited
    }

    /// Waits for one of them, so long at most.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait(&self, timeout: Duration) -> Result<Option<Signal>> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let mut files = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        match poll(&mut files, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).context("cannot wait for signals"),
        }
        let info = self.file.read_signal().context("cannot read signals")?;
        Ok(info.and_then(|info| Signal::try_from(info.ssi_signo as i32).ok()))
    }

    /// Waits, so long at most, until one of them came or standard output was closed; says whether.
    ///
    /// # Errors
    /// The system refuses.
    pub fn came_or_unread(&self, timeout: Duration) -> Result<bool> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let out = io::stdout();
        let mut files =
            [PollFd::new(self.file.as_fd(), PollFlags::POLLIN), PollFd::new(out.as_fd(), PollFlags::empty())];
        match poll(&mut files, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).context("cannot wait for signals"),
        }
        let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
        Ok(self.came() || files[1].revents().is_some_and(|events| events.intersects(gone)))
    }

    /// Whether one came since the last time.
    pub fn came(&self) -> bool {
        matches!(self.file.read_signal(), Ok(Some(_)))
    }
}
