// SPDX-License-Identifier: MIT OR Apache-2.0
//! An act while it runs: lines that change in place on a terminal, a line every five seconds elsewhere.

use std::io::{self, IsTerminal, Stdout, Write};

use super::{
    acts::{Act, LINK_MBPS, RTT_MS},
    recording::{Flow, Recording, mean},
};
use crate::terminal;

/// Seconds between two lines where there is no terminal.
const SPARSE: f64 = 5.0;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// What a line needs besides its curve.
const MARGIN: usize = 34;

/// Standard output, as the demo uses it.
#[derive(Debug)]
pub(super) struct Live {
    out: Stdout,
    /// Columns of the terminal, if it is one.
    terminal: Option<usize>,
    colour: bool,
    /// Lines of the present act that are on the screen.
    drawn: usize,
    /// The time up to which sparse lines were printed.
    told: f64,
}

impl Live {
    /// Finds out what standard output is.
    pub(super) fn new() -> Live {
        let out = io::stdout();
        Live {
            terminal: (out.is_terminal() && terminal::moves()).then(columns),
            out,
            colour: terminal::has_colour(),
            drawn: 0,
            told: 0.0,
        }
    }

    /// Says where the acts run, and what runs them.
    pub(super) fn introduce(&mut self, place: &str, acts: &[Act]) -> io::Result<()> {
        let seconds = acts.first().map_or(0, |act| act.seconds);
        writeln!(
            self.out,
            "{place}: {LINK_MBPS} Mbit/s, {RTT_MS} ms round trip, buffer of one bandwidth-delay product.\n\
             Four acts of {seconds} s. The foreground sends all it can, as a program does today (CUBIC)."
        )
    }

    /// Announces an act.
    pub(super) fn begin(&mut self, act: &Act) -> io::Result<()> {
        (self.drawn, self.told) = (0, 0.0);
        writeln!(self.out)?;
        match self.terminal {
            Some(_) => self.draw(&Recording::new(act), false),
            None => writeln!(self.out, "{}", heading(act)),
        }
    }

    /// Shows how it stands.
    pub(super) fn update(&mut self, recording: &Recording) -> io::Result<()> {
        if self.terminal.is_some() {
            return self.draw(recording, false);
        }
        if recording.length() >= self.told + SPARSE {
            let line = sparse_line(recording, self.told, self.told + SPARSE);
            self.told += SPARSE;
            writeln!(self.out, "{line}")?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// Leaves the act's means on the screen.
    pub(super) fn finish(&mut self, recording: &Recording) -> io::Result<()> {
        if self.terminal.is_some() {
            self.draw(recording, true)?;
        }
        match recording.deadline() {
            Some(deadline) => writeln!(self.out, "     bulk transfer {}", deadline.sentence()),
            None => Ok(()),
        }
    }

    /// Replaces what is drawn of this act.
    fn draw(&mut self, recording: &Recording, over: bool) -> io::Result<()> {
        let columns = self.terminal.unwrap_or(80);
        let mut text = match self.drawn {
            0 => String::new(),
            lines => format!("\x1b[{lines}A"),
        };
        let lines = frame(recording, columns, over);
        self.drawn = lines.len();
        for (colour, line) in lines {
            // never so long that the terminal would wrap it
            let line: String = line.chars().take(columns.saturating_sub(1)).collect();
            text += &match self.colour {
                true => format!("\r\x1b[2K\x1b[{colour}m{line}\x1b[0m\n"),
                false => format!("\r\x1b[2K{line}\n"),
            };
        }
        write!(self.out, "{text}")?;
        self.out.flush()
    }
}

/// The view of an act: each line with its colour (a parameter of SGR, as on every terminal).
fn frame(recording: &Recording, columns: usize, over: bool) -> Vec<(&'static str, String)> {
    let act = &recording.act;
    let cells = columns.saturating_sub(MARGIN).clamp(10, 50);
    let interval = act.seconds as f64 / cells as f64;
    let curve = |values: &[f64], full: f64| {
        let newest = &values[values.len().saturating_sub(cells)..];
        format!("{:cells$}", sparkline(newest, full))
    };
    let flow = |name: &str, flow: Flow| {
        let series = recording.series(flow, interval);
        let rates: Vec<f64> = series.into_iter().map(|(_, rate)| rate).collect();
        let rate = match over {
            true => recording.mean(flow),
            false => recording.latest(flow),
        };
        format!("     {name:<11} {} {rate:5.1} Mbit/s", curve(&rates, LINK_MBPS as f64))
    };
    let delay = match over {
        true => mean(&recording.queue),
        false => recording.queue.last().copied().unwrap_or_default(),
    };
    // a second each, stretched to the same scale of time as the rates
    let seconds = recording.queue.len() as f64;
    let delays: Vec<f64> = (0..(seconds / interval).round() as usize)
        .filter_map(|cell| recording.queue.get((cell as f64 * interval) as usize).copied())
        .collect();
    let left = act.seconds as f64 - recording.length();
    let state = match (over, left > 0.0) {
        (true, _) => "     mean of the act".to_owned(),
        (false, true) => format!("     {left:.0} s left"),
        (false, false) => "     waiting for the transfer".to_owned(),
    };
    vec![
        ("1", heading(act)),
        ("34", flow("foreground", Flow::Foreground)),
        ("33", flow("bulk", Flow::Bulk)),
        ("0", format!("     {:<11} {} {delay:5.0} ms", "queue", curve(&delays, RTT_MS as f64))),
        ("2", state),
    ]
}

fn heading(act: &Act) -> String {
    format!("{}/4  {}", act.number, act.sentence())
}

fn sparse_line(recording: &Recording, from: f64, to: f64) -> String {
    let rate = |flow| recording.rate(flow, from, to);
    format!(
        "{to:5.0} s  foreground {:5.1} Mbit/s   bulk {:5.1} Mbit/s   queue {:3.0} ms",
        rate(Flow::Foreground),
        rate(Flow::Bulk),
        recording.queue.last().copied().unwrap_or_default()
    )
}

/// One character a value, `full` the highest.
fn sparkline(values: &[f64], full: f64) -> String {
    let level = |value: &f64| match (value / full * LEVELS.len() as f64).ceil() as usize {
        0 => ' ',
        height => LEVELS[height.min(LEVELS.len()) - 1],
    };
    values.iter().map(level).collect()
}

/// The terminal's width, 80 if it does not tell.
fn columns() -> usize {
    console::Term::stdout().size_checked().map_or(80, |(_, columns)| columns.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::recording::examples::constant;

    #[test]
    fn sparklines_span_from_nothing_to_full() {
        assert_eq!(sparkline(&[0.0, 0.1, 10.0, 20.0, 25.0], 20.0), " ▁▄██");
    }

    #[test]
    fn a_frame_has_the_same_lines_from_beginning_to_end() {
        let whole = &constant([(18.0, 0.0), (9.0, 9.0), (18.0, 1.0), (12.0, 6.0)], Some(19.0))[1];
        let empty = Recording::new(&whole.act);
        let frames = [frame(&empty, 80, false), frame(whole, 80, false), frame(whole, 80, true)];
        for lines in &frames {
            assert_eq!(lines.len(), frames[0].len());
            assert!(lines.iter().all(|(_, line)| line.chars().count() < 80), "{lines:?}");
        }
        assert!(frames[0][4].1.contains("20 s left"));
        assert!(frames[2][1].1.contains("  9.0 Mbit/s"));
        assert!(frames[2][1].1.contains(&"▄".repeat(46)));
    }

    #[test]
    fn sparse_lines_tell_the_rate_since_the_last_one() {
        let recording = &constant([(18.0, 0.0), (9.0, 8.0), (18.0, 1.0), (12.0, 6.0)], None)[1];
        assert_eq!(
            sparse_line(recording, 15.0, 20.0),
            "   20 s  foreground   9.0 Mbit/s   bulk   8.0 Mbit/s   queue  19 ms"
        );
    }
}
