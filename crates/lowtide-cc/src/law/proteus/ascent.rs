// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate control: ascent along the gradient of utility (PCC Vivace's, with Proteus' majority of pairs). Rates are in
//! Mbit/s.

use super::Parameters;
use crate::Random;

/// The most pairs of trials.
pub(super) const MOST_PAIRS: usize = 5;
/// The most trials of one decision.
pub(super) const MOST_TRIALS: usize = 2 * MOST_PAIRS;
/// Greatest rate, Mbit/s.
const MOST_RATE: f64 = 1e6;

/// A rate, and its utility.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Trial {
    pub(super) rate: f64,
    pub(super) utility: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The rate doubles until utility falls.
    Starting,
    /// Pairs of trials above and below the rate show the direction.
    Probing,
    /// The rate moves in that direction as long as utility rises.
    Moving,
}

#[derive(Clone, Debug)]
pub(super) struct Ascent {
    phase: Phase,
    /// The rate of the next trial, or in the middle of the pairs, Mbit/s.
    rate: f64,
    /// The rates of the pairs, in the order in which they are tried.
    pairs: [f64; MOST_TRIALS],
    /// The trial to compare with.
    before: Trial,
    up: bool,
    /// Steps made in this direction.
    steps: u32,
    /// How often the bound of a step has been widened.
    wider: u32,
    random: Random,
}

impl Ascent {
    pub(super) fn new(rate: f64, seed: u64) -> Self {
        Self {
            phase: Phase::Starting,
            rate,
            pairs: [0.0; MOST_TRIALS],
            before: Trial::default(), // nothing is worth nothing
            up: true,
            steps: 0,
            wider: 0,
            random: Random::new(seed),
        }
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Trials that the next decision needs.
    pub(super) fn trials(&self, parameters: &Parameters) -> usize {
        if self.phase == Phase::Probing { 2 * parameters.pairs as usize } else { 1 }
    }

    /// The rate of the n-th of them.
    pub(super) fn trial(&self, n: usize) -> f64 {
        if self.phase == Phase::Probing { self.pairs[n] } else { self.rate }
    }

    /// Decides by these trials, as many as required.
    pub(super) fn decide(&mut self, trials: &[Trial], parameters: &Parameters) {
        match (self.phase, trials) {
            (Phase::Starting, &[trial]) => {
                if trial.utility > self.before.utility {
                    self.before = trial;
                    self.set_rate(2.0 * self.rate, parameters);
                } else {
                    self.probe(0.5 * self.rate, parameters);
                }
            }
            (Phase::Moving, &[trial]) => {
                let rises = (trial.utility - self.before.utility) / (trial.rate - self.before.rate);
                if rises.is_finite() && rises != 0.0 && (rises > 0.0) == self.up {
                    self.steps += 1;
                    self.before = trial;
                    self.step(self.rate, rises, parameters);
                } else {
                    self.probe(self.before.rate, parameters);
                }
            }
            (_, pairs) => self.choose(pairs, parameters),
        }
    }

    /// The rate could not be reached, only this one.
    pub(super) fn falls_short(&mut self, rate: f64, parameters: &Parameters) {
        self.probe(rate.min(self.rate), parameters);
    }

    /// The majority of the pairs gives the direction; if there is none they are tried again.
    fn choose(&mut self, trials: &[Trial], parameters: &Parameters) {
        let higher_is_better = |pair: &[Trial]| {
            let (low, high) = if pair[0].rate < pair[1].rate { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
            high.utility > low.utility
        };
        let pairs = trials.len() / 2;
        let ups = trials.chunks_exact(2).filter(|pair| higher_is_better(pair)).count();
        if 2 * ups == pairs {
            return self.probe(self.rate, parameters);
        }
        self.up = 2 * ups > pairs;
        // The mean of all that agree counts.
        let mut difference = 0.0;
        for pair in trials.chunks_exact(2).filter(|pair| higher_is_better(pair) == self.up) {
            difference += (pair[0].utility - pair[1].utility).abs();
            self.before = if pair[0].utility > pair[1].utility { pair[0] } else { pair[1] };
        }
        let rises = difference / pairs as f64 / (2.0 * parameters.epsilon * self.rate);
        (self.phase, self.steps, self.wider) = (Phase::Moving, 1, 0);
        let epsilon = if self.up { parameters.epsilon } else { -parameters.epsilon };
        self.step(self.rate * (1.0 + epsilon), rises, parameters);
    }

    /// A step from this rate, if utility rises by `rises` per Mbit/s.
    fn step(&mut self, from: f64, rises: f64, parameters: &Parameters) {
        let confidence = libm::pow(f64::from(self.steps.div_ceil(2)), parameters.amplifier);
        let wanted = parameters.theta * rises.abs() * confidence;
        let bound = from * (parameters.omega + parameters.delta * f64::from(self.wider));
        self.wider = if wanted > bound { self.wider.saturating_add(1) } else { self.wider.saturating_sub(1) };
        let change = wanted.min(bound).max(parameters.min_step);
        let rate = if self.up { from + change } else { from - change };
        self.set_rate(rate, parameters);
        if rate < parameters.min_rate {
            self.probe(parameters.min_rate, parameters);
        }
    }

    fn probe(&mut self, rate: f64, parameters: &Parameters) {
        self.phase = Phase::Probing;
        self.set_rate(rate, parameters);
        let (low, high) = (self.rate * (1.0 - parameters.epsilon), self.rate * (1.0 + parameters.epsilon));
        for pair in self.pairs.chunks_exact_mut(2) {
            let first = self.random.uniform() < 0.5;
            (pair[0], pair[1]) = if first { (high, low) } else { (low, high) };
        }
    }

    fn set_rate(&mut self, rate: f64, parameters: &Parameters) {
        self.rate = rate.clamp(parameters.min_rate, MOST_RATE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs decisions with this utility of rates. Returns the rates before each.
    fn climb(ascent: &mut Ascent, decisions: usize, utility: impl Fn(f64) -> f64) -> Vec<(Phase, f64)> {
        let parameters = Parameters::default();
        let mut rates = Vec::new();
        for _ in 0..decisions {
            rates.push((ascent.phase, ascent.rate));
            let trial = |n| Trial { rate: ascent.trial(n), utility: utility(ascent.trial(n)) };
            let trials: Vec<Trial> = (0..ascent.trials(&parameters)).map(trial).collect();
            ascent.decide(&trials, &parameters);
        }
        rates
    }

    /// Utility is the rate up to a peak, and falls steeply above.
    fn tent(peak: f64) -> impl Fn(f64) -> f64 {
        move |rate| if rate > peak { peak - 50.0 * (rate - peak) } else { rate }
    }

    #[test]
    fn the_rate_doubles_until_utility_falls_and_one_doubling_is_taken_back() {
        let rates = climb(&mut Ascent::new(3.0, 1), 6, tent(20.0));
        let rates: Vec<f64> = rates.into_iter().map(|(_, rate)| rate).collect();
        assert_eq!(rates[..5], [3.0, 6.0, 12.0, 24.0, 12.0]);
    }

    #[test]
    fn pairs_are_five_percent_apart_in_random_order() {
        let mut ascent = Ascent::new(10.0, 7);
        let parameters = Parameters::default();
        let mut first_is_high = 0;
        for _ in 0..100 {
            ascent.probe(10.0, &parameters);
            assert_eq!(ascent.trials(&parameters), 6);
            for n in [0, 2, 4] {
                let (a, b) = (ascent.trial(n), ascent.trial(n + 1));
                assert!((a.max(b) - 10.5).abs() < 1e-9 && (a.min(b) - 9.5).abs() < 1e-9);
                first_is_high += u32::from(a > b);
            }
        }
        assert!((110..190).contains(&first_is_high), "{first_is_high}");
    }

    /// Three pairs around 100, of which so many show up.
    fn pairs(ups: usize) -> Vec<Trial> {
        let pair = |n: usize| {
            let (high, low) = if n < ups { (3.0, 1.0) } else { (1.0, 3.0) };
            [Trial { rate: 105.0, utility: high }, Trial { rate: 95.0, utility: low }]
        };
        (0..3).flat_map(pair).collect()
    }

    #[test]
    fn the_majority_decides_and_the_step_is_bounded() {
        let parameters = Parameters::default();
        for (ups, expected) in [(3, 105.5), (2, 105.5), (1, 94.5), (0, 94.5)] {
            let mut ascent = Ascent::new(1.0, 1);
            ascent.probe(100.0, &parameters);
            ascent.decide(&pairs(ups), &parameters);
            // Two in ten is a step of 0.2 Mbit/s, and the least is half a Mbit/s.
            assert!(ascent.phase == Phase::Moving && (ascent.rate - expected).abs() < 1e-9, "{ups}: {}", ascent.rate);
        }
        let steep = parameters.clone().theta(1e3).unwrap();
        let mut ascent = Ascent::new(1.0, 1);
        ascent.probe(100.0, &steep);
        ascent.decide(&pairs(3), &steep);
        assert!((ascent.rate - 105.0 * 1.05).abs() < 1e-9, "{}", ascent.rate);
    }

    #[test]
    fn pairs_that_do_not_agree_are_tried_again() {
        let parameters = Parameters::default().pairs(2).unwrap();
        let mut ascent = Ascent::new(1.0, 1);
        ascent.probe(100.0, &parameters);
        ascent.decide(&pairs(1)[..4], &parameters);
        assert_eq!((ascent.phase, ascent.rate), (Phase::Probing, 100.0));
    }

    #[test]
    fn confidence_and_bound_grow_while_utility_rises() {
        let mut ascent = Ascent::new(1.0, 1);
        ascent.probe(10.0, &Parameters::default());
        // A slope of one: the bound of 5 % is the limit at first.
        let rates = climb(&mut ascent, 12, |rate| 10.0 * rate);
        let factors: Vec<f64> = rates[1..].windows(2).map(|pair| pair[1].1 / pair[0].1).collect();
        assert!((factors[0] - 1.1).abs() < 1e-9 && (factors[1] - 1.15).abs() < 1e-9, "{factors:?}");
        assert!(factors.windows(2).all(|pair| pair[1] >= pair[0]), "{factors:?}");
        assert!(rates[11].1 > 100.0, "tenfold in a few steps: {}", rates[11].1);
    }

    #[test]
    fn it_stays_near_the_peak_and_returns_to_the_better_rate() {
        let mut ascent = Ascent::new(1.0, 1);
        let rates = climb(&mut ascent, 300, tent(40.0));
        assert!(rates[50..].iter().all(|(_, rate)| (34.0..43.0).contains(rate)), "{rates:?}");
    }

    proptest! {
        #[test]
        fn any_utility_leaves_a_rate(seed in any::<u64>(), utilities in prop::collection::vec(-1e12f64..1e12, 300)) {
            let parameters = Parameters::default();
            let mut ascent = Ascent::new(1.0, seed);
            let mut utilities = utilities.into_iter();
            loop {
                let n = ascent.trials(&parameters);
                let trials: Vec<Trial> =
                    utilities.by_ref().take(n).enumerate().map(|(n, utility)| Trial { rate: ascent.trial(n), utility }).collect();
                if trials.len() < n {
                    break;
                }
                ascent.decide(&trials, &parameters);
                prop_assert!((parameters.min_rate..=MOST_RATE).contains(&ascent.rate));
            }
        }
    }
}
