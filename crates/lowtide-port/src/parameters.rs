// SPDX-License-Identifier: MIT OR Apache-2.0
//! A law's parameters as the port has them.

use lowtide_cc::{EcnUse, Law, Value};
use std::time::Duration;

/// As many as a port has at most: `LAW_PARAMETERS` of `law.h`.
pub(crate) const PARAMETERS: usize = 24;

/// How a parameter of the reference becomes a number of the port.
#[derive(Clone, Copy, Debug)]
enum Scale {
    /// Units of 2⁻¹⁶.
    Q16,
    /// Units of 2⁻³²: parts below 1.
    Q32,
    /// Units of 2⁻²²: up to 1024.
    Q22,
    /// Thousandths, at least one.
    Milli,
    /// Parts of 1024.
    Q10,
    /// Microseconds.
    Micros,
    /// A whole number up to this one.
    Whole(u32),
    /// The same, a power of two.
    Power(u32),
    /// A whole number, or off, which is 0.
    WholeOrOff,
    /// On is 1.
    Switch,
    /// The place of the word among these.
    Word(&'static [&'static str]),
    /// Acceptable delay: microseconds, or a part of the round trip in 2⁻²⁴, by the topmost bit.
    Overshoot,
}

impl Scale {
    /// The port's number for 1 of what is written: for a second, where it is a time.
    const fn unit(self) -> u64 {
        match self {
            Scale::Q10 => 1 << 10,
            Scale::Q16 => 1 << 16,
            Scale::Q22 => 1 << 22,
            Scale::Q32 => 1 << 32,
            Scale::Milli => 1000,
            Scale::Micros | Scale::Overshoot => 1_000_000,
            Scale::Whole(_) | Scale::Power(_) | Scale::WholeOrOff | Scale::Switch | Scale::Word(_) => 1,
        }
    }

    /// The largest of the port's numbers.
    const fn most(self) -> u32 {
        match self {
            Scale::Q16 | Scale::Q22 | Scale::Q32 | Scale::Milli | Scale::Micros | Scale::WholeOrOff => u32::MAX,
            Scale::Q10 => 1024,
            Scale::Whole(most) | Scale::Power(most) => most,
            Scale::Switch => 1,
            Scale::Word(words) => words.len() as u32 - 1,
            Scale::Overshoot => PART as u32 - 1,
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

/// A parameter and how it becomes a number.
type Number = (&'static str, Scale);

/// A law of the kernel: its parameters in the order of its structure in C, group by group. Those that are not there
/// have to be as they are by default.
#[derive(Debug)]
struct Form {
    law: &'static str,
    groups: &'static [&'static [Number]],
}

impl Form {
    fn numbers(&self) -> impl Iterator<Item = Number> {
        self.groups.iter().copied().flatten().copied()
    }

    fn has(&self, key: &str) -> bool {
        self.numbers().any(|(name, _)| name == key)
    }
}

/// All that are ported.
const FORMS: &[Form] = &[
    Form {
        law: "vegas",
        groups: &[&[
            ("alpha", Scale::Q16),
            ("beta", Scale::Q16),
            ("gamma", Scale::Q16),
            ("backoff", Scale::Q16),
            ("alpha_base", Scale::Q16),
            ("alpha_max", Scale::Q16),
            ("gap", Scale::Q16),
        ]],
    },
    Form {
        law: "dctcp",
        groups: &[
            &[("gain", Scale::Q16), ("alpha", Scale::Q16), ("beta", Scale::Q16), ("cwr_increase", Scale::Switch)],
            TRANSIENTS,
        ],
    },
    Form {
        law: "prague",
        groups: &[
            &[
                ("variant", Scale::Word(&["v0.6", "v0.7"])),
                ("gain", Scale::Q16),
                ("alpha_mode", Scale::Word(&["halve", "one"])),
                ("beta", Scale::Q16),
                ("mode", Scale::Word(&["none", "rate", "scalable", "additive"])),
                ("target", Scale::Micros),
                ("transition", Scale::Whole(u32::MAX)),
                ("max_rtt", Scale::Micros),
                ("cwnd_mode", Scale::Word(&["window", "rate", "switch"])),
                ("cwnd_transit", Scale::Q16),
                ("min_rate", Scale::Milli),
            ],
            TRANSIENTS,
        ],
    },
    Form {
        law: "eclipse",
        groups: &[&[
            ("beta", Scale::Q32),
            ("alpha", Scale::Q16),
            ("cwnd_min", Scale::Q16),
            ("mu", Scale::Word(&["adaptive", "literal", "fixed"])),
            ("mu_initial", Scale::Micros),
            ("mu_min", Scale::Micros),
            ("mu_rtts", Scale::Q16),
            ("mu_max", Scale::Micros),
            ("stable", Scale::Micros),
            ("delta_min", Scale::Micros),
            ("delta_floor", Scale::Q16),
            ("guard", Scale::Switch),
            ("drain", Scale::Micros),
            ("drain_rtts", Scale::Q16),
            ("slow_start", Scale::Word(&["delay", "loss"])),
            ("beta_loss", Scale::Q16),
        ]],
    },
    Form {
        law: "ledbat",
        groups: &[&[
            ("target", Scale::Micros),
            ("gain", Scale::Q16),
            ("allowed_increase", Scale::Q16),
            ("min_cwnd", Scale::Q16),
            ("init_cwnd", Scale::Q16),
            ("base_history", Scale::Whole(BASE_MINUTES)),
            ("current_filter", Scale::Whole(CURRENT_SAMPLES)),
            ("beta", Scale::Q16),
            ("slow_start", Scale::Switch),
        ]],
    },
    Form {
        law: "ledbatpp",
        groups: &[&[
            ("target", Scale::Micros),
            ("max_divisor", Scale::Whole(u32::MAX)),
            ("constant", Scale::Q16),
            ("slow_start_exit", Scale::Q16),
            ("slowdown", Scale::Switch),
            ("slowdown_delay", Scale::Q16),
            ("slowdown_hold", Scale::Q16),
            ("slowdown_interval", Scale::Q16),
            ("min_cwnd", Scale::Q16),
            ("init_cwnd", Scale::Q16),
            ("base_history", Scale::Whole(BASE_MINUTES)),
            ("current_filter", Scale::Whole(CURRENT_SAMPLES)),
            ("beta", Scale::Q16),
        ]],
    },
    Form {
        law: "cdg",
        groups: &[&[
            ("variant", Scale::Word(&["mainline", "thesis"])),
            ("window", Scale::Power(256)),
            ("g", Scale::Milli),
            ("floor", Scale::Micros),
            ("beta", Scale::Q10),
            ("shadow", Scale::Switch),
            ("ineff", Scale::WholeOrOff),
            ("hold", Scale::Whole(u32::MAX)),
            ("tolerance", Scale::Switch),
            ("hystart", HYSTART),
            ("paced", Scale::Switch),
            ("filter", Scale::Switch),
            ("extrapolate", Scale::Switch),
            ("unsmoothed", Scale::Switch),
            ("increase", Scale::Word(&["reno", "cubic", "round"])),
        ]],
    },
    Form {
        law: "cubic",
        groups: &[&[
            ("variant", Scale::Word(&["rfc9438", "linux", "2008"])),
            ("beta", Scale::Q32),
            ("c", Scale::Q22),
            ("fast_convergence", Scale::Switch),
            ("reno_friendly", Scale::Switch),
            ("whole_segments", Scale::Switch),
            ("hystart", HYSTART),
            ("low_window", Scale::Q16),
            ("paced", Scale::Switch),
        ]],
    },
    Form {
        law: "tide",
        groups: &[&[("probe_share", Scale::Q32), ("probe_rate", Scale::Milli), ("drain", Scale::Micros)]],
    },
];

/// Of a law with acceleration and overload mode, behind its own: `struct transients_parameters`.
const TRANSIENTS: &[Number] = &[
    ("accel", Scale::Switch),
    ("accel_q", Scale::Overshoot),
    ("accel_gain", Scale::Q16),
    ("accel_cycles", Scale::Whole(u32::MAX)),
    ("accel_literal", Scale::Switch),
    ("overload", Scale::Switch),
    ("overload_q", Scale::Overshoot),
    ("overload_gain", Scale::Q16),
    ("overload_aqm", Scale::Micros),
    ("overload_base", Scale::Micros),
    ("overload_rounds", Scale::Word(&["fresh", "every"])),
];
const HYSTART: Scale = Scale::Word(&["off", "train", "delay", "on"]);

/// As many as `delay.h` remembers.
const BASE_MINUTES: u32 = 32;
/// As many as it filters.
const CURRENT_SAMPLES: u32 = 16;

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

impl Ported {
    /// The names of the laws that are ported.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FORMS.iter().map(|form| form.law)
    }

    /// The port of this law.
    ///
    /// # Errors
    /// There is none, or not with these parameters.
    pub fn new(law: &Law) -> Result<Self, Refusal> {
        let known = || Self::names().collect::<Vec<_>>().join(", ");
        let form = FORMS.iter().find(|form| form.law == law.name());
        let form = form.ok_or_else(|| Refusal::Law { law: law.name().to_owned(), known: known() })?;
        let own = law.parameters();
        // where the port has the versions of a law, their defaults are usual
        let variant = own.iter().find(|(key, _)| *key == "variant" && form.has(key));
        let usual =
            variant.map_or_else(|| law.name().to_owned(), |(_, value)| format!("{}:variant={value}", law.name()));
        let usual = usual.parse::<Law>().expect("a law's name is a law").parameters();
        let mut parameters = [0; PARAMETERS];
        for ((key, value), (_, usual)) in own.into_iter().zip(usual) {
            match form.numbers().enumerate().find(|(_, (name, _))| *name == key) {
                Some((at, own)) => parameters[at] = number(form.law, own, &value)?,
                None if value != usual && key != "blend" => {
                    return Err(Refusal::Fixed { law: form.law, key, usual, value });
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

    /// Whether a price weight means something to the law itself.
    pub fn takes_weight(&self) -> bool {
        match &self.law {
            Law::Cdg(_) => {
                // the port has no blend of Reno's growth and CUBIC's, which is what a weight makes of it
                let own = self.law.parameters();
                let is = |key: &str, value: &str| own.iter().any(|it| (it.0, it.1.as_str()) == (key, value));
                !(is("increase", "reno") && is("blend", "on"))
            }
            law => matches!(law, Law::Vegas(_) | Law::Eclipse(_) | Law::Dctcp(_) | Law::Prague(_) | Law::Tide(_)),
        }
    }

    /// Whether it needs ECN, and a receiver that echoes every mark.
    pub fn needs_ecn(&self) -> bool {
        self.law.ecn_use() != EcnUse::Off
    }

    /// Whether the law goes by the one-way delay, where there is one.
    pub fn takes_one_way_delay(&self) -> bool {
        matches!(self.law, Law::Eclipse(_) | Law::Ledbat(_))
    }

    /// What a program may set of them on a socket of its own, in the order of [`Ported::parameters`].
    pub fn settable(&self) -> Vec<Settable> {
        let described = self.law.describe();
        let settable = |(name, scale): Number| {
            let range = described.iter().find(|it| it.name == name).and_then(|it| it.range.as_ref());
            let end = |text: &String| number(self.law.name(), (name, scale), text).unwrap_or(scale.most());
            let (least, most) = range.map_or((0, scale.most()), |(least, most)| (end(least), end(most)));
            Settable { name, least, most, unit: scale.unit() }
        };
        self.form().numbers().map(settable).collect()
    }

    /// What the port reads: its parameters in the order of its structure in C.
    pub const fn parameters(&self) -> &[u32; PARAMETERS] {
        &self.parameters
    }

    /// How many of [`Ported::parameters`] the law has.
    pub(crate) fn count(&self) -> usize {
        self.form().numbers().count()
    }

    fn form(&self) -> &'static Form {
        FORMS.iter().find(|form| form.law == self.law.name()).expect("Ported::new has found it")
    }
}

/// The topmost bit: the rest is a part.
const PART: f64 = 2_147_483_648.0;

/// The port's number for what a law of this name prints of a parameter.
fn number(law: &'static str, (key, scale): Number, value: &str) -> Result<u32, Refusal> {
    const OWN: &str = "a law prints its own values";
    let real = |text| f64::read(text).expect(OWN);
    let seconds = || Duration::read(value).expect(OWN).as_secs_f64();
    let (mut unit, mut most) = (scale.unit() as f64, scale.most());
    let number = match scale {
        Scale::Q10 | Scale::Q16 | Scale::Q22 | Scale::Q32 => real(value),
        Scale::Milli => real(value).max(1e-3),
        Scale::Micros => seconds(),
        Scale::WholeOrOff if value == "off" => 0.0,
        Scale::Whole(_) | Scale::WholeOrOff => u32::read(value).expect(OWN).into(),
        Scale::Power(most) => {
            let whole = u32::read(value).expect(OWN);
            if !whole.is_power_of_two() {
                return Err(Refusal::Power { law, key, most, value: value.to_owned() });
            }
            whole.into()
        }
        Scale::Switch => u32::from(bool::read(value).expect(OWN)).into(),
        Scale::Word(words) => {
            let at = words.iter().position(|word| *word == value);
            let refusal = || Refusal::Word { law, key, words: words.join(", "), value: value.to_owned() };
            at.ok_or_else(refusal)? as f64
        }
        Scale::Overshoot => match value.strip_suffix('%') {
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
