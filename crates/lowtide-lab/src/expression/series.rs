// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time series, and the functions of them.

use super::{
    Answer, Language, number,
    numbers::{OfList, numbers, optional},
    wrong,
};
use crate::statistics;
use rhai::{Array, Dynamic};
use std::rc::Rc;

/// A quantity over time. Where it has no value it is NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Seconds, rising.
    pub times: Rc<[f64]>,
    /// As many values.
    pub values: Rc<[f64]>,
}

pub(super) fn register(language: &mut Language) {
    language.engine.register_type_with_name::<Series>("time series");
    spans(language);
    summaries(language);
    crossings(language);
    arithmetic(language);
}

/// Parts of a series, and its values.
fn spans(language: &mut Language) {
    language.add(
        "series.between(from, to)",
        "the samples after one time and not after the other, in seconds",
        |series: &mut Series, from: Dynamic, to: Dynamic| Answer::Ok(series.between(number(&from)?, number(&to)?)),
    );
    language.add(
        "series.bins(width)",
        "means over bins of so many seconds, each at the end of its bin",
        |series: &mut Series, width: Dynamic| match number(&width)? {
            width if width > 0.0 => Ok(series.bins(width)),
            _ => wrong("bins: a width above 0 is needed"),
        },
    );
    language.add("series.values()", "its values as a list, missing ones left out", |series: &mut Series| {
        series.present().map(|(_, value)| Dynamic::from(value)).collect::<Array>()
    });
    language.add("series.times()", "the times of these values", |series: &mut Series| {
        series.present().map(|(time, _)| Dynamic::from(time)).collect::<Array>()
    });
    language.add("series.at(time)", "the latest value at this time; nothing before the first", {
        |series: &mut Series, time: Dynamic| {
            let time = number(&time)?;
            // a sample's time is a sum of intervals, so the last digit is not to be trusted
            let latest = series.present().take_while(|(at, _)| *at <= time + 1e-9).last();
            Answer::Ok(optional(latest.map(|(_, value)| value)))
        }
    });
}

/// Single numbers from a series.
fn summaries(language: &mut Language) {
    let functions: [(&str, &str, OfList); 7] = [
        ("series.mean()", "the mean of its samples", statistics::mean),
        ("series.median()", "the median", statistics::median),
        ("series.min()", "the least", statistics::min),
        ("series.max()", "the greatest", statistics::max),
        ("series.first()", "the first value", |list| list.first().copied()),
        ("series.last()", "the last value", |list| list.last().copied()),
        ("series.sum()", "the sum of its samples", |list| Some(list.iter().sum())),
    ];
    for (form, about, function) in functions {
        let form: &'static str = form;
        language.add(form, about, move |series: &mut Series| optional(function(&series.list())));
    }
    language.add("series.quantile(p)", "the value below which the part p of the samples lies", {
        |series: &mut Series, p: Dynamic| Answer::Ok(optional(statistics::quantile(&series.list(), number(&p)?)))
    });
    language.add("series.slope()", "the slope of the straight line through its samples, per second", {
        |series: &mut Series| {
            let (times, values): (Vec<_>, Vec<_>) = series.present().unzip();
            optional(statistics::slope(&times, &values))
        }
    });
}

/// When a series is above or below a level.
fn crossings(language: &mut Language) {
    language.add(
        "series.reaches(level, after)",
        "how many seconds after a time it is first at this level or above; nothing if never",
        |series: &mut Series, level: Dynamic, after: Dynamic| {
            let (level, after) = (number(&level)?, number(&after)?);
            Answer::Ok(optional(series.first(after, |value| value >= level)))
        },
    );
    language.add(
        "series.falls_to(level, after)",
        "how many seconds after a time it is first at this level or below; nothing if never",
        |series: &mut Series, level: Dynamic, after: Dynamic| {
            let (level, after) = (number(&level)?, number(&after)?);
            Answer::Ok(optional(series.first(after, |value| value <= level)))
        },
    );
    language.add(
        "series.settles_below(level, from, to)",
        "how many seconds after `from` it is for the last time above this level, up to `to`; 0 if never",
        |series: &mut Series, level: Dynamic, from: Dynamic, to: Dynamic| {
            let (level, from, to) = (number(&level)?, number(&from)?, number(&to)?);
            let span = series.between(from, to);
            let last = span.present().filter(|(_, value)| *value > level).last();
            Answer::Ok(last.map_or(0.0, |(time, _)| time - from))
        },
    );
    language.add(
        "series.part_above(level)",
        "the part of its samples that is above this level",
        |series: &mut Series, level: Dynamic| {
            let (level, list) = (number(&level)?, series.list());
            let above = list.iter().filter(|value| **value > level).count();
            Answer::Ok(optional(Some(above as f64 / list.len() as f64)))
        },
    );
    language.add(
        "series.crossings(level)",
        "how many times it goes from below this level to above it or back",
        |series: &mut Series, level: Dynamic| {
            let level = number(&level)?;
            let sides: Vec<bool> = series.present().map(|(_, value)| value > level).collect();
            Answer::Ok(sides.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64)
        },
    );
}

type Operator = fn(f64, f64) -> f64;

/// `+`, `-`, `*` and `/` of series with the same times, and of a series with a number.
fn arithmetic(language: &mut Language) {
    let operators: [(&'static str, Operator); 4] =
        [("+", |a, b| a + b), ("-", |a, b| a - b), ("*", |a, b| a * b), ("/", |a, b| a / b)];
    for (operator, function) in operators {
        let engine = &mut language.engine;
        engine.register_fn(operator, move |a: Series, b: Series| a.with(&b, function));
        engine.register_fn(operator, move |a: Series, b: f64| a.map(|value| function(value, b)));
        engine.register_fn(operator, move |a: Series, b: i64| a.map(|value| function(value, b as f64)));
        engine.register_fn(operator, move |a: f64, b: Series| b.map(|value| function(a, value)));
        engine.register_fn(operator, move |a: i64, b: Series| b.map(|value| function(a as f64, value)));
    }
    language.add(
        "series(times, values)",
        "a time series of one's own; + - * / also work between series with the same times, and with numbers",
        |times: Array, values: Array| match (numbers(&times)?, numbers(&values)?) {
            (times, values) if times.len() == values.len() => Ok(Series { times: times.into(), values: values.into() }),
            (times, values) => wrong(format!("series: {} times and {} values", times.len(), values.len())),
        },
    );
}

impl Series {
    /// The samples with a value.
    pub(crate) fn present(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.times.iter().copied().zip(self.values.iter().copied()).filter(|(_, value)| !value.is_nan())
    }

    fn list(&self) -> Vec<f64> {
        self.present().map(|(_, value)| value).collect()
    }

    /// The samples that stand for the time from here to there.
    pub(super) fn between(&self, from: f64, to: f64) -> Self {
        let place = |time: f64| self.times.partition_point(|at| *at <= time + 1e-9);
        let (first, end) = (place(from), place(to));
        let end = end.max(first);
        Self { times: self.times[first..end].into(), values: self.values[first..end].into() }
    }

    pub(super) fn bins(&self, width: f64) -> Self {
        let mut bins: Vec<(f64, f64, f64)> = Vec::new();
        for (time, value) in self.present() {
            let end = libm::ceil((time - 1e-9) / width) * width;
            match bins.last_mut().filter(|(last, _, _)| end - *last < width / 2.0) {
                Some((_, sum, count)) => (*sum, *count) = (*sum + value, *count + 1.0),
                None => bins.push((end, value, 1.0)),
            }
        }
        let (times, values): (Vec<_>, Vec<_>) = bins.into_iter().map(|(end, sum, count)| (end, sum / count)).unzip();
        Self { times: times.into(), values: values.into() }
    }

    /// Seconds from `after` to the first sample that does.
    fn first(&self, after: f64, does: impl Fn(f64) -> bool) -> Option<f64> {
        self.present().find(|(time, value)| *time > after + 1e-9 && does(*value)).map(|(time, _)| time - after)
    }

    fn map(&self, function: impl Fn(f64) -> f64) -> Self {
        Self { times: self.times.clone(), values: self.values.iter().map(|value| function(*value)).collect() }
    }

    /// With another one of the same times.
    pub(super) fn with(&self, other: &Self, function: impl Fn(f64, f64) -> f64) -> Answer<Self> {
        if self.times != other.times {
            return wrong("these two time series do not have the same times");
        }
        let values = self.values.iter().zip(other.values.iter()).map(|(a, b)| function(*a, *b)).collect();
        Ok(Self { times: self.times.clone(), values })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Context, Language, Value};

    /// One sample a second: 0, 2, 4, 3, 1.
    fn value(expression: &str) -> Value {
        let functions = "fn s() { series([1, 2, 3, 4, 5], [0, 2, 4, 3, 1]) }";
        Language::new(Context::Nothing).value(functions, expression, &rhai::Scope::new()).unwrap()
    }

    #[test]
    fn spans_and_bins() {
        assert_eq!(value("s().between(1, 3).values()"), Value::List(vec![2.0, 4.0]));
        assert_eq!(value("s().between(4, 1).values()"), Value::List(vec![]));
        assert_eq!(value("s().bins(2).values()"), Value::List(vec![1.0, 3.5, 1.0]));
        assert_eq!(value("s().bins(2).times()"), Value::List(vec![2.0, 4.0, 6.0]));
        assert_eq!(value("s().at(3.5)"), Value::from(4.0));
        assert_eq!(value("s().at(0.5)"), Value::Number(None));
    }

    #[test]
    fn numbers_of_a_series() {
        for (expression, expected) in [
            ("s().mean()", 2.0),
            ("s().max() - s().min()", 4.0),
            ("s().quantile(0.5)", 2.0),
            ("s().between(0, 3).slope()", 2.0),
            ("s().reaches(2, 0.5)", 1.5),
            ("s().falls_to(1, 2)", 3.0),
            ("s().settles_below(2, 1, 5)", 3.0),
            ("s().settles_below(9, 1, 5)", 0.0),
            ("s().part_above(1)", 0.6),
            ("s().crossings(1.5)", 2.0),
            ("(2 * s() + s() / 2 - 1).last()", 1.5),
            ("s().sum() + s().first()", 10.0),
        ] {
            assert_eq!(value(expression), Value::from(expected), "{expression}");
        }
        assert_eq!(value("s().reaches(5, 0)"), Value::Number(None));
    }
}
