// SPDX-License-Identifier: MIT OR Apache-2.0
//! The M/M/1/K queue: `places` includes the packet in service. An arriving packet sees the same as time does.

/// P\[N = K\]: the part of the packets that find all places taken, at a load of `load` (>= 0, 1: as much as the link
/// carries).
#[must_use]
pub fn blocking(load: f64, places: u32) -> f64 {
    quotient(load, 0.0, f64::from(places))
}

/// P\[N > Q\]: the probability that more than `queue` packets are there; 0 where that is `places` or more.
#[must_use]
pub fn longer_than(queue: u32, load: f64, places: u32) -> f64 {
    if queue >= places {
        return 0.0;
    }
    quotient(load, f64::from(places - queue) - 1.0, f64::from(places))
}

/// Σ P_n over the `further + 1` highest states n = K − further ..= K. With ρ the load: (ρ^(K−further) − ρ^(K+1))/(1 −
/// ρ^(K+1)); above ρ = 1 in terms of 1/ρ, and in both cases by `expm1`, so that nothing is lost near ρ = 1.
fn quotient(load: f64, further: f64, places: f64) -> f64 {
    if load <= 0.0 {
        return if further >= places { 1.0 } else { 0.0 };
    }
    // ln ρ, exact near 1
    let log = libm::log1p(load - 1.0);
    let states = places + 1.0;
    if (log * states).abs() < 1e-9 {
        return (further + 1.0) / states;
    }
    if log > 0.0 {
        libm::expm1(-log * (further + 1.0)) / libm::expm1(-log * states)
    } else {
        libm::exp(log * (places - further)) * libm::expm1(log * (further + 1.0)) / libm::expm1(log * states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Load, P[loss], P[N > 10], for 100 places.
    const VALUES: [(f64, f64, f64); 9] = [
        (0.5, 3.944e-31, 4.883e-4),
        (0.8, 4.074e-11, 0.0859),
        (0.9, 2.656e-6, 0.3138),
        (0.95, 2.977e-4, 0.5664),
        (0.98, 3.049e-3, 0.7710),
        (1.0, 9.901e-3, 0.8911),
        (1.02, 0.02268, 0.9619),
        (1.1, 0.09092, 0.9999),
        (1.5, 0.3333, 1.0),
    ];

    #[test]
    fn known_values() {
        for (load, loss, longer) in VALUES {
            let got = (blocking(load, 100), longer_than(10, load, 100));
            println!("{load}: {:e} {}", got.0, got.1);
            assert!((got.0 / loss - 1.0).abs() < 3e-4, "{load}: {} is not {loss}", got.0);
            assert!((got.1 - longer).abs() < 1e-4 * longer.max(0.5), "{load}: {} is not {longer}", got.1);
        }
    }

    /// Against the sums of the state probabilities.
    #[test]
    fn the_same_as_the_sum_of_the_states() {
        for load in [0.3, 0.97, 0.999_999, 1.0 + 1e-12, 1.000_1, 1.3, 4.0f64] {
            let weights: Vec<f64> =
                (0..=100).map(|n| libm::pow(load, f64::from(n - if load > 1.0 { 100 } else { 0 }))).collect();
            let all: f64 = weights.iter().sum();
            for queue in [0, 10, 99] {
                let above: f64 = weights[queue as usize + 1..].iter().sum::<f64>() / all;
                let got = longer_than(queue, load, 100);
                assert!((got / above - 1.0).abs() < 1e-8, "{load} {queue}: {got} is not {above}");
            }
            assert!((blocking(load, 100) / (weights[100] / all) - 1.0).abs() < 1e-8);
        }
    }

    #[test]
    fn the_ends() {
        assert_eq!((blocking(0.0, 100), longer_than(10, 0.0, 100)), (0.0, 0.0));
        assert_eq!(longer_than(100, 0.9, 100), 0.0);
        assert!((blocking(1e9, 100) - 1.0).abs() < 1e-8);
        let mut before = 0.0;
        for n in 0..4000 {
            let now = blocking(f64::from(n) / 1000.0, 100);
            assert!(now >= before, "{n}");
            before = now;
        }
    }
}
