// SPDX-License-Identifier: MIT OR Apache-2.0
//! The computation.

use super::{
    model::{Capacity, Control, Deadline, Model, ModelError, Price, Role, Source},
    queue::{blocking, longer_than},
};
use lowtide_cc::Random;
use lowtide_deadline::{
    self as deadline, Bounds, Goal, Governor, ModelBased, Path, Pid, Policy, PriceMemory, PriceRatio, Progress, Signal,
    Signals, WeightControl,
};
use serde::Serialize;
use std::time::Duration;

/// One unit in bytes per second: 1 Mbit/s, so that the paper's link is one of 100 Mbit/s. It only has to be large enough for
/// whole bytes to be exact.
const UNIT: f64 = 125_000.0;
/// Bytes of a packet.
const PACKET: f64 = 1500.0;

/// What came of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The sources, in the order of the model.
    pub sources: Vec<SourceOutcome>,
    /// The time series.
    pub samples: Vec<Sample>,
}

/// What became of a source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceOutcome {
    /// Its name.
    pub name: String,
    /// Units times seconds sent.
    pub sent: f64,
    /// When a transfer was done, in seconds from the beginning.
    pub finished_s: Option<f64>,
    /// When it was due.
    pub deadline_s: Option<f64>,
}

/// Means over a sample interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// The end of the interval, in seconds.
    pub time_s: f64,
    /// The capacity, in units.
    pub capacity: f64,
    /// The probability of loss.
    pub loss: f64,
    /// The rates, in units, in the order of the sources.
    pub rates: Vec<f64>,
    /// The weights at the end of the interval; 0 while a source is not there.
    pub weights: Vec<f64>,
    /// φ at the end of the interval; 1 where it is not measured.
    pub ratios: Vec<f64>,
    /// ζ at the end of the interval, in units, of the sources that have one.
    pub targets: Vec<Option<f64>>,
}

impl Outcome {
    /// The mean rate in units of the source at this place, between two instants in seconds that are a multiple of the sample interval.
    #[must_use]
    pub fn mean_rate(&self, source: usize, from_s: f64, to_s: f64) -> f64 {
        let within = |sample: &&Sample| sample.time_s > from_s + 1e-9 && sample.time_s <= to_s + 1e-9;
        let (sum, number) = self
            .samples
            .iter()
            .filter(within)
            .fold((0.0, 0.0), |(sum, number), sample| (sum + sample.rates[source], number + 1.0));
        if number > 0.0 { sum / number } else { 0.0 }
    }
}

/// Computes a model. The same model gives the same numbers.
///
/// # Errors
/// What [`Model::check`] finds, or what `lowtide-deadline` says of a deadline's parameters.
pub fn run(model: &Model) -> Result<Outcome, ModelError> {
    model.check()?;
    let mut sources =
        model.sources.iter().map(|source| State::new(source, model)).collect::<Result<Vec<_>, ModelError>>()?;
    let mut link = Link { random: Random::new(model.seed), capacity: 0.0, next_draw: Duration::ZERO };
    let step = model.step.as_secs_f64();
    let mut samples = Vec::new();
    let mut recorder = Recorder::new(sources.len());
    let mut now = Duration::ZERO;
    let mut next_sample = model.sample_interval;
    while now < model.duration {
        link.draw(&model.capacity, now);
        for state in &mut sources {
            state.begin_or_end(now);
        }
        let load = sources.iter().map(|state| state.rate).sum::<f64>() / link.capacity;
        let loss = blocking(load, model.places);
        for state in &mut sources {
            state.follow(load, loss, model, step);
        }
        now += model.step;
        for state in &mut sources {
            state.govern(now, step);
        }
        recorder.record(&sources, link.capacity, loss);
        if now >= next_sample {
            samples.push(recorder.sample(now, &sources));
            next_sample += model.sample_interval;
        }
    }
    let sources = sources
        .into_iter()
        .map(|state| SourceOutcome {
            name: state.source.name.clone(),
            sent: state.sent,
            finished_s: state.finished.map(|at| at.as_secs_f64()),
            deadline_s: state.deadline().map(|it| (state.source.start + it.deadline).as_secs_f64()),
        })
        .collect();
    Ok(Outcome { seed: model.seed, sources, samples })
}

struct Link {
    random: Random,
    capacity: f64,
    next_draw: Duration,
}

impl Link {
    fn draw(&mut self, capacity: &Capacity, now: Duration) {
        match *capacity {
            Capacity::Constant(c) => self.capacity = c,
            Capacity::Drawn { from, to, every } => {
                while now >= self.next_draw {
                    self.capacity = from + (to - from) * self.random.uniform();
                    self.next_draw += every;
                }
            }
        }
    }
}

/// A source at work.
struct State<'a> {
    source: &'a Source,
    active: bool,
    begun: bool,
    rate: f64,
    weight: f64,
    ratio: f64,
    /// What it was owed last, in units.
    target: Option<f64>,
    sent: f64,
    finished: Option<Duration>,
    signals: Signals,
    governor: Option<Governor>,
    meter: Option<Meter>,
}

/// Measures φ.
struct Meter {
    ratio: PriceRatio,
    interval: Duration,
    /// The signals at the beginning of the present T_φ, and its end.
    before: Signals,
    next: Duration,
}

impl<'a> State<'a> {
    fn new(source: &'a Source, model: &Model) -> Result<Self, ModelError> {
        let mut state = Self {
            source,
            active: false,
            begun: false,
            rate: 0.0,
            weight: 0.0,
            ratio: 1.0,
            target: None,
            sent: 0.0,
            finished: None,
            signals: Signals::default(),
            governor: None,
            meter: source.ratio.map(|ratio| Meter {
                ratio: PriceRatio::new(ratio.policy),
                interval: ratio.interval,
                before: Signals::default(),
                next: source.start + ratio.interval,
            }),
        };
        match &source.role {
            Role::Greedy { weight } => state.weight = *weight,
            Role::Deadline(it) => state.governor = Some(governor(source, it, model)?),
        }
        Ok(state)
    }

    fn deadline(&self) -> Option<&Deadline> {
        match &self.source.role {
            Role::Deadline(it) => Some(it),
            Role::Greedy { .. } => None,
        }
    }

    fn begin_or_end(&mut self, now: Duration) {
        let over = self.finished.is_some() || self.source.stop.is_some_and(|stop| now >= stop);
        self.active = now >= self.source.start && !over;
        if self.active && !self.begun {
            self.begun = true;
            if let Some(governor) = &self.governor {
                self.weight = governor.weight().get();
            }
        }
        if !self.active {
            self.rate = 0.0;
        }
    }

    /// Wishes for what its price allows, goes part of the way, and sends.
    fn follow(&mut self, load: f64, loss: f64, model: &Model, step: f64) {
        if !self.active {
            return;
        }
        let price = match self.source.price {
            Price::Loss => loss,
            Price::LongerThan(queue) => longer_than(queue, load, model.places),
        };
        let price = price.max(model.least_price);
        let wish = libm::pow(price / (self.weight * self.ratio), -1.0 / self.source.alpha).min(model.most_rate);
        self.rate += model.tracking * (wish - self.rate);
        self.sent += self.rate * step;

        let packets = self.rate * step * UNIT / PACKET;
        let heard = |price: f64, heeded: bool| Signal {
            indications: packets * price,
            reduction: if heeded { packets * price } else { 0.0 },
        };
        let heeds_loss = self.source.price == Price::Loss;
        let loss = heard(loss.max(model.least_price), heeds_loss);
        let delay = if heeds_loss { Signal::default() } else { heard(price, true) };
        self.signals = add(&self.signals, packets, loss, delay);
    }

    fn govern(&mut self, now: Duration, step: f64) {
        if !self.active {
            return;
        }
        if let Some(meter) = &mut self.meter
            && now >= meter.next
        {
            let signals = self.signals.since(meter.before);
            self.ratio = meter.ratio.observe(signals, Path::default(), meter.interval.as_secs_f64());
            meter.before = self.signals;
            meter.next += meter.interval;
        }
        let Some(governor) = &mut self.governor else { return };
        let decision = governor.tick(&Progress {
            now: now.into(),
            acknowledged_bytes: (self.sent * UNIT) as u64,
            active: true,
            signals: self.signals,
            price_ratio: self.meter.as_ref().map(|_| self.ratio),
            ..Progress::default()
        });
        self.weight = decision.weight.get();
        self.target = decision.target_rate.map(|rate| rate / UNIT);
        let Role::Deadline(it) = &self.source.role else { return };
        if self.sent >= it.size {
            // within the step
            let early = if self.rate > 0.0 { ((self.sent - it.size) / self.rate).min(step) } else { 0.0 };
            self.finished = Some(now - Duration::from_secs_f64(early));
            self.sent = it.size;
        }
    }
}

fn add(to: &Signals, packets: f64, loss: Signal, delay: Signal) -> Signals {
    let sum = |a: Signal, b: Signal| Signal {
        indications: a.indications + b.indications,
        reduction: a.reduction + b.reduction,
    };
    Signals { packets: to.packets + packets, loss: sum(to.loss, loss), delay: sum(to.delay, delay), ..*to }
}

impl Source {
    /// Its utility, as `lowtide-deadline` knows it.
    #[must_use]
    pub fn utility(&self) -> deadline::Model {
        deadline::Model::AlphaFair { alpha: self.alpha, unit_rate: UNIT, signal: self.price.signal() }
    }
}

fn governor(source: &Source, it: &Deadline, model: &Model) -> Result<Governor, ModelError> {
    let fail = |what: String| ModelError { what: format!("source {}: {what}", source.name) };
    let bounds = Bounds::new(it.least_weight, 1.0).map_err(|error| fail(error.to_string()))?;
    let policy = Policy {
        bounds,
        increase_limit: it.increase_limit,
        scale_increase_limit: false,
        nominal_interval: it.interval,
        alpha: source.alpha,
        early_aim: it.early_aim,
        ..Policy::default()
    };
    let control: Box<dyn WeightControl> = match it.control {
        Control::Pid => Box::new(Pid::new(bounds)),
        Control::ModelBased => Box::new(ModelBased::new(bounds, Some(source.utility())).with_memory(PriceMemory::NONE)),
    };
    let start = deadline::Time::from(source.start);
    let goal = Goal { size: Some((it.size * UNIT) as u64), deadline: Some(start + it.deadline) };
    debug_assert!(model.step <= it.interval, "a governor looks several times per interval");
    Governor::with_control(policy, goal, start, control).map_err(|error| fail(error.to_string()))
}

/// Sums up a sample interval.
struct Recorder {
    steps: f64,
    capacity: f64,
    loss: f64,
    rates: Vec<f64>,
}

impl Recorder {
    fn new(sources: usize) -> Self {
        Self { steps: 0.0, capacity: 0.0, loss: 0.0, rates: vec![0.0; sources] }
    }

    fn record(&mut self, sources: &[State<'_>], capacity: f64, loss: f64) {
        self.steps += 1.0;
        self.capacity += capacity;
        self.loss += loss;
        for (sum, state) in self.rates.iter_mut().zip(sources) {
            *sum += state.rate;
        }
    }

    fn sample(&mut self, now: Duration, sources: &[State<'_>]) -> Sample {
        let steps = self.steps;
        let sample = Sample {
            time_s: now.as_secs_f64(),
            capacity: self.capacity / steps,
            loss: self.loss / steps,
            rates: self.rates.iter().map(|sum| sum / steps).collect(),
            weights: sources.iter().map(|state| if state.active { state.weight } else { 0.0 }).collect(),
            ratios: sources.iter().map(|state| state.ratio).collect(),
            targets: sources.iter().map(|state| state.target.filter(|_| state.active)).collect(),
        };
        *self = Self::new(sources.len());
        sample
    }
}
