// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was seen of a run: the same shape wherever it took place.

mod fluid;
mod observer;
mod packets;

pub(crate) use fluid::of_fluid;
pub(crate) use observer::Recorder;
pub use packets::{Arrival, Packets};

use std::{collections::BTreeMap, rc::Rc};

/// A run, as samples at common times. A sample stands for the interval before its time. What has no value at a time is
/// NaN.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// When the samples were taken, in seconds from the beginning.
    pub times: Rc<[f64]>,
    /// The flows, in the order of the scenario.
    pub flows: Vec<Track>,
    /// The bottlenecks in the order of the scenario, then the reverse one if there is one.
    pub links: Vec<Track>,
    /// The version of what made it, if it was made elsewhere and that is known.
    pub version: Option<String>,
}

/// A flow or a bottleneck.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// Its name.
    pub name: String,
    /// The samples of each quantity, by its name; those of a law's inner values have `inner:` before it.
    pub columns: BTreeMap<String, Rc<[f64]>>,
    /// Single values, by name.
    pub facts: BTreeMap<&'static str, f64>,
    /// The transfers that a flow made, in the order of their starts.
    pub transfers: Vec<RecordedTransfer>,
    /// Of the spans that the scenario asks for: where each begins and ends, in seconds, and the part of a fair share
    /// that the flow had.
    pub spans: Vec<(f64, f64, f64)>,
    /// The packets of a flow, where they were asked for; of a flow of datagrams in a kernel always, as far as they
    /// arrived.
    pub packets: Option<Packets>,
}

/// A transfer of a known size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedTransfer {
    /// When it began, in seconds.
    pub start: f64,
    /// Its payload, in bytes.
    pub bytes: f64,
    /// When all of it had been acknowledged, in seconds; `None`: never.
    pub finish: Option<f64>,
    /// When it was due, in seconds; `None`: it had no deadline.
    pub due: Option<f64>,
}

/// Whether a name goes with a pattern: names or parts of names with `*` for anything, several with commas between them.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    pattern.split(',').any(|pattern| one_matches(pattern.trim(), name))
}

fn one_matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name
            .strip_prefix(before)
            .is_some_and(|rest| rest.char_indices().any(|(at, _)| one_matches(after, &rest[at..])) || after.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        assert!(matches("cdg-*", "cdg-1") && matches("cdg-*", "cdg-") && matches("*", "x"));
        assert!(
            matches("a,b*", "bulk") && matches("a, b", "b") && matches("*-1", "cdg-1") && matches("c*g*1", "cdg-1")
        );
        assert!(
            !matches("cdg", "cdg-1") && !matches("cdg-*", "cubic") && !matches("a,b", "c") && !matches("*-2", "cdg-1")
        );
    }
}
