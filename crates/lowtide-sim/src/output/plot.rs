// SPDX-License-Identifier: MIT OR Apache-2.0
//! `plot.svg`: the rates of the flows, over the weights of those with a deadline and the queueing delay of the
//! bottlenecks.

use super::Summary;
use crate::{
    observe::{BottleneckSample, FlowSample},
    scenario::{Bottleneck, Flow, Scenario},
};
use lowtide_draw::{
    axis::rate_unit,
    timeline::{Curve, POINTS, Panel, Range, Style, Timeline, due, largest, measured, shortened, thinned},
};
use lowtide_net::{Time, units::format_duration};
use std::time::Duration;

/// Queues with a strip of their own; more of them share one.
const STRIPS: usize = 4;
/// Flows and links with an entry of their own in the legend, at most.
const ENTRIES: usize = 12;
const LINK_ENTRIES: usize = 7;

/// What a plot needs of a run.
pub(super) struct Plot {
    flows: Vec<Flow>,
    links: Vec<Bottleneck>,
    /// Bottlenecks of the forward direction.
    forward: usize,
    duration: Duration,
    measure_from: Duration,
    seed: u64,
    /// Half of the sampling interval, in seconds: a sample stands for the interval before it.
    half: f64,
    rates: Vec<Curve>,
    targets: Vec<Curve>,
    weights: Vec<Curve>,
    delays: Vec<Curve>,
}

impl Plot {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let links: Vec<Bottleneck> = scenario.bottlenecks.iter().chain(&scenario.reverse).cloned().collect();
        Self {
            rates: vec![Vec::new(); scenario.flows.len()],
            targets: vec![Vec::new(); scenario.flows.len()],
            weights: vec![Vec::new(); scenario.flows.len()],
            delays: vec![Vec::new(); links.len()],
            flows: scenario.flows.clone(),
            forward: scenario.bottlenecks.len(),
            duration: scenario.duration,
            measure_from: scenario.measure_from,
            seed: scenario.seed,
            half: scenario.sample_interval.as_secs_f64() / 2.0,
            links,
        }
    }

    pub(super) fn flow(&mut self, sample: &FlowSample<'_>) {
        let at = seconds(sample.now) - self.half;
        let flow = &self.flows[sample.flow];
        let stop = flow.stop.unwrap_or(self.duration).as_secs_f64();
        if (flow.start.as_secs_f64()..=stop).contains(&at) {
            self.rates[sample.flow].push((at, sample.rate_bps));
        }
        if let Some(control) = &sample.control {
            let at = seconds(sample.now);
            self.weights[sample.flow].push((at, control.weight));
            if let Some(target) = control.target_bps {
                self.targets[sample.flow].push((at, target));
            }
        }
    }

    pub(super) fn link(&mut self, sample: &BottleneckSample) {
        self.delays[sample.bottleneck].push((seconds(sample.now) - self.half, sample.queue_ms));
    }

    /// The picture, as SVG.
    pub(super) fn draw(&self, summary: &Summary) -> String {
        let mut panels = vec![self.rates(summary)];
        panels.extend(self.weights());
        panels.extend(self.delays(summary));
        let duration = format_duration(self.duration);
        let dues = summary.flows.iter().filter_map(|flow| {
            let all: Vec<f64> = flow.deadlines.iter().map(|it| it.due_s).collect();
            due(&flow.name, &all)
        });
        let timeline = Timeline {
            title: self.title(),
            subtitle: format!("lowtide sim, {duration}, seed {}", self.seed),
            duration: self.duration,
            marks: measured(self.measure_from).into_iter().chain(dues).collect(),
            panels,
        };
        timeline.draw()
    }

    fn rates(&self, summary: &Summary) -> Panel {
        let rates: Vec<Curve> =
            self.rates.iter().zip(&summary.flows).map(|(curve, flow)| alive(curve, flow.finished_s)).collect();
        let capacity = self.capacity();
        let (unit, unit_name) = rate_unit(largest(rates.iter().chain(&capacity), 1e3));
        let in_unit = |curve: Curve| curve.into_iter().map(|(t, rate)| (t, rate / unit)).collect::<Curve>();
        let mut legend: Vec<_> = summary
            .flows
            .iter()
            .enumerate()
            .take(ENTRIES)
            .map(|(number, flow)| {
                let law = flow.cc.split(':').next().unwrap_or_default();
                let law = if law == flow.name { String::new() } else { format!(" ({law})") };
                let text = format!("{}{law}: {:.2} {unit_name}", flow.name, flow.mean_bps / unit);
                (text, Some(Style::flow(number)))
            })
            .collect();
        if let Some(more) = summary.flows.len().checked_sub(ENTRIES + 1) {
            legend.push((format!("and {} more", more + 1), None));
        }
        let mut lines = Vec::new();
        if let Some(capacity) = capacity {
            lines.push((in_unit(capacity), Style::BOUND));
            legend.push(("capacity".to_owned(), Some(Style::BOUND)));
        }
        lines.extend(rates.into_iter().enumerate().map(|(number, curve)| (in_unit(curve), Style::flow(number))));
        let scale = Range::up_to(lines.iter().map(|line| &line.0), 1e3 / unit);
        for (number, curve) in self.targets.iter().enumerate().filter(|(_, curve)| !curve.is_empty()) {
            lines.push((scale.cut(in_unit(thinned(curve))), Style::target(number)));
            legend.push((format!("needed by {}", self.flows[number].name), Some(Style::target(number))));
        }
        Panel { title: format!("Rate, {unit_name}"), scale, lines, legend }
    }

    /// If there is a deadline.
    fn weights(&self) -> Option<Panel> {
        let of_some = self.weights.iter().enumerate().filter(|(_, curve)| !curve.is_empty());
        let lines: Vec<_> = of_some.map(|(number, curve)| (thinned(curve), Style::flow(number))).collect();
        let scale = Range::of_weights(lines.iter().map(|line| &line.0));
        (!lines.is_empty()).then(|| Panel { title: "Weight".to_owned(), scale, lines, legend: Vec::new() })
    }

    fn delays(&self, summary: &Summary) -> Vec<Panel> {
        let delays: Vec<Curve> = self.delays.iter().map(|curve| thinned(curve)).collect();
        let scale = Range::up_to(&delays, 1.0);
        let describe = |link: &super::LinkSummary| {
            let (name, used) = (shortened(&link.name, 12), link.utilisation * 100.0);
            format!("{name}: {:.1} ms, {used:.0} % used", link.mean_queue_ms)
        };
        let entries = summary.links().iter().map(describe);
        if self.links.len() > 1 && self.links.len() <= STRIPS {
            let strips = self.links.iter().zip(delays).zip(entries);
            let strip = |((link, curve), entry): ((&Bottleneck, Curve), String)| Panel {
                title: format!("Queueing delay of {}, ms", shortened(&link.name, 40)),
                scale,
                lines: vec![(curve, Style::link(0))],
                legend: vec![(entry, Some(Style::link(0)))],
            };
            return strips.map(strip).collect();
        }
        vec![Panel {
            title: "Queueing delay, ms".to_owned(),
            scale,
            lines: delays.into_iter().enumerate().map(|(number, curve)| (curve, Style::link(number))).collect(),
            legend: entries
                .enumerate()
                .map(|(number, entry)| (entry, Some(Style::link(number))))
                .take(LINK_ENTRIES)
                .collect(),
        }]
    }

    /// What the only bottleneck can carry, in bit/s.
    fn capacity(&self) -> Option<Curve> {
        let ([link], 1) = (&self.links[..self.forward], self.forward) else { return None };
        let (schedule, step) = (link.capacity(), self.duration / POINTS as u32);
        let time = |n: u32| Time::ZERO + step * n;
        let point = |n: u32| {
            let bytes = schedule.bytes_between(time(n), time(n + 1));
            (step.as_secs_f64() * (f64::from(n) + 0.5), bytes as f64 * 8.0 / step.as_secs_f64())
        };
        Some((0..POINTS as u32).map(point).collect())
    }

    fn title(&self) -> String {
        let describe = |link: &Bottleneck| {
            let rate = link.schedule.as_ref().map_or(link.rate.to_string(), |schedule| schedule.to_string());
            let (rtt, buffer, queue) = (format_duration(link.rtt), link.buffer, &link.queue);
            format!("{rate}, {rtt}, buffer {buffer}, {queue}")
        };
        match &self.links[..] {
            [only] => describe(only),
            several => several.iter().map(|link| format!("{} {}", link.name, link.rate)).collect::<Vec<_>>().join(", "),
        }
    }
}

fn seconds(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// The curve of a flow as long as it had something to send.
fn alive(curve: &Curve, finished: Option<f64>) -> Curve {
    let end = finished.unwrap_or(f64::INFINITY);
    thinned(&curve.iter().filter(|point| point.0 <= end).copied().collect::<Curve>())
}
