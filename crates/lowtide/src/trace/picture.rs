// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as a picture: for each connection its window, its round trips, and what happened to it.

use std::{collections::BTreeMap, time::Duration};

use lowtide_draw::{
    svg::{Font, Svg},
    timeline::{Curve, Panel, Range, Style, Timeline},
};

use super::read::{Connection, Point, Trace};

/// Connections that are drawn: those with the most records.
const DRAWN: usize = 8;
/// Points of a curve, at most; two for each pixel, so that the least and the greatest of its time can be seen.
const POINTS: usize = 1360;
/// Ticks of one kind of event, at most: one for each pixel.
const TICKS: f64 = 680.0;

pub(super) fn draw(trace: &Trace, name: &str) -> String {
    let mut drawn: Vec<_> = trace.connections.iter().collect();
    drawn.sort_by_key(|(number, connection)| (usize::MAX - connection.points.len(), **number));
    let left_out = drawn.len().saturating_sub(DRAWN);
    drawn.truncate(DRAWN);
    drawn.sort_by_key(|(number, _)| **number);
    let all = trace.connections.values().flat_map(|connection| &connection.points);
    let end = all.map(|point| point.t).fold(0.001, f64::max);
    let subtitle = |number: u64| {
        let mut text = format!("{name}, connection {number}, from {}", trace.started);
        if trace.dropped > 0 {
            text += &format!("; {} records were dropped", trace.dropped);
        }
        if left_out > 0 {
            text += &format!("; {left_out} more connections are not drawn");
        }
        text
    };
    let drawings: Vec<Svg> =
        drawn.iter().map(|(number, connection)| timeline(connection, subtitle(**number), end).drawing()).collect();
    page(&drawings, name)
}

/// The drawings, one below the other.
fn page(drawings: &[Svg], name: &str) -> String {
    let width = drawings.iter().map(|drawing| drawing.size().0).fold(400.0, f64::max);
    let height = drawings.iter().map(|drawing| drawing.size().1).sum::<f64>().max(80.0);
    let mut page = Svg::new(width, height);
    let mut y = 0.0;
    for drawing in drawings {
        page.inset((0.0, y), drawing);
        y += drawing.size().1;
    }
    if drawings.is_empty() {
        let font = Font { size: 14.0, fill: "#222222", bold: false, anchor: "start" };
        page.text((20.0, 44.0), font, &format!("{name} has no records"));
    }
    page.finish()
}

fn timeline(connection: &Connection, subtitle: String, end: f64) -> Timeline {
    let points = &connection.points;
    let panels = [Some(windows(points)), round_trips(points), events(points, end)];
    Timeline {
        title: format!("{}, {} {}", connection.law, if connection.receives { "from" } else { "to" }, connection.peer),
        subtitle,
        duration: Duration::from_secs_f64(end),
        marks: Vec::new(),
        panels: panels.into_iter().flatten().collect(),
    }
}

fn windows(points: &[Point]) -> Panel {
    let cwnd = curve(points, |point| Some(point.cwnd));
    let (ruler, most) = (Style::flow(0), cwnd.iter().map(|point| point.1).fold(2.0, f64::max));
    // a threshold far above the window is none in practice
    let ssthresh = curve(points, |point| point.ssthresh.filter(|threshold| *threshold <= 2.0 * most));
    let mut lines = vec![(cwnd, ruler)];
    let mut legend = vec![("cwnd".to_owned(), Some(ruler))];
    if !ssthresh.is_empty() {
        lines.insert(0, (ssthresh, Style::BOUND));
        legend.push(("ssthresh".to_owned(), Some(Style::BOUND)));
    }
    let scale = Range::up_to(lines.iter().map(|line| &line.0), 2.0);
    Panel { title: "Window, segments".to_owned(), scale, lines, legend }
}

fn round_trips(points: &[Point]) -> Option<Panel> {
    let milliseconds = |value: fn(&Point) -> Option<f64>| curve(points, move |point| Some(value(point)? / 1e3));
    let curves = [
        ("greatest of the round", milliseconds(|point| point.rtt_max_us), Style::link(1)),
        ("least of the round", milliseconds(|point| point.rtt_min_us), Style::flow(2)),
        ("smoothed", milliseconds(|point| point.srtt_us), Style::link(0)),
    ];
    let some: Vec<_> = curves.into_iter().filter(|(_, curve, _)| !curve.is_empty()).collect();
    let scale = Range::up_to(some.iter().map(|(_, curve, _)| curve), 1.0);
    let legend = some.iter().map(|(name, _, style)| ((*name).to_owned(), Some(*style))).collect();
    let lines: Vec<_> = some.into_iter().map(|(_, curve, style)| (curve, style)).collect();
    (!lines.is_empty()).then(|| Panel { title: "Round trip, ms".to_owned(), scale, lines, legend })
}

/// A row of ticks for each kind of event, but for rounds, which the curves have.
fn events(points: &[Point], end: f64) -> Option<Panel> {
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.event != "round") {
        kinds.entry(&point.event).or_default().push(point.t);
    }
    let rows = u32::try_from(kinds.len()).unwrap_or(u32::MAX);
    let mut lines = Vec::new();
    let mut legend = Vec::new();
    for (row, (kind, times)) in kinds.iter().enumerate() {
        let (bottom, style) = (f64::from(rows) - row as f64 - 1.0, Style::flow(row));
        legend.push((format!("{kind}: {}", times.len()), Some(style)));
        let mut columns: Vec<i64> = times.iter().map(|t| (t / end * TICKS) as i64).collect();
        columns.dedup();
        lines.extend(columns.into_iter().map(|column| {
            let t = (column as f64 + 0.5) / TICKS * end;
            (vec![(t, bottom + 0.1), (t, bottom + 0.9)], style)
        }));
    }
    (rows > 0).then(|| Panel { title: "Events".to_owned(), scale: Range::Rows(rows), lines, legend })
}

/// What the points have; where they are too many, the least and the greatest of each part of the time.
fn curve(points: &[Point], value: impl Fn(&Point) -> Option<f64>) -> Curve {
    let all: Curve = points.iter().filter_map(|point| Some((point.t, value(point)?))).collect();
    if all.len() <= POINTS {
        return all;
    }
    let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let extremes = |part: &[(f64, f64)]| {
        let (least, most) = (*part.iter().min_by(by_value)?, *part.iter().max_by(by_value)?);
        Some(if least.0 <= most.0 { [least, most] } else { [most, least] })
    };
    all.chunks(all.len().div_ceil(POINTS / 2)).filter_map(extremes).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(t: f64, event: &str, cwnd: f64) -> Point {
        let event = event.to_owned();
        Point { t, event, cwnd, ssthresh: Some(1e9), srtt_us: Some(4e4), rtt_min_us: None, rtt_max_us: None }
    }

    fn trace(connections: u64) -> Trace {
        let connection = |_| Connection {
            law: "vegas".to_owned(),
            peer: "192.0.2.1:5201".to_owned(),
            receives: false,
            points: vec![point(0.0, "round", 10.0), point(1.0, "loss", 5.0), point(1.1, "loss", 5.0)],
        };
        Trace { connections: (1..=connections).map(|n| (n, connection(n))).collect(), ..Trace::default() }
    }

    #[test]
    fn a_connection_has_its_panels() {
        let svg = draw(&trace(1), "a.jsonl");
        for part in ["vegas, to 192.0.2.1:5201", "Window, segments", "Round trip, ms", "Events", "loss: 2", "smoothed"]
        {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("ssthresh") && !svg.contains("round: "), "{svg}");
    }

    #[test]
    fn what_is_not_drawn_is_said() {
        let svg = draw(&Trace { dropped: 3, ..trace(10) }, "a.jsonl");
        assert!(svg.contains("3 records were dropped; 2 more connections are not drawn"));
        assert_eq!(svg.matches("Window, segments").count(), 8);
        assert!(draw(&trace(0), "a.jsonl").contains("a.jsonl has no records"));
    }

    #[test]
    fn a_long_curve_keeps_its_extremes() {
        let mut points: Vec<Point> = (0..100_000).map(|n| point(f64::from(n), "round", 10.0)).collect();
        points[77_777].cwnd = 1.0;
        points[33_333].cwnd = 99.0;
        let curve = curve(&points, |point| Some(point.cwnd));
        assert!(curve.len() <= POINTS && curve.contains(&(77_777.0, 1.0)) && curve.contains(&(33_333.0, 99.0)));
    }
}
