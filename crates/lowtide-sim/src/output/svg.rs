// SPDX-License-Identifier: MIT OR Apache-2.0
//! Just enough SVG for a picture.

use std::fmt::{Display, Write};

/// The font that comes with the program, one of the same measures, and whatever there is.
const FONTS: &str = "DejaVu Sans, Verdana, sans-serif";

/// A drawing under way.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// How a text is set.
#[derive(Debug, Clone, Copy)]
pub struct Font {
    /// Height in units.
    pub size: f64,
    /// Colour.
    pub fill: &'static str,
    /// Bold or not.
    pub bold: bool,
    /// `start`, `middle` or `end`: which of its points stands at x.
    pub anchor: &'static str,
}

impl Svg {
    /// An empty one of this size.
    pub fn new(width: f64, height: f64) -> Svg {
        let body = String::new();
        Svg { width, height, body }
    }

    /// A filled polygon.
    pub fn area(&mut self, points: &[(f64, f64)], fill: &str) {
        let d = path(points);
        self.push(format_args!("<path d=\"{d}Z\" fill=\"{fill}\"/>"));
    }

    /// A line through points; `dash` as in stroke-dasharray, or empty.
    pub fn line(&mut self, points: &[(f64, f64)], stroke: &str, width: f64, dash: &str) {
        let d = path(points);
        let dash = match dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        self.push(format_args!("<path d=\"{d}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\"{dash}/>"));
    }

    /// A text, its baseline at y.
    pub fn text(&mut self, (x, y): (f64, f64), font: Font, text: &str) {
        let Font { size, fill, bold, anchor } = font;
        let weight = if bold { " font-weight=\"bold\"" } else { "" };
        let text = escape(text);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\"{weight} fill=\"{fill}\" \
             text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// The whole file, on white.
    pub fn finish(self) -> String {
        let Svg { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }

    fn push(&mut self, element: impl Display) {
        // writing to a String cannot fail
        let _ = writeln!(self.body, "{element}");
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        let _ = write!(d, "{command}{x:.1} {y:.1}");
    }
    d
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written() {
        let mut svg = Svg::new(10.0, 5.0);
        svg.area(&[(0.0, 1.0), (2.0, 3.04)], "#123456");
        svg.line(&[(0.0, 1.0), (2.0, 3.0)], "#000000", 1.5, "4 3");
        let font = Font { size: 12.0, fill: "#000000", bold: true, anchor: "end" };
        svg.text((1.0, 2.0), font, "a < b & c");
        let text = svg.finish();
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert!(text.contains("<path d=\"M0.0 1.0L2.0 3.0Z\" fill=\"#123456\"/>"));
        assert!(text.contains("stroke-dasharray=\"4 3\""));
        assert!(text.contains("font-weight=\"bold\"") && text.contains("a &lt; b &amp; c"));
    }
}
