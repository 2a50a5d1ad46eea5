// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals pass to PROGRAM as if Lowtide were not there.
//!
//! PROGRAM stays in our process group, so a terminal's Ctrl-C, Ctrl-\, Ctrl-Z and hang-up reach it without us: those we only
//! survive. What is sent to us alone, by kill(1) or a service manager, is handed on.

use std::{os::fd::AsFd, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use lowtide_kernel::Exit;
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        resource::{Resource, setrlimit},
        signal::{self, SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
};

const HANDED_ON: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCONT,
    Signal::SIGWINCH,
];

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Tick,
    Child,
    /// From a terminal; PROGRAM has had it too.
    Interrupt,
    Forward(Signal),
}

#[derive(Debug)]
pub(super) struct Signals {
    file: SignalFd,
    inherited: SigSet,
}

impl Signals {
    pub(super) fn block() -> Result<Signals> {
        let mut set = SigSet::from_iter(HANDED_ON);
        set.add(Signal::SIGCHLD);
        let mut inherited = SigSet::empty();
        signal::sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), Some(&mut inherited)).context("blocking signals")?;
        let file = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).context("signalfd")?;
        Ok(Signals { file, inherited })
    }

    /// The mask that PROGRAM is to start with.
    pub(super) fn inherited(&self) -> SigSet {
        self.inherited
    }

    /// The next signal, or [`Event::Tick`] after `timeout`.
    pub(super) fn wait(&self, timeout: Duration) -> Result<Event> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        let mut files = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
        match poll(&mut files, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("waiting for signals"),
        }
        let Some(info) = self.file.read_signal().context("reading signals")? else { return Ok(Event::Tick) };
        let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else { return Ok(Event::Tick) };
        Ok(match signal {
            Signal::SIGCHLD => Event::Child,
            _ if info.ssi_code == libc::SI_KERNEL => Event::Interrupt,
            _ => Event::Forward(signal),
        })
    }

    /// Ends this process as PROGRAM ended; with `instead_of_success` where its own status would be 0.
    pub(super) fn end_like(&self, exit: Exit, instead_of_success: Option<u8>) -> ExitCode {
        match exit {
            Exit::Code(0) => ExitCode::from(instead_of_success.unwrap_or(0)),
            Exit::Code(code) => ExitCode::from(code as u8),
            Exit::Signal(number) => {
                let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0); // the core, if any, is PROGRAM's
                if let Ok(signal) = Signal::try_from(number) {
                    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
                    // SAFETY: the default action runs no code of ours.
                    let _ = unsafe { signal::sigaction(signal, &default) };
                    let _ = signal::raise(signal);
                    let _ = SigSet::from_iter([signal]).thread_unblock();
                }
                ExitCode::from(128u8.wrapping_add(number as u8))
            }
        }
    }
}
