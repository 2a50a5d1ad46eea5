// SPDX-License-Identifier: MIT OR Apache-2.0
//! PROGRAM and Lowtide as one job of the shell's.
//!
//! On our terminal, in our process group, they are one by themselves. PROGRAM has a terminal of its own where it runs
//! as another user, who must not have ours, and where a line of ours shares the screen with it: only who sees what
//! PROGRAM writes can keep from writing over it.

use std::{
    io::{self, stdin, stdout},
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use anyhow::{Context, Result};
use lowtide_kernel::{Copier, Piece, Place, Program, Stream, Terminal, User, controls_us};
use nix::sys::{
    signal::Signal,
    stat::{SFlag, fstat},
};

use super::{
    relay::{Relay, print},
    signals::{Event, Signals},
};
use crate::progress::{Reader, Source};

pub(super) struct Job {
    relay: Option<Relay>,
    /// Where PROGRAM's output is read and does not go to the relay's terminal; and its reader.
    copier: Option<(Copier, Reader)>,
    /// PROGRAM runs as another user.
    apart: bool,
    /// PROGRAM may have the keyboard without asking.
    interactive: bool,
}

impl Job {
    /// `user`: another one than ours; `line`: one of ours changes in place; `talks`: there is anything to say;
    /// `source`: its progress is read.
    pub(super) fn new(user: Option<&User>, line: bool, talks: bool, source: Option<Source>) -> Result<Job> {
        let apart = user.is_some();
        // who looks for a terminal there finds one
        let shown = source.is_some_and(|source| controls_us(source.stream().ours()));
        let terminal = match (apart, line || shown) {
            (true, _) => Terminal::open(user)?,
            (false, true) => Terminal::open(None).ok().flatten(), // else there are lines instead of one that changes
            (false, false) => None,
        };
        let talks = talks && controls_us(io::stderr());
        let reader = source.map(Reader::new);
        let (on_terminal, elsewhere) = if terminal.is_some() && shown { (reader, None) } else { (None, reader) };
        let relay = terminal.map(|terminal| Relay::new(terminal, talks, on_terminal));
        let relay = relay.transpose().context("the terminal's size")?;
        let copier = elsewhere.map(|reader| Copier::start(reader.source().stream()).map(|copier| (copier, reader)));
        let copier = copier.transpose()?;
        // who reads our output on a pipe may want the keyboard itself
        let interactive = controls_us(stdin()) && !is_pipe(stdout());
        Ok(Job { relay, copier, apart, interactive })
    }

    pub(super) fn has_terminal(&self) -> bool {
        self.relay.is_some()
    }

    pub(super) fn place(&self) -> Place<'_> {
        match self.relay.as_ref().and_then(Relay::terminal) {
            Some(terminal) => Place::On { terminal, foreground: self.gives_keyboard() },
            None if self.apart => Place::Apart,
            None => Place::Ours,
        }
    }

    /// PROGRAM's output, where it is read on its way.
    pub(super) fn output(&mut self) -> Option<(Stream, OwnedFd)> {
        self.copier.as_mut().and_then(|(copier, _)| copier.take_input())
    }

    /// What reads PROGRAM's progress, after it has read all there is.
    pub(super) fn reader(&mut self) -> Option<&mut Reader> {
        let Some((copier, reader)) = &mut self.copier else {
            return self.relay.as_mut().and_then(|relay| relay.reader().as_mut());
        };
        copier.read(|piece| hear(reader, piece));
        Some(reader)
    }

    fn gives_keyboard(&self) -> bool {
        self.interactive && self.relay.as_ref().is_some_and(Relay::is_in_foreground)
    }

    /// PROGRAM has been started.
    pub(super) fn begin(&mut self) {
        if self.gives_keyboard()
            && let Some(relay) = &mut self.relay
        {
            relay.attach();
        }
    }

    /// The next event that is not the terminal's own; `running`: PROGRAM has not ended.
    pub(super) fn wait(
        &mut self,
        signals: &Signals,
        program: &mut Program,
        running: bool,
        timeout: Duration,
    ) -> Result<Event> {
        if running {
            self.follow_the_shell(signals, program);
        } else if let Some(relay) = &mut self.relay {
            relay.detach(); // the keyboard's signals are for us now
        }
        let event = signals.wait(timeout, program, self.relay.as_mut())?;
        let Some(relay) = &mut self.relay else {
            return Ok(match event {
                Event::Interrupt(signal) if self.apart => Event::Forward(signal),
                other => other,
            });
        };
        Ok(match event {
            Event::Interrupt(Signal::SIGWINCH) => {
                relay.resize();
                Event::Tick
            }
            Event::Interrupt(Signal::SIGTSTP) | Event::Forward(Signal::SIGTSTP) => {
                if running {
                    program.signal_group(Signal::SIGTSTP); // once it has stopped so do we
                } else {
                    relay.settle(program);
                    signals.stop(Signal::SIGTSTP);
                }
                Event::Tick
            }
            // from our terminal, which does not reach PROGRAM
            Event::Interrupt(signal @ (Signal::SIGINT | Signal::SIGQUIT)) if running => {
                program.signal_group(signal);
                Event::Tick
            }
            Event::Interrupt(signal) if running => Event::Forward(signal),
            other => other,
        })
    }

    /// A process that its terminal stops stops the whole job, which the shell continues, here or in the background.
    fn follow_the_shell(&mut self, signals: &Signals, program: &mut Program) {
        let gives_keyboard = self.gives_keyboard();
        let Some(relay) = &mut self.relay else { return };
        let asks = |signal| matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
        match program.take_stop() {
            Some(signal) if asks(signal) && relay.is_in_foreground() => {
                relay.attach();
                program.foreground(true);
                program.signal_group(Signal::SIGCONT);
            }
            Some(signal) if asks(signal) || signal == Signal::SIGTSTP => {
                let had = relay.is_attached() || asks(signal);
                relay.settle(program);
                relay.detach();
                signals.stop(signal);
                relay.resize();
                if relay.is_in_foreground() && (had || self.interactive) {
                    relay.attach();
                }
                program.foreground(relay.is_attached());
                program.signal_group(Signal::SIGCONT);
            }
            // a job that was started in the background comes to the front without a signal
            None if gives_keyboard && !relay.is_attached() => {
                relay.attach();
                program.foreground(true);
            }
            None if relay.is_attached() && !relay.is_in_foreground() => {
                relay.detach();
                program.foreground(false);
            }
            _ => {}
        }
    }

    /// A sentence on standard error.
    pub(super) fn say(&mut self, sentence: &str) {
        match &mut self.relay {
            Some(relay) if controls_us(io::stderr()) => relay.say(sentence),
            _ => print(sentence),
        }
    }

    /// The line that changes in place. In the background there is none.
    pub(super) fn set_line(&mut self, line: String) {
        if let Some(relay) = &mut self.relay {
            let seen = relay.is_in_foreground();
            relay.set_line(if seen { line } else { String::new() });
        }
    }

    pub(super) fn columns(&self) -> Option<u16> {
        self.relay.as_ref().and_then(Relay::columns)
    }

    /// All that PROGRAM has written is shown, and the terminal is as it was. Gives what has read it.
    pub(super) fn finish(&mut self, program: &Program) -> Option<Reader> {
        let mut heard = self.copier.take().map(|(copier, mut reader)| {
            copier.finish(|piece| hear(&mut reader, piece));
            reader
        });
        if let Some(mut relay) = self.relay.take() {
            for sentence in relay.finish(program) {
                print(&sentence);
            }
            heard = heard.or(relay.reader().take());
        }
        heard
    }
}

fn hear(reader: &mut Reader, piece: Piece) {
    match piece {
        Piece::Written(bytes) => reader.read(bytes),
        Piece::AfterGap(bytes) => {
            reader.miss();
            reader.read(bytes);
        }
        // a reader who has gone is PROGRAM's own affair
        Piece::Failed(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Piece::Failed(error) => print(&format!("lowtide: the program's output cannot be written: {error}")),
    }
}

/// The reader of a pipe may have our terminal, too.
pub(super) fn is_pipe(fd: impl AsFd) -> bool {
    fstat(fd).is_ok_and(|status| SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT == SFlag::S_IFIFO)
}
