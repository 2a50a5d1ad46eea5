// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[bottleneck]` and `[reverse]`.

use super::{
    Bottleneck, ScenarioError,
    tree::{Node, Table, Value},
    values::{bytes, time_or_none},
};
use lowtide_net::{DelaySchedule, Jitter, Rate, Schedule, TextError, file};
use std::{fmt::Display, path::Path, time::Duration};

/// Reads a link whose name is `name` unless it has one.
pub(super) fn read(table: &Table, name: &str, folder: &Path) -> Result<Bottleneck, ScenarioError> {
    let name = table.read("name", super::frame::name)?.unwrap_or(name.to_owned());
    let rate = table.need("rate", "\"10mbit\"", str::parse)?;
    let rtt = table.need("rtt", "\"40ms\"", time_or_none)?;
    let usual = Bottleneck::new(&name, rate, rtt);
    let link = Bottleneck {
        schedule: schedule(table, rate, folder)?,
        rtt_schedule: rtt_schedule(table, rtt)?,
        buffer: table.read("buffer", str::parse)?.unwrap_or(usual.buffer),
        queue: table.read("queue", str::parse)?.unwrap_or(usual.queue),
        loss: table.read("loss", str::parse)?.unwrap_or(usual.loss),
        jitter: table.read("jitter", str::parse)?.unwrap_or(usual.jitter),
        reverse_jitter: table.read("reverse_jitter", str::parse)?.unwrap_or(usual.reverse_jitter),
        reordering: table.read("reordering", str::parse)?.unwrap_or(usual.reordering),
        police: table.read("police", str::parse)?,
        burst: table.read("burst", |text| if text == "0B" { Ok(0) } else { bytes(text) })?.unwrap_or(0),
        ..usual
    };
    table.finish()?;
    Ok(link)
}

/// Reads `[reverse]`, which these bottlenecks are the other direction of.
pub(super) fn read_reverse(
    table: &Table,
    bottlenecks: &[Bottleneck],
    folder: &Path,
) -> Result<Bottleneck, ScenarioError> {
    let reverse = read(table, "reverse", folder)?;
    if reverse.rtt_schedule.is_some() {
        let what = "rtt_schedule: a round trip is both ways; write it in [bottleneck]";
        return Err(table.error("rtt_schedule", what));
    }
    if reverse.reverse_jitter != Jitter::NONE {
        return Err(table.error("reverse_jitter", "reverse_jitter: here it is called `jitter`"));
    }
    if let Some(link) = bottlenecks.iter().find(|link| link.reverse_jitter != Jitter::NONE) {
        let what = format!("reverse_jitter of `{}`: with [reverse] write it there, as `jitter`", link.name);
        return Err(table.origin.error(what));
    }
    if bottlenecks.iter().any(|link| link.name == reverse.name) {
        return Err(table.origin.error(format!("reverse: a bottleneck has the name `{}`, too", reverse.name)));
    }
    Ok(reverse)
}

/// Steps as a text or as an array of tables, or `mahimahi:FILE`.
fn schedule(table: &Table, rate: Rate, folder: &Path) -> Result<Option<Schedule>, ScenarioError> {
    let Some(node) = table.get("schedule") else { return Ok(None) };
    if let Value::Array(_) = node.value {
        let steps = steps(node, "schedule", ("rate", "\"5mbit\"", rate_or_outage), Some(rate))?;
        let schedule =
            Schedule::steps(&steps, None).map_err(|error| node.origin.error(format!("schedule: {error}")))?;
        return Ok(Some(schedule));
    }
    let schedule = node.read("schedule", |text| match text.strip_prefix("mahimahi:") {
        Some(file) => trace(&folder.join(file)),
        None => text.parse().map_err(|error: TextError| error.to_string()),
    })?;
    Ok(Some(schedule))
}

/// Steps as a text or as an array of tables.
fn rtt_schedule(table: &Table, rtt: Duration) -> Result<Option<DelaySchedule>, ScenarioError> {
    let Some(node) = table.get("rtt_schedule") else { return Ok(None) };
    let schedule = if let Value::Array(_) = node.value {
        let steps = steps(node, "rtt_schedule", ("rtt", "\"200ms\"", time_or_none), rtt)?;
        DelaySchedule::steps(&steps, None).map_err(|error| node.origin.error(format!("rtt_schedule: {error}")))?
    } else {
        node.read("rtt_schedule", str::parse)?
    };
    Ok(Some(schedule))
}

/// An array of tables, each with the time `at` and the value from then on, of which there are the key, an example and
/// how it is read. What holds in the beginning is `first`, unless a step is at 0s.
fn steps<T, E: Display>(
    node: &Node,
    name: &str,
    (key, example, read): (&'static str, &str, impl Fn(&str) -> Result<T, E>),
    first: T,
) -> Result<Vec<(Duration, T)>, ScenarioError> {
    let mut steps = vec![(Duration::ZERO, first)];
    for step in node.tables(name)? {
        let at = step.need("at", "\"20s\"", time_or_none)?;
        let value = step.need(key, example, &read)?;
        step.finish()?;
        steps.push((at, value));
    }
    if steps.get(1).is_some_and(|(at, _)| at.is_zero()) {
        steps.remove(0);
    }
    Ok(steps)
}

/// A trace goes by its whole path, so that a printed scenario finds it from anywhere.
fn trace(path: &Path) -> Result<Schedule, String> {
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    let name = path.display().to_string();
    let text = file::read_text(&path, file::MOST).map_err(|error| format!("cannot read the trace {name}: {error}"))?;
    Schedule::trace(&name, &text).map_err(|error| error.to_string())
}

fn rate_or_outage(text: &str) -> Result<Option<Rate>, lowtide_net::units::UnitError> {
    if text == "0mbit" { Ok(None) } else { text.parse().map(Some) }
}
