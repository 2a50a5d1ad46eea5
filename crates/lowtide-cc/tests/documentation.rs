// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/laws.md` says what the laws are. Its parameters are those of the code: `LOWTIDE_WRITE_DOCS=1 cargo test -p
//! lowtide-cc --test documentation` writes it.

use lowtide_cc::{EcnUse, Law};
use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

/// What the code of a law does not know of it: its file, its source, what it is, and how it differs from the source.
struct About {
    file: &'static str,
    source: &'static str,
    is: &'static str,
    differs: &'static str,
}

fn about(name: &str) -> About {
    let (file, source, is, differs) = match name {
        "reno" => (
            "reno.rs",
            "RFC 5681",
            "Adds one segment per RTT, halves the window on congestion.",
            "The window has fractions of a segment.",
        ),
        "cubic" => (
            "cubic.rs",
            "RFC 9438; `variant=linux`; `variant=2008`: Ha, Rhee and Xu, ACM SIGOPS OSR 42(5)",
            "The window is a cubic function of the time since the last reduction.",
            "Slow start ends by Hybrid Slow Start, as in Linux; HyStart++ is `hystart=plus`.",
        ),
        "bbr1" => (
            "bbr1.rs",
            "Cardwell et al., ACM Queue 14(5), 2016; Linux `tcp_bbr.c`",
            "Paces by a model of the path: maximum delivery rate and minimum RTT.",
            "Fractions where Linux rounds. The maximum of the rate is exact.",
        ),
        "bbr2" => (
            "bbr2.rs",
            "draft-cardwell-iccrg-bbr-congestion-control-02; Google's v2alpha",
            "The same, bounded by losses and marks.",
            "Fractions where Linux rounds. State for an undo is kept from the first loss on.",
        ),
        "bbr3" => (
            "bbr3.rs",
            "draft-ietf-ccwg-bbr; Google's v3 where the draft is silent",
            "The same, with other gains, an end to Drain, and probes that stop when the link is full.",
            "Some of Linux' choices where it differs from the draft; the file lists them.",
        ),
        "cdg" => (
            "cdg/mod.rs",
            "Hayes and Armitage, IFIP Networking 2011; Linux `tcp_cdg.c`; Jonassen's thesis, 2015; FreeBSD `cc_cdg.c`",
            "Backs off with a probability that rises with the delay gradient. Takes a weight.",
            "Less than best effort by default (the module's own: `shadow=on,ineff=5`). G is any number, not 125/k.",
        ),
        "eclipse" => (
            "eclipse.rs",
            "Adhari, Dreibholz, Werner and Rathgeb, \"Eclipse\"",
            "Keeps the delay at a small part of its observed range.",
            "A parameter for each point that the paper leaves open: the interval, slow start, losses, the minimum window.",
        ),
        "vegas" => (
            "vegas.rs",
            "Brakmo and Peterson, IEEE JSAC 13(8), 1995; Linux `tcp_vegas.c`",
            "Keeps a few of its own segments in the queue.",
            "Linux' form by default, the paper's with `variant=original`. An application-limited window does not grow.",
        ),
        "ledbat" => (
            "ledbat.rs",
            "RFC 6817",
            "Keeps the queueing delay at a target.",
            "The window follows the delay outside reduction episodes only. RTTs where there are no one-way delays.",
        ),
        "ledbatpp" => (
            "ledbatpp.rs",
            "draft-irtf-iccrg-ledbat-plus-plus",
            "LEDBAT on RTTs, with slowdowns to measure the base delay.",
            "A slowdown begins only in congestion avoidance.",
        ),
        "lp" => (
            "lp.rs",
            "Kuzmanovic and Knightly, INFOCOM 2003; Linux `tcp_lp.c`",
            "Halves the window when the delay is in the upper part of its range, and waits.",
            "Linux' form by default, whose reset depends on the offset of the clocks; the paper's with `variant=paper`.",
        ),
        "nice" => (
            "nice.rs",
            "Venkataramani, Kokku and Dahlin, OSDI 2002",
            "Vegas that halves its window when many segments of a round found a queue, to far below one segment.",
            "A halving begins an episode. Below one segment the window doubles in a round without congestion.",
        ),
        "proteus" => (
            "proteus.rs",
            "Meng, Rozen Schiff, Godfrey and Schapira, SIGCOMM 2020; `PCCproject/PCC-Uspace`; the rate control: Dong et al., NSDI 2018",
            "Tries rates and moves towards higher utility, which RTT deviation lowers. `d=0`: the primary flow, not the scavenger.",
            "Three pairs of trials as in the paper, not the code's two. Utility is that of the rate tried, in all phases.",
        ),
        "tide" => (
            "tide.rs",
            "Lowtide's own; its head names the sources of its parts",
            "Fills the link with a self-induced queue of a millisecond or two; when cross traffic causes a queue, it yields and probes now and then.",
            "No paper has it. Its share of a full link is its weight; without a weight it takes none.",
        ),
        "dctcp" => (
            "dctcp.rs",
            "RFC 8257; the modes: Misund, \"Delay based additive increase for scalable congestion controls\"",
            "Reduces the window by half the fraction of marked segments.",
            "Marks are counted in segments; no growth in the reduction round, as in Linux (`cwr_increase`).",
        ),
        "prague" => (
            "prague/mod.rs",
            "`L4STeam/linux` `tcp_prague.c`, v0.6 and v0.7; RFC 9331; the modes as for `dctcp`",
            "DCTCP for the Internet: paced, and independent of short round-trip times.",
            "Real numbers for fixed point. The window falls at once, and the transport reduces to it by PRR.",
        ),
        _ => panic!("{name} is not documented in tests/documentation.rs"),
    };
    About { file, source, is, differs }
}

/// A meaning as rustdoc has it, for a table.
fn plain(meaning: &str) -> String {
    let mut text = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
    text.retain(|c| c != '[' && c != ']');
    text.replace('|', "\\|")
}

/// The values that differ from the default with each variant.
fn variants(law: &Law) -> String {
    let described = law.describe();
    let Some(variant) = described.iter().find(|parameter| parameter.name == "variant") else { return String::new() };
    let words = variant.possible.trim_start_matches("one of ").split([',', ' ']).filter(|word| !word.is_empty());
    let mut text = String::new();
    for word in words.filter(|word| *word != "and" && *word != variant.value) {
        let other: Law = format!("{}:variant={word}", law.name()).parse().unwrap();
        let differs =
            other.describe().into_iter().zip(&described).filter(|(a, b)| a.name != "variant" && a.value != b.value);
        let list: Vec<String> = differs.map(|(a, _)| format!("`{}={}`", a.name, short(&a.value))).collect();
        let rest = if list.is_empty() { "no other defaults".to_owned() } else { list.join(", ") };
        let _ = writeln!(text, "\n`variant={word}`: {rest}.");
    }
    text
}

/// A number with four places, if it has more.
fn short(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(number) if value.len() > 8 => format!("{number:.4}"),
        _ => value.to_owned(),
    }
}

fn document() -> String {
    let mut text = String::from(
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
         <!-- Written by crates/lowtide-cc/tests/documentation.rs. -->\n\
         # Congestion controls\n\n\
         A law is written as its name, or as its name and the parameters that differ from its defaults: `cdg`, `cubic:hystart=off`,\n\
         `cdg:g=2,increase=cubic`, `prague:accel=on,overload=on`. The order does not matter; a `variant` decides the\n\
         defaults of the rest, wherever it is. Times have a unit: `5ms`.\n\n\
         | law | what it does | source | notable differences | ECN |\n|---|---|---|---|---|\n",
    );
    for name in Law::NAMES {
        let law: Law = name.parse().unwrap();
        let About { file, source, is, differs } = about(name);
        let ecn = match law.ecn_use() {
            EcnUse::Off => "off",
            EcnUse::Classic => "classic",
            EcnUse::Accurate => "ECT(0), every mark",
            EcnUse::L4s => "ECT(1), every mark",
        };
        let _ = writeln!(
            text,
            "| [`{name}`](#{name}) | {is} | {source} | {differs} [More](../crates/lowtide-cc/src/law/{file}) | {ecn} |"
        );
    }
    text += "\nThe column ECN has the default; most laws have a parameter `ecn`.\n";
    for name in Law::NAMES {
        let law: Law = name.parse().unwrap();
        let _ = write!(text, "\n## {name}\n\n| parameter | default | possible | meaning |\n|---|---|---|---|\n");
        for parameter in law.describe() {
            let (value, meaning) = (short(&parameter.value), plain(&parameter.meaning));
            let _ = writeln!(text, "| `{}` | {value} | {} | {meaning} |", parameter.name, parameter.possible);
        }
        text += &variants(&law);
    }
    text + include_str!("ecn.md")
}

#[test]
fn the_documentation_is_that_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../../docs/laws.md");
    let expected = document();
    if std::env::var_os("LOWTIDE_WRITE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/laws.md is not up to date; write it with LOWTIDE_WRITE_DOCS=1");
}

#[test]
fn every_parameter_has_a_meaning_and_every_law_its_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeSet::new();
    for name in Law::NAMES {
        let file = about(name).file;
        assert!(root.join("src/law").join(file).is_file() && files.insert(file), "{file}");
        for parameter in name.parse::<Law>().unwrap().describe() {
            let ends = parameter.meaning.ends_with('.');
            assert!(ends && parameter.meaning.len() > 10, "{name} {}: {}", parameter.name, parameter.meaning);
            assert!(!parameter.possible.is_empty());
        }
    }
}
