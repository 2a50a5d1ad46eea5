// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantities as people write them: `20mbit`, `40ms`, `1bdp`, `0.1%`.
//!
//! Numbers are decimal fractions without sign or exponent; units are not case-sensitive. What is
//! printed reads back as the same value.

mod buffer_size;
mod decimal;
mod duration;
mod probability;
mod rate;

pub use buffer_size::BufferSize;
pub use duration::{format_duration, parse_duration};
pub use probability::Probability;
pub use rate::Rate;

/// A text that is not the quantity that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not {what}; write it like {example}")]
pub struct UnitError {
    text: String,
    what: &'static str,
    example: &'static str,
}

impl UnitError {
    pub(crate) fn new(text: &str, what: &'static str, example: &'static str) -> Self {
        Self { text: text.to_owned(), what, example }
    }
}
