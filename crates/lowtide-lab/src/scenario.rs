// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an experiment's `[scenario]` to the scenario of one run.

use crate::{
    error::{LabError, Result},
    experiment::{Experiment, Library},
    expression::{Language, fill},
    recording::{Recorder, Recording, matches, of_fluid},
    testbed::Request,
};
use lowtide_sim::{fluid, scenario};
use rhai::Scope;
use std::{borrow::Cow, collections::BTreeMap, path::PathBuf, time::Duration};
use toml::{Table, Value};

/// The most flows that a `count` makes.
const MOST_FLOWS: f64 = 10_000.0;

/// The scenario of one run, its expressions filled with values: of packets, or of the numerical model.
#[derive(Clone, Debug)]
pub(crate) struct FilledScenario(scenario::ScenarioFile);

impl FilledScenario {
    /// The scenario of an experiment with the values of `scope`; expressions draw their chance from the language's
    /// context.
    ///
    /// # Errors
    /// What is wrong with an expression or with the scenario that results.
    pub(crate) fn new(
        experiment: &Experiment,
        library: &Library,
        language: &Language,
        scope: &Scope<'static>,
    ) -> Result<Self> {
        let Some(table) = &experiment.scenario else { return Err(LabError::new("there is no [scenario]")) };
        let filler = Filler { language, experiment };
        let (path, source, mut overrides) = match table.get("file") {
            None => (PathBuf::from(&experiment.id), Source::Table(filler.table(table, scope)?), Vec::new()),
            Some(file) => {
                let (path, text) = library.scenario(&filler.text(file, "file", scope)?)?;
                (path, Source::File(text), filler.overrides(table, scope)?)
            }
        };
        for change in experiment.cut.iter().flat_map(|cut| &cut.set) {
            let change = fill(change, language, &experiment.functions, scope).map_err(|error| error.within("set"))?;
            overrides.extend(of_each_flow(&change, &source).map_err(|error| error.within(format!("set: {change}")))?);
        }
        let seed = scope.get_value::<i64>("seed").unwrap_or(1);
        let overrides: Vec<String> = overrides.into_iter().chain([format!("seed={seed}")]).collect();
        let simulated = match &source {
            Source::Table(table) => scenario::ScenarioFile::from_table(table, &path, &overrides),
            Source::File(text) => scenario::ScenarioFile::parse(text, &path, &overrides),
        };
        Ok(Self(simulated?))
    }

    /// All of it, as `lowtide sim` reads it.
    pub(crate) fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// How long it is by its own clock; zero for a numerical model, which has none.
    pub(crate) fn duration(&self) -> Duration {
        match &self.0 {
            scenario::ScenarioFile::Packets(scenario) => scenario.duration,
            scenario::ScenarioFile::Fluid(_) => Duration::ZERO,
        }
    }

    /// For a testbed, with these laws of the kernel; `None`: it has no packets that could be sent.
    pub(crate) fn request(&self, kernel_laws: &BTreeMap<String, String>) -> Option<Request> {
        match &self.0 {
            scenario::ScenarioFile::Packets(scenario) => {
                Some(Request { scenario: scenario.clone(), kernel_laws: kernel_laws.clone() })
            }
            scenario::ScenarioFile::Fluid(_) => None,
        }
    }

    /// Runs it.
    pub(crate) fn record(&self, packets: &[String]) -> Recording {
        match &self.0 {
            scenario::ScenarioFile::Packets(scenario) => {
                let mut recorder = Recorder::new(scenario, packets);
                let outcome = lowtide_sim::run(scenario, &mut recorder);
                recorder.finish(scenario, &outcome)
            }
            scenario::ScenarioFile::Fluid(model) => of_fluid(model, &fluid::run(model)),
        }
    }
}

/// Where a scenario comes from.
enum Source {
    /// The experiment itself.
    Table(Table),
    /// A file, whose lines messages name.
    File(String),
}

/// A change like `flow.cdg-*.cc=reno` for each flow of the scenario that goes with the pattern; others as they are.
fn of_each_flow(change: &str, scenario: &Source) -> Result<Vec<String>> {
    let pattern = change.strip_prefix("flow.").and_then(|rest| rest.split_once('.'));
    let Some((pattern, rest)) = pattern.filter(|(pattern, _)| pattern.contains('*')) else {
        return Ok(vec![change.to_owned()]);
    };
    let scenario = match scenario {
        Source::Table(table) => Cow::Borrowed(table),
        Source::File(text) => {
            Cow::Owned(text.parse().map_err(|error: toml::de::Error| LabError::new(error.message()))?)
        }
    };
    let flows = scenario.get("flow").and_then(Value::as_array).into_iter().flatten();
    let names = flows.filter_map(|flow| flow.get("name")?.as_str()).filter(|name| matches(pattern, name));
    let changes: Vec<String> = names.map(|name| format!("flow.{name}.{rest}")).collect();
    if changes.is_empty() { Err(LabError::new(format!("no flow is called {pattern}"))) } else { Ok(changes) }
}

/// Puts values in the place of expressions.
struct Filler<'a> {
    language: &'a Language,
    experiment: &'a Experiment,
}

impl Filler<'_> {
    fn fill(&self, text: &str, scope: &Scope<'static>) -> Result<String> {
        fill(text, self.language, self.experiment.functions_for(text), scope)
    }

    fn table(&self, table: &Table, scope: &Scope<'static>) -> Result<Table> {
        table.iter().map(|(key, value)| Ok((key.clone(), self.value(key, value, scope)?))).collect()
    }

    fn value(&self, key: &str, value: &Value, scope: &Scope<'static>) -> Result<Value> {
        let filled = match value {
            Value::String(text) => Value::String(self.fill(text, scope).map_err(|it| it.within(key))?),
            Value::Table(table) => Value::Table(self.table(table, scope).map_err(|error| error.within(key))?),
            Value::Array(values) => {
                let mut filled = Vec::new();
                for value in values {
                    match value {
                        Value::Table(table) if table.contains_key("count") => filled.extend(self.flows(table, scope)?),
                        value => filled.push(self.value(key, value, scope)?),
                    }
                }
                Value::Array(filled)
            }
            other => other.clone(),
        };
        Ok(filled)
    }

    /// `count` tables in the place of one: each with its own values, `i` for its number from 1 on, and `-i` after its
    /// name.
    fn flows(&self, table: &Table, scope: &Scope<'static>) -> Result<Vec<Value>> {
        let fail = |what: &str| Err(LabError::new(format!("count: {what}")));
        let Some(Value::String(name)) = table.get("name") else { return fail("it needs a name") };
        let count = match table.get("count") {
            Some(Value::Integer(count)) => *count as f64,
            Some(count) => match self.text(count, "count", scope)?.parse::<f64>() {
                Ok(count) => count,
                Err(_) => return fail("it is no number"),
            },
            None => 1.0,
        };
        if !(0.0..=MOST_FLOWS).contains(&count) || count.fract() != 0.0 {
            return fail("it has to be a whole number up to 10000");
        }
        let flow = |i: i64| {
            let mut scope = scope.clone();
            scope.push_constant("i", i as f64);
            let mut one: Table =
                table.iter().filter(|(key, _)| *key != "count").map(|(k, v)| (k.clone(), v.clone())).collect();
            one.insert("name".to_owned(), Value::String(format!("{name}-{i}")));
            self.table(&one, &scope).map(Value::Table)
        };
        (1..=count as i64).map(flow).collect()
    }

    fn text(&self, value: &Value, key: &str, scope: &Scope<'static>) -> Result<String> {
        match value {
            Value::String(text) => self.fill(text, scope).map_err(|error| error.within(key)),
            _ => Err(LabError::new(format!("{key}: a text is expected"))),
        }
    }

    /// What changes a scenario of a file: `set = ["bottleneck.rate={rate}mbit"]`.
    fn overrides(&self, table: &Table, scope: &Scope<'static>) -> Result<Vec<String>> {
        if let Some(key) = table.keys().find(|key| !["file", "set"].contains(&key.as_str())) {
            return Err(LabError::new(format!("{key}: with a `file` there is only `set`, like [\"{key}=…\"]")));
        }
        match table.get("set") {
            None => Ok(Vec::new()),
            Some(Value::Array(texts)) => texts.iter().map(|text| self.text(text, "set", scope)).collect(),
            Some(_) => Err(LabError::new("set: a list is expected, like [\"bottleneck.rate=20mbit\"]")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{experiment::Cut, expression::Context};
    use lowtide_cc::Random;
    use std::{cell::RefCell, rc::Rc};

    fn simulation(scenario: &str, seed: i64) -> Result<FilledScenario, String> {
        changed(scenario, seed, &[])
    }

    fn changed(scenario: &str, seed: i64, set: &[&str]) -> Result<FilledScenario, String> {
        let text = format!("title = \"t\"\nsource = \"s\"\n[scenario]\n{scenario}");
        let mut experiment = Experiment::parse("000/example.toml", &text).unwrap();
        let set = set.iter().map(|text| (*text).to_owned()).collect();
        experiment.cut = Some(Cut { set, ..Cut::default() });
        let library = Library::built_in().unwrap();
        let language = Language::new(Context::Chance(Rc::new(RefCell::new(Random::new(seed as u64)))));
        let mut scope = Scope::new();
        scope.push_constant("rtt", 20.0).push_constant("n", 2.0).push_constant("seed", seed);
        FilledScenario::new(&experiment, &library, &language, &scope).map_err(|error| error.to_string())
    }

    const LINK: &str = "duration = \"10s\"\nbottleneck = { rate = \"10mbit\", rtt = \"{rtt}ms\" }\n";

    #[test]
    fn values_take_the_place_of_expressions() {
        let flow =
            "[[scenario.flow]]\nname = \"fg\"\ncc = \"cubic\"\ncount = \"{n}\"\nstart = \"{i + uniform(0, 1)}s\"\n";
        let text = simulation(&format!("{LINK}{flow}"), 3).unwrap().to_toml();
        assert!(text.contains("rtt = \"20ms\"") && text.contains("seed = 3"), "{text}");
        assert!(
            text.contains("name = \"fg-1\"") && text.contains("start = \"1.") && text.contains("start = \"2."),
            "{text}"
        );
        assert_eq!(text, simulation(&format!("{LINK}{flow}"), 3).unwrap().to_toml());
        assert_ne!(text, simulation(&format!("{LINK}{flow}"), 4).unwrap().to_toml());
    }

    #[test]
    fn a_file_takes_overrides() {
        let text = simulation("file = \"reno-alone.toml\"\nset = [\"bottleneck.rtt={rtt}ms\"]\n", 1).unwrap().to_toml();
        assert!(text.contains("rtt = \"20ms\"") && text.contains("reno"), "{text}");
        let error = simulation("file = \"reno-alone.toml\"\nduration = \"1s\"\n", 1).unwrap_err();
        assert!(error.contains("there is only `set`"), "{error}");
        let error = simulation("file = \"nothing.toml\"\n", 1).unwrap_err();
        assert!(error.contains("no scenario nothing.toml"), "{error}");
    }

    #[test]
    fn changes_hold_for_all_flows_of_a_pattern() {
        let flow = "[[scenario.flow]]\nname = \"fg\"\ncc = \"cubic\"\ncount = 2\n";
        let set = ["duration=20s", "flow.fg-*.cc=reno:beta=0.{n}", "flow.fg-2.start=3s"];
        let text = changed(&format!("{LINK}{flow}"), 1, &set).unwrap().to_toml();
        assert!(text.contains("duration = \"20s\"") && text.matches("reno:beta=0.2").count() == 2, "{text}");
        assert!(text.matches("start = \"3s\"").count() == 1 && !text.contains("cubic"), "{text}");
        let error = changed(&format!("{LINK}{flow}"), 1, &["flow.bg-*.cc=reno"]).unwrap_err();
        assert!(error.contains("no flow is called bg-*"), "{error}");
    }

    #[test]
    fn mistakes_have_a_place() {
        let error = simulation(&format!("{LINK}[[scenario.flow]]\nname = \"a\"\ncc = \"{{law}}\"\n"), 1).unwrap_err();
        assert!(error.contains("cc: `law`"), "{error}");
        let error = simulation(&format!("{LINK}[[scenario.flow]]\nname = \"a\"\ncc = \"renn\"\n"), 1).unwrap_err();
        assert!(error.contains("reno"), "{error}");
        let error =
            simulation(&format!("{LINK}[[scenario.flow]]\nname = \"a\"\ncc = \"reno\"\ncount = 0.5\n"), 1).unwrap_err();
        assert!(error.contains("count"), "{error}");
    }
}
