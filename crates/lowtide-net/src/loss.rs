// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random loss that has nothing to do with the queue.

use crate::Probability;
use crate::random::{Random, Source};
use crate::text::{Parameters, TextError, print, read, why};
use std::fmt;
use std::str::FromStr;

/// How packets are lost at random. Written `0.1%` or `ge:p=1%,r=30%,good=0,bad=1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet on its own, with the same probability (Bernoulli).
    Bernoulli(Probability),
    /// In bursts.
    GilbertElliott(GilbertElliott),
}

impl LossModel {
    /// Nothing is lost.
    pub const NONE: Self = Self::Bernoulli(Probability::NEVER);
}

impl Default for LossModel {
    fn default() -> Self {
        Self::NONE
    }
}

/// Loss that depends on a hidden state, good or bad, which changes from packet to packet (Gilbert,
/// 1960; Elliott, 1963). It begins in the good state.
///
/// In the long run a part p/(p+r) of the packets meets the bad state, and it lasts for 1/r packets in
/// the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of a change from good to bad before each packet.
    pub p: Probability,
    /// Probability of a change from bad to good before each packet.
    pub r: Probability,
    /// Probability that a packet is lost in the good state. 0 in Gilbert's model.
    pub good: Probability,
    /// Probability that a packet is lost in the bad state. 1 in the simple Gilbert model.
    pub bad: Probability,
}

impl Default for GilbertElliott {
    /// One packet in a hundred begins a burst of three, in the mean.
    fn default() -> Self {
        let probability = |value| Probability::new(value).unwrap_or_default();
        Self { p: probability(0.01), r: probability(0.3), good: Probability::NEVER, bad: probability(1.0) }
    }
}

impl Parameters for GilbertElliott {
    const NAME: &'static str = "ge";
    const KEYS: &'static [&'static str] = &["p", "r", "good", "bad"];

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let probability = value.parse().map_err(why)?;
        match key {
            "p" => self.p = probability,
            "r" => self.r = probability,
            "good" => self.good = probability,
            _ => self.bad = probability,
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Option<String> {
        let probability = match key {
            "p" => self.p,
            "r" => self.r,
            "good" => self.good,
            _ => self.bad,
        };
        Some(probability.to_string())
    }

    fn defaults(&self) -> Self {
        Self::default()
    }
}

impl From<Probability> for LossModel {
    fn from(probability: Probability) -> Self {
        Self::Bernoulli(probability)
    }
}

impl FromStr for LossModel {
    type Err = TextError;

    /// Reads a probability, or `ge` with its parameters.
    ///
    /// # Errors
    /// Anything else.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        if name == "ge" {
            return read(GilbertElliott::default(), parameters).map(Self::GilbertElliott);
        }
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let sentence = "is not a model of loss; write a probability like 0.1%, or ge:p=1%,r=30%";
            return Err(TextError::new(format!("\"{name}\" {sentence}")));
        }
        text.parse().map(Self::Bernoulli).map_err(|error| TextError::new(why(error)))
    }
}

impl fmt::Display for LossModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bernoulli(probability) => fmt::Display::fmt(probability, f),
            Self::GilbertElliott(parameters) => print(parameters, f),
        }
    }
}

/// A [`LossModel`] at work.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    model: LossModel,
    bad: bool,
    random: Random,
}

impl Loss {
    /// The same seed gives the same losses.
    pub(crate) fn new(model: LossModel, seed: u64) -> Self {
        Self { model, bad: false, random: Random::new(seed, Source::Loss) }
    }

    /// Whether the next packet is lost.
    pub(crate) fn strikes(&mut self) -> bool {
        match self.model {
            LossModel::Bernoulli(Probability::NEVER) => false,
            LossModel::Bernoulli(probability) => self.random.strikes(probability.as_f64()),
            LossModel::GilbertElliott(GilbertElliott { p, r, good, bad }) => {
                let change = if self.bad { r } else { p };
                self.bad ^= self.random.strikes(change.as_f64());
                let loss = if self.bad { bad } else { good };
                self.random.strikes(loss.as_f64())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(model: &str, seed: u64, packets: usize) -> Vec<bool> {
        let mut loss = Loss::new(model.parse().unwrap(), seed);
        (0..packets).map(|_| loss.strikes()).collect()
    }

    #[test]
    fn seeded_and_as_frequent_as_asked() {
        let losses = |probability, seed| losses(probability, seed, 10_000);
        assert_eq!(losses("10%", 7), losses("10%", 7));
        assert_ne!(losses("10%", 7), losses("10%", 8));
        let lost = losses("10%", 7).into_iter().filter(|&lost| lost).count();
        // Five standard deviations of the binomial distribution are 150.
        assert!((850..=1150).contains(&lost), "{lost} of 10000");
        assert!(losses("0", 7).iter().all(|&lost| !lost));
        assert!(losses("1", 7).iter().all(|&lost| lost));
    }

    #[test]
    fn gilbert_elliott_has_its_stationary_loss_and_burst_length() {
        const N: usize = 200_000;
        let lost = losses("ge:p=1%,r=30%", 3, N);
        let rate = lost.iter().filter(|&&lost| lost).count() as f64 / N as f64;
        // p/(p+r); five standard deviations with the correlation 1-p-r of neighbours.
        assert!((rate - 0.01 / 0.31).abs() < 0.0047, "{rate}");
        let bursts = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
        let length = rate * N as f64 / bursts as f64;
        // 1/r; five standard errors of a geometric distribution's mean over some 1900 bursts.
        assert!((length - 1.0 / 0.3).abs() < 0.32, "{length}");
    }

    #[test]
    fn each_state_has_its_own_loss() {
        const N: usize = 200_000;
        let rate = |model| losses(model, 4, N).iter().filter(|&&lost| lost).count() as f64 / N as f64;
        // Half of the time in either state: (10 % + 50 %) / 2, with a band for the slow changes.
        let both = rate("ge:p=5%,r=5%,good=10%,bad=50%");
        assert!((both - 0.3).abs() < 0.012, "{both}");
        assert_eq!(rate("ge:p=0,good=0"), 0.0, "it begins in the good state");
        assert_eq!(rate("ge:p=1,r=0,good=0,bad=1"), 1.0);
    }

    #[test]
    fn models_are_read_and_printed() {
        for text in ["0", "0.001", "ge", "ge:p=0.02", "ge:p=0.02,r=0.5,good=0.1,bad=0.9"] {
            assert_eq!(text.parse::<LossModel>().unwrap().to_string(), text);
        }
        assert_eq!("ge:r=30%,p=1%".parse::<LossModel>().unwrap().to_string(), "ge");
        for (wrong, sentence) in [
            ("1.5", "\"1.5\" is not a probability; write it like 0.001 or 0.1%"),
            ("ge:p=2", "p of ge: \"2\" is not a probability; write it like 0.001 or 0.1%"),
            ("ge:q=1%", "\"q\" is not a parameter of ge; there are p, r, good and bad"),
            ("gilbert", "\"gilbert\" is not a model of loss; write a probability like 0.1%, or ge:p=1%,r=30%"),
        ] {
            assert_eq!(wrong.parse::<LossModel>().unwrap_err().to_string(), sentence);
        }
    }
}
