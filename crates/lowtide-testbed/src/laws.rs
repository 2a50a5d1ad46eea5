// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which law of this kernel, or of ours in it, is the one that a scenario requires. What cannot be had exactly is
//! refused.

use lowtide_cc::{
    Actuator, EcnUse, Law, Parameters,
    actuator::{Native, Phantom},
    law::cdg,
};
use lowtide_kernel::{KernelActuator, KernelLaw};
use lowtide_lab::testbed::Request;
use lowtide_port::Ported;
use lowtide_sim::scenario::{Flow, Source, Tcp};
use std::{collections::BTreeMap, fs, time::Duration};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// How the sender of a flow is controlled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Host {
    /// Datagrams: by none.
    Nobody,
    /// By a law of the kernel, of this name, with these parameters of its module.
    Kernel(String, Vec<(&'static str, u64)>),
    /// By a law of Lowtide's own, as published.
    Own(KernelLaw),
    /// By Lowtide, towards a deadline: its own law or one of the kernel.
    Governed(KernelLaw, KernelActuator),
}

impl Host {
    /// Whether a law of ours goes into the kernel for it.
    pub(crate) fn has_our_law(&self) -> bool {
        match self {
            Self::Own(law) | Self::Governed(law, _) => law.is_ours(),
            Self::Nobody | Self::Kernel(..) => false,
        }
    }
}

/// The laws that this machine's kernel has.
pub(crate) fn available() -> String {
    fs::read_to_string(AVAILABLE).unwrap_or_default()
}

/// The host for a flow of a kernel with these laws, or why there is none: the end of a sentence that begins with the
/// flow's name.
pub(crate) fn host(flow: &Flow, tcp: Option<&Tcp>, request: &Request, laws: &str) -> Result<Host, String> {
    let Some(tcp) = tcp else { return Ok(Host::Nobody) };
    if receiver(flow)?.is_some() {
        // the weight is the receiver's
        let host = match request.kernel_law(&flow.name) {
            Some(name) => kernel_law(name, &tcp.law, laws),
            None => published(tcp, laws),
        }?;
        return match host {
            Host::Kernel(..) => Ok(host),
            _ => Err("with a law at its receiver it is sent under a law of the kernel".to_owned()),
        };
    }
    if flow.weight.is_some() {
        return Err("a weight that stays the same cannot be had on the kernel".to_owned());
    }
    match (request.kernel_law(&flow.name), flow.deadline.is_some()) {
        (Some(_), true) => Err("a deadline needs the scenario's own law".to_owned()),
        (Some(name), false) => kernel_law(name, &tcp.law, laws),
        (None, true) => governed(flow, tcp),
        (None, false) if flow.actuator.is_some() => Err("an actuator without a deadline does nothing".to_owned()),
        (None, false) => published(tcp, laws),
    }
}

/// The law by which the receiver of a flow governs it, or why it cannot.
pub(crate) fn receiver(flow: &Flow) -> Result<Option<KernelLaw>, String> {
    let law = flow.receiver.as_ref().map(ported).transpose()?;
    match law {
        Some(law) if !law.governs_downloads() => Err(format!("{} does not govern what is received", law.name())),
        law => Ok(law),
    }
}

/// A law as published, in the form that this kernel has it.
fn published(tcp: &Tcp, laws: &str) -> Result<Host, String> {
    if let Law::Cdg(cdg) = &tcp.law {
        paced(tcp)?;
        return own_cdg(cdg).map(Host::Own);
    }
    if tcp.port || is_ported(&tcp.law) {
        paced(tcp)?;
        return ported(&tcp.law).map(Host::Own);
    }
    plain(tcp).and_then(|name| kernel_law(name, &tcp.law, laws))
}

/// Laws that this kernel has from us alone.
fn is_ported(law: &Law) -> bool {
    Ported::names().any(|name| name == law.name() && name != "cdg" && !KernelLaw::KERNELS.contains(&name))
}

fn ported(law: &Law) -> Result<KernelLaw, String> {
    let ported = Ported::new(law).map_err(|refusal| refusal.to_string())?;
    Ok(KernelLaw::Own(Box::new(ported)))
}

/// The kernel's name of Reno or CUBIC, which both have only as Linux has them.
fn plain(tcp: &Tcp) -> Result<&'static str, String> {
    let ecn = if tcp.law.ecn_use() == EcnUse::Off { "off" } else { "on" };
    // Linux' CUBIC takes pacing into account by itself
    let paced = if tcp.pacing { ",paced=on" } else { "" };
    let (name, text) = match &tcp.law {
        Law::Reno(_) => ("reno", "reno:whole_segments=on".to_owned()),
        Law::Cubic(_) => ("cubic", format!("cubic:variant=linux{paced}")),
        law => {
            let ours = Ported::names().collect::<Vec<_>>().join(", ");
            return Err(format!("{} is not ported to the kernel; reno, cubic, cdg, {ours} are", law.name()));
        }
    };
    if format!("{text},ecn={ecn}").parse() == Ok(tcp.law.clone()) {
        Ok(name)
    } else {
        Err(format!("the kernel's {name} is {text}, and the scenario's {}", tcp.law))
    }
}

/// A law of the kernel by its name.
fn kernel_law(name: &str, law: &Law, laws: &str) -> Result<Host, String> {
    if !laws.split_whitespace().any(|it| it == name) {
        return Err(format!("this kernel has no law {name}; it has {}", laws.trim()));
    }
    if name == "dctcp" && law.ecn_use() == EcnUse::Off {
        return Err(format!("dctcp needs ECN, and the scenario's {law} does not use it"));
    }
    let parameters = match (name, law) {
        ("cdg", Law::Cdg(cdg)) => module_cdg(&cdg.entries().into_iter().collect())?,
        _ => Vec::new(),
    };
    Ok(Host::Kernel(name.to_owned(), parameters))
}

/// A transfer that its deadline steers.
fn governed(flow: &Flow, tcp: &Tcp) -> Result<Host, String> {
    let deadline = flow.deadline.as_ref().ok_or("it has no deadline")?;
    if deadline.gap.is_some() || !matches!(flow.source, Source::Sized(_)) {
        return Err("one transfer of a known size can have a deadline on the kernel, and none after a gap".to_owned());
    }
    paced(tcp)?;
    let actuator = flow.steered_by().ok_or("its law takes no weight")?;
    if !matches!(tcp.law, Law::Cdg(_)) && (tcp.port || is_ported(&tcp.law)) {
        let ours = match &actuator {
            Actuator::Native(native) if *native == Native::default() => KernelActuator::Native,
            Actuator::Phantom(phantom) if *phantom == Phantom::default() => KernelActuator::Phantom,
            Actuator::Beta => KernelActuator::Beta,
            _ => return Err(format!("on the kernel an actuator has its usual parameters, not those of {actuator}")),
        };
        let law = ported(&tcp.law)?;
        ours.check(&law).map_err(|error| error.to_string())?;
        return Ok(Host::Governed(law, ours));
    }
    if deadline.ratio.is_some() {
        return Err(
            "CDG and the kernel's laws have no ratio of prices there; policy.price_ratio has to be off".to_owned()
        );
    }
    if let Law::Cdg(cdg) = &tcp.law {
        let few: Native = native("few").ok_or("there is no actuator native:losses=few")?;
        if actuator != Actuator::Native(few) {
            return Err(format!(
                "with a deadline CDG is steered by native:losses=few on the kernel, not by {actuator}"
            ));
        }
        let entries = cdg.entries().into_iter().collect();
        has(&entries, &[("blend", "off"), ("floor", "0s")], "under a weight Lowtide's")?;
        let steered = cdg.clone().g(125.0).and_then(|cdg| cdg.floor(Duration::from_millis(2)));
        let law = own_cdg(&steered.map_err(|error| error.to_string())?)?;
        return Ok(Host::Governed(law, KernelActuator::Native));
    }
    if actuator != Actuator::Phantom(Phantom::default()) {
        return Err(format!(
            "the kernel's laws are steered by phantom signals with their usual parameters, not by {actuator}"
        ));
    }
    let name = plain(tcp)?;
    let law = KernelLaw::parse(name).map_err(|error| error.to_string())?;
    Ok(Host::Governed(law, KernelActuator::Phantom))
}

fn native(losses: &str) -> Option<Native> {
    match format!("native:losses={losses}").parse() {
        Ok(Actuator::Native(native)) => Some(native),
        _ => None,
    }
}

fn paced(tcp: &Tcp) -> Result<(), String> {
    if tcp.pacing { Ok(()) } else { Err("Lowtide paces what it sends; say tcp = { pacing = true }".to_owned()) }
}

/// What the kernel's CDG module can only be.
const FIXED: [(&str, &str); 14] = [
    ("variant", "mainline"),
    ("beta_loss", "0.5"),
    ("increase", "reno"),
    ("hold", "0"),
    ("ecn", "off"),
    ("delay", "rtt"),
    ("clock", "us"),
    ("filter", "on"),
    ("extrapolate", "on"),
    ("unsmoothed", "off"),
    ("prr", "on"),
    ("whole_segments", "on"),
    ("paced", "off"),
    ("floor", "0s"),
];

type Entries = BTreeMap<&'static str, String>;

/// Checks what cannot be chosen: the first that differs makes the sentence.
fn has(entries: &Entries, wanted: &[(&str, &str)], whose: &str) -> Result<(), String> {
    for (key, value) in wanted {
        let found = entries.get(key).map_or("nothing", String::as_str);
        if found != *value {
            return Err(format!("{whose} CDG has {key}={value}, and the scenario's {key}={found}"));
        }
    }
    Ok(())
}

fn number(entries: &Entries, key: &str) -> Result<f64, String> {
    entries.get(key).and_then(|text| text.parse().ok()).ok_or_else(|| format!("{key} of CDG is no number"))
}

fn on(entries: &Entries, key: &str) -> bool {
    entries.get(key).is_some_and(|text| text == "on")
}

/// After how many back-offs further ones are ignored; 0: never.
fn ineff(entries: &Entries) -> Result<u32, String> {
    if entries.get("ineff").is_some_and(|text| text == "off") { Ok(0) } else { Ok(number(entries, "ineff")? as u32) }
}

/// Lowtide's own CDG (`lowtide-port/law/cdg.h`): windows with fractions, paced, slow start that ends by delay alone,
/// and no blend of Reno's growth and CUBIC's.
fn own_cdg(cdg: &cdg::Parameters) -> Result<KernelLaw, String> {
    let hystart = cdg.entries().into_iter().find(|(key, _)| *key == "hystart").map(|(_, value)| value);
    if let Some(hystart @ ("on" | "train")) = hystart.as_deref() {
        return Err(format!("Lowtide's CDG has hystart=delay or hystart=off, and the scenario's hystart={hystart}"));
    }
    let own = cdg.clone().paced(true).and_then(|cdg| cdg.blend(false)).map_err(|error| error.to_string())?;
    ported(&Law::Cdg(own))
}

/// The parameters of the kernel's own CDG module. G is `1000/(window·factor)` with a whole factor.
fn module_cdg(entries: &Entries) -> Result<Vec<(&'static str, u64)>, String> {
    has(entries, &FIXED, "the kernel's")?;
    let (g, window) = (number(entries, "g")?, number(entries, "window")?);
    if !(window as u32).is_power_of_two() || window > 256.0 {
        return Err(format!(
            "the kernel's CDG averages a power of two of gradients, up to 256, and the scenario's {window}"
        ));
    }
    let factor = (1000.0 / (g * window)).round();
    if !(1.0..=65_535.0).contains(&factor) {
        return Err(format!(
            "the kernel's CDG has a G from {:.4} to {} ms",
            1000.0 / 65_535.0 / window,
            1000.0 / window
        ));
    }
    let hystart = match entries.get("hystart").map(String::as_str) {
        Some("on") => 3,
        Some("delay") => 2,
        Some("train") => 1,
        Some("off") => 0,
        other => return Err(format!("the kernel's CDG has no hystart={}", other.unwrap_or("nothing"))),
    };
    Ok(vec![
        ("window", window as u64),
        ("backoff_beta", (number(entries, "beta")? * 1024.0).round() as u64),
        ("backoff_factor", factor as u64),
        ("hystart_detect", hystart),
        ("use_ineff", ineff(entries)?.into()),
        ("use_shadow", on(entries, "shadow").into()),
        ("use_tolerance", on(entries, "tolerance").into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_sim::scenario::Scenario;
    use std::path::Path;

    fn of(cc: &str, more: &str, kernel_law: Option<&str>) -> Result<Host, String> {
        let text = format!(
            "duration = \"9s\"\nbottleneck = {{ rate = \"10mbit\", rtt = \"20ms\" }}\n[[flow]]\nname = \"bg\"\ncc = \"{cc}\"\n{more}"
        );
        let scenario = Scenario::parse(&text, Path::new("test"), &[]).unwrap();
        let kernel_laws = kernel_law.map(|law| ("b*".to_owned(), law.to_owned())).into_iter().collect();
        let request = Request { scenario, kernel_laws };
        let flow = &request.scenario.flows[0];
        host(flow, crate::hosts::tcp(flow), &request, "reno cubic dctcp")
    }

    const PACED: &str = "tcp = { pacing = true }\n";
    const DUE: &str = "size = \"1MB\"\ndeadline = \"5s\"\n";

    #[test]
    fn what_the_kernel_has_is_taken() {
        let kernel = |name: &str| Ok(Host::Kernel(name.to_owned(), Vec::new()));
        assert_eq!(of("reno:whole_segments=on", "", None), kernel("reno"));
        assert_eq!(of("cubic:variant=linux,ecn=on,paced=on", PACED, None), kernel("cubic"));
        assert_eq!(of("ledbat", "", Some("reno")), kernel("reno"));
        assert_eq!(of("dctcp", "", Some("dctcp")), kernel("dctcp"));
        let published = KernelLaw::parse_published("cdg:g=0.1").unwrap();
        assert_eq!(of("cdg:g=0.1,hystart=delay", PACED, None), Ok(Host::Own(published)));
        let Ok(Host::Own(thesis)) = of("cdg:variant=thesis", PACED, None) else { panic!("it is ours") };
        assert_eq!(thesis, KernelLaw::parse_published("cdg:variant=thesis,g=3.003003003003003").unwrap());
        let deadline = format!("{PACED}{DUE}");
        let Ok(Host::Governed(law, actuator)) = of("cubic:variant=linux,paced=on", &deadline, None) else {
            panic!("governed")
        };
        assert_eq!((law.name(), actuator), ("cubic", KernelActuator::Phantom));
        let Ok(Host::Governed(law, actuator)) = of("vegas", &deadline, None) else { panic!("governed") };
        assert_eq!((law.name(), law.is_ours(), actuator), ("vegas", true, KernelActuator::Native));
        let cdg = format!("{deadline}actuator = \"native:losses=few\"\n");
        let Ok(Host::Governed(law, _)) = of("cdg:blend=off,hystart=delay", &cdg, None) else { panic!("governed") };
        assert_eq!(law, KernelLaw::parse("cdg").unwrap());
    }

    #[test]
    fn a_receiver_governs_what_the_kernels_laws_send() {
        let governed = "receiver = \"tide\"\nweight = 0.5\n";
        let Ok(Host::Kernel(law, _)) = of("cubic:variant=linux", governed, None) else { panic!("the kernel's") };
        assert_eq!(law, "cubic");
        let Ok(Host::Kernel(law, _)) = of("bbr1", governed, Some("reno")) else { panic!("the kernel's") };
        assert_eq!(law, "reno");
        let error = of("tide", &format!("{PACED}{governed}"), None).unwrap_err();
        assert!(error.contains("a law of the kernel"), "{error}");
    }

    #[test]
    fn what_it_has_not_is_refused() {
        let deadline = format!("{PACED}{DUE}");
        for (cc, more, kernel_law, part) in [
            ("cubic", "", None, "cubic:variant=linux"),
            ("cubic:variant=linux,beta=0.8", "", None, "cubic:variant=linux"),
            ("reno", "", None, "reno:whole_segments=on"),
            ("nice", "", None, "nice is not ported"),
            ("proteus", PACED, None, "proteus is not ported to the kernel; reno, cubic, cdg"),
            ("vegas", "", None, "pacing = true"),
            ("vegas:variant=original", PACED, None, "and not variant=original"),
            ("cdg:hystart=delay", "", None, "pacing = true"),
            ("cdg", PACED, None, "hystart=delay"),
            ("cdg:beta_loss=0.7,hystart=delay", PACED, None, "beta_loss"),
            ("cdg:window=6,hystart=delay", PACED, None, "powers of two"),
            ("cubic:variant=linux", PACED, None, "cubic:variant=linux,paced=on"),
            ("reno:whole_segments=on", "weight = 0.5\n", None, "a weight"),
            ("cubic", "", Some("qubic"), "no law qubic"),
            ("cubic", "", Some("dctcp"), "dctcp needs ECN"),
            ("cubic:variant=linux", DUE, None, "pacing = true"),
            ("vegas", &format!("{deadline}actuator = \"native:floor=9ms\"\n"), None, "usual parameters"),
            ("cdg:blend=off,hystart=delay", &deadline, None, "native:losses=few"),
        ] {
            let error = of(cc, more, kernel_law).unwrap_err();
            assert!(error.contains(part), "{cc}: {error}");
        }
    }

    #[test]
    fn the_module_has_whole_factors() {
        let entries = |text: &str| match text.parse() {
            Ok(Law::Cdg(cdg)) => cdg.entries().into_iter().collect(),
            _ => panic!("{text} is a law"),
        };
        let factor = |g: &str| {
            let parameters = module_cdg(&entries(&format!("cdg:g={g},whole_segments=on"))).unwrap();
            parameters.iter().find(|it| it.0 == "backoff_factor").map(|it| it.1)
        };
        assert_eq!((factor("0.1"), factor("120"), factor("2.976")), (Some(1250), Some(1), Some(42)));
        assert!(module_cdg(&entries("cdg:g=1000,whole_segments=on")).unwrap_err().contains("125 ms"));
        assert!(module_cdg(&entries("cdg")).unwrap_err().contains("whole_segments=on"));
        assert!(module_cdg(&entries("cdg:window=6,whole_segments=on")).unwrap_err().contains("power of two"));
    }
}
