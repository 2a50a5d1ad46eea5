// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which runs an experiment has.

use crate::{
    cache,
    error::{LabError, Result},
    experiment::{AxisValue, Experiment, Library, Sample, SeriesOf},
    expression::{Context, Language, Value, Where},
    scenario::FilledScenario,
};
use lowtide_cc::Random;
use rhai::Scope;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

/// A half of the cells of an experiment, drawn by chance, cell by cell: a new value of an axis leaves the others where
/// they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// What things are tuned on; a quick look is at a part of it unless another part is chosen.
    InView,
    /// What they are judged on.
    HeldOut,
}

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Only its `quick` values and `quick_runs`.
    pub quick: bool,
    /// Of an experiment that draws its cells by chance, only this half of them.
    pub half: Option<Half>,
    /// So many runs of each cell, in place of its own number.
    pub runs: Option<u32>,
    /// The seed of the first run.
    pub seed: u64,
}

impl Default for Extent {
    fn default() -> Self {
        Self { quick: false, half: None, runs: None, seed: 1 }
    }
}

impl Extent {
    /// What cells these are, for a page.
    pub(crate) const fn cells(&self) -> &'static str {
        match (self.quick, self.half) {
            (true, Some(Half::HeldOut)) => "a quick look at the held-out set",
            (true, _) => "a quick look",
            (false, Some(Half::HeldOut)) => "the held-out set",
            (false, Some(Half::InView)) => "the tuning set",
            (false, None) => "all cells",
        }
    }
}

/// The runs of an experiment.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// Of this one.
    pub experiment: &'a Experiment,
    /// To this extent.
    pub extent: Extent,
    /// The seeds of each cell's runs.
    pub seeds: Vec<u64>,
    /// The cells, the last axis changing fastest.
    pub cells: Vec<PlannedCell<'a>>,
}

/// A combination of values of all axes.
#[derive(Clone, Debug)]
pub struct PlannedCell<'a> {
    /// The values, in the order of the axes.
    pub values: Vec<&'a AxisValue>,
    /// The same as they are written.
    pub place: Where,
}

/// A run, ready to be run.
pub(crate) struct Job<'a> {
    /// What is simulated.
    pub(crate) simulation: FilledScenario,
    /// The variables of its expressions.
    pub(crate) scope: Scope<'static>,
    /// The time series that are kept.
    pub(crate) series: Vec<&'a SeriesOf>,
    /// By which its result is found again.
    pub(crate) key: String,
}

impl<'a> Plan<'a> {
    /// The runs of this experiment.
    ///
    /// # Errors
    /// What is wrong with its `only`.
    pub fn new(experiment: &'a Experiment, extent: Extent) -> Result<Self> {
        let runs = extent.runs.unwrap_or(if extent.quick { experiment.quick_runs } else { experiment.runs });
        let seeds = (0..u64::from(runs)).map(|run| extent.seed.wrapping_add(run)).collect();
        let half = extent.half.filter(|_| experiment.quick_sample.is_some());
        let mut plan = Self { experiment, extent: Extent { half, ..extent }, seeds, cells: Vec::new() };
        if experiment.scenario.is_none() {
            return Ok(plan);
        }
        let mut combinations: Vec<Vec<&AxisValue>> = vec![Vec::new()];
        for axis in &experiment.axes {
            let values = axis.values_of(extent.quick);
            let longer = |before: &Vec<&'a AxisValue>| -> Vec<Vec<&'a AxisValue>> {
                values.iter().map(|value| before.iter().copied().chain([*value]).collect()).collect()
            };
            combinations = combinations.iter().flat_map(longer).collect();
        }
        let language = Language::new(Context::Nothing);
        for values in combinations {
            let names = experiment.axes.iter().map(|axis| axis.name.clone());
            let place = names.zip(values.iter().map(|value| value.written())).collect();
            let cell = PlannedCell { values, place };
            if plan.holds(experiment.only.as_deref(), &language, &cell).map_err(|error| error.within("only"))? {
                plan.cells.push(cell);
            }
        }
        if let Some(sample) = experiment.quick_sample.as_ref().filter(|_| extent.quick || half.is_some()) {
            plan.keep(sample);
        }
        Ok(plan)
    }

    /// Keeps the cells of one half of the places; of these, for a quick look, so many: fewer are the first of more.
    fn keep(&mut self, sample: &Sample) {
        let of = |cell: &PlannedCell<'_>| -> Where {
            cell.place.iter().filter(|(axis, _)| sample.of.contains(axis)).cloned().collect()
        };
        let held_out = self.extent.half == Some(Half::HeldOut);
        // the places in the order of what was drawn for them, for each value of the axis by itself
        let mut groups: BTreeMap<Option<String>, BTreeMap<u64, Where>> = BTreeMap::new();
        for place in self.cells.iter().map(of) {
            let drawn = cache::chance(&place);
            if (drawn % 2 == 1) == held_out {
                let value = place.iter().find(|(axis, _)| Some(axis) == sample.evenly.as_ref());
                groups.entry(value.map(|(_, value)| value.clone())).or_default().insert(drawn, place);
            }
        }
        let longest = groups.values().map(BTreeMap::len).max().unwrap_or(0);
        let mut groups: Vec<_> = groups.into_values().map(BTreeMap::into_values).collect();
        let in_turn = (0..longest).flat_map(|_| groups.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>());
        let number = if self.extent.quick { sample.number } else { usize::MAX };
        let places: BTreeSet<Where> = in_turn.take(number).collect();
        self.cells.retain(|cell| places.contains(&of(cell)));
    }

    /// Keeps so many cells by chance, if there are more.
    pub(crate) fn thin(&mut self, number: usize) {
        let kept: BTreeSet<usize> = by_chance((0..self.cells.len()).collect(), number).into_iter().collect();
        let mut place = 0..;
        self.cells.retain(|_| place.next().is_some_and(|place| kept.contains(&place)));
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.cells.len() * self.seeds.len()
    }

    /// The variables of a cell: its values, and those that hold for all.
    pub fn scope(&self, cell: &PlannedCell<'_>) -> Scope<'static> {
        let mut scope = Scope::new();
        scope.push_constant("quick", self.extent.quick);
        for (axis, value) in self.experiment.axes.iter().zip(&cell.values) {
            value.set(&axis.name, &mut scope);
        }
        scope
    }

    fn holds(&self, condition: Option<&str>, language: &Language, cell: &PlannedCell<'_>) -> Result<bool> {
        let Some(condition) = condition else { return Ok(true) };
        let functions = self.experiment.functions_for(condition);
        let value = language.value(functions, condition, &self.scope(cell))?;
        Ok(value != Value::from(0.0))
    }

    /// The run `run` of the cell `cell`.
    ///
    /// # Errors
    /// What is wrong with an expression or the scenario, with the place.
    pub(crate) fn job(&self, library: &Library, language: &mut Language, cell: usize, run: usize) -> Result<Job<'a>> {
        let mut job = || {
            let (experiment, cell, seed) = (self.experiment, &self.cells[cell], self.seeds[run]);
            let mut scope = self.scope(cell);
            let signed = i64::try_from(seed).map_err(|_| LabError::new("the seed is too large; at most 2^63 - 1"))?;
            scope.push_constant("seed", signed);
            language.set_context(Context::Chance(Rc::new(RefCell::new(Random::new(seed)))));
            for (name, expression) in &experiment.draw {
                let toml::Value::String(expression) = expression else {
                    return Err(LabError::new(format!("draw: {name}: a text with an expression is expected")));
                };
                let value = language.evaluate(experiment.functions_for(expression), expression, &scope);
                let value = value.map_err(|error| error.within(format!("draw: {name}")))?;
                scope.push_constant_dynamic(name, value);
            }
            let simulation =
                FilledScenario::new(experiment, library, language, &scope).map_err(|it| it.within("scenario"))?;
            language.set_context(Context::Nothing);
            let mut series = Vec::new();
            for it in experiment.series.iter().filter(|_| run == 0) {
                if self.holds(it.only.as_deref(), language, cell).map_err(|error| error.within(&it.name))? {
                    series.push(it);
                }
            }
            let told = |name: &str| name != "quick" || experiment.expressions().any(|text| text.contains("quick"));
            let variables = scope.iter().filter(|(name, _, _)| told(name));
            let variables: Vec<_> = variables.map(|(name, _, value)| (name.to_owned(), value.to_string())).collect();
            let key = cache::key(experiment, &simulation.to_toml(), &variables, &series);
            Ok(Job { simulation, scope, series, key })
        };
        job().map_err(|error| error.within(self.place(cell, run)))
    }

    /// A run, for messages.
    pub(crate) fn place(&self, cell: usize, run: usize) -> String {
        let cell = self.cells[cell].place.iter().map(|(axis, value)| format!("{axis}={value}"));
        let words: Vec<String> = cell.chain([format!("seed {}", self.seeds[run])]).collect();
        format!("{} ({})", self.experiment.id, words.join(", "))
    }

    /// The scenario of a run, as `lowtide sim` reads it.
    ///
    /// # Errors
    /// What is wrong with an expression or the scenario.
    pub fn scenario(&self, library: &Library, cell: usize, run: usize) -> Result<String> {
        let mut language = Language::new(Context::Nothing);
        Ok(self.job(library, &mut language, cell, run)?.simulation.to_toml())
    }

    /// How long the first of its runs is by its own clock; zero if there is none.
    ///
    /// # Errors
    /// What is wrong with an expression or the scenario.
    pub fn duration(&self, library: &Library) -> Result<Duration> {
        if self.runs() == 0 {
            return Ok(Duration::ZERO);
        }
        let mut language = Language::new(Context::Nothing);
        Ok(self.job(library, &mut language, 0, 0)?.simulation.duration())
    }
}

/// So many of them, always the same.
fn by_chance<T>(mut list: Vec<T>, number: usize) -> Vec<T> {
    let mut random = Random::new(1);
    for chosen in 0..number.min(list.len()) {
        let other = chosen + (random.bits() % (list.len() - chosen) as u64) as usize;
        list.swap(chosen, other);
    }
    list.truncate(number);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(experiment: &Experiment, quick: bool) -> Vec<String> {
        names(experiment, Extent { quick, ..Extent::default() })
    }

    fn names(experiment: &Experiment, extent: Extent) -> Vec<String> {
        let plan = Plan::new(experiment, extent).unwrap();
        let name =
            |cell: &PlannedCell<'_>| cell.place.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ");
        plan.cells.iter().map(name).collect()
    }

    fn experiment(sample: &str) -> Experiment {
        let axis = |name: &str| format!("[[axis]]\nname = \"{name}\"\nvalues = [1, 2, 3, 4]\n");
        let axes = ["a", "b", "law"].map(axis).concat();
        let text = format!("title = \"t\"\nsource = \"s\"\nonly = \"a != 4 || law == 1\"\n{sample}[scenario]\n{axes}");
        Experiment::parse("000/example.toml", &text).unwrap()
    }

    #[test]
    fn a_sample_has_all_of_the_other_axes() {
        let all = plan(&experiment(""), true);
        assert_eq!(all.len(), 3 * 4 * 4 + 4);
        let some = |number| experiment(&format!("quick_sample = {{ of = [\"a\", \"b\"], number = {number} }}\n"));
        let five = plan(&some(5), true);
        let places: BTreeSet<&str> = five.iter().map(|name| &name[..3]).collect();
        assert_eq!(places.len(), 5);
        // all laws that there are at these places, in the order of the whole
        let expected: Vec<&String> = all.iter().filter(|name| places.contains(&name[..3])).collect();
        assert_eq!(five.iter().collect::<Vec<_>>(), expected);
        assert!(plan(&some(3), true).iter().all(|name| five.contains(name)), "fewer are the first of more");
        assert_eq!(plan(&some(5), false), all);
    }

    #[test]
    fn a_sample_is_of_one_half() {
        let places = |quick, half| {
            let sample = "quick_sample = { of = [\"a\", \"b\"], number = 3 }\n";
            let cells = names(&experiment(sample), Extent { quick, half, ..Extent::default() });
            cells.iter().map(|name| name[..3].to_owned()).collect::<BTreeSet<_>>()
        };
        let [in_view, held_out] = [Half::InView, Half::HeldOut].map(|half| places(false, Some(half)));
        assert!(in_view.is_disjoint(&held_out) && in_view.len().min(held_out.len()) > 3, "{in_view:?} {held_out:?}");
        assert_eq!(&in_view | &held_out, places(false, None));
        let [quick_in_view, quick_held_out] = [Half::InView, Half::HeldOut].map(|half| places(true, Some(half)));
        assert!(quick_in_view.len() == 3 && quick_in_view.is_subset(&in_view), "{quick_in_view:?}");
        assert!(quick_held_out.len() == 3 && quick_held_out.is_subset(&held_out), "{quick_held_out:?}");
        assert_eq!(places(true, None), quick_in_view, "a quick look is at the tuning set");
    }

    #[test]
    fn without_a_sample_there_are_no_halves() {
        let all = Plan::new(&experiment(""), Extent { half: Some(Half::HeldOut), ..Extent::default() })
            .map(|plan| plan.extent.half);
        assert_eq!(all.unwrap(), None);
    }

    #[test]
    fn an_even_sample_has_as_many_of_each_value() {
        let some = |number| {
            let sample = format!("quick_sample = {{ of = [\"a\", \"b\"], number = {number}, evenly = \"a\" }}\n");
            plan(&experiment(&sample), true).iter().map(|name| name[..3].to_owned()).collect::<BTreeSet<_>>()
        };
        let of =
            |places: &BTreeSet<String>, value: &str| places.iter().filter(|place| place.starts_with(value)).count();
        let four = some(4);
        assert_eq!(["1", "2", "3", "4"].map(|value| of(&four, value)), [1; 4]);
        assert!(some(3).is_subset(&four) && some(3).len() == 3, "fewer are the first of more");
        let others = |value: &str| {
            some(100).iter().filter(|it| it.starts_with(value)).map(|it| it[2..].to_owned()).collect::<Vec<_>>()
        };
        assert!(["2", "3", "4"].iter().any(|value| others(value) != others("1")), "each value has places of its own");
    }

    #[test]
    fn a_thinned_plan_keeps_its_order() {
        let experiment = experiment("");
        let mut plan = Plan::new(&experiment, Extent::default()).unwrap();
        let all: Vec<Where> = plan.cells.iter().map(|cell| cell.place.clone()).collect();
        plan.thin(100);
        assert_eq!(plan.cells.len(), all.len());
        plan.thin(7);
        let places: Vec<usize> =
            plan.cells.iter().map(|cell| all.iter().position(|it| *it == cell.place).unwrap()).collect();
        assert!(places.len() == 7 && places.is_sorted(), "{places:?}");
    }
}
