// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured of a run.

use super::number;
use rhai::{Array, Dynamic};
use serde::{Deserialize, Serialize};

/// A measured value, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number; `None`: there was nothing to measure.
    Number(Option<f64>),
    /// A distribution.
    List(Vec<f64>),
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number.is_finite().then_some(number))
    }
}

impl Value {
    /// The result of an expression.
    pub(super) fn from_dynamic(result: Dynamic) -> Result<Self, String> {
        if result.is_unit() {
            return Ok(Self::Number(None));
        }
        let kind = result.type_name();
        match result.try_cast_result::<Array>() {
            Ok(list) => list.iter().map(number).collect::<Result<_, _>>().map(Self::List).map_err(|it| it.to_string()),
            Err(single) => number(&single)
                .map(Self::from)
                .map_err(|_| format!("a number or a list of numbers is expected, not a {kind}")),
        }
    }

    /// The numbers in it.
    pub fn numbers(&self) -> &[f64] {
        match self {
            Self::Number(number) => number.as_slice(),
            Self::List(list) => list,
        }
    }
}
