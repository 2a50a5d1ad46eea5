// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed.

use crate::scenario::{RatioKind, Span, Steering};
use lowtide_deadline::{self as deadline, RatioPolicy, RatioRule, SignalKind};
use std::time::Duration;

/// One unit in bytes per second: 1 Mbit/s, so that the paper's link is one of 100 Mbit/s. It only has to be large
/// enough for whole bytes to be exact.
pub(super) const UNIT: f64 = 125_000.0;

/// A numerical experiment. One that was read ([`ScenarioFile`](crate::scenario::ScenarioFile)) can be computed; one
/// made otherwise has to keep to the ranges given here.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Seed of all chance.
    pub seed: u64,
    /// Time covered.
    pub duration: Duration,
    /// Means are taken from here to the end.
    pub measure_from: Duration,
    /// Time between two samples of the time series, which are means over it; a step of time or more.
    pub sample_interval: Duration,
    /// Spans of time of which means are wanted.
    pub spans: Vec<Span>,
    /// Length of a step of time, above zero.
    pub step: Duration,
    /// γ: the part of the way to its wish that a rate goes in each step; in (0, 1].
    pub tracking: f64,
    /// No source wishes for more than this many units; above 0.
    pub most_rate: f64,
    /// No price is lower than this; above 0.
    pub least_price: f64,
    /// What the link carries.
    pub capacity: Capacity,
    /// K: places in the queue, with the one in service; above 0.
    pub places: u32,
    /// The sources.
    pub sources: Vec<Source>,
}

/// What a link carries, in units: drawn uniformly from `mean` − `spread` to `mean` + `spread`, all of which is above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// The mean.
    pub mean: f64,
    /// How far above and below it may lie; 0 or more.
    pub spread: f64,
    /// How often it is drawn; above zero.
    pub redraw: Duration,
}

/// What a source takes for its price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Price {
    /// `blocking`: the probability of loss.
    #[default]
    Blocking,
    /// `exceeds:10`: the probability that the queue is longer than this.
    Exceeds(u32),
}

impl Price {
    /// The kind of signal that it comes as.
    #[must_use]
    pub const fn signal(self) -> SignalKind {
        match self {
            Self::Blocking => SignalKind::Loss,
            Self::Exceeds(_) => SignalKind::Delay,
        }
    }
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// When it is there, each time beginning with a rate of zero; at least one span, in the order of time.
    pub windows: Vec<Window>,
    /// α of its utility, above 0: it wishes for (q/(w·φ))^(−1/α).
    pub alpha: f64,
    /// What it takes for q.
    pub price: Price,
    /// What its weight is.
    pub role: Role,
    /// How φ is measured; `None`: it is 1.
    pub ratio: Option<Ratio>,
}

/// A span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its beginning.
    pub start: Duration,
    /// Its end; `None`: that of the model.
    pub stop: Option<Duration>,
}

impl Window {
    /// Whether this instant lies in it.
    #[must_use]
    pub fn contains(&self, now: Duration) -> bool {
        now >= self.start && self.stop.is_none_or(|stop| now < stop)
    }
}

/// What decides a source's weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// It always has data, and this weight, above 0; 1 is an ordinary source.
    Greedy(f64),
    /// It has a deadline.
    Transfer(DueTransfer),
}

/// A transfer with a deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DueTransfer {
    /// What it has to send, in units times seconds; above 0.
    pub size: f64,
    /// How long after its start it is due; above zero.
    pub deadline: Duration,
    /// What steers it. The model is its own utility, and the price that of the last interval.
    pub steering: Steering,
}

/// How a source measures φ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The rule.
    pub kind: RatioKind,
    /// l_φ, in (0, 1].
    pub increase_limit: f64,
    /// T_φ; a step of time or more.
    pub interval: Duration,
}

/// α of TCP.
pub(crate) const TCP: f64 = 2.0;

impl Source {
    /// Its utility, as `lowtide-deadline` knows it.
    pub(super) fn utility(&self) -> deadline::Model {
        utility(self.alpha, self.price)
    }
}

fn utility(alpha: f64, price: Price) -> deadline::Model {
    deadline::Model::AlphaFair { alpha, unit_rate: UNIT, signal: price.signal() }
}

impl Ratio {
    /// The policy for this source. Prices being exact here, there are no losses to wait for, and none weighs more than
    /// another.
    pub(super) fn policy(&self, source: &Source) -> RatioPolicy {
        let rule = match self.kind {
            RatioKind::Literal => RatioRule::Literal { standard_reduction: 1.0 },
            RatioKind::Corrected => {
                RatioRule::Corrected { own: source.utility(), standard: utility(TCP, Price::Blocking) }
            }
        };
        RatioPolicy { enough_losses: 0.0, increase_limit: self.increase_limit, ..RatioPolicy::new(rule) }
    }
}
