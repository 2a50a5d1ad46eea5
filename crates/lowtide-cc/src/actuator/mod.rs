// SPDX-License-Identifier: MIT OR Apache-2.0
//! Actuators: how a law is made to behave as if the congestion price were `1/w` times what it is.
//!
//! Some laws take a weight natively; any other is wrapped. Written `native`, `phantom:v=3,floor=2ms` or `beta`:
//!
//! ```
//! use lowtide_cc::{Actuator, Flow, Law};
//!
//! let law: Law = "cubic".parse()?;
//! let actuator: Actuator = "phantom:floor=0s".parse()?;
//! let mut control = law.build_weighted(&Flow { mss: 1448, initial_window: 10, seed: 1 }, &actuator)?;
//! control.weighted().unwrap().set_weight(0.1);
//! # Ok::<(), lowtide_cc::ActuatorError>(())
//! ```

mod backoff;
mod phantom;
mod source;
#[cfg(test)]
mod tests;

pub use backoff::BackoffScaling;
pub use phantom::PhantomEcn;

use crate::{
    CongestionControl, EcnUse, Flow, Law, LawError,
    text::{self, list, nearest, parameters, values},
};
use std::{fmt, str::FromStr, time::Duration};

values! {
    /// Whether a law with a weight of its own has its losses inflated by phantom signals, too.
    pub enum Losses {
        /// `share` for CDG, `on` for Eclipse; for both the weight acts on delay alone. `off` for Vegas, which has a
        /// rule of its own for losses, and for laws that go by marks.
        Usual = "usual",
        /// Always: a price is the sum of all signals.
        On = "on",
        /// By the part of the last 16 reductions that losses were: where delay is a usable signal, inflated losses
        /// would only cost idle capacity. By degrees, or else more weight can mean a smaller rate (`few`, at 20 ms:
        /// 37 % of a CUBIC flow's at w = 0.016, 13 % at 0.06), and what steers the weight would push the wrong way.
        Share = "share",
        /// While delay explains fewer than half of the last 16 reductions.
        Few = "few",
        /// Never.
        Off = "off",
    }
}

parameters! {
    /// The law's own weight.
    pub struct Native for "native" {
        /// Whether losses are inflated by phantom signals.
        losses: Losses = Losses::Usual;
        /// A queue no longer than this (or a sixteenth of the round-trip time) has no price, of delay (CDG, unless it
        /// has a `floor` of its own) or of loss; 0s: no such rule. See `phantom`.
        floor: Duration = FLOOR, in Duration::ZERO..=Duration::from_secs(1);
    }
}

parameters! {
    /// Phantom signals.
    pub struct Phantom for "phantom" {
        /// They end so many mean intervals after the latest real signal (paper 001, section III-D).
        v: f64 = 3.0, in 0.0..=1e6;
        /// Gain of the mean interval τ. As of a smoothed round-trip time; the paper names none.
        tau_gain: f64 = 0.125, in 0.001..=1.0;
        /// Gain of the mean number of packets between real signals.
        loss_gain: f64 = 0.125, in 0.001..=1.0;
        /// None in a round whose least round-trip time is no more than this (or a sixteenth) above the least ever seen,
        /// since an empty queue has no price; 0s: no such rule, as in the paper.
        floor: Duration = FLOOR, in Duration::ZERO..=Duration::from_secs(1);
    }
}

impl Native {
    fn phantom(&self) -> Phantom {
        Phantom { floor: self.floor, ..Phantom::default() }
    }
}

/// Below the 5 ms that CoDel and PIE aim at, above the noise of a least round-trip time.
const FLOOR: Duration = Duration::from_millis(2);

/// How a law takes a price weight, with parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Actuator {
    /// By itself.
    Native(Native),
    /// By phantom signals.
    Phantom(Phantom),
    /// By scaling its decrease factor.
    Beta,
}

impl Actuator {
    /// The names of all.
    pub const NAMES: &'static [&'static str] = &["native", "phantom", "beta"];

    /// Its name, without parameters.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Phantom(_) => "phantom",
            Self::Beta => "beta",
        }
    }

    /// Every parameter with its value.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        use crate::Parameters;
        match self {
            Self::Native(parameters) => parameters.entries(),
            Self::Phantom(parameters) => parameters.entries(),
            Self::Beta => Vec::new(),
        }
    }
}

impl FromStr for Actuator {
    type Err = ActuatorError;

    /// Reads `name` or `name:key=value,key=value`.
    ///
    /// # Errors
    /// There is no such actuator or parameter, or a value is not possible.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        Ok(match name {
            "native" => Self::Native(text::read(rest)?),
            "phantom" => Self::Phantom(text::read(rest)?),
            "beta" if rest.is_empty() => Self::Beta,
            "beta" => return Err(ActuatorError::NoParameters),
            _ => {
                let nearest = nearest(name, Self::NAMES).to_owned();
                return Err(ActuatorError::Unknown { name: name.to_owned(), nearest, known: list(Self::NAMES) });
            }
        })
    }
}

impl fmt::Display for Actuator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native(parameters) => text::print(parameters, f),
            Self::Phantom(parameters) => text::print(parameters, f),
            Self::Beta => f.write_str(self.name()),
        }
    }
}

/// Why there is no such actuator, or not for this law.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActuatorError {
    /// There is no actuator of that name.
    #[error("unknown actuator `{name}`; did you mean `{nearest}`? There are {known}")]
    Unknown {
        /// What was written.
        name: String,
        /// The most similar name.
        nearest: String,
        /// All names.
        known: String,
    },
    /// `beta` with parameters.
    #[error("`beta` has no parameters; write it alone")]
    NoParameters,
    /// Its parameters, or the law, are wrong.
    #[error(transparent)]
    Text(#[from] LawError),
    /// The law does not take it.
    #[error("{law} cannot be steered by `{actuator}`: {why}")]
    Refused {
        /// The law.
        law: &'static str,
        /// The actuator.
        actuator: &'static str,
        /// The reason, and what to do.
        why: &'static str,
    },
}

/// A weight for actuators that cannot make more than a best-effort flow of a law.
fn at_most_one(weight: f64) -> f64 {
    weight.clamp(f64::MIN_POSITIVE, 1.0)
}

impl Law {
    /// The state of a flow that the law controls and that takes a price weight by this actuator. Until a weight is set,
    /// the law is as published.
    ///
    /// # Errors
    /// The law does not take this actuator.
    pub fn build_weighted(
        &self,
        flow: &Flow,
        actuator: &Actuator,
    ) -> Result<Box<dyn CongestionControl>, ActuatorError> {
        self.steered(flow, actuator, &|law| law.build(flow))
    }

    /// The same for a law that is not made by [`build`](Self::build): a port of it, by `make`.
    ///
    /// # Errors
    /// The law does not take this actuator.
    pub fn steered(
        &self,
        flow: &Flow,
        actuator: &Actuator,
        make: &dyn Fn(&Self) -> Box<dyn CongestionControl>,
    ) -> Result<Box<dyn CongestionControl>, ActuatorError> {
        let refused = |why| ActuatorError::Refused { law: self.name(), actuator: actuator.name(), why };
        if self.follows_a_model() {
            return Err(refused(
                "it follows a model of the path and ignores single signals; take a law without a model, like cdg or cubic",
            ));
        }
        if self.goes_by_trials() {
            return Err(refused("it goes by trials of rates and ignores single signals; take cdg or cubic"));
        }
        let mut law = make(self);
        let accurate = matches!(self.ecn_use(), EcnUse::Accurate | EcnUse::L4s);
        match actuator {
            Actuator::Native(_) if law.weighted().is_none() => {
                Err(refused("it has no weight of its own; take `phantom` or `beta`"))
            }
            Actuator::Native(native) => {
                let usual = match self {
                    Self::Cdg(_) => Losses::Share,
                    Self::Eclipse(_) => Losses::On,
                    _ => Losses::Off,
                };
                let losses = if native.losses == Losses::Usual { usual } else { native.losses };
                if let Self::Cdg(cdg) = self
                    && cdg.floor.is_zero()
                {
                    law = make(&Self::Cdg(cdg.clone().floor(native.floor)?));
                }
                let native = Native { losses, ..native.clone() };
                Ok(Box::new(PhantomEcn::native(law, &native, accurate, flow)))
            }
            Actuator::Phantom(phantom) => Ok(Box::new(PhantomEcn::new(law, phantom, accurate, flow))),
            Actuator::Beta => match BackoffScaling::new(law, accurate, flow) {
                Some(law) => Ok(Box::new(law)),
                None => Err(refused("its window cannot be scaled; take `phantom`")),
            },
        }
    }

    /// The actuator to take where none is named; `None` if the law takes none.
    pub fn default_actuator(&self) -> Option<Actuator> {
        if !self.takes_weight() {
            return None;
        }
        // DCTCP's own weight cannot do more than halve the window after each marked round trip: half of another's
        // share.
        let native = !matches!(self, Self::Dctcp(_))
            && self.build(&Flow { mss: 1448, initial_window: 10, seed: 0 }).weighted().is_some();
        Some(if native { Actuator::Native(Native::default()) } else { Actuator::Phantom(Phantom::default()) })
    }

    /// Whether it takes a price weight by some actuator.
    pub fn takes_weight(&self) -> bool {
        !self.follows_a_model() && !self.goes_by_trials()
    }

    const fn follows_a_model(&self) -> bool {
        matches!(self, Self::Bbr1(_) | Self::Bbr2(_) | Self::Bbr3(_))
    }

    const fn goes_by_trials(&self) -> bool {
        matches!(self, Self::Proteus(_))
    }
}
