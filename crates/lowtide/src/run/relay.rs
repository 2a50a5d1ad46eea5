// SPDX-License-Identifier: MIT OR Apache-2.0
//! Between our terminal and PROGRAM's: keys one way, what PROGRAM shows the other way, and a line of ours with it.

use std::{
    io::{self, Write},
    os::fd::BorrowedFd,
    time::Duration,
};

use lowtide_kernel::{Program, Terminal};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    unistd::{read, write},
};

use super::canvas::Canvas;
use crate::progress::Reader;

/// For so long PROGRAM is silent before a line that a flood has displaced comes back.
const SILENCE: Duration = Duration::from_millis(100);
/// What waits for one side before the other one is read again.
const BACKLOG: usize = 16 * 1024;
/// A terminal that takes nothing for so long does not keep a job from being stopped.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Relay {
    /// `None` once it has hung up.
    terminal: Option<Terminal>,
    canvas: Option<Canvas>,
    /// PROGRAM has the keyboard, and our terminal is raw.
    attached: bool,
    keys: Vec<u8>,
    output: Vec<u8>,
    /// Reads what PROGRAM shows.
    reader: Option<Reader>,
}

impl Relay {
    /// `talks`: there is something to say on this terminal; `reader`: reads what PROGRAM shows.
    pub(super) fn new(terminal: Terminal, talks: bool, reader: Option<Reader>) -> io::Result<Relay> {
        let canvas = if talks { Some(Canvas::new(terminal.pass_size_on()?)) } else { None };
        Ok(Relay { terminal: Some(terminal), canvas, attached: false, keys: Vec::new(), output: Vec::new(), reader })
    }

    pub(super) fn terminal(&self) -> Option<&Terminal> {
        self.terminal.as_ref()
    }

    pub(super) fn is_attached(&self) -> bool {
        self.attached
    }

    pub(super) fn is_in_foreground(&self) -> bool {
        self.terminal.as_ref().is_some_and(Terminal::is_in_foreground)
    }

    /// What reads PROGRAM's output.
    pub(super) fn reader(&mut self) -> &mut Option<Reader> {
        &mut self.reader
    }

    pub(super) fn columns(&self) -> Option<u16> {
        self.canvas.as_ref().map(Canvas::columns)
    }

    /// Keys go to PROGRAM from now on.
    pub(super) fn attach(&mut self) {
        if let Some(terminal) = &self.terminal {
            self.attached = terminal.make_raw().is_ok(); // if not it is gone, which the next look at it tells
        }
    }

    /// They stay where they are.
    pub(super) fn detach(&mut self) {
        if std::mem::take(&mut self.attached)
            && let Some(terminal) = &self.terminal
        {
            terminal.restore();
        }
    }

    /// What to wait for.
    pub(super) fn files(&self) -> Vec<PollFd<'_>> {
        let Some(terminal) = &self.terminal else { return Vec::new() };
        let when = |wanted: bool, flag: PollFlags| if wanted { flag } else { PollFlags::empty() };
        let keys = self.attached && self.keys.len() < BACKLOG;
        let ours = when(keys, PollFlags::POLLIN) | when(!self.output.is_empty(), PollFlags::POLLOUT);
        let room = self.output.len() < BACKLOG;
        let theirs = when(room, PollFlags::POLLIN) | when(!self.keys.is_empty(), PollFlags::POLLOUT);
        vec![PollFd::new(terminal.ours(), ours), PollFd::new(terminal.master(), theirs)]
    }

    /// How long a silence is of interest.
    pub(super) fn silence(&self) -> Option<Duration> {
        self.canvas.as_ref().filter(|canvas| canvas.waits()).map(|_| SILENCE)
    }

    /// It has been as long.
    pub(super) fn silent(&mut self) {
        self.with_canvas(Canvas::draw);
    }

    /// Moves what there is; whether that was all that PROGRAM has written so far.
    pub(super) fn pump(&mut self, program: &Program, hung_up: bool) -> bool {
        match if hung_up { Err(Errno::EIO) } else { self.try_pump() } {
            Ok(all) => all,
            Err(_) => {
                self.hang_up(program);
                true
            }
        }
    }

    fn try_pump(&mut self) -> Result<bool, Errno> {
        let Some(terminal) = &self.terminal else { return Ok(true) };
        let mut buffer = [0; 4096];
        while self.attached && self.keys.len() < BACKLOG {
            match read(terminal.ours(), &mut buffer) {
                Ok(0) => return Err(Errno::EIO),
                Ok(length) => self.keys.extend_from_slice(&buffer[..length]),
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
        match push(terminal.master(), &mut self.keys) {
            Err(Errno::EIO) => self.keys.clear(), // no process has that terminal open any more
            other => other?,
        }
        let mut all = false;
        while !all && self.output.len() < BACKLOG {
            match read(terminal.master(), &mut buffer) {
                Ok(length @ 1..) => {
                    let bytes = &buffer[..length];
                    self.reader.iter_mut().for_each(|reader| reader.read(bytes));
                    match &mut self.canvas {
                        Some(canvas) => canvas.program(bytes, &mut self.output),
                        None => self.output.extend_from_slice(bytes),
                    }
                }
                Err(Errno::EINTR) => {}
                Ok(0) | Err(_) => all = true,
            }
        }
        if all && let Some(canvas) = &mut self.canvas {
            canvas.pause(&mut self.output);
        }
        push(terminal.ours(), &mut self.output)?;
        Ok(all)
    }

    /// Our terminal is gone. So is PROGRAM's then, which it notices as it would have noticed on ours.
    fn hang_up(&mut self, program: &Program) {
        program.hang_up();
        let reader = self.reader.take();
        *self = Relay { terminal: None, canvas: None, attached: false, keys: Vec::new(), output: Vec::new(), reader };
    }

    /// Our terminal has changed its size.
    pub(super) fn resize(&mut self) {
        if let Some(Ok(size)) = self.terminal.as_ref().map(Terminal::pass_size_on) {
            self.with_canvas(|canvas, out| {
                canvas.resize(size, out);
                canvas.draw(out);
            });
        }
    }

    pub(super) fn say(&mut self, sentence: &str) {
        match &self.terminal {
            Some(_) => self.with_canvas(|canvas, out| {
                canvas.say(sentence, out);
                canvas.pause(out);
            }),
            None => print(sentence),
        }
    }

    /// The line that changes in place; empty: none.
    pub(super) fn set_line(&mut self, line: String) {
        self.with_canvas(|canvas, out| {
            canvas.set_line(line, out);
            canvas.pause(out);
        });
    }

    fn with_canvas(&mut self, act: impl FnOnce(&mut Canvas, &mut Vec<u8>)) {
        if let (Some(terminal), Some(canvas)) = (&self.terminal, &mut self.canvas) {
            act(canvas, &mut self.output);
            let _ = push(terminal.ours(), &mut self.output); // what fails here fails at the next pump
        }
    }

    /// Shows all there is before the job is stopped, and takes the line away.
    pub(super) fn settle(&mut self, program: &Program) {
        self.pump(program, false);
        self.with_canvas(Canvas::erase);
        self.flush(Some(PATIENCE));
    }

    /// PROGRAM has ended: shows the rest, all of it, and leaves the terminal as it was; gives what was left to say.
    pub(super) fn finish(&mut self, program: &Program) -> Vec<String> {
        while !self.pump(program, false) {
            self.flush(None);
        }
        let mut left = Vec::new();
        self.with_canvas(|canvas, out| left = canvas.leave(out));
        self.flush(None);
        self.detach();
        self.terminal = None;
        left
    }

    /// Waits until the terminal has taken everything.
    fn flush(&mut self, patience: Option<Duration>) {
        let timeout =
            patience.map_or(PollTimeout::NONE, |time| PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX));
        while let Some(terminal) = &self.terminal
            && !self.output.is_empty()
        {
            let mut file = [PollFd::new(terminal.ours(), PollFlags::POLLOUT)];
            let ready = poll(&mut file, timeout);
            let refused = push(terminal.ours(), &mut self.output).is_err();
            if refused || ready == Ok(0) {
                self.output.clear(); // it cannot be shown
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Writes as much as is taken now.
fn push(fd: BorrowedFd, bytes: &mut Vec<u8>) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match write(fd, bytes) {
            Ok(length) => drop(bytes.drain(..length)),
            Err(Errno::EAGAIN) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A terminal that is gone is no reason to end.
pub(super) fn print(sentence: &str) {
    let _ = writeln!(io::stderr(), "{sentence}");
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        fs::File,
        io::{Read, Write},
        os::{
            fd::{AsFd, AsRawFd},
            unix::process::CommandExt,
        },
        process::Command,
        thread,
        time::Instant,
    };

    use nix::{
        pty::openpty,
        sys::termios::{LocalFlags, tcgetattr},
    };

    use super::*;

    const PANIC: &str = "panics_while_the_program_has_the_keyboard";
    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    #[ignore = "the other test runs it on a terminal of its own"]
    #[should_panic(expected = "in the middle of a run")]
    fn panics_while_the_program_has_the_keyboard() {
        let terminal = Terminal::open(None).unwrap().expect("a terminal");
        let mut relay = Relay::new(terminal, true, None).unwrap();
        relay.attach();
        let keys = relay.files().remove(0);
        poll(&mut [keys], PollTimeout::from(20_000u16)).unwrap(); // until the terminal has been read
        panic!("in the middle of a run");
    }

    #[test]
    fn a_panic_leaves_a_terminal_in_order() {
        let pty = openpty(None, None).unwrap();
        let (mut master, slave) = (File::from(pty.master), pty.slave);
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--ignored", "--nocapture", PANIC]);
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave.try_clone().unwrap());
        let fd = slave.as_raw_fd();
        // SAFETY: between fork and exec only system calls are made, on a descriptor that the child has.
        unsafe {
            command.pre_exec(move || {
                nix::unistd::setsid()?;
                if libc::ioctl(fd, libc::TIOCSCTTY, 0) < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
            });
        }
        let is_in_order = || {
            let modes = tcgetattr(slave.as_fd()).unwrap().local_flags;
            modes.contains(LocalFlags::ISIG | LocalFlags::ICANON | LocalFlags::ECHO)
        };
        assert!(is_in_order());
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        while is_in_order() {
            assert!(started.elapsed() < LIMIT, "it never took the keyboard");
            thread::sleep(Duration::from_millis(20));
        }
        master.write_all(b"k").unwrap();
        assert!(child.wait().unwrap().success(), "it panics, as it should");
        assert!(is_in_order());
        let mut shown = [0; 4096];
        let length = master.read(&mut shown).unwrap();
        let shown = String::from_utf8_lossy(&shown[..length]);
        assert!(shown.contains("in the middle of a run"), "{shown}");
    }
}
