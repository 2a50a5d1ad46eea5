// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::{
    EcnUse, Law, Parameters as _,
    testing::rate_path::{MSS, Path},
};
use proptest::prelude::*;

const FLOW: Flow = Flow { mss: MSS, initial_window: 10, seed: 7 };

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn law() -> Bbr1 {
    Bbr1::new(Parameters::default(), &FLOW)
}

/// 20 Mbit/s, 40 ms: 100 segments; with four times that as buffer.
fn path() -> Path<Bbr1> {
    Path::new(law(), 20.0, 40, 400)
}

#[test]
fn the_constants() {
    let entries = Parameters::default().entries();
    let value = |key| entries.iter().find(|entry| entry.0 == key).unwrap().1.as_str();
    for (key, expected) in [
        ("high_gain", "2.885"),
        ("cwnd_gain", "2"),
        ("probe_up_gain", "1.25"),
        ("probe_down_gain", "0.75"),
        ("bw_window", "10"),
        ("full_bw_thresh", "1.25"),
        ("full_bw_count", "3"),
        ("min_pipe_cwnd", "4"),
        ("min_rtt_window", "10s"),
        ("probe_rtt_duration", "200ms"),
        ("extra_acked_gain", "1"),
        ("extra_acked_window", "5"),
        ("extra_acked_max", "100ms"),
        ("pacing_margin", "0.01"),
        ("quantum", "1ms"),
        ("policer", "on"),
    ] {
        assert_eq!(value(key), expected, "{key}");
    }
    let p = Parameters::default();
    assert_eq!(p.drain_gain * p.high_gain, 1.0);
    assert!((2.0 / std::f64::consts::LN_2 - p.high_gain).abs() < 1e-3);
    assert_eq!("bbr1".parse::<Law>().unwrap().ecn_use(), EcnUse::Off);
}

#[test]
fn it_starts_with_the_initial_window_at_the_initial_rate() {
    let law = law();
    assert_eq!(law.window(), 10_000);
    assert_eq!(law.pacing_rate(), Some((2.885_f64 * 10e6 * 0.99) as u64)); // an RTT of 1 ms is assumed
    assert!(law.steers_recovery());
}

#[test]
fn startup_doubles_the_rate_each_round() {
    let mut path = Path::new(law(), 1000.0, 40, 100_000);
    let mut at_round = Vec::new();
    path.run_until(ms(400), |path| {
        if path.law.rounds.start {
            at_round.push(path.law.max_bw.get());
        }
        path.law.state != State::Startup
    });
    // The first rounds have few samples, and in the last full bandwidth is reached.
    assert!(at_round.len() >= 9);
    for pair in at_round[3..9].windows(2) {
        assert!((1.8..2.3).contains(&(pair[1] / pair[0])), "{at_round:?}");
    }
}

#[test]
fn it_finds_the_bandwidth_then_drains_then_cycles() {
    let mut path = path();
    assert!(path.run_until(ms(2000), |path| path.law.state == State::Drain));
    assert!(path.law.pacing_gain() < 0.35);
    let bw = path.law.max_bw.get();
    assert!((2450.0..2550.0).contains(&bw), "{bw}"); // 2500 segments per second
    assert!(path.run_until(ms(500), |path| path.law.state == State::ProbeBw));
    assert!(path.law.in_flight <= path.law.inflight(1.0));
    assert_eq!(path.show("min_rtt").round(), 40.0);

    let mut gains = Vec::new();
    let mut phase = path.law.phase;
    path.run_until(ms(1500), |path| {
        if path.law.phase != phase {
            phase = path.law.phase;
            gains.push((phase, path.law.pacing_gain()));
        }
        false
    });
    assert!(gains.len() > 16, "{gains:?}");
    for (phase, gain) in gains {
        assert_eq!(gain, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0][phase as usize]);
    }
}

#[test]
fn the_rate_is_the_bandwidth_and_the_queue_short() {
    let mut path = path();
    path.run(ms(2000));
    path.peak_queue = 0;
    let throughput = path.throughput(ms(5000));
    assert!(throughput > 19.4, "{throughput}");
    // Up adds a queue of a quarter of the RTT, and the next phase drains it.
    assert!((20..45).contains(&path.peak_queue), "{}", path.peak_queue);
}

#[test]
fn the_cycle_never_starts_with_the_phase_down() {
    let mut law = law();
    let mut seen = [false; 8];
    for _ in 0..1000 {
        law.start_probe_bw(Time::ZERO);
        seen[law.phase as usize] = true;
    }
    assert_eq!(seen, [true, false, true, true, true, true, true, true]);
}

#[test]
fn the_window_is_even_and_has_room_for_three_quanta() {
    let mut law = law();
    law.pacing = Pacing::new(1.0, 0.0, 8.0); // 8000 segments per second: a quantum of eight
    law.state = State::Drain;
    assert_eq!(law.budget(100.5), 126.0);
    law.state = State::ProbeBw;
    assert_eq!(law.budget(100.5), 128.0);
}

#[test]
fn probe_rtt_every_ten_seconds_for_200_ms_with_four_segments() {
    let mut path = path();
    path.run(ms(1000));
    let mut times = Vec::new();
    let mut was = State::ProbeBw;
    path.run_until(ms(25_000), |path| {
        let is = path.law.state;
        if (is == State::ProbeRtt) != (was == State::ProbeRtt) {
            times.push(path.now);
        }
        if is == State::ProbeRtt {
            assert!(path.law.cwnd <= 4.0);
        }
        was = is;
        false
    });
    let [enter, leave, again, ..] = times[..] else { panic!("{times:?}") };
    assert!((ms(200)..ms(400)).contains(&(leave - enter)), "{times:?}");
    assert!((ms(9900)..ms(10_200)).contains(&(again - leave)), "{times:?}");
    assert!(path.law.cwnd > 150.0);
}

#[test]
fn twice_the_bandwidth_is_found() {
    let mut path = path();
    path.run(ms(3000));
    path.rate *= 2.0;
    path.run(ms(3000));
    let throughput = path.throughput(ms(3000));
    assert!(throughput > 38.0, "{throughput}");
}

#[test]
fn half_the_bandwidth_is_found_within_the_window_of_the_filter() {
    let mut path = path();
    path.run(ms(3000));
    path.rate /= 2.0;
    path.run(ms(3000));
    let bw = path.show("bw_mbps");
    assert!((9.7..10.5).contains(&bw), "{bw}");
}

#[test]
fn five_percent_of_loss_does_not_slow_it_down() {
    let mut path = path();
    path.loss = 0.05;
    path.run(ms(2000));
    let throughput = path.throughput(ms(5000));
    assert!(throughput > 18.0, "{throughput}");
}

#[test]
fn recovery_begins_with_packet_conservation_and_ends_with_the_old_window() {
    let mut path = path();
    path.run(ms(2000));
    let before = path.law.cwnd;
    let (in_flight, acked) = (path.law.in_flight, path.law.acked);
    let congestion = path.congestion(Signal::Loss);
    path.law.on_congestion(&congestion);
    assert_eq!(path.law.cwnd, in_flight + acked);
    assert!(path.law.cwnd < before);
    path.run(ms(20)); // within the round
    assert!(path.law.cwnd < before);
    path.law.on_recovered(&Recovered { now: path.now, una: 0, nxt: 0 });
    assert!((path.law.cwnd - before).abs() <= 4.0, "{} {before}", path.law.cwnd);
}

#[test]
fn a_timeout_leaves_one_segment_and_recovery_gives_the_window_back() {
    let mut path = path();
    path.run(ms(2000));
    let before = path.law.cwnd;
    let congestion = path.congestion(Signal::Timeout);
    path.law.on_congestion(&congestion);
    assert_eq!(path.law.window(), 1000);
    path.law.on_spurious();
    assert!((path.law.cwnd - before).abs() <= 4.0);
    path.law.on_congestion(&congestion);
    path.law.on_recovered(&Recovered { now: path.now, una: 0, nxt: 0 });
    assert!((path.law.cwnd - before).abs() <= 4.0);
}

#[test]
fn an_idle_flow_keeps_its_window_and_starts_at_the_path_rate() {
    let mut path = path();
    path.run(ms(2000));
    let before = path.law.cwnd;
    path.idle(ms(15_000));
    assert!((path.law.cwnd - before).abs() <= 4.0);
    let rate = path.law.pacing_rate().unwrap();
    assert!((2_400_000..2_525_000).contains(&rate), "{rate}");
    path.run(ms(200));
    assert_eq!(path.law.state, State::ProbeBw); // the idle time was a probe of the RTT
}

#[test]
fn a_slow_application_does_not_lower_the_estimate() {
    let mut path = path();
    path.run(ms(2000));
    path.app_rate = 250_000.0;
    path.run(ms(5000));
    let bw = path.show("max_bw_mbps");
    assert!(bw > 19.0, "{bw}");
}

#[test]
fn a_policed_path_is_used_at_its_rate() {
    let run = |policer| {
        let parameters = Parameters::default().policer(policer).unwrap();
        let mut path = Path::new(Bbr1::new(parameters, &FLOW), 20.0, 40, 400);
        path.run(ms(2000));
        (path.rate, path.buffer) = (path.rate / 4.0, 2); // the tokens are used up
        path.run_until(ms(2000), |path| path.law.policer.bw().is_some());
        path.law
    };
    let law = run(true);
    let bw = law.policer.bw().unwrap();
    assert!((600.0..650.0).contains(&bw), "{bw}"); // 625 segments per second
    assert!(law.max_bw.get() > 2000.0); // the filter has not yet noticed
    assert_eq!(law.pacing_gain(), 1.0);
    assert_eq!(run(false).policer.bw(), None);
}

proptest! {
    #[test]
    fn window_and_rate_stay_sane(
        mbps in 0.2f64..300.0, rtt in 1u64..200, buffer in 2u64..600, loss in 0.0f64..0.3, seed in any::<u64>(),
    ) {
        let mut path = Path::new(Bbr1::new(Parameters::default(), &Flow { seed, ..FLOW }), mbps, rtt, buffer);
        path.loss = loss;
        path.run_until(ms(20 * rtt + 100), |path| {
            let cwnd = path.law.cwnd;
            assert!(cwnd.is_finite() && cwnd >= 1.0);
            assert!(path.law.pacing.rate().is_finite());
            assert!(path.law.max_bw.get() * f64::from(MSS) <= 1.2 * path.rate + 1.0);
            false
        });
        prop_assert!(path.delivered > 0);
    }
}
