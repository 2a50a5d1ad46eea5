// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model-based control of the weight.

use crate::{Basis, Bounds, Conditions, FallbackReason, Model, Pid, Signals, Step, WeightControl};

/// How long prices are averaged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceAverage {
    /// The part of what is remembered that each update interval displaces, in (0, 1].
    pub gain: f64,
    /// But so many events are kept at the least, over however many intervals: a price from one or two events is noise,
    /// of which the limited rise and the free fall of the weight make a bias. Only for laws whose price is single
    /// events; finite, >= 0.
    pub events: f64,
}

impl PriceAverage {
    /// The price of the last interval alone, for where it is exact.
    pub const NONE: PriceAverage = PriceAverage { gain: 1.0, events: 0.0 };
}

impl Default for PriceAverage {
    /// A quarter, and five events.
    fn default() -> PriceAverage {
        PriceAverage { gain: 0.25, events: 5.0 }
    }
}

/// After so many intervals without any signal there is no price any more.
const QUIET_INTERVALS: u32 = 8;
/// The correction 1 + ε = ζ/x̄ lies between this and its inverse. While the limit on increases is active ε stays as it
/// is, so that an absurd one, from an interval in which next to nothing got through, would drive the weight to the top
/// long after. Our choice; the paper has no bound.
const CORRECTION_MOST: f64 = 4.0;

/// Model-based control of the weight: the framework, eqs. 11 to 14 and 19.
///
/// ```text
/// ε   = (ζ_{n-1} − x̄_n)/x̄_n                       the target that the weight in force was made for
/// w_n = clamp(q_{n-1}/(φ·q̂(ζ_n)) · (1 + ε),  w_min, w_max)
/// ```
///
/// q is the price measured, real signals only, averaged over [`PriceAverage`]; q̂ the [`Model`]'s price at the target;
/// φ the ratio of prices ([`PriceRatio`](crate::PriceRatio)), 1 where all react to the same one. ε keeps its value
///
/// * while the limit on increases holds the weight back (the paper's footnote to eq. 19), also where the
///   [`Governor`](crate::Governor) does because the program pauses;
/// * over an interval in which nothing got through: no verdict on the model;
/// * after an interval that the model did not rule.
///
/// ε is not summed up over time: a model that takes the law to be k times as fast as it is ends k^(−α/(α+1)) of the
/// target below it, until the growing ζ makes up for that.
///
/// Without a model, a price or a round-trip time, **PID takes over** and says so ([`Basis::Fallback`]); it starts
/// from the weight in force.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelBased {
    bounds: Bounds,
    model: Option<Model>,
    average: PriceAverage,
    pid: Pid,
    remembered: Signals,
    seconds: f64,
    quiet: u32,
    error: f64,
    previous_target: Option<f64>,
    held_back: bool,
    basis: Basis,
}

impl ModelBased {
    /// Control at rest at `w_min`; without a `model` it is PID.
    #[must_use]
    pub fn new(bounds: Bounds, model: Option<Model>) -> ModelBased {
        ModelBased {
            bounds,
            model,
            average: PriceAverage::default(),
            pid: Pid::new(bounds),
            remembered: Signals::default(),
            seconds: 0.0,
            quiet: 0,
            error: 0.0,
            previous_target: None,
            held_back: false,
            basis: Basis::Fallback(FallbackReason::NoPrice),
        }
    }

    /// The same with prices averaged otherwise.
    #[must_use]
    pub fn with_average(self, average: PriceAverage) -> ModelBased {
        ModelBased { average, ..self }
    }

    /// ε as last used.
    #[must_use]
    pub fn model_error(&self) -> f64 {
        self.error
    }

    fn remember(&mut self, step: &Step) {
        let counted = self.model.and_then(|model| model.counted());
        let mut kept = 1.0 - self.average.gain;
        if let Some(kind) = counted {
            let events = self.remembered.kind(kind).indications;
            if events * kept < self.average.events {
                kept = (self.average.events / events).min(1.0); // min takes the 1 of 0/0
            }
            let heard = step.signals.kind(kind).indications > 0.0;
            self.quiet = if heard { 0 } else { self.quiet.saturating_add(1) };
            if self.quiet >= QUIET_INTERVALS {
                kept = 0.0;
            }
        }
        self.remembered = self.remembered.scaled_plus(kept, step.signals);
        self.seconds = kept * self.seconds + step.elapsed.as_secs_f64();
    }

    fn correct(&mut self, step: &Step) {
        if let Some(target) = self.previous_target
            && self.basis == Basis::Model
            && !self.held_back
            && step.achieved_rate > 0.0
        {
            self.error = (target / step.achieved_rate).clamp(1.0 / CORRECTION_MOST, CORRECTION_MOST) - 1.0;
        }
        self.previous_target = Some(step.target_rate);
    }

    /// q/(φ·q̂).
    fn weight_of_model(&self, step: &Step) -> Result<f64, FallbackReason> {
        let model = self.model.ok_or(FallbackReason::NoModel)?;
        let seen = Conditions { path: step.path, signals: self.remembered, seconds: self.seconds };
        if model.needs_rtt() && seen.rtt().is_none() {
            return Err(FallbackReason::NoRoundTripTime);
        }
        let q = model.price_seen(step.target_rate, &seen).filter(|&q| q > 0.0);
        let q_of_target = model.price_for(step.target_rate, &seen);
        match (q, q_of_target) {
            (Some(q), Some(q_of_target)) => Ok(q / (step.price_ratio * q_of_target)),
            _ => Err(FallbackReason::NoPrice),
        }
    }
}

impl WeightControl for ModelBased {
    fn update(&mut self, step: &Step) -> f64 {
        self.remember(step);
        self.correct(step);
        match self.weight_of_model(step) {
            Ok(weight) => {
                self.basis = Basis::Model;
                self.bounds.clamp(weight * (1.0 + self.error)).get()
            }
            Err(reason) => {
                self.basis = Basis::Fallback(reason);
                self.error = 0.0;
                self.pid.update(step)
            }
        }
    }

    fn applied(&mut self, weight: f64, held_back: bool) {
        self.held_back = held_back;
        if self.basis == Basis::Model {
            self.pid.reset(weight);
        } else {
            self.pid.applied(weight, held_back);
        }
    }

    fn reset(&mut self, weight: f64) {
        let afresh = ModelBased::new(self.bounds, self.model).with_average(self.average);
        *self = afresh;
        self.pid.reset(weight);
    }

    fn raised(&mut self, weight: f64) {
        self.pid.raised(weight);
    }

    fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
        self.pid.set_bounds(bounds);
    }

    fn basis(&self) -> Basis {
        self.basis
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PathState, Signal, SignalKind, limit_increase};
    use std::time::Duration;

    /// U'(x) = x^-2 with x in megabytes per second.
    const FAIR: Model = Model::AlphaFair { alpha: 2.0, unit_rate: 1e6, signal: SignalKind::Loss };

    fn control() -> ModelBased {
        ModelBased::new(Bounds::new(0.001, 1.0).unwrap(), Some(FAIR)).with_average(PriceAverage::NONE)
    }

    fn step(target: f64, achieved: f64, weight: f64, price: f64) -> Step {
        Step {
            target_rate: target,
            achieved_rate: achieved,
            weight,
            elapsed: Duration::from_secs(10),
            interval: Duration::from_secs(10),
            path: PathState::default(),
            signals: Signals {
                packets: 1e4,
                loss: Signal { indications: 1e4 * price, reduction: 0.0 },
                ..Signals::default()
            },
            price_ratio: 1.0,
        }
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    /// Target D-15: q = q̂ and ε = 0 give 1; the limiter gives 0.125 on the way from 0.1 to 0.5.
    #[test]
    fn the_papers_law_to_the_letter() {
        let mut c = control();
        close(c.update(&step(2e6, 2e6, 1.0, 0.25)), 1.0);
        c.applied(1.0, false);
        close(c.update(&step(2e6, 2e6, 1.0, 0.25)), 1.0);
        assert_eq!((c.model_error(), c.basis()), (0.0, Basis::Model));

        let mut c = control();
        close(c.update(&step(2e6, 1e6, 0.1, 0.125)), 0.5);
        let l = limit_increase(0.1, 0.5, 0.05);
        close(l.weight, 0.125);
        assert!(l.limited);
    }

    #[test]
    fn the_error_is_that_of_the_old_target() {
        let mut c = control();
        close(c.update(&step(1e6, 1e6, 0.1, 0.1)), 0.1);
        c.applied(0.1, false);
        // the target doubles; the old one was met exactly: no error
        close(c.update(&step(2e6, 1e6, 0.1, 0.1)), 0.4);
        c.applied(0.4, false);
        // 2e6 wanted, 1.6e6 achieved: ε = 0.25
        close(c.update(&step(2e6, 1.6e6, 0.4, 0.1)), 0.5);
        close(c.model_error(), 0.25);
    }

    #[test]
    fn the_error_rests_while_the_weight_is_held_back() {
        let mut c = control();
        c.update(&step(2e6, 1e6, 0.01, 0.1));
        c.applied(0.03, true);
        close(c.update(&step(2e6, 0.5e6, 0.03, 0.1)), 0.4);
        assert_eq!(c.model_error(), 0.0);
        c.applied(0.4, false);
        close(c.update(&step(2e6, 1.6e6, 0.4, 0.1)), 0.5);
        c.applied(0.42, true);
        close(c.update(&step(2e6, 1e6, 0.42, 0.1)), 0.5); // still 0.25
        close(c.model_error(), 0.25);
    }

    #[test]
    fn an_outage_is_no_model_error_and_a_trickle_a_bounded_one() {
        let mut c = control();
        c.update(&step(1e6, 1e6, 0.1, 0.1));
        c.applied(0.1, false);
        close(c.update(&step(1e6, 0.0, 0.1, 0.1)), 0.1);
        c.applied(0.1, false);
        close(c.update(&step(1e6, 1.0, 0.1, 0.1)), 0.4);
        c.applied(0.4, false);
        close(c.update(&step(1e6, 1e9, 0.4, 0.1)), 0.025);
    }

    #[test]
    fn the_ratio_of_prices_divides() {
        let mut c = control();
        close(c.update(&Step { price_ratio: 4.0, ..step(2e6, 1e6, 0.1, 0.25) }), 0.25);
    }

    #[test]
    fn without_a_price_or_a_model_pid_takes_over_and_says_so() {
        let mut c = control();
        let mut pid = Pid::new(Bounds::new(0.001, 1.0).unwrap());
        let silent = step(2e6, 1e6, 0.1, 0.0);
        close(c.update(&silent), pid.update(&silent));
        assert_eq!(c.basis(), Basis::Fallback(FallbackReason::NoPrice));
        c.applied(0.08, false);
        // a price is seen: the model rules, its error starts from nothing
        close(c.update(&step(2e6, 1e6, 0.08, 0.01)), 0.04);
        assert_eq!((c.basis(), c.model_error()), (Basis::Model, 0.0));
        c.applied(0.04, false);
        // and back: PID starts at the weight in force
        close(c.update(&step(1e6, 1e6, 0.04, 0.0)), 0.04);

        let mut c = ModelBased::new(Bounds::default(), None);
        c.update(&step(2e6, 1e6, 0.1, 0.1));
        assert_eq!(c.basis(), Basis::Fallback(FallbackReason::NoModel));
        let mut c = ModelBased::new(Bounds::default(), Some(Model::Reno));
        c.update(&step(2e6, 1e6, 0.1, 0.1));
        assert_eq!(c.basis(), Basis::Fallback(FallbackReason::NoRoundTripTime));
    }

    /// Five events are remembered, and no price is when none has come for eight intervals.
    #[test]
    fn few_events_are_remembered_for_longer() {
        let mut c = ModelBased::new(Bounds::new(1e-9, 1.0).unwrap(), Some(FAIR));
        let (mut weights, w) = (Vec::new(), 0.1);
        for n in 0..30 {
            let price = if n % 4 == 0 && n < 20 { 1e-4 } else { 0.0 }; // one event
            weights.push(c.update(&step(1e6, 1e6, w, price)));
            c.applied(w, false);
        }
        // five events on 17 intervals of 1e4 packets
        close(weights[16], 5.0 / 17e4);
        // no new one: the price falls as the packets grow in number
        assert!(weights[20] < weights[16] && c.basis() == Basis::Fallback(FallbackReason::NoPrice));
        // many events: a quarter of the memory goes with each interval
        let mut c = ModelBased::new(Bounds::default(), Some(FAIR));
        for _ in 0..150 {
            c.update(&step(1e6, 1e6, w, 0.01));
            c.applied(w, false);
        }
        close(c.update(&step(1e6, 1e6, w, 0.02)), 0.01 + 0.01 / 4.0);
    }
}
