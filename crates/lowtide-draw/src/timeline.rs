// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panels of curves over time, one below the other, with a legend beside them.

use crate::{
    axis::{Axis, label},
    svg::{Font, Svg},
};
use std::time::Duration;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 736.0;
/// Where the legend begins.
const LEGEND: f64 = 760.0;
/// Top and height of the first panel, height of the others, what lies above each of them, and below the last.
const TOP: f64 = 86.0;
const FIRST: f64 = 264.0;
const STRIP: f64 = 114.0;
const ABOVE: (f64, f64) = (48.0, 34.0);
const BELOW: f64 = 48.0;

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
pub const POINTS: usize = 340;

/// Points as (seconds, value), in the order of time.
pub type Curve = Vec<(f64, f64)>;

/// A picture.
#[derive(Debug)]
pub struct Timeline {
    /// Above it.
    pub title: String,
    /// Below the title.
    pub subtitle: String,
    /// What the axis of time has, from 0.
    pub duration: Duration,
    /// Instants in seconds, with what they are.
    pub marks: Vec<(f64, String)>,
    /// The first one is the tallest.
    pub panels: Vec<Panel>,
}

/// Curves on one scale.
#[derive(Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Of all its curves.
    pub scale: Range,
    /// Its curves.
    pub lines: Vec<(Curve, Style)>,
    /// Beside it.
    pub legend: Vec<(String, Option<Style>)>,
}

/// What a panel's values are drawn between.
#[derive(Clone, Copy, Debug)]
pub enum Range {
    /// 0 and this.
    Linear(f64),
    /// This and 1, by their logarithms.
    Logarithmic(f64),
    /// 0 and this many rows, which are no values.
    Rows(u32),
}

/// How a curve looks.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: &'static str,
    dash: &'static str,
    width: f64,
}

impl Style {
    /// What is aimed at or possible, not measured.
    pub const BOUND: Self = Self { colour: PALE, dash: "5 4", width: 1.2 };

    /// The flow at this place.
    pub const fn flow(place: usize) -> Self {
        let (colour, dash) = (COLOURS[place % COLOURS.len()], DASHES[place / COLOURS.len() % DASHES.len()]);
        Self { colour, dash, width: 1.6 }
    }

    /// What the flow at this place aims at.
    pub const fn target(place: usize) -> Self {
        Self { dash: "1 2", width: 1.3, ..Self::flow(place) }
    }

    /// The queue at this place. Queues are grey: no colour means a flow and a queue.
    pub const fn link(place: usize) -> Self {
        let colour = if place.is_multiple_of(2) { "#444444" } else { "#a0a0a0" };
        Self { colour, dash: DASHES[place / 2 % DASHES.len()], width: 1.3 }
    }
}

impl Timeline {
    /// As SVG.
    pub fn draw(&self) -> String {
        self.drawing().finish()
    }

    /// The drawing, to be set beside others.
    pub fn drawing(&self) -> Svg {
        let spans = self.spans();
        let bottom = spans.last().map_or(TOP, |span| span.1);
        let mut svg = Svg::new(WIDTH, bottom + BELOW);
        let time = Axis { zero: LEFT, end: RIGHT, full: self.duration.as_secs_f64() };
        svg.text((LEFT, 28.0), STRONG, &shortened(&self.title, 100));
        svg.text((LEFT, 47.0), PLAIN, &self.subtitle);
        for (number, (panel, span)) in self.panels.iter().zip(&spans).enumerate() {
            panel.grid(&mut svg, time, *span, if number == 0 { 6.0 } else { 4.0 });
        }
        self.times(&mut svg, time, &spans);
        let mut y = 0.0;
        for (panel, span) in self.panels.iter().zip(&spans) {
            for (curve, style) in &panel.lines {
                let points: Vec<_> =
                    curve.iter().map(|(t, v)| (time.place(*t), panel.scale.place(*v, *span))).collect();
                svg.line(&points, style.colour, style.width, style.dash);
            }
            y = panel.legend(&mut svg, span.0.max(y));
        }
        svg
    }

    /// Top and bottom of each panel.
    fn spans(&self) -> Vec<(f64, f64)> {
        let mut bottom = TOP - ABOVE.0;
        let span = |number| {
            let (above, height) = match number {
                0 => (ABOVE.0, FIRST),
                1 => (ABOVE.0, STRIP),
                _ => (ABOVE.1, STRIP),
            };
            let top = bottom + above;
            bottom = top + height;
            (top, bottom)
        };
        (0..self.panels.len()).map(span).collect()
    }

    /// The axis of time, and the marks.
    fn times(&self, svg: &mut Svg, time: Axis, spans: &[(f64, f64)]) {
        let bottom = spans.last().map_or(TOP, |span| span.1);
        let tick = Font { size: 11.0, anchor: "middle", ..PLAIN };
        for value in time.ticks(8.0) {
            svg.text((time.place(value), bottom + 17.0), tick, &label(value));
        }
        svg.text((f64::midpoint(LEFT, RIGHT), bottom + 36.0), tick, "Time, s");
        for (at, text) in &self.marks {
            let x = time.place(*at);
            for (top, bottom) in spans {
                svg.line(&[(x, *top), (x, *bottom)], PALE, 1.0, "1 3");
            }
            svg.text((x + 4.0, TOP + FIRST + 15.0), Font { size: 11.0, ..PLAIN }, text);
        }
    }
}

impl Panel {
    /// Lines across, their values, and above them what they are.
    fn grid(&self, svg: &mut Svg, time: Axis, span: (f64, f64), ticks: f64) {
        let tick = Font { size: 11.0, anchor: "end", ..PLAIN };
        for value in self.scale.ticks(ticks) {
            let y = self.scale.place(value, span);
            svg.line(&[(time.zero, y), (time.end, y)], GRID, 1.0, "");
            svg.text((time.zero - 7.0, y + 4.0), tick, &label(value));
        }
        svg.text((time.zero, span.0 - 10.0), Font { fill: INK, ..PLAIN }, &self.title);
    }

    /// From `top` on; gives where the next one may begin.
    fn legend(&self, svg: &mut Svg, top: f64) -> f64 {
        let mut y = top + 4.0;
        for (text, style) in &self.legend {
            if let Some(Style { colour, dash, .. }) = style {
                svg.line(&[(LEGEND, y - 4.0), (LEGEND + 22.0, y - 4.0)], colour, 2.2, dash);
            }
            svg.text((LEGEND + 29.0, y), Font { fill: INK, ..PLAIN }, &shortened(text, 31));
            y += 19.0;
        }
        y - 4.0
    }
}

impl Range {
    /// The points of a curve that lie on it.
    pub fn cut(self, curve: Curve) -> Curve {
        let Self::Linear(full) = self else { return curve };
        curve.into_iter().filter(|point| point.1 <= full).collect()
    }

    /// From 0 to a little above the largest value, which is at least `least`.
    pub fn up_to<'a>(curves: impl IntoIterator<Item = &'a Curve>, least: f64) -> Self {
        Self::Linear(1.05 * largest(curves, least))
    }

    /// From the power of ten below the smallest value to 1.
    pub fn of_weights<'a>(curves: impl IntoIterator<Item = &'a Curve>) -> Self {
        let least = curves.into_iter().flatten().map(|point| point.1).filter(|value| *value > 0.0).fold(0.1, f64::min);
        Self::Logarithmic(libm::pow(10.0, libm::floor(libm::log10(least) + 1e-9)))
    }

    fn place(self, value: f64, (top, bottom): (f64, f64)) -> f64 {
        match self {
            Self::Linear(full) => Axis { zero: bottom, end: top, full }.place(value),
            Self::Rows(number) => Axis { zero: bottom, end: top, full: number.into() }.place(value),
            Self::Logarithmic(least) => {
                let decades = |value: f64| libm::log10(value / least);
                Axis { zero: bottom, end: top, full: decades(1.0) }.place(decades(value))
            }
        }
    }

    fn ticks(self, number: f64) -> Vec<f64> {
        match self {
            Self::Linear(full) => Axis { zero: 0.0, end: 1.0, full }.ticks(number),
            Self::Rows(_) => Vec::new(),
            Self::Logarithmic(least) => {
                let decades = |value: &f64| Some(value * 10.0).filter(|next| *next < 1.001);
                std::iter::successors(Some(least), decades).collect()
            }
        }
    }
}

/// The mark where the means begin, unless that is at once.
pub fn measured(from: Duration) -> Option<(f64, String)> {
    (!from.is_zero()).then(|| (from.as_secs_f64(), "means from here".to_owned()))
}

/// The mark where a transfer is due; none of those that are repeated.
pub fn due(name: &str, all: &[f64]) -> Option<(f64, String)> {
    let [only] = all else { return None };
    Some((*only, format!("{name} is due")))
}

/// The largest value, at least `least`.
pub fn largest<'a>(curves: impl IntoIterator<Item = &'a Curve>, least: f64) -> f64 {
    curves.into_iter().flatten().map(|point| point.1).filter(|value| value.is_finite()).fold(least, f64::max)
}

/// Neighbours in one point, their mean, where there are too many.
pub fn thinned(curve: &[(f64, f64)]) -> Curve {
    let mean = |points: &[(f64, f64)]| {
        let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / points.len() as f64, sum.1 / points.len() as f64)
    };
    curve.chunks(curve.len().div_ceil(POINTS).max(1)).map(mean).collect()
}

/// A text of at most so many characters.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 1).chain(['…']).collect() }
}
