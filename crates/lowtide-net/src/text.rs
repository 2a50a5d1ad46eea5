// SPDX-License-Identifier: MIT OR Apache-2.0
//! Things written as `NAME` or `NAME:KEY=VALUE,KEY=VALUE`, and what is said about a mistake in one.

use std::fmt::{self, Display};

/// Why a text is not what was asked for: one sentence that says what is wrong and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TextError(String);

impl TextError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

/// Parameters that are read and printed by name.
pub(crate) trait Parameters: Sized {
    /// What they belong to.
    const NAME: &'static str;
    /// The names of the parameters. They are set in this order, in whichever order they are written.
    const KEYS: &'static [&'static str];

    /// Sets one of [`Self::KEYS`]. An error says only what is wrong with the value.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String>;

    /// One of [`Self::KEYS`] as [`Parameters::set`] reads it; `None` if it is not set.
    fn get(&self, key: &str) -> Option<String>;

    /// The values of what is not written.
    fn defaults(&self) -> Self;
}

/// Reads `KEY=VALUE,KEY=VALUE` over the values that are there.
pub(crate) fn read<P: Parameters>(mut parameters: P, text: &str) -> Result<P, TextError> {
    let name = P::NAME;
    let mut written: Vec<(&str, &str)> = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            let keys = list(P::KEYS, "or");
            let sentence = format!("\"{part}\" of {name} has no value; write it like KEY=VALUE, where KEY is {keys}");
            return Err(TextError(sentence));
        };
        let key = key.trim();
        if !P::KEYS.contains(&key) {
            let what = format!("a parameter of {name}");
            return Err(unknown(key, &what, P::KEYS));
        }
        if written.iter().any(|(earlier, _)| *earlier == key) {
            return Err(TextError(format!("{key} of {name} is given twice")));
        }
        written.push((key, value.trim()));
    }
    for key in P::KEYS {
        if let Some((_, value)) = written.iter().find(|(written, _)| written == key) {
            parameters.set(key, value).map_err(|why| TextError(format!("{key} of {name}: {why}")))?;
        }
    }
    Ok(parameters)
}

/// Prints `NAME`, and after it the parameters that differ from their defaults.
pub(crate) fn print<P: Parameters>(parameters: &P, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let defaults = parameters.defaults();
    let differing = P::KEYS.iter().filter_map(|key| {
        let value = parameters.get(key)?;
        (defaults.get(key).as_ref() != Some(&value)).then(|| format!("{key}={value}"))
    });
    let differing: Vec<String> = differing.collect();
    let colon = if differing.is_empty() { "" } else { ":" };
    f.pad(&format!("{}{colon}{}", P::NAME, differing.join(",")))
}

/// The sentence about a name that does not exist: the nearest one that does, and all of them.
pub(crate) fn unknown(name: &str, what: &str, known: &[&str]) -> TextError {
    let nearest = nearest(name, known.iter().copied());
    let verb = if known.len() == 1 { "is" } else { "are" };
    let known = list(known, "and");
    TextError(match nearest {
        Some(nearest) => format!("\"{name}\" is not {what}; did you mean {nearest}? There {verb} {known}"),
        None => format!("\"{name}\" is not {what}; there {verb} {known}"),
    })
}

/// The known name that is most like another one, for "did you mean"; `None` where none is like it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // from one half on, names have more in common than not
    let likeness = |known: &&str| (strsim::normalized_damerau_levenshtein(name, known) * 1e3) as u32;
    known.into_iter().max_by_key(likeness).filter(|nearest| likeness(nearest) >= 500)
}

/// `a`, `a and b`, `a, b and c`; or the same with another word.
fn list(names: &[&str], word: &str) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

/// A value from `least` to `most`, both in words of the same kind.
pub(crate) fn within<T: PartialOrd + Copy>(
    value: T,
    least: T,
    most: T,
    print: impl Fn(T) -> String,
) -> Result<T, String> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{} is out of range; it must be from {} to {}", print(value), print(least), print(most)))
    }
}

/// A whole number from `least` to `most`.
pub(crate) fn whole(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u32>() {
        Ok(value) if digits && (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("\"{text}\" is not a whole number from {least} to {most}")),
    }
}

/// `on` or `off`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("\"{text}\" is neither on nor off")),
    }
}

/// What [`switch`] reads.
pub(crate) fn print_switch(on: bool) -> String {
    (if on { "on" } else { "off" }).to_owned()
}

/// The error of a value with a unit, as a part of a sentence.
pub(crate) fn why(error: impl Display) -> String {
    error.to_string()
}
