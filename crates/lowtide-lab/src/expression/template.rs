// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts with expressions in braces: `cdg:g={g}`, `{30 + uniform(0, 5)}s`.

use super::{Answer, Context, Language, context, number, wrong};
use crate::error::{LabError, Result};
use rhai::{Dynamic, NativeCallContext, Scope};

pub(super) fn register(language: &mut Language) {
    language.add(
        "uniform(from, to)",
        "a random number, uniformly distributed; the same for the same seed, whatever the cell",
        |call: NativeCallContext<'_>, from: Dynamic, to: Dynamic| -> Answer<f64> {
            let (from, to) = (number(&from)?, number(&to)?);
            match context(&call) {
                Context::Chance(random) => Ok(from + (to - from) * random.borrow_mut().uniform()),
                _ => wrong("uniform belongs into a scenario or into [draw]"),
            }
        },
    );
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hole<'a> {
    /// Words that stay.
    Words(&'a str),
    /// An expression between braces, without them.
    Expression(&'a str),
}

/// The parts of a text, in their order. An expression may have braces of its own, in pairs.
///
/// # Errors
/// A brace without its partner.
pub(crate) fn parts(text: &str) -> Result<Vec<Hole<'_>>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let end =
            closing(&rest[open..]).ok_or_else(|| LabError::new(format!("a brace has no partner in \"{text}\"")))?;
        parts.push(Hole::Words(&rest[..open]));
        parts.push(Hole::Expression(&rest[open + 1..open + end]));
        rest = &rest[open + end + 1..];
    }
    parts.push(Hole::Words(rest));
    Ok(parts)
}

/// Where the brace that this text begins with is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return None,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// A text with the values of its expressions.
///
/// # Errors
/// A brace without its partner, or what an expression's evaluation says.
pub fn fill(text: &str, language: &Language, functions: &str, scope: &Scope<'_>) -> Result<String> {
    let part = |part: Hole<'_>| match part {
        Hole::Words(words) => Ok(words.to_owned()),
        Hole::Expression(expression) => written(expression, &language.evaluate(functions, expression, scope)?),
    };
    parts(text)?.into_iter().map(part).collect()
}

/// A value as a scenario has it: numbers without needless digits.
fn written(expression: &str, value: &Dynamic) -> Result<String> {
    if let Ok(number) = value.as_float() {
        return Ok(number.to_string());
    }
    if value.is_int() || value.is_bool() || value.is_string() || value.is_char() {
        return Ok(value.to_string());
    }
    Err(LabError::new(format!(
        "`{expression}` is a {}; a text has room for a number, a truth or a text",
        value.type_name()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_cc::Random;
    use std::{cell::RefCell, rc::Rc};

    #[test]
    fn braces_hold_expressions() {
        let language = Language::new(Context::Nothing);
        let mut scope = Scope::new();
        scope.push_constant("g", 0.1).push_constant("rtt", 20.0).push_constant("law", "cdg");
        let filled = |text| fill(text, &language, "fn half(x) { x / 2 }", &scope).map_err(|error| error.to_string());
        assert_eq!(filled("{law}:g={g}"), Ok("cdg:g=0.1".to_owned()));
        assert_eq!(filled("{half(rtt)}ms and {if g < 1 { \"low\" } else { \"high\" }}"), Ok("10ms and low".to_owned()));
        assert_eq!(filled("plain"), Ok("plain".to_owned()));
        assert!(filled("{g").unwrap_err().contains("no partner") && filled("g}").unwrap_err().contains("no partner"));
        assert!(filled("{[1]}").unwrap_err().contains("has room for"));
    }

    #[test]
    fn chance_comes_from_the_seed() {
        let draws = |seed| {
            let language = Language::new(Context::Chance(Rc::new(RefCell::new(Random::new(seed)))));
            fill("{uniform(30, 35)} {uniform(30, 35)}", &language, "", &Scope::new()).unwrap()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        let (first, second) = draws(1).split_once(' ').map(|(a, b)| (a.parse::<f64>(), b.parse::<f64>())).unwrap();
        let (first, second) = (first.unwrap(), second.unwrap());
        assert!((30.0..35.0).contains(&first) && (30.0..35.0).contains(&second) && first != second);
    }
}
