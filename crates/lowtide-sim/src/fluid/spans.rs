// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means over the spans that a model asks for.

use super::{
    outcome::{SpanOutcome, SpanSource},
    state::State,
};
use crate::scenario::Span;
use std::time::Duration;

/// Sums over the steps of a span.
pub(super) struct SpanSums {
    span: Span,
    steps: f64,
    sources: Vec<Sums>,
}

/// Those of a source.
#[derive(Clone, Default)]
struct Sums {
    /// Steps in which it was there.
    steps: f64,
    rate: f64,
    fair_share: f64,
    weight: f64,
    target: f64,
    /// Steps in which it had one.
    targets: f64,
}

impl SpanSums {
    pub(super) fn new(span: Span, sources: usize) -> Self {
        Self { span, steps: 0.0, sources: vec![Sums::default(); sources] }
    }

    /// A step that begins now.
    pub(super) fn add(&mut self, now: Duration, capacity: f64, sources: &[State<'_>]) {
        if now < self.span.from || now >= self.span.to {
            return;
        }
        self.steps += 1.0;
        let fair_share = capacity / sources.iter().filter(|state| state.active()).count() as f64;
        for (sums, state) in self.sources.iter_mut().zip(sources) {
            let Some(steered) = state.sample() else { continue };
            sums.steps += 1.0;
            sums.rate += state.rate();
            sums.fair_share += fair_share;
            sums.weight += steered.weight;
            if let Some(target) = steered.target {
                sums.target += target;
                sums.targets += 1.0;
            }
        }
    }

    pub(super) fn outcome(&self, sources: &[State<'_>]) -> SpanOutcome {
        let there = self.sources.iter().zip(sources).filter(|(sums, _)| sums.steps > 0.0);
        let source = |(sums, state): (&Sums, &State<'_>)| SpanSource {
            name: state.name().to_owned(),
            mean_rate: sums.rate / self.steps,
            of_fair_share: sums.rate / sums.fair_share,
            target: (sums.targets > 0.0).then(|| sums.target / sums.targets),
            weight: sums.weight / sums.steps,
        };
        SpanOutcome {
            from_s: self.span.from.as_secs_f64(),
            to_s: self.span.to.as_secs_f64(),
            flows: there.map(source).collect(),
        }
    }
}
