// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table in Markdown, and its place in a document.

use super::Failure;
use std::{fmt, fs, path::Path};

/// Rows under a head.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        let mut table = Self { rows: Vec::new() };
        table.row(head);
        table
    }

    pub(crate) fn row(&mut self, cells: &[&str]) {
        self.rows.push(cells.iter().map(|cell| (*cell).to_owned()).collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// Replaces what is between `<!-- NAME -->` and `<!-- end -->` in a document.
    pub(crate) fn write(&self, document: &Path, name: &str) -> Result<(), Failure> {
        let text = fs::read_to_string(document).map_err(|error| format!("{}: {error}", document.display()))?;
        let mark = format!("<!-- {name} -->\n");
        let place =
            text.split_once(&mark).and_then(|(before, rest)| Some((before, rest.split_once("<!-- end -->")?.1)));
        let (before, after) = place.ok_or(format!("{}: there is no {}", document.display(), mark.trim()))?;
        fs::write(document, format!("{before}{mark}{self}<!-- end -->{after}"))?;
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, row) in self.rows.iter().enumerate() {
            writeln!(f, "| {} |", row.join(" | "))?;
            if number == 0 {
                writeln!(f, "|{}", "---|".repeat(row.len()))?;
            }
        }
        Ok(())
    }
}
