// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is drawn between the scales.

use super::scale::Scale;
use lowtide_sim::output::svg::{Font, Svg};

/// Colours of `style.css`, and dashes for further lines.
const COLOURS: usize = 7;
const DASHES: [&str; 3] = ["", "7 3", "2 3"];

/// Half the size of a point and of a mark.
const POINT: f64 = 2.4;
const MARK: f64 = 5.0;
/// Half the width of a box, at the most.
const BOX: f64 = 14.0;

/// How the values of a line look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stroke {
    /// The class with its colour.
    pub(super) class: String,
    /// As in stroke-dasharray.
    pub(super) dash: &'static str,
}

impl Stroke {
    /// Of the line of this number.
    pub(super) fn of(number: usize) -> Self {
        Self { class: format!("c{}", number % COLOURS), dash: DASHES[number / COLOURS % DASHES.len()] }
    }

    fn pale() -> Self {
        Self { class: "pale".to_owned(), dash: "5 4" }
    }
}

/// A layer of a drawing.
pub(super) enum Layer {
    /// A line through points, with its name; each point may have a range.
    Curve {
        name: String,
        stroke: Stroke,
        points: Vec<Point>,
        /// Whether the points themselves are to be seen.
        dots: bool,
    },
    /// Boxes at places along x, with the name of all of them.
    Boxes { name: String, stroke: Stroke, boxes: Vec<(f64, Quartiles)>, half: f64 },
    /// A value that the paper quotes.
    Mark { x: Option<f64>, y: Option<f64>, stroke: Option<Stroke>, text: String },
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) range: Option<(f64, f64)>,
}

/// A box: least value, quartiles, greatest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quartiles(pub(super) [f64; 5]);

impl Layer {
    /// What the legend says of it.
    pub(super) fn entry(&self) -> Option<(Stroke, String)> {
        match self {
            Self::Curve { name, stroke, .. } | Self::Boxes { name, stroke, .. } if !name.is_empty() => {
                Some((stroke.clone(), name.clone()))
            }
            _ => None,
        }
    }

    pub(super) fn draw(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        match self {
            Self::Curve { name, stroke, points, dots } => curve(svg, (x, y), (name, stroke), points, *dots),
            Self::Boxes { name, stroke, boxes, half } => {
                svg.group(&format!("data {}", stroke.class), name);
                for (at, quartiles) in boxes {
                    quartiles.draw(svg, (x, y), *at, *half);
                }
                svg.end();
            }
            Self::Mark { x: across, y: up, stroke, text } => mark(svg, (x, y), (*across, *up), stroke.as_ref(), text),
        }
    }
}

fn curve(svg: &mut Svg, (x, y): (&Scale, &Scale), (name, stroke): (&str, &Stroke), points: &[Point], dots: bool) {
    let points: Vec<&Point> = points.iter().filter(|point| x.has(point.x)).collect();
    svg.group(&format!("data {}", stroke.class), name);
    let above = points.iter().filter_map(|point| point.range.map(|(_, high)| (x.place(point.x), y.place(high))));
    let below = points.iter().rev().filter_map(|point| point.range.map(|(low, _)| (x.place(point.x), y.place(low))));
    let band: Vec<(f64, f64)> = above.chain(below).collect();
    if band.len() > 2 {
        svg.group("band", "");
        svg.area(&band, "currentColor");
        svg.end();
    }
    let places: Vec<(f64, f64)> = points.iter().map(|point| (x.place(point.x), y.place(point.y))).collect();
    svg.line(&places, "currentColor", if dots { 1.8 } else { 1.4 }, stroke.dash);
    for (a, b) in places.into_iter().filter(|_| dots) {
        svg.area(&[(a - POINT, b), (a, b - POINT), (a + POINT, b), (a, b + POINT)], "currentColor");
    }
    svg.end();
}

impl Quartiles {
    fn draw(&self, svg: &mut Svg, (x, y): (&Scale, &Scale), at: f64, half: f64) {
        let [least, lower, median, upper, most] = self.0.map(|value| y.place(value));
        let left = x.place(at - half).max(x.place(at) - BOX);
        let right = x.place(at + half).min(x.place(at) + BOX);
        let middle = f64::midpoint(left, right);
        svg.line(&[(middle, least), (middle, lower)], "currentColor", 1.2, "");
        svg.line(&[(middle, upper), (middle, most)], "currentColor", 1.2, "");
        for end in [least, most] {
            svg.line(&[(middle - 4.0, end), (middle + 4.0, end)], "currentColor", 1.2, "");
        }
        let corners = [(left, lower), (right, lower), (right, upper), (left, upper), (left, lower)];
        svg.group("band", "");
        svg.area(&corners, "currentColor");
        svg.end();
        svg.line(&corners, "currentColor", 1.2, "");
        svg.line(&[(left, median), (right, median)], "currentColor", 2.4, "");
    }
}

fn mark(svg: &mut Svg, (x, y): (&Scale, &Scale), at: (Option<f64>, Option<f64>), stroke: Option<&Stroke>, text: &str) {
    let pale = Stroke::pale();
    let (stroke, font) =
        (stroke.unwrap_or(&pale), Font { size: 11.0, fill: "currentColor", bold: false, anchor: "start" });
    svg.group(&format!("mark {}", stroke.class), text);
    match at {
        (Some(across), Some(up)) => {
            let (a, b) = (x.place(across), y.place(up));
            let corners = [(a - MARK, b), (a, b - MARK), (a + MARK, b), (a, b + MARK), (a - MARK, b)];
            svg.line(&corners, "currentColor", 1.6, "");
            svg.text((a + MARK + 3.0, b + 4.0), font, text);
        }
        (None, Some(up)) => {
            let b = y.place(up);
            svg.line(&[(x.start, b), (x.end, b)], "currentColor", 1.2, pale.dash);
            svg.text((x.start + 4.0, b - 5.0), font, text);
        }
        (Some(across), None) => {
            let a = x.place(across);
            svg.line(&[(a, y.start), (a, y.end)], "currentColor", 1.2, pale.dash);
            svg.text((a + 4.0, y.end + 12.0), font, text);
        }
        (None, None) => {}
    }
    svg.end();
}
