// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--progress-from`: how far a program says that it is, read from what it prints.

mod rclone;
mod restic;
mod rsync;

use lowtide_kernel::Stream;

use crate::cli::ProgressFromArgument;

/// Longer lines are left out. Those that count have the names of the files that are on their way, of rclone's as many
/// as it has `--transfers`.
const LONGEST_LINE: usize = 256 << 10;

/// A program that says how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// rsync, with `--info=progress2`.
    Rsync,
    /// restic, with `--json`.
    Restic,
    /// rclone, with `--stats 1s -v`, also with `--stats-one-line` and with `--use-json-log`.
    Rclone,
}

impl From<ProgressFromArgument> for Source {
    fn from(argument: ProgressFromArgument) -> Source {
        match argument {
            ProgressFromArgument::Rsync => Source::Rsync,
            ProgressFromArgument::Restic => Source::Restic,
            ProgressFromArgument::Rclone => Source::Rclone,
        }
    }
}

impl Source {
    /// As the command line names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::Rsync => "rsync",
            Source::Restic => "restic",
            Source::Rclone => "rclone",
        }
    }

    /// Where it says so.
    #[must_use]
    pub fn stream(self) -> Stream {
        match self {
            Source::Rsync | Source::Restic => Stream::Out,
            Source::Rclone => Stream::Err,
        }
    }

    /// Bytes that it may count as done and still have in its memory, at the most.
    #[must_use]
    pub fn holds(self) -> u64 {
        match self {
            // what ssh has taken, say
            Source::Rsync => 1 << 20,
            // packs of 16 MiB that are filled, or wait for one of five connections
            Source::Restic => 160 << 20,
            // of each of the files on their way a chunk or two
            Source::Rclone => 64 << 20,
        }
    }

    /// The options that make it say so.
    #[must_use]
    pub fn options(self) -> &'static str {
        match self {
            Source::Rsync => "--info=progress2",
            Source::Restic => "--json",
            Source::Rclone => "--stats 1s -v",
        }
    }
}

/// How far a program is, in bytes as it counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Done.
    pub done: u64,
    /// Of so many.
    pub total: u64,
}

impl Progress {
    /// What is left.
    #[must_use]
    pub fn remaining(self) -> u64 {
        self.total.saturating_sub(self.done)
    }
}

/// Reads a program's output, whatever else is in it.
#[derive(Debug)]
pub struct Reader {
    source: Source,
    /// The present line, without its end.
    line: Vec<u8>,
    /// Nothing counts until this line ends.
    skips: bool,
    rsync: rsync::Total,
    latest: Option<Progress>,
    news: bool,
}

impl Reader {
    /// Of this program's output.
    #[must_use]
    pub fn new(source: Source) -> Reader {
        let (line, rsync) = (Vec::new(), rsync::Total::default());
        Reader { source, line, skips: false, rsync, latest: None, news: false }
    }

    /// Whose output it reads.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// The next bytes of it, in pieces of any length.
    pub fn read(&mut self, bytes: &[u8]) {
        // what is shown in place ends with a carriage return
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let ended = matches!(piece.last(), Some(b'\n' | b'\r'));
            let text = if ended { &piece[..piece.len() - 1] } else { piece };
            self.skips |= self.line.len() + text.len() > LONGEST_LINE;
            if self.skips {
                self.line.clear();
            } else {
                self.line.extend_from_slice(text);
            }
            if ended {
                self.end_line();
            }
        }
    }

    /// Some bytes are missing here: what is left of this line does not count.
    pub fn miss(&mut self) {
        self.line.clear();
        self.skips = true;
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !std::mem::take(&mut self.skips)
            && let Ok(text) = str::from_utf8(&line)
            && let Some(progress) = self.understand(text.trim())
        {
            (self.latest, self.news) = (Some(progress), true);
        }
        self.line = line; // and its memory with it
        self.line.clear();
    }

    fn understand(&mut self, line: &str) -> Option<Progress> {
        match self.source {
            Source::Rsync => self.rsync.line(line),
            Source::Restic => restic::line(line, self.latest),
            Source::Rclone => rclone::line(line),
        }
    }

    /// What it has said last.
    #[must_use]
    pub fn latest(&self) -> Option<Progress> {
        self.latest
    }

    /// The same, if that is later than the last call of this.
    pub fn news(&mut self) -> Option<Progress> {
        self.latest.filter(|_| std::mem::take(&mut self.news))
    }
}

#[cfg(test)]
mod tests;
