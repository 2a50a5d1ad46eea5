// SPDX-License-Identifier: MIT OR Apache-2.0
//! `plot.svg`: the rates of the flows over the queueing delay of the bottlenecks.

use super::{
    Summary,
    axis::{Axis, label, rate_unit},
    svg::{Font, Svg},
};
use crate::{
    observe::{BottleneckSample, FlowSample},
    scenario::{Bottleneck, Flow, Scenario},
};
use lowtide_net::{Time, units::format_duration};
use std::time::Duration;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 736.0;
/// Where the legend begins.
const LEGEND: f64 = 760.0;
const RATES: (f64, f64) = (86.0, 350.0);
/// Top of the uppermost strip of queueing delay, the height of a strip, and what lies between two of them.
const DELAYS: (f64, f64, f64) = (398.0, 114.0, 34.0);
/// Below the lowest strip.
const BOTTOM: f64 = 48.0;
/// Queues with a strip of their own; more of them share one.
const STRIPS: usize = 4;

/// Colours that colour-blind people tell apart (Okabe and Ito), without the yellow, which is too light for a line.
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000"];
/// With all colours used, further flows are dashed.
const DASHES: [&str; 3] = ["", "7 3", "2 2"];
const INK: &str = "#222222";
const PALE: &str = "#666666";
const GRID: &str = "#e4e4e4";

const PLAIN: Font = Font { size: 12.0, fill: PALE, bold: false, anchor: "start" };
const STRONG: Font = Font { size: 14.0, fill: INK, bold: true, anchor: "start" };

/// Points of a curve, at most: half as many as there are pixels.
const POINTS: usize = 340;

/// Flows with an entry of their own in the legend, at most.
const ENTRIES: usize = 12;

/// The samples of one flow or bottleneck, as (seconds, value).
type Curve = Vec<(f64, f64)>;

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
    delays: Vec<Curve>,
}

impl Plot {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let links: Vec<Bottleneck> = scenario.bottlenecks.iter().chain(&scenario.reverse).cloned().collect();
        Self {
            rates: vec![Vec::new(); scenario.flows.len()],
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
    }

    pub(super) fn link(&mut self, sample: &BottleneckSample) {
        self.delays[sample.bottleneck].push((seconds(sample.now) - self.half, sample.queue_ms));
    }

    /// The picture, as SVG.
    pub(super) fn draw(&self, summary: &Summary) -> String {
        let strips = self.strips();
        let bottom = strips[strips.len() - 1].1;
        let mut svg = Svg::new(WIDTH, bottom + BOTTOM);
        let rates: Vec<Curve> =
            self.rates.iter().zip(&summary.flows).map(|(curve, flow)| alive(curve, flow.finished_s)).collect();
        let delays: Vec<Curve> = self.delays.iter().map(thinned).collect();
        let capacity = self.capacity();
        let top = largest(rates.iter().chain(&capacity), 1e3);
        let (unit, unit_name) = rate_unit(top);
        let time = Axis { zero: LEFT, end: RIGHT, full: self.duration.as_secs_f64() };
        let rate = Axis { zero: RATES.1, end: RATES.0, full: top / unit * 1.05 };
        let full = largest(&delays, 1.0) * 1.05;

        self.title(&mut svg);
        grid(&mut svg, time, rate, &format!("Rate, {unit_name}"), 6.0);
        for (number, (top, end)) in strips.iter().enumerate() {
            let title = match &self.links[number] {
                link if strips.len() > 1 => format!("Queueing delay of {}, ms", shortened(&link.name, 40)),
                _ => "Queueing delay, ms".to_owned(),
            };
            grid(&mut svg, time, Axis { zero: *end, end: *top, full }, &title, 4.0);
        }
        self.times(&mut svg, time, &strips);
        if let Some(capacity) = &capacity {
            svg.line(&path(capacity, time, rate, unit), PALE, 1.2, "5 4");
        }
        for (number, curve) in rates.iter().enumerate() {
            let (colour, dash) = style(number);
            svg.line(&path(curve, time, rate, unit), colour, 1.6, dash);
        }
        for (number, curve) in delays.iter().enumerate() {
            let (top, end) = strips[number.min(strips.len() - 1)];
            let (colour, dash) = link_style(if strips.len() > 1 { 0 } else { number });
            svg.line(&path(curve, time, Axis { zero: end, end: top, full }, 1.0), colour, 1.3, dash);
        }
        self.legend(&mut svg, summary, (unit, unit_name), capacity.is_some());
        svg.finish()
    }

    /// Top and bottom of each strip of queueing delay.
    fn strips(&self) -> Vec<(f64, f64)> {
        let (top, height, gap) = DELAYS;
        let number = if self.links.len() <= STRIPS { self.links.len() } else { 1 };
        (0..number).map(|n| top + n as f64 * (height + gap)).map(|top| (top, top + height)).collect()
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

    fn title(&self, svg: &mut Svg) {
        let describe = |link: &Bottleneck| {
            let rate = link.schedule.as_ref().map_or(link.rate.to_string(), |schedule| schedule.to_string());
            let (rtt, buffer, queue) = (format_duration(link.rtt), link.buffer, &link.queue);
            format!("{rate}, {rtt}, buffer {buffer}, {queue}")
        };
        let text = match &self.links[..] {
            [only] => describe(only),
            several => several.iter().map(|link| format!("{} {}", link.name, link.rate)).collect::<Vec<_>>().join(", "),
        };
        svg.text((LEFT, 28.0), STRONG, &shortened(&text, 100));
        let duration = format_duration(self.duration);
        svg.text((LEFT, 47.0), PLAIN, &format!("lowtide sim, {duration}, seed {}", self.seed));
    }

    /// The axis of time, and where the means begin.
    fn times(&self, svg: &mut Svg, time: Axis, strips: &[(f64, f64)]) {
        let bottom = strips[strips.len() - 1].1;
        let tick = Font { size: 11.0, anchor: "middle", ..PLAIN };
        for value in time.ticks(8.0) {
            svg.text((time.place(value), bottom + 17.0), tick, &label(value));
        }
        svg.text((f64::midpoint(LEFT, RIGHT), bottom + 36.0), tick, "Time, s");
        if !self.measure_from.is_zero() {
            let x = time.place(self.measure_from.as_secs_f64());
            for (top, bottom) in [RATES].iter().chain(strips).copied() {
                svg.line(&[(x, top), (x, bottom)], PALE, 1.0, "1 3");
            }
            svg.text((x + 4.0, RATES.1 + 15.0), Font { size: 11.0, ..PLAIN }, "means from here");
        }
    }

    fn legend(&self, svg: &mut Svg, summary: &Summary, (unit, unit_name): (f64, &str), capacity: bool) {
        let mut y = RATES.0 + 4.0;
        let mut entry = |svg: &mut Svg, (colour, dash), text: &str| {
            svg.line(&[(LEGEND, y - 4.0), (LEGEND + 22.0, y - 4.0)], colour, 2.2, dash);
            svg.text((LEGEND + 29.0, y), Font { fill: INK, ..PLAIN }, &shortened(text, 31));
            y += 19.0;
        };
        for (number, flow) in summary.flows.iter().enumerate().take(ENTRIES) {
            let law = flow.cc.split(':').next().unwrap_or_default();
            let law = if law == flow.name { String::new() } else { format!(" ({law})") };
            entry(svg, style(number), &format!("{}{law}: {:.2} {unit_name}", flow.name, flow.mean_bps / unit));
        }
        if let Some(more) = summary.flows.len().checked_sub(ENTRIES + 1) {
            entry(svg, ("#ffffff", ""), &format!("and {} more", more + 1));
        }
        if capacity {
            entry(svg, (PALE, "5 4"), "capacity");
        }
        y = y.max(DELAYS.0 + 4.0);
        let strips = self.strips();
        for (number, link) in summary.links().iter().enumerate().take(7) {
            if strips.len() > 1 {
                y = strips[number].0 + 4.0;
            }
            let (colour, dash) = link_style(if strips.len() > 1 { 0 } else { number });
            svg.line(&[(LEGEND, y - 4.0), (LEGEND + 22.0, y - 4.0)], colour, 2.2, dash);
            let text = format!(
                "{}: {:.1} ms, {:.0} % used",
                shortened(&link.name, 12),
                link.mean_queue_ms,
                link.utilisation * 100.0
            );
            svg.text((LEGEND + 29.0, y), Font { fill: INK, ..PLAIN }, &shortened(&text, 31));
            y += 19.0;
        }
    }
}

/// Queues are grey: no colour means a flow and a queue.
fn link_style(number: usize) -> (&'static str, &'static str) {
    let grey = if number.is_multiple_of(2) { "#444444" } else { "#a0a0a0" };
    (grey, DASHES[number / 2 % DASHES.len()])
}

fn style(number: usize) -> (&'static str, &'static str) {
    (COLOURS[number % COLOURS.len()], DASHES[number / COLOURS.len() % DASHES.len()])
}

fn seconds(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// Lines across, their values, and above them what they are.
fn grid(svg: &mut Svg, time: Axis, axis: Axis, title: &str, ticks: f64) {
    let tick = Font { size: 11.0, anchor: "end", ..PLAIN };
    for value in axis.ticks(ticks) {
        let y = axis.place(value);
        svg.line(&[(time.zero, y), (time.end, y)], GRID, 1.0, "");
        svg.text((time.zero - 7.0, y + 4.0), tick, &label(value));
    }
    svg.text((time.zero, axis.end - 10.0), Font { fill: INK, ..PLAIN }, title);
}

fn path(curve: &Curve, time: Axis, value: Axis, unit: f64) -> Vec<(f64, f64)> {
    curve.iter().map(|(t, v)| (time.place(*t), value.place(v / unit))).collect()
}

/// The curve of a flow as long as it had something to send.
fn alive(curve: &Curve, finished: Option<f64>) -> Curve {
    let end = finished.unwrap_or(f64::INFINITY);
    thinned(&curve.iter().filter(|point| point.0 <= end).copied().collect())
}

/// Neighbours in one point, their mean, where there are too many.
fn thinned(curve: &Curve) -> Curve {
    let mean = |points: &[(f64, f64)]| {
        let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / points.len() as f64, sum.1 / points.len() as f64)
    };
    curve.chunks(curve.len().div_ceil(POINTS).max(1)).map(mean).collect()
}

fn largest<'a>(curves: impl IntoIterator<Item = &'a Curve>, least: f64) -> f64 {
    curves.into_iter().flatten().map(|point| point.1).filter(|value| value.is_finite()).fold(least, f64::max)
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 1).chain(['…']).collect() }
}
