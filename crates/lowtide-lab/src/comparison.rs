// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of an experiment on a kernel, compared with the simulator's.

use crate::{
    Results,
    error::Result,
    experiment::OnTestbed,
    figure::{self, Drawn},
    score::{self, Checked, Score},
};

/// From here on a difference is one that needs a reason.
const NOTABLE: f64 = 0.2;
/// A smaller part of what the band allows is nothing.
const NOTHING: f64 = 0.01;

/// The runs of an experiment on a testbed, and the same runs in the simulator.
pub struct Comparison<'a> {
    /// How the experiment is cut for it.
    pub on: &'a OnTestbed,
    /// The kernel; `None` if it was never run there.
    pub environment: Option<String>,
    /// The results.
    pub results: Results<'a>,
    /// The targets that are meant for it.
    pub scores: Vec<Score<'a>>,
    /// The same in the simulator, by the same scenarios.
    pub simulated: Vec<Score<'a>>,
    /// The figures that are drawn of it; none if runs are missing.
    pub figures: Vec<Drawn<'a>>,
}

/// A part of a target, there and in the simulator.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared<'c> {
    /// What was seen there.
    pub there: &'c Checked,
    /// What the simulator makes of the same scenario.
    pub simulated: Option<&'c Checked>,
    /// How far it is from the simulator's: a part of that, or of the greatest bound of the band where that is nothing
    /// beside it; `None` where there is no number.
    pub difference: Option<f64>,
}

impl Compared<'_> {
    /// Whether the two differ so much that there should be a reason, or the one is what the paper says and the other is
    /// not.
    pub fn is_notable(&self) -> bool {
        let other = self.simulated.is_some_and(|simulated| simulated.holds != self.there.holds);
        other || self.difference.is_some_and(|difference| difference.abs() > NOTABLE)
    }
}

impl<'a> Comparison<'a> {
    /// Scores and draws what was run there and, with the same scenarios, in the simulator.
    ///
    /// # Errors
    /// What is wrong with an expression, with its place.
    pub fn new(
        on: &'a OnTestbed,
        environment: Option<&str>,
        results: Results<'a>,
        simulated: &Results<'a>,
    ) -> Result<Self> {
        let figures = if results.complete() { figure::draw(&results)? } else { Vec::new() };
        let (scores, simulated) = (score::score(&results)?, score::score(simulated)?);
        Ok(Self { on, environment: environment.map(str::to_owned), results, scores, simulated, figures })
    }

    /// The parts of a target; none if it was not run.
    pub fn compare<'c>(&'c self, target: &str) -> Vec<Compared<'c>> {
        fn of<'s>(scores: &'s [Score<'_>], target: &str) -> &'s [Checked] {
            scores.iter().find(|score| score.target.id == target).map_or(&[], |score| &score.checks)
        }
        let simulated = of(&self.simulated, target);
        let compare = |there: &'c Checked| {
            let simulated = simulated.iter().find(|checked| checked.what == there.what);
            Compared { there, simulated, difference: difference(there, simulated) }
        };
        of(&self.scores, target).iter().map(compare).collect()
    }
}

fn difference(there: &Checked, simulated: Option<&Checked>) -> Option<f64> {
    let (value, simulated) = (there.value?, simulated?.value?);
    let bounds = [there.band.0, there.band.1].into_iter().flatten().map(f64::abs);
    let bound = Some(bounds.fold(0.0, f64::max)).filter(|bound| simulated.abs() < NOTHING * bound);
    let whole = bound.unwrap_or(simulated.abs());
    (whole != 0.0).then(|| (value - simulated) / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(value: Option<f64>, holds: bool) -> Checked {
        let (what, unit, predicate) = ("share".to_owned(), String::new(), value.is_none());
        Checked { what, value, spread: None, expected: None, band: (None, None), unit, predicate, holds }
    }

    #[test]
    fn a_fifth_is_notable() {
        for (there, simulated, notable) in [
            (checked(Some(12.0), true), checked(Some(10.0), true), false),
            (checked(Some(12.1), true), checked(Some(10.0), true), true),
            (checked(Some(-7.9), true), checked(Some(-10.0), true), true),
            (checked(Some(1.0), true), checked(Some(0.0), true), false),
            (checked(Some(9.9), false), checked(Some(10.0), true), true),
            (checked(Some(9.9), false), checked(Some(10.0), false), false),
            (checked(None, true), checked(None, true), false),
            (checked(None, false), checked(None, true), true),
        ] {
            let difference = difference(&there, Some(&simulated));
            let compared = Compared { there: &there, simulated: Some(&simulated), difference };
            assert_eq!(compared.is_notable(), notable, "{compared:?}");
        }
    }

    #[test]
    fn where_the_simulator_has_nothing_the_band_is_the_measure() {
        let allowed = |value| Checked { band: (None, Some(25.0)), ..checked(Some(value), true) };
        for (there, simulated, part) in [(5.1, 0.1, 0.2), (5.1, 0.0, 0.204), (5.1, 2.5, 1.04), (0.2, -0.1, 0.012)] {
            let found = difference(&allowed(there), Some(&allowed(simulated))).unwrap();
            assert!((found - part).abs() < 1e-12, "{there} and {simulated}: {found}");
        }
    }
}
