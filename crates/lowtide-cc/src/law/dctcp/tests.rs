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

const BOTH: &str = "dctcp:accel=on,overload=on";

fn build(law: &str) -> Box<dyn CongestionControl> {
    law.parse::<Law>().unwrap().build(&Flow { mss: MSS, initial_window: 10, seed: 1 })
}

fn congestion(signal: Signal) -> Congestion {
    Congestion { now: Time::ZERO, signal, una: 0, nxt: 0, in_flight: 0 }
}

fn segments(law: &dyn CongestionControl) -> f64 {
    law.window() as f64 / f64::from(MSS)
}

fn alpha(law: &dyn CongestionControl) -> f64 {
    let mut alpha = f64::NAN;
    law.inspect(&mut |name, value| {
        if name == "alpha" {
            alpha = value;
        }
    });
    alpha
}

/// A round of ten segments, the last of which ends it.
fn round(law: &mut dyn CongestionControl, una: &mut u64, marked: u32, reducing: bool) {
    let nxt = *una + 20 * u64::from(MSS);
    for n in 0..10 {
        *una = if n < 9 { *una } else { *una + 10 * u64::from(MSS) };
        let ack = Ack {
            packets: 1,
            marked: (n < marked).into(),
            una: *una,
            nxt,
            window_limited: true,
            reducing,
            ..Ack::default()
        };
        assert_eq!(law.on_ack(&ack), Reaction::None);
    }
}

#[test]
fn alpha_follows_the_marks_once_per_window() {
    let mut law = build("dctcp");
    let mut una = 0;
    round(&mut *law, &mut una, 0, false);
    assert_eq!(alpha(&*law), 15.0 / 16.0);
    let mut una = 20 * u64::from(MSS);
    round(&mut *law, &mut una, 4, false);
    assert_eq!(alpha(&*law), (15.0 / 16.0) * (15.0 / 16.0) + 0.4 / 16.0);
}

#[test]
fn a_mark_takes_half_of_alpha_and_a_loss_half() {
    for (text, signal, left) in [
        ("dctcp", Signal::Ecn, 5.0),
        ("dctcp", Signal::Phantom, 5.0),
        ("dctcp:alpha=0.5", Signal::Ecn, 7.5),
        ("dctcp:alpha=0.1", Signal::Loss, 5.0),
        ("dctcp:alpha=0.1,beta=0.7", Signal::Loss, 7.0),
    ] {
        let mut law = build(text);
        law.on_congestion(&congestion(signal));
        assert_eq!(segments(&*law), left, "{text}");
        assert_eq!(law.ssthresh(), Some(law.window()));
    }
    let mut law = build("dctcp");
    for _ in 0..10 {
        law.on_congestion(&congestion(Signal::Ecn));
    }
    assert_eq!(segments(&*law), 2.0);
}

#[test]
fn grows_by_one_segment_per_round_but_not_during_a_reduction() {
    for (text, grows) in [("dctcp", false), ("dctcp:cwr_increase=on", true)] {
        let mut law = build(text);
        law.on_congestion(&congestion(Signal::Ecn));
        let mut una = 0;
        for (reducing, grows) in [(true, grows), (false, true)] {
            let (before, acked) = (segments(&*law), 10.0);
            round(&mut *law, &mut una, 0, reducing);
            let growth = segments(&*law) - before;
            assert_eq!(growth > 0.0, grows, "{text}");
            assert!(growth <= acked / before);
        }
        law.on_congestion(&congestion(Signal::Loss));
        let before = law.window();
        round(&mut *law, &mut una, 0, true);
        assert_eq!(law.window(), before); // never in recovery
        law.on_recovered(&Recovered { now: Time::ZERO, una, nxt: una });
        round(&mut *law, &mut una, 0, false);
        assert!(law.window() > before);
    }
}

#[test]
fn slow_start_after_a_timeout_and_undo() {
    let mut law = build(BOTH);
    law.on_congestion(&congestion(Signal::Timeout));
    assert_eq!((segments(&*law), law.ssthresh()), (1.0, Some(5 * u64::from(MSS))));
    law.on_spurious();
    assert_eq!(segments(&*law), 10.0);
    law.on_restart(&Restart {
        now: Time::ZERO,
        idle: Duration::from_secs(1),
        nxt: 0,
        window: Some(4 * u64::from(MSS)),
    });
    assert_eq!(segments(&*law), 4.0);
}

#[test]
fn marks_that_an_overload_has_answered_do_not_reduce_again() {
    let mut law = build("dctcp:overload=on");
    let mut una = 0;
    let mut ack = |law: &mut dyn CongestionControl, ms, marked| {
        una += 10;
        let rtt = Duration::from_millis(ms);
        law.on_ack(&Ack { packets: 10, marked, una, nxt: una + 1, rtt: Some(rtt), srtt: rtt, ..Ack::default() })
    };
    law.on_congestion(&congestion(Signal::Loss)); // ends slow start
    law.on_recovered(&Recovered { now: Time::ZERO, una: 0, nxt: 0 });
    let _ = ack(&mut *law, 15, 0);
    law.on_congestion(&congestion(Signal::Loss));
    law.on_recovered(&Recovered { now: Time::ZERO, una: 0, nxt: 0 });
    law.on_spurious();
    let _ = ack(&mut *law, 15, 0);
    let before = segments(&*law);
    assert_eq!(ack(&mut *law, 25, 10), Reaction::Reduced);
    let reduced = law.window();
    assert!((segments(&*law) - before / 2.0).abs() < 0.01); // F/2 above 10/25
    law.on_congestion(&congestion(Signal::Ecn));
    assert_eq!(law.window(), reduced);
    let _ = ack(&mut *law, 15, 1);
    law.on_congestion(&congestion(Signal::Ecn));
    assert!(law.window() < reduced);
}

#[test]
fn without_ecn_it_is_reno() {
    assert_eq!("dctcp".parse::<Law>().unwrap().ecn_use(), EcnUse::Accurate);
    assert_eq!("dctcp:ecn=off".parse::<Law>().unwrap().ecn_use(), EcnUse::Off);
    let mut law = build("dctcp:ecn=off,alpha=0.1");
    law.on_congestion(&congestion(Signal::Ecn));
    assert_eq!(segments(&*law), 5.0);
}

#[test]
fn paced_only_on_request() {
    let ack = Ack { srtt: Duration::from_millis(15), ..Ack::default() };
    for (text, rate) in [("dctcp", None), ("dctcp:pacing=1.2", Some(2.0 * 1.2 * 10.0 * 1448.0 / 0.015))] {
        let mut law = build(text);
        assert_eq!(law.pacing_rate(), None);
        let _ = law.on_ack(&ack);
        assert_eq!(law.pacing_rate(), rate.map(|rate: f64| rate as u64));
    }
}

#[test]
fn only_a_loss_can_be_taken_back() {
    for text in ["dctcp", "prague", "prague:variant=v0.6"] {
        let mut law = build(text);
        for first in [Signal::Timeout, Signal::Loss] {
            let before = law.window();
            law.on_congestion(&congestion(first));
            law.on_recovered(&Recovered { now: Time::ZERO, una: 0, nxt: 0 });
            law.on_spurious();
            assert_eq!(law.window(), before, "{text}");
            law.on_spurious(); // nothing is left
            law.on_congestion(&congestion(first));
            law.on_recovered(&Recovered { now: Time::ZERO, una: 0, nxt: 0 });
            law.on_congestion(&congestion(Signal::Ecn));
            let reduced = law.window();
            law.on_spurious(); // the mark was there
            assert_eq!(law.window(), reduced, "{text}");
            law = build(text);
        }
    }
}

#[test]
fn a_pacing_rate_is_never_zero() {
    let mut law = build("dctcp:pacing=0.001");
    let _ = law.on_ack(&Ack { srtt: Duration::from_secs(60), ..Ack::default() });
    assert_eq!(law.pacing_rate(), Some(1));
}

#[test]
fn texts_name_the_modes() {
    for text in [BOTH, "dctcp:accel=on,accel_q=5%", "dctcp:overload=on,overload_aqm=3ms,overload_rounds=every"] {
        assert_eq!(text.parse::<Law>().unwrap().to_string(), text);
    }
    for text in ["dctcp:accel_q=5", "dctcp:accel_q=2s", "dctcp:overload_aqm=2s", "dctcp:gain=0"] {
        assert!(text.parse::<Law>().is_err(), "{text}");
    }
}

/// Marks per RTT, long after the start, on a path that marks by itself and never fills.
fn marks_per_round(law: &str, marking: Marking) -> f64 {
    let mut path = Path::new(law, 1e5, 0.015, marking);
    path.run(10.0);
    let Seen { marked, rounds, .. } = path.run(60.0);
    marked as f64 / f64::from(rounds)
}

/// In a cycle of one episode (an RTT) and the wait for the next mark (`1/m`), the window loses `m/2` and gains one
/// segment per RTT in which it grows.
#[test]
fn marks_per_round_trip() {
    let near = |marks: f64, expected: f64| (marks / expected - 1.0).abs() < 0.1;
    for p in [0.005, 0.02] {
        // Target A-10: two, if marks are evenly spaced and the window grows in every round.
        let marks = marks_per_round("dctcp:cwr_increase=on", Marking::Even(1.0 / p));
        assert!(near(marks, 2.0), "{p}: {marks}");
        // At random: m/2 = 1 + 1/m, so m = 1 + sqrt(3).
        let marks = marks_per_round("dctcp:cwr_increase=on", Marking::Chance(p, Random::new(7)));
        assert!(near(marks, 1.0 + 3f64.sqrt()), "{p}: {marks}");
        // And growing only while it waits, as in Linux: m/2 = 1/m.
        let marks = marks_per_round("dctcp", Marking::Chance(p, Random::new(7)));
        assert!(near(marks, 2f64.sqrt()), "{p}: {marks}");
    }
}

/// A flow that has converged at one capacity (Mbit/s) behind a step of 3 ms gets another.
struct Step {
    path: Path,
    at: f64,
    seen: Seen,
}

fn step(law: &str, from: f64, to: f64) -> Step {
    let mut path = Path::new(law, from, 0.015, Marking::Step(0.003));
    path.run(20.0);
    path.set_capacity(to);
    let at = path.now;
    let seen = path.run(5.0);
    Step { path, at, seen }
}

#[test]
fn steady_state_is_not_disturbed_by_the_modes() {
    let mut path = Path::new(BOTH, 100.0, 0.015, Marking::Step(0.003));
    path.run(20.0);
    let from = path.now;
    let seen = path.run(10.0);
    assert!(path.utilisation(from) > 0.99);
    assert_eq!(seen.reduced, 0);
    assert!(seen.longest < 0.0033, "{}", seen.longest);
    // Algorithms, section 3.2: 7.5 and 0.5 rounds.
    assert!((path.inner("accel_i_a") - 7.5).abs() < 0.5, "{}", path.inner("accel_i_a"));
    assert!(path.inner("accel_i_m") < 1.0);
    assert!((path.inner("overload_q_max") - 3.0).abs() < 0.3);
}

#[test]
fn acceleration_claims_capacity_within_its_overshoot() {
    for (from, to, plain, accelerated) in [(50.0, 100.0, 0.65, 0.15), (20.0, 200.0, 3.15, 0.55)] {
        let (slow, fast) = (step("dctcp", from, to), step(BOTH, from, to));
        let (slow_time, fast_time) = (slow.path.time_to(0.95, slow.at), fast.path.time_to(0.95, fast.at));
        assert!((slow_time - plain).abs() <= 0.1, "{slow_time}");
        assert!((fast_time - accelerated).abs() <= 0.1, "{fast_time}");
        assert!(slow_time >= 4.0 * fast_time);
        // The step's 3 ms and Q, and the delay of the feedback.
        assert!(fast.seen.longest < 0.0045, "{}", fast.seen.longest);
        assert!(fast.path.utilisation(fast.at) > slow.path.utilisation(slow.at) + 0.01);
        assert_eq!(fast.seen.reduced, 0);
    }
}

#[test]
fn overload_drains_the_queue() {
    let (slow, fast) = (step("dctcp", 100.0, 50.0), step("dctcp:overload=on", 100.0, 50.0));
    let drained = |step: &Step| step.path.drained_after(0.005, step.at, step.at + 5.0);
    assert!((0.018..0.022).contains(&fast.seen.longest), "{}", fast.seen.longest);
    assert!((0.15..0.25).contains(&drained(&slow)), "{}", drained(&slow));
    assert!(drained(&fast) < 0.12 && drained(&fast) <= 0.6 * drained(&slow), "{}", drained(&fast));
    assert_eq!(fast.seen.reduced, 1);
    assert!(fast.path.utilisation(fast.at + 0.5) > 0.95);

    let (slow, fast) = (step("dctcp", 200.0, 20.0), step(BOTH, 200.0, 20.0));
    assert!((1.1..1.5).contains(&drained(&slow)), "{}", drained(&slow));
    assert!((0.45..0.65).contains(&drained(&fast)), "{}", drained(&fast));
    assert!((1..=2).contains(&fast.seen.reduced), "{}", fast.seen.reduced);
}

/// 200 and 100 Mbit/s alternately, as in the paper's figure 4: no oscillation grows, and `q_max` ends above the step.
#[test]
fn the_modes_do_not_feed_each_other() {
    let mut path = Path::new(BOTH, 200.0, 0.015, Marking::Step(0.003));
    path.run(20.0);
    for _ in 0..4 {
        for mbit in [100.0, 200.0] {
            path.set_capacity(mbit);
            let seen = path.run(5.0);
            assert!(seen.reduced <= 2, "{mbit}: {}", seen.reduced);
            let from = path.now;
            let seen = path.run(5.0);
            assert_eq!(seen.reduced, 0);
            assert!(seen.longest < 0.0045 && path.utilisation(from) > 0.98);
        }
    }
}

proptest! {
    #[test]
    fn the_window_is_always_sane(events in events(), law in prop::sample::select(vec![
        "dctcp", BOTH, "dctcp:cwr_increase=on,accel=on,accel_q=100%,accel_cycles=0",
        "dctcp:accel=on,accel_literal=on,accel_cycles=0,overload=on,overload_rounds=every,overload_base=10s",
    ])) {
        check(&mut *build(law), &events, 0)?;
    }
}
