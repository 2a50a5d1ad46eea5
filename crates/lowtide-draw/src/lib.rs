// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pictures of Lowtide, all as SVG: what a simulation, a trace and the demo draw over time ([`timeline`]), and the
//! figures of the lab ([`chart`]). Both stand on [`svg`], and on [`axis`] and [`Scale`] for where a value is.
//!
//! It is a crate of our own because the plotting crates that were looked at give less here. `plotters` (0.3) writes SVG
//! with whole pixels, no dashed lines, no groups, classes or titles, and fixed colours; figures of the lab need these
//! for further lines, for tooltips, and for pages that are light or dark. `charming` runs ECharts in a JavaScript
//! engine, and `charton` brings data frames and a rasterizer. This one depends on nothing but `libm`, and a picture is
//! the same text on every machine.

pub mod axis;
pub mod chart;
mod layers;
mod scale;
pub mod svg;
pub mod timeline;

pub use layers::{Layer, Named, Point, Quartiles, Stroke};
pub use scale::Scale;
