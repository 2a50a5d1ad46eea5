// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came out of a simulation.

use serde::Serialize;

/// The result of a run. Means and distributions are over the measured span, from `measure_from` to the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// The flows, in the order of the scenario; `count` of them are named `name-1`, `name-2`, …
    pub flows: Vec<FlowOutcome>,
    /// The bottlenecks in the order of the scenario, then the reverse one if there is one.
    pub bottlenecks: Vec<BottleneckOutcome>,
    /// The spans that the scenario asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<SpanOutcome>,
    /// Jain's fairness index of the mean rates of the TCP flows; `None` with fewer than two.
    pub jain: Option<f64>,
    /// Data packets delivered to receivers, in the whole run.
    pub packets: u64,
    /// Events handled, in the whole run.
    pub events: u64,
    /// The seed.
    pub seed: u64,
}

/// What became of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// Its control law, or `udp`.
    pub cc: String,
    /// Payload delivered per second of the part of the measured span in which the flow was active, bits per second.
    pub mean_bps: f64,
    /// Payload bytes acknowledged (UDP: received) in the whole run.
    pub acked_bytes: u64,
    /// When all its data had been acknowledged, in seconds.
    pub finished_s: Option<f64>,
    /// Segments sent more than once.
    pub retransmits: u64,
    /// Times that the window was reduced.
    pub reductions: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Smallest round-trip sample, milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Mean round-trip sample, milliseconds.
    pub mean_rtt_ms: Option<f64>,
    /// 95th percentile of the round-trip samples, milliseconds.
    pub p95_rtt_ms: Option<f64>,
    /// Mean time that its packets waited in queues, milliseconds.
    pub mean_queue_ms: Option<f64>,
    /// 95th percentile of that time, milliseconds.
    pub p95_queue_ms: Option<f64>,
    /// The transfers that it has completed, for a source that makes several (web).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<CompletedTransfer>,
    /// The transfers with a deadline, in the order of their starts; the last one may not be complete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<DeadlineOutcome>,
}

/// What became of a transfer with a deadline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeadlineOutcome {
    /// Its payload.
    pub bytes: u64,
    /// When it began, in seconds.
    pub start_s: f64,
    /// When it was due, in seconds.
    pub due_s: f64,
    /// When all of it had been acknowledged, in seconds; `None`: never.
    pub finished_s: Option<f64>,
    /// Whether it was complete by then; `None`: it was not, but neither was it due before all ended.
    pub met: Option<bool>,
    /// From the deadline to its end, in seconds: negative if it was early; if it was never complete, the least that it
    /// can have been. `None` as for `met`.
    pub late_s: Option<f64>,
    /// What its weight rested on until the deadline.
    pub basis_s: BasisTimes,
}

/// For how many seconds a weight rested on what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BasisTimes {
    /// On a model of the law and the measured price.
    pub model: f64,
    /// On feedback, as its control means to.
    pub feedback: f64,
    /// On feedback in place of a model, since the law has none.
    pub no_model: f64,
    /// On feedback in place of a model, since there was no congestion signal to price.
    pub no_price: f64,
    /// On feedback in place of a model, since the round-trip time was unknown.
    pub no_rtt: f64,
}

impl BasisTimes {
    /// For how long feedback stood in for a model.
    pub const fn fallback(&self) -> f64 {
        self.no_model + self.no_price + self.no_rtt
    }
}

/// Means over a span of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpanOutcome {
    /// Where it begins, in seconds.
    pub from_s: f64,
    /// Where it ends, in seconds.
    pub to_s: f64,
    /// The flows that were there in it.
    pub flows: Vec<SpanFlow>,
}

/// A flow in a span of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpanFlow {
    /// Its name.
    pub name: String,
    /// Payload delivered per second of the whole span, bits per second.
    pub mean_bps: f64,
    /// That as a part of what it would have had if, while it was there, the TCP flows had shared equally what datagrams
    /// left of the bottleneck (the narrowest of several). `None` for datagrams.
    pub of_fair_share: Option<f64>,
    /// The mean of ζ while a transfer with a deadline was under way, bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_bps: Option<f64>,
    /// The mean of its weight then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// A transfer that was completed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CompletedTransfer {
    /// When its connection was opened, in seconds.
    pub start_s: f64,
    /// Its payload.
    pub bytes: u64,
    /// How long it took until all of it had been acknowledged, in seconds.
    pub completion_s: f64,
}

/// What became of a bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BottleneckOutcome {
    /// Its name.
    pub name: String,
    /// Share of the capacity of the measured span that was used, from 0 to 1.
    pub utilisation: f64,
    /// Mean queueing delay of delivered packets, milliseconds.
    pub mean_queue_ms: f64,
    /// 95th percentile of it, milliseconds.
    pub p95_queue_ms: f64,
    /// Packets dropped by the queue, in the measured span.
    pub drops: u64,
    /// Packets lost at random or by the policer, in the measured span.
    pub losses: u64,
    /// Packets marked CE, in the measured span.
    pub marks: u64,
}
