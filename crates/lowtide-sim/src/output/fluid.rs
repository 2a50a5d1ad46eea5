// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is left of a run of the numerical model: a summary, time series, a plot. Rates are in units, sizes in units
//! times seconds.

use super::{
    OutputError,
    directory::{Draft, FLOWS, LINKS, PLOT, SUMMARY},
    series::Lines,
    table::{number, verdict, write_columns},
};
use crate::fluid::{LinkOutcome, Model, Outcome, Sample, SourceOutcome, SourceState, SpanOutcome};
use lowtide_draw::timeline::{Curve, Panel, Range, Style, Timeline, due, measured, thinned};
use lowtide_net::units::format_duration;
use serde::Serialize;
use std::{fmt, path::Path, time::Duration};

/// What came out of a run, in figures; `summary.json`. Everything but `wall_s` is the same whenever the same version
/// runs the same scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// `fluid`.
    pub model: &'static str,
    /// The sources, in the order of the scenario.
    pub flows: Vec<SourceOutcome>,
    /// The link.
    pub bottleneck: LinkOutcome,
    /// The spans that the scenario asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<SpanOutcome>,
    /// Time that the run took, seconds.
    pub wall_s: f64,
    /// The seed.
    pub seed: u64,
    /// The version of the simulator.
    pub version: &'static str,
}

impl Summary {
    /// The summary of a run that took `wall`.
    pub fn new(outcome: &Outcome, wall: Duration) -> Self {
        Self {
            model: "fluid",
            flows: outcome.sources.clone(),
            bottleneck: outcome.link,
            spans: outcome.spans.clone(),
            wall_s: wall.as_secs_f64(),
            seed: outcome.seed,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// As JSON, for people, too.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self).expect("text keys and numbers");
        json + "\n"
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = self
            .flows
            .iter()
            .map(|flow| vec![flow.name.clone(), number(Some(flow.mean_rate), 2), number(Some(flow.sent), 0)]);
        write_columns(f, &["flow", "units", "sent/units·s"], 1, flows)?;
        f.write_str("\n")?;
        let LinkOutcome { capacity, utilisation, loss } = self.bottleneck;
        let link = vec![format!("{capacity:.2}"), format!("{:.1} %", utilisation * 100.0), format!("{loss:.2e}")];
        write_columns(f, &["capacity/units", "used", "loss"], 0, std::iter::once(link))?;
        f.write_str("\n")?;
        let transfers: Vec<_> = self
            .flows
            .iter()
            .flat_map(|flow| {
                flow.deadlines.iter().map(|it| {
                    vec![
                        flow.name.clone(),
                        verdict(it.late_s, it.finished_s),
                        number(Some(it.size), 0),
                        number(Some(it.start_s), 2),
                        number(it.finished_s, 2),
                        number(Some(it.due_s), 2),
                    ]
                })
            })
            .collect();
        if !transfers.is_empty() {
            let head = ["transfer", "deadline", "units·s", "start/s", "done/s", "due/s"];
            write_columns(f, &head, 2, transfers.into_iter())?;
            f.write_str("\n")?;
        }
        if !self.spans.is_empty() {
            let rows = self.spans.iter().flat_map(|span| {
                span.flows.iter().enumerate().map(move |(n, flow)| {
                    vec![
                        if n == 0 { format!("{}-{} s", span.from_s, span.to_s) } else { String::new() },
                        flow.name.clone(),
                        number(Some(flow.mean_rate), 2),
                        format!("{:.0} %", 100.0 * flow.of_fair_share),
                        number(flow.target, 2),
                        number(Some(flow.weight), 4),
                    ]
                })
            });
            write_columns(f, &["span", "flow", "units", "of a fair share", "target", "weight"], 2, rows)?;
            f.write_str("\n")?;
        }
        writeln!(f, "{:.2} s; seed {}", self.wall_s, self.seed)
    }
}

/// Makes the directory and writes all files, with a plot or without; gives their names. The directory may exist if it
/// is empty or an earlier result, which stays until this one is whole; other files in it stay.
///
/// # Errors
/// The directory holds something else, or cannot be written.
pub fn write(
    directory: &Path,
    model: &Model,
    outcome: &Outcome,
    summary: &Summary,
    plot: bool,
) -> Result<Vec<&'static str>, OutputError> {
    let draft = Draft::begin(directory, &model.to_toml())?;
    draft.write(SUMMARY, &summary.to_json())?;
    series(draft.path(), model, &outcome.samples)?;
    if plot {
        draft.write(PLOT, &timeline(model, outcome).draw())?;
    }
    draft.finish()
}

const FLOW_COLUMNS: [&str; 6] = ["time_s", "flow", "rate", "weight", "target", "price_ratio"];
const LINK_COLUMNS: [&str; 4] = ["time_s", "capacity", "utilisation", "loss"];

fn series(directory: &Path, model: &Model, samples: &[Sample]) -> Result<(), OutputError> {
    let mut flows = Lines::create(directory, FLOWS, &FLOW_COLUMNS)?;
    let mut links = Lines::create(directory, LINKS, &LINK_COLUMNS)?;
    let text = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for Sample { time_s, link, sources } in samples {
        links.write([*time_s, link.capacity, link.utilisation, link.loss].map(|value| value.to_string()))?;
        for (source, sample) in model.sources.iter().zip(sources) {
            let state = sample.state;
            flows.write([
                time_s.to_string(),
                source.name.clone(),
                sample.rate.to_string(),
                text(state.map(|state| state.weight)),
                text(state.and_then(|state| state.target)),
                text(state.map(|state| state.price_ratio)),
            ])?;
        }
    }
    flows.finish()?;
    links.finish()
}

/// Rates, capacity and what transfers need, over the weights that differ from 1.
fn timeline(model: &Model, outcome: &Outcome) -> Timeline {
    let half = model.sample_interval.as_secs_f64() / 2.0;
    let curve = |place: usize, value: fn(SourceState) -> Option<f64>| -> Curve {
        let points = outcome.samples.iter().filter_map(|it| Some((it.time_s, value(it.sources[place].state?)?)));
        thinned(&points.collect::<Curve>())
    };
    let mut lines = Vec::new();
    let mut legend = Vec::new();
    let capacity: Curve = outcome.samples.iter().map(|sample| (sample.time_s - half, sample.link.capacity)).collect();
    lines.push((thinned(&capacity), Style::BOUND));
    let (mut targets, mut weights) = (Vec::new(), Vec::new());
    for (place, source) in outcome.sources.iter().enumerate() {
        let there = outcome.samples.iter().filter(|sample| sample.sources[place].state.is_some());
        let rates: Curve = there.map(|sample| (sample.time_s - half, sample.sources[place].rate)).collect();
        lines.push((thinned(&rates), Style::flow(place)));
        legend.push((format!("{}: {:.2} units", source.name, source.mean_rate), Some(Style::flow(place))));
        if !source.deadlines.is_empty() {
            targets.push((curve(place, |state| state.target), Style::target(place)));
            legend.push((format!("needed by {}", source.name), Some(Style::target(place))));
        }
        let weight = curve(place, |state| Some(state.weight));
        if weight.iter().any(|point| point.1 != 1.0) {
            weights.push((weight, Style::flow(place)));
        }
    }
    legend.push(("capacity".to_owned(), Some(Style::BOUND)));
    let scale = Range::up_to(lines.iter().map(|line| &line.0), 1.0);
    lines.extend(targets.into_iter().map(|(curve, style)| (scale.cut(curve), style)));
    let mut panels = vec![Panel { title: "Rate, units".to_owned(), scale, lines, legend }];
    if !weights.is_empty() {
        let scale = Range::of_weights(weights.iter().map(|line| &line.0));
        panels.push(Panel { title: "Weight".to_owned(), scale, lines: weights, legend: Vec::new() });
    }
    let dues = outcome.sources.iter().filter_map(|source| {
        let all: Vec<f64> = source.deadlines.iter().map(|it| it.due_s).collect();
        due(&source.name, &all)
    });
    Timeline {
        title: format!("{} places, capacity {} ± {}", model.places, model.capacity.mean, model.capacity.spread),
        subtitle: format!("lowtide sim, fluid, {}, seed {}", format_duration(model.duration), model.seed),
        duration: model.duration,
        marks: measured(model.measure_from).into_iter().chain(dues).collect(),
        panels,
    }
}
