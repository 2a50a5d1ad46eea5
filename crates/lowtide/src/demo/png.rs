// SPDX-License-Identifier: MIT OR Apache-2.0
//! The picture as PNG, the same on every machine: its font comes with the program.

use anyhow::{Context, Result};
use resvg::{tiny_skia, usvg};

/// Pixels for each unit of the SVG, for screens that have so many.
const SCALE: f32 = 2.0;

/// Renders an SVG whose text is in DejaVu Sans.
pub(super) fn render(svg: &str) -> Result<Vec<u8>> {
    let mut options = usvg::Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    let tree = usvg::Tree::from_str(svg, &options).context("cannot read our own picture")?;
    let size = tree.size().to_int_size();
    let size = size.scale_by(SCALE).context("our own picture is empty")?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).context("no memory for the picture")?;
    let scale = tiny_skia::Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, scale, &mut pixels.as_mut());
    pixels.encode_png().context("cannot encode the picture")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(text: &str) -> tiny_skia::Pixmap {
        let svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='60' height='20'>\
             <text x='2' y='15' font-family='DejaVu Sans'>{text}</text></svg>"
        );
        tiny_skia::Pixmap::decode_png(&render(&svg).unwrap()).unwrap()
    }

    #[test]
    fn there_is_text_without_fonts_on_the_machine() {
        let dark = |text| picture(text).pixels().iter().filter(|p| p.alpha() > 128).count();
        assert_eq!(picture("").width(), 120);
        assert_eq!(dark(""), 0);
        assert!(dark("ms") > 50);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(render("<svg").is_err());
    }
}
