// SPDX-License-Identifier: MIT OR Apache-2.0
//! `summary.json`.

use crate::{BottleneckOutcome, DeadlineOutcome, FlowOutcome, Outcome, SpanOutcome};
use serde::Serialize;
use std::time::Duration;

/// What came out of a run, in figures. Means and percentiles are over the measured span. Everything but `wall_s` is the
/// same whenever the same version runs the same scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowSummary>,
    /// The bottleneck, the first one if there are several.
    pub bottleneck: LinkSummary,
    /// All bottlenecks and the reverse one, where there is more than one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bottlenecks: Vec<LinkSummary>,
    /// The spans that the scenario asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<SpanOutcome>,
    /// Jain's fairness index of the mean rates of the TCP flows; `null` with fewer than two.
    pub jain: Option<f64>,
    /// Data packets delivered.
    pub packets: u64,
    /// Events handled.
    pub events: u64,
    /// Time that the run took, seconds.
    pub wall_s: f64,
    /// The seed.
    pub seed: u64,
    /// The version of the simulator.
    pub version: &'static str,
}

/// A flow in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// Its control law, or `udp`.
    pub cc: String,
    /// Payload delivered, bits per second of the part of the measured span in which it was active.
    pub mean_bps: f64,
    /// Payload bytes acknowledged in the whole run.
    pub acked_bytes: u64,
    /// When all its data had been acknowledged, seconds.
    pub finished_s: Option<f64>,
    /// Segments sent more than once.
    pub retransmits: u64,
    /// Smallest round-trip time, milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Mean round-trip time, milliseconds.
    pub mean_rtt_ms: Option<f64>,
    /// 95th percentile of the round-trip time, milliseconds.
    pub p95_rtt_ms: Option<f64>,
    /// Mean time in queues, milliseconds.
    pub mean_queue_ms: Option<f64>,
    /// 95th percentile of the time in queues, milliseconds.
    pub p95_queue_ms: Option<f64>,
    /// Its transfers with a deadline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<DeadlineOutcome>,
}

/// A bottleneck in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Its name.
    pub name: String,
    /// Share of the capacity that was used.
    pub utilisation: f64,
    /// Mean queueing delay, milliseconds.
    pub mean_queue_ms: f64,
    /// 95th percentile of the queueing delay, milliseconds.
    pub p95_queue_ms: f64,
    /// Packets dropped by the queue.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
}

impl Summary {
    /// The summary of a run that took `wall`.
    pub fn new(outcome: &Outcome, wall: Duration) -> Self {
        let links: Vec<LinkSummary> = outcome.bottlenecks.iter().map(LinkSummary::from).collect();
        Self {
            flows: outcome.flows.iter().map(FlowSummary::from).collect(),
            bottleneck: links.first().cloned().unwrap_or_default(),
            bottlenecks: if links.len() > 1 { links } else { Vec::new() },
            spans: outcome.spans.clone(),
            jain: outcome.jain,
            packets: outcome.packets,
            events: outcome.events,
            wall_s: wall.as_secs_f64(),
            seed: outcome.seed,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// As JSON, for people, too.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self).expect("text keys and numbers");
        json + "\n"
    }

    /// All bottlenecks.
    pub fn links(&self) -> &[LinkSummary] {
        if self.bottlenecks.is_empty() { std::slice::from_ref(&self.bottleneck) } else { &self.bottlenecks }
    }
}

impl From<&FlowOutcome> for FlowSummary {
    fn from(flow: &FlowOutcome) -> Self {
        Self {
            name: flow.name.clone(),
            cc: flow.cc.clone(),
            mean_bps: flow.mean_bps,
            acked_bytes: flow.acked_bytes,
            finished_s: flow.finished_s,
            retransmits: flow.retransmits,
            min_rtt_ms: flow.min_rtt_ms,
            mean_rtt_ms: flow.mean_rtt_ms,
            p95_rtt_ms: flow.p95_rtt_ms,
            mean_queue_ms: flow.mean_queue_ms,
            p95_queue_ms: flow.p95_queue_ms,
            deadlines: flow.deadlines.clone(),
        }
    }
}

impl From<&BottleneckOutcome> for LinkSummary {
    fn from(link: &BottleneckOutcome) -> Self {
        Self {
            name: link.name.clone(),
            utilisation: link.utilisation,
            mean_queue_ms: link.mean_queue_ms,
            p95_queue_ms: link.p95_queue_ms,
            drops: link.drops,
            marks: link.marks,
        }
    }
}
