// SPDX-License-Identifier: MIT OR Apache-2.0
//! From values of any range, or from names, to places.

use crate::axis::{label, round_step};

/// Where values are drawn.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Where the least and the greatest value are.
    pub(crate) start: f64,
    pub(crate) end: f64,
    /// The least and the greatest value.
    least: f64,
    most: f64,
    /// Powers are at equal distances.
    log: bool,
    /// In place of numbers, at 0, 1, 2, …
    names: Option<Vec<String>>,
}

impl Scale {
    /// A scale that has room for these values, or for the given range. One of numbers begins at 0, unless there are
    /// values below it or a range is given.
    pub fn new(values: &[f64], range: Option<[f64; 2]>, log: bool) -> Self {
        let fits = |value: &&f64| value.is_finite() && (!log || **value > 0.0);
        let low = values.iter().filter(fits).copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().filter(fits).copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low <= high { (low, high) } else { (if log { 1.0 } else { 0.0 }, 1.0) };
        let (least, most) = match (range, log) {
            (Some([least, most]), _) if least < most => (least, most),
            (_, true) if low < high => (low, high),
            (_, true) => (low / 2.0, low * 2.0),
            (_, false) => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                let room = 0.05 * (high - low).max(f64::MIN_POSITIVE);
                let high = if low < high { high + room } else { low + 1.0 };
                (if low < 0.0 { low - room } else { low }, high)
            }
        };
        Self { start: 0.0, end: 1.0, least, most, log: log && least > 0.0, names: None }
    }

    /// A scale of names.
    pub fn of_names(names: Vec<String>) -> Self {
        let most = names.len() as f64 - 0.5;
        Self { start: 0.0, end: 1.0, least: -0.5, most, log: false, names: Some(names) }
    }

    /// The same without the room around the values, where a curve goes from one end to the other.
    pub fn tight(mut self, values: &[f64]) -> Self {
        let all = || values.iter().copied();
        if let (Some(least), Some(most)) = (all().min_by(f64::total_cmp), all().max_by(f64::total_cmp))
            && least < most
            && self.names.is_none()
        {
            (self.least, self.most) = (least, most);
        }
        self
    }

    pub(crate) fn between(self, start: f64, end: f64) -> Self {
        Self { start, end, ..self }
    }

    /// The place of a value; of one that is beyond the ends, the end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let part = if self.log {
            let (least, most) = (libm::log10(self.least), libm::log10(self.most));
            (libm::log10(value.max(self.least)) - least) / (most - least)
        } else {
            (value - self.least) / (self.most - self.least)
        };
        self.start + (self.end - self.start) * part.clamp(0.0, 1.0)
    }

    /// Whether it is drawn.
    pub(crate) fn has(&self, value: f64) -> bool {
        let slack = 1e-9 * (self.most - self.least);
        value >= self.least - slack && value <= self.most + slack
    }

    /// Places and labels of about `number` ticks.
    pub(crate) fn ticks(&self, number: f64) -> Vec<(f64, String)> {
        if let Some(names) = &self.names {
            return names.iter().enumerate().map(|(at, name)| (self.place(at as f64), name.clone())).collect();
        }
        let values = if self.log { self.powers() } else { self.steps(number) };
        values.into_iter().filter(|value| self.has(*value)).map(|value| (self.place(value), label(value))).collect()
    }

    fn steps(&self, number: f64) -> Vec<f64> {
        let step = round_step((self.most - self.least) / number);
        let first = libm::ceil(self.least / step - 1e-9);
        (0..100).map(|n| (first + f64::from(n)) * step).take_while(|value| *value <= self.most + step * 1e-6).collect()
    }

    /// Powers of ten; where these are few, twice and five times them, too.
    fn powers(&self) -> Vec<f64> {
        let (least, most) = (libm::floor(libm::log10(self.least)) as i32, libm::ceil(libm::log10(self.most)) as i32);
        let factors: &[f64] = if libm::log10(self.most / self.least) > 3.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let power = |n: i32| factors.iter().map(move |factor| factor * libm::pow(10.0, f64::from(n)));
        (least..=most).flat_map(power).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(scale: &Scale) -> String {
        scale.ticks(5.0).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(&Scale::new(&[3.0, 48.0], None, false)), "0 20 40");
        assert_eq!(ticks(&Scale::new(&[-2.0, 2.0], None, false)), "-2 -1 0 1 2");
        assert_eq!(ticks(&Scale::new(&[0.1, 120.0], None, true)), "0.1 0.2 0.5 1 2 5 10 20 50 100");
        assert_eq!(ticks(&Scale::new(&[1e-6, 1.0], None, true)), "0.000001 0.00001 0.0001 0.001 0.01 0.1 1");
        assert_eq!(ticks(&Scale::new(&[], Some([0.9, 1.0]), false)), "0.9 0.92 0.94 0.96 0.98 1");
        assert_eq!(ticks(&Scale::of_names(vec!["a".into(), "b".into()])), "a b");
    }

    #[test]
    fn places_are_between_the_ends() {
        let log = Scale::new(&[0.1, 10.0], None, true).between(100.0, 300.0);
        assert_eq!([0.1, 1.0, 10.0, 99.0].map(|value| log.place(value).round()), [100.0, 200.0, 300.0, 300.0]);
        let names = Scale::of_names(vec!["a".into(), "b".into()]).between(0.0, 100.0);
        assert_eq!([0.0, 1.0].map(|value| names.place(value)), [25.0, 75.0]);
        for values in [vec![], vec![0.0], vec![5.0], vec![f64::NAN]] {
            for log in [false, true] {
                assert!(Scale::new(&values, None, log).place(1.0).is_finite(), "{values:?}");
            }
        }
    }
}
