// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario, and what might come out of it.

#![allow(dead_code, reason = "not every test needs all of it")]

use lowtide_sim::{BottleneckOutcome, CompletedTransfer, FlowOutcome, Outcome, scenario::Scenario};
use std::path::Path;

/// A TCP flow and one of datagrams.
pub(crate) fn scenario() -> Scenario {
    let text = r#"
        seed = 7
        duration = "120s"
        measure_from = "60s"

        [bottleneck]
        rate = "10mbit"
        rtt = "40ms"

        [[flow]]
        name = "bg"
        cc = "reno"

        [[flow]]
        name = "video"
        source = "cbr:bytes=20kB,interval=40ms"
    "#;
    Scenario::parse(text, Path::new("two.toml"), &[]).expect("it is a scenario")
}

/// Figures without meaning.
pub(crate) fn outcome() -> Outcome {
    let tcp = FlowOutcome {
        name: "bg".into(),
        cc: "reno".into(),
        mean_bps: 4.5e6,
        acked_bytes: 67_500_000,
        finished_s: Some(55.5),
        retransmits: 12,
        reductions: 4,
        timeouts: 1,
        min_rtt_ms: Some(40.0),
        mean_rtt_ms: Some(61.25),
        p95_rtt_ms: Some(80.5),
        mean_queue_ms: Some(20.0),
        p95_queue_ms: Some(39.0),
        transfers: vec![
            CompletedTransfer { start_s: 0.5, bytes: 1000, completion_s: 0.25 },
            CompletedTransfer { start_s: 1.0, bytes: 20_000, completion_s: 1.5 },
        ],
        deadlines: Vec::new(),
    };
    let udp = FlowOutcome {
        name: "video".into(),
        cc: "udp".into(),
        mean_bps: 4e6,
        acked_bytes: 60_000_000,
        mean_queue_ms: Some(20.0),
        p95_queue_ms: Some(38.0),
        ..FlowOutcome::default()
    };
    let link = BottleneckOutcome {
        name: "bottleneck".into(),
        utilisation: 0.925,
        mean_queue_ms: 20.0,
        p95_queue_ms: 38.5,
        drops: 77,
        losses: 1,
        marks: 5,
    };
    let spans = Vec::new();
    Outcome {
        flows: vec![tcp, udp],
        bottlenecks: vec![link],
        spans,
        jain: None,
        packets: 123_456,
        events: 654_321,
        seed: 7,
    }
}
