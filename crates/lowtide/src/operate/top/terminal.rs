// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terminal as `lowtide top` has it: all of it, without echo. Its former state is back when this value goes,
//! however that comes.

use std::{
    io::{self, Read, Write, stdin, stdout},
    os::fd::AsFd,
    time::Duration,
};

use anyhow::{Context, Result};
use console::{Term, pad_str, truncate_str};
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr},
};

/// Another screen, without a cursor; and back.
const TAKE: &str = "\u{1b}[?1049h\u{1b}[?25l";
const GIVE_BACK: &str = "\u{1b}[?25h\u{1b}[?1049l";
const HOME: &str = "\u{1b}[H";
const REST_OF_LINE: &str = "\u{1b}[K";
const BELOW: &str = "\u{1b}[J";

/// A line, and how it stands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) look: Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Plain,
    Bold,
    Reversed,
}

/// What was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    Char(char),
    Escape,
}

pub(super) struct Terminal {
    before: Termios,
}

impl Terminal {
    /// # Errors
    /// Standard input is no terminal, or that cannot be written to.
    pub(super) fn take() -> Result<Terminal> {
        let before = tcgetattr(stdin()).context("cannot look at the terminal")?;
        let mut ours = before.clone();
        // signals of the keyboard stay: Ctrl-C ends it as it ends anything
        ours.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        ours.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        ours.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(stdin(), SetArg::TCSANOW, &ours).context("cannot set the terminal")?;
        let terminal = Terminal { before };
        write(TAKE)?;
        Ok(terminal)
    }

    /// Columns and lines.
    pub(super) fn size() -> (usize, usize) {
        let (lines, columns) = Term::stdout().size();
        (usize::from(columns), usize::from(lines))
    }

    /// Shows these lines, as far as there is room.
    pub(super) fn show(&self, lines: &[Line]) -> Result<()> {
        let (columns, rows) = Terminal::size();
        write(&picture(lines, columns, rows))
    }

    /// What was pressed, if anything was within this time.
    pub(super) fn keys(&self, patience: Duration) -> Result<Vec<Key>> {
        let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
        let stdin = stdin();
        let mut files = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut files, patience) {
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
        // there is no place to report it
        let _ = write(GIVE_BACK);
        let _ = tcsetattr(stdin(), SetArg::TCSANOW, &self.before);
    }
}

fn write(text: &str) -> Result<()> {
    let written: io::Result<()> = stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush());
    written.context("cannot draw")
}

/// The bytes that show these lines, each written over what was there, so that nothing flickers.
fn picture(lines: &[Line], columns: usize, rows: usize) -> String {
    let line = |Line { text, look }: &Line| {
        let text = truncate_str(text, columns, "");
        match look {
            Look::Plain => format!("{text}{REST_OF_LINE}"),
            Look::Bold => format!("\u{1b}[1m{text}\u{1b}[0m{REST_OF_LINE}"),
            Look::Reversed => {
                format!("\u{1b}[7m{}\u{1b}[0m{REST_OF_LINE}", pad_str(&text, columns, console::Alignment::Left, None))
            }
        }
    };
    let shown: Vec<String> = lines.iter().take(rows).map(line).collect();
    format!("{HOME}{}{BELOW}", shown.join("\r\n"))
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
    }

    #[test]
    fn a_picture_fits_its_terminal() {
        let line = |text: &str, look| Line { text: text.into(), look };
        let lines = [line("a long heading", Look::Bold), line("x", Look::Reversed), line("no room", Look::Plain)];
        assert_eq!(
            picture(&lines, 6, 2),
            "\u{1b}[H\u{1b}[1ma long\u{1b}[0m\u{1b}[K\r\n\u{1b}[7mx     \u{1b}[0m\u{1b}[K\u{1b}[J"
        );
    }
}
