// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terminal as `lowtide top` has it: all of it, without echo. Its former state is back when this value goes,
//! however that comes. Keys are read here: crossterm's own reader does not return where the terminal is gone, or an
//! escape sequence has no end.

use std::{
    io::{Read, Stdout, stdin, stdout},
    os::fd::AsFd,
    time::Duration,
};

use anyhow::{Context, Result};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr},
};
use ratatui::{
    Frame,
    backend::CrosstermBackend,
    crossterm::{
        cursor::{Hide, Show},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen},
    },
    layout::Size,
};

use crate::terminal::has_colour;

/// A control character of the terminal that is not to be used.
const DISABLED: u8 = libc::_POSIX_VDISABLE;

/// What was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    Char(char),
    Escape,
    /// Ctrl-L.
    Redraw,
}

pub(super) struct Terminal {
    screen: ratatui::Terminal<CrosstermBackend<Stdout>>,
    /// With colour.
    colour: bool,
    drawn: Option<Size>,
    before: libc::termios,
}

impl Terminal {
    /// # Errors
    /// Standard input is no terminal, or that cannot be written to.
    pub(super) fn take() -> Result<Terminal> {
        let before = tcgetattr(stdin()).context("cannot look at the terminal")?;
        let mut ours = before.clone();
        // Ctrl-C ends it as it ends anything. Ctrl-Z would leave the screen, so it is disabled.
        ours.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        ours.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        ours.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        ours.control_chars[SpecialCharacterIndices::VSUSP as usize] = DISABLED;
        let screen = ratatui::Terminal::new(CrosstermBackend::new(stdout())).context("cannot draw")?;
        tcsetattr(stdin(), SetArg::TCSANOW, &ours).context("cannot set the terminal")?;
        let before = libc::termios::from(before);
        give_back_at_a_panic(before);
        let terminal = Terminal { screen, colour: has_colour(), drawn: None, before };
        execute!(stdout(), EnterAlternateScreen, Hide).context("cannot draw")?;
        Ok(terminal)
    }

    /// Whether the terminal has another size than what is drawn.
    pub(super) fn is_resized(&self) -> bool {
        self.screen.size().is_ok_and(|size| Some(size) != self.drawn)
    }

    /// Draws, with colour or without.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>, bool)) -> Result<()> {
        let colour = self.colour;
        let drawn = self.screen.draw(|frame| picture(frame, colour)).context("cannot draw")?;
        self.drawn = Some(drawn.area.as_size());
        Ok(())
    }

    /// All of it anew, after another program has written there.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.screen.clear().context("cannot draw")
    }

    /// What was pressed, if anything was within this time.
    pub(super) fn keys(&self, patience: Duration) -> Result<Vec<Key>> {
        let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let stdin = stdin();
        let mut files = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut files, patience) {
            // a signal comes with a new size, too
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(errno) => return Err(errno).context("cannot wait for the keyboard"),
        }
        let mut bytes = [0; 64];
        match stdin.lock().read(&mut bytes).context("cannot read the keyboard")? {
            // the terminal is gone
            0 => Ok(vec![Key::Escape]),
            length => Ok(keys_in(&bytes[..length])),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back(self.before);
    }
}

fn give_back(before: libc::termios) {
    // there is no place to report it
    let _ = execute!(stdout(), Show, LeaveAlternateScreen);
    let _ = tcsetattr(stdin(), SetArg::TCSANOW, &Termios::from(before));
}

/// So that its message is not lost with the screen.
fn give_back_at_a_panic(before: libc::termios) {
    let message = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back(before);
        message(panic);
    }));
}

/// The keys of what a terminal sent at once. An escape by itself is the key; with something after it, it is an arrow or
/// a key of no use here.
fn keys_in(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (0x1b, []) => keys.push(Key::Escape),
            (0x1b, [b'[' | b'O', code @ ..]) => {
                let length =
                    code.iter().position(|byte| (0x40..=0x7e).contains(byte)).map_or(code.len(), |end| end + 1);
                match code.first() {
                    Some(b'A') => keys.push(Key::Up),
                    Some(b'B') => keys.push(Key::Down),
                    _ => {}
                }
                rest = &code[length..];
            }
            (0x1b, [_, code @ ..]) => rest = code,
            (0x0c, _) => keys.push(Key::Redraw),
            (byte, _) if byte.is_ascii() && !byte.is_ascii_control() => keys.push(Key::Char(char::from(*byte))),
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        assert_eq!(keys_in(b"\x1b[A\x1bOBjq"), [Key::Up, Key::Down, Key::Char('j'), Key::Char('q')]);
        assert_eq!(keys_in(b"\x1b"), [Key::Escape]);
        assert_eq!(keys_in(b"\x1b[1;5C\x1b[15~\x1bxs\xc3\xa4\r"), [Key::Char('s')], "of no use here");
        assert_eq!(keys_in(b"\x1b[12"), []);
        assert_eq!(keys_in(b"\x0ck"), [Key::Redraw, Key::Char('k')]);
    }
}
