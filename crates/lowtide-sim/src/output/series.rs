// SPDX-License-Identifier: MIT OR Apache-2.0
//! `flows.csv`, `inner.csv` and `bottlenecks.csv`: the samples of a run, a line each.

use super::OutputError;
use crate::observe::{BottleneckSample, FlowSample};
use lowtide_deadline::{Basis, FallbackReason};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// The files of the time series, with their columns.
pub(super) const FLOWS: (&str, &[&str]) = (
    "flows.csv",
    &[
        "time_s",
        "flow",
        "delivered_bytes",
        "rate_bps",
        "cwnd_segments",
        "ssthresh_segments",
        "in_flight_bytes",
        "rtt_ms",
        "one_way_delay_ms",
        "retransmits",
        "reductions",
    ],
);
pub(super) const INNER: (&str, &[&str]) = ("inner.csv", &["time_s", "flow", "name", "value"]);
pub(super) const CONTROL: (&str, &[&str]) =
    ("control.csv", &["time_s", "flow", "weight", "target_bps", "achieved_bps", "price_ratio", "basis"]);
pub(super) const LINKS: (&str, &[&str]) = (
    "bottlenecks.csv",
    &["time_s", "bottleneck", "queue_packets", "queue_bytes", "queue_ms", "packets", "drops", "marks", "utilisation"],
);

/// A CSV file.
pub(super) struct Lines {
    path: PathBuf,
    writer: csv::Writer<File>,
}

impl Lines {
    /// Makes the file, with its header.
    pub(super) fn create(directory: &Path, (name, columns): (&str, &[&str])) -> Result<Self, OutputError> {
        let path = directory.join(name);
        let file = File::create(&path).map_err(OutputError::at(&path))?;
        let mut lines = Self { path, writer: csv::Writer::from_writer(file) };
        lines.write(columns.iter().map(|column| (*column).to_owned()))?;
        Ok(lines)
    }

    /// Adds a line.
    pub(super) fn write(&mut self, fields: impl IntoIterator<Item = String>) -> Result<(), OutputError> {
        self.writer.write_record(fields).map_err(|error| OutputError::at(&self.path)(io::Error::from(error)))
    }

    /// All is on the disk.
    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        self.writer.flush().map_err(OutputError::at(&self.path))
    }
}

/// The files.
pub(super) struct Series {
    flows: Lines,
    inner: Lines,
    /// If there is a deadline.
    control: Option<Lines>,
    links: Lines,
}

impl Series {
    /// Makes the files; `deadlines`: a flow has a deadline.
    pub(super) fn create(directory: &Path, deadlines: bool) -> Result<Self, OutputError> {
        Ok(Self {
            flows: Lines::create(directory, FLOWS)?,
            inner: Lines::create(directory, INNER)?,
            control: deadlines.then(|| Lines::create(directory, CONTROL)).transpose()?,
            links: Lines::create(directory, LINKS)?,
        })
    }

    pub(super) fn flow(&mut self, name: &str, sample: &FlowSample<'_>) -> Result<(), OutputError> {
        let time = seconds(sample.now);
        self.flows.write([
            time.clone(),
            name.to_owned(),
            sample.delivered.to_string(),
            format!("{:.0}", sample.rate_bps),
            optional(sample.cwnd, 3),
            optional(sample.ssthresh, 3),
            sample.in_flight.to_string(),
            optional(sample.rtt_ms, 6),
            optional(sample.one_way_delay_ms, 6),
            sample.retransmits.to_string(),
            sample.reductions.to_string(),
        ])?;
        for (key, value) in sample.inner {
            self.inner.write([time.clone(), name.to_owned(), (*key).to_owned(), value.to_string()])?;
        }
        if let (Some(lines), Some(control)) = (&mut self.control, &sample.control) {
            lines.write([
                time,
                name.to_owned(),
                control.weight.to_string(),
                optional(control.target_bps, 0),
                format!("{:.0}", control.achieved_bps),
                control.price_ratio.to_string(),
                basis(control.basis).to_owned(),
            ])?;
        }
        Ok(())
    }

    pub(super) fn link(&mut self, name: &str, sample: &BottleneckSample) -> Result<(), OutputError> {
        self.links.write([
            seconds(sample.now),
            name.to_owned(),
            sample.queue_packets.to_string(),
            sample.queue_bytes.to_string(),
            format!("{:.6}", sample.queue_ms),
            sample.packets.to_string(),
            sample.drops.to_string(),
            sample.marks.to_string(),
            format!("{:.6}", sample.utilisation),
        ])
    }

    pub(super) fn finish(self) -> Result<(), OutputError> {
        self.flows.finish()?;
        self.inner.finish()?;
        self.control.map_or(Ok(()), Lines::finish)?;
        self.links.finish()
    }
}

/// Seconds, exactly.
fn seconds(time: lowtide_net::Time) -> String {
    let nanos = time.as_nanos();
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What a weight rests on, in a word.
const fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Feedback => "feedback",
        Basis::Model => "model",
        Basis::Fallback(FallbackReason::NoModel) => "fallback:no_model",
        Basis::Fallback(FallbackReason::NoPrice) => "fallback:no_price",
        Basis::Fallback(FallbackReason::NoRoundTripTime) => "fallback:no_rtt",
    }
}

/// Empty where there is no value.
fn optional(value: Option<f64>, decimals: usize) -> String {
    value.map(|value| format!("{value:.decimals$}")).unwrap_or_default()
}
