// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is drawn between the scales.

use crate::{
    Scale,
    svg::{Font, Svg},
};

/// Colours of `chart.css`, and dashes for further lines.
const COLOURS: usize = 7;
const DASHES: [&str; 3] = ["", "7 3", "2 3"];

/// Half the size of a point and of a mark.
const POINT: f64 = 2.4;
const MARK: f64 = 5.0;
/// Half the size of a point with a name, and the width of a letter of the name on average.
const DISC: f64 = 4.0;
const NAME_LETTER: f64 = 6.7;
/// Half the width of a box, at the most.
const BOX: f64 = 14.0;

/// How the values of a line look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// The class with its colour.
    pub class: String,
    /// As in stroke-dasharray.
    pub dash: &'static str,
}

impl Stroke {
    /// Of the line of this number.
    pub fn of(number: usize) -> Self {
        Self { class: format!("c{}", number % COLOURS), dash: DASHES[number / COLOURS % DASHES.len()] }
    }

    fn pale() -> Self {
        Self { class: "pale".to_owned(), dash: "5 4" }
    }
}

/// A layer of a drawing.
pub enum Layer {
    /// A line through points, with its name; each point may have a range.
    Curve {
        /// Its name in the legend; empty: none.
        name: String,
        /// How it looks.
        stroke: Stroke,
        /// In the order in which it goes through them.
        points: Vec<Point>,
        /// Whether the points themselves are to be seen.
        dots: bool,
    },
    /// Boxes at places along x, with the name of all of them.
    Boxes {
        /// Their name in the legend; empty: none.
        name: String,
        /// How they look.
        stroke: Stroke,
        /// Each with its value of x.
        boxes: Vec<(f64, Quartiles)>,
        /// Half of a box's width, in values of x.
        half: f64,
    },
    /// Points with their names beside them.
    Points(Vec<Named>),
    /// A value that the paper quotes.
    Mark {
        /// Where across; `None`: all along.
        x: Option<f64>,
        /// Where up; `None`: all along.
        y: Option<f64>,
        /// How it looks; `None`: pale.
        stroke: Option<Stroke>,
        /// Beside it.
        text: String,
    },
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// The least and the greatest value of what `y` is a mean of.
    pub range: Option<(f64, f64)>,
}

/// A point with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Beside it.
    pub name: String,
    /// How it looks.
    pub stroke: Stroke,
}

/// A box: least value, quartiles, greatest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles(pub [f64; 5]);

impl Layer {
    /// What the legend says of it.
    pub(crate) fn entry(&self) -> Option<(Stroke, String)> {
        match self {
            Self::Curve { name, stroke, .. } | Self::Boxes { name, stroke, .. } if !name.is_empty() => {
                Some((stroke.clone(), name.clone()))
            }
            _ => None,
        }
    }

    pub(crate) fn draw(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        match self {
            Self::Curve { name, stroke, points, dots } => curve(svg, (x, y), (name, stroke), points, *dots),
            Self::Boxes { name, stroke, boxes, half } => {
                svg.group(&format!("data {}", stroke.class), name);
                for (at, quartiles) in boxes {
                    quartiles.draw(svg, (x, y), *at, *half);
                }
                svg.end();
            }
            Self::Points(named) => points(svg, (x, y), named),
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

/// Sides of a rectangle: left, top, right, bottom.
type Box4 = [f64; 4];

/// Points, each with its name at the first place around it where nothing else is.
fn points(svg: &mut Svg, (x, y): (&Scale, &Scale), named: &[Named]) {
    let places: Vec<(f64, f64)> = named.iter().map(|point| (x.place(point.x), y.place(point.y))).collect();
    let mut taken: Vec<Box4> = places.iter().map(|(a, b)| [a - DISC, b - DISC, a + DISC, b + DISC]).collect();
    for (point, (a, b)) in named.iter().zip(&places) {
        let width = NAME_LETTER * point.name.chars().count() as f64;
        let candidates = around(*a, *b, width);
        let within = |it: &Box4| it[0] >= x.start && it[2] <= x.end && it[1] >= y.end - 12.0 && it[3] <= y.start;
        let free = |it: &&Box4| within(it) && taken.iter().all(|other| !overlap(it, other));
        let label = candidates.iter().find(free).or_else(|| candidates.iter().find(|it| within(it)));
        let label = *label.unwrap_or(&candidates[0]);
        taken.push(label);
        svg.group(&format!("data {}", point.stroke.class), &point.name);
        svg.area(&[(a - DISC, *b), (*a, b - DISC), (a + DISC, *b), (*a, b + DISC)], "currentColor");
        // a name that is not beside its point has a line to it
        let end = (a.clamp(label[0], label[2]), b.clamp(label[1], label[3]));
        if (end.0 - a).abs() + (end.1 - b).abs() > 2.5 * DISC {
            svg.line(&[(*a, *b), end], "currentColor", 0.7, "");
        }
        let font = Font { size: 11.0, fill: "currentColor", bold: false, anchor: "start" };
        svg.text((label[0], label[3] - 3.0), font, &point.name);
        svg.end();
    }
}

/// Where a name of this width may stand: beside, above and below its point, then farther and farther away.
fn around(a: f64, b: f64, width: f64) -> Vec<Box4> {
    let at = |left: f64, middle: f64| [left, middle - 6.5, left + width, middle + 6.5];
    let (right, left, centre) = (a + DISC + 3.0, a - DISC - 3.0 - width, a - width / 2.0);
    let mut places = vec![at(right, b), at(left, b), at(centre, b - 12.0), at(centre, b + 12.0)];
    for far in [13.0, 26.0, 39.0, 52.0, 65.0, 78.0, 91.0] {
        for side in [right, left, centre] {
            places.extend([at(side, b - far), at(side, b + far)]);
        }
    }
    places
}

fn overlap(a: &Box4, b: &Box4) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lie_on_each_other() {
        let stroke = Stroke::of(0);
        let named =
            |n: usize| Named { x: 50.0 + n as f64, y: 90.0, name: format!("law number {n}"), stroke: stroke.clone() };
        let named: Vec<Named> = (0..10).map(named).collect();
        let x = Scale::new(&[], Some([0.0, 100.0]), false).between(0.0, 500.0);
        let y = Scale::new(&[], Some([0.0, 100.0]), false).between(300.0, 0.0);
        let mut svg = Svg::new(500.0, 300.0);
        points(&mut svg, (&x, &y), &named);
        let file = svg.finish();
        let number = |text: &str, name: &str| -> f64 {
            let rest = text.split_once(&format!("{name}=\"")).unwrap().1;
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let places: Vec<(f64, f64)> =
            file.split("<text ").skip(1).map(|text| (number(text, "x"), number(text, "y"))).collect();
        assert_eq!(places.len(), 10);
        for (n, a) in places.iter().enumerate() {
            assert!(a.0 >= 0.0 && a.0 < 420.0, "{a:?}");
            assert!(
                places[..n].iter().all(|b| (a.0 - b.0).abs() >= 12.0 * NAME_LETTER || (a.1 - b.1).abs() >= 13.0),
                "{places:?}"
            );
        }
    }
}
