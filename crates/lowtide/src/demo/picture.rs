// SPDX-License-Identifier: MIT OR Apache-2.0
//! The four acts side by side: who has how much of the link, and below it what its queue adds.

use super::{
    acts::{Bulk, LINK_MBPS, RTT_MS},
    recording::{Deadline, Flow, Recording, mean, percent_of},
};
use crate::cli::Place;
use lowtide_draw::{
    axis::Axis,
    svg::{Font, Svg},
};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 512.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 986.0;
/// Between two acts.
const GAP: f64 = 16.0;
/// Seconds for one point of a curve.
const INTERVAL: f64 = 1.0;

/// Width and height that a label within an area needs.
const LABEL: (f64, f64) = (90.0, 20.0);

/// Blue and orange that colour-blind people tell apart (Okabe and Ito).
const FOREGROUND: &str = "#0072b2";
const BULK: &str = "#e69f00";
const QUEUE: &str = "#9a9a9a";
const INK: &str = "#222222";
const PALE: &str = "#666666";
const GRID: &str = "#e4e4e4";

const PLAIN: Font = Font { size: 12.0, fill: PALE, bold: false, anchor: "start" };
const STRONG: Font = Font { size: 13.0, fill: INK, bold: true, anchor: "start" };

const RATES: Axis = Axis { zero: 366.0, end: 136.0, full: LINK_MBPS as f64 * 1.15 };
const DELAYS: Axis = Axis { zero: 478.0, end: 408.0, full: RTT_MS as f64 * 1.25 };

/// Values over time, as (seconds, value).
type Curve = [(f64, f64)];

/// One act's place.
struct Panel<'a> {
    recording: &'a Recording,
    left: f64,
    right: f64,
    seconds: f64,
}

impl Panel<'_> {
    fn x(&self, t: f64) -> f64 {
        Axis { zero: self.left, end: self.right, full: self.seconds }.place(t)
    }
}

/// The picture, as SVG.
pub(super) fn draw(recordings: &[Recording], place: Place) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    title(&mut svg, place);
    let alone = recordings.first().map_or(0.0, |first| first.mean(Flow::Foreground));
    for (index, panel) in panels(recordings).iter().enumerate() {
        grid(&mut svg, panel, index == 0);
        headings(&mut svg, panel, alone);
        rates(&mut svg, panel);
        if let Some(deadline) = panel.recording.deadline() {
            mark_deadline(&mut svg, panel, &deadline);
        }
        delays(&mut svg, panel);
    }
    svg.finish()
}

/// All acts with the same scale of time.
fn panels(recordings: &[Recording]) -> Vec<Panel<'_>> {
    let seconds = |recording: &Recording| recording.length().max(recording.act.seconds as f64);
    let total: f64 = recordings.iter().map(seconds).sum();
    let gaps = GAP * recordings.len().saturating_sub(1) as f64;
    let per_second = (RIGHT - LEFT - gaps) / total;
    let mut left = LEFT;
    let mut place = |recording| {
        let seconds = seconds(recording);
        let right = left + seconds * per_second;
        let panel = Panel { recording, left, right, seconds };
        left = right + GAP;
        panel
    };
    recordings.iter().map(&mut place).collect()
}

fn title(svg: &mut Svg, place: Place) {
    let large = Font { size: 19.0, ..STRONG };
    svg.text((LEFT, 30.0), large, "Who gets the link: a foreground flow and a bulk transfer");
    let origin = match place {
        Place::Kernel => "real kernel TCP, measured by lowtide demo",
        Place::Sim => "simulated by lowtide demo",
    };
    let link = format!("{LINK_MBPS} Mbit/s, {RTT_MS} ms, buffer of one bandwidth-delay product; {origin}");
    svg.text((LEFT, 50.0), PLAIN, &link);
    let mut x = LEFT;
    for (colour, name, width) in
        [(FOREGROUND, "foreground (CUBIC)", 170.0), (BULK, "bulk transfer", 122.0), (QUEUE, "queueing delay", 0.0)]
    {
        svg.area(&[(x, 63.0), (x + 12.0, 63.0), (x + 12.0, 75.0), (x, 75.0)], colour);
        svg.text((x + 18.0, 73.5), Font { fill: INK, ..PLAIN }, name);
        x += width;
    }
}

fn grid(svg: &mut Svg, panel: &Panel, labelled: bool) {
    let across = |y: f64| [(panel.left, y), (panel.right, y)];
    let tick = Font { size: 11.0, anchor: "end", ..PLAIN };
    for (scale, step, limit) in [(RATES, 5, LINK_MBPS), (DELAYS, RTT_MS / 2, RTT_MS)] {
        for value in (0..=limit).step_by(step as usize) {
            let y = scale.place(value as f64);
            svg.line(&across(y), GRID, 1.0, "");
            if labelled {
                svg.text((panel.left - 7.0, y + 4.0), tick, &value.to_string());
            }
        }
    }
    if labelled {
        let unit = Font { size: 11.0, ..PLAIN };
        svg.text((8.0, RATES.end - 2.0), unit, "Mbit/s");
        svg.text((8.0, DELAYS.end - 2.0), unit, "ms");
    }
    let tick = Font { anchor: "middle", ..tick };
    let step = time_step(panel.seconds);
    for t in (0..=panel.seconds as u64).step_by(step as usize) {
        let unit = if t == 0 { " s" } else { "" };
        svg.text((panel.x(t as f64), DELAYS.zero + 17.0), tick, &format!("{t}{unit}"));
    }
}

/// Seconds between two labels, so that there are about three.
fn time_step(seconds: f64) -> u64 {
    let steps = [1, 2, 5, 10, 20, 50, 100];
    steps.into_iter().find(|step| seconds / *step as f64 <= 4.0).unwrap_or(200)
}

fn headings(svg: &mut Svg, panel: &Panel, alone: f64) {
    let recording = panel.recording;
    svg.text((panel.left, 104.0), STRONG, &recording.act.name());
    let kept = percent_of(recording.mean(Flow::Foreground), alone);
    let result = match recording.act.bulk {
        Bulk::Absent => "the measure for the others".to_owned(),
        _ => format!("foreground keeps {kept:.0} %"),
    };
    svg.text((panel.left, 121.0), Font { fill: INK, ..PLAIN }, &result);
}

/// The two flows, one on top of the other, and the capacity.
fn rates(svg: &mut Svg, panel: &Panel) {
    let recording = panel.recording;
    let foreground = recording.series(Flow::Foreground, INTERVAL);
    let bulk = recording.series(Flow::Bulk, INTERVAL);
    let floor: Vec<_> = foreground.iter().map(|(t, _)| (*t, 0.0)).collect();
    let both: Vec<_> = foreground.iter().zip(&bulk).map(|((t, a), (_, b))| (*t, a + b)).collect();
    if recording.act.bulk != Bulk::Absent {
        svg.area(&band(panel, RATES, &foreground, &both), BULK);
    }
    svg.area(&band(panel, RATES, &floor, &foreground), FOREGROUND);
    let capacity = RATES.place(LINK_MBPS as f64);
    svg.line(&[(panel.left, capacity), (panel.right, capacity)], INK, 1.3, "5 4");
    if recording.act.number == 1 {
        let small = Font { size: 11.0, fill: INK, ..PLAIN };
        svg.text((panel.left + 4.0, capacity - 6.0), small, &format!("link: {LINK_MBPS} Mbit/s"));
    }
    label_rates(svg, panel, &foreground, &both);
}

/// The means, each where its area is thick enough; that of a bulk transfer too thin for it above.
fn label_rates(svg: &mut Svg, panel: &Panel, foreground: &Curve, both: &Curve) {
    let recording = panel.recording;
    let label = Font { size: 13.0, fill: "#ffffff", bold: true, anchor: "middle" };
    let text = |flow| format!("{:.1} Mbit/s", recording.mean(flow));
    let middle = (panel.left + panel.right) / 2.0;
    let below = RATES.place(recording.mean(Flow::Foreground) / 2.0) + 4.0;
    svg.text((middle, below), label, &text(Flow::Foreground));
    if recording.act.bulk == Bulk::Absent {
        return;
    }
    let dark = Font { fill: INK, ..label };
    match room(panel, foreground, both) {
        Some((x, y)) => svg.text((x, y + 4.0), dark, &text(Flow::Bulk)),
        None => {
            let above = RATES.place(LINK_MBPS as f64) - 7.0;
            let text = format!("bulk: {}", text(Flow::Bulk));
            svg.text((middle, above), dark, &text);
        }
    }
}

/// The middle of the place between two curves that has the most room for a label, if it is enough.
fn room(panel: &Panel, lower: &Curve, upper: &Curve) -> Option<(f64, f64)> {
    let points = (LABEL.0 / (panel.x(INTERVAL) - panel.left)).ceil() as usize;
    let places = lower.windows(points).zip(upper.windows(points));
    let place = |(lower, upper): (&Curve, &Curve)| {
        // the highest point of the lower curve and the lowest of the upper one
        let floor = lower.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let ceiling = upper.iter().map(|(_, value)| *value).fold(f64::MAX, f64::min);
        let middle = (lower.first()?.0 + lower.last()?.0) / 2.0;
        Some((middle, RATES.place(floor), RATES.place(ceiling)))
    };
    let (middle, floor, ceiling) =
        places.filter_map(place).max_by(|a, b| f64::total_cmp(&(a.1 - a.2), &(b.1 - b.2)))?;
    (floor - ceiling >= LABEL.1).then(|| (panel.x(middle), (floor + ceiling) / 2.0))
}

fn mark_deadline(svg: &mut Svg, panel: &Panel, deadline: &Deadline) {
    let x = panel.x(deadline.due);
    svg.line(&[(x, RATES.end - 6.0), (x, RATES.zero)], INK, 2.0, "");
    let font = Font { size: 11.0, fill: INK, bold: false, anchor: "end" };
    svg.text((x - 5.0, RATES.end + 10.0), font, &deadline.sentence());
}

fn delays(svg: &mut Svg, panel: &Panel) {
    let queue = &panel.recording.queue;
    let series: Vec<_> = (0_u32..).map(|second| f64::from(second) + 0.5).zip(queue.iter().copied()).collect();
    let floor: Vec<_> = series.iter().map(|(t, _)| (*t, 0.0)).collect();
    svg.area(&band(panel, DELAYS, &floor, &series), QUEUE);
    let text = format!("mean {:.0} ms", mean(queue));
    let font = Font { size: 11.0, fill: INK, ..PLAIN };
    svg.text((panel.left + 4.0, DELAYS.end + 5.0), font, &text);
}

/// What lies between two curves. Their first and last values hold up to the edges of their time.
fn band(panel: &Panel, scale: Axis, lower: &Curve, upper: &Curve) -> Vec<(f64, f64)> {
    let edge = |curve: &Curve| -> Vec<(f64, f64)> {
        let half = curve.first().map_or(0.0, |(t, _)| *t);
        let first = curve.first().map(|(t, value)| (t - half, *value));
        let last = curve.last().map(|(t, value)| (t + half, *value));
        first.into_iter().chain(curve.iter().copied()).chain(last).collect()
    };
    let lower = edge(lower).into_iter().rev();
    let place = |(t, value)| (panel.x(t), scale.place(value));
    edge(upper).into_iter().chain(lower).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::recording::examples::constant;

    const RATES_OF_ACTS: [(f64, f64); 4] = [(18.4, 0.0), (9.2, 9.0), (17.5, 0.9), (12.0, 6.4)];

    #[test]
    fn everything_measured_is_in_it() {
        let svg = draw(&constant(RATES_OF_ACTS, Some(18.5)), Place::Kernel);
        for text in [
            "18.4 Mbit/s",
            "9.2 Mbit/s",
            "bulk: 0.9 Mbit/s",
            "6.4 Mbit/s",
            "foreground keeps 50 %",
            "foreground keeps 95 %",
            "finished 1.5 s before the deadline",
            "mean 10 ms",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches(&format!("fill=\"{FOREGROUND}\"")).count(), 5);
        assert_eq!(svg.matches(&format!("fill=\"{BULK}\"")).count(), 4);
    }

    #[test]
    fn the_curves_lie_where_the_values_are() {
        let recordings = constant(RATES_OF_ACTS, None);
        let panels = panels(&recordings);
        assert!((panels[3].right - RIGHT).abs() < 1e-6);
        assert_eq!((panels[1].x(0.0), panels[1].x(20.0)), (panels[1].left, panels[1].right));
        let (lower, upper) = ([(0.5, 0.0), (1.5, 0.0)], [(0.5, 5.0), (1.5, 10.0)]);
        let band = band(&panels[0], RATES, &lower, &upper);
        let (x, y) = (|t| panels[0].x(t), |rate| RATES.place(rate));
        assert_eq!(band[..2], [(x(0.0), y(5.0)), (x(0.5), y(5.0))]);
        assert_eq!(band[2..5], [(x(1.5), y(10.0)), (x(2.0), y(10.0)), (x(2.0), y(0.0))]);
        assert_eq!(RATES.place(0.0), RATES.zero);
        assert_eq!(RATES.place(1e9), RATES.end);
    }

    #[test]
    fn labels_go_where_there_is_room() {
        let recordings = constant(RATES_OF_ACTS, None);
        let panel = &panels(&recordings)[1];
        let curve =
            |value: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> { (0..20).map(|t| (t as f64 + 0.5, value(t))).collect() };
        let floor = curve(&|_| 5.0);
        assert_eq!(room(panel, &floor, &curve(&|_| 6.0)), None);
        let late = curve(&|t| if t < 10 { 6.0 } else { 15.0 });
        let (x, y) = room(panel, &floor, &late).unwrap();
        assert!(x > panel.x(10.0) && x < panel.right);
        assert!((y - RATES.place(10.0)).abs() < 1e-9);
        assert_eq!(room(panel, &[], &[]), None);
    }

    #[test]
    fn time_is_labelled_sparsely() {
        assert_eq!([10.0, 20.0, 25.0, 37.5, 300.0].map(time_step), [5, 5, 10, 10, 100]);
    }
}
