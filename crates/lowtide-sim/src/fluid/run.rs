// SPDX-License-Identifier: MIT OR Apache-2.0
//! The computation.

use super::{
    model::{Capacity, Model},
    outcome::{LinkOutcome, Outcome, Sample, SourceSample},
    queue::blocking,
    spans::SpanSums,
    state::State,
};
use lowtide_cc::Random;
use std::time::Duration;

/// Computes a model. The same model gives the same numbers.
#[must_use]
pub fn run(model: &Model) -> Outcome {
    let mut sources: Vec<State<'_>> = model.sources.iter().map(State::new).collect();
    let mut link = Link { random: Random::new(model.seed), capacity: 0.0, next_draw: Duration::ZERO };
    let (mut interval, mut measured) = (Means::new(sources.len()), Means::new(sources.len()));
    let mut spans: Vec<_> = model.spans.iter().map(|span| SpanSums::new(*span, sources.len())).collect();
    let mut samples = Vec::new();
    let mut now = Duration::ZERO;
    let mut next_sample = model.sample_interval;
    while now < model.duration {
        link.draw(&model.capacity, now);
        for state in &mut sources {
            state.begin_or_end(now);
        }
        let load = sources.iter().map(State::rate).sum::<f64>() / link.capacity;
        let loss = blocking(load, model.places);
        for state in &mut sources {
            state.follow(load, loss, model);
        }
        interval.add(link.capacity, loss, &sources);
        if now + model.step > model.measure_from {
            measured.add(link.capacity, loss, &sources);
        }
        for span in &mut spans {
            span.add(now, link.capacity, &sources);
        }
        now += model.step;
        for state in &mut sources {
            state.govern(now, model.step);
        }
        if now >= next_sample {
            let ended = std::mem::replace(&mut interval, Means::new(sources.len()));
            samples.push(ended.sample(now, &sources));
            next_sample += model.sample_interval;
        }
    }
    Outcome {
        sources: (0..sources.len()).map(|n| sources[n].outcome(measured.rate_while_there(n), now)).collect(),
        link: measured.link(),
        spans: spans.iter().map(|span| span.outcome(&sources)).collect(),
        samples,
        seed: model.seed,
    }
}

struct Link {
    random: Random,
    capacity: f64,
    next_draw: Duration,
}

impl Link {
    fn draw(&mut self, capacity: &Capacity, now: Duration) {
        while now >= self.next_draw {
            self.capacity = capacity.mean + capacity.spread * (2.0 * self.random.uniform() - 1.0);
            self.next_draw += capacity.redraw;
        }
    }
}

/// Sums over the steps of a span.
struct Means {
    steps: f64,
    capacity: f64,
    loss: f64,
    /// The rates, and in how many steps their source was there.
    rates: Vec<(f64, f64)>,
}

impl Means {
    fn new(sources: usize) -> Self {
        Self { steps: 0.0, capacity: 0.0, loss: 0.0, rates: vec![(0.0, 0.0); sources] }
    }

    fn add(&mut self, capacity: f64, loss: f64, sources: &[State<'_>]) {
        self.steps += 1.0;
        self.capacity += capacity;
        self.loss += loss;
        for ((rate, steps), state) in self.rates.iter_mut().zip(sources) {
            *rate += state.rate();
            *steps += f64::from(u8::from(state.active()));
        }
    }

    fn rate_while_there(&self, source: usize) -> f64 {
        let (rate, steps) = self.rates[source];
        if steps > 0.0 { rate / steps } else { 0.0 }
    }

    fn link(&self) -> LinkOutcome {
        let sent: f64 = self.rates.iter().map(|(rate, _)| rate).sum();
        LinkOutcome {
            capacity: self.capacity / self.steps,
            utilisation: sent / self.capacity,
            loss: self.loss / self.steps,
        }
    }

    fn sample(&self, now: Duration, sources: &[State<'_>]) -> Sample {
        let source = |((rate, _), state): (&(f64, f64), &State<'_>)| SourceSample {
            rate: rate / self.steps,
            state: state.sample(),
        };
        Sample {
            time_s: now.as_secs_f64(),
            link: self.link(),
            sources: self.rates.iter().zip(sources).map(source).collect(),
        }
    }
}
