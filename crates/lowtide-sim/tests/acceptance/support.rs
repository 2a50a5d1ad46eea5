// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios as short texts, and checks of their outcomes.

use lowtide_sim::{
    FlowOutcome, Outcome,
    observe::{Content, FlowSample, Nobody, Observer, PacketEvent},
    run,
    scenario::Scenario,
};
use std::{ops::RangeInclusive, path::Path};

/// Reads a scenario of which every mistake is the test's.
pub(crate) fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, Path::new("acceptance.toml"), &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// One of those that come along, in `scenarios/`, with overrides.
pub(crate) fn scenario_file(name: &str, overrides: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name).with_extension("toml");
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Scenario::read(&path, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a scenario.
pub(crate) fn outcome(text: &str) -> Outcome {
    run(&scenario(text), &mut Nobody)
}

/// A link: its rate, its round-trip time, and whatever else differs from the defaults.
#[derive(Clone, Copy)]
pub(crate) struct Link<'a> {
    pub(crate) rate: &'a str,
    pub(crate) rtt: &'a str,
    pub(crate) more: &'a str,
}

/// Flows of these laws from the start to the end over a link; means of what comes after `from` seconds.
pub(crate) fn flows(link: Link<'_>, laws: &[&str], from: u32, to: u32) -> Outcome {
    outcome(&flows_text(link, laws, from, to))
}

/// The same as a text. The flows begin a tenth of a second after each other.
pub(crate) fn flows_text(link: Link<'_>, laws: &[&str], from: u32, to: u32) -> String {
    let Link { rate, rtt, more } = link;
    let mut text = format!(
        "duration = \"{to}s\"\nmeasure_from = \"{from}s\"\n[bottleneck]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\n{more}\n"
    );
    for (n, law) in laws.iter().enumerate() {
        text += &format!("[[flow]]\nname = \"f{n}\"\ncc = \"{law}\"\nstart = \"{}ms\"\n", 100 * n + 1);
    }
    text
}

/// The share of the first flow in what all flows got.
pub(crate) fn share(outcome: &Outcome) -> f64 {
    outcome.flows[0].mean_bps / outcome.flows.iter().map(|flow| flow.mean_bps).sum::<f64>()
}

/// Mean window in segments of 1448 bytes, by Little's law: rate times mean round-trip time.
pub(crate) fn window(flow: &FlowOutcome) -> f64 {
    flow.mean_bps / 8.0 / 1448.0 * flow.mean_rtt_ms.expect("it has samples") / 1000.0
}

/// Rows of a table whose last value has to be within its band; all of those that are not are shown.
#[derive(Default)]
pub(crate) struct Table {
    wrong: Vec<String>,
}

impl Table {
    pub(crate) fn row(&mut self, what: &str, value: f64, band: RangeInclusive<f64>) {
        let verdict = if band.contains(&value) { "" } else { "  <-- outside" };
        let row = format!("{what}: {value:.4} in {:.4} to {:.4}{verdict}", band.start(), band.end());
        println!("{row}");
        if !band.contains(&value) {
            self.wrong.push(row);
        }
    }

    pub(crate) fn check(self) {
        assert!(self.wrong.is_empty(), "\n{}", self.wrong.join("\n"));
    }
}

/// `within(100.0, 0.1)` is 90 to 110.
pub(crate) fn within(value: f64, share: f64) -> RangeInclusive<f64> {
    value * (1.0 - share)..=value * (1.0 + share)
}

/// Remembers the packets that pass the hosts.
#[derive(Default)]
pub(crate) struct Packets(pub(crate) Vec<PacketEvent>);

impl Observer for Packets {
    fn wants_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, packet: &PacketEvent) {
        self.0.push(*packet);
    }
}

/// Whether it is a data segment that arrives.
pub(crate) fn is_data_arrival(packet: &PacketEvent) -> bool {
    !packet.leaving && matches!(packet.content, Content::Segment(segment) if segment.bytes > 0)
}

/// Calls a function with each sample of a flow.
pub(crate) struct Samples<F>(pub(crate) F);

impl<F: FnMut(&FlowSample<'_>)> Observer for Samples<F> {
    fn wants_samples(&self) -> bool {
        true
    }

    fn flow(&mut self, sample: &FlowSample<'_>) {
        self.0(sample);
    }
}
