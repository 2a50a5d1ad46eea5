// SPDX-License-Identifier: MIT OR Apache-2.0
//! What rate a control law holds at which price: equilibria, as formulas.
//!
//! A model answers two questions for [`ModelBased`](crate::ModelBased) control. What price did the sender see (q)? And
//! what price would hold its law at a given rate (q̂ = U'(rate); the framework, eqs. 11 and 12)? Their quotient is the
//! weight that makes the law's rate the target.

use crate::{Conditions, SignalKind};

/// The parameters of CUBIC as far as its equilibrium goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cubic {
    /// β: the part of the window that is kept at a loss; in (0, 1).
    pub kept: f64,
    /// C, in segments per s³; greater than 0.
    pub scale: f64,
    /// Look at the Reno-friendly region, too: the price is the larger of the two. Without it the model is the one in
    /// the framework's Fig. 3, which is only right above some hundred segments (at 24 ms: 358).
    pub reno_friendly: bool,
}

impl Cubic {
    /// As published in 2008, and as in the framework's experiments.
    pub const PUBLISHED_2008: Cubic = Cubic { kept: 0.8, scale: 0.4, reno_friendly: true };
    /// RFC 9438, and Linux today.
    pub const RFC_9438: Cubic = Cubic { kept: 0.7, scale: 0.4, reno_friendly: true };

    /// (C(4−b)/4b)^(1/4) with b = 1−β: E\[W\] is this times (RTT/p)^(3/4).
    fn constant(&self) -> f64 {
        let b = 1.0 - self.kept;
        (self.scale * (4.0 - b) / (4.0 * b)).sqrt().sqrt()
    }

    /// E\[W\] in segments, of the cubic region alone, at `price` loss events per packet and a round trip of `rtt`
    /// seconds.
    #[must_use]
    pub fn mean_window(&self, price: f64, rtt: f64) -> f64 {
        self.constant() * libm::pow(rtt / price, 0.75)
    }

    /// The price at which the cubic region alone holds a mean window of `window` segments.
    #[must_use]
    pub fn price_of_window(&self, window: f64, rtt: f64) -> f64 {
        rtt * libm::pow(self.constant() / window, 4.0 / 3.0)
    }
}

/// Reno's mean window is √(1.5/p).
const RENO: f64 = 1.5;

/// The equilibrium of a control law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Model {
    /// An alpha-fair utility (the framework, eqs. 15 and 16): price = (rate/unit)^(−alpha).
    AlphaFair {
        /// The exponent, finite and greater than 0.
        alpha: f64,
        /// The rate at price 1, in bytes per second; finite and greater than 0.
        unit_rate: f64,
        /// The signal that is its price.
        signal: SignalKind,
    },
    /// Reno: W = √(1.5/p).
    Reno,
    /// CUBIC.
    Cubic(Cubic),
    /// Vegas: rate = packets / queueing delay. Its price is that delay, in seconds.
    Vegas {
        /// Packets that it keeps in the queue at w = 1; finite and greater than 0. The framework: 15.
        packets: f64,
        /// It counts them as Linux does, cwnd·(rtt − base)/base: more than there are, by rtt/base, so that its rate is
        /// less by that. With a queue of one base round trip the plain formula takes it for twice as fast as it is.
        linux: bool,
    },
    /// CDG whose hazard takes the weight, h = (g⁺/G₀)(1/w − 1) per round, and whose losses are inflated by 1/w as well.
    ///
    /// **Where it comes from.** Let W be the window in segments, one round trip the unit of time. CDG grows like Reno,
    /// by 1 per round. A round's delay back-off has the probability 1 − exp(−h) ≈ h and takes W_d = 1 − β_delay of the
    /// window off; a loss event has the probability p per packet, p·W per round, and takes W_l = 1 − β_loss. With
    /// losses inflated by 1/w the window rests where growth and mean reductions are equal:
    ///
    /// ```text
    /// 1 = W·W_d·(ḡ/G₀)·(1/w − 1) + W·W_l·p·W/w              ḡ: mean of g⁺ over all rounds
    /// ```
    ///
    /// With d = W_d·ḡ/G₀ and l = W_l·p·W, the real delay and loss prices of a round, that is 1/W + d = (d + l)/w, hence
    ///
    /// ```text
    /// w = (d + l)/(d + 1/W)                                  q = d + l,   q̂ = d + 1/W
    /// ```
    ///
    /// q̂ contains d since the hazard adds nothing to an ordinary flow: at w = 1 only losses hold CDG, and l = 1/W is
    /// its equilibrium. ḡ/G₀ belongs to a round of the network's queue and p to a packet: neither depends on what this
    /// sender makes of it, so both may be measured at one window and used at another.
    ///
    /// Where delay causes enough reductions the losses are *not* inflated. The exact weight is then w = d/(d + 1/W −
    /// l). The two differ by the order of l/d, which is small exactly where that rule applies, and agree where l = 1/W;
    /// the form above cannot turn negative. Both neglect that a back-off needs an episode and a fresh round, so that
    /// there is at most one in two rounds: above h ≈ 1/2 the model takes the law for more submissive than it is.
    Cdg {
        /// β_delay in (0, 1).
        kept_at_delay: f64,
        /// β_loss in (0, 1).
        kept_at_loss: f64,
    },
}

impl Model {
    /// CDG with the parameters of mainline Linux.
    pub const CDG: Model = Model::Cdg { kept_at_delay: 724.0 / 1024.0, kept_at_loss: 0.5 };
    /// Vegas as in the framework's experiments.
    pub const VEGAS: Model = Model::Vegas { packets: 15.0, linux: false };

    /// Whether all parameters are in range.
    pub(crate) fn check(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let part = |x: f64| x > 0.0 && x < 1.0;
        match *self {
            Model::AlphaFair { alpha, unit_rate, .. } => positive(alpha) && positive(unit_rate),
            Model::Reno => true,
            Model::Cubic(Cubic { kept, scale, .. }) => part(kept) && positive(scale),
            Model::Vegas { packets, .. } => positive(packets),
            Model::Cdg { kept_at_delay, kept_at_loss } => part(kept_at_delay) && part(kept_at_loss),
        }
    }

    /// Whether it needs a round-trip time.
    pub(crate) const fn needs_rtt(&self) -> bool {
        !matches!(self, Model::AlphaFair { .. })
    }

    /// The signal whose single events are its price, if that is so.
    pub(crate) const fn counted(&self) -> Option<SignalKind> {
        match *self {
            Model::AlphaFair { signal, .. } => Some(signal),
            Model::Reno | Model::Cubic(_) => Some(SignalKind::Loss),
            Model::Vegas { .. } | Model::Cdg { .. } => None,
        }
    }

    /// q: the price seen, in the unit of [`price_for`](Model::price_for). `rate` is that of `price_for`; only CDG,
    /// whose price is one of rounds, makes use of it. `None` where something needed is unknown.
    #[must_use]
    pub fn price_seen(&self, rate: f64, seen: &Conditions) -> Option<f64> {
        match *self {
            Model::AlphaFair { signal, .. } => Some(seen.price(signal)),
            Model::Reno | Model::Cubic(_) => Some(seen.price(SignalKind::Loss)),
            Model::Vegas { .. } => seen.queueing(),
            Model::Cdg { kept_at_loss, .. } => {
                let loss = (1.0 - kept_at_loss) * seen.price(SignalKind::Loss) * window(rate, seen)?;
                Some(self.delay_of_a_round(seen)? + loss)
            }
        }
    }

    /// q̂: the price that holds the law at `rate` bytes per second at w = 1; greater than 0, finite for a `rate`
    /// above 0. `None` where something needed is unknown.
    #[must_use]
    pub fn price_for(&self, rate: f64, seen: &Conditions) -> Option<f64> {
        match *self {
            Model::AlphaFair { alpha, unit_rate, .. } => Some(libm::pow(rate / unit_rate, -alpha)),
            Model::Reno => window(rate, seen).map(|window| RENO / (window * window)),
            Model::Cubic(cubic) => {
                let price = cubic.price_of_window(window(rate, seen)?, seen.rtt()?);
                let reno = if cubic.reno_friendly { Model::Reno.price_for(rate, seen)? } else { 0.0 };
                Some(price.max(reno))
            }
            Model::Vegas { .. } => Some(self.bytes_queued(seen)? / rate),
            Model::Cdg { .. } => Some(self.delay_of_a_round(seen)? + 1.0 / window(rate, seen)?),
        }
    }

    /// The rate in bytes per second that the law holds at a price, at w = 1: the inverse of
    /// [`price_for`](Model::price_for). `None` where something needed is unknown; always for CDG, which has no price of
    /// its own at w = 1.
    #[must_use]
    pub fn rate_at(&self, price: f64, seen: &Conditions) -> Option<f64> {
        let rate_of = |window: f64| Some(window * seen.segment() / seen.rtt()?);
        match *self {
            Model::AlphaFair { alpha, unit_rate, .. } => Some(unit_rate * libm::pow(price, -1.0 / alpha)),
            Model::Reno => rate_of((RENO / price).sqrt()),
            Model::Cubic(cubic) => {
                let window = cubic.mean_window(price, seen.rtt()?);
                let reno = if cubic.reno_friendly { (RENO / price).sqrt() } else { 0.0 };
                rate_of(window.max(reno))
            }
            Model::Vegas { .. } => Some(self.bytes_queued(seen)? / price),
            Model::Cdg { .. } => None,
        }
    }

    /// What Vegas at w = 1 keeps in the queue.
    fn bytes_queued(&self, seen: &Conditions) -> Option<f64> {
        match *self {
            Model::Vegas { packets, linux: false } => Some(packets * seen.segment()),
            Model::Vegas { packets, linux: true } => {
                let base = (seen.rtt()? - seen.queueing()?) / seen.rtt()?;
                (base > 0.0).then(|| packets * seen.segment() * base)
            }
            _ => None,
        }
    }

    /// d of CDG.
    fn delay_of_a_round(&self, seen: &Conditions) -> Option<f64> {
        match *self {
            Model::Cdg { kept_at_delay, .. } => Some((1.0 - kept_at_delay) * seen.price_of_a_round(SignalKind::Delay)?),
            _ => None,
        }
    }
}

/// The window in segments that carries `rate` bytes per second.
fn window(rate: f64, seen: &Conditions) -> Option<f64> {
    Some(rate * seen.rtt()? / seen.segment())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PathState, Signal, Signals};
    use std::time::Duration;

    fn within(value: f64, expected: f64, part: f64) {
        assert!((value / expected - 1.0).abs() <= part, "{value} is not {expected}");
    }

    fn conditions(rtt_ms: u64, loss: f64) -> Conditions {
        Conditions {
            path: PathState { rtt: Some(Duration::from_millis(rtt_ms)), min_rtt: None, segment_bytes: 1000.0 },
            signals: Signals {
                packets: 1e6,
                loss: Signal { indications: loss * 1e6, reduction: 0.0 },
                ..Signals::default()
            },
            seconds: 10.0,
        }
    }

    /// Target D-17: the constants of CUBIC's mean window, and a price by hand.
    #[test]
    fn cubics_constants() {
        within(Cubic::PUBLISHED_2008.mean_window(1.0, 1.0), 1.174, 0.005);
        within(Cubic::RFC_9438.mean_window(1.0, 1.0), 1.054, 0.005);
        within(Cubic::PUBLISHED_2008.price_of_window(100.0, 0.024), 6.40e-5, 0.005);
    }

    #[test]
    fn prices_and_rates_are_inverse() {
        let seen = Conditions {
            path: PathState { min_rtt: Some(Duration::from_millis(30)), ..conditions(40, 1e-4).path },
            ..conditions(40, 1e-4)
        };
        let plain = Model::Cubic(Cubic { reno_friendly: false, ..Cubic::RFC_9438 });
        let linux = Model::Vegas { packets: 15.0, linux: true };
        let fair = Model::AlphaFair { alpha: 1.2, unit_rate: 125e3, signal: SignalKind::Delay };
        for model in [
            Model::Reno,
            Model::Cubic(Cubic::RFC_9438),
            Model::Cubic(Cubic::PUBLISHED_2008),
            plain,
            Model::VEGAS,
            linux,
            fair,
        ] {
            for rate in [1e4, 1e6, 1e9] {
                let price = model.price_for(rate, &seen).unwrap();
                within(model.rate_at(price, &seen).unwrap(), rate, 1e-9);
            }
        }
    }

    /// CUBIC leaves its Reno-friendly region above 358 segments at 24 ms and 127 at 48 ms (beta 0.8).
    #[test]
    fn cubic_is_reno_in_small_windows() {
        let cubic = Model::Cubic(Cubic::PUBLISHED_2008);
        for (rtt_ms, border) in [(24, 358.0), (48, 127.0)] {
            let seen = conditions(rtt_ms, 1e-4);
            let rate = |segments: f64| segments * 1000.0 / (rtt_ms as f64 / 1e3);
            let price = |model: Model, w: f64| model.price_for(rate(w), &seen).unwrap();
            assert_eq!(price(cubic, 0.98 * border), price(Model::Reno, 0.98 * border));
            assert!(price(cubic, 1.02 * border) > price(Model::Reno, 1.02 * border));
        }
        // 1.5/100²
        within(cubic.price_for(100.0 * 1000.0 / 0.024, &conditions(24, 1e-4)).unwrap(), 1.5e-4, 1e-12);
    }

    /// Section IV-B of the framework: w = τ·ζ/α_base, with τ = 20 ms, ζ = 300 segments per second, α_base = 15.
    #[test]
    fn vegas_weight_by_hand() {
        let mut seen = conditions(50, 0.0);
        seen.path.min_rtt = Some(Duration::from_millis(30));
        let q = Model::VEGAS.price_seen(0.0, &seen).unwrap();
        within(q / Model::VEGAS.price_for(300.0 * 1000.0, &seen).unwrap(), 0.02 * 300.0 / 15.0, 1e-12);
        // Linux: at w = 0.4·(50/30) a window of 15 segments, 300 per second, is w·15 = 15·(50 − 30)/30 packets queued
        let linux = Model::Vegas { packets: 15.0, linux: true };
        let w = linux.price_seen(0.0, &seen).unwrap() / linux.price_for(300.0 * 1000.0, &seen).unwrap();
        within(w * 15.0, 15.0 * 20.0 / 30.0, 1e-12);
        assert_eq!(Model::VEGAS.price_seen(0.0, &conditions(50, 0.0)), None); // no smallest round trip known
    }

    /// CDG, by hand: 200 rounds of 50 ms, ḡ/G₀ = 0.01, β = 0.7, a window of 20 segments.
    #[test]
    fn cdg_weight_by_hand() {
        let cdg = Model::Cdg { kept_at_delay: 0.7, kept_at_loss: 0.5 };
        let mut seen = conditions(50, 0.0);
        seen.signals.delay.indications = 200.0 * 0.01;
        let rate = 20.0 * 1000.0 / 0.05;
        let weight = |seen: &Conditions| cdg.price_seen(rate, seen).unwrap() / cdg.price_for(rate, seen).unwrap();
        within(weight(&seen), 0.003 / (0.003 + 0.05), 1e-12);
        // it balances: growth 1 = W·W_d·(ḡ/G₀)(1/w − 1)
        within(20.0 * 0.3 * 0.01 * (1.0 / weight(&seen) - 1.0), 1.0, 1e-12);
        // losses of an ordinary flow of that window, p = 2/W²: the weight of an ordinary flow, whatever the delay
        seen.signals.loss.indications = 1e6 * 2.0 / 400.0;
        within(weight(&seen), 1.0, 1e-12);
        // no delay at all: losses alone, w = W_l·p·W²
        seen.signals.delay.indications = 0.0;
        seen.signals.loss.indications = 1e6 * 0.5 / 400.0;
        within(weight(&seen), 0.25, 1e-12);
    }

    #[test]
    fn what_is_unknown_is_not_guessed() {
        let mut seen = conditions(50, 1e-4);
        seen.path.rtt = None;
        for model in [Model::Reno, Model::Cubic(Cubic::RFC_9438), Model::CDG] {
            assert_eq!(model.price_for(1e6, &seen), None);
        }
        assert_eq!(Model::CDG.price_seen(1e6, &seen), None);
    }

    #[test]
    fn parameters_are_checked() {
        assert!(Model::CDG.check() && Model::VEGAS.check() && Model::Cubic(Cubic::RFC_9438).check());
        assert!(!Model::Cubic(Cubic { kept: 1.0, ..Cubic::RFC_9438 }).check());
        assert!(!Model::Vegas { packets: f64::NAN, linux: true }.check());
        assert!(!Model::AlphaFair { alpha: 0.0, unit_rate: 1.0, signal: SignalKind::Loss }.check());
    }
}
