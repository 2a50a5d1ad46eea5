// SPDX-License-Identifier: MIT OR Apache-2.0
use crate::{
    Ack, Congestion, CongestionControl, EcnUse, Flow, Law, Random, Reaction, Recovered, Restart, Signal, Time,
    testing::{
        any_events::{check, events},
        marking_path::{MSS, Marking, Path, Seen},
    },
};
use proptest::prelude::*;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// A law, and the ACKs that reach it.
struct Driver {
    law: Box<dyn CongestionControl>,
    now: Time,
    una: u64,
    srtt: Duration,
    reducing: bool,
}

impl Driver {
    fn new(law: &str, srtt: Duration) -> Self {
        let flow = Flow { mss: MSS, initial_window: 10, seed: 1 };
        Self { law: law.parse::<Law>().unwrap().build(&flow), now: Time::ZERO, una: 0, srtt, reducing: false }
    }

    /// An RTT: one ACK of so many segments.
    fn round(&mut self, packets: u32, marked: u32) {
        assert_eq!(self.ack(packets, marked), Reaction::None);
    }

    fn ack(&mut self, packets: u32, marked: u32) -> Reaction {
        self.now = self.now + self.srtt;
        let bytes = u64::from(packets * MSS);
        self.una += bytes;
        self.law.on_ack(&Ack {
            now: self.now,
            packets,
            bytes,
            marked,
            rtt: Some(self.srtt),
            srtt: self.srtt,
            una: self.una,
            nxt: self.una + 1,
            in_flight: bytes,
            window_limited: true,
            reducing: self.reducing,
            ..Ack::default()
        })
    }

    fn signal(&mut self, signal: Signal) {
        self.law.on_congestion(&Congestion { now: self.now, signal, una: self.una, nxt: self.una, in_flight: 0 });
    }

    fn inner(&self, name: &str) -> f64 {
        let mut found = f64::NAN;
        self.law.inspect(&mut |key, value| {
            if key == name {
                found = value;
            }
        });
        found
    }

    fn cwnd(&self) -> f64 {
        self.inner("cwnd")
    }
}

#[test]
fn a_rate_without_a_least_one_does_not_vanish() {
    for mode in ["rate", "window", "switch"] {
        let mut driver = settled(&format!("prague:min_rate=0,cwnd_mode={mode},transition=0"), 5 * MS);
        for _ in 0..1000 {
            driver.signal(Signal::Loss);
            let _ = driver.ack(1, 0);
        }
        assert!(driver.law.pacing_rate().unwrap() > 0, "{mode}");
        driver.law.on_recovered(&Recovered { now: driver.now, una: driver.una, nxt: driver.una });
        for _ in 0..2000 {
            let _ = driver.ack(2, 0);
        }
        assert!(driver.law.pacing_rate().unwrap() > 100_000, "{mode}: {:?}", driver.law.pacing_rate());
    }
}

/// Past slow start by a loss, and old enough to be independent of its RTT.
fn settled(law: &str, srtt: Duration) -> Driver {
    let mut driver = Driver::new(law, srtt);
    for _ in 0..4 {
        driver.round(driver.cwnd() as u32, 0);
    }
    driver.signal(Signal::Loss);
    driver.law.on_recovered(&Recovered { now: driver.now, una: driver.una, nxt: driver.una });
    for _ in 0..4 {
        driver.round(1, 0);
    }
    driver
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

#[test]
fn texts_and_the_defaults_of_the_versions() {
    for text in [
        "prague",
        "prague:variant=v0.6",
        "prague:accel=on,accel_q=5%",
        "prague:variant=v0.6,transition=4",
        "prague:variant=v0.6,mode=additive,target=15ms",
        "prague:overload=on,overload_q=2ms",
    ] {
        assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
    }
    let default = |law: &str, key: &str| {
        let parameters = law.parse::<Law>().unwrap().parameters();
        parameters.into_iter().find(|entry| entry.0 == key).unwrap().1
    };
    for (key, v06, v07) in [
        ("gain", "0.0625", "0.0625"),
        ("alpha_mode", "one", "halve"),
        ("mode", "rate", "rate"),
        ("target", "25ms", "25ms"),
        ("transition", "500", "4"),
        ("max_rtt", "100ms", "100ms"),
        ("cwnd_mode", "window", "switch"),
        ("min_rate", "0", "100"),
        ("fallback", "off", "off"),
    ] {
        assert_eq!(
            (default("prague:variant=v0.6", key).as_str(), default("prague", key).as_str()),
            (v06, v07),
            "{key}"
        );
    }
    assert_eq!("prague".parse::<Law>().unwrap().ecn_use(), EcnUse::L4s);
    assert_eq!("prague:ecn=off".parse::<Law>().unwrap().ecn_use(), EcnUse::Off);
}

#[test]
fn alpha_waits_for_the_first_mark_which_halves_the_window() {
    for (law, start, after) in [("prague:variant=v0.6", 1.0, 15.5 / 16.0), ("prague", 0.0, 0.5 / 16.0)] {
        let mut driver = Driver::new(law, 30 * MS);
        driver.round(4, 0);
        driver.round(4, 0);
        assert_eq!(driver.inner("alpha"), start);
        driver.round(4, 2);
        assert_eq!(driver.inner("alpha"), after);
        let before = driver.cwnd();
        driver.signal(Signal::Ecn);
        let left = if start == 1.0 { 1.0 - after / 2.0 } else { 0.5 };
        assert!(near(driver.cwnd(), before * left));
        assert_eq!(driver.law.ssthresh(), Some((driver.cwnd() * f64::from(MSS)) as u64));
        let before = driver.cwnd();
        driver.signal(Signal::Ecn);
        assert!(near(driver.cwnd(), before * (1.0 - after / 2.0)));
    }
}

#[test]
fn unmarked_segments_grow_the_window_also_during_a_reduction() {
    let mut driver = settled("prague:mode=none,cwnd_mode=window", 30 * MS);
    for reducing in [false, true] {
        driver.reducing = reducing;
        let before = driver.cwnd();
        driver.round(10, 4);
        assert!(near(driver.cwnd(), before + 6.0 / before)); // 1 - p of a segment per RTT
        driver.round(10, 10);
        assert!(near(driver.cwnd(), before + 6.0 / before));
    }
    driver.signal(Signal::Loss);
    let before = driver.cwnd();
    driver.round(10, 0);
    assert_eq!(driver.cwnd(), before); // not in recovery
    driver.law.on_spurious();
    assert!(driver.cwnd() > before);
}

#[test]
fn short_round_trips_grow_as_the_target_s() {
    for (law, srtt, increase) in [
        ("prague", 10, 0.16),
        ("prague", 25, 1.0),
        ("prague", 60, 1.0),
        ("prague:target=20ms", 10, 0.25),
        ("prague:mode=none", 10, 1.0),
        ("prague:mode=additive", 25, 0.25),
        ("prague:mode=additive", 101, 1.0), // above max_rtt
        ("prague:mode=scalable", 101, 1.0),
        ("prague:transition=9", 10, 1.0), // too young
    ] {
        let mut driver = settled(law, srtt * MS);
        assert!(near(driver.inner("increase"), increase), "{law} {srtt}: {}", driver.inner("increase"));
        let before = driver.cwnd();
        driver.round(10, 0);
        assert!(near(driver.cwnd(), before + increase * 10.0 / before));
    }
}

#[test]
fn smaller_segments_grow_faster_in_number_from_v07_on() {
    let flow = Flow { mss: 698, initial_window: 10, seed: 1 }; // half of 1500 with headers
    for (law, factor) in [("prague:transition=9,alpha_mode=one", 2.0), ("prague:variant=v0.6", 1.0)] {
        let mut driver = settled(law, 30 * MS);
        driver.law = law.parse::<Law>().unwrap().build(&flow);
        driver.signal(Signal::Ecn);
        driver.round(1, 0);
        assert!(near(driver.cwnd(), 5.0 + factor / 5.0));
    }
}

#[test]
fn one_reduction_and_one_update_per_target_round_trip() {
    for (law, updates) in [("prague:cwnd_mode=window", 2), ("prague:mode=none,cwnd_mode=window", 5)] {
        let mut driver = settled(law, 10 * MS);
        let (mut reductions, mut changes, mut alpha) = (0, 0, driver.inner("alpha"));
        for _ in 0..5 {
            driver.round(10, 5);
            changes += u32::from(driver.inner("alpha") != alpha);
            alpha = driver.inner("alpha");
            let before = driver.cwnd();
            driver.signal(Signal::Ecn);
            reductions += u32::from(driver.cwnd() < before);
        }
        assert_eq!((reductions, changes), (updates, updates), "{law}"); // 0 and 30 ms, or all
    }
}

#[test]
fn a_cycle_of_acceleration_ends_with_each_episode() {
    let mut driver = settled("prague:accel=on,cwnd_mode=window", 10 * MS);
    driver.round(10, 1);
    driver.signal(Signal::Ecn);
    for _ in 0..2 {
        driver.round(10, 0);
    }
    assert_eq!(driver.inner("accel_c"), 1.0);
    let before = driver.cwnd();
    driver.signal(Signal::Ecn); // within the target: no reduction
    assert_eq!((driver.cwnd(), driver.inner("accel_c")), (before, 0.0));
}

#[test]
fn loss_timeout_undo_and_idleness() {
    for law in ["prague", "prague:variant=v0.6"] {
        let mut driver = settled(law, 30 * MS);
        let before = driver.cwnd();
        driver.signal(Signal::Loss);
        assert!(near(driver.cwnd(), before / 2.0));
        driver.law.on_spurious();
        assert_eq!(driver.cwnd(), before);
        driver.signal(Signal::Timeout);
        assert_eq!(driver.cwnd(), 1.0);
        assert_eq!(driver.law.ssthresh(), Some((before / 2.0 * f64::from(MSS)) as u64));
        driver.round(2, 0);
        assert_eq!(driver.cwnd(), 3.0); // slow start
        let window = Some(2 * u64::from(MSS));
        driver.law.on_restart(&Restart { now: driver.now, idle: 10 * MS, nxt: driver.una, window });
        assert_eq!(driver.cwnd(), 2.0);
    }
}

#[test]
fn paced_at_the_window_and_twice_that_far_below_the_threshold() {
    let mut driver = Driver::new("prague", 20 * MS);
    assert_eq!(driver.law.pacing_rate(), None);
    driver.round(2, 0);
    assert_eq!(driver.law.pacing_rate(), Some((2.0 * 12.0 * f64::from(MSS) / 0.020) as u64));
    let mut driver = settled("prague:variant=v0.6", 20 * MS);
    driver.round(2, 0);
    assert_eq!(driver.law.pacing_rate(), Some((driver.cwnd() * f64::from(MSS) / 0.020) as u64));
    let mut driver = Driver::new("prague:pacing=off", 20 * MS);
    driver.round(2, 0);
    assert_eq!(driver.law.pacing_rate(), None);
}

#[test]
fn below_two_segments_the_rate_limits() {
    let mut driver = settled("prague", 10 * MS);
    for _ in 0..100 {
        driver.round(2, 2);
        driver.signal(Signal::Ecn);
    }
    assert_eq!(driver.inner("by_rate"), 1.0);
    assert!(driver.cwnd() < 2.0);
    assert_eq!(driver.law.window(), 2 * u64::from(MSS));
    let rate = driver.law.pacing_rate().unwrap() as f64;
    assert!((12_500.0 / 1.04..=12_500.0 * 1.04).contains(&rate), "{rate}"); // 100 kbit/s
    // In the first half of a virtual RTT 1/32 more than in the second.
    let mut rates: Vec<u64> = Vec::new();
    for _ in 0..6 {
        driver.round(1, 1);
        rates.push(driver.law.pacing_rate().unwrap());
    }
    let (least, most) = (*rates.iter().min().unwrap() as f64, *rates.iter().max().unwrap() as f64);
    assert!((most / least - 1.03125 / 0.96875).abs() < 1e-3, "{rates:?}");

    let mut driver = settled("prague:variant=v0.6", 10 * MS);
    for _ in 0..600 {
        driver.round(2, 2);
        driver.signal(Signal::Ecn);
    }
    assert_eq!(driver.cwnd(), 2.0);
}

#[test]
fn a_classic_queue_gets_a_classic_reduction() {
    let reduction = |law: &str| {
        let mut driver = settled(law, 20 * MS);
        driver.round(1, 1); // from now on alpha is updated
        driver.signal(Signal::Ecn);
        for n in 0..600 {
            driver.srtt = if n % 8 < 4 { 20 * MS } else { 60 * MS };
            driver.round(50, 0);
        }
        driver.now = driver.now + 1000 * MS;
        let before = driver.cwnd();
        driver.signal(Signal::Ecn);
        driver.cwnd() / before
    };
    assert!(near(reduction("prague:variant=v0.6,fallback=on"), 1.0 - 0.625 / 2.0));
    assert!(reduction("prague:variant=v0.6") > 0.999); // alpha has decayed
}

#[test]
fn marks_that_an_overload_has_answered_do_not_reduce_again() {
    let mut driver = settled("prague:overload=on,mode=none,cwnd_mode=window", 15 * MS);
    driver.round(10, 10);
    driver.signal(Signal::Ecn); // `q_max` starts at 0
    driver.round(10, 0);
    driver.srtt = 30 * MS;
    let before = driver.cwnd();
    assert_eq!(driver.ack(10, 10), Reaction::Reduced);
    assert!(near(driver.cwnd(), before / 2.0)); // 15/30 of it was queue
    driver.signal(Signal::Ecn);
    assert!(near(driver.cwnd(), before / 2.0));
    driver.round(10, 10);
    driver.signal(Signal::Ecn);
    assert!(driver.cwnd() < before / 2.0);
}

#[test]
fn without_ecn_it_is_reno() {
    let flow = Flow { mss: MSS, initial_window: 10, seed: 1 };
    let mut law = "prague:ecn=off".parse::<Law>().unwrap().build(&flow);
    law.on_congestion(&Congestion { now: Time::ZERO, signal: Signal::Ecn, una: 0, nxt: 0, in_flight: 0 });
    assert_eq!(law.window(), 5 * u64::from(MSS));
    assert_eq!(law.pacing_rate(), None);
}

/// Rate in Mbit/s on a path that marks one segment in `every` and never fills.
fn rate(law: &str, every: f64, rtt: f64) -> f64 {
    let mut path = Path::new(law, 1e5, rtt, Marking::Even(every));
    path.run(20.0);
    let Seen { acked, .. } = path.run(60.0);
    acked as f64 * 1500.0 * 8.0 / 60e6
}

/// v0.7: `r = (1/p - 1) Mbit/s`, for any RTT below 25 ms, and `25 ms/RTT` of that above.
#[test]
fn the_rate_of_a_marking_probability() {
    for (every, rtt, expected) in [(50.0, 0.010, 49.0), (50.0, 0.020, 49.0), (100.0, 0.010, 99.0), (50.0, 0.050, 24.5)]
    {
        let rate = rate("prague", every, rtt);
        assert!((rate / expected - 1.0).abs() < 0.15, "{every} {rtt}: {rate}");
    }
    let (short, long) = (rate("prague:mode=none", 50.0, 0.010), rate("prague:mode=none", 50.0, 0.020));
    assert!((short / long - 2.0).abs() < 0.1, "{short} {long}");
}

#[test]
fn two_marks_per_round_trip() {
    let marks = |marking| {
        let mut path = Path::new("prague:mode=none", 1e5, 0.015, marking);
        path.run(10.0);
        let Seen { marked, rounds, .. } = path.run(60.0);
        marked as f64 / f64::from(rounds)
    };
    assert!((marks(Marking::Even(100.0)) / 2.0 - 1.0).abs() < 0.1); // target A-10
    // At random, as with DCTCP: an episode waits for its first mark, 1 + sqrt(3).
    assert!((marks(Marking::Chance(0.01, Random::new(7))) / (1.0 + 3f64.sqrt()) - 1.0).abs() < 0.1);
}

/// A step of 3 ms, 15 ms: the time to 95 % of a new capacity or to a queue below 5 ms, the longest wait in the queue,
/// and the overloads.
fn step(law: &str, from: f64, to: f64) -> (f64, Seen) {
    let mut path = Path::new(law, from, 0.015, Marking::Step(0.003));
    path.run(30.0);
    path.set_capacity(to);
    let at = path.now;
    let seen = path.run(12.0);
    (if to > from { path.time_to(0.95, at) } else { path.drained_after(0.005, at, path.now) }, seen)
}

#[test]
fn both_modes_shorten_transients() {
    for version in ["prague:variant=v0.6", "prague:variant=v0.7"] {
        let law = |more: &str| format!("{version},{more}");
        for mode in ["mode=rate", "mode=none"] {
            let (plain, accelerated) =
                (step(&law(mode), 50.0, 100.0), step(&law(&format!("{mode},accel=on,overload=on")), 50.0, 100.0));
            assert!(plain.0 >= 3.0 * accelerated.0, "{version} {mode}: {} {}", plain.0, accelerated.0);
            assert!(accelerated.1.longest < 0.0045, "{version} {mode}");
            assert_eq!(accelerated.1.reduced, 0);
        }
        let (plain, drained) = (step(version, 100.0, 50.0), step(&law("overload=on"), 100.0, 50.0));
        assert!(drained.0 <= 0.12 && drained.0 <= 0.6 * plain.0, "{version}: {} {}", plain.0, drained.0);
        assert_eq!((plain.1.reduced, drained.1.reduced), (0, 1));
    }
}

proptest! {
    #[test]
    fn the_window_is_always_sane(events in events(), law in prop::sample::select(vec![
        "prague", "prague:variant=v0.6,fallback=on", "prague:accel=on,overload=on,transition=0",
        "prague:variant=v0.6,accel=on,overload=on,mode=additive,transition=2",
        "prague:accel=on,accel_q=100%,accel_cycles=0,overload=on,overload_rounds=every,cwnd_mode=rate,transition=0",
        "prague:mode=scalable,transition=0,cwnd_mode=window,min_rate=0",
    ])) {
        let mut driver = Driver::new(law, MS);
        check(&mut *driver.law, &events, u64::from(MSS))?;
    }
}
