// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a law reacts to another price than the ordinary flows beside it: the ratio φ of the two.

use crate::{Conditions, Model, PathState, Signals, limit_increase};

/// l_φ of the framework (Fig. 8).
pub const DEFAULT_RATIO_INCREASE_LIMIT: f64 = 0.1;

/// How φ follows from what was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RatioRule {
    /// φ = Σ_z W_z·P_z / (W_std·P_loss), over all signals that the law reacts to (the framework, eqs. 22 to 25, with
    /// the un-normalised sum; W_std is the ordinary law's, not the sender's own). It evens out the prices, not what the
    /// laws make of them: with unlike exponents a sender at w = 1 takes more than its share.
    Literal {
        /// W_std: the part of its window that an ordinary flow takes off at a loss; 0.2 or 0.3 for CUBIC, 0.5 for Reno.
        /// In (0, 1].
        standard_reduction: f64,
    },
    /// φ* = q_own / q̂_own(x_std(q_std)): the ratio at which the law's model at w = 1 holds exactly the rate of the
    /// ordinary law's model. For alpha-fair laws that is q_own/q_std^(α_own/α_std). Our correction.
    Corrected {
        /// The sender's own law.
        own: Model,
        /// The ordinary flows' law.
        standard: Model,
    },
}

/// How φ is measured and moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioPolicy {
    /// The rule.
    pub rule: RatioRule,
    /// T_φ in update intervals; greater than 0.
    pub every: u32,
    /// With fewer loss events than this another T_φ is waited for, and added; finite, >= 0.
    pub enough_losses: f64,
    /// l_φ in (0, 1]: increases of φ are limited as those of the weight are.
    pub increase_limit: f64,
}

impl RatioPolicy {
    /// T_φ = T_w, five events, l_φ = 0.1.
    #[must_use]
    pub const fn new(rule: RatioRule) -> RatioPolicy {
        RatioPolicy { rule, every: 1, enough_losses: 5.0, increase_limit: DEFAULT_RATIO_INCREASE_LIMIT }
    }

    /// Whether all parameters are in range.
    pub(crate) fn check(&self) -> bool {
        let rule = match self.rule {
            RatioRule::Literal { standard_reduction } => standard_reduction > 0.0 && standard_reduction <= 1.0,
            RatioRule::Corrected { own, standard } => {
                own.check() && standard.check() && !matches!(standard, Model::Cdg { .. })
            }
        };
        let limit = self.increase_limit > 0.0 && self.increase_limit <= 1.0;
        rule && limit && self.every > 0 && self.enough_losses.is_finite() && self.enough_losses >= 0.0
    }
}

/// φ lies between the inverse of this and this, whatever was measured.
const MOST: f64 = 1e9;

/// Measures φ, the effective price ratio (the framework, section IV-A). The sender then reacts as if the price were
/// 1/(w·φ) times its own.
///
/// φ is 1 until the first measurement, which is taken as it is; later increases are limited.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceRatio {
    policy: RatioPolicy,
    gathered: Signals,
    seconds: f64,
    intervals: u32,
    ratio: Option<f64>,
}

impl PriceRatio {
    /// Nothing measured yet.
    #[must_use]
    pub fn new(policy: RatioPolicy) -> PriceRatio {
        PriceRatio { policy, gathered: Signals::default(), seconds: 0.0, intervals: 0, ratio: None }
    }

    /// φ in force; finite and greater than 0.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.ratio.unwrap_or(1.0)
    }

    /// Take in an update interval of `seconds` (greater than 0); φ.
    pub fn observe(&mut self, signals: Signals, path: PathState, seconds: f64) -> f64 {
        self.gathered = self.gathered.scaled_plus(1.0, signals);
        self.seconds += seconds;
        self.intervals = self.intervals.saturating_add(1);
        let losses = self.gathered.loss.indications;
        if self.intervals < self.policy.every || losses <= 0.0 || losses < self.policy.enough_losses {
            return self.get();
        }
        let seen = Conditions { path, signals: self.gathered, seconds: self.seconds };
        let measured = measure(self.policy.rule, &seen).filter(|phi| phi.is_finite() && *phi > 0.0);
        if let Some(measured) = measured.map(|phi| phi.clamp(1.0 / MOST, MOST)) {
            let previous = self.ratio.unwrap_or(measured);
            self.ratio = Some(limit_increase(previous, measured, self.policy.increase_limit).weight);
        }
        (self.gathered, self.seconds, self.intervals) = (Signals::default(), 0.0, 0);
        self.get()
    }
}

fn measure(rule: RatioRule, seen: &Conditions) -> Option<f64> {
    match rule {
        RatioRule::Literal { standard_reduction } => {
            let Signals { loss, mark, delay, .. } = seen.signals;
            let own = loss.reduction + mark.reduction + delay.reduction;
            Some(own / (standard_reduction * loss.indications))
        }
        RatioRule::Corrected { own, standard } => {
            let rate = standard.rate_at(standard.price_seen(0.0, seen)?, seen)?;
            Some(own.price_seen(rate, seen)? / own.price_for(rate, seen)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cubic, Signal, SignalKind};
    use std::time::Duration;

    fn signals(packets: f64, losses: f64, delays: f64) -> Signals {
        Signals {
            packets,
            loss: Signal { indications: losses, reduction: 0.5 * losses },
            delay: Signal { indications: delays, reduction: 0.02 * delays },
            ..Signals::default()
        }
    }

    const LITERAL: RatioPolicy = RatioPolicy::new(RatioRule::Literal { standard_reduction: 0.2 });

    /// Vegas with 50 steps down of 2 % and 5 losses of a half beside CUBIC: (1 + 2.5)/(0.2·5).
    #[test]
    fn the_literal_ratio_by_hand() {
        let mut phi = PriceRatio::new(LITERAL);
        assert_eq!(phi.get(), 1.0);
        let got = phi.observe(signals(1e4, 5.0, 50.0), PathState::default(), 10.0);
        assert!((got - 3.5).abs() < 1e-12, "{got}");
    }

    #[test]
    fn too_few_losses_wait_and_add_up() {
        let mut phi = PriceRatio::new(LITERAL);
        assert_eq!(phi.observe(signals(1e4, 2.0, 10.0), PathState::default(), 10.0), 1.0);
        assert_eq!(phi.observe(signals(1e4, 2.0, 20.0), PathState::default(), 10.0), 1.0);
        assert!((phi.observe(signals(1e4, 1.0, 20.0), PathState::default(), 10.0) - 3.5).abs() < 1e-12);
        // without a single loss there is no ratio, however few are enough
        let mut phi = PriceRatio::new(RatioPolicy { enough_losses: 0.0, ..LITERAL });
        assert_eq!(phi.observe(signals(1e4, 0.0, 20.0), PathState::default(), 10.0), 1.0);
    }

    #[test]
    fn increases_are_limited_and_decreases_free() {
        let mut phi = PriceRatio::new(LITERAL);
        phi.observe(signals(1e4, 5.0, 50.0), PathState::default(), 10.0);
        let up = phi.observe(signals(1e4, 5.0, 325.0), PathState::default(), 10.0); // 9
        assert!((up - (3.5 + 0.1 * 9.0)).abs() < 1e-12, "{up}");
        let down = phi.observe(signals(1e4, 5.0, 0.0), PathState::default(), 10.0);
        assert!((down - 2.5).abs() < 1e-12, "{down}");
        // T_φ = 2·T_w
        let mut phi = PriceRatio::new(RatioPolicy { every: 2, ..LITERAL });
        assert_eq!(phi.observe(signals(1e4, 50.0, 50.0), PathState::default(), 10.0), 1.0);
        assert!(phi.observe(signals(1e4, 50.0, 50.0), PathState::default(), 10.0) > 1.0);
    }

    /// At w = 1 the corrected ratio gives an alpha-fair law the rate of the ordinary one, and Vegas that of CUBIC.
    #[test]
    fn the_corrected_ratio_is_fair() {
        let fair = |alpha, signal| Model::AlphaFair { alpha, unit_rate: 1e5, signal };
        let path = PathState {
            rtt: Some(Duration::from_millis(60)),
            min_rtt: Some(Duration::from_millis(40)),
            segment_bytes: 1448.0,
        };
        let seen = Conditions { path, signals: signals(1e4, 8.0, 3000.0), seconds: 10.0 };
        for (own, standard) in [
            (fair(1.2, SignalKind::Delay), fair(2.0, SignalKind::Loss)),
            (Model::VEGAS, Model::Cubic(Cubic::RFC_9438)),
            (Model::VEGAS, Model::Reno),
        ] {
            let policy = RatioPolicy::new(RatioRule::Corrected { own, standard });
            assert!(policy.check());
            let phi = PriceRatio::new(policy).observe(seen.signals, path, 10.0);
            let ours = own.rate_at(own.price_seen(0.0, &seen).unwrap() / phi, &seen).unwrap();
            let theirs = standard.rate_at(standard.price_seen(0.0, &seen).unwrap(), &seen).unwrap();
            assert!((ours / theirs - 1.0).abs() < 1e-9, "{own:?} {ours} {theirs}");
        }
        // by hand: q_own/q_std^(1.2/2)
        let rule = RatioRule::Corrected { own: fair(1.2, SignalKind::Delay), standard: fair(2.0, SignalKind::Loss) };
        let phi = measure(rule, &seen).unwrap();
        assert!((phi / (0.3 / libm::pow(8e-4, 0.6)) - 1.0).abs() < 1e-12, "{phi}");
    }

    #[test]
    fn policies_are_checked() {
        assert!(LITERAL.check());
        assert!(!RatioPolicy { every: 0, ..LITERAL }.check());
        assert!(!RatioPolicy { increase_limit: 0.0, ..LITERAL }.check());
        assert!(!RatioPolicy { enough_losses: f64::NAN, ..LITERAL }.check());
        let rule = RatioRule::Corrected { own: Model::VEGAS, standard: Model::CDG };
        assert!(!RatioPolicy::new(rule).check()); // CDG has no rate at a price
    }
}
