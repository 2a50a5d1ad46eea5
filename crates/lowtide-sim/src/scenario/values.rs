// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values in texts of a scenario: amounts of data, times, numbers within a range.

use lowtide_net::{
    BufferSize, Rate,
    units::{UnitError, parse_duration},
};
use std::time::Duration;

/// Why a text is no source: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub(super) String);

impl From<String> for SourceError {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

/// An amount of data above zero.
pub(super) fn bytes(text: &str) -> Result<u64, SourceError> {
    match text.parse() {
        Ok(BufferSize::Bytes(bytes @ 1..)) => Ok(bytes),
        _ => Err(SourceError(format!("\"{text}\" is not an amount of data; write it like 10MB, 64KiB or 1500B"))),
    }
}

pub(super) fn rate(text: &str) -> Result<Rate, SourceError> {
    text.parse().map_err(|error: UnitError| SourceError(error.to_string()))
}

pub(super) fn time_or_none(text: &str) -> Result<Duration, SourceError> {
    parse_duration(text).map_err(|error| SourceError(error.to_string()))
}

/// A length of time above zero.
pub(super) fn time(text: &str) -> Result<Duration, SourceError> {
    match time_or_none(text)? {
        Duration::ZERO => Err(SourceError("it has to be above zero".into())),
        time => Ok(time),
    }
}

/// A number within a range.
pub(super) fn number(text: &str, least: f64, most: f64) -> Result<f64, SourceError> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| SourceError(format!("\"{text}\" is not a number from {least} to {most}")))
}

/// A whole number from 1 on.
pub(super) fn whole(text: &str, most: u32) -> Result<u32, SourceError> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| SourceError(format!("\"{text}\" is not a whole number from 1 to {most}")))
}
