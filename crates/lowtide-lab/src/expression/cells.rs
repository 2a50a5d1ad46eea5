// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of what was measured in all runs of an experiment.

use super::{Answer, Context, Language, Value, context, numbers::optional, passed_on, wrong};
use crate::{
    error::{LabError, Result},
    statistics,
};
use rhai::{Array, Dynamic, ImmutableString as Text, Map, NativeCallContext};
use std::{collections::BTreeMap, rc::Rc};

/// Values of axes, by the axes' names, as they are written.
pub type Where = Vec<(String, String)>;

/// What was measured: for each cell the runs, in the order of their seeds.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// The axes with their values, as they are written.
    pub axes: Vec<(String, Vec<String>)>,
    /// The names of the measures.
    pub measures: Vec<String>,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// A combination of values of all axes.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The values.
    pub place: Where,
    /// What was measured in each run.
    pub runs: Vec<BTreeMap<String, Value>>,
}

impl Cells {
    /// The cells at these values of some axes.
    ///
    /// # Errors
    /// An axis or a value that does not exist.
    pub fn at(&self, place: &Where) -> Result<Vec<&Cell>> {
        for (axis, value) in place {
            let Some((_, values)) = self.axes.iter().find(|(name, _)| name == axis) else {
                let names: Vec<&str> = self.axes.iter().map(|(name, _)| name.as_str()).collect();
                return Err(LabError::new(format!("there is no axis `{axis}`; there are {}", names.join(", "))));
            };
            if !values.contains(value) {
                let what = format!("the axis `{axis}` has no value {value}; it has {}", values.join(", "));
                return Err(LabError::no_such_cell(what));
            }
        }
        Ok(self.cells.iter().filter(|cell| place.iter().all(|value| cell.place.contains(value))).collect())
    }

    /// All numbers that a measure gave in these cells, in all runs or in `only` this one of each cell.
    ///
    /// # Errors
    /// A measure, an axis or a value that does not exist.
    pub fn samples(&self, measure: &str, place: &Where, only: Option<usize>) -> Result<Vec<f64>> {
        if !self.measures.iter().any(|name| name == measure) {
            let all = self.measures.join(", ");
            return Err(LabError::new(format!("there is no measure `{measure}`; there are {all}")));
        }
        let cells = self.at(place)?;
        let runs = cells.iter().flat_map(|cell| match only {
            Some(run) => cell.runs.get(run..=run).unwrap_or_default(),
            None => &cell.runs[..],
        });
        Ok(runs.flat_map(|run| run.get(measure).map_or(&[][..], Value::numbers)).copied().collect())
    }
}

pub(super) fn register(language: &mut Language) {
    language.add(
        "samples(measure, where)",
        "what a measure gave in all runs of the cells at #{axis: value, …}, as a list; `where` may be left out. `here` is \
         where a check with `each`, or a point of a figure, stands: samples(\"share\", here + #{g: 0.1})",
        |call: NativeCallContext<'_>, measure: Text, place: Map| samples(&call, &measure, &place),
    );
    language.also("samples(measure, where)", |call: NativeCallContext<'_>, measure: Text| {
        samples(&call, &measure, &Map::new())
    });
    language.add(
        "typical(measure, where)",
        "the median of these",
        |call: NativeCallContext<'_>, measure: Text, place: Map| typical(&call, &measure, &where_of(&place)?),
    );
    language.also("typical(measure, where)", |call: NativeCallContext<'_>, measure: Text| {
        typical(&call, &measure, &Where::new())
    });
    language.add(
        "along(axis, measure, where)",
        "the medians for each value of an axis, in its order",
        |call: NativeCallContext<'_>, axis: Text, measure: Text, place: Map| along(&call, &axis, &measure, &place),
    );
    language.also("along(axis, measure, where)", |call: NativeCallContext<'_>, axis: Text, measure: Text| {
        along(&call, &axis, &measure, &Map::new())
    });
    language.add("values_of(axis)", "the values of an axis, numbers where they are numbers", {
        |call: NativeCallContext<'_>, axis: Text| {
            let (cells, _) = cells(&call)?;
            let values = values_of(&cells, &axis)?;
            Answer::Ok(values.iter().map(|value| as_written(value)).collect::<Array>())
        }
    });
}

/// The value that a text stands for: a number if it is one.
fn as_written(text: &str) -> Dynamic {
    text.parse::<f64>().map_or_else(|_| Dynamic::from(text.to_owned()), Dynamic::from)
}

fn cells(call: &NativeCallContext<'_>) -> Answer<(Rc<Cells>, Option<usize>)> {
    match context(call) {
        Context::Cells(cells, only) => Ok((cells, only)),
        _ => wrong(format!("{} is of all runs; it belongs into a target or a figure", call.fn_name())),
    }
}

fn where_of(map: &Map) -> Answer<Where> {
    map.iter().map(|(axis, value)| Ok((axis.to_string(), place_of(value)?))).collect()
}

/// The value of an axis as it is written.
fn place_of(value: &Dynamic) -> Answer<String> {
    match value.as_float() {
        Ok(number) => Ok(number.to_string()),
        Err(_) if value.is_int() || value.is_string() => Ok(value.to_string()),
        Err(kind) => wrong(format!("the value of an axis is a number or a text, not a {kind}")),
    }
}

fn values_of<'a>(cells: &'a Cells, axis: &str) -> Answer<&'a [String]> {
    match cells.axes.iter().find(|(name, _)| name == axis) {
        Some((_, values)) => Ok(values),
        None => wrong(format!("there is no axis `{axis}`")),
    }
}

fn samples(call: &NativeCallContext<'_>, measure: &str, place: &Map) -> Answer<Array> {
    let (cells, only) = cells(call)?;
    let samples = cells.samples(measure, &where_of(place)?, only).or_else(passed_on)?;
    Ok(samples.into_iter().map(Dynamic::from).collect())
}

fn typical(call: &NativeCallContext<'_>, measure: &str, place: &Where) -> Answer<Dynamic> {
    let (cells, only) = cells(call)?;
    let samples = cells.samples(measure, place, only).or_else(passed_on)?;
    Ok(optional(statistics::median(&samples)))
}

fn along(call: &NativeCallContext<'_>, axis: &str, measure: &str, place: &Map) -> Answer<Array> {
    let ((cells, _), mut place) = (cells(call)?, where_of(place)?);
    place.retain(|(name, _)| name != axis);
    let values = values_of(&cells, axis)?;
    let at = |value: &String| {
        let place = place.iter().cloned().chain([(axis.to_owned(), value.clone())]).collect();
        typical(call, measure, &place)
    };
    values.iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(only: Option<usize>) -> Language {
        let axes = vec![
            ("rtt".to_owned(), vec!["20".to_owned(), "50".to_owned()]),
            ("law".to_owned(), vec!["cdg".to_owned(), "reno".to_owned()]),
        ];
        let mut cells = Vec::new();
        for rtt in &axes[0].1 {
            for law in &axes[1].1 {
                let place = vec![("rtt".to_owned(), rtt.clone()), ("law".to_owned(), law.clone())];
                let base = rtt.parse::<f64>().unwrap() + if law == "cdg" { 0.0 } else { 100.0 };
                let run = |n: f64| BTreeMap::from([("share".to_owned(), Value::from(base + n))]);
                cells.push(Cell { place, runs: vec![run(0.0), run(1.0), run(5.0)] });
            }
        }
        Language::new(Context::Cells(Rc::new(Cells { axes, measures: vec!["share".to_owned()], cells }), only))
    }

    #[test]
    fn cells_go_by_the_values_of_axes() {
        let value =
            |language: &Language, expression: &str| language.value("", expression, &rhai::Scope::new()).unwrap();
        let all = language(None);
        assert_eq!(value(&all, "samples(\"share\", #{rtt: 20, law: \"cdg\"})"), Value::List(vec![20.0, 21.0, 25.0]));
        assert_eq!(value(&all, "samples(\"share\").len()"), Value::from(12.0));
        assert_eq!(value(&all, "typical(\"share\", #{rtt: 50.0, law: \"reno\"})"), Value::from(151.0));
        assert_eq!(value(&all, "along(\"rtt\", \"share\", #{law: \"cdg\", rtt: 20})"), Value::List(vec![21.0, 51.0]));
        assert_eq!(value(&all, "values_of(\"rtt\").map(|x| x + 1)"), Value::List(vec![21.0, 51.0]));
        assert_eq!(value(&language(Some(2)), "typical(\"share\", #{rtt: 20, law: \"cdg\"})"), Value::from(25.0));
        let error = |expression| all.value("", expression, &rhai::Scope::new()).unwrap_err().to_string();
        assert!(error("samples(\"speed\")").contains("there are share"));
        assert!(error("samples(\"share\", #{rtt: 30})").contains("it has 20, 50"));
        assert!(error("samples(\"share\", #{tt: 30})").contains("there are rtt, law"));
        let cut = |expression| all.value("", expression, &rhai::Scope::new()).unwrap_err().is_no_such_cell();
        assert!(cut("samples(\"share\", #{rtt: 30})") && cut("[30].map(|rtt| typical(\"share\", #{rtt: rtt}))"));
        assert!(!cut("samples(\"speed\")") && !cut("samples(\"share\", #{tt: 30})") && !cut("[1][7]"));
    }
}
