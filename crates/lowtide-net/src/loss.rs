// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random loss that has nothing to do with the queue.

use crate::Probability;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Loses each packet independently with the same probability (Bernoulli loss).
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    probability: Probability,
    random: SmallRng,
}

impl Loss {
    /// The same seed gives the same losses.
    pub(crate) fn new(probability: Probability, seed: u64) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { probability, random }
    }

    /// Whether the next packet is lost.
    pub(crate) fn strikes(&mut self) -> bool {
        self.random.random::<f64>() < self.probability.as_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(probability: f64, seed: u64) -> Vec<bool> {
        let mut loss = Loss::new(Probability::new(probability).unwrap(), seed);
        (0..10_000).map(|_| loss.strikes()).collect()
    }

    #[test]
    fn seeded_and_as_frequent_as_asked() {
        assert_eq!(losses(0.1, 7), losses(0.1, 7));
        assert_ne!(losses(0.1, 7), losses(0.1, 8));
        let lost = losses(0.1, 7).into_iter().filter(|&lost| lost).count();
        // Five standard deviations of the binomial distribution are 150.
        assert!((850..=1150).contains(&lost), "{lost} of 10000");
        assert!(losses(0.0, 7).iter().all(|&lost| !lost));
        assert!(losses(1.0, 7).iter().all(|&lost| lost));
    }
}
