// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[bottleneck]` and `[reverse]`.

use super::{
    Bottleneck, ScenarioError,
    source::{bytes, time_or_none},
    tree::{Table, Value},
};
use lowtide_net::{Rate, Schedule, file};
use std::{path::Path, time::Duration};

/// Reads a link whose name is `name` unless it has one.
pub(super) fn read(table: &Table, name: &str, folder: &Path) -> Result<Bottleneck, ScenarioError> {
    let name = table.read("name", super::read::name)?.unwrap_or(name.to_owned());
    let rate = table.need("rate", "\"10mbit\"", str::parse)?;
    let rtt = table.need("rtt", "\"40ms\"", time_or_none)?;
    let usual = Bottleneck::new(&name, rate, rtt);
    let link = Bottleneck {
        schedule: schedule(table, rate, folder)?,
        buffer: table.read("buffer", str::parse)?.unwrap_or(usual.buffer),
        queue: table.read("queue", str::parse)?.unwrap_or(usual.queue),
        loss: table.read("loss", str::parse)?.unwrap_or(usual.loss),
        jitter: table.read("jitter", str::parse)?.unwrap_or(usual.jitter),
        reordering: table.read("reordering", str::parse)?.unwrap_or(usual.reordering),
        police: table.read("police", str::parse)?,
        burst: table.read("burst", |text| if text == "0B" { Ok(0) } else { bytes(text) })?.unwrap_or(0),
        ..usual
    };
    table.finish()?;
    Ok(link)
}

/// Steps as a text or as an array of tables, or `mahimahi:FILE`.
fn schedule(table: &Table, rate: Rate, folder: &Path) -> Result<Option<Schedule>, ScenarioError> {
    let Some(node) = table.get("schedule") else { return Ok(None) };
    let schedule = match &node.value {
        Value::Array(_) => {
            let mut steps = vec![(Duration::ZERO, Some(rate))];
            for step in node.tables("schedule")? {
                let at = step.need("at", "\"20s\"", time_or_none)?;
                let rate = step.need("rate", "\"5mbit\"", rate_or_outage)?;
                step.finish()?;
                steps.push((at, rate));
            }
            // a step at 0s takes the place of `rate`
            if steps.get(1).is_some_and(|(at, _)| at.is_zero()) {
                steps.remove(0);
            }
            Schedule::steps(&steps, None).map_err(|error| node.origin.error(format!("schedule: {error}")))?
        }
        _ => node.read("schedule", |text| match text.strip_prefix("mahimahi:") {
            Some(file) => trace(&folder.join(file)),
            None => text.parse().map_err(|error: lowtide_net::TextError| error.to_string()),
        })?,
    };
    Ok(Some(schedule))
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
