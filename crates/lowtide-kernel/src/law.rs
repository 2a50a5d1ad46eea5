// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which control law the transfer's sockets run, and what Lowtide must know about it.

use std::{fmt, fs};

use lowtide_port::Ported;

use crate::{Error, Result};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Whether the kernel has a law of this name.
pub(crate) fn is_available(name: &str) -> bool {
    fs::read_to_string(AVAILABLE).unwrap_or_default().split_whitespace().any(|law| law == name)
}

/// Laws that pace by a model of the path and do not reduce their window on a congestion signal, or by a
/// measure of their own that a phantom signal does not enter.
const DEAF: [&str; 5] = ["bbr", "bbr2", "bbr3", "dctcp", "prague"];

/// The parameters of CDG for one transfer: those of Linux' `tcp_cdg`, but for `g0_ms` and `floor_ms`
/// (`docs/deviations.md`, 7 and 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CdgParameters {
    /// Gradients averaged: a power of two, 1 to 256. The papers' `window`.
    pub window: u32,
    /// G₀ in ms: the gradient whose hazard is 1/w − 1.
    pub g0_ms: f64,
    /// Queueing delay in ms, over the smallest round trip, that counts as an empty queue and thus as no price; at least
    /// 1/16 of the round trip unless it is 0, with which every gradient counts, as published.
    pub floor_ms: f64,
    /// Part of the window kept at a delay back-off, in 1/1024; √½ in the Linux module.
    pub beta_q10: u32,
    /// Keep a shadow window, which gives back what delay back-offs took when a loss comes. Off in LBE mode.
    pub use_shadow: bool,
    /// After so many back-offs that did not end the queue's growth, ignore further ones; 0 (LBE mode): never.
    pub use_ineff: u32,
    /// Ignore losses that come while the queue is not full. Off in LBE mode.
    pub use_tolerance: bool,
    /// Hybrid slow start: bit 1 the ACK train, bit 2 the delay.
    pub hystart: u32,
    /// The rules of the thesis on CDG in Linux instead of mainline's, where no other parameter names them.
    pub thesis: bool,
    /// How many back-offs are ignored after `use_ineff`; 0: all until the delay falls.
    pub hold: u32,
    /// Leave out samples of ACKs that were probably delayed.
    pub filter: bool,
    /// Extrapolate an average of fewer than `window` gradients; otherwise it is padded with zeros.
    pub extrapolate: bool,
    /// Prefer gradients that are not smoothed in slow start.
    pub unsmoothed: bool,
    /// Growth in congestion avoidance.
    pub increase: CdgIncrease,
}

/// How CDG's window grows in congestion avoidance; the numbers are those of `law/cdg.h` of lowtide-port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CdgIncrease {
    /// A segment per round trip, spread over its ACKs.
    Reno = 0,
    /// As CUBIC does.
    Cubic = 1,
    /// A segment at the end of a round (the thesis).
    Round = 2,
}

impl CdgIncrease {
    const ALL: [(&str, CdgIncrease); 3] =
        [("reno", CdgIncrease::Reno), ("cubic", CdgIncrease::Cubic), ("round", CdgIncrease::Round)];

    fn read(text: &str) -> Option<CdgIncrease> {
        CdgIncrease::ALL.iter().find(|(name, _)| *name == text).map(|(_, increase)| *increase)
    }

    fn name(self) -> &'static str {
        CdgIncrease::ALL[self as usize].0
    }
}

impl Default for CdgParameters {
    /// Mainline Linux in its LBE mode, without the ACK train: the sockets are paced, which would look like one.
    fn default() -> CdgParameters {
        CdgParameters {
            window: 8,
            g0_ms: 125.0,
            floor_ms: 2.0,
            beta_q10: 724,
            use_shadow: false,
            use_ineff: 0,
            use_tolerance: false,
            hystart: 2,
            thesis: false,
            hold: 0,
            filter: true,
            extrapolate: true,
            unsmoothed: false,
            increase: CdgIncrease::Reno,
        }
    }
}

impl CdgParameters {
    /// Their names in lowtide-cc.
    pub const KEYS: [&str; 14] = [
        "variant",
        "window",
        "g",
        "floor",
        "beta",
        "shadow",
        "ineff",
        "hold",
        "tolerance",
        "hystart",
        "filter",
        "extrapolate",
        "unsmoothed",
        "increase",
    ];

    /// As the CDG papers have it: G = 3 ms, and every gradient counts.
    pub fn published() -> CdgParameters {
        CdgParameters { g0_ms: 3.0, floor_ms: 0.0, ..CdgParameters::default() }
    }

    /// These, but for those of `text`: `key=value,key=value` with the names and values of `lowtide-cc`'s CDG.
    fn with(mut self, text: &str) -> Result<CdgParameters> {
        // the variant first: it decides the defaults of others
        let parts = || text.split(',').filter(|part| !part.is_empty());
        let variant = |part: &&str| part.starts_with("variant");
        for part in parts().filter(variant).chain(parts().filter(|part| !variant(part))) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            self.set(key, value).ok_or_else(|| {
                let keys = CdgParameters::KEYS.join(", ");
                let what = if CdgParameters::KEYS.contains(&key) { "has no such value" } else { "is no parameter" };
                Error::Law(format!(
                    "cdg:{part}: {key} {what} of Lowtide's CDG, which has {keys}; write it like cdg:window=16,g=3,floor=2ms,hystart=delay"
                ))
            })?;
        }
        Ok(self)
    }

    /// As the thesis has it, but for G and the floor, which the weight and the user have chosen.
    const fn of_the_thesis(self) -> CdgParameters {
        CdgParameters {
            thesis: true,
            beta_q10: 716,
            use_shadow: true,
            use_ineff: 5,
            hold: 5,
            hystart: 0,
            extrapolate: false,
            unsmoothed: true,
            increase: CdgIncrease::Round,
            ..self
        }
    }

    /// In the order of `struct cdg_parameters`. Our sockets are paced.
    pub(crate) fn values(&self) -> [u32; 15] {
        [
            self.thesis.into(),
            self.window,
            (self.g0_ms * 1000.0) as u32,
            (self.floor_ms * 1000.0) as u32,
            self.beta_q10,
            self.use_shadow.into(),
            self.use_ineff,
            self.hold,
            self.use_tolerance.into(),
            self.hystart,
            1,
            self.filter.into(),
            self.extrapolate.into(),
            self.unsmoothed.into(),
            self.increase as u32,
        ]
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        let number = || value.parse::<f64>().ok().filter(|number| number.is_finite());
        let switch = || ["off", "on"].iter().position(|it| *it == value).map(|at| at == 1);
        match key {
            "variant" => match value {
                "mainline" => self.thesis = false,
                "thesis" => *self = self.of_the_thesis(),
                _ => return None,
            },
            "window" => self.window = value.parse().ok().filter(|it: &u32| it.is_power_of_two() && *it <= 256)?,
            "g" => self.g0_ms = number().filter(|ms| (0.001..=4e6).contains(ms))?,
            "floor" => {
                let time = <std::time::Duration as lowtide_cc::Value>::read(value)?;
                self.floor_ms = Some(time.as_secs_f64() * 1e3).filter(|ms| *ms <= 1e3)?;
            }
            "beta" => self.beta_q10 = (number().filter(|part| (0.1..=1.0).contains(part))? * 1024.0).round() as u32,
            "shadow" => self.use_shadow = switch()?,
            "tolerance" => self.use_tolerance = switch()?,
            "ineff" if value == "off" => self.use_ineff = 0,
            "ineff" => self.use_ineff = value.parse().ok().filter(|number| (1..=1000).contains(number))?,
            "hold" => self.hold = value.parse().ok().filter(|number| *number <= 65_535)?,
            "filter" => self.filter = switch()?,
            "extrapolate" => self.extrapolate = switch()?,
            "unsmoothed" => self.unsmoothed = switch()?,
            "increase" => self.increase = CdgIncrease::read(value)?,
            "hystart" => self.hystart = ["off", "train", "delay", "on"].iter().position(|it| *it == value)? as u32,
            _ => return None,
        }
        Some(())
    }
}

/// A control law.
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// Lowtide's own CDG, which takes the weight as its hazard.
    Cdg(CdgParameters),
    /// Another law of Lowtide's own, a port of one of `lowtide-cc`.
    Own(Box<Ported>),
    /// A law of the kernel by its name, made submissive by phantom congestion signals.
    Kernel(String),
}

impl Law {
    /// Reads `cdg`, a law of ours with its parameters (`vegas:alpha_base=20`), or the name of a law registered in this
    /// kernel. Where both have a law of a name, `kernel:NAME` is the kernel's and `lt_NAME` ours; the plain one is
    /// ours, but for [`Law::KERNELS`].
    ///
    /// # Errors
    /// [`Error::DeafLaw`], [`Error::UnknownLaw`], or [`Error::Law`]: a parameter that our law does not take.
    pub fn parse(text: &str) -> Result<Law> {
        if let Some(cdg) = cdg(CdgParameters::default(), text)? {
            return Ok(cdg);
        }
        if let Some(ours) = ours(text) {
            let law: lowtide_cc::Law = ours.parse().map_err(|error| Error::Law(format!("{text}: {error}")))?;
            let ported = Ported::new(&law).map_err(|refusal| Error::Law(format!("{text}: {refusal}")))?;
            return Ok(Law::Own(Box::new(ported)));
        }
        let (asked, text) = (text, text.strip_prefix("kernel:").unwrap_or(text));
        if DEAF.contains(&text) {
            return Err(Error::DeafLaw { law: asked.to_owned() });
        }
        let available = fs::read_to_string(AVAILABLE).map_err(Error::system("reading the kernel's list of laws"))?;
        // lt_*: the laws of other runs, which end with them
        let usable: Vec<&str> =
            available.split_whitespace().filter(|law| !DEAF.contains(law) && !law.starts_with("lt_")).collect();
        if usable.contains(&text) {
            return Ok(Law::Kernel(text.to_owned()));
        }
        Err(Error::UnknownLaw { law: text.to_owned(), ours: Law::OWN.join(", "), others: usable.join(", ") })
    }

    /// The same for a law that nothing steers: CDG is [as published](CdgParameters::published) unless its parameters
    /// say otherwise.
    ///
    /// # Errors
    /// See [`Law::parse`].
    pub fn parse_published(text: &str) -> Result<Law> {
        match cdg(CdgParameters::published(), text)? {
            Some(cdg) => Ok(cdg),
            None => Law::parse(text),
        }
    }

    /// The names of Lowtide's own laws.
    pub const OWN: &[&str] = Ported::SPELLED;
    /// The names by which the kernel's law is meant where there is one of ours, too.
    pub const KERNELS: &[&str] = Ported::KERNELS;

    /// The name under which the kernel registers a law of ours for the whole machine, by the name that we have for it.
    pub fn registered(name: &str) -> String {
        format!("lt_{}", name.strip_prefix("lt_").unwrap_or(name))
    }

    /// The law's name as given on the command line.
    pub fn name(&self) -> &str {
        match self {
            Law::Cdg(cdg) if cdg.increase == CdgIncrease::Cubic => "cdg_cubic",
            Law::Cdg(_) => "cdg",
            Law::Own(ported) => ported.spelled(),
            Law::Kernel(name) => name,
        }
    }

    /// The name of its programs among ours.
    pub(crate) fn program(&self) -> &str {
        let name = if matches!(self, Law::Cdg(_)) { "cdg" } else { self.name() };
        name.strip_prefix("lt_").unwrap_or(name)
    }

    /// Whether it is Lowtide's own, which has to be loaded.
    pub fn is_ours(&self) -> bool {
        !matches!(self, Law::Kernel(_))
    }

    /// Whether all sockets of a transfer share one window under it. Under the others each stands for itself, with a
    /// part of the weight.
    pub fn has_one_window(&self) -> bool {
        matches!(self, Law::Cdg(_))
    }

    fn is_tide(&self) -> bool {
        matches!(self, Law::Own(ported) if matches!(ported.law(), lowtide_cc::Law::Tide(_)))
    }

    /// Whether its sockets on one path are one flow to it (`bpf/flows.h`), which has the weight of one.
    pub fn shares_a_flow(&self) -> bool {
        self.is_tide()
    }

    /// Whether a congestion signal lowers its window, whatever it finds on the link itself.
    pub fn answers_any_signal(&self) -> bool {
        !self.is_tide()
    }

    /// Whether the law itself knows the weight; the others get phantom signals.
    pub fn takes_weight(&self) -> bool {
        match self {
            Law::Cdg(_) => true,
            Law::Own(ported) => ported.takes_weight(),
            Law::Kernel(_) => false,
        }
    }

    /// Whether it needs ECN, and a peer that echoes every mark.
    pub fn needs_ecn(&self) -> bool {
        matches!(self, Law::Own(ported) if ported.needs_ecn())
    }

    /// Whether the law goes by one-way delays, where the receiver's timestamps tell them.
    pub fn takes_one_way_delay(&self) -> bool {
        matches!(self, Law::Own(ported) if ported.takes_one_way_delay())
    }

    /// Round trips that a flow takes to follow its weight, for windows of some tens of segments: CDG grows as Reno, by
    /// one segment in each; CUBIC in its Reno-friendly region by 0.53, and other laws of the kernel may be as slow.
    pub fn response_round_trips(&self) -> f64 {
        match self {
            Law::Cdg(_) | Law::Own(_) => 50.0,
            Law::Kernel(name) if name == "reno" => 50.0,
            Law::Kernel(_) => 120.0,
        }
    }

    /// α of rate ∝ price^(−1/α): with it n sockets share one flow's budget (`w·n^(−α)`), and the ceiling at w = 1 is
    /// foretold. CUBIC has 4/3, and Reno's 2 in its Reno-friendly region, which is where `loss` per packet exceeds
    /// 0.55·RTT³ (RTT in s): there the CUBIC model in Fig. 3 of the framework (`docs/deviations.md` has its title),
    /// with β = 0.7, meets Reno's window √(1.5/loss). CDG near w = 1 is Reno; what it is below does not matter for the
    /// ceiling, which is only spoken of near w = 1.
    pub fn exponent(&self, loss: Option<f64>, rtt_s: Option<f64>) -> f64 {
        const RENO: f64 = 2.0;
        let is_cubic = matches!(self.name(), "cubic" | "lt_cubic" | "bic");
        match (self, loss.zip(rtt_s)) {
            (_, Some((loss, rtt))) if is_cubic && loss < 0.55 * rtt * rtt * rtt => 4.0 / 3.0,
            (Law::Own(ported), _) => ported.exponent(),
            (Law::Kernel(name), _) if matches!(name.as_str(), "vegas" | "nv") => 1.0,
            _ => RENO,
        }
    }
}

/// CDG with what `text` says over these parameters, if it is CDG's; `cdg_cubic` is CDG with CUBIC's growth.
fn cdg(usual: CdgParameters, text: &str) -> Result<Option<Law>> {
    let cubic = CdgParameters { increase: CdgIncrease::Cubic, ..usual };
    let [plain, cubic] =
        [("cdg", usual), ("cdg_cubic", cubic)].map(|(name, usual)| Some((parameters_of(name, text)?, usual)));
    plain.or(cubic).map(|(parameters, usual)| usual.with(parameters).map(Law::Cdg)).transpose()
}

/// What stands after the law's name, if it is this one.
fn parameters_of<'a>(law: &str, text: &'a str) -> Option<&'a str> {
    let text = text.strip_prefix("lt_").unwrap_or(text);
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    (name == law).then_some(parameters)
}

/// The text of the reference, if one of ours but CDG is meant. Our sockets are paced, so Hybrid Slow Start must know.
fn ours(text: &str) -> Option<String> {
    let plain = text.strip_prefix("lt_");
    let name = plain.unwrap_or(text).split(':').next()?;
    if !Ported::names().any(|it| it == name) || plain.is_none() && Law::KERNELS.contains(&name) {
        return None;
    }
    let text = plain.unwrap_or(text);
    Some(match text.split_once(':') {
        _ if name != "cubic" || text.contains("paced=") => text.to_owned(),
        Some((_, parameters)) => format!("cubic:{parameters},paced=on"),
        None => "cubic:paced=on".to_owned(),
    })
}

impl fmt::Display for CdgParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switch = |on| if on { "on" } else { "off" };
        let ineff = if self.use_ineff == 0 { "off".to_owned() } else { self.use_ineff.to_string() };
        let hystart = ["off", "train", "delay", "on"][(self.hystart & 3) as usize];
        write!(
            f,
            "variant={},window={},g={},floor={}us,beta={:.3},shadow={},ineff={ineff},hold={},tolerance={},hystart={hystart},filter={},extrapolate={},unsmoothed={},increase={}",
            if self.thesis { "thesis" } else { "mainline" },
            self.window,
            self.g0_ms,
            (self.floor_ms * 1e3).round(),
            f64::from(self.beta_q10) / 1024.0,
            switch(self.use_shadow),
            self.hold,
            switch(self.use_tolerance),
            switch(self.filter),
            switch(self.extrapolate),
            switch(self.unsmoothed),
            self.increase.name(),
        )
    }
}

impl fmt::Display for Law {
    /// As it is written, with its parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Law::Own(ported) if self.name().starts_with("lt_") => write!(f, "lt_{}", ported.law()),
            Law::Own(ported) => ported.law().fmt(f),
            Law::Cdg(cdg) => write!(f, "{}:{cdg}", self.name()),
            law => f.write_str(law.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_that_ignore_signals_are_refused() {
        for law in DEAF {
            let error = Law::parse(&format!("kernel:{law}")).unwrap_err().to_string();
            assert!(error.contains(law) && error.contains("take tide"), "{error}");
        }
    }

    #[test]
    fn parameters_of_cdg_are_read_and_printed() {
        let Law::Cdg(cdg) = Law::parse_published("cdg:window=16,ineff=5,hystart=off,floor=1500us").unwrap() else {
            panic!("it is CDG")
        };
        assert_eq!((cdg.window, cdg.use_ineff, cdg.hystart, cdg.g0_ms, cdg.floor_ms), (16, 5, 0, 3.0, 1.5));
        let printed = Law::Cdg(cdg).to_string();
        assert!(matches!(Law::parse(&printed).unwrap(), Law::Cdg(read) if read == cdg), "{printed}");
        assert_eq!(Law::parse("cdg").unwrap(), Law::Cdg(CdgParameters::default()));
        for text in ["cdg:variant=thesis,beta=0.5", "cdg:beta=0.5,variant=thesis"] {
            let Law::Cdg(thesis) = Law::parse(text).unwrap() else { panic!("it is CDG") };
            assert_eq!((thesis.thesis, thesis.beta_q10, thesis.hold, thesis.g0_ms), (true, 512, 5, 125.0));
            assert_eq!(Law::parse(&Law::Cdg(thesis).to_string()).unwrap(), Law::Cdg(thesis));
        }
        let cubic = Law::parse("cdg_cubic").unwrap();
        assert_eq!((cubic.name(), cubic.program()), ("cdg_cubic", "cdg"));
        assert_eq!(cubic, Law::parse("cdg:increase=cubic").unwrap());
        assert_eq!(cubic, Law::parse(&cubic.to_string()).unwrap());
        for (text, part) in [
            ("cdg:variant=freebsd", "variant has no such value"),
            ("cdg_cubic:increase=alpha_inc", "increase has no such value"),
            ("cdg:hold=70000", "hold has no such value"),
            ("cdg:window=6", "window has no such value"),
            ("cdg:gg=6", "gg is no parameter"),
            ("cdg:beta=2", "beta has no such value"),
            ("cdg:shadow", "shadow has no such value"),
            ("vegas:alpha=-1", "alpha"),
        ] {
            let sentence = Law::parse(text).unwrap_err().to_string();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }

    #[test]
    fn cubic_is_the_kernels_and_lt_cubic_ours() {
        assert_eq!(Law::parse("cubic").unwrap(), Law::Kernel("cubic".into()));
        assert_eq!(Law::parse("kernel:cubic").unwrap(), Law::Kernel("cubic".into()));
        for (text, printed) in [
            ("lt_cubic", "lt_cubic:paced=on"),
            ("lt_cubic:beta=0.8,variant=linux", "lt_cubic:variant=linux,beta=0.8,paced=on"),
            ("lt_cubic:paced=off", "lt_cubic"),
        ] {
            let law = Law::parse(text).unwrap();
            assert!(law.is_ours() && !law.takes_weight(), "{text}");
            assert_eq!((law.name(), law.to_string().as_str()), ("lt_cubic", printed));
        }
        assert_eq!(Law::parse("lt_vegas").unwrap(), Law::parse("vegas").unwrap());
        assert_eq!(Law::parse("lt_cdg").unwrap(), Law::parse("cdg").unwrap());
        for (text, part) in [
            ("lt_cubic:beta=1.2", "beta"),
            ("lt_cubic:hystart=plus", "off, train, delay, on"),
            ("lt_cubic:low_window=70000", "up to 65535"),
            ("lt_qubic", "not registered"),
        ] {
            let sentence = Law::parse(text).unwrap_err().to_string();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }

    #[test]
    fn an_unknown_law_names_what_there_is() {
        let error = Law::parse("qubic").unwrap_err().to_string();
        assert!(error.contains("qubic") && error.contains("reno"), "{error}");
    }

    #[test]
    fn cubic_is_reno_where_the_window_is_small() {
        let cubic = Law::Kernel("cubic".into());
        // 20 Mbit/s and 40 ms: about one loss in 5000 packets, against 0.55·0.06³ = 1.2e-4
        assert_eq!(cubic.exponent(Some(2e-4), Some(0.06)), 2.0);
        assert_eq!(cubic.exponent(Some(1e-5), Some(0.06)), 4.0 / 3.0);
        assert_eq!(cubic.exponent(None, None), 2.0);
    }
}
