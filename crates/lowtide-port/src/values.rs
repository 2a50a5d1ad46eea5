// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of each law in a trace, in the order in which its `X_inspect` writes them (`law/*.h`).

use Scale::{Chance, Number, Switch, Word};

/// A value of a law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// Its name.
    pub name: &'static str,
    /// Its unit, empty where it has none.
    pub unit: &'static str,
    /// What it is.
    pub about: &'static str,
    /// How the program writes it.
    pub scale: Scale,
}

/// How a program writes a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// In units of this.
    Number(f64),
    /// As a hazard in units of 2⁻¹⁶, which is shown as the probability 1 − e⁻ʰ.
    Chance,
    /// 0 or 1.
    Switch,
    /// As the place among these words.
    Word(&'static [&'static str]),
}

/// A value as people see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shown {
    /// There is none yet.
    Nothing,
    /// In its unit.
    Number(f64),
    /// On or off.
    Switch(bool),
    /// One of a few words.
    Word(&'static str),
}

/// `LAW_NO_VALUE` of `law/law.h`.
const NO_VALUE: i64 = i64::MIN;

impl Value {
    /// What the program wrote, as people see it.
    pub fn show(&self, written: i64) -> Shown {
        match self.scale {
            _ if written == NO_VALUE => Shown::Nothing,
            Number(unit) => Shown::Number(written as f64 * unit),
            Chance => Shown::Number(-libm::expm1(-(written as f64) / 65_536.0)),
            Switch => Shown::Switch(written != 0),
            Word(words) => {
                usize::try_from(written).ok().and_then(|at| words.get(at)).map_or(Shown::Nothing, |it| Shown::Word(it))
            }
        }
    }
}

const Q8: f64 = 1.0 / 256.0;
const Q16: f64 = 1.0 / 65_536.0;
const Q20: f64 = 1.0 / 1_048_576.0;
const Q24: f64 = 1.0 / 16_777_216.0;
const Q30: f64 = 1.0 / 1_073_741_824.0;
const Q32: f64 = 1.0 / 4_294_967_296.0;

const fn value(name: &'static str, unit: &'static str, scale: Scale, about: &'static str) -> Value {
    Value { name, unit, about, scale }
}

const BASE: Value = value("base_us", "µs", Number(1.0), "least round trip of the connection");
const QUEUING: Value = value("queuing_us", "µs", Number(1.0), "current delay over the base delay");
const TARGET: Value = value("target_us", "µs", Number(1.0), "TARGET, which the queueing delay is led to");
const ALPHA: Value =
    value("alpha", "", Number(Q30), "marked part of the segments, averaged; a weight's price included");
const A: Value = value("acceleration", "", Number(Q16), "a: the increase is multiplied by it");
const C: Value = value("rounds", "round trips", Number(1.0), "C: since the latest reaction");
const IA: Value = value("usual_increments", "segments", Number(Q24), "Ia: increments between reactions, averaged");
const OVERLOADED: Value = value("overloaded", "", Switch, "this round began with an overload's reduction");
const USUAL: Value =
    value("usual_delay_us", "µs", Number(Q16), "usual greatest delay of a cycle, which an overload exceeds by Q");

const CDG: &[Value] = &[
    value("gradient_min_us", "µs", Number(Q16), "gradient of the rounds' least round trips, mean over the window"),
    value("gradient_max_us", "µs", Number(Q16), "gradient of the rounds' greatest round trips, mean over the window"),
    value("backoff_probability", "", Chance, "with which the latest round backed off"),
    BASE,
    value("shadow", "segments", Number(Q16), "shadow window"),
    value("queue", "", Word(&["unknown", "nonfull", "full", "backoff"]), "what CDG takes the queue for"),
    value("ineffectual", "", Number(1.0), "back-offs since the gradient last fell"),
];
const CUBIC: &[Value] = &[
    BASE,
    value("w_max", "segments", Number(Q16), "window at the latest reduction, where congestion is expected"),
    value("k", "s", Number(Q20), "time from the reduction until the window is there again"),
    value("w_est", "segments", Number(Q24), "what Reno's window would be"),
];
const VEGAS: &[Value] = &[
    BASE,
    value("diff", "segments", Number(1.0), "in the queue, as of the latest decision"),
    value("alpha", "segments", Number(Q16), "alpha in force, which follows the weight"),
    value("enabled", "", Switch, "off from a loss until its recovery"),
];
const ECLIPSE: &[Value] = &[
    value("delay_us", "µs", Number(Q8), "latest delay over the first one"),
    value("s_min_us", "µs", Number(Q8), "smoothed least delay over the first one"),
    value("s_max_us", "µs", Number(Q8), "smoothed greatest delay over the first one"),
    value("delta_us", "µs", Number(Q8), "delay over s_min that is aimed at; none: no bound"),
    value("mu_us", "µs", Number(Q16), "adaptation interval"),
    value("draining", "", Switch, "held at the least window, so that the queue drains"),
];
const LEDBAT: &[Value] =
    &[value("base_us", "µs", Number(1.0), "base delay; one-way delays have an unknown origin"), QUEUING, TARGET];
const LEDBATPP: &[Value] = &[
    value("base_us", "µs", Number(1.0), "base delay"),
    QUEUING,
    TARGET,
    value("divisor", "", Number(1.0), "GAIN is one over it"),
    value("phase", "", Word(&["initial", "steady", "held", "ramp"]), "where it is between slowdowns"),
];
const DCTCP: &[Value] = &[ALPHA, A, C, IA, OVERLOADED, USUAL];
const PRAGUE: &[Value] = &[
    ALPHA,
    A,
    C,
    IA,
    OVERLOADED,
    USUAL,
    value("rate", "segments/s", Number(Q16), "where it steers by rate"),
    value("increase", "segments", Number(Q24), "additive increase per round trip, before acceleration"),
];
const TIDE: &[Value] = &[
    value("base_us", "µs", Number(Q8), "empty round trip"),
    value("noise_us", "µs", Number(Q8), "how much round trips differ without a queue"),
    value("own_queue_us", "µs", Number(Q8), "queue that it keeps itself at the most"),
    value("rate", "segments/µs", Number(Q32), "of the link"),
    value("safe", "segments", Number(Q16), "window up to which it grows fast"),
    value("growth", "", Number(Q16), "per segment acknowledged; none: it listens"),
    value("queue_us", "µs", Number(Q8), "that it sees"),
    value("share", "segments", Number(Q16), "that its weight allows beside others"),
];
const KERNEL: &[Value] = &[
    value("signal_chance", "", Number(Q32), "of a phantom signal per segment while congestion is recent"),
    value("loss_interval_us", "µs", Number(1e-3), "between signals of the network, averaged"),
    value("since_loss_us", "µs", Number(1e-3), "since the network's latest signal"),
];

/// The values of a law of ours, by its name; of another name those that phantom signals have on a law of the kernel.
pub fn values(law: &str, ours: bool) -> &'static [Value] {
    match law {
        _ if !ours => KERNEL,
        "cdg" | "cdg_cubic" => CDG,
        "cubic" | "lt_cubic" => CUBIC,
        "vegas" => VEGAS,
        "eclipse" => ECLIPSE,
        "ledbat" => LEDBAT,
        "ledbatpp" => LEDBATPP,
        "dctcp" => DCTCP,
        "prague" => PRAGUE,
        "tide" => TIDE,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ported;
    use std::collections::BTreeSet;

    #[test]
    fn every_law_of_ours_has_values_with_names_of_their_own() {
        for law in Ported::names() {
            let values = values(law, true);
            let names: BTreeSet<_> = values.iter().map(|value| value.name).collect();
            assert!((3..=8).contains(&values.len()) && names.len() == values.len(), "{law}: {names:?}");
        }
    }

    #[test]
    fn values_are_shown_in_their_units() {
        let of = |law, name| *values(law, true).iter().find(|value| value.name == name).unwrap();
        assert_eq!(of("vegas", "alpha").show(3 << 15), Shown::Number(1.5));
        assert_eq!(of("cdg", "base_us").show(NO_VALUE), Shown::Nothing);
        assert_eq!(of("cdg", "queue").show(3), Shown::Word("backoff"));
        assert_eq!(of("cdg", "queue").show(9), Shown::Nothing);
        assert_eq!(of("eclipse", "draining").show(1), Shown::Switch(true));
        let Shown::Number(chance) = of("cdg", "backoff_probability").show(65_536) else { panic!("a number") };
        assert!((chance - 0.632).abs() < 1e-3, "{chance}");
        assert_eq!(values("cubic", false)[1].show(2_500_000), Shown::Number(2500.0));
    }

    #[test]
    fn the_documentation_has_every_value() {
        let page = include_str!("../../../docs/tracing.md");
        let of_laws = Ported::names().flat_map(|law| values(law, true)).chain(values("cubic", false));
        for Value { name, unit, about, .. } in of_laws {
            let row = format!("| `{name}` | {unit} | {about}");
            assert!(page.contains(&row), "{row}");
        }
    }
}
