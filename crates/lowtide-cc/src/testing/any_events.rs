// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any sequence of events, for tests: what must hold for a law whatever happens.

use crate::{
    Ack, Congestion, CongestionControl, Reaction, Recovered, Restart, Signal, Time, testing::marking_path::MSS,
};
use proptest::prelude::*;
use std::time::Duration;

/// What can happen to a flow.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Acks { segments: u32, marked: u32, rtt_us: u64, limited: bool, reducing: bool },
    Congestion(Signal),
    Recovered,
    Spurious,
    Restart(Option<u64>),
}

pub(crate) fn events() -> impl Strategy<Value = Vec<Event>> {
    let signals = vec![Signal::Loss, Signal::Ecn, Signal::Phantom, Signal::Timeout];
    let acks = (0u32..50, 0u32..50, 1u64..500_000, any::<bool>(), any::<bool>());
    let acks = acks.prop_map(|(segments, marked, rtt_us, limited, reducing)| {
        let marked = marked.min(segments);
        Event::Acks { segments, marked, rtt_us, limited, reducing }
    });
    let event = prop_oneof![
        8 => acks,
        2 => prop::sample::select(signals).prop_map(Event::Congestion),
        1 => Just(Event::Recovered),
        1 => Just(Event::Spurious),
        1 => prop::option::of(0u64..1_000_000).prop_map(Event::Restart),
    ];
    prop::collection::vec(event, 0..400)
}

/// Drives a law and checks after each event that its window is at least a segment, that it grew no faster than slow
/// start and only if it limited the sender, that congestion does not raise it, and that all it shows is finite. A law
/// that rounds its window up has up to a segment of `slack`.
pub(crate) fn check(law: &mut dyn CongestionControl, events: &[Event], slack: u64) -> Result<(), TestCaseError> {
    let mss = u64::from(MSS);
    let (mut now, mut una) = (Time::ZERO, 0);
    for event in events {
        let before = law.window();
        match *event {
            Event::Acks { segments, marked, rtt_us, limited, reducing } => {
                let rtt = Duration::from_micros(rtt_us);
                let bytes = u64::from(segments) * mss;
                now = now + rtt / 10;
                una += bytes;
                let reaction = law.on_ack(&Ack {
                    now,
                    packets: segments,
                    bytes,
                    marked,
                    rtt: Some(rtt),
                    srtt: rtt,
                    una,
                    nxt: una + before,
                    in_flight: before,
                    window_limited: limited,
                    reducing,
                    ..Ack::default()
                });
                let growth = 1 + if limited { bytes } else { 0 }; // windows are rounded down to bytes
                prop_assert!(law.window() <= before + growth + slack, "{event:?}: {before} to {}", law.window());
                prop_assert!(reaction == Reaction::None || law.window() <= (before + growth + slack).max(2 * mss));
            }
            Event::Congestion(signal) => {
                law.on_congestion(&Congestion { now, signal, una, nxt: una + before, in_flight: before });
                let most = if signal == Signal::Timeout { 2 * mss } else { before.max(2 * mss) };
                prop_assert!(law.window() <= most, "{event:?}: {before} to {}", law.window());
            }
            Event::Recovered => law.on_recovered(&Recovered { now, una, nxt: una + before }),
            Event::Spurious => {
                law.on_spurious();
                prop_assert!(law.window() >= before);
            }
            Event::Restart(window) => {
                law.on_restart(&Restart { now, idle: Duration::from_secs(1), nxt: una, window });
                prop_assert!(law.window() <= before.max(2 * mss));
            }
        }
        prop_assert!(law.window() >= mss && law.window() < 1 << 40);
        let mut finite = true;
        law.inspect(&mut |_, value| finite &= value.is_finite());
        prop_assert!(finite);
    }
    // However it was left, acknowledgements let it grow again.
    law.on_recovered(&Recovered { now, una, nxt: una });
    let (rtt, mut before) = (Duration::from_millis(10), 0);
    for round in 0..210 {
        if round == 10 {
            before = law.window(); // what came before has had its effect
        }
        let bytes = law.window() / mss * mss;
        now = now + rtt;
        una += bytes;
        let packets = (bytes / mss) as u32;
        let ack =
            Ack { now, packets, bytes, srtt: rtt, rtt: Some(rtt), una, nxt: una, in_flight: bytes, ..Ack::default() };
        let _ = law.on_ack(&Ack { window_limited: true, ..ack });
    }
    prop_assert!(law.window() > before);
    Ok(())
}

/// Applies one event as it is, for what has bounds of its own.
pub(crate) fn apply(law: &mut dyn CongestionControl, event: &Event) {
    let (mss, window) = (u64::from(MSS), law.window());
    let now = Time::from_nanos(1_000_000_000);
    match *event {
        Event::Acks { segments, marked, rtt_us, limited, reducing } => {
            let rtt = Duration::from_micros(rtt_us);
            let bytes = u64::from(segments) * mss;
            let _ = law.on_ack(&Ack {
                now: now + rtt,
                packets: segments,
                bytes,
                marked,
                rtt: Some(rtt),
                srtt: rtt,
                one_way_delay: Some(rtt_us as i64 * 500),
                una: bytes,
                nxt: bytes + window,
                in_flight: window,
                window_limited: limited,
                reducing,
                ..Ack::default()
            });
        }
        Event::Congestion(signal) => {
            law.on_congestion(&Congestion { now, signal, una: 0, nxt: window, in_flight: window });
        }
        Event::Recovered => law.on_recovered(&Recovered { now, una: 0, nxt: window }),
        Event::Spurious => law.on_spurious(),
        Event::Restart(window) => {
            law.on_restart(&Restart { now, idle: Duration::from_secs(1), nxt: 0, window });
        }
    }
}
