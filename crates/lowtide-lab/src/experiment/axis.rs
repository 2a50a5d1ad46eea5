// SPDX-License-Identifier: MIT OR Apache-2.0
//! What varies.

use crate::error::{LabError, Result};
use rhai::{Dynamic, Scope};
use serde::Deserialize;
use std::collections::BTreeSet;
use toml::{Table, Value};

/// An axis: a variable of the experiment's expressions, and its values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The variable.
    pub name: String,
    /// What it is, for figures.
    #[serde(default)]
    pub label: String,
    /// Its unit, for figures.
    #[serde(default)]
    pub unit: String,
    /// The values.
    pub values: Vec<AxisValue>,
    /// Those of a quick look, as they are written; all, if this is not given.
    pub quick: Option<Vec<AxisValue>>,
}

/// A value of an axis.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A case: its `label`, which is the variable's value, and further variables of its own.
    Case(Table),
}

impl Axis {
    /// What figures call it.
    pub fn title(&self) -> String {
        let label = if self.label.is_empty() { &self.name } else { &self.label };
        if self.unit.is_empty() { label.clone() } else { format!("{label}, {}", self.unit) }
    }

    /// The values of a quick look or of a whole one.
    pub fn values_of(&self, quick: bool) -> Vec<&AxisValue> {
        match self.quick.as_ref().filter(|_| quick) {
            None => self.values.iter().collect(),
            Some(some) => {
                let wanted = words(some);
                self.values.iter().filter(|value| wanted.contains(&value.written())).collect()
            }
        }
    }

    /// Leaves these values, as they are written.
    pub(super) fn keep(&mut self, some: &[AxisValue]) -> Result<(), String> {
        let (wanted, own) = (words(some), words(&self.values));
        let written = |value: &AxisValue| wanted.contains(&value.written());
        if let Some(value) = some.iter().find(|it| !own.contains(&it.written())) {
            return Err(format!("the axis `{}` has no value {}", self.name, value.written()));
        }
        self.values.retain(written);
        // a quick look at nothing would be none
        self.quick.iter_mut().for_each(|quick| quick.retain(written));
        self.quick.take_if(|quick| quick.is_empty());
        if self.values.is_empty() { Err(format!("of the axis `{}` there is no value", self.name)) } else { Ok(()) }
    }

    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<()> {
        let fail = |what: String| Err(LabError::new(format!("axis {}: {what}", self.name)));
        if !plain(&self.name) || rhai::Engine::new_raw().compile_expression(&self.name).is_err() {
            return fail("its name has to be a word of letters, digits and _, and not one of Rhai's own".to_owned());
        }
        if self.values.is_empty() {
            return fail("it has no values".to_owned());
        }
        let mut known = BTreeSet::new();
        for value in &self.values {
            if let AxisValue::Case(table) = value {
                if !matches!(table.get("label"), Some(Value::String(_))) {
                    return fail("a case needs a label, like { label = \"CUBIC\", cc = \"cubic\" }".to_owned());
                }
                if let Some((name, _)) = table.iter().find(|(name, value)| !plain(name) || variable(value).is_none()) {
                    return fail(format!("`{name}` of a case has to be a word with a number, a text or a truth"));
                }
            }
            if !known.insert(value.written()) {
                return fail(format!("the value {} is there twice", value.written()));
            }
        }
        if self.quick.as_ref().is_some_and(Vec::is_empty) {
            return fail("`quick` has no values; without it a quick look is at all of them".to_owned());
        }
        match self.quick.iter().flatten().find(|value| !known.contains(&value.written())) {
            Some(value) => fail(format!("`quick` has {}, which is not one of its values", value.written())),
            None => Ok(()),
        }
    }
}

impl AxisValue {
    /// How it is written where cells are named.
    pub fn written(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::Case(table) => table.get("label").and_then(Value::as_str).unwrap_or_default().to_owned(),
        }
    }

    /// As a number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Sets the variables that it stands for.
    pub fn set(&self, name: &str, scope: &mut Scope<'static>) {
        match self {
            Self::Number(number) => scope.push_constant(name, *number),
            Self::Text(_) | Self::Case(_) => scope.push_constant(name, self.written()),
        };
        if let Self::Case(table) = self {
            for (name, value) in table.iter().filter(|(name, _)| *name != "label") {
                if let Some(value) = variable(value) {
                    scope.push_constant_dynamic(name, value);
                }
            }
        }
    }
}

/// How they are written.
pub(super) fn words(values: &[AxisValue]) -> BTreeSet<String> {
    values.iter().map(AxisValue::written).collect()
}

/// A value of a case as a variable.
fn variable(value: &Value) -> Option<Dynamic> {
    match value {
        Value::String(text) => Some(text.clone().into()),
        Value::Integer(number) => Some((*number as f64).into()),
        Value::Float(number) => Some((*number).into()),
        Value::Boolean(truth) => Some((*truth).into()),
        _ => None,
    }
}

/// The value of an axis that stands somewhere else, as it is written.
pub(crate) fn written(value: &Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        _ => Err(LabError::new(format!("{value} is no value of an axis"))),
    }
}

/// Whether this is a name that an expression can use.
pub(super) fn plain(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|it| it.is_ascii_alphanumeric() || it == '_')
}
