// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace in JSON lines, as far as a picture needs it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The format that this program writes and reads.
pub(super) const VERSION: u64 = 1;

/// The greatest number that is believed: 317 years in µs.
const MOST: f64 = 1e16;

/// A trace.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// When it began, as it says.
    pub(super) started: String,
    /// By their numbers.
    pub(super) connections: BTreeMap<u64, Connection>,
    /// Records that did not fit.
    pub(super) dropped: u64,
}

/// One connection in it.
#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) law: String,
    pub(super) peer: String,
    /// The law is at this end, which receives.
    pub(super) receives: bool,
    pub(super) points: Vec<Point>,
}

/// A record. Times are seconds since the trace began.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) t: f64,
    pub(super) event: String,
    pub(super) cwnd: f64,
    pub(super) ssthresh: Option<f64>,
    pub(super) srtt_us: Option<f64>,
    pub(super) rtt_min_us: Option<f64>,
    pub(super) rtt_max_us: Option<f64>,
}

pub(super) fn read(text: &str) -> Result<Trace> {
    let mut lines = text.lines().enumerate();
    let header: Value =
        lines.next().and_then(|(_, line)| serde_json::from_str(line).ok()).context("it has no header")?;
    match header["lowtide_trace"].as_u64() {
        Some(VERSION) => {}
        Some(other) => bail!("its format is {other}, and this program reads {VERSION}"),
        None => bail!("its first line is not the header that lowtide trace writes"),
    }
    let mut trace = Trace { started: header["started"].as_str().unwrap_or_default().to_owned(), ..Trace::default() };
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let record: Value = serde_json::from_str(line).with_context(|| format!("line {} is no record", number + 1))?;
        take(&mut trace, &record).with_context(|| format!("line {}", number + 1))?;
    }
    Ok(trace)
}

fn take(trace: &mut Trace, record: &Value) -> Result<()> {
    let event = text(record, "event")?;
    if event == "dropped" {
        trace.dropped = trace.dropped.saturating_add(whole(record, "dropped")?);
        return Ok(());
    }
    let needed = |field| number(record, field)?.with_context(|| format!("it has no {field}"));
    let point = Point {
        t: needed("t_us")? / 1e6,
        event: event.to_owned(),
        cwnd: needed("cwnd")?,
        ssthresh: number(record, "ssthresh")?,
        srtt_us: number(record, "srtt_us")?,
        rtt_min_us: number(record, "rtt_min_us")?,
        rtt_max_us: number(record, "rtt_max_us")?,
    };
    let (law, peer) = (text(record, "law")?, text(record, "peer")?);
    let connection = trace.connections.entry(whole(record, "connection")?).or_default();
    connection.law = law.to_owned();
    connection.peer = peer.to_owned();
    connection.receives = record["direction"] == "down";
    connection.points.push(point);
    Ok(())
}

/// A number that is not there is none.
fn number(record: &Value, field: &str) -> Result<Option<f64>> {
    match &record[field] {
        Value::Null => Ok(None),
        value => match value.as_f64() {
            Some(number) if (0.0..=MOST).contains(&number) => Ok(Some(number)),
            _ => bail!("{field} is not a number from 0 to {MOST:e}"),
        },
    }
}

fn whole(record: &Value, field: &str) -> Result<u64> {
    record[field].as_u64().with_context(|| format!("{field} is not a whole number"))
}

fn text<'a>(record: &'a Value, field: &str) -> Result<&'a str> {
    record[field].as_str().with_context(|| format!("{field} is not a text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"lowtide_trace":1,"started":"2026-11-22T05:00:00Z"}"#;

    #[test]
    fn records_go_to_their_connections() {
        let record = |number, event| {
            format!(
                r#"{{"t_us":1500000,"connection":{number},"event":"{event}","law":"vegas","peer":"192.0.2.1:5201","cwnd":12.5}}"#
            )
        };
        let lines = [HEADER, &record(1, "round"), &record(2, "loss"), r#"{"t_us":2,"event":"dropped","dropped":7}"#];
        let trace = read(&lines.join("\n")).unwrap();
        assert_eq!((trace.connections.len(), trace.dropped, trace.started.len()), (2, 7, 20));
        let point = &trace.connections[&2].points[0];
        assert_eq!((point.t, point.event.as_str(), point.cwnd, point.ssthresh), (1.5, "loss", 12.5, None));
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for (text, part) in [
            ("", "no header"),
            ("{}", "first line"),
            ("t_us,connection\n1,2", "no header"),
            (r#"{"lowtide_trace":2}"#, "its format is 2"),
            (&format!("{HEADER}\nnonsense"), "line 2 is no record"),
            (&format!("{HEADER}\n{{\"event\":\"round\"}}"), "line 2: it has no t_us"),
            (&format!("{HEADER}\n\n{{\"t_us\":1}}"), "line 3: event is not a text"),
            (
                &format!("{HEADER}\n{}", r#"{"event":"round","t_us":1e30}"#),
                "line 2: t_us is not a number from 0 to 1e16",
            ),
            (&format!("{HEADER}\n{}", r#"{"event":"round","t_us":-1}"#), "line 2: t_us is not a number"),
            (&format!("{HEADER}\n{}", r#"{"event":"round","t_us":1e999}"#), "line 2 is no record"),
            (&format!("{HEADER}\n{}", r#"{"event":"round","t_us":NaN}"#), "line 2 is no record"),
            (&format!("{HEADER}\n{}", r#"{"event":"dropped","dropped":0.5}"#), "dropped is not a whole number"),
        ] {
            let sentence = format!("{:#}", read(text).unwrap_err());
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }
}
