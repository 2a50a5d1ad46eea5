// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed.

use lowtide_deadline::{RatioPolicy, RatioRule, SignalKind};
use std::time::Duration;

/// A numerical experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Seed of all chance.
    pub seed: u64,
    /// Time covered.
    pub duration: Duration,
    /// Length of a step of time. The paper does not give it; 0.05 s makes 2.5 s of its γ, with which all that it shows is
    /// seen. With a second the ten seconds without other traffic could not be used.
    pub step: Duration,
    /// γ: the part of the way to its wish that a rate goes in each step; in (0, 1].
    pub tracking: f64,
    /// What the link carries.
    pub capacity: Capacity,
    /// K: places in the queue, with the one in service.
    pub places: u32,
    /// No source wishes for more than this many units.
    pub most_rate: f64,
    /// No price is lower than this.
    pub least_price: f64,
    /// The sources.
    pub sources: Vec<Source>,
    /// Time between two samples of the time series, means over which they are.
    pub sample_interval: Duration,
}

/// What a link carries, in units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// Always the same.
    Constant(f64),
    /// Drawn anew, uniformly.
    Drawn {
        /// The least.
        from: f64,
        /// The most.
        to: f64,
        /// How often.
        every: Duration,
    },
}

/// What a source takes for its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    /// The probability of loss.
    Loss,
    /// The probability that the queue is longer than this.
    LongerThan(u32),
}

impl Price {
    /// The kind of signal that it comes as.
    #[must_use]
    pub const fn signal(self) -> SignalKind {
        match self {
            Price::Loss => SignalKind::Loss,
            Price::LongerThan(_) => SignalKind::Delay,
        }
    }
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// When it begins, with a rate of zero.
    pub start: Duration,
    /// When it ends, whatever is left; `None`: with the model.
    pub stop: Option<Duration>,
    /// α of its utility: it wishes for (q/(w·φ))^(−1/α).
    pub alpha: f64,
    /// What it takes for q.
    pub price: Price,
    /// What its weight is.
    pub role: Role,
    /// How φ is measured; `None`: it is 1.
    pub ratio: Option<Ratio>,
}

/// How a source measures φ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The rule and its limits; `every` counts in `interval`.
    pub policy: RatioPolicy,
    /// T_φ; a step of time or more.
    pub interval: Duration,
}

/// What decides a source's weight.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    /// It always has data, and this weight.
    Greedy {
        /// w; 1 for an ordinary source.
        weight: f64,
    },
    /// It has a deadline.
    Deadline(Deadline),
}

/// A transfer with a deadline.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    /// What it has to send, in units times seconds.
    pub size: f64,
    /// How long after its start it is due.
    pub deadline: Duration,
    /// What moves its weight.
    pub control: Control,
    /// T_w.
    pub interval: Duration,
    /// l_w in (0, 1]; 1: no limit.
    pub increase_limit: f64,
    /// The least weight.
    pub least_weight: f64,
    /// Aim a little before the deadline, as Lowtide does and the paper does not.
    pub early_aim: bool,
}

/// What moves a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// PID, with the paper's gains.
    Pid,
    /// Model-based control; the model is the source's own utility, and the price that of the last interval.
    ModelBased,
}

impl Source {
    /// An ordinary TCP: α = 2, and w = 1.
    #[must_use]
    pub fn tcp(name: &str, start: Duration, stop: Option<Duration>) -> Self {
        Self {
            name: name.to_owned(),
            start,
            stop,
            alpha: 2.0,
            price: Price::Loss,
            role: Role::Greedy { weight: 1.0 },
            ratio: None,
        }
    }
}

/// The least weight in the paper's experiments, which do not give one.
const LEAST_WEIGHT: f64 = 0.001;
/// The mean capacity of the link in the paper's experiments.
const MEAN_CAPACITY: f64 = 90.0;
/// Table I of the paper: start and end of its ordinary sources, in seconds.
const TABLE_1: [(u64, u64); 6] = [(0, 600), (200, 1000), (800, 1000), (1010, 1600), (1200, 2000), (1400, 1800)];
/// Start and deadline of the other one.
const TRANSFER: (u64, u64) = (400, 1700);

impl Model {
    /// The paper's link, without sources, for this long; of a constant capacity or its own.
    #[must_use]
    pub fn new(duration: Duration, capacity: Capacity) -> Self {
        Self {
            seed: 1,
            duration,
            step: Duration::from_millis(50),
            tracking: 0.02,
            capacity,
            places: 100,
            most_rate: 200.0,
            least_price: 1e-12,
            sources: Vec::new(),
            sample_interval: Duration::from_secs(1),
        }
    }

    /// The paper's experiment: six TCP sources and one of the `share` η of the link with a deadline, as its Table I has them, which
    /// prints the size with a division for the product η·c·(1700 − 400). The limit on increases l_w is 1, that is off, unless one is set.
    #[must_use]
    pub fn table_1(share: f64, control: Control, seed: u64) -> Self {
        let every = Duration::from_secs(5);
        let capacity = Capacity::Drawn { from: 80.0, to: 100.0, every };
        let mut model = Self { seed, ..Self::new(Duration::from_secs(2000), capacity) };
        for (n, (start, stop)) in TABLE_1.into_iter().enumerate() {
            let (start, stop) = (Duration::from_secs(start), Duration::from_secs(stop));
            model.sources.push(Source::tcp(&format!("tcp-{}", n + 1), start, Some(stop)));
        }
        let (start, deadline) = TRANSFER;
        let seconds = deadline - start;
        model.sources.push(Source {
            role: Role::Deadline(Deadline {
                size: share * MEAN_CAPACITY * seconds as f64,
                deadline: Duration::from_secs(seconds),
                control,
                interval: Duration::from_secs(10),
                increase_limit: 1.0,
                least_weight: LEAST_WEIGHT,
                early_aim: false,
            }),
            ..Source::tcp("transfer", Duration::from_secs(start), None)
        });
        model
    }

    /// The transfer of [`table_1`](Model::table_1), to change it; `None` if there is no source with a deadline.
    pub fn transfer(&mut self) -> Option<(&mut Source, usize)> {
        let place = self.sources.iter().position(|source| matches!(source.role, Role::Deadline(_)))?;
        Some((&mut self.sources[place], place))
    }

    /// Sets l_w of all sources with a deadline.
    #[must_use]
    pub fn with_increase_limit(mut self, l_w: f64) -> Self {
        for source in &mut self.sources {
            if let Role::Deadline(deadline) = &mut source.role {
                deadline.increase_limit = l_w;
            }
        }
        self
    }

    /// Section IV-A.1 of the paper: the transfer takes P\[N > 10\] for its price and has α = 1.2. The increase of φ is limited by
    /// l_φ = 0.1; prices being exact here, there are no events to wait for. `interval` is T_φ, which the paper does not give.
    #[must_use]
    pub fn heterogeneous(mut self, literal: bool, interval: Duration) -> Self {
        if let Some((source, _)) = self.transfer() {
            source.alpha = 1.2;
            source.price = Price::LongerThan(10);
            let rule = if literal {
                // both prices are probabilities, and each indication weighs the same
                RatioRule::Literal { standard_reduction: 1.0 }
            } else {
                RatioRule::Corrected { own: source.utility(), standard: Source::tcp("", source.start, None).utility() }
            };
            source.ratio =
                Some(Ratio { policy: RatioPolicy { enough_losses: 0.0, ..RatioPolicy::new(rule) }, interval });
        }
        self
    }

    /// Whether it can be computed.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self) -> Result<(), ModelError> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let fail = |what: &str| Err(ModelError { what: what.to_owned() });
        if self.step.is_zero() || self.step > Duration::from_secs(60) {
            return fail("the step of time has to be longer than zero and at most a minute");
        }
        if self.sample_interval < self.step {
            return fail("the time between samples has to be a step of time or more");
        }
        if !(self.tracking > 0.0 && self.tracking <= 1.0) {
            return fail("the part of the way that rates go in a step has to lie above 0 and not above 1");
        }
        match self.capacity {
            Capacity::Constant(c) if !positive(c) => return fail("the capacity has to be above 0"),
            Capacity::Drawn { from, to, every }
                if !(positive(from) && positive(to) && from <= to && !every.is_zero()) =>
            {
                return fail(
                    "the capacity has to be drawn from values above 0, the least first, at intervals above zero",
                );
            }
            _ => {}
        }
        if self.places == 0 {
            return fail("the queue needs a place");
        }
        if !(positive(self.most_rate) && positive(self.least_price)) {
            return fail("the largest rate and the least price have to be above 0");
        }
        for source in &self.sources {
            let fail = |what: &str| Err(ModelError { what: format!("source {}: {what}", source.name) });
            if !positive(source.alpha) {
                return fail("alpha has to be above 0");
            }
            if source.ratio.is_some_and(|ratio| ratio.interval < self.step) {
                return fail("the ratio of prices cannot be measured more often than once per step");
            }
            match &source.role {
                Role::Greedy { weight } if !positive(*weight) => return fail("the weight has to be above 0"),
                Role::Deadline(it) if !positive(it.size) || it.deadline.is_zero() => {
                    return fail("size and deadline have to be above 0");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Why a model cannot be computed: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct ModelError {
    pub(super) what: String,
}
