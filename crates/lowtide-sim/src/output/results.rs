// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a simulation of packets.

use super::{
    OutputError, Side, Summary,
    capture::Capture,
    directory::{CAPTURE, Draft, PLOT, SUMMARY, TRANSFERS},
    plot::Plot,
    series::{Lines, Series},
};
use crate::{
    Outcome,
    observe::{BottleneckSample, FlowSample, Observer, PacketEvent},
    scenario::Scenario,
};
use std::path::Path;

/// What there shall be besides the summary, the scenario and the time series.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// A plot.
    pub plot: bool,
    /// A capture.
    pub capture: Option<Side>,
}

/// A result under way: it observes the run and writes what it sees.
pub struct Results {
    draft: Draft,
    flows: Vec<String>,
    links: Vec<String>,
    series: Series,
    plot: Option<Plot>,
    capture: Option<Capture>,
    /// The first thing that went wrong; an observer cannot stop a run.
    failure: Option<OutputError>,
}

impl Results {
    /// Makes the directory and its files. It may exist if it is empty or an earlier result, which stays until this one
    /// is whole; other files in it stay.
    ///
    /// # Errors
    /// The directory holds something else, or cannot be written.
    pub fn create(directory: &Path, scenario: &Scenario, wanted: &Wanted) -> Result<Self, OutputError> {
        let draft = Draft::begin(directory, &scenario.to_toml())?;
        let capture = |side| Capture::create(draft.path().join(CAPTURE), side, scenario);
        Ok(Self {
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
            links: scenario.bottlenecks.iter().chain(&scenario.reverse).map(|link| link.name.clone()).collect(),
            series: Series::create(draft.path(), scenario.flows.iter().any(|flow| flow.deadline.is_some()))?,
            plot: wanted.plot.then(|| Plot::new(scenario)),
            capture: wanted.capture.map(capture).transpose()?,
            failure: None,
            draft,
        })
    }

    /// Writes what is known only at the end; gives the names of all files.
    ///
    /// # Errors
    /// A file could not be written, now or during the run.
    pub fn finish(self, outcome: &Outcome, summary: &Summary) -> Result<Vec<&'static str>, OutputError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let draft = self.draft;
        self.series.finish()?;
        draft.write(SUMMARY, &summary.to_json())?;
        if outcome.flows.iter().any(|flow| !flow.transfers.is_empty()) {
            let columns = ["flow", "start_s", "bytes", "completion_s"];
            let mut transfers = Lines::create(draft.path(), TRANSFERS, &columns)?;
            for flow in &outcome.flows {
                for it in &flow.transfers {
                    let (start, bytes, completion) = (it.start_s, it.bytes, it.completion_s);
                    transfers.write([
                        flow.name.clone(),
                        start.to_string(),
                        bytes.to_string(),
                        completion.to_string(),
                    ])?;
                }
            }
            transfers.finish()?;
        }
        if let Some(plot) = &self.plot {
            draft.write(PLOT, &plot.draw(summary))?;
        }
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        draft.finish()
    }

    fn note(&mut self, result: Result<(), OutputError>) {
        if let (Err(error), None) = (result, &self.failure) {
            self.failure = Some(error);
        }
    }
}

impl Observer for Results {
    fn wants_packets(&self) -> bool {
        self.capture.is_some()
    }

    fn wants_samples(&self) -> bool {
        true
    }

    fn flow(&mut self, sample: &FlowSample<'_>) {
        let Some(name) = self.flows.get(sample.flow) else { return };
        let result = self.series.flow(name, sample);
        self.note(result);
        if let Some(plot) = &mut self.plot {
            plot.flow(sample);
        }
    }

    fn bottleneck(&mut self, sample: &BottleneckSample) {
        let Some(name) = self.links.get(sample.bottleneck) else { return };
        let result = self.series.link(name, sample);
        self.note(result);
        if let Some(plot) = &mut self.plot {
            plot.link(sample);
        }
    }

    fn packet(&mut self, packet: &PacketEvent) {
        if let Some(capture) = &mut self.capture {
            let result = capture.packet(packet);
            self.note(result);
        }
    }
}
