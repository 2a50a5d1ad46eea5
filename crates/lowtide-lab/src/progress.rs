// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the runs are.

use crate::experiment::Experiment;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    cell::Cell,
    fmt::Arguments,
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// Between two lines, where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// A bar with the remaining time on a terminal, a line now and then elsewhere; both to stderr.
pub(crate) struct Progress {
    bar: ProgressBar,
    lines: bool,
    total: usize,
    done: Cell<usize>,
    fresh: Cell<usize>,
    started: Instant,
    line: Cell<Instant>,
}

impl Progress {
    /// For `total` runs that will cost `cost` together; it says something only if `visible`.
    pub(crate) fn new(total: usize, cost: u64, visible: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let target = if visible && terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style =
            ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %, {eta} left").expect("a constant template");
        let bar = ProgressBar::with_draw_target(Some(cost), target).with_style(style);
        let now = Instant::now();
        let (done, fresh, line) = (Cell::new(0), Cell::new(0), Cell::new(now));
        Self { bar, lines: visible && !terminal, total, done, fresh, started: now, line }
    }

    /// A run of this experiment is done; `fresh`: just now, not before.
    pub(crate) fn one_done(&self, experiment: &Experiment, cost: u64, fresh: bool) {
        self.done.set(self.done.get() + 1);
        self.fresh.set(self.fresh.get() + usize::from(fresh));
        self.bar.set_message(format!("{}/{} {}", self.done.get(), self.total, experiment.id));
        self.bar.inc(cost);
        if self.lines && self.line.get().elapsed() >= BETWEEN_LINES {
            self.line.set(Instant::now());
            let left = self.bar.eta().as_secs();
            say(format_args!("{} of {} runs, about {left} s left ({})", self.done.get(), self.total, experiment.id));
        }
    }

    /// There will be no more.
    pub(crate) fn finish(self, well: bool) {
        self.bar.finish_and_clear();
        let visible = self.lines || !self.bar.is_hidden();
        if visible && well && self.total > 0 {
            let (fresh, known) = (self.fresh.get(), self.total - self.fresh.get());
            let seconds = self.started.elapsed().as_secs_f64();
            say(format_args!("{fresh} runs in {seconds:.1} s; {known} were known"));
        }
    }
}

/// A line on standard error. If that has been closed, the runs go on.
fn say(words: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{words}");
}
