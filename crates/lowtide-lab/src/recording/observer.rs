// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records a simulation.

use super::{Packets, RecordedTransfer, Recording, Track, matches};
use lowtide_net::Time;
use lowtide_sim::{
    FlowOutcome, Outcome, SpanOutcome,
    observe::{BottleneckSample, FlowSample, Observer, PacketEvent},
    scenario::{Bottleneck, Flow, Scenario, Source},
};
use std::collections::BTreeMap;

/// Columns under way: as long as the times up to their latest value.
type Columns = BTreeMap<String, Vec<f64>>;

/// Watches a simulation and makes a [`Recording`] of it.
pub(crate) struct Recorder {
    times: Vec<f64>,
    flows: Vec<Columns>,
    links: Vec<Columns>,
    packets: Vec<Option<Packets>>,
}

impl Recorder {
    /// For this scenario; of the flows whose names go with one of `packets`, every packet.
    pub(crate) fn new(scenario: &Scenario, packets: &[String]) -> Self {
        let wanted = |flow: &Flow| packets.iter().any(|pattern| matches(pattern, &flow.name));
        let links = scenario.bottlenecks.len() + usize::from(scenario.reverse.is_some());
        Self {
            times: Vec::new(),
            flows: vec![Columns::new(); scenario.flows.len()],
            links: vec![Columns::new(); links],
            packets: scenario.flows.iter().map(|flow| wanted(flow).then(Packets::default)).collect(),
        }
    }

    /// The recording, with what is known only at the end.
    pub(crate) fn finish(self, scenario: &Scenario, outcome: &Outcome) -> Recording {
        let (number, spans) = (self.times.len(), &outcome.spans);
        let flows = scenario.flows.iter().zip(&outcome.flows).zip(self.flows).zip(self.packets);
        let flows = flows.map(|(((flow, outcome), columns), packets)| Track {
            name: flow.name.clone(),
            columns: shared(columns, number),
            facts: flow_facts(flow, outcome),
            transfers: transfers(flow, outcome),
            spans: spans.iter().flat_map(|span| shares(span, &flow.name)).collect(),
            packets,
        });
        let links = scenario.bottlenecks.iter().chain(&scenario.reverse).zip(self.links);
        let links = links.map(|(link, columns)| Track {
            name: link.name.clone(),
            columns: shared(columns, number),
            facts: link_facts(link),
            ..Track::default()
        });
        Recording { flows: flows.collect(), links: links.collect(), times: self.times.into(), version: None }
    }

    fn at(&mut self, now: Time) {
        let now = (now - Time::ZERO).as_secs_f64();
        if self.times.last().is_none_or(|last| *last < now) {
            self.times.push(now);
        }
    }
}

impl Observer for Recorder {
    fn wants_packets(&self) -> bool {
        self.packets.iter().any(Option::is_some)
    }

    fn wants_samples(&self) -> bool {
        true
    }

    fn flow(&mut self, sample: &FlowSample<'_>) {
        self.at(sample.now);
        let (columns, number) = (&mut self.flows[sample.flow], self.times.len());
        let mut put = |name: &str, value: Option<f64>| put(columns, name, number, value);
        put("delivered", Some(sample.delivered as f64));
        put("rate", Some(sample.rate_bps));
        put("cwnd", sample.cwnd);
        put("ssthresh", sample.ssthresh);
        put("in_flight", Some(sample.in_flight as f64));
        put("rtt", sample.rtt_ms);
        put("owd", sample.one_way_delay_ms);
        put("retransmits", Some(sample.retransmits as f64));
        put("reductions", Some(sample.reductions as f64));
        for (name, value) in sample.inner {
            put(&format!("inner:{name}"), Some(*value));
        }
        if let Some(control) = &sample.control {
            put("weight", Some(control.weight));
            put("target", control.target_bps);
            put("achieved", Some(control.achieved_bps));
            put("price_ratio", Some(control.price_ratio));
        }
    }

    fn bottleneck(&mut self, sample: &BottleneckSample) {
        self.at(sample.now);
        let (columns, number) = (&mut self.links[sample.bottleneck], self.times.len());
        let mut put = |name: &str, value: f64| put(columns, name, number, Some(value));
        put("queue", sample.queue_ms);
        put("queue_packets", sample.queue_packets as f64);
        put("queue_bytes", sample.queue_bytes as f64);
        put("packets", sample.packets as f64);
        put("drops", sample.drops as f64);
        put("marks", sample.marks as f64);
        put("utilisation", sample.utilisation);
    }

    fn packet(&mut self, packet: &PacketEvent) {
        if let Some(packets) = self.packets.get_mut(packet.flow).and_then(Option::as_mut) {
            packets.record(packet);
        }
    }
}

/// Sets the last of `number` values of a column; those before it that are not there have no value.
fn put(columns: &mut Columns, name: &str, number: usize, value: Option<f64>) {
    let Some(value) = value else { return };
    if !columns.contains_key(name) {
        columns.insert(name.to_owned(), Vec::new());
    }
    let column = columns.get_mut(name).expect("it was just inserted");
    column.resize(number - 1, f64::NAN);
    column.push(value);
}

fn shared(columns: Columns, number: usize) -> BTreeMap<String, std::rc::Rc<[f64]>> {
    let fill = |(name, mut column): (String, Vec<f64>)| {
        column.resize(number, f64::NAN);
        (name, column.into())
    };
    columns.into_iter().map(fill).collect()
}

fn flow_facts(flow: &Flow, outcome: &FlowOutcome) -> BTreeMap<&'static str, f64> {
    let due = outcome.deadlines.first().map(|it| it.due_s);
    let facts = [
        ("start", Some(flow.start.as_secs_f64())),
        ("finish", outcome.finished_s),
        ("due", due),
        ("timeouts", Some(outcome.timeouts as f64)),
        ("base_rtt", Some(flow.rtt.as_secs_f64() * 1e3)),
    ];
    facts.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
}

fn link_facts(link: &Bottleneck) -> BTreeMap<&'static str, f64> {
    BTreeMap::from([("capacity", link.rate.bits_per_second() as f64)])
}

fn shares<'a>(span: &'a SpanOutcome, name: &'a str) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
    let own = span.flows.iter().filter(move |flow| flow.name == name);
    own.filter_map(|flow| Some((span.from_s, span.to_s, flow.of_fair_share?)))
}

/// Those with deadlines, those of a web source, or the only one of a sized source.
fn transfers(flow: &Flow, outcome: &FlowOutcome) -> Vec<RecordedTransfer> {
    if !outcome.deadlines.is_empty() {
        let transfer = |it: &lowtide_sim::DeadlineOutcome| RecordedTransfer {
            start: it.start_s,
            bytes: it.bytes as f64,
            finish: it.finished_s,
            due: Some(it.due_s),
        };
        return outcome.deadlines.iter().map(transfer).collect();
    }
    if let Source::Sized(bytes) = flow.source {
        let (start, finish) = (flow.start.as_secs_f64(), outcome.finished_s);
        return vec![RecordedTransfer { start, bytes: bytes as f64, finish, due: None }];
    }
    let transfer = |it: &lowtide_sim::CompletedTransfer| RecordedTransfer {
        start: it.start_s,
        bytes: it.bytes as f64,
        finish: Some(it.start_s + it.completion_s),
        due: None,
    };
    let mut transfers: Vec<RecordedTransfer> = outcome.transfers.iter().map(transfer).collect();
    transfers.sort_by(|a, b| a.start.total_cmp(&b.start));
    transfers
}
