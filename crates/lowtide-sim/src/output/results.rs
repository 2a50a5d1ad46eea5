// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of a result.

use super::{
    OutputError, Side, Summary,
    capture::Capture,
    plot::Plot,
    series::{CONTROL, FLOWS, INNER, LINKS, Lines, Series},
};
use crate::{
    Outcome,
    observe::{BottleneckSample, FlowSample, Observer, PacketEvent},
    scenario::Scenario,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const SUMMARY: &str = "summary.json";
const SCENARIO: &str = "scenario.toml";
const TRANSFERS: (&str, &[&str]) = ("transfers.csv", &["flow", "start_s", "bytes", "completion_s"]);
const PLOT: &str = "plot.svg";
const CAPTURE: &str = "packets.pcapng";

/// All files that a result may have.
const NAMES: [&str; 9] = [SUMMARY, SCENARIO, FLOWS.0, INNER.0, CONTROL.0, LINKS.0, TRANSFERS.0, PLOT, CAPTURE];

/// The first line of `scenario.toml`, by which a directory is known as a result.
const MARK: &str = "# A result of lowtide sim; `lowtide sim` with this file repeats it.";

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
    directory: PathBuf,
    flows: Vec<String>,
    links: Vec<String>,
    series: Series,
    plot: Option<Plot>,
    capture: Option<Capture>,
    /// The first thing that went wrong; an observer cannot stop a run.
    failure: Option<OutputError>,
}

impl Results {
    /// Makes the directory and its files. It may exist if it is empty or an earlier result, whose files are removed; other
    /// files in it stay.
    ///
    /// # Errors
    /// The directory holds something else, or cannot be written.
    pub fn create(directory: &Path, scenario: &Scenario, wanted: &Wanted) -> Result<Self, OutputError> {
        claim(directory)?;
        write(&directory.join(SCENARIO), &format!("{MARK}\n\n{}", scenario.to_toml()))?;
        let capture = |side| Capture::create(directory.join(CAPTURE), side, scenario);
        Ok(Self {
            directory: directory.to_owned(),
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
            links: scenario.bottlenecks.iter().chain(&scenario.reverse).map(|link| link.name.clone()).collect(),
            series: Series::create(directory, scenario.flows.iter().any(|flow| flow.deadline.is_some()))?,
            plot: wanted.plot.then(|| Plot::new(scenario)),
            capture: wanted.capture.map(capture).transpose()?,
            failure: None,
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
        let directory = &self.directory;
        self.series.finish()?;
        write(&directory.join(SUMMARY), &summary.to_json())?;
        if outcome.flows.iter().any(|flow| !flow.transfers.is_empty()) {
            let mut transfers = Lines::create(directory, TRANSFERS)?;
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
            write(&directory.join(PLOT), &plot.draw(summary))?;
        }
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        Ok(NAMES.into_iter().filter(|name| directory.join(name).exists()).collect())
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

/// Makes the directory, or empties it of an earlier result.
fn claim(directory: &Path) -> Result<(), OutputError> {
    let failed = OutputError::at(directory);
    fs::create_dir_all(directory).map_err(&failed)?;
    if fs::read_dir(directory).map_err(&failed)?.next().is_none() {
        return Ok(());
    }
    let scenario = fs::read_to_string(directory.join(SCENARIO)).unwrap_or_default();
    if scenario.lines().next() != Some(MARK) {
        return Err(OutputError::Occupied(directory.to_owned()));
    }
    for name in NAMES {
        let path = directory.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(OutputError::at(&path)(error)),
            _ => {}
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), OutputError> {
    fs::write(path, text).map_err(OutputError::at(path))
}
