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

/// CDG where a weight may steer it: a G₀ and a floor of its own (`docs/deviations.md`, 7 and 1).
const STEERED: [&str; 2] = ["g=125", "floor=2ms"];
/// CDG as its papers have it: every gradient counts.
const PUBLISHED: [&str; 2] = ["g=3", "floor=0s"];

/// A control law of the kernel: one of ours that is loaded there, or one of its own.
#[derive(Debug, Clone, PartialEq)]
pub enum KernelLaw {
    /// One of Lowtide's own, a port of one of `lowtide-cc`.
    Own(Box<Ported>),
    /// A law of the kernel by its name, made submissive by phantom congestion signals.
    Kernel(String),
}

impl KernelLaw {
    /// Reads a law of ours with its parameters (`vegas:alpha_base=20`), or the name of a law registered in this kernel.
    /// Where both have a law of a name, `kernel:NAME` is the kernel's and `lt_NAME` ours; the plain one is ours, but
    /// for [`KernelLaw::KERNELS`].
    ///
    /// # Errors
    /// [`Error::DeafLaw`], [`Error::UnknownLaw`], or [`Error::LawText`] and [`Error::NotPorted`]: parameters that our
    /// law does not take.
    pub fn parse(text: &str) -> Result<KernelLaw> {
        KernelLaw::read(text, STEERED)
    }

    /// The same for a law that nothing steers: CDG is as published unless its parameters say otherwise.
    ///
    /// # Errors
    /// See [`KernelLaw::parse`].
    pub fn parse_published(text: &str) -> Result<KernelLaw> {
        KernelLaw::read(text, PUBLISHED)
    }

    fn read(text: &str, cdg: [&str; 2]) -> Result<KernelLaw> {
        if let Some(ours) = ours(text, cdg) {
            let law: lowtide_cc::Law =
                ours.parse().map_err(|reason| Error::LawText { text: text.to_owned(), reason })?;
            let ported = Ported::new(&law).map_err(|refusal| Error::NotPorted { text: text.to_owned(), refusal })?;
            return Ok(KernelLaw::Own(Box::new(ported)));
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
            return Ok(KernelLaw::Kernel(text.to_owned()));
        }
        Err(Error::UnknownLaw { law: text.to_owned(), ours: KernelLaw::OWN.join(", "), others: usable.join(", ") })
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
            KernelLaw::Own(ported) => ported.spelled(),
            KernelLaw::Kernel(name) => name,
        }
    }

    /// The name of its programs among ours.
    pub(crate) fn program(&self) -> &str {
        match self {
            KernelLaw::Own(ported) => ported.law().name(),
            KernelLaw::Kernel(name) => name,
        }
    }

    /// Whether it is Lowtide's own, which has to be loaded.
    pub fn is_ours(&self) -> bool {
        !matches!(self, KernelLaw::Kernel(_))
    }

    /// Whether all sockets of a transfer share one window under it. Under the others each stands for itself, with a
    /// part of the weight.
    pub fn has_one_window(&self) -> bool {
        matches!(self, KernelLaw::Own(ported) if matches!(ported.law(), lowtide_cc::Law::Cdg(_)))
    }

    fn is_tide(&self) -> bool {
        matches!(self, KernelLaw::Own(ported) if matches!(ported.law(), lowtide_cc::Law::Tide(_)))
    }

    /// Whether its sockets on one path are one flow to it (`bpf/flows.h`), which has the weight of one.
    pub fn shares_a_flow(&self) -> bool {
        self.is_tide()
    }

    /// Whether it governs what is received, too.
    pub fn governs_downloads(&self) -> bool {
        matches!(self, KernelLaw::Own(ported) if ported.governs_downloads())
    }

    /// The place of a law of ours among them, as the programs for downloads know it.
    pub(crate) fn number(&self) -> u32 {
        match self {
            KernelLaw::Own(ported) => ported.number(),
            KernelLaw::Kernel(_) => 0,
        }
    }

    /// Whether a congestion signal lowers its window, whatever it finds on the link itself.
    pub fn answers_any_signal(&self) -> bool {
        !self.is_tide()
    }

    /// Whether the law itself knows the weight; the others get phantom signals.
    pub fn takes_weight(&self) -> bool {
        matches!(self, KernelLaw::Own(ported) if ported.takes_weight())
    }

    /// Whether it needs ECN, and a peer that echoes every mark.
    pub fn needs_ecn(&self) -> bool {
        matches!(self, KernelLaw::Own(ported) if ported.needs_ecn())
    }

    /// Whether the law goes by one-way delays, where the receiver's timestamps tell them.
    pub fn takes_one_way_delay(&self) -> bool {
        matches!(self, KernelLaw::Own(ported) if ported.takes_one_way_delay())
    }

    /// Round trips that a flow takes to follow its weight, for windows of some tens of segments: CDG grows as Reno, by
    /// one segment in each; CUBIC in its Reno-friendly region by 0.53, and other laws of the kernel may be as slow.
    pub fn response_round_trips(&self) -> f64 {
        match self {
            KernelLaw::Own(_) => 50.0,
            KernelLaw::Kernel(name) if name == "reno" => 50.0,
            KernelLaw::Kernel(_) => 120.0,
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
            (KernelLaw::Own(ported), _) => ported.exponent(),
            (KernelLaw::Kernel(name), _) if matches!(name.as_str(), "vegas" | "nv") => 1.0,
            _ => RENO,
        }
    }
}

/// The text of the reference, if one of ours is meant: what is not said of it is usual in the kernel. Our sockets are
/// paced, so Hybrid Slow Start must know, and CDG's takes no train of ACKs for one. `cdg` is the usual CDG's G and
/// floor, and `cdg_cubic` CDG with CUBIC's growth.
fn ours(text: &str, cdg: [&str; 2]) -> Option<String> {
    let plain = text.strip_prefix("lt_");
    let (name, parameters) = plain.unwrap_or(text).split_once(':').unwrap_or((plain.unwrap_or(text), ""));
    let given: Vec<&str> = parameters.split(',').filter(|_| !parameters.is_empty()).collect();
    let (name, usual) = match name {
        "cdg" | "cdg_cubic" => {
            // the kernel's CDG blends no growth, and the thesis has no Hybrid Slow Start
            let hystart = (!given.contains(&"variant=thesis")).then_some("hystart=delay");
            let cubic = (name == "cdg_cubic").then_some("increase=cubic");
            let usual = cdg.into_iter().chain(["paced=on", "blend=off"]).chain(hystart).chain(cubic);
            ("cdg", usual.collect())
        }
        "cubic" if plain.is_some() => (name, vec!["paced=on"]),
        _ if Ported::names().any(|it| it == name) && !KernelLaw::KERNELS.contains(&name) => (name, Vec::new()),
        _ => return None,
    };
    let unsaid = usual.into_iter().filter(|part| given.iter().all(|it| key(it) != key(part)));
    let all: Vec<&str> = given.iter().copied().chain(unsaid).collect();
    Some(if all.is_empty() { name.to_owned() } else { format!("{name}:{}", all.join(",")) })
}

/// Of `key=value`.
fn key(part: &str) -> &str {
    part.split_once('=').map_or(part, |(key, _)| key)
}

impl fmt::Display for KernelLaw {
    /// As it is written, with the parameters in which it differs from the reference (docs/laws.md).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelLaw::Own(ported) => {
                let (text, name) = (ported.law().to_string(), ported.law().name());
                write!(f, "{}{}", self.name(), text.strip_prefix(name).unwrap_or(&text))
            }
            KernelLaw::Kernel(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_that_ignore_signals_are_refused() {
        for law in DEAF {
            let error = KernelLaw::parse(&format!("kernel:{law}")).unwrap_err().to_string();
            assert!(error.contains(law) && error.contains("take tide"), "{error}");
        }
    }

    #[test]
    fn cdg_has_usual_parameters_of_its_own_here() {
        for (text, reference) in [
            ("cdg", "cdg:g=125,floor=2ms,hystart=delay,paced=on,blend=off"),
            (
                "cdg:window=16,ineff=5,hystart=off",
                "cdg:g=125,floor=2ms,window=16,ineff=5,hystart=off,paced=on,blend=off",
            ),
            ("cdg:variant=thesis,beta=0.5", "cdg:variant=thesis,g=125,floor=2ms,beta=0.5,paced=on,blend=off"),
            ("cdg_cubic", "cdg:g=125,floor=2ms,hystart=delay,paced=on,blend=off,increase=cubic"),
            ("cdg_cubic:increase=round", "cdg:g=125,floor=2ms,hystart=delay,paced=on,blend=off,increase=round"),
        ] {
            let KernelLaw::Own(ported) = KernelLaw::parse(text).unwrap() else { panic!("it is ours") };
            assert_eq!(*ported.law(), reference.parse().unwrap(), "{text}");
            let law = KernelLaw::Own(ported);
            assert!(law.takes_weight() && law.has_one_window(), "{text}");
            assert_eq!(law, KernelLaw::parse(&law.to_string()).unwrap(), "{text}");
            assert_eq!(law.program(), "cdg");
        }
        let published = KernelLaw::parse("cdg:g=3,floor=0s").unwrap();
        assert_eq!(KernelLaw::parse_published("cdg").unwrap(), published);
        assert_eq!(published.to_string(), "cdg:g=3,hystart=delay,paced=on,blend=off");
        let cubic = KernelLaw::parse("cdg_cubic").unwrap();
        assert_eq!((cubic.name(), &cubic), ("cdg_cubic", &KernelLaw::parse("cdg:increase=cubic").unwrap()));
        for (text, part) in [
            ("cdg:variant=freebsd", "one of mainline, thesis"),
            ("cdg_cubic:increase=alpha_inc", "one of reno, cubic, round"),
            ("cdg:hold=70000", "from 0 to 65535"),
            ("cdg:window=6", "powers of two up to 256"),
            ("cdg:gg=6", "no parameter `gg`; did you mean `g`"),
            ("cdg:beta=2", "from 0 to 1"),
            ("cdg:shadow", "write `shadow=…`"),
            ("vegas:alpha=-1", "alpha"),
        ] {
            let sentence = KernelLaw::parse(text).unwrap_err().to_string();
            assert!(sentence.starts_with(text) && sentence.contains(part), "{text}: {sentence}");
        }
    }

    #[test]
    fn cubic_is_the_kernels_and_lt_cubic_ours() {
        assert_eq!(KernelLaw::parse("cubic").unwrap(), KernelLaw::Kernel("cubic".into()));
        assert_eq!(KernelLaw::parse("kernel:cubic").unwrap(), KernelLaw::Kernel("cubic".into()));
        for (text, printed) in [
            ("lt_cubic", "lt_cubic:paced=on"),
            ("lt_cubic:beta=0.8,variant=linux", "lt_cubic:variant=linux,beta=0.8,paced=on"),
            ("lt_cubic:paced=off", "lt_cubic"),
        ] {
            let law = KernelLaw::parse(text).unwrap();
            assert!(law.is_ours() && !law.takes_weight(), "{text}");
            assert_eq!((law.name(), law.to_string().as_str()), ("lt_cubic", printed));
        }
        assert_eq!(KernelLaw::parse("lt_vegas").unwrap(), KernelLaw::parse("vegas").unwrap());
        assert_eq!(KernelLaw::parse("lt_cdg").unwrap(), KernelLaw::parse("cdg").unwrap());
        for (text, part) in [
            ("lt_cubic:beta=1.2", "beta"),
            ("lt_cubic:hystart=plus", "off, train, delay, on"),
            ("lt_cubic:low_window=70000", "up to 65535"),
            ("lt_qubic", "not registered"),
        ] {
            let sentence = KernelLaw::parse(text).unwrap_err().to_string();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }

    #[test]
    fn an_unknown_law_names_what_there_is() {
        let error = KernelLaw::parse("qubic").unwrap_err().to_string();
        assert!(error.contains("qubic") && error.contains("reno"), "{error}");
    }

    #[test]
    fn cubic_is_reno_where_the_window_is_small() {
        let cubic = KernelLaw::Kernel("cubic".into());
        // 20 Mbit/s and 40 ms: about one loss in 5000 packets, against 0.55·0.06³ = 1.2e-4
        assert_eq!(cubic.exponent(Some(2e-4), Some(0.06)), 2.0);
        assert_eq!(cubic.exponent(Some(1e-5), Some(0.06)), 4.0 / 3.0);
        assert_eq!(cubic.exponent(None, None), 2.0);
    }
}
