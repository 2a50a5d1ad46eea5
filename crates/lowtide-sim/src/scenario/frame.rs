// SPDX-License-Identifier: MIT OR Apache-2.0
//! What scenarios of packets and of the numerical model have in common: times, spans, names and the list of flows.

use super::{
    ScenarioError, Span,
    tree::{Table, whole},
    values::time_or_none,
};
use std::{collections::HashSet, time::Duration};

/// What a file of either kind has.
pub(super) struct Frame {
    pub(super) seed: u64,
    pub(super) duration: Duration,
    pub(super) measure_from: Duration,
    pub(super) sample_interval: Duration,
    pub(super) spans: Vec<Span>,
}

/// The longest simulated time; sums of such times stay far from the end of 64 bits of nanoseconds.
const LONGEST: Duration = Duration::from_secs(1_000_000);

/// Reads it, with this time between samples unless there is one.
pub(super) fn frame(root: &Table, usual_sample: Duration) -> Result<Frame, ScenarioError> {
    let seed = root.read("seed", whole(0..=u64::MAX))?.unwrap_or(1);
    let duration = root.need("duration", "\"120s\"", time_or_none)?;
    if duration.is_zero() || duration > LONGEST {
        return Err(root.error("duration", "duration: it has to be above zero and at most 1000000s"));
    }
    let measure_from = root.read("measure_from", time_or_none)?.unwrap_or_default();
    if measure_from >= duration {
        return Err(root.error("measure_from", "measure_from: the simulation is over by then"));
    }
    let sample_interval = root.read("sample", time_or_none)?.unwrap_or(usual_sample);
    let spans = spans(root, duration)?;
    Ok(Frame { seed, duration, measure_from, sample_interval, spans })
}

fn spans(root: &Table, duration: Duration) -> Result<Vec<Span>, ScenarioError> {
    let tables = root.get("span").map_or(Ok(Vec::new()), |node| node.tables("span"))?;
    let span = |table: &Table| {
        let from = table.need("from", "\"400s\"", time_or_none)?;
        let to = table.need("to", "\"600s\"", time_or_none)?;
        table.finish()?;
        match from < to && to <= duration {
            true => Ok(Span { from, to }),
            false => Err(table.error("to", "to: it has to be after `from`, and not after the end of the simulation")),
        }
    };
    tables.into_iter().map(span).collect()
}

/// Reads each `[[flow]]`, which may stand for several; all of them have names of their own.
pub(super) fn flows<T>(
    root: &Table,
    read: impl Fn(&Table) -> Result<Vec<T>, ScenarioError>,
    name: impl Fn(&T) -> &String,
) -> Result<Vec<T>, ScenarioError> {
    let tables = root.get("flow").map_or(Ok(Vec::new()), |node| node.tables("flow"))?;
    if tables.is_empty() {
        return Err(root.error("flow", "there is no [[flow]]"));
    }
    let mut flows = Vec::new();
    let mut names = HashSet::new();
    for table in tables {
        for flow in read(table)? {
            if !names.insert(name(&flow).clone()) {
                return Err(table.error("name", format!("name: there is a flow `{}` already", name(&flow))));
            }
            flows.push(flow);
        }
    }
    Ok(flows)
}

/// A name: what does not need quotes in TOML, in CSV or on a command line.
pub(super) fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err(format!("\"{text}\" is not a name; it has to be of letters, digits, - and _"))
}
