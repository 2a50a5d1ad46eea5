// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a file to an experiment.

use super::{
    Experiment, Kind, Plot, Target,
    axis::{plain, words, written},
};
use crate::error::{LabError, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Cells of an experiment at most, and runs of all of them together.
const MOST_CELLS: usize = 1_000_000;
const MOST_RUNS: usize = 10_000_000;
/// Places besides the simulator: each has a copy of the experiment.
const MOST_PLACES: usize = 16;

impl Experiment {
    /// Bytes of a file with an experiment at most.
    pub const MOST_BYTES: u64 = 1 << 20;

    /// Reads the text of a file that is called `path`: a directory, the paper, and the name of the experiment.
    ///
    /// # Errors
    /// One sentence, with the file and, where that is known, line and column.
    pub fn parse(path: &str, text: &str) -> Result<Self> {
        let experiment = toml::from_str::<Self>(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or(text);
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            LabError::new(format!("{path}:{line}:{column}: {message}"))
        })?;
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let paper = folder.rsplit('/').next().unwrap_or_default().to_owned();
        let id = file.strip_suffix(".toml").unwrap_or(file).to_owned();
        let mut experiment = Self { id, paper, ..experiment };
        experiment.check().map_err(|error| error.within(path))?;
        let on_testbeds = experiment.changes.iter().map(|(name, changes)| changes.apply(name, &experiment));
        experiment.on_testbeds = on_testbeds.collect::<Result<_>>().map_err(|error| error.within(path))?;
        Ok(experiment)
    }

    /// What can be said without evaluating anything.
    fn check(&self) -> Result<()> {
        self.axes.iter().try_for_each(super::Axis::check)?;
        let names = self.axes.iter().map(|axis| &axis.name).chain(self.draw.keys());
        distinct("variable", names)?;
        distinct("measure", self.measures.iter().map(|it| &it.name))?;
        distinct("series", self.series.iter().map(|it| &it.name))?;
        distinct("figure", self.figures.iter().map(|it| &it.name))?;
        distinct("target", self.targets.iter().map(|it| &it.id))?;
        if let Some(name) = self.draw.keys().find(|name| !plain(name)) {
            return Err(LabError::new(format!("draw: `{name}` has to be a word of letters, digits and _")));
        }
        self.check_size()?;
        if self.scenario.is_none() && !(self.axes.is_empty() && self.measures.is_empty() && self.series.is_empty()) {
            return Err(LabError::new("there is no [scenario], so there is nothing to vary or to measure"));
        }
        self.check_comparisons()?;
        self.check_sample()?;
        self.targets.iter().try_for_each(|target| self.check_target(target))?;
        self.check_panels()
    }

    /// Whether its plan fits into the memory.
    fn check_size(&self) -> Result<()> {
        let fail = |what: String| Err(LabError::new(what));
        let runs = self.changes.values().filter_map(|changes| changes.runs).chain([self.runs, self.quick_runs]).max();
        if self.runs == 0 || self.quick_runs == 0 {
            return fail("runs and quick_runs have to be 1 or more".to_owned());
        }
        let cells = self.axes.iter().try_fold(1_usize, |cells, axis| cells.checked_mul(axis.values.len()));
        let Some(cells) = cells.filter(|cells| *cells <= MOST_CELLS) else {
            return fail(format!("the values of all axes make more than {MOST_CELLS} cells; take fewer"));
        };
        if cells.saturating_mul(runs.unwrap_or(1) as usize) > MOST_RUNS {
            return fail(format!("all cells together have more than {MOST_RUNS} runs; take fewer runs"));
        }
        if self.changes.len() > MOST_PLACES {
            return fail(format!("on: there are more than {MOST_PLACES} places"));
        }
        Ok(())
    }

    fn check_comparisons(&self) -> Result<()> {
        let axes: BTreeMap<_, _> = self.axes.iter().map(|axis| (&axis.name, words(&axis.values))).collect();
        for measure in self.comparisons() {
            for (name, value) in &measure.with {
                let fail = |what: String| Err(LabError::new(format!("measure {}: with: {what}", measure.name)));
                let Some(values) = axes.get(name) else { return fail(format!("there is no axis `{name}`")) };
                let written = written(value)?;
                if !values.contains(&written) {
                    return fail(format!("the axis `{name}` has no value {written}"));
                }
            }
        }
        Ok(())
    }

    fn check_sample(&self) -> Result<()> {
        let Some(sample) = &self.quick_sample else { return Ok(()) };
        let fail = |what: String| Err(LabError::new(format!("quick_sample: {what}")));
        match sample.of.iter().find(|name| self.axis(name).is_none()) {
            Some(name) => fail(format!("there is no axis `{name}`")),
            None if sample.evenly.as_ref().is_some_and(|name| !sample.of.contains(name)) => {
                fail("`evenly` names none of the axes in `of`".to_owned())
            }
            None if sample.number == 0 || sample.of.is_empty() => {
                fail("it needs axes, and a number above 0".to_owned())
            }
            None => Ok(()),
        }
    }

    fn check_target(&self, target: &Target) -> Result<()> {
        let fail = |what: &str| Err(LabError::new(format!("target {}: {what}", target.id)));
        match target.kind {
            Kind::Question if target.answer.is_none() => return fail("a question needs an `answer`"),
            Kind::Quantitative | Kind::Shape if self.scenario.is_none() => {
                return fail("without a [scenario] there are only targets of the kind unit");
            }
            Kind::Quantitative if target.band.is_empty() => return fail("`band` has to say where its band comes from"),
            Kind::Quantitative | Kind::Shape | Kind::Unit if target.checks.is_empty() => {
                return fail("it has no check");
            }
            _ => {}
        }
        for check in &target.checks {
            if let Some(name) = check.each.names().iter().find(|name| self.axis(name).is_none()) {
                return fail(&format!("`each` names the axis `{name}`, which does not exist"));
            }
            match (&check.value, &check.holds) {
                (Some(_), None) if check.low.is_none() && check.high.is_none() => {
                    return fail(&format!("\"{}\" has a value, but neither `low` nor `high`", check.what));
                }
                (Some(_), None) => {}
                (None, Some(_)) if check.low.is_none() && check.high.is_none() && check.expected.is_none() => {}
                _ => return fail(&format!("\"{}\" needs either a `value` with its band or `holds`", check.what)),
            }
        }
        Ok(())
    }

    fn check_panels(&self) -> Result<()> {
        let known_axes: BTreeSet<_> = self.axes.iter().map(|it| &it.name).collect();
        let known_measures: BTreeSet<_> = self.measures.iter().map(|it| &it.name).collect();
        let known_series: BTreeSet<_> = self.series.iter().map(|it| &it.name).collect();
        for figure in &self.figures {
            for (number, panel) in figure.panels.iter().enumerate() {
                let fail =
                    |what: String| Err(LabError::new(format!("figure {}, panel {}: {what}", figure.name, number + 1)));
                let axes = panel.x.iter().chain(&panel.each).chain(panel.place.keys());
                if let Some(name) = axes.into_iter().find(|name| !known_axes.contains(name)) {
                    return fail(format!("there is no axis `{name}`"));
                }
                let named = panel.columns.iter().flat_map(|column| column.least.iter().chain(&column.greatest));
                if let Some(name) = panel.measure.iter().chain(named).find(|name| !known_measures.contains(name)) {
                    return fail(format!("there is no measure `{name}`"));
                }
                if let Some(name) = panel.series.iter().find(|name| !known_series.contains(name)) {
                    return fail(format!("there is no series `{name}`"));
                }
                if let Some(column) = panel.columns.iter().find(|column| column.parts() != 1) {
                    let title = &column.title;
                    return fail(format!("the column \"{title}\" needs one of value, text, least and greatest"));
                }
                let missing = match panel.plot {
                    Plot::Lines if panel.measure.is_none() == panel.value.is_none() => "a `measure` or a `value`",
                    Plot::Lines | Plot::Boxes if panel.x.is_none() => "the axis `x`",
                    Plot::Boxes | Plot::Cdf if panel.measure.is_none() => "a `measure`",
                    Plot::Series if panel.series.is_empty() => "`series`",
                    Plot::Points if panel.each.is_none() || panel.x_value.is_none() || panel.value.is_none() => {
                        "`x_value` and `value`, and the axis `each`"
                    }
                    Plot::Table if panel.columns.is_empty() || panel.x.is_none() => {
                        "columns, and the axis `x` of its rows"
                    }
                    _ => continue,
                };
                return fail(format!("it needs {missing}"));
            }
        }
        Ok(())
    }
}

/// No name twice.
fn distinct<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(LabError::new(format!("there are two of the {kind} `{name}`")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Experiment, String> {
        let text = format!("title = \"t\"\nsource = \"s\"\n{text}");
        Experiment::parse("000/example.toml", &text).map_err(|error| error.to_string())
    }

    const SCENARIO: &str = "[scenario]\nduration = \"1s\"\n";

    #[test]
    fn its_name_is_that_of_its_file() {
        let experiment = parse("").unwrap();
        assert_eq!((experiment.id.as_str(), experiment.paper.as_str()), ("example", "000"));
        assert!(experiment.goes_by("000") && experiment.goes_by("example") && !experiment.goes_by("C-01"));
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, part) in [
            ("titel = \"x\"", "000/example.toml:3:1: unknown field `titel`"),
            ("[[axis]]\nname = \"g h\"\nvalues = [1]", "a word of letters"),
            ("[[axis]]\nname = \"g\"\nvalues = []", "no values"),
            ("[[axis]]\nname = \"g\"\nvalues = [1, 1.0]", "the value 1 is there twice"),
            ("[[axis]]\nname = \"g\"\nvalues = [1, 2]\nquick = [3]", "`quick` has 3"),
            ("[[axis]]\nname = \"g\"\nvalues = [1, 2]\nquick = []", "`quick` has no values"),
            ("[[axis]]\nname = \"g\"\nvalues = [{ cc = \"reno\" }]", "a case needs a label"),
            ("[[axis]]\nname = \"g\"\nvalues = [1]", "there is no [scenario]"),
            ("[draw]\ng = \"1\"\n[[axis]]\nname = \"g\"\nvalues = [1]", "two of the variable `g`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let places: String = (0..17).map(|n| format!("[on.k{n}]\nplace = \"kernel\"\n")).collect();
        let values = (0..1001).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let axes: String =
            ["g", "h"].map(|name| format!("[[axis]]\nname = \"{name}\"\nvalues = [{values}]\n")).concat();
        for (text, part) in [
            (format!("runs = 0\n{SCENARIO}"), "runs and quick_runs have to be 1 or more"),
            (format!("runs = 10000001\n{SCENARIO}"), "more than 10000000 runs"),
            (format!("{SCENARIO}[on.kernel]\nruns = 10000001"), "more than 10000000 runs"),
            (format!("{SCENARIO}{axes}"), "more than 1000000 cells"),
            (format!("{SCENARIO}{places}"), "more than 16 places"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let target = "[[target]]\nid = \"C-01\"\nkind = \"quantitative\"\nclaim = \"c\"\n";
        for (text, part) in [
            ("", "`band` has to say"),
            ("band = \"b\"\n", "it has no check"),
            ("band = \"b\"\n[[target.check]]\nwhat = \"w\"\nvalue = \"1\"", "neither `low` nor `high`"),
            ("band = \"b\"\n[[target.check]]\nwhat = \"w\"\nlow = 1", "needs either a `value`"),
            ("band = \"b\"\n[[target.check]]\nwhat = \"w\"\neach = \"g\"\nvalue = \"1\"\nlow = 1", "the axis `g`"),
        ] {
            let error = parse(&format!("{SCENARIO}{target}{text}")).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let axis = "[[axis]]\nname = \"g\"\nvalues = [1, 2]\n";
        for (text, part) in [
            ("[on.moon]", "on.moon: place: \"moon\" is none of"),
            ("[on.kernel]\nplace = \"sim\"", "the simulator runs the experiment itself"),
            ("[on.kernel]\nruns = 0", "runs has to be"),
            ("[on.kernel]\ntargets = [\"C-99\"]", "there is no target C-99"),
            ("[on.kernel]\ndraw = { x = \"1\" }", "`x` is not drawn"),
            ("[on.kernel]\naxis = { h = [1] }", "there is no axis `h`"),
            ("[on.kernel]\naxis = { g = [3] }", "has no value 3"),
            ("[on.kernel]\nspeed = 3", "unknown field `speed`"),
        ] {
            let error = parse(&format!("{SCENARIO}{axis}{text}")).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let figure = "[[figure]]\nname = \"f\"\ntitle = \"t\"\n[[figure.panel]]\n";
        for (text, part) in [
            ("plot = \"lines\"\n", "it needs a `measure` or a `value`"),
            ("plot = \"series\"\n", "it needs `series`"),
            ("plot = \"points\"\nvalue = \"1\"\n", "it needs `x_value` and `value`"),
            ("plot = \"table\"\ncolumn = [{ title = \"c\" }]\n", "the column \"c\" needs one of"),
            ("plot = \"table\"\ncolumn = [{ title = \"c\", least = \"m\" }]\n", "there is no measure `m`"),
            ("plot = \"boxes\"\nmeasure = \"m\"\n", "there is no measure `m`"),
        ] {
            let error = parse(&format!("{SCENARIO}{figure}{text}")).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let rest = "[[axis]]\nname = \"g\"\nvalues = [1, 2]\n[[measure]]\nname = \"m\"\nvalue = \"own.x\"\n";
        for (text, part) in [
            ("with = { h = 1 }\n", "measure m: with: there is no axis `h`"),
            ("with = { g = 3 }\n", "with: the axis `g` has no value 3"),
            ("[quick_sample]\nof = [\"h\"]\nnumber = 1", "quick_sample: there is no axis `h`"),
            ("[quick_sample]\nof = [\"g\"]\nnumber = 0", "quick_sample: it needs axes"),
        ] {
            let error = parse(&format!("{SCENARIO}{rest}{text}")).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
