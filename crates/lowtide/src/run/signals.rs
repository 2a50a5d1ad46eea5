// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals pass to PROGRAM as if Lowtide were not there.
//!
//! Where PROGRAM is in our process group a terminal's Ctrl-C, Ctrl-\, Ctrl-Z and hang-up reach it without us: those we
//! only survive. What is sent to us alone, by kill(1) or a service manager, is handed on. On a terminal of its own
//! PROGRAM has all from us.

use std::{
    os::fd::AsFd,
    process::ExitCode,
    ptr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use lowtide_kernel::{Exit, Program};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        resource::{Resource, setrlimit},
        signal::{self, SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal},
        signalfd::{SfdFlags, SignalFd},
    },
    unistd::getpgrp,
};

use super::relay::Relay;

/// Between two looks at the sockets.
pub(super) const TICK: Duration = Duration::from_millis(250);

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
    /// From our terminal; PROGRAM has had it too, unless it has another one.
    Interrupt(Signal),
    Forward(Signal),
}

#[derive(Debug)]
pub(super) struct Signals {
    file: SignalFd,
    inherited: SigSet,
}

impl Signals {
    /// `stops`: Ctrl-Z, too.
    pub(super) fn block(stops: bool) -> Result<Signals> {
        let mut set = SigSet::from_iter(HANDED_ON);
        set.add(Signal::SIGCHLD);
        if stops {
            set.add(Signal::SIGTSTP);
        }
        let mut blocked = set;
        blocked.add(Signal::SIGXFSZ); // a report that exceeds a limit on files is an error of its own
        let mut inherited = SigSet::empty();
        signal::sigprocmask(SigmaskHow::SIG_BLOCK, Some(&blocked), Some(&mut inherited)).context("blocking signals")?;
        let file = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).context("signalfd")?;
        Ok(Signals { file, inherited })
    }

    /// The mask that PROGRAM is to start with.
    pub(super) fn inherited(&self) -> SigSet {
        self.inherited
    }

    /// The next signal, or [`Event::Tick`] after `timeout`, where there is no PROGRAM.
    pub(super) fn wait_alone(&self, timeout: Duration) -> Result<Event> {
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => Ok(Event::Tick),
            Ok(_) => Ok(self.next()?.unwrap_or(Event::Tick)),
            Err(error) => Err(error).context("waiting for signals"),
        }
    }

    /// The signal that has come; `None`: none.
    fn next(&self) -> Result<Option<Event>> {
        let Some(info) = self.file.read_signal().context("reading signals")? else { return Ok(None) };
        let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else { return Ok(Some(Event::Tick)) };
        Ok(Some(match signal {
            Signal::SIGCHLD => Event::Child,
            _ if info.ssi_code == libc::SI_KERNEL => Event::Interrupt(signal),
            _ => Event::Forward(signal),
        }))
    }

    /// The next signal, or [`Event::Tick`] after `timeout`. What `relay` has to move is moved meanwhile.
    pub(super) fn wait(&self, timeout: Duration, program: &Program, mut relay: Option<&mut Relay>) -> Result<Event> {
        let end = Instant::now() + timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let silence = relay.as_ref().and_then(|relay| relay.silence()).filter(|silence| *silence < left);
            let (signalled, news, hung_up, nothing) = {
                let mut files = vec![PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
                files.extend(relay.iter().flat_map(|relay| relay.files()));
                files.extend(program.news().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
                let timeout = PollTimeout::try_from(silence.unwrap_or(left)).unwrap_or(PollTimeout::MAX);
                let ready = match poll(&mut files, timeout) {
                    Ok(ready) => ready,
                    Err(nix::errno::Errno::EINTR) => continue,
                    Err(error) => return Err(error).context("waiting for signals"),
                };
                let relayed = relay.as_ref().is_some_and(|relay| relay.terminal().is_some());
                (
                    files[0].any() == Some(true),
                    program.news().is_some() && files.last().is_some_and(|file| file.any() == Some(true)),
                    relayed && files[1].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP)),
                    ready == 0,
                )
            };
            if let Some(relay) = &mut relay {
                if nothing && silence.is_some() {
                    relay.silent();
                }
                relay.pump(program, hung_up);
            }
            if signalled && let Some(event) = self.next()? {
                return Ok(event);
            }
            if news {
                return Ok(Event::Child);
            }
            if Instant::now() >= end {
                return Ok(Event::Tick);
            }
        }
    }

    /// Stops our whole process group, as the terminal would have done, until it is continued.
    pub(super) fn stop(&self, signal: Signal) {
        let set = SigSet::from_iter([signal]);
        let _ = signal::killpg(getpgrp(), signal); // an orphaned group cannot be stopped, and goes on
        let _ = set.thread_unblock();
        if signal == Signal::SIGTSTP {
            let _ = set.thread_block();
        }
        let continued = SigSet::from_iter([Signal::SIGCONT]);
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the values are valid for the call. It takes back the signal that continued us, which PROGRAM gets
        // from us anyway.
        unsafe { libc::sigtimedwait(continued.as_ref(), ptr::null_mut(), &raw const now) };
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
