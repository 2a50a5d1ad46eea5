// SPDX-License-Identifier: MIT OR Apache-2.0
//! A source at work.

use super::{
    model::{DueTransfer, Model, Price, Role, Source, UNIT},
    outcome::{SourceOutcome, SourceState, TransferOutcome},
    queue::longer_than,
};
use crate::scenario::Control;
use lowtide_deadline::{
    Goal, Governor, ModelBased, PathState, Pid, Policy, PriceAverage, PriceRatio, Progress, Signal, Signals, Time,
    WeightControl,
};
use std::time::Duration;

/// Bytes of a packet.
const PACKET: f64 = 1500.0;

/// A source at work.
pub(super) struct State<'a> {
    source: &'a Source,
    active: bool,
    /// In units.
    rate: f64,
    /// Units times seconds.
    sent: f64,
    weight: f64,
    ratio: f64,
    signals: Signals,
    meter: Option<Meter>,
    steered: Option<Steered>,
}

/// A transfer under way.
struct Steered {
    transfer: DueTransfer,
    governor: Governor,
    /// ζ in units.
    target: Option<f64>,
    finished: Option<Duration>,
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
    pub(super) fn new(source: &'a Source) -> Self {
        let (weight, steered) = match source.role {
            Role::Greedy(weight) => (weight, None),
            Role::Transfer(transfer) => {
                let governor = governor(source, &transfer);
                (governor.weight().get(), Some(Steered { transfer, governor, target: None, finished: None }))
            }
        };
        Self {
            source,
            active: false,
            rate: 0.0,
            sent: 0.0,
            weight,
            ratio: 1.0,
            signals: Signals::default(),
            meter: source.ratio.map(|ratio| Meter {
                ratio: PriceRatio::new(ratio.policy(source)),
                interval: ratio.interval,
                before: Signals::default(),
                next: source.start() + ratio.interval,
            }),
            steered,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.source.name
    }

    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) const fn active(&self) -> bool {
        self.active
    }

    /// What steers it now, if it is there.
    pub(super) fn sample(&self) -> Option<SourceState> {
        let target = self.steered.as_ref().and_then(|it| it.target);
        self.active.then_some(SourceState { weight: self.weight, price_ratio: self.ratio, target })
    }

    /// Whether it is there in the step that begins now.
    pub(super) fn begin_or_end(&mut self, now: Duration) {
        let finished = self.steered.as_ref().is_some_and(|it| it.finished.is_some());
        self.active = !finished && self.source.windows.iter().any(|window| window.contains(now));
        if !self.active {
            self.rate = 0.0;
        }
    }

    /// Wishes for what its price allows, goes part of the way, and sends.
    pub(super) fn follow(&mut self, load: f64, loss: f64, model: &Model) {
        if !self.active {
            return;
        }
        let price = match self.source.price {
            Price::Blocking => loss,
            Price::Exceeds(queue) => longer_than(queue, load, model.places),
        };
        let price = price.max(model.least_price);
        let wish = libm::pow(price / (self.weight * self.ratio), -1.0 / self.source.alpha).min(model.most_rate);
        self.rate += model.tracking * (wish - self.rate);
        self.sent += self.rate * model.step.as_secs_f64();

        let packets = self.rate * model.step.as_secs_f64() * UNIT / PACKET;
        self.signals.packets += packets;
        let hear = |signal: &mut Signal, price: f64, heeded: bool| {
            signal.indications += packets * price;
            signal.reduction += if heeded { packets * price } else { 0.0 };
        };
        let heeds_loss = self.source.price == Price::Blocking;
        hear(&mut self.signals.loss, loss.max(model.least_price), heeds_loss);
        if !heeds_loss {
            hear(&mut self.signals.delay, price, true);
        }
    }

    /// Lets time pass until `now`, the end of a step: measures φ, and decides the weight.
    pub(super) fn govern(&mut self, now: Duration, step: Duration) {
        if !self.active {
            return;
        }
        if let Some(meter) = &mut self.meter
            && now >= meter.next
        {
            let signals = self.signals.since(meter.before);
            self.ratio = meter.ratio.observe(signals, PathState::default(), meter.interval.as_secs_f64());
            meter.before = self.signals;
            meter.next += meter.interval;
        }
        let Some(steered) = &mut self.steered else { return };
        let decision = steered.governor.tick(&Progress {
            now: now.into(),
            acknowledged_bytes: (self.sent * UNIT) as u64,
            active: true,
            signals: self.signals,
            price_ratio: self.meter.as_ref().map(|_| self.ratio),
            ..Progress::default()
        });
        self.weight = decision.weight.get();
        steered.target = decision.target_rate.map(|rate| rate / UNIT);
        let beyond = self.sent - steered.transfer.size;
        if beyond >= 0.0 {
            // within the step
            let early = if self.rate > 0.0 { (beyond / self.rate).min(step.as_secs_f64()) } else { 0.0 };
            steered.finished = Some(now - Duration::from_secs_f64(early));
            self.sent = steered.transfer.size;
        }
    }

    /// What became of it until `end`.
    pub(super) fn outcome(&self, mean_rate: f64, end: Duration) -> SourceOutcome {
        let transfer = |it: &Steered| {
            let due = self.source.start() + it.transfer.deadline;
            let settled = it.finished.is_some() || end >= due;
            TransferOutcome {
                size: it.transfer.size,
                start_s: self.source.start().as_secs_f64(),
                due_s: due.as_secs_f64(),
                finished_s: it.finished.map(|at| at.as_secs_f64()),
                met: settled.then_some(it.finished.is_some_and(|at| at <= due)),
                late_s: settled.then_some(it.finished.unwrap_or(end).as_secs_f64() - due.as_secs_f64()),
            }
        };
        let deadlines = self.steered.iter().map(transfer).collect();
        SourceOutcome { name: self.source.name.clone(), mean_rate, sent: self.sent, deadlines }
    }
}

impl Source {
    fn start(&self) -> Duration {
        self.windows.first().map_or(Duration::ZERO, |window| window.start)
    }
}

fn governor(source: &Source, transfer: &DueTransfer) -> Governor {
    let steering = &transfer.steering;
    let policy = Policy { alpha: source.alpha, ..steering.policy(Some(source.utility())) };
    // prices are exact: none is remembered
    let control: Box<dyn WeightControl> = match steering.control {
        Control::Pid => Box::new(Pid::new(policy.bounds)),
        Control::ModelBased => {
            Box::new(ModelBased::new(policy.bounds, Some(source.utility())).with_average(PriceAverage::NONE))
        }
    };
    let start = Time::from(source.start());
    let goal = Goal { size: Some((transfer.size * UNIT) as u64), deadline: Some(start + transfer.deadline) };
    Governor::with_control(policy, goal, start, control).expect("the model was checked")
}
