// SPDX-License-Identifier: MIT OR Apache-2.0
//! A law's parameters as the port has them.

use crate::table::{Entry, Form, Hooks, LAWS, Parameter};
use lowtide_cc::{EcnUse, Law, Value};
use std::time::Duration;

/// As many as a port has at most: `LAW_PARAMETERS` of `law.h`.
pub(crate) const PARAMETERS: usize = 24;

impl Form {
    /// The port's number for 1 of what is written: for a second, where it is a time.
    const fn unit(self) -> u64 {
        match self {
            Form::Q10 => 1 << 10,
            Form::Q16 => 1 << 16,
            Form::Q22 => 1 << 22,
            Form::Q32 => 1 << 32,
            Form::Milli => 1000,
            Form::Micros | Form::Overshoot => 1_000_000,
            Form::Whole(_) | Form::Power(_) | Form::WholeOrOff | Form::Switch | Form::Word(_) => 1,
        }
    }

    /// The largest of the port's numbers.
    const fn most(self) -> u32 {
        match self {
            Form::Q16 | Form::Q22 | Form::Q32 | Form::Milli | Form::Micros | Form::WholeOrOff => u32::MAX,
            Form::Q10 => 1024,
            Form::Whole(most) | Form::Power(most) => most,
            Form::Switch => 1,
            Form::Word(words) => words.len() as u32 - 1,
            Form::Overshoot => PART as u32 - 1,
        }
    }
}

/// A parameter of a port, and what it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settable {
    /// Its name.
    pub name: &'static str,
    /// The least of the port's numbers for it.
    pub least: u32,
    /// The largest.
    pub most: u32,
    /// The port's number for a value of 1: of a second, where it is a time; a switch is 0 or 1, a word its place in the
    /// list.
    pub unit: u64,
}

impl Entry {
    fn numbers(&self) -> impl Iterator<Item = Parameter> {
        self.parameters.iter().copied().flatten().copied()
    }

    fn has(&self, key: &str) -> bool {
        self.numbers().any(|(name, _)| name == key)
    }
}

/// A law with parameters that its port has, too.
#[derive(Clone, Debug, PartialEq)]
pub struct Ported {
    law: Law,
    parameters: [u32; PARAMETERS],
}

/// Why the kernel does not have a law, in a sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// No port.
    #[error("{law} is not ported to the kernel; there are {known}")]
    Law {
        /// The law.
        law: String,
        /// Those that are.
        known: String,
    },
    /// A parameter that the port does not have.
    #[error("the kernel's {law} has {key}={usual}, and not {key}={value}")]
    Fixed {
        /// The law.
        law: &'static str,
        /// The parameter.
        key: &'static str,
        /// What it is there.
        usual: String,
        /// What was asked for.
        value: String,
    },
    /// A number that is no power of two.
    #[error("the kernel's {law} takes powers of two up to {most} as {key}, and not {key}={value}")]
    Power {
        /// The law.
        law: &'static str,
        /// The parameter.
        key: &'static str,
        /// The largest.
        most: u32,
        /// What was asked for.
        value: String,
    },
    /// A word that the port does not know.
    #[error("the kernel's {law} has {key} one of {words}, and not {key}={value}")]
    Word {
        /// The law.
        law: &'static str,
        /// The parameter.
        key: &'static str,
        /// Those that it knows.
        words: String,
        /// What was asked for.
        value: String,
    },
    /// A value that is too large for the port's numbers.
    #[error("the kernel's {law} takes {key} up to {most}, and not {key}={value}")]
    Range {
        /// The law.
        law: &'static str,
        /// The parameter.
        key: &'static str,
        /// The largest.
        most: f64,
        /// What was asked for.
        value: String,
    },
}

// `SPELLED` and `KERNELS`, which build.rs writes from the table
include!(concat!(env!("OUT_DIR"), "/include/names.rs"));

impl Ported {
    /// The names by which the command line means the laws in C.
    pub const SPELLED: &[&str] = SPELLED;
    /// The names of those for which the command line means the kernel's law instead.
    pub const KERNELS: &[&str] = KERNELS;

    /// The names of the laws that are ported.
    pub fn names() -> impl Iterator<Item = &'static str> {
        LAWS.iter().map(|law| law.name)
    }

    /// The port of this law.
    ///
    /// # Errors
    /// There is none, or not with these parameters.
    pub fn new(law: &Law) -> Result<Self, Refusal> {
        let known = || Self::names().collect::<Vec<_>>().join(", ");
        let entry = LAWS.iter().find(|entry| entry.name == law.name());
        let entry = entry.ok_or_else(|| Refusal::Law { law: law.name().to_owned(), known: known() })?;
        let own = law.parameters();
        // where the port has the versions of a law, their defaults are usual
        let variant = own.iter().find(|(key, _)| *key == "variant" && entry.has(key));
        let usual =
            variant.map_or_else(|| law.name().to_owned(), |(_, value)| format!("{}:variant={value}", law.name()));
        let usual = usual.parse::<Law>().expect("a law's name is a law").parameters();
        let mut parameters = [0; PARAMETERS];
        for ((key, value), (_, usual)) in own.into_iter().zip(usual) {
            match entry.numbers().enumerate().find(|(_, (name, _))| *name == key) {
                Some((at, own)) => parameters[at] = number(entry.name, own, &value)?,
                None if value != usual && key != "blend" => {
                    return Err(Refusal::Fixed { law: entry.name, key, usual, value });
                }
                None => {}
            }
        }
        Ok(Self { law: law.clone(), parameters })
    }

    /// The law as its reference has it.
    pub const fn law(&self) -> &Law {
        &self.law
    }

    /// The name by which the command line means it.
    pub fn spelled(&self) -> &'static str {
        let cubic = matches!(self.law, Law::Cdg(_)) && self.has("increase", "cubic");
        self.entry().spelled[usize::from(cubic)]
    }

    /// Whether a price weight means something to the law itself.
    pub fn takes_weight(&self) -> bool {
        // the port of CDG has no blend of Reno's growth and CUBIC's, which is what a weight makes of it
        let blends = matches!(self.law, Law::Cdg(_)) && self.has("increase", "reno") && self.has("blend", "on");
        self.entry().takes_weight && !blends
    }

    /// Whether the law has this parameter of this value.
    fn has(&self, key: &str, value: &str) -> bool {
        self.law.parameters().iter().any(|it| (it.0, it.1.as_str()) == (key, value))
    }

    /// Whether it needs ECN, and a receiver that echoes every mark.
    pub fn needs_ecn(&self) -> bool {
        self.law.ecn_use() != EcnUse::Off
    }

    /// Whether the law goes by the one-way delay, where there is one.
    pub fn takes_one_way_delay(&self) -> bool {
        self.entry().takes_one_way_delay
    }

    /// Whether it governs what a receiver receives, too (`law/download.h`). A law of marks does not: a sender that
    /// knows ECN gets the same marks, and reduces its window whatever the receiver makes of them.
    pub fn governs_downloads(&self) -> bool {
        self.entry().hooks != Hooks::Marks
    }

    /// Its place in the table of laws: `enum law_number` of `law/download_law.h`.
    pub fn number(&self) -> u32 {
        self.index() as u32
    }

    /// α of rate ∝ price^(−1/α), for the law's own price.
    pub fn exponent(&self) -> f64 {
        self.entry().exponent
    }

    /// What a program may set of them on a socket of its own, in the order of [`Ported::parameters`].
    pub fn settable(&self) -> Vec<Settable> {
        let described = self.law.describe();
        let settable = |(name, form): Parameter| {
            let range = described.iter().find(|it| it.name == name).and_then(|it| it.range.as_ref());
            let end = |text: &String| number(self.law.name(), (name, form), text).unwrap_or(form.most());
            let (least, most) = range.map_or((0, form.most()), |(least, most)| (end(least), end(most)));
            Settable { name, least, most, unit: form.unit() }
        };
        self.entry().numbers().map(settable).collect()
    }

    /// What the port reads: its parameters in the order of its structure in C.
    pub const fn parameters(&self) -> &[u32; PARAMETERS] {
        &self.parameters
    }

    /// How many of [`Ported::parameters`] the law has.
    pub(crate) fn count(&self) -> usize {
        self.entry().numbers().count()
    }

    fn entry(&self) -> &'static Entry {
        &LAWS[self.index()]
    }

    /// Its place in the table.
    pub(crate) fn index(&self) -> usize {
        LAWS.iter().position(|entry| entry.name == self.law.name()).expect("Ported::new has found it")
    }
}

/// The topmost bit: the rest is a part.
const PART: f64 = 2_147_483_648.0;

/// The port's number for what a law of this name prints of a parameter.
fn number(law: &'static str, (key, form): Parameter, value: &str) -> Result<u32, Refusal> {
    const OWN: &str = "a law prints its own values";
    let real = |text| f64::read(text).expect(OWN);
    let seconds = || Duration::read(value).expect(OWN).as_secs_f64();
    let (mut unit, mut most) = (form.unit() as f64, form.most());
    let number = match form {
        Form::Q10 | Form::Q16 | Form::Q22 | Form::Q32 => real(value),
        Form::Milli => real(value).max(1e-3),
        Form::Micros => seconds(),
        Form::WholeOrOff if value == "off" => 0.0,
        Form::Whole(_) | Form::WholeOrOff => u32::read(value).expect(OWN).into(),
        Form::Power(most) => {
            let whole = u32::read(value).expect(OWN);
            if !whole.is_power_of_two() {
                return Err(Refusal::Power { law, key, most, value: value.to_owned() });
            }
            whole.into()
        }
        Form::Switch => u32::from(bool::read(value).expect(OWN)).into(),
        Form::Word(words) => {
            let at = words.iter().position(|word| *word == value);
            let refusal = || Refusal::Word { law, key, words: words.join(", "), value: value.to_owned() };
            at.ok_or_else(refusal)? as f64
        }
        Form::Overshoot => match value.strip_suffix('%') {
            Some(percent) => {
                (unit, most) = (1.0, u32::MAX);
                PART + real(percent) / 100.0 * f64::from(1 << 24)
            }
            None => seconds(),
        },
    };
    let scaled = (number * unit).round();
    if scaled <= f64::from(most) {
        Ok(scaled as u32)
    } else {
        Err(Refusal::Range { law, key, most: (f64::from(most) / unit).floor(), value: value.to_owned() })
    }
}
