// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random scenarios: every packet is accounted for, no link carries more than it can, and each flow with data makes
//! progress.

use crate::support::scenario;
use lowtide_cc::Law;
use lowtide_net::Rate;
use lowtide_sim::{
    Outcome,
    observe::{Content, Observer, PacketEvent},
    run,
    scenario::{Direction, Scenario, Source, Transport},
};
use proptest::{prelude::*, test_runner::RngSeed};
use std::time::Duration;

/// When the last flow has to stop. Flows with a size have until the end.
const STOP_S: u64 = 8;
/// Long enough for the most timid law on the worst path: one segment every 48 round trips of Nice.
const END_S: u64 = 20_000;

/// A queue, and whatever else makes the path worse.
fn bottleneck() -> impl Strategy<Value = String> {
    let queue = prop::sample::select(vec![
        "droptail",
        "step:at=3ms",
        "codel",
        "codel:ecn=on",
        "pie",
        "pie:ecn=on",
        "dualpi2",
        "fq_codel",
        "priority",
    ]);
    let buffer = prop_oneof![(2u32..300).prop_map(|packets| format!("{packets}p")), Just("1bdp".to_owned())];
    let loss = prop::sample::select(vec!["0", "0", "0.1%", "2%", "ge:p=1%,r=30%"]);
    let jitter = prop::sample::select(vec!["0ms", "0ms", "3ms", "20ms:normal"]);
    let reordering = prop::sample::select(vec!["0:0ms", "0:0ms", "1%:5ms", "10%:40ms"]);
    (1u32..20, 0u32..150, queue, buffer, loss, jitter, reordering).prop_map(
        |(mbit, ms, queue, buffer, loss, jitter, reordering)| {
            format!(
                "[bottleneck]\nrate = \"{mbit}mbit\"\nrtt = \"{ms}ms\"\nbuffer = \"{buffer}\"\nqueue = \"{queue}\"\n\
                 loss = \"{loss}\"\njitter = \"{jitter}\"\nreordering = \"{reordering}\"\n"
            )
        },
    )
}

fn source() -> impl Strategy<Value = String> {
    let stop = format!("stop = \"{STOP_S}s\"\n");
    prop_oneof![
        Just(stop.clone()),
        (1u32..300_000).prop_map(|size| format!("size = \"{size}B\"\n")),
        Just(format!("source = \"onoff:on=300ms,off=300ms\"\n{stop}")),
        Just(format!("source = \"web:load=500kbit\"\n{stop}")),
        (1u32..60_000, 1u32..20, 1u32..5, 0u32..500).prop_map(|(size, count, parallel, think)| {
            format!("source = \"connections:size={size}B,count={count},parallel={parallel},think={think}ms\"\n")
        }),
        (1u32..60_000, 1u32..20, 1u32..100).prop_map(|(size, count, rate)| {
            format!("source = \"connections:size={size}B,count={count},rate={rate}\"\n")
        }),
        (1u32..9000).prop_map({
            let stop = stop.clone();
            move |bytes| format!("source = \"poisson:bytes={bytes}B,mean=30ms\"\n{stop}")
        }),
        (1u32..9000).prop_map(move |bytes| format!("source = \"cbr:bytes={bytes}B,interval=40ms\"\n{stop}")),
    ]
}

fn flow() -> impl Strategy<Value = String> {
    let law = prop::sample::select(Law::NAMES.to_vec());
    let class = prop::sample::select(vec!["foreground", "background"]);
    (law, source(), any::<bool>(), 1u32..4, any::<bool>(), 0u32..3000, prop::bool::weighted(0.2), class).prop_map(
        |(law, source, udp, ack_every, pacing, start, reverse, class)| {
            let cc = format!("cc = \"{law}\"\ntcp = {{ ack_every = {ack_every}, pacing = {pacing} }}\n");
            let udp = udp && (source.contains("poisson") || source.contains("cbr"));
            let direction = if reverse { "direction = \"reverse\"\n" } else { "" };
            format!("{}{source}start = \"{start}ms\"\nclass = \"{class}\"\n{direction}", if udp { "" } else { &cc })
        },
    )
}

fn text() -> impl Strategy<Value = String> {
    let flows = prop::collection::vec(flow(), 1..5);
    (any::<u32>(), bottleneck(), prop::option::of(1u32..10), flows).prop_map(|(seed, bottleneck, reverse, flows)| {
        let mut text = format!("seed = {seed}\nduration = \"{END_S}s\"\n{bottleneck}");
        if let Some(mbit) = reverse {
            text += &format!("[reverse]\nrate = \"{mbit}mbit\"\nrtt = \"20ms\"\nbuffer = \"50p\"\n");
        }
        for (n, flow) in flows.iter().enumerate() {
            text += &format!("[[flow]]\nname = \"f{n}\"\n{flow}");
        }
        text
    })
}

/// Counts of a flow's packets.
#[derive(Clone, Default)]
struct Count {
    syns_left: u64,
    data_left: u64,
    data_arrived: u64,
    bytes_arrived: u64,
    /// The flow's last packet.
    last: Duration,
    /// The longest time in which none of its packets arrived.
    silence: Duration,
}

/// Watches every packet.
struct Audit {
    directions: Vec<Direction>,
    /// The rates of the two ways in bits per second; `None`: unlimited.
    rates: [Option<u64>; 2],
    bits_arrived: [u128; 2],
    flows: Vec<Count>,
    left: u64,
    arrived: u64,
}

impl Audit {
    fn new(scenario: &Scenario) -> Self {
        let bits = |rate: Rate| rate.bits_per_second();
        Self {
            directions: scenario.flows.iter().map(|flow| flow.direction).collect(),
            rates: [Some(bits(scenario.bottlenecks[0].rate)), scenario.reverse.as_ref().map(|link| bits(link.rate))],
            bits_arrived: [0; 2],
            flows: vec![Count::default(); scenario.flows.len()],
            left: 0,
            arrived: 0,
        }
    }
}

impl Observer for Audit {
    fn wants_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, packet: &PacketEvent) {
        let since_start = Duration::from_nanos(packet.now.as_nanos());
        let count = &mut self.flows[packet.flow];
        let (syn, data) = match packet.content {
            Content::Segment(segment) => (segment.syn, segment.bytes > 0),
            Content::Datagram(_) => (false, true),
            Content::Acknowledgement(_) => (false, false),
        };
        if packet.leaving {
            self.left += 1;
            count.syns_left += u64::from(syn);
            count.data_left += u64::from(data);
            return;
        }
        self.arrived += 1;
        count.silence = count.silence.max(since_start - count.last);
        count.last = since_start;
        if data {
            count.data_arrived += 1;
            if let Content::Segment(segment) = packet.content {
                count.bytes_arrived += u64::from(segment.bytes);
            }
        }
        let forward = (self.directions[packet.flow] == Direction::Forward) == packet.from_sender;
        let way = usize::from(!forward);
        self.bits_arrived[way] += u128::from(packet.bytes) * 8;
        if let Some(rate) = self.rates[way] {
            let possible = u128::from(rate) * u128::from(packet.now.as_nanos()) / 1_000_000_000 + 1;
            assert!(self.bits_arrived[way] <= possible, "more than the link carries, at {since_start:?}");
        }
    }
}

fn check(scenario: &Scenario, outcome: &Outcome, audit: &Audit) {
    // Nothing is under way any more.
    let dropped: u64 = outcome.bottlenecks.iter().map(|link| link.drops + link.losses).sum();
    assert_eq!(audit.left, audit.arrived + dropped, "every packet arrived or was dropped");
    assert_eq!(outcome.packets, audit.flows.iter().map(|count| count.data_arrived).sum::<u64>());
    for ((flow, result), count) in scenario.flows.iter().zip(&outcome.flows).zip(&audit.flows) {
        let name = &flow.name;
        let Transport::Tcp(tcp) = &flow.transport else {
            assert_eq!((result.retransmits, result.finished_s), (0, None), "{name}");
            continue;
        };
        assert!(result.acked_bytes <= count.bytes_arrived, "{name}: acknowledged what had not come");
        let lost = count.data_left - count.data_arrived;
        assert!(result.retransmits >= lost, "{name}: {lost} lost, {} sent again", result.retransmits);
        // Timeouts double up to 120 s; a law may wait for 48 round trips between two segments.
        assert!(count.silence < Duration::from_secs(600), "{name}: nothing for {:?}", count.silence);
        match &flow.source {
            Source::Web(_) => {
                // A page that had begun is finished even if its flow is stopped: its unsent rest is taken back.
                assert!(result.transfers.len() as u64 <= count.syns_left, "{name}: more pages than connections");
                assert!(
                    result.transfers.iter().all(|it| it.completion_s >= flow.rtt.as_secs_f64()),
                    "{name}: too fast"
                );
            }
            source => {
                let finished = result.finished_s.unwrap_or_else(|| panic!("{name} never ends: {result:?}"));
                let parts = match source {
                    Source::Sized(size) => Some((*size, 1)),
                    Source::Connections(it) => Some((it.size, u64::from(it.count))),
                    _ => None,
                };
                if let Some((size, number)) = parts {
                    assert_eq!(result.acked_bytes, size * number, "{name}");
                    let segments = size.div_ceil(u64::from(tcp.mss)) * number;
                    assert_eq!(count.data_left - result.retransmits, segments, "{name}: segments sent once");
                    let least = flow.start.as_secs_f64() + 2.0 * flow.rtt.as_secs_f64();
                    assert!(finished >= least, "{name}: {finished} s, before a handshake and a round trip");
                } else {
                    assert!(finished >= flow.stop.unwrap_or_default().as_secs_f64(), "{name}: before its stop");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_packet_is_accounted_for(text in text()) {
        let scenario = scenario(&text);
        let mut audit = Audit::new(&scenario);
        let outcome = run(&scenario, &mut audit);
        check(&scenario, &outcome, &audit);
    }
}
