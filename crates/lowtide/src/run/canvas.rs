// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line of ours on a screen that is PROGRAM's: below whatever PROGRAM has written, never over it.
//!
//! All that PROGRAM writes passes here, so a copy of its screen says where the cursor is and which rows are taken. The
//! copy begins with the cursor in the last row. That is not where the real one is, but rows count from the cursor only.
//! Where PROGRAM addresses rows by their numbers, or saves the cursor, rows of ours could be in its way: from then on
//! there is no line.

use std::{fmt::Write, num::NonZeroU16};

/// Bytes from PROGRAM since the last drawing that are a flood: the line then waits until it is over.
const FLOOD: usize = 4096;
const PLAIN: &str = "\x1b[m";
const ROWS: NonZeroU16 = NonZeroU16::new(24).expect("not zero");
const COLUMNS: NonZeroU16 = NonZeroU16::new(80).expect("not zero");

pub(super) struct Canvas {
    copy: vt100::Parser,
    parser: vte::Parser,
    watch: Watch,
    line: String,
    /// Rows between the cursor and the line, where that is on the screen.
    drawn: Option<u16>,
    since: usize,
    held: Vec<String>,
}

/// What the copy does not tell of what it was given.
#[derive(Default)]
struct Watch {
    /// The latest byte ended what began before it: a character, or a sequence.
    whole: bool,
    alternate: bool,
    addressed: bool,
}

impl vte::Perform for Watch {
    fn print(&mut self, _: char) {
        self.whole = true;
    }

    fn execute(&mut self, _: u8) {
        self.whole = true;
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, byte: u8) {
        self.whole = true;
        self.addressed |= !self.alternate && matches!(byte, b'7' | b'8' | b'c');
    }

    fn csi_dispatch(&mut self, parameters: &vte::Params, intermediates: &[u8], _: bool, action: char) {
        self.whole = true;
        match (intermediates, action) {
            ([b'?'], 'h' | 'l') if parameters.iter().flatten().any(|mode| matches!(mode, 47 | 1047 | 1049)) => {
                self.alternate = action == 'h';
            }
            ([], 'H' | 'f' | 'd' | 'r' | 's' | 'u') => self.addressed |= !self.alternate,
            _ => {}
        }
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], bell: bool) {
        self.whole = bell; // else a backslash follows
    }
}

impl Canvas {
    /// For a terminal of this many rows and columns.
    pub(super) fn new((rows, columns): (u16, u16)) -> Canvas {
        let (rows, columns) = (known(rows, ROWS), known(columns, COLUMNS));
        let mut copy = vt100::Parser::new(rows, columns, 0);
        copy.process("\n".repeat(rows.get().into()).as_bytes());
        let watch = Watch { whole: true, ..Watch::default() };
        let line = String::new();
        Canvas { copy, parser: vte::Parser::new(), watch, line, drawn: None, since: 0, held: Vec::new() }
    }

    pub(super) fn columns(&self) -> u16 {
        self.copy.screen().size().1.get()
    }

    /// What the line is to be; empty: none.
    pub(super) fn set_line(&mut self, line: String, out: &mut Vec<u8>) {
        if line != self.line {
            self.line = line;
            self.erase(out);
        }
    }

    /// PROGRAM writes.
    pub(super) fn program(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.erase(out);
        out.extend_from_slice(bytes);
        self.since += bytes.len();
        self.follow(bytes);
    }

    /// Nothing more to show at the moment: the line may come back, unless much of PROGRAM's is on its way.
    pub(super) fn pause(&mut self, out: &mut Vec<u8>) {
        if self.since < FLOOD {
            self.draw(out);
        }
    }

    /// Whether the line waits for PROGRAM's silence.
    pub(super) fn waits(&self) -> bool {
        self.drawn.is_none() && !self.line.is_empty()
    }

    /// Shows the line, cut to the width, if there is a place for it.
    pub(super) fn draw(&mut self, out: &mut Vec<u8>) {
        self.since = 0;
        if self.below().is_none() {
            return;
        }
        for sentence in std::mem::take(&mut self.held) {
            self.say(&sentence, out);
        }
        let Some(below) = self.below().filter(|_| self.drawn.is_none() && !self.line.is_empty()) else { return };
        let width = usize::from(self.columns()) - 1; // in the last column terminals differ on what comes next
        let line = console::truncate_str(&self.line, width, "…");
        let down = "\n".repeat(below.into());
        let plain = self.plain();
        out.extend_from_slice(format!("\r{down}{plain}{line}\x1b[K{}", self.back(below)).as_bytes());
        self.drawn = Some(below);
    }

    /// Takes the line away.
    pub(super) fn erase(&mut self, out: &mut Vec<u8>) {
        self.take(out, "\x1b[K");
    }

    fn take(&mut self, out: &mut Vec<u8>, erasure: &str) {
        if let Some(below) = self.drawn.take() {
            let down = if below > 0 { format!("\x1b[{below}B") } else { String::new() };
            let plain = self.plain();
            out.extend_from_slice(format!("\r{down}{plain}{erasure}{}", self.back(below)).as_bytes());
        }
    }

    /// A sentence that stays. It waits where there is no place for it.
    pub(super) fn say(&mut self, sentence: &str, out: &mut Vec<u8>) {
        let Some(below) = self.below() else {
            self.held.push(sentence.to_owned());
            return;
        };
        self.erase(out);
        let down = "\n".repeat(below.into());
        let (start, plain, attributes) = (self.start(), self.plain(), self.attributes());
        let text = format!("{start}{down}{plain}{sentence}\r\n{attributes}");
        out.extend_from_slice(text.as_bytes());
        self.follow(text.as_bytes());
    }

    /// The terminal has another size. A line that its new width has wrapped goes, but for one that rows of PROGRAM's
    /// separate from the cursor: these may have wrapped, too.
    pub(super) fn resize(&mut self, (rows, columns): (u16, u16), out: &mut Vec<u8>) {
        if self.drawn.is_some_and(|below| below > 1) {
            self.drawn = None;
        }
        self.take(out, "\x1b[J");
        self.copy.set_size(known(rows, ROWS), known(columns, COLUMNS));
    }

    /// Leaves the cursor at the beginning of a free row, below all that PROGRAM has written; gives what could not be
    /// said.
    pub(super) fn leave(&mut self, out: &mut Vec<u8>) -> Vec<String> {
        self.erase(out);
        let (_, column) = self.copy.screen().cursor_position();
        let down = self.below().unwrap_or(u16::from(column > 0));
        if down > 0 {
            let text = format!("{}{}", self.start(), "\n".repeat(down.into()));
            out.extend_from_slice(text.as_bytes());
            self.follow(text.as_bytes());
        }
        std::mem::take(&mut self.held)
    }

    fn follow(&mut self, bytes: &[u8]) {
        let Some((last, rest)) = bytes.split_last() else { return };
        self.parser.advance(&mut self.watch, rest);
        self.watch.whole = false;
        self.parser.advance(&mut self.watch, &[*last]);
        self.copy.process(bytes);
    }

    /// How many rows below the cursor the first free one is; `None` where nothing may be written.
    fn below(&self) -> Option<u16> {
        let screen = self.copy.screen();
        let (row, column) = screen.cursor_position();
        let (rows, columns) = screen.size();
        if !self.watch.whole || self.watch.alternate || self.watch.addressed || column >= columns.get() {
            return None;
        }
        let taken = |row: u16| {
            let mut cells = (0..columns.get()).filter_map(|column| screen.cell(row, column));
            cells.any(|cell| !matches!(cell.contents(), "" | " "))
        };
        let lowest = (row..rows.get()).rev().find(|row| taken(*row));
        Some(match lowest {
            Some(lowest) => lowest - row + 1,
            None => u16::from(column > 0),
        })
    }

    /// From the first column of the row so far below the cursor to the cursor, with the attributes that PROGRAM had
    /// set.
    fn back(&self, below: u16) -> String {
        let (_, column) = self.copy.screen().cursor_position();
        let mut text = "\r".to_owned();
        for (count, direction) in [(below, 'A'), (column, 'C')] {
            if count > 0 {
                write!(text, "\x1b[{count}{direction}").expect("strings take everything");
            }
        }
        text.push_str(&self.attributes());
        text
    }

    /// To the first column of the cursor's row.
    fn start(&self) -> &'static str {
        if self.copy.screen().cursor_position().1 > 0 { "\r" } else { "" }
    }

    /// What sets the attributes that PROGRAM had set; nothing where it has set none.
    fn attributes(&self) -> String {
        let text = self.copy.screen().attributes_formatted();
        if text == PLAIN { String::new() } else { text.as_str().to_owned() }
    }

    /// What takes them away.
    fn plain(&self) -> &'static str {
        if self.attributes().is_empty() { "" } else { PLAIN }
    }
}

/// Terminals that do not know their size say zero.
fn known(length: u16, usual: NonZeroU16) -> NonZeroU16 {
    NonZeroU16::new(length).unwrap_or(usual)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: (u16, u16) = (60, 20);

    /// A terminal with room below and above.
    fn terminal() -> vt100::Parser {
        let mut terminal = vt100::Parser::new(NonZeroU16::new(400).unwrap(), NonZeroU16::new(SIZE.1).unwrap(), 0);
        terminal.process("\n".repeat(50).as_bytes());
        terminal
    }

    fn text(terminal: &vt100::Parser) -> String {
        // row by row: whether one goes on in the next is not to be seen; nor is a space
        let rows = terminal.screen().rows(0, SIZE.1);
        rows.map(|row| row.trim_end().to_owned()).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    fn canvas() -> Canvas {
        let mut canvas = Canvas::new(SIZE);
        canvas.set_line("what Lowtide says, longer than a row".to_owned(), &mut Vec::new());
        canvas
    }

    #[test]
    fn the_line_is_below_what_is_there_and_cut_to_the_width() {
        let mut canvas = canvas();
        let mut out = Vec::new();
        canvas.program(b"one\r\ntwo\r\nthree\x1b[2A\x1b[2C", &mut out);
        canvas.draw(&mut out);
        let mut terminal = terminal();
        terminal.process(&out);
        assert_eq!(text(&terminal).trim_start(), "one\ntwo\nthree\nwhat Lowtide says,…");
        assert_eq!(terminal.screen().cursor_position(), (50, 7));
        out.clear();
        canvas.program(b"!", &mut out);
        terminal.process(&out);
        assert_eq!(text(&terminal).trim_start(), "one    !\ntwo\nthree");
    }

    #[test]
    fn half_a_sequence_and_screens_of_their_own_have_no_line() {
        for (program, shown) in [
            ("text\r\n", true),
            ("\x1b[3", false),
            ("\x1b[31m", true),
            ("\x1b]0;title", false),
            ("\x1b]0;title\x07", true),
            ("\x1b]0;title\x1b", false),
            ("\x1b]0;title\x1b\\", true),
            ("\x1b[?1049h", false),
            ("\x1b[?1049h\x1b[5;5Htext\x1b[?1049l", true),
            ("\x1b[5;5H", false),
            ("\x1b7", false),
            ("12345678901234567890", false),
        ] {
            let mut canvas = canvas();
            let mut out = Vec::new();
            canvas.program(program.as_bytes(), &mut out);
            canvas.draw(&mut out);
            assert_eq!(canvas.drawn.is_some(), shown, "{program:?}");
        }
        let mut canvas = canvas();
        canvas.program(&"é".as_bytes()[..1], &mut Vec::new());
        canvas.draw(&mut Vec::new());
        assert!(canvas.drawn.is_none(), "half a character");
    }

    #[test]
    fn sentences_wait_until_there_is_a_place() {
        let mut canvas = canvas();
        let mut out = Vec::new();
        canvas.program(b"\x1b[?1049h", &mut out);
        canvas.say("news", &mut out);
        assert!(!String::from_utf8_lossy(&out).contains("news"));
        canvas.program(b"\x1b[?1049l", &mut out);
        canvas.pause(&mut out);
        assert!(String::from_utf8_lossy(&out).contains("news"));
        canvas.program(b"\x1b[1;1H", &mut out);
        canvas.say("more", &mut out);
        assert_eq!(canvas.leave(&mut out), ["more"]);
    }

    #[test]
    fn a_flood_is_not_interrupted() {
        let mut canvas = canvas();
        let mut out = Vec::new();
        canvas.program("0123456\r\n".repeat(FLOOD / 9 + 1).as_bytes(), &mut out);
        canvas.pause(&mut out);
        assert!(canvas.waits());
        canvas.draw(&mut out);
        assert!(!canvas.waits());
    }

    /// What progress displays are made of; the cursor stays where they have been.
    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-z ]{1,9}",
            1 => "[é中]{1,3}",
            2 => Just("\r".to_owned()),
            3 => Just("\r\n".to_owned()),
            1 => Just("\n".to_owned()),
            1 => (1..4u16).prop_map(|rows| format!("\x1b[{rows}A")),
            1 => (1..9u16).prop_map(|columns| format!("\x1b[{columns}G")),
            1 => Just("\x1b[K".to_owned()),
            1 => Just("\x1b[2K".to_owned()),
            1 => Just("\x1b[J".to_owned()),
            1 => Just("\x1b[31m".to_owned()),
            1 => Just("\x1b[m".to_owned()),
            1 => Just("\t".to_owned()),
            1 => Just("\u{8}".to_owned()),
        ]
    }

    proptest! {
        /// Whatever PROGRAM writes, in whatever pieces: with the line gone its screen is as if there had never been
        /// one.
        #[test]
        fn the_screen_is_the_programs(pieces in prop::collection::vec((piece(), any::<bool>(), 0..4usize), 1..60)) {
            let (mut alone, mut shared) = (terminal(), terminal());
            let mut canvas = canvas();
            for (number, (piece, draws, cut)) in pieces.iter().enumerate() {
                alone.process(piece.as_bytes());
                let mut out = Vec::new();
                let (head, tail) = piece.as_bytes().split_at((*cut).min(piece.len()));
                for part in [head, tail] {
                    canvas.program(part, &mut out);
                    if *draws {
                        canvas.set_line(format!("line {number}"), &mut out);
                        canvas.draw(&mut out);
                    }
                }
                shared.process(&out);
            }
            let mut out = Vec::new();
            canvas.erase(&mut out);
            shared.process(&out);
            prop_assert_eq!(text(&shared), text(&alone));
            prop_assert_eq!(shared.screen().cursor_position(), alone.screen().cursor_position());
            prop_assert_eq!(shared.screen().fgcolor(), alone.screen().fgcolor());
        }
    }
}
