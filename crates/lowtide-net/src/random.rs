// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chance: one generator for each of its sources, the same numbers on every machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// What a generator decides. Each source has numbers of its own, so that switching one on does not
/// change what another one does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Loss,
    Queue,
    Jitter,
    Reordering,
}

/// A generator with a fixed algorithm: xoshiro256++ (Blackman and Vigna, 2021), seeded by splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The same seed and source give the same numbers. The sources' sequences lie 2^128 numbers apart
    /// from each other.
    pub(crate) fn new(seed: u64, source: Source) -> Self {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..source as u8 {
            generator.jump();
        }
        Self(generator)
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 * SCALE
    }

    /// True with this probability.
    pub(crate) fn strikes(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Normally distributed with mean 0 and standard deviation 1 (Box and Muller, 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_same_everywhere() {
        let mut random = Random::new(1, Source::Loss);
        let first = [random.unit(), random.unit(), random.unit(), random.normal()];
        let expected = [4605485571977896056, 4604904540587870204, 4591881053812534000, 4604126913525646043];
        assert_eq!(first.map(f64::to_bits), expected);
    }

    #[test]
    fn sources_and_seeds_differ() {
        let first = |seed, source| Random::new(seed, source).unit();
        assert_eq!(first(1, Source::Queue), first(1, Source::Queue));
        assert_ne!(first(1, Source::Queue), first(1, Source::Loss));
        assert_ne!(first(1, Source::Queue), first(1, Source::Jitter));
        assert_ne!(first(1, Source::Queue), first(2, Source::Queue));
    }

    #[test]
    fn the_normal_distribution_has_its_moments() {
        const N: usize = 100_000;
        let mut random = Random::new(3, Source::Jitter);
        let values: Vec<f64> = (0..N).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / N as f64;
        let variance = values.iter().map(|x| x * x).sum::<f64>() / N as f64 - mean * mean;
        let within = values.iter().filter(|x| x.abs() < 1.0).count() as f64 / N as f64;
        // Five standard errors each: 1/sqrt(N), sqrt(2/N), sqrt(0.6827 * 0.3173 / N).
        assert!(mean.abs() < 0.016, "{mean}");
        assert!((variance - 1.0).abs() < 0.023, "{variance}");
        assert!((within - 0.6827).abs() < 0.0075, "{within}");
    }
}
