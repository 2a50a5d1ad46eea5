// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every delay-based law, on any network.

use crate::{Ack, Congestion, CongestionControl, EcnUse, Flow, Law, Reaction, Recovered, Restart, Signal, Time};
use proptest::prelude::*;
use std::time::Duration;

const MSS: u32 = 1000;

/// The laws, each with its least window in segments.
const LAWS: [(&str, f64); 10] = [
    ("vegas", 1.0),
    ("vegas:variant=original", 1.0),
    ("ledbat", 1.0),
    ("ledbat:slow_start=on,gain=10", 1.0),
    ("ledbatpp", 1.0),
    ("ledbatpp:slowdown=off,max_divisor=1", 1.0),
    ("lp", 1.0),
    ("lp:variant=paper", 1.0),
    ("nice", 1.0 / 48.0),
    ("nice:min_cwnd=0.5,fraction=0", 0.5),
];

#[derive(Clone, Debug)]
enum Event {
    Ack { rtt: Option<u64>, one_way: Option<i64>, packets: u32, limited: bool, in_flight: u64 },
    Congestion(Signal),
    Spurious,
    Restart { idle: u64, window: Option<u64> },
}

fn event() -> impl Strategy<Value = Event> {
    let delay = prop_oneof![5 => 1_000u64..200_000_000, 1 => Just(0), 1 => any::<u64>()];
    let one_way = prop_oneof![5 => -1_000_000_000..1_000_000_000i64, 1 => any::<i64>()];
    prop_oneof![
        20 => (prop::option::of(delay), prop::option::of(one_way), 0..5u32, any::<bool>(), 0..100_000u64).prop_map(
            |(rtt, one_way, packets, limited, in_flight)| Event::Ack { rtt, one_way, packets, limited, in_flight }
        ),
        1 => prop::sample::select(vec![Signal::Loss, Signal::Ecn, Signal::Phantom, Signal::Timeout])
            .prop_map(Event::Congestion),
        1 => Just(Event::Spurious),
        1 => (0..4_000_000_000_000u64, prop::option::of(1_000..20_000u64)).prop_map(|(idle, window)| Event::Restart { idle, window }),
    ]
}

/// A law and the state of its transport.
struct Driver {
    law: Box<dyn CongestionControl>,
    now: Time,
    una: u64,
    nxt: u64,
    episode: Option<u64>,
}

impl Driver {
    fn new(text: &str) -> Self {
        let law: Law = text.parse().unwrap();
        let law = law.build(&Flow { mss: MSS, initial_window: 10, seed: 1 });
        Self { law, now: Time::ZERO, una: 0, nxt: 10_000, episode: None }
    }

    fn cwnd(&self) -> f64 {
        self.law.window() as f64 / f64::from(MSS)
    }

    /// The transport's side of an ACK: the sequence numbers, and the end of an episode.
    fn ack(&mut self, ack: &Ack) -> Reaction {
        self.now = self.now + Duration::from_millis(1);
        self.una += u64::from(ack.packets * MSS);
        self.nxt = self.nxt.max(self.una + self.law.window());
        let reducing = self.episode.is_some();
        let ack = Ack { now: self.now, una: self.una, nxt: self.nxt, reducing, ..*ack };
        let reaction = self.law.on_ack(&Ack { bytes: u64::from(ack.packets * MSS), ..ack });
        if reaction == Reaction::Reduced {
            self.episode = Some(self.nxt);
        }
        if self.episode.is_some_and(|end| self.una >= end) {
            self.episode = None;
            self.law.on_recovered(&Recovered { now: self.now, una: self.una, nxt: self.nxt });
        }
        reaction
    }

    fn take(&mut self, event: &Event) -> Reaction {
        if let Event::Restart { idle, .. } = *event {
            self.now = self.now + Duration::from_nanos(idle);
        }
        let Self { now, una, nxt, .. } = *self;
        match *event {
            Event::Ack { rtt, one_way, packets, limited, in_flight } => {
                return self.ack(&Ack {
                    packets,
                    rtt: rtt.map(Duration::from_nanos),
                    srtt: Duration::from_nanos(rtt.unwrap_or(1_000_000)),
                    one_way_delay: one_way,
                    in_flight,
                    window_limited: limited,
                    ..Ack::default()
                });
            }
            Event::Congestion(signal) => {
                if signal == Signal::Timeout || self.episode.is_none() {
                    self.law.on_congestion(&Congestion { now, signal, una, nxt, in_flight: nxt - una });
                    self.episode = Some(nxt).filter(|_| signal != Signal::Timeout);
                }
            }
            Event::Spurious => self.law.on_spurious(),
            Event::Restart { idle, window } => {
                self.law.on_restart(&Restart { now, idle: Duration::from_nanos(idle), nxt, window });
            }
        }
        Reaction::None
    }
}

#[test]
fn ecn_is_classic_and_off_by_default() {
    for name in ["vegas", "ledbat", "ledbatpp", "lp", "nice"] {
        assert_eq!(name.parse::<Law>().unwrap().ecn_use(), EcnUse::Off);
        assert_eq!(format!("{name}:ecn=on").parse::<Law>().unwrap().ecn_use(), EcnUse::Classic);
    }
}

proptest! {
    #[test]
    fn windows_stay_in_their_bounds(
        (text, least) in prop::sample::select(&LAWS[..]),
        events in prop::collection::vec(event(), 1..300),
    ) {
        let mut driver = Driver::new(text);
        for event in &events {
            let (before, reducing) = (driver.cwnd(), driver.episode.is_some());
            let reaction = driver.take(event);
            let after = driver.cwnd();
            prop_assert!(after >= least - 0.001, "{} segments after {:?}", after, event);
            if let Event::Ack { packets, limited, in_flight, .. } = *event {
                // By slow start at most, and by one segment at the end of a round; up to LEDBAT's minimum after a
                // timeout.
                let growth = f64::from(packets.max(1)) * if text.contains("gain=10") { 10.0 } else { 1.0 };
                prop_assert!(after <= before + growth + 0.002, "from {} to {} on {:?}", before, after, event);
                if reducing {
                    prop_assert!(after <= before && reaction == Reaction::None, "{:?} in an episode", event);
                } else if text == "ledbat" {
                    let allowed = in_flight as f64 / f64::from(MSS) + 1.0;
                    prop_assert!(after <= before.max(2.0) || after <= allowed + 1e-9, "{} of {} allowed", after, allowed);
                } else if !limited && !text.starts_with("ledbat:") {
                    prop_assert!(after <= before.max(2.0), "an unused window grew: {} to {}", before, after);
                }
                if reaction == Reaction::Reduced {
                    prop_assert!(after < before || before <= least + 0.001);
                }
            }
            let mut finite = true;
            driver.law.inspect(&mut |_, value| finite &= value.is_finite());
            prop_assert!(finite, "a value is not finite after {:?}", event);
        }
    }

    #[test]
    fn every_law_recovers_on_an_empty_path(
        (text, _) in prop::sample::select(&LAWS[..]),
        events in prop::collection::vec(event(), 1..100),
    ) {
        let mut driver = Driver::new(text);
        for event in &events {
            // Delays that a network can have.
            let possible = match *event {
                Event::Ack { rtt, one_way, .. } => {
                    rtt.is_none_or(|rtt| (1_000_000..1_000_000_000).contains(&rtt))
                        && one_way.is_none_or(|one_way| one_way.abs_diff(0) <= 1_000_000_000)
                }
                _ => true,
            };
            if possible {
                let _ = driver.take(event);
            }
        }
        // A new base, no queue above it, and time for slowdowns and memories to pass.
        let mut largest: f64 = 0.0;
        for _ in 0..2000 {
            largest = largest.max(driver.cwnd());
            let _ = driver.ack(&Ack {
                packets: 4,
                rtt: Some(Duration::from_nanos(900)),
                srtt: Duration::from_nanos(900),
                one_way_delay: Some(-1_000_000_001),
                in_flight: 200_000,
                window_limited: true,
                ..Ack::default()
            });
        }
        prop_assert!(largest > 5.0, "{} stays at {}", text, largest);
    }
}
