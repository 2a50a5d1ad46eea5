// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of each law in a trace, in the order in which its `X_inspect` writes them (`law/*.h`).

use crate::table::{Entry, LAWS, PHANTOM_SIGNALS};
use Scale::{Chance, Number, Switch, Word};

pub use crate::table::{Scale, Value};

/// A value as people see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shown {
    /// There is none yet.
    Nothing,
    /// In its unit.
    Number(f64),
    /// On or off.
    Switch(bool),
    /// One of a few words.
    Word(&'static str),
}

/// `LAW_NO_VALUE` of `law/law.h`.
const NO_VALUE: i64 = i64::MIN;

impl Value {
    /// What the program wrote, as people see it.
    pub fn show(&self, written: i64) -> Shown {
        match self.scale {
            _ if written == NO_VALUE => Shown::Nothing,
            Number(unit) => Shown::Number(written as f64 * unit),
            Chance => Shown::Number(-libm::expm1(-(written as f64) / 65_536.0)),
            Switch => Shown::Switch(written != 0),
            Word(words) => {
                usize::try_from(written).ok().and_then(|at| words.get(at)).map_or(Shown::Nothing, |it| Shown::Word(it))
            }
        }
    }
}

/// The values of a law of ours, by its name; of another name those that phantom signals have on a law of the kernel.
pub fn values(law: &str, ours: bool) -> &'static [Value] {
    if !ours {
        return PHANTOM_SIGNALS;
    }
    let means = |entry: &&Entry| entry.name == law || entry.spelled.contains(&law);
    LAWS.iter().find(means).map_or(&[], |entry| entry.values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ported;
    use std::collections::BTreeSet;

    #[test]
    fn every_law_of_ours_has_values_with_names_of_their_own() {
        for law in Ported::names() {
            let values = values(law, true);
            let names: BTreeSet<_> = values.iter().map(|value| value.name).collect();
            assert!((3..=8).contains(&values.len()) && names.len() == values.len(), "{law}: {names:?}");
        }
    }

    #[test]
    fn values_are_shown_in_their_units() {
        let of = |law, name| *values(law, true).iter().find(|value| value.name == name).unwrap();
        assert_eq!(of("vegas", "alpha").show(3 << 15), Shown::Number(1.5));
        assert_eq!(of("cdg", "base_us").show(NO_VALUE), Shown::Nothing);
        assert_eq!(of("cdg", "queue").show(3), Shown::Word("backoff"));
        assert_eq!(of("cdg", "queue").show(9), Shown::Nothing);
        assert_eq!(of("eclipse", "draining").show(1), Shown::Switch(true));
        let Shown::Number(chance) = of("cdg", "backoff_probability").show(65_536) else { panic!("a number") };
        assert!((chance - 0.632).abs() < 1e-3, "{chance}");
        assert_eq!(values("cubic", false)[1].show(2_500_000), Shown::Number(2500.0));
    }

    #[test]
    fn the_documentation_has_every_value() {
        let page = include_str!("../../../docs/tracing.md");
        let of_laws = Ported::names().flat_map(|law| values(law, true)).chain(values("cubic", false));
        for Value { name, unit, about, .. } in of_laws {
            let row = format!("| `{name}` | {unit} | {about}");
            assert!(page.contains(&row), "{row}");
        }
    }
}
