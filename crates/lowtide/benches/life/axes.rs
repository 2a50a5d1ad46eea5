// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths, laws and conditions, by the names that select them.

use super::verdict::Condition;
use std::time::Duration;

/// Which way a program's data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The program sends them.
    Up,
    /// It receives them.
    Down,
}

pub(crate) const WAYS: [(Way, &str); 2] = [(Way::Up, "uploads"), (Way::Down, "downloads")];

/// A link between the two namespaces, with a droptail buffer of one BDP.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Mbit/s.
    pub(crate) rate: u64,
    pub(crate) rtt: Duration,
    /// In both directions.
    pub(crate) jitter: Option<&'static str>,
}

impl Path {
    /// Bytes that the link carries in a time.
    pub(crate) fn bytes_in(&self, seconds: f64) -> u64 {
        (self.rate as f64 * 1e6 / 8.0 * seconds) as u64
    }
}

pub(crate) const PATHS: [Path; 4] = [
    Path { name: "20mbit", about: "20 Mbit/s, 40 ms", rate: 20, rtt: Duration::from_millis(40), jitter: None },
    Path { name: "5mbit", about: "5 Mbit/s, 30 ms", rate: 5, rtt: Duration::from_millis(30), jitter: None },
    Path { name: "100mbit", about: "100 Mbit/s, 10 ms", rate: 100, rtt: Duration::from_millis(10), jitter: None },
    Path {
        name: "jitter",
        about: "20 Mbit/s, 40 ms, jitter of 5 ms",
        rate: 20,
        rtt: Duration::from_millis(40),
        jitter: Some("5ms"),
    },
];

/// What governs the program's sockets.
#[derive(Debug)]
pub(crate) struct Law {
    pub(crate) name: &'static str,
    /// Options of `lowtide run`; `None` is the kernel's CUBIC without Lowtide.
    pub(crate) options: Option<&'static [&'static str]>,
    /// Whether it is measured for uploads.
    pub(crate) up: bool,
    /// The law with which servers send, where it is measured for downloads.
    pub(crate) down: Option<&'static str>,
}

impl Law {
    /// Whether it is measured for data that go this way.
    pub(crate) fn goes(&self, way: Way) -> bool {
        match way {
            Way::Up => self.up,
            Way::Down => self.down.is_some(),
        }
    }
}

/// Without Lowtide.
pub(crate) const PLAIN: &Law = &LAWS[0];

/// The yardstick of one flow: a plain CUBIC connection in the place of a program that has several.
pub(crate) const ONE_FLOW: &Law = &Law { name: "one CUBIC flow", options: None, up: true, down: None };

/// What `lowtide run` takes where nothing is said.
pub(crate) const DEFAULT: &Law = &LAWS[3];

pub(crate) const LAWS: [Law; 5] = [
    Law { name: "plain", options: None, up: true, down: Some("cubic") },
    Law { name: "cdg", options: Some(&["--cc", "cdg"]), up: true, down: None },
    Law { name: "ledbatpp", options: Some(&["--cc", "ledbatpp"]), up: true, down: None },
    Law { name: "default", options: Some(&[]), up: true, down: Some("cubic") },
    Law { name: "bbr-server", options: Some(&[]), up: false, down: Some("bbr") },
];

pub(crate) const CONDITIONS: [(Condition, &str); 3] =
    [(Condition::Idle, "idle"), (Condition::Far, "far"), (Condition::Third, "third")];

/// What of an axis has been asked for: what is named, or all where nothing of it is.
pub(crate) fn chosen<'a, T>(all: &'a [T], name: impl Fn(&T) -> &str, words: &[String]) -> Vec<&'a T> {
    let is_named = |it: &&T| words.iter().any(|word| word == name(it));
    match all.iter().any(|it| is_named(&it)) {
        true => all.iter().filter(is_named).collect(),
        false => all.iter().collect(),
    }
}
