// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of the laws in C. What has to know of every law follows from it: the headers that build.rs writes, from
//! which the BPF programs have the laws' states and registrations, and this crate their functions; the parameters as
//! numbers; the names on the command line; the values in a trace. This file stands alone, as build.rs includes it.

use Scale::{Chance, Number, Switch, Word};

/// A law in C.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its name; that of its reference, too.
    pub(crate) name: &'static str,
    /// How the names of its functions and structures begin, and that of its header.
    pub(crate) prefix: &'static str,
    /// The names by which the command line means it; where the kernel has a law of its name, that is meant by the plain
    /// one.
    pub(crate) spelled: &'static [&'static str],
    pub(crate) hooks: Hooks,
    /// Whether a price weight means something to the law itself.
    pub(crate) takes_weight: bool,
    /// Whether it goes by the one-way delay, where there is one.
    pub(crate) takes_one_way_delay: bool,
    /// α of rate ∝ price^(−1/α).
    pub(crate) exponent: f64,
    /// Its parameters in the order of `struct PREFIX_parameters`, group by group. Those of the reference that are not
    /// there have to be as they are by default.
    pub(crate) parameters: &'static [&'static [Parameter]],
    /// Its values in a trace, in the order in which `PREFIX_inspect` writes them.
    pub(crate) values: &'static [Value],
}

/// When a law is called, as the head of `law/law.h` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// For ACKs outside of reduction episodes, and for reductions.
    Window,
    /// The same, and for timeouts.
    Timeouts,
    /// In reduction episodes too, with the marks of ECN.
    Marks,
    /// Its reductions are episodes of the stack's; a file of its own connects it to the kernel.
    Episodes,
    /// As for marks, and it paces itself; a file of its own connects it to the kernel.
    Paced,
}

/// A parameter's name and how it becomes a number.
pub(crate) type Parameter = (&'static str, Form);

/// How a parameter of the reference becomes a number in C.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
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

/// All laws, in the order in which they are listed.
pub(crate) const LAWS: &[Entry] = &[
    Entry {
        name: "cdg",
        prefix: "cdg_flow",
        spelled: &["cdg", "cdg_cubic"],
        hooks: Hooks::Episodes,
        takes_weight: true,
        takes_one_way_delay: false,
        exponent: RENO,
        parameters: &[&[
            ("variant", Form::Word(&["mainline", "thesis"])),
            ("window", Form::Power(256)),
            ("g", Form::Milli),
            ("floor", Form::Micros),
            ("beta", Form::Q10),
            ("shadow", Form::Switch),
            ("ineff", Form::WholeOrOff),
            ("hold", Form::Whole(u32::MAX)),
            ("tolerance", Form::Switch),
            ("hystart", HYSTART),
            ("paced", Form::Switch),
            ("filter", Form::Switch),
            ("extrapolate", Form::Switch),
            ("unsmoothed", Form::Switch),
            ("increase", Form::Word(&["reno", "cubic", "round"])),
        ]],
        values: &[
            value(
                "gradient_min_us",
                "µs",
                Number(Q16),
                "gradient of the rounds' least round trips, mean over the window",
            ),
            value(
                "gradient_max_us",
                "µs",
                Number(Q16),
                "gradient of the rounds' greatest round trips, mean over the window",
            ),
            value("backoff_probability", "", Chance, "with which the latest round backed off"),
            BASE,
            value("shadow", "segments", Number(Q16), "shadow window"),
            value("queue", "", Word(&["unknown", "nonfull", "full", "backoff"]), "what CDG takes the queue for"),
            value("ineffectual", "", Number(1.0), "back-offs since the gradient last fell"),
        ],
    },
    Entry {
        name: "vegas",
        prefix: "vegas",
        spelled: &["vegas"],
        hooks: Hooks::Window,
        takes_weight: true,
        takes_one_way_delay: false,
        exponent: 1.0,
        parameters: &[&[
            ("alpha", Form::Q16),
            ("beta", Form::Q16),
            ("gamma", Form::Q16),
            ("backoff", Form::Q16),
            ("alpha_base", Form::Q16),
            ("alpha_max", Form::Q16),
            ("gap", Form::Q16),
        ]],
        values: &[
            BASE,
            value("diff", "segments", Number(1.0), "in the queue, as of the latest decision"),
            value("alpha", "segments", Number(Q16), "alpha in force, which follows the weight"),
            value("enabled", "", Switch, "off from a loss until its recovery"),
        ],
    },
    Entry {
        name: "eclipse",
        prefix: "eclipse",
        spelled: &["eclipse"],
        hooks: Hooks::Window,
        takes_weight: true,
        takes_one_way_delay: true,
        exponent: RENO,
        parameters: &[&[
            ("beta", Form::Q32),
            ("alpha", Form::Q16),
            ("cwnd_min", Form::Q16),
            ("mu", Form::Word(&["adaptive", "literal", "fixed"])),
            ("mu_initial", Form::Micros),
            ("mu_min", Form::Micros),
            ("mu_rtts", Form::Q16),
            ("mu_max", Form::Micros),
            ("stable", Form::Micros),
            ("delta_min", Form::Micros),
            ("delta_floor", Form::Q16),
            ("guard", Form::Switch),
            ("drain", Form::Micros),
            ("drain_rtts", Form::Q16),
            ("slow_start", Form::Word(&["delay", "loss"])),
            ("beta_loss", Form::Q16),
        ]],
        values: &[
            value("delay_us", "µs", Number(Q8), "latest delay over the first one"),
            value("s_min_us", "µs", Number(Q8), "smoothed least delay over the first one"),
            value("s_max_us", "µs", Number(Q8), "smoothed greatest delay over the first one"),
            value("delta_us", "µs", Number(Q8), "delay over s_min that is aimed at; none: no bound"),
            value("mu_us", "µs", Number(Q16), "adaptation interval"),
            value("draining", "", Switch, "held at the least window, so that the queue drains"),
        ],
    },
    Entry {
        name: "ledbat",
        prefix: "ledbat",
        spelled: &["ledbat"],
        hooks: Hooks::Window,
        takes_weight: false,
        takes_one_way_delay: true,
        exponent: RENO,
        parameters: &[&[
            ("target", Form::Micros),
            ("gain", Form::Q16),
            ("allowed_increase", Form::Q16),
            ("min_cwnd", Form::Q16),
            ("init_cwnd", Form::Q16),
            ("base_history", Form::Whole(BASE_MINUTES)),
            ("current_filter", Form::Whole(CURRENT_SAMPLES)),
            ("beta", Form::Q16),
            ("slow_start", Form::Switch),
        ]],
        values: &[
            value("base_us", "µs", Number(1.0), "base delay; one-way delays have an unknown origin"),
            QUEUING,
            TARGET,
        ],
    },
    Entry {
        name: "ledbatpp",
        prefix: "ledbatpp",
        spelled: &["ledbatpp"],
        hooks: Hooks::Window,
        takes_weight: false,
        takes_one_way_delay: false,
        exponent: RENO,
        parameters: &[&[
            ("target", Form::Micros),
            ("max_divisor", Form::Whole(u32::MAX)),
            ("constant", Form::Q16),
            ("slow_start_exit", Form::Q16),
            ("slowdown", Form::Switch),
            ("slowdown_delay", Form::Q16),
            ("slowdown_hold", Form::Q16),
            ("slowdown_interval", Form::Q16),
            ("min_cwnd", Form::Q16),
            ("init_cwnd", Form::Q16),
            ("base_history", Form::Whole(BASE_MINUTES)),
            ("current_filter", Form::Whole(CURRENT_SAMPLES)),
            ("beta", Form::Q16),
        ]],
        values: &[
            value("base_us", "µs", Number(1.0), "base delay"),
            QUEUING,
            TARGET,
            value("divisor", "", Number(1.0), "GAIN is one over it"),
            value("phase", "", Word(&["initial", "steady", "held", "ramp"]), "where it is between slowdowns"),
        ],
    },
    Entry {
        name: "cubic",
        prefix: "cubic",
        spelled: &["lt_cubic"],
        hooks: Hooks::Timeouts,
        takes_weight: false,
        takes_one_way_delay: false,
        exponent: RENO, // at small windows; at large ones 4/3 (lowtide-kernel knows the path)
        parameters: &[&[
            ("variant", Form::Word(&["rfc9438", "linux", "2008"])),
            ("beta", Form::Q32),
            ("c", Form::Q22),
            ("fast_convergence", Form::Switch),
            ("reno_friendly", Form::Switch),
            ("whole_segments", Form::Switch),
            ("hystart", HYSTART),
            ("low_window", Form::Q16),
            ("paced", Form::Switch),
        ]],
        values: &[
            BASE,
            value("w_max", "segments", Number(Q16), "window at the latest reduction, where congestion is expected"),
            value("k", "s", Number(Q20), "time from the reduction until the window is there again"),
            value("w_est", "segments", Number(Q24), "what Reno's window would be"),
        ],
    },
    Entry {
        name: "dctcp",
        prefix: "dctcp",
        spelled: &["dctcp"],
        hooks: Hooks::Marks,
        takes_weight: true,
        takes_one_way_delay: false,
        exponent: 1.0, // a number of marks per round trip
        parameters: &[
            &[("gain", Form::Q16), ("alpha", Form::Q16), ("beta", Form::Q16), ("cwr_increase", Form::Switch)],
            TRANSIENTS,
        ],
        values: &[ALPHA, A, C, IA, OVERLOADED, USUAL],
    },
    Entry {
        name: "prague",
        prefix: "prague",
        spelled: &["prague"],
        hooks: Hooks::Marks,
        takes_weight: true,
        takes_one_way_delay: false,
        exponent: 1.0, // likewise
        parameters: &[
            &[
                ("variant", Form::Word(&["v0.6", "v0.7"])),
                ("gain", Form::Q16),
                ("alpha_mode", Form::Word(&["halve", "one"])),
                ("beta", Form::Q16),
                ("mode", Form::Word(&["none", "rate", "scalable", "additive"])),
                ("target", Form::Micros),
                ("transition", Form::Whole(u32::MAX)),
                ("max_rtt", Form::Micros),
                ("cwnd_mode", Form::Word(&["window", "rate", "switch"])),
                ("cwnd_transit", Form::Q16),
                ("min_rate", Form::Milli),
            ],
            TRANSIENTS,
        ],
        values: &[
            ALPHA,
            A,
            C,
            IA,
            OVERLOADED,
            USUAL,
            value("rate", "segments/s", Number(Q16), "where it steers by rate"),
            value("increase", "segments", Number(Q24), "additive increase per round trip, before acceleration"),
        ],
    },
    Entry {
        name: "tide",
        prefix: "tide",
        spelled: &["tide"],
        hooks: Hooks::Paced,
        takes_weight: true,
        takes_one_way_delay: false,
        exponent: 1.0, // as its share has it
        parameters: &[&[("probe_share", Form::Q32), ("probe_rate", Form::Milli), ("drain", Form::Micros)]],
        values: &[
            value("base_us", "µs", Number(Q8), "base RTT"),
            value("noise_us", "µs", Number(Q8), "how much round trips differ without a queue"),
            value("own_queue_us", "µs", Number(Q8), "queue that it keeps itself at the most"),
            value("rate", "segments/µs", Number(Q32), "of the link"),
            value("safe", "segments", Number(Q16), "window up to which it grows fast"),
            value("growth", "", Number(Q16), "per segment acknowledged; none: it listens"),
            value("queue_us", "µs", Number(Q8), "that it sees"),
            value("share", "segments", Number(Q16), "that its weight allows beside others"),
        ],
    },
];

/// The exponent of a law that answers losses as Reno does.
const RENO: f64 = 2.0;

/// Of a law with acceleration and overload mode, behind its own: `struct transients_parameters`.
const TRANSIENTS: &[Parameter] = &[
    ("accel", Form::Switch),
    ("accel_q", Form::Overshoot),
    ("accel_gain", Form::Q16),
    ("accel_cycles", Form::Whole(u32::MAX)),
    ("accel_literal", Form::Switch),
    ("overload", Form::Switch),
    ("overload_q", Form::Overshoot),
    ("overload_gain", Form::Q16),
    ("overload_aqm", Form::Micros),
    ("overload_base", Form::Micros),
    ("overload_rounds", Form::Word(&["fresh", "every"])),
];
const HYSTART: Form = Form::Word(&["off", "train", "delay", "on"]);

/// As many as `delay.h` remembers.
const BASE_MINUTES: u32 = 32;
/// As many as it filters.
const CURRENT_SAMPLES: u32 = 16;

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

/// The values of phantom signals on a law of the kernel.
pub(crate) const PHANTOM_SIGNALS: &[Value] = &[
    value("signal_chance", "", Number(Q32), "of a phantom signal per segment while congestion is recent"),
    value("loss_interval_us", "µs", Number(1e-3), "between signals of the network, averaged"),
    value("since_loss_us", "µs", Number(1e-3), "since the network's latest signal"),
];
