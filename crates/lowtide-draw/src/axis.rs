// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scale from 0, its ticks and labels.

/// What the values from 0 to `full` are drawn between.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Where 0 is.
    pub zero: f64,
    /// Where `full` is.
    pub end: f64,
    /// The largest value.
    pub full: f64,
}

impl Axis {
    /// The place of a value; of one that is beyond the ends, the end.
    pub fn place(self, value: f64) -> f64 {
        self.zero + (self.end - self.zero) * value.clamp(0.0, self.full) / self.full
    }

    /// Values for about `number` ticks: multiples of 1, 2 or 5 times a power of ten.
    pub fn ticks(self, number: f64) -> Vec<f64> {
        let step = round_step(self.full / number);
        (0..).map(|n| f64::from(n) * step).take_while(|value| *value <= self.full * 1.000_001).take(100).collect()
    }
}

/// The least of 1, 2 or 5 times a power of ten that is not below `rough`, which has to be above zero.
pub fn round_step(rough: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough * 0.999);
    step.unwrap_or(rough)
}

/// A value without needless digits.
pub fn label(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The unit for rates up to `bps`, and how many bit/s it is.
pub fn rate_unit(bps: f64) -> (f64, &'static str) {
    match bps {
        bps if bps >= 1e9 => (1e9, "Gbit/s"),
        bps if bps >= 1e6 => (1e6, "Mbit/s"),
        _ => (1e3, "kbit/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let ticks = |full, number| {
            let ticks = Axis { zero: 0.0, end: 1.0, full }.ticks(number);
            ticks.into_iter().map(label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks(10.5, 5.0), "0 5 10");
        assert_eq!(ticks(10.0, 5.0), "0 2 4 6 8 10");
        assert_eq!(ticks(0.3, 3.0), "0 0.1 0.2 0.3");
        assert_eq!(ticks(120.0, 6.0), "0 20 40 60 80 100 120");
    }

    #[test]
    fn rates_have_a_fitting_unit() {
        assert_eq!([2e9, 3e6, 5e3].map(|bps| rate_unit(bps).1), ["Gbit/s", "Mbit/s", "kbit/s"]);
    }
}
