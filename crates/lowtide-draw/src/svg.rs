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

    /// Width and height.
    pub fn size(&self) -> (f64, f64) {
        (self.width, self.height)
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

    /// What follows, up to [`Svg::end`], is of this class, and says `title` when it is pointed at, unless that is
    /// empty.
    pub fn group(&mut self, class: &str, title: &str) {
        let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
        self.push(format_args!("<g class=\"{class}\">{title}"));
    }

    /// The end of the latest [`Svg::group`].
    pub fn end(&mut self) {
        self.push("</g>");
    }

    /// Another drawing, its upper left corner here.
    pub fn inset(&mut self, (x, y): (f64, f64), drawing: &Svg) {
        let Svg { width, height, body } = drawing;
        self.push(format_args!("<svg x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width}\" height=\"{height}\">\n{body}</svg>"));
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

    /// For a page: an element of this class, as wide as there is room, without a background. Readers who cannot see it
    /// hear `label`.
    pub fn finish_in_page(&self, class: &str, label: &str) -> String {
        let (Svg { width, height, body }, label) = (self, escape(label));
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n{body}</svg>\n"
        )
    }

    /// The whole file, with a style sheet in which the class `class` is that of the drawing.
    pub fn finish_styled(self, class: &str, style: &str) -> String {
        let Svg { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\">\n<style>\n{style}</style>\n{body}</svg>\n"
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
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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

    #[test]
    fn a_drawing_goes_into_a_page_and_into_another() {
        let mut inner = Svg::new(10.0, 5.0);
        inner.group("curve", "1 < 2");
        inner.line(&[(0.0, 1.0), (2.0, 3.0)], "currentColor", 1.0, "");
        inner.end();
        let page = inner.finish_in_page("plot", "say \"it\"");
        assert!(page.starts_with("<svg class=\"plot\"") && page.contains("aria-label=\"say &quot;it&quot;\""));
        assert!(page.contains("<g class=\"curve\"><title>1 &lt; 2</title>") && page.contains("</g>"));
        let mut outer = Svg::new(20.0, 20.0);
        outer.inset((4.0, 6.0), &inner);
        let file = outer.finish_styled("plot", ".plot{color:red}");
        assert!(
            file.contains("<svg x=\"4.0\" y=\"6.0\" width=\"10\" height=\"5\">") && file.contains(".plot{color:red}")
        );
        assert!(!file.contains("fill=\"#ffffff\""), "{file}");
    }
}
