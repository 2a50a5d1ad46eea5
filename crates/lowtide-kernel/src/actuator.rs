// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a control law in the kernel takes the price weight. The simulator has the same three (`lowtide_cc::Actuator`).

use lowtide_deadline::{Cubic, Model};

use crate::{Error, KernelLaw, Result};

/// What the weight acts on in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelActuator {
    /// The law's own: the delay hazard of CDG, and its losses where delay is not a usable signal; the α of Vegas.
    Native,
    /// Phantom congestion signals. A law of ours then has the hazard of G = G₀, at which CDG is the most like an
    /// ordinary flow.
    Phantom,
    /// The decrease factor of a law of ours, at all of its real reductions: cwnd ← max(2, β·w·cwnd) (the framework,
    /// section III-D; its title is in `docs/deviations.md`). The hazard is that of G₀.
    Beta,
}

impl KernelActuator {
    /// The one to use with a law where none is named.
    pub fn usual(law: &KernelLaw) -> KernelActuator {
        if law.takes_weight() { KernelActuator::Native } else { KernelActuator::Phantom }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            KernelActuator::Native => "native",
            KernelActuator::Phantom => "phantom",
            KernelActuator::Beta => "beta",
        }
    }

    /// Whether `law` takes it.
    ///
    /// # Errors
    /// [`Error::Actuator`]: a law of the kernel takes phantom signals only. [`Error::DeafToActuator`].
    pub fn check(self, law: &KernelLaw) -> Result<()> {
        let why = match self {
            KernelActuator::Native if !law.takes_weight() => "has no weight of its own",
            KernelActuator::Phantom | KernelActuator::Beta if !law.answers_any_signal() => {
                return Err(Error::DeafToActuator { law: law.name().to_owned() });
            }
            KernelActuator::Beta if !law.is_ours() => "is the kernel's, whose decrease factor Lowtide cannot reach",
            _ => return Ok(()),
        };
        Err(Error::Actuator { law: law.name().to_owned(), why })
    }

    /// What model-based control knows of `law` under it: the rate that it holds at which price, where prices are
    /// inflated by 1/w. `None`: nothing.
    pub fn model(self, law: &KernelLaw) -> Option<Model> {
        match (self, law) {
            (KernelActuator::Phantom, KernelLaw::Kernel(name)) => match name.as_str() {
                "cubic" => Some(Model::Cubic(Cubic::RFC_9438)),
                "reno" => Some(Model::Reno),
                _ => None,
            },
            // its losses are its price, and it keeps 0.7 of the window as its name says
            (KernelActuator::Phantom, KernelLaw::Own(ported)) if *ported.law() == "cubic:paced=on".parse().ok()? => {
                Some(Model::Cubic(Cubic::RFC_9438))
            }
            (KernelActuator::Native, KernelLaw::Own(ported)) => match ported.law().name() {
                "vegas" => Some(Model::Vegas { packets: number(ported.law(), "alpha_base")?, linux: true }),
                "cdg" => Some(Model::Cdg {
                    kept_at_delay: number(ported.law(), "beta")?,
                    kept_at_loss: 0.5, // of the stack's own laws and of ours
                }),
                _ => None,
            },
            // Signals alone leave CDG's price, delay, as it is; a scaled decrease factor inflates none; and a law of
            // the kernel has no weight of its own.
            (KernelActuator::Phantom, KernelLaw::Own(_))
            | (KernelActuator::Beta, _)
            | (KernelActuator::Native, KernelLaw::Kernel(_)) => None,
        }
    }

    /// What the weight `w` comes to on a socket under `law`; `price` is p_loss, `ratio` φ.
    pub(crate) fn pressure(self, law: &KernelLaw, w: f64, ratio: f64, price: f64) -> Pressure {
        let surplus = 1.0 / w - 1.0;
        let signals = Pressure { surplus, phantom: price * surplus, increase: w.max(1.0), ..Pressure::default() };
        match self {
            // its sockets whose peers have no ECN run the kernel's Reno, which takes signals
            KernelActuator::Native if law.needs_ecn() => Pressure { weight: Some((w, ratio)), ..signals },
            KernelActuator::Native if !law.has_one_window() => {
                Pressure { weight: Some((w, ratio)), ..Pressure::default() }
            }
            KernelActuator::Native => Pressure { hazard: surplus, ..signals },
            KernelActuator::Phantom => signals,
            KernelActuator::Beta => Pressure { kept: w.min(1.0), increase: w.max(1.0), ..Pressure::default() },
        }
    }
}

/// What a weight comes to on a socket, for each thing that it acts on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pressure {
    /// 1/w − 1 for signals; 0: no phantom signals.
    pub surplus: f64,
    /// The same for the price of delay in our own law: its hazard is this times g⁺/G₀.
    pub hazard: f64,
    /// The part, up to 1, that our own law keeps of what a reduction for real congestion leaves.
    pub kept: f64,
    /// Chance of a phantom signal per segment, p_loss·(1/w − 1).
    pub phantom: f64,
    /// The weight, and φ, the price of ordinary flows over that of this law, to a law that knows what to do with them;
    /// `None`: the law is as published.
    pub weight: Option<(f64, f64)>,
    /// Segments per round trip that our own law's budget grows by: 1, or the weight where it is above 1; another part
    /// of it where some sockets have goals of their own.
    pub increase: f64,
}

impl Default for Pressure {
    /// No signal is made up, and CDG is the one of G = G₀.
    fn default() -> Pressure {
        Pressure { surplus: 0.0, hazard: 1.0, kept: 1.0, phantom: 0.0, weight: None, increase: 1.0 }
    }
}

/// A parameter of the law that is a number.
fn number(law: &lowtide_cc::Law, name: &str) -> Option<f64> {
    law.parameters().into_iter().find(|(key, _)| *key == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cdg() -> KernelLaw {
        KernelLaw::parse("cdg").unwrap()
    }

    fn own(text: &str) -> KernelLaw {
        let law = KernelLaw::parse(text).unwrap();
        assert!(law.is_ours() && !law.has_one_window());
        law
    }

    #[test]
    fn a_law_of_the_kernel_takes_signals_only() {
        let cubic = KernelLaw::Kernel("cubic".into());
        assert_eq!(
            (KernelActuator::usual(&cubic), KernelActuator::usual(&cdg())),
            (KernelActuator::Phantom, KernelActuator::Native)
        );
        assert!(KernelActuator::Phantom.check(&cubic).is_ok());
        for actuator in [KernelActuator::Native, KernelActuator::Beta] {
            let sentence = actuator.check(&cubic).unwrap_err().to_string();
            assert!(sentence.contains("the law cubic") && sentence.contains("phantom"), "{sentence}");
            assert!(actuator.check(&cdg()).is_ok());
        }
    }

    #[test]
    fn the_weight_goes_to_one_place() {
        let [native, phantom, beta] = [KernelActuator::Native, KernelActuator::Phantom, KernelActuator::Beta]
            .map(|actuator| actuator.pressure(&cdg(), 0.25, 1.0, 0.01));
        assert_eq!((native.surplus, native.hazard, native.phantom, native.kept), (3.0, 3.0, 0.03, 1.0));
        assert_eq!((phantom.surplus, phantom.hazard, phantom.phantom, phantom.kept), (3.0, 1.0, 0.03, 1.0));
        let vegas = KernelActuator::Native.pressure(&own("vegas"), 0.25, 1.5, 0.01);
        assert_eq!((vegas.weight, vegas.surplus, vegas.phantom), (Some((0.25, 1.5)), 0.0, 0.0));
        assert_eq!((native.weight, phantom.weight), (None, None));
        assert_eq!((beta.surplus, beta.hazard, beta.phantom, beta.kept), (0.0, 1.0, 0.0, 0.25));
    }

    /// A model belongs to the law and to how it is steered.
    #[test]
    fn models() {
        let kernel = |name: &str| KernelLaw::Kernel(name.into());
        for (law, actuator, model) in [
            (cdg(), KernelActuator::Native, Some(Model::CDG)),
            (cdg(), KernelActuator::Phantom, None),
            (cdg(), KernelActuator::Beta, None),
            (kernel("cubic"), KernelActuator::Phantom, Some(Model::Cubic(Cubic::RFC_9438))),
            (kernel("reno"), KernelActuator::Phantom, Some(Model::Reno)),
            (own("vegas:alpha_base=20"), KernelActuator::Native, Some(Model::Vegas { packets: 20.0, linux: true })),
            (own("vegas"), KernelActuator::Phantom, None),
            (own("lt_cubic"), KernelActuator::Phantom, Some(Model::Cubic(Cubic::RFC_9438))),
            (own("lt_cubic:beta=0.8"), KernelActuator::Phantom, None),
            (own("lt_cubic"), KernelActuator::Beta, None),
            (kernel("htcp"), KernelActuator::Phantom, None),
            (kernel("vegas"), KernelActuator::Phantom, None), // what it holds by loss is not its model
        ] {
            assert_eq!(actuator.model(&law), model, "{law:?} {actuator:?}");
        }
    }
}
