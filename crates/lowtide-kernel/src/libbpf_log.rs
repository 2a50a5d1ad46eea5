// SPDX-License-Identifier: MIT OR Apache-2.0
//! What libbpf and the kernel's verifier say, for error messages.

use std::sync::Mutex;

use libbpf_rs::PrintLevel;

use crate::Error;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Collects what libbpf and the verifier have to say, which error codes alone do not.
pub(crate) struct LibbpfLog;

impl LibbpfLog {
    pub(crate) fn listen() -> LibbpfLog {
        LINES.lock().expect("no panic while held").clear();
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            LINES.lock().expect("no panic while held").push(text.trim_end().to_owned());
        })));
        LibbpfLog
    }

    /// The error, and the last lines that explain it.
    pub(crate) fn reason(&self, error: &libbpf_rs::Error) -> String {
        let texts = LINES.lock().expect("no panic while held");
        let lines: Vec<&str> = texts
            .iter()
            .flat_map(|text| text.lines())
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("processed ") && !line.contains("PROG LOAD LOG"))
            .collect();
        let last = &lines[lines.len().saturating_sub(4)..];
        if last.is_empty() { format!("{error:#}") } else { format!("{error:#} ({})", last.join("; ")) }
    }

    pub(crate) fn refusal(&self, error: libbpf_rs::Error) -> Error {
        Error::Load { reason: self.reason(&error) }
    }
}
