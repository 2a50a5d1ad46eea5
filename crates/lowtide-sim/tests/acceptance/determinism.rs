// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same scenario and seed give the same result, to the last bit, on every machine and in every build.

use crate::support::{Samples, scenario};
use lowtide_sim::{Outcome, observe::FlowSample, run, scenario::Scenario};

/// A bit of everything that takes chances or has a law of its own.
const MIXED: &str = r#"
duration = "20s"
measure_from = "4s"

[bottleneck]
rate = "10mbit"
rtt = "30ms"
buffer = "1bdp"
queue = "pie"
loss = "0.1%"
jitter = "2ms"
reordering = "0.1%:5ms"

[reverse]
rate = "2mbit"
rtt = "30ms"

[[flow]]
name = "cdg"
cc = "cdg"

[[flow]]
name = "cubic"
cc = "cubic"

[[flow]]
name = "bbr"
cc = "bbr3"

[[flow]]
name = "web"
cc = "cubic"
source = "web:load=2mbit"

[[flow]]
name = "frames"
source = "poisson:bytes=3kB,mean=20ms"

[[flow]]
name = "pauses"
cc = "ledbatpp"
source = "onoff:on=1s,off=1s"

[[flow]]
name = "up"
cc = "vegas"
size = "2MB"
direction = "reverse"
"#;

/// The outcome, and every value of every sample.
fn observed(scenario: &Scenario) -> (Outcome, Vec<u64>) {
    let mut series = Vec::new();
    let mut watch = Samples(|sample: &FlowSample<'_>| {
        series.extend([sample.now.as_nanos(), sample.flow as u64, sample.delivered, sample.in_flight]);
        series.extend([sample.retransmits, sample.reductions, sample.rate_bps.to_bits()]);
        let optional = [sample.cwnd, sample.ssthresh, sample.rtt_ms, sample.one_way_delay_ms];
        series.extend(optional.into_iter().flatten().chain(sample.inner.iter().map(|it| it.1)).map(f64::to_bits));
    });
    let outcome = run(scenario, &mut watch);
    (outcome, series)
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_seed_another() {
    let mut scenario = scenario(MIXED);
    let first = observed(&scenario);
    assert!(first.1.len() > 7 * 190 * 7, "samples of 20 s");
    assert!(first == observed(&scenario), "not the same again");
    scenario.seed += 1;
    let other = observed(&scenario);
    assert_ne!(first.0.flows, other.0.flows);
    assert_ne!(first.1, other.1);
}

#[test]
fn watching_changes_nothing() {
    let scenario = scenario(MIXED);
    let (watched, _) = observed(&scenario);
    let alone = run(&scenario, &mut lowtide_sim::observe::Nobody);
    // Samples and progress are events too.
    assert_eq!(Outcome { events: 0, ..watched }, Outcome { events: 0, ..alone });
}

#[test]
fn the_seed_is_only_for_chance() {
    let text = "duration = \"10s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"30ms\"\n\
                [[flow]]\nname = \"a\"\ncc = \"cubic\"\n[[flow]]\nname = \"b\"\ncc = \"reno\"\nstart = \"1s\"\n";
    let mut scenario = scenario(text);
    let first = observed(&scenario);
    scenario.seed += 1;
    let other = observed(&scenario);
    assert_eq!((first.0.flows, first.1), (other.0.flows, other.1));
}

/// The outcome of `MIXED`, exactly. It holds in debug and release builds and on every machine. A change of what a law,
/// the transport or a queue does changes it too: then print the new values with `-- --nocapture the_outcome_is_exact`.
#[test]
fn the_outcome_is_exact() {
    let (outcome, series) = observed(&scenario(MIXED));
    let flows: Vec<(u64, u64)> = outcome.flows.iter().map(|flow| (flow.acked_bytes, flow.retransmits)).collect();
    let found = (outcome.packets, outcome.events, &flows[..], checksum(&outcome, &series));
    println!("{found:?}");
    assert_eq!(found, (GOLDEN_PACKETS, GOLDEN_EVENTS, &GOLDEN_FLOWS[..], GOLDEN_CHECKSUM));
}

/// FNV-1a over the bits of what was measured.
fn checksum(outcome: &Outcome, series: &[u64]) -> u64 {
    let flows = outcome.flows.iter().flat_map(|it| {
        let optional = [it.min_rtt_ms, it.mean_rtt_ms, it.p95_rtt_ms, it.mean_queue_ms, it.p95_queue_ms, it.finished_s];
        [Some(it.mean_bps)].into_iter().chain(optional).flatten()
    });
    let links = outcome.bottlenecks.iter().flat_map(|it| [it.utilisation, it.mean_queue_ms, it.p95_queue_ms]);
    let bits = flows.chain(links).map(f64::to_bits).chain(series.iter().copied());
    bits.flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

const GOLDEN_PACKETS: u64 = 18_485;
const GOLDEN_EVENTS: u64 = 82_858;
/// Bytes acknowledged, and segments sent again.
const GOLDEN_FLOWS: [(u64, u64); 7] =
    [(3153744, 116), (4190512, 166), (8688000, 204), (3736849, 397), (2718600, 0), (710968, 33), (2000000, 37)];
const GOLDEN_CHECKSUM: u64 = 1_873_290_318_960_643_022;
