// SPDX-License-Identifier: MIT OR Apache-2.0
//! Port and reference are driven with the same events: the same decisions, and windows within a stated bound.

mod path;

use lowtide_cc::{Ack, Congestion, CongestionControl, Flow, Law, Reaction, Recovered, Restart, Signal, Time};
use lowtide_port::Ported;
use path::{MSS, Path};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use std::time::Duration;

const FLOW: Flow = Flow { mss: MSS, initial_window: 10, seed: 1 };

/// By how many times more than its window the rate of a law that paces may differ: that of a share of a segment or two
/// does so by what CUBIC's curve differs by at its start.
const PACE: f64 = 5.0;

/// A law in several settings, and by how much the windows may differ: a part of the window, and segments.
struct Case {
    law: &'static str,
    /// Whether the path marks.
    marks: bool,
    weights: &'static [f64],
    part: f64,
    segments: f64,
}

/// Integers of 2⁻¹⁶ segments lose at most one such unit for each ACK that moves the window: the bounds leave room for a
/// few thousand in a row. A decision at the edge of a comparison may fall the other way, which is worth a segment to
/// Vegas for a round trip. To LEDBAT++ it can be a slowdown that ends one ACK later, and all later ones with it: that
/// happens to three of twenty flows of half a million ACKs, none of them here. Prague v0.7 as the reference has it
/// rounds its window up to whole segments, at least two; steered by rate, its growth depends on the virtual window's
/// whole segments, and one more or less of them is a few percent until the next mark. CDG's smallest windows are paced
/// shares, which have no slow start and grow by what their ACKs integrate to (budget.h): up to four segments after a
/// timeout, until the next reduction. Its G, floor and weights are whole numbers of the port in these cases, as each
/// last bit is a decision. CUBIC's K is a cube root: where the window is one such unit below Wmax instead of at it, it
/// is 34 ms (18 ms with C = 2.5), and the curve by so much later. With whole segments, a reduction's product that real
/// numbers have just below a whole number is a segment less there.
const CASES: &[Case] = &[
    Case { law: "vegas", marks: false, weights: &[], part: 1e-3, segments: 0.01 },
    Case { law: "vegas:alpha=10,beta=12,gamma=3,backoff=0.7", marks: false, weights: &[], part: 1e-3, segments: 0.01 },
    Case { law: "dctcp", marks: true, weights: &[], part: 1e-3, segments: 0.01 },
    Case { law: "dctcp:accel=on,overload=on", marks: true, weights: &[], part: 1e-3, segments: 0.01 },
    Case { law: DCTCP_OTHERWISE, marks: true, weights: &[0.01, 0.3, 1.0], part: 1e-3, segments: 0.01 },
    Case { law: "prague:variant=v0.6", marks: true, weights: &[], part: 1e-3, segments: 0.01 },
    Case {
        law: "prague:variant=v0.6,accel=on,overload=on,transition=20",
        marks: true,
        weights: &[],
        part: 1e-3,
        segments: 0.01,
    },
    Case {
        law: "prague:variant=v0.6,mode=scalable,transition=3,accel=on",
        marks: true,
        weights: &[],
        part: 1e-3,
        segments: 0.01,
    },
    Case { law: "prague:cwnd_mode=window", marks: true, weights: &[], part: 1e-3, segments: 2.01 },
    Case { law: SWITCHING, marks: true, weights: &[], part: 1e-3, segments: 2.01 },
    Case { law: PRAGUE_OTHERWISE, marks: true, weights: &[0.05, 1.0], part: 0.04, segments: 2.01 },
    Case {
        law: "vegas:gap=3.5,alpha_base=20",
        marks: false,
        weights: &[0.004, 0.1, 0.37, 1.0],
        part: 1e-3,
        segments: 0.01,
    },
    Case { law: "eclipse", marks: false, weights: &[], part: 1e-3, segments: 0.01 },
    Case {
        law: "eclipse:guard=on,delta_floor=1,cwnd_min=2,mu=fixed,slow_start=loss",
        marks: false,
        weights: &[],
        part: 1e-3,
        segments: 0.01,
    },
    Case { law: "eclipse:drain=2s,mu=literal,alpha=0.25", marks: false, weights: &[], part: 1e-3, segments: 0.01 },
    Case { law: "eclipse", marks: false, weights: &[0.00390625, 0.125, 0.375, 1.0], part: 1e-3, segments: 0.01 },
    Case { law: "ledbat", marks: false, weights: &[], part: 1e-3, segments: 0.01 },
    Case {
        law: "ledbat:target=25ms,gain=0.75,slow_start=on,base_history=2,current_filter=1,beta=0.7",
        marks: false,
        weights: &[],
        part: 1e-3,
        segments: 0.01,
    },
    Case { law: "ledbatpp", marks: false, weights: &[], part: 1e-3, segments: 0.01 },
    Case {
        law: "ledbatpp:target=15ms,constant=0.25,slowdown_interval=3,current_filter=9,max_divisor=4",
        marks: false,
        weights: &[],
        part: 1e-3,
        segments: 0.01,
    },
    Case { law: "cdg:g=3,hystart=off", marks: false, weights: &[], part: 0.01, segments: 2.01 },
    Case { law: CDG_TOLERANT, marks: false, weights: &[], part: 0.01, segments: 2.01 },
    Case { law: CDG_WITH_FLOOR, marks: false, weights: &[], part: 0.01, segments: 1.01 },
    Case {
        law: "cdg:g=3,hystart=off,shadow=on,ineff=5,hold=2",
        marks: false,
        weights: &[],
        part: 0.01,
        segments: 2.01,
    },
    Case { law: THESIS, marks: false, weights: &[], part: 0.01, segments: 4.01 },
    Case { law: THESIS_TOLERANT, marks: false, weights: &[], part: 0.01, segments: 4.01 },
    Case {
        law: "cdg:blend=off,hystart=off",
        marks: false,
        weights: &[0.00390625, 0.125, 1.0],
        part: 0.01,
        segments: 2.01,
    },
    Case { law: CDG_CUBIC, marks: false, weights: &[], part: 0.01, segments: 2.01 },
    Case { law: "cubic", marks: false, weights: &[], part: 1e-3, segments: 0.01 },
    Case { law: "cubic:variant=linux,paced=on", marks: false, weights: &[], part: 1e-3, segments: 1.01 },
    Case {
        law: "cubic:variant=2008,fast_convergence=off,low_window=4",
        marks: false,
        weights: &[],
        part: 1e-3,
        segments: 0.01,
    },
    Case { law: "tide", marks: false, weights: &[], part: 1e-3, segments: 0.01 },
    Case { law: TIDE_SHARING, marks: false, weights: &[0.00390625, 0.125, 0.5, 1.0], part: 0.01, segments: 0.01 },
    Case { law: STEEP_CUBIC, marks: false, weights: &[], part: 1e-3, segments: 0.01 },
];

const DCTCP_OTHERWISE: &str = "dctcp:gain=0.1,alpha=0,beta=0.7,cwr_increase=on,accel=on,accel_q=5.3%,accel_cycles=0,accel_literal=on,overload=on,\
    overload_q=2ms,overload_aqm=3ms,overload_base=10s,overload_rounds=every";
const PRAGUE_OTHERWISE: &str =
    "prague:alpha_mode=one,mode=additive,target=10ms,transition=2,cwnd_mode=rate,min_rate=500,accel=on,overload=on";

/// Steers by window or by rate, as its window is below some segments or above. This and the one before, which steers by
/// rate, are not for random events: with delays from 0.3 to 500 ms the last bit of a window can be worth hundreds of
/// segments there.
const SWITCHING: &str = "prague";

/// Nor is this one: nothing but the curve, whose start is so steep that a last bit of a window of two segments is a
/// part of a segment.
const STEEP_CUBIC: &str = "cubic:c=2.5,beta=0.5,reno_friendly=off,hystart=delay";

/// Nor this one, which keeps its base round trip over idle times, where the reference forgets it.
const CDG_WITH_FLOOR: &str = "cdg:hystart=on,g=1,window=4,floor=2ms,filter=off";

/// Nor these, to which a loss says more or less by what they know of the queue: they forget that with the end of an
/// episode, which random events do not always have.
const CDG_TOLERANT: &str = "cdg:g=3,hystart=delay,shadow=on,ineff=5,tolerance=on";
const THESIS_TOLERANT: &str = "cdg:variant=thesis,tolerance=on,g=20";

/// Nor this one: an idle time that leaves the window as it is says nothing to the port.
const CDG_CUBIC: &str = "cdg:g=3,increase=cubic,hystart=off";

/// Nor the thesis': a threshold below four segments, after a timeout, has a slow start there and none here.
const THESIS: &str = "cdg:variant=thesis,g=3";

/// Nor Tide with a weight (the parameter is as without it): a few packets at a time its share comes exactly to where
/// CUBIC's slope changes (RFC 9438, section 4.3), and the last bit decides.
const TIDE_SHARING: &str = "tide:drain=10s";

/// Not for random events.
const PATH_ONLY: &[&str] = &[
    SWITCHING,
    TIDE_SHARING,
    PRAGUE_OTHERWISE,
    STEEP_CUBIC,
    CDG_WITH_FLOOR,
    CDG_TOLERANT,
    CDG_CUBIC,
    THESIS,
    THESIS_TOLERANT,
];

/// Both, side by side.
struct Pair {
    reference: Box<dyn CongestionControl>,
    port: Box<dyn CongestionControl>,
}

impl Pair {
    fn new(text: &str) -> Self {
        let law: Law = text.parse().unwrap();
        Self { reference: law.build(&FLOW), port: Ported::new(&law).unwrap().build(&FLOW) }
    }

    fn each(&mut self, mut act: impl FnMut(&mut dyn CongestionControl)) {
        act(&mut *self.reference);
        act(&mut *self.port);
    }

    fn ack(&mut self, ack: &Ack) -> (Reaction, Reaction) {
        (self.reference.on_ack(ack), self.port.on_ack(ack))
    }

    /// The windows, in segments.
    fn windows(&self) -> [f64; 2] {
        [&self.reference, &self.port].map(|law| law.window() as f64 / f64::from(MSS))
    }

    fn check(&self, case: &Case) -> Result<(), String> {
        let [reference, port] = self.windows();
        if (reference - port).abs() > case.segments + case.part * reference {
            return Err(format!("{}: the reference has {reference} segments, the port {port}", case.law));
        }
        // what else a port leaves to the stack
        let [reference, port] = [&self.reference, &self.port].map(|law| law.least_burst());
        if reference != port {
            return Err(format!("{}: the reference sends {reference} at once, the port {port}", case.law));
        }
        let [reference, port] = [&self.reference, &self.port].map(|law| law.pacing_rate());
        let (Some(paced), Some(port)) = (reference, port) else { return Ok(()) };
        let most = PACE * case.part * paced as f64 + f64::from(MSS) / 100.0;
        if paced.abs_diff(port) as f64 <= most {
            return Ok(());
        }
        Err(format!("{}: the reference sends {paced} bytes in a second, the port {port}", case.law))
    }
}

/// What can happen to a flow.
#[derive(Clone, Debug)]
enum Event {
    Acks { segments: u32, marked: u32, rtt_us: u64, return_us: u64, limited: bool, reducing: bool },
    Congestion(Signal),
    Recovered,
    Spurious,
    Restart(Option<u64>),
    Weight(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let signals = vec![Signal::Loss, Signal::Ecn, Signal::Phantom, Signal::Timeout];
    let acks = (1u32..40, 0u32..40, 10u64..17_000, 0.0..1.0, any::<bool>(), 0u32..10);
    let acks = acks.prop_map(|(segments, marked, rtt, back, limited, reducing)| {
        // Of a prime number of microseconds, so that none is tenths of milliseconds above another, where real numbers
        // in seconds decide by their last bit.
        let (marked, rtt_us) = (marked.min(segments), 37 * rtt);
        let return_us = (rtt_us as f64 * back) as u64;
        Event::Acks { segments, marked, rtt_us, return_us, limited, reducing: reducing == 0 }
    });
    let event = prop_oneof![
        24 => acks,
        2 => prop::sample::select(signals).prop_map(Event::Congestion),
        1 => Just(Event::Recovered),
        1 => Just(Event::Spurious),
        1 => prop::option::of(0u64..1_000_000).prop_map(Event::Restart),
        1 => (0usize..8).prop_map(Event::Weight),
    ];
    prop::collection::vec(event, 0..600)
}

/// Of the receiver's clock, nanoseconds.
const OFFSET: i64 = -123_456_789_000;

/// Drives both and looks at them after each event. `one_way`: the receiver sends timestamps.
fn drive(case: &Case, events: &[Event], one_way: bool) -> Result<(), String> {
    let mut pair = Pair::new(case.law);
    let (mut now, mut una) = (Time::from_nanos(1_000_000), 1u64);
    let mut reported = [0; 4];
    for event in events {
        let in_flight = pair.reference.window() / u64::from(MSS) * u64::from(MSS);
        let nxt = una + in_flight;
        match *event {
            Event::Acks { segments, marked, rtt_us, return_us, limited, reducing } => {
                let rtt = Duration::from_micros(rtt_us);
                // no more is acknowledged than was in flight
                let segments = segments.min((in_flight / u64::from(MSS)) as u32).max(1);
                let marked = marked.min(segments);
                now = now + Duration::from_micros(rtt_us / 10); // the kernel's clock has whole microseconds
                let bytes = u64::from(segments) * u64::from(MSS);
                una += bytes;
                let [before, _] = pair.windows();
                let (reference, port) = pair.ack(&Ack {
                    now,
                    packets: segments,
                    bytes,
                    marked,
                    rtt: Some(rtt),
                    srtt: rtt,
                    one_way_delay: one_way.then_some(OFFSET + 1000 * (rtt_us - return_us) as i64),
                    una,
                    nxt: una + in_flight,
                    in_flight,
                    window_limited: limited,
                    reducing,
                    ..Ack::default()
                });
                // a reduction by less than the bound is none
                let [after, _] = pair.windows();
                if reference != port && before - after > case.segments + case.part * before {
                    return Err(format!(
                        "{}: the reference says {reference:?}, the port {port:?} at {:?}",
                        case.law,
                        pair.windows()
                    ));
                }
            }
            // a kind of congestion is reported once for each window of data
            Event::Congestion(signal) if signal != Signal::Timeout && una <= reported[signal as usize] => {}
            Event::Congestion(signal) => {
                reported[signal as usize] = nxt;
                pair.each(|law| law.on_congestion(&Congestion { now, signal, una, nxt, in_flight }));
            }
            Event::Recovered => pair.each(|law| law.on_recovered(&Recovered { now, una, nxt })),
            Event::Spurious => pair.each(|law| law.on_spurious()),
            Event::Restart(window) => {
                let idle = Duration::from_secs(1);
                now = now + idle;
                pair.each(|law| law.on_restart(&Restart { now, idle, nxt, window }));
            }
            Event::Weight(_) if case.weights.is_empty() => {}
            Event::Weight(n) => {
                let weight = case.weights[n % case.weights.len()];
                pair.each(|law| law.weighted().unwrap().set_weight(weight));
                continue; // the C law gets it with the next event
            }
        }
        pair.check(case).map_err(|error| format!("{error} after {event:?}"))?;
    }
    Ok(())
}

/// The same lives each time: among many thousands of others there is one where a decision at the edge of a comparison
/// falls the other way, as the last bit of a window has it, which says nothing about the port.
#[test]
fn any_events() {
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let lives = (events(), any::<bool>());
    let outcome = runner.run(&lives, |(events, one_way)| {
        let mut cases = CASES.iter().filter(|case| !PATH_ONLY.contains(&case.law));
        cases.try_for_each(|case| drive(case, &events, one_way)).map_err(TestCaseError::fail)
    });
    outcome.unwrap();
}

/// A million ACKs of a flow that fills a link, with others that come and go, losses, and lulls. The reference's window
/// is the one that sends; the port only listens.
#[test]
fn a_million_acks_on_a_path() {
    for case in CASES {
        let weights = if case.weights.is_empty() { &[f64::NAN] } else { case.weights };
        let settings = weights.iter().flat_map(|weight| [(weight, true), (weight, false)]);
        for (n, (weight, one_way)) in settings.enumerate() {
            let base = Duration::from_millis(20 << (n % 3));
            let begin = |life: u64| {
                let mut pair = Pair::new(case.law);
                if weight.is_finite() {
                    pair.each(|law| law.weighted().unwrap().set_weight(*weight));
                }
                let seed = n as u64 + 1 + 100 * life;
                let path = if case.marks {
                    Path::new(base, 8300.0, 1000.0, one_way, seed)
                        .marking(Duration::from_millis(3), Duration::from_secs(7))
                } else {
                    Path::new(base, 830.0, 50.0, one_way, seed)
                };
                (pair, path)
            };
            // CDG's random number may fall between the port's exponential and the reference's, which are 2e-5 apart: a
            // reduction more or less in some ten thousand rounds. Tide yields, or not, at the edge of a comparison. The
            // windows then stay apart, so the pair begins again after a hundred ACKs: CDG may do so twice in half a
            // million ACKs, Tide ten times (0 to 8 with 20 seeds)
            let (most_decisions, most_lives) = match case.law.split(':').next() {
                Some("cdg") => (2, 2),
                Some("tide") => (0, 10),
                _ => (0, 0),
            };
            let (mut pair, mut path) = begin(0);
            let (mut acks, mut apart, mut decisions) = (0u64, 0u64, 0u64);
            let (mut in_a_row, mut lives, mut longest) = (0, 0, Duration::ZERO);
            while acks < 500_000 / weights.len() as u64 {
                acks += path.step(&mut pair);
                in_a_row = if pair.check(case).is_err() { in_a_row + 1 } else { 0 };
                apart += u64::from(in_a_row > 0);
                longest = longest.max(path.lasted());
                if in_a_row > 100 && most_lives > 0 {
                    (decisions, lives, in_a_row) = (decisions + path.apart, lives + 1, 0);
                    (pair, path) = begin(lives);
                }
            }
            decisions += path.apart;
            let run = format!("{} of {weight}", case.law);
            assert!(decisions <= most_decisions, "{run}: {decisions} decisions differ");
            assert!(lives <= most_lives, "{run}: {lives} times apart for long, {:?}", pair.windows());
            // Tide knows waits of five minutes
            let least = if case.law.starts_with("tide") && case.weights.is_empty() { 600 } else { 0 };
            assert!(longest.as_secs() >= least, "{run}: together for {longest:?} at the most");
            // a decision at the edge of a comparison lasts a round trip
            assert!(apart * 150 <= acks, "{run}: apart at {apart} of {acks} ACKs, {:?}", pair.windows());
        }
    }
}

/// A token bucket hides the queue that a ramp makes: both take it back, and fill the link.
#[test]
fn a_token_bucket_is_found_by_both() {
    let case = CASES.iter().find(|case| case.law == "tide").unwrap();
    for bucket in [12, 20, 30, 50] {
        let mut pair = Pair::new(case.law);
        let mut path = Path::new(Duration::from_millis(80), 830.0, 50.0, false, bucket).behind_bucket(bucket);
        let (mut acks, mut apart) = (0u64, 0u64);
        while acks < 100_000 {
            acks += path.step(&mut pair);
            apart += u64::from(pair.check(case).is_err());
        }
        assert!(path.used() > 0.95, "with {bucket} packets at once it uses {} of the link", path.used());
        // nothing makes them probe again, so where one decides an RTT before the other the difference lasts: with 50
        // packets at once for 6 ACKs in a thousand, with fewer for none. If one of them lacks the rule it is 3 ACKs in
        // 4
        assert!(apart * 50 <= acks, "with {bucket} packets at once apart at {apart} of {acks} ACKs");
    }
}

/// Behind fair queues bursts that come apart show a ramp that cross traffic is served in turn: both leave.
#[test]
fn a_fair_queue_is_found_by_both() {
    let case = CASES.iter().find(|case| case.law == "tide").unwrap();
    for base in [20, 40, 80] {
        let mut pair = Pair::new(case.law);
        let path = Path::new(Duration::from_millis(base), 4150.0, 400.0, false, base).behind_bucket(1);
        let mut path = path.served_in_turn(Duration::from_secs(5));
        let (mut acks, mut apart, mut shared) = (0u64, 0u64, 0u64);
        while acks < 200_000 {
            let step = path.step(&mut pair);
            acks += step;
            shared += if path.is_shared() { step } else { 0 };
            apart += u64::from(pair.check(case).is_err());
        }
        assert!(path.used() > 0.3, "{base} ms: it uses {} of the link, which is its own half of the time", path.used());
        assert!(
            shared * 12 <= acks,
            "{base} ms: {shared} of {acks} packets are sent in the time of another token holder"
        );
        // Windows that differ in the third decimal place may reach the BDP one ACK apart. Then one holds packets back
        // for its test an RTT before the other does: at 40 ms so for 9 ACKs in a thousand, at 20 and 80 ms for none.
        assert!(apart * 100 <= acks, "{base} ms: apart at {apart} of {acks} ACKs");
    }
}

/// Each leaves for much loss, and pauses for longer each time.
#[test]
fn much_loss_makes_both_pause() {
    let case = CASES.iter().find(|case| case.law == "tide").unwrap();
    let mut all = Vec::new();
    for loss in [0.06, 0.07, 0.08, 0.09, 0.1] {
        let mut pair = Pair::new(case.law);
        let mut path = Path::new(Duration::from_millis(40), 830.0, 50.0, false, 1).behind_bucket(1).losing(loss);
        let (mut heard, mut apart) = (0u64, 0u64);
        while heard < 50_000 {
            heard += path.step(&mut pair);
            apart += u64::from(pair.check(case).is_err());
        }
        all.push((apart, heard));
        assert!(path.used() < 0.13, "with a loss of {loss} it uses {} of the link", path.used());
    }
    // Windows that differ in the third decimal place may put the growth of one alone at a quarter or more. Then it
    // paces otherwise, and pauses for its losses. With one of these losses they so differ for a sixth of the ACKs.
    let apart: u64 = all.iter().map(|(apart, _)| apart).sum();
    let acks: u64 = all.iter().map(|(_, heard)| heard).sum();
    assert!(apart * 25 <= acks, "apart at {apart} of {acks} ACKs");
    let far = all.iter().filter(|(apart, heard)| apart * 150 > *heard).count();
    assert!(far <= 1, "apart with {far} of the losses: {all:?}");
}
