// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chart: two scales, the layers between them, and the legend below.

use crate::{
    Layer, Scale, Stroke,
    svg::{Font, Svg},
};

const WIDTH: f64 = 560.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = TOP + 226.0;
/// From the x axis to the first row of the legend.
const BELOW: f64 = 62.0;
/// Height of a row of the legend.
const ROW: f64 = 20.0;
/// Line, and text of the legend; width of a letter on average.
const SAMPLE: f64 = 20.0;
const LETTER: f64 = 6.6;

const TEXT: Font = Font { size: 12.0, fill: "currentColor", bold: false, anchor: "start" };

/// The style sheet of charts, light and dark: the class `plot`, and within it the colours of its lines.
pub const STYLE: &str = include_str!("chart.css");

/// A chart.
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Of the values across.
    pub x: Scale,
    /// Of the values up.
    pub y: Scale,
    /// What the values across are.
    pub x_label: String,
    /// What the values up are.
    pub y_label: String,
    /// What the entries of the legend are values of; empty: nothing.
    pub legend: String,
    /// What lies between the scales, the first one undermost.
    pub layers: Vec<Layer>,
}

impl Chart {
    /// The drawing, in the classes and colours of [`STYLE`].
    pub fn draw(self) -> Svg {
        let rows = self.legend_rows();
        let mut svg = Svg::new(WIDTH, BOTTOM + BELOW + ROW * rows.len().saturating_sub(1) as f64 + 6.0);
        let x = self.x.clone().between(LEFT, RIGHT);
        let y = self.y.clone().between(BOTTOM, TOP);
        self.axes(&mut svg, &x, &y);
        for layer in &self.layers {
            layer.draw(&mut svg, &x, &y);
        }
        for (number, row) in rows.iter().enumerate() {
            let at = BOTTOM + BELOW + ROW * number as f64 - 6.0;
            for (left, stroke, text) in row {
                entry(&mut svg, (*left, at), stroke.as_ref(), text);
            }
        }
        svg
    }

    fn axes(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        svg.text((LEFT, 16.0), Font { size: 13.0, bold: true, ..TEXT }, &self.title);
        let (across, up) = (x.ticks(7.0), y.ticks(5.0));
        svg.group("grid", "");
        for (place, _) in &up {
            svg.line(&[(LEFT, *place), (RIGHT, *place)], "currentColor", 1.0, "");
        }
        for (place, _) in &across {
            svg.line(&[(*place, BOTTOM), (*place, BOTTOM + 4.0)], "currentColor", 1.0, "");
        }
        svg.end();
        svg.group("pale", "");
        svg.line(&[(LEFT, BOTTOM), (RIGHT, BOTTOM)], "currentColor", 1.0, "");
        svg.text((LEFT, TOP - 10.0), Font { size: 11.5, ..TEXT }, &self.y_label);
        for (place, text) in &up {
            svg.text((LEFT - 7.0, place + 4.0), Font { anchor: "end", ..TEXT }, text);
        }
        // labels that would lie on each other are left out
        let mut free = f64::NEG_INFINITY;
        for (place, text) in &across {
            let half = LETTER * text.chars().count() as f64 / 2.0;
            if place - half >= free {
                svg.text((*place, BOTTOM + 18.0), Font { anchor: "middle", ..TEXT }, text);
                free = place + half + 4.0;
            }
        }
        let middle = f64::midpoint(LEFT, RIGHT);
        svg.text((middle, BOTTOM + 36.0), Font { anchor: "middle", size: 11.5, ..TEXT }, &self.x_label);
        svg.end();
    }

    /// The entries of the legend, in rows: where each begins, its line and its text.
    fn legend_rows(&self) -> Vec<Vec<(f64, Option<Stroke>, String)>> {
        let named = self.layers.iter().filter_map(Layer::entry).map(|(stroke, text)| (Some(stroke), text));
        let head = (!self.legend.is_empty()).then(|| (None, format!("{}:", self.legend)));
        let mut rows = vec![Vec::new()];
        let mut left = LEFT;
        for (stroke, text) in head.into_iter().chain(named) {
            let room = stroke.as_ref().map_or(0.0, |_| SAMPLE + 6.0);
            let width = room + LETTER * text.chars().count() as f64 + 14.0;
            if left + width > WIDTH && left > LEFT {
                rows.push(Vec::new());
                left = LEFT;
            }
            if let Some(row) = rows.last_mut() {
                row.push((left, stroke, text));
            }
            left += width;
        }
        rows
    }
}

fn entry(svg: &mut Svg, (left, at): (f64, f64), stroke: Option<&Stroke>, text: &str) {
    let Some(stroke) = stroke else {
        svg.group("pale", "");
        svg.text((left, at), TEXT, text);
        svg.end();
        return;
    };
    svg.group(&stroke.class, "");
    svg.line(&[(left, at - 4.0), (left + SAMPLE, at - 4.0)], "currentColor", 2.4, stroke.dash);
    svg.end();
    svg.text((left + SAMPLE + 6.0, at), TEXT, text);
}
