// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of numbers and of lists of them.

use super::{Answer, Language, number, wrong};
use crate::statistics;
use rhai::{Array, Dynamic};

/// A function of a number, and one of a list.
type OfNumber = fn(f64) -> f64;
pub(super) type OfList = fn(&[f64]) -> Option<f64>;

pub(super) fn register(language: &mut Language) {
    let functions: [(&str, &str, OfNumber); 9] = [
        ("abs(x)", "|x|", f64::abs),
        ("sqrt(x)", "√x", libm::sqrt),
        ("exp(x)", "eˣ", libm::exp),
        ("ln(x)", "the natural logarithm", libm::log),
        ("log2(x)", "the logarithm to base 2", libm::log2),
        ("log10(x)", "the logarithm to base 10", libm::log10),
        ("floor(x)", "the next whole number below", libm::floor),
        ("ceil(x)", "the next whole number above", libm::ceil),
        ("round(x)", "the nearest whole number", libm::round),
    ];
    for (form, about, function) in functions {
        language.add(form, about, move |x: Dynamic| Answer::Ok(function(number(&x)?)));
    }
    language.add("pow(x, y)", "xʸ", |x: Dynamic, y: Dynamic| Answer::Ok(libm::pow(number(&x)?, number(&y)?)));
    let functions: [(&str, &str, OfList); 6] = [
        ("mean(list)", "the mean; nothing of an empty list", statistics::mean),
        ("median(list)", "the median; nothing of an empty list", statistics::median),
        ("min(list)", "the least", statistics::min),
        ("max(list)", "the greatest", statistics::max),
        ("variance(list)", "the variance, of the values as they are (divided by their number)", statistics::variance),
        ("spread(list)", "the greatest less the least", statistics::spread),
    ];
    for (form, about, function) in functions {
        language.add(form, about, move |list: Array| Answer::Ok(optional(function(&numbers(&list)?))));
    }
    language.add("sum(list)", "the sum", |list: Array| Answer::Ok(numbers(&list)?.iter().sum::<f64>()));
    language.add(
        "quantile(list, p)",
        "the value below which the part p lies, between neighbours linearly; p from 0 to 1",
        |list: Array, p: Dynamic| Answer::Ok(optional(statistics::quantile(&numbers(&list)?, number(&p)?))),
    );
    language.add(
        "quantiles(list, n)",
        "n + 1 quantiles from the least to the greatest value: a long list made short",
        |list: Array, n: Dynamic| {
            let (list, n) = (numbers(&list)?, number(&n)?);
            let quantile = |step: i64| statistics::quantile(&list, step as f64 / n).map(Dynamic::from);
            Answer::Ok((0..=n as i64).filter_map(quantile).collect::<Array>())
        },
    );
    language.add("jain(list)", "Jain's index of fairness; nothing if all are 0", |list: Array| {
        Answer::Ok(optional(statistics::jain(&numbers(&list)?)))
    });
    language.add(
        "rising(list, slack)",
        "whether no value is more than slack (0 unless given) below one before it",
        |list: Array, slack: Dynamic| Answer::Ok(rising(&numbers(&list)?, number(&slack)?)),
    );
    language.also("rising(list)", |list: Array| Answer::Ok(rising(&numbers(&list)?, 0.0)));
    language.add(
        "falling(list, slack)",
        "whether no value is more than slack (0 unless given) above one before it",
        |list: Array, slack: Dynamic| Answer::Ok(falling(&numbers(&list)?, number(&slack)?)),
    );
    language.also("falling(list)", |list: Array| Answer::Ok(falling(&numbers(&list)?, 0.0)));
    language.add("strictly_rising(list)", "whether each value is above the one before it", |list: Array| {
        Answer::Ok(numbers(&list)?.is_sorted_by(|a, b| a < b))
    });
    language.add("strictly_falling(list)", "whether each value is below the one before it", |list: Array| {
        Answer::Ok(numbers(&list)?.is_sorted_by(|a, b| a > b))
    });
    language.add(
        "slope(xs, ys)",
        "the slope of the straight line with the least squares through these points",
        |xs: Array, ys: Array| {
            let (xs, ys) = (numbers(&xs)?, numbers(&ys)?);
            if xs.len() != ys.len() {
                return wrong(format!("slope: {} values of x and {} of y", xs.len(), ys.len()));
            }
            Ok(optional(statistics::slope(&xs, &ys)))
        },
    );
}

/// The numbers of a list; what is missing is left out.
pub(super) fn numbers(list: &Array) -> Answer<Vec<f64>> {
    list.iter().filter(|value| !value.is_unit()).map(number).collect()
}

/// A number, or nothing.
pub(super) fn optional(value: Option<f64>) -> Dynamic {
    value.filter(|value| value.is_finite()).map_or(Dynamic::UNIT, Dynamic::from)
}

fn rising(list: &[f64], slack: f64) -> bool {
    let mut most = f64::NEG_INFINITY;
    list.iter().all(|value| {
        most = most.max(*value);
        *value >= most - slack
    })
}

fn falling(list: &[f64], slack: f64) -> bool {
    rising(&list.iter().map(|value| -value).collect::<Vec<_>>(), slack)
}

#[cfg(test)]
mod tests {
    use super::super::{Context, Language, Value};

    fn value(expression: &str) -> Value {
        Language::new(Context::Nothing).value("", expression, &rhai::Scope::new()).unwrap()
    }

    #[test]
    fn lists() {
        for (expression, expected) in [
            ("mean([1, 2, 6])", 3.0),
            ("[4, 1, 2].median()", 2.0),
            ("median([1, 2, 3, 4])", 2.5),
            ("quantile([0, 10], 0.25)", 2.5),
            ("max([1, 3, 2]) + min([5, 4])", 7.0),
            ("spread([1, 3, 2])", 2.0),
            ("variance([1, 3])", 1.0),
            ("sum([1, (), 2.5])", 3.5),
            ("jain([1, 1, 0])", 2.0 / 3.0),
            ("slope([0, 1, 2], [1, 3, 5])", 2.0),
            ("pow(2, 0.5) * sqrt(2)", 2.0),
            ("if rising([1, 3, 2, 4], 1) && !rising([1, 3, 2]) { 1 } else { 0 }", 1.0),
            ("if falling([4, 4, 2]) && !strictly_falling([4, 4, 2]) && strictly_falling([4, 2]) { 1 } else { 0 }", 1.0),
        ] {
            let Value::Number(Some(number)) = value(expression) else { panic!("{expression}") };
            assert!((number - expected).abs() < 1e-12, "{expression} is {number}");
        }
        assert_eq!(value("median([])"), Value::Number(None));
        assert_eq!(value("quantiles([0, 4], 2)"), Value::List(vec![0.0, 2.0, 4.0]));
    }
}
