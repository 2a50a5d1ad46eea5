// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::{
    Law, Parameters as _, Recovered, Signal,
    law::bbr::State,
    testing::rate_path::{MSS, Path},
};
use proptest::prelude::*;

const FLOW: Flow = Flow { mss: MSS, initial_window: 10, seed: 7 };

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn law() -> Bbr {
    Parameters::default().machine(&FLOW)
}

/// 20 Mbit/s, 40 ms: 100 segments; with four times that as buffer. It has left Startup and Drain.
fn steady() -> Path<Bbr> {
    let mut path = Path::new(law(), 20.0, 40, 400);
    path.run(ms(1500));
    assert!(path.law.state.is_probe_bw());
    path
}

/// 200 Mbit/s, 4 ms: again 100 segments, with marks above ten in the queue.
fn marked(parameters: &Parameters) -> Path<Bbr> {
    let mut path = Path::new(parameters.machine(&FLOW), 200.0, 4, 400);
    path.mark_above = 10;
    path
}

#[test]
fn the_constants() {
    let entries = Parameters::default().entries();
    let value = |key| entries.iter().find(|entry| entry.0 == key).unwrap().1.as_str();
    for (key, expected) in [
        ("startup_pacing_gain", "2.885"),
        ("startup_cwnd_gain", "2.885"),
        ("probe_up_pacing_gain", "1.25"),
        ("probe_down_pacing_gain", "0.75"),
        ("cwnd_gain", "2"),
        ("probe_up_cwnd_gain", "2"),
        ("bw_probe_pif_gain", "1.25"),
        ("full_bw_thresh", "1.25"),
        ("full_bw_count", "3"),
        ("full_loss_count", "8"),
        ("loss_thresh", "0.02"),
        ("beta", "0.7"),
        ("headroom", "0.15"),
        ("min_pipe_cwnd", "4"),
        ("min_rtt_window", "10s"),
        ("probe_rtt_interval", "5s"),
        ("probe_rtt_duration", "200ms"),
        ("probe_rtt_cwnd_gain", "0.5"),
        ("bw_probe_base", "2s"),
        ("bw_probe_rand", "1s"),
        ("bw_probe_max_rounds", "63"),
        ("bw_probe_rand_rounds", "2"),
        ("bw_probe_reno_gain", "1"),
        ("extra_acked_gain", "1"),
        ("extra_acked_window", "5"),
        ("extra_acked_max", "100ms"),
        ("pacing_margin", "0.01"),
        ("quantum", "1ms"),
        ("quantum_rtt", "512us"),
        ("ecn", "off"),
        ("ecn_max_rtt", "5ms"),
        ("ecn_alpha_gain", "0.0625"),
        ("ecn_alpha_init", "1"),
        ("ecn_thresh", "0.5"),
        ("ecn_reprobe_gain", "0"),
        ("full_ecn_count", "2"),
        ("ecn_bw_lo", "on"),
        ("ecn_bw_hi", "on"),
    ] {
        assert_eq!(value(key), expected, "{key}");
    }
    let p = Parameters::default();
    assert_eq!((p.drain_pacing_gain * p.startup_pacing_gain, p.ecn_factor * 3.0), (1.0, 1.0));
    let ecn_use = |text: &str| text.parse::<Law>().unwrap().ecn_use();
    assert_eq!(ecn_use("bbr2"), EcnUse::Off);
    assert_eq!(ecn_use("bbr2:ecn=on"), EcnUse::Accurate);
    assert_eq!(ecn_use("bbr2:ecn=l4s"), EcnUse::L4s);
}

#[test]
fn it_finds_the_bandwidth_and_keeps_the_queue_short() {
    let mut path = steady();
    let bw = path.show("max_bw_mbps");
    assert!((19.6..20.4).contains(&bw), "{bw}");
    path.peak_queue = 0;
    let throughput = path.throughput(ms(4000));
    assert!(throughput > 18.8, "{throughput}");
    assert!(path.peak_queue < 50, "{}", path.peak_queue); // Up ends at 1.25 BDP
}

#[test]
fn up_ends_at_a_quarter_more_than_the_bdp() {
    let mut path = steady();
    assert!(path.run_until(ms(4000), |path| path.law.state == State::Up));
    let begin = path.now;
    assert!(path.run_until(ms(1000), |path| path.law.state != State::Up));
    assert_eq!(path.law.state, State::Down);
    assert!((ms(40)..ms(160)).contains(&(path.now - begin)));
    assert!(path.law.inflight(path.law.max_bw.get(), 1.25) < 130.0);
}

#[test]
fn a_path_that_is_empty_now_and_then_needs_no_probe_rtt() {
    // A sample that equals the minimum renews it: an application that leaves the path empty always gives one.
    let mut path = steady();
    path.app_rate = 250_000.0;
    let probed = path.run_until(ms(12_000), |path| path.law.state == State::ProbeRtt);
    assert!(!probed);
}

#[test]
fn probe_rtt_leaves_half_a_bdp_for_200_ms() {
    let mut path = steady();
    path.law.probe_rtt = crate::law::bbr::ProbeRtt::new(ms(10_000), ms(500), ms(200), false);
    assert!(path.run_until(ms(3000), |path| path.law.state == State::ProbeRtt));
    let begin = path.now;
    assert!((40.0..60.0).contains(&path.law.cwnd), "{}", path.law.cwnd);
    assert!(path.run_until(ms(1000), |path| path.law.state != State::ProbeRtt));
    assert!((ms(200)..ms(400)).contains(&(path.now - begin)));
    assert_eq!(path.law.state, State::Cruise);
}

#[test]
fn loss_beyond_two_percent_sets_the_bound() {
    let mut path = Path::new(law(), 20.0, 40, 20);
    path.run(ms(10_000));
    let hi = path.law.bounds.inflight_hi;
    assert!((85.0..150.0).contains(&hi), "{hi}"); // the BDP is 120 segments
    let (lost, delivered) = (path.lost, path.delivered);
    path.run(ms(10_000));
    let share = (path.lost - lost) as f64 / (path.delivered - delivered) as f64;
    assert!(share < 0.02, "{share}");
}

#[test]
fn one_percent_of_loss_does_not_slow_it_down() {
    let mut path = Path::new(law(), 20.0, 40, 400);
    path.loss = 0.01;
    path.run(ms(3000));
    let throughput = path.throughput(ms(5000));
    assert!(throughput > 15.0, "{throughput}");
}

#[test]
fn twice_the_bandwidth_is_found() {
    let mut path = steady();
    path.rate *= 2.0;
    path.buffer *= 2;
    path.run(ms(10_000));
    let throughput = path.throughput(ms(3000));
    assert!(throughput > 36.0, "{throughput}");
}

#[test]
fn marks_end_startup() {
    let parameters = Parameters::default().ecn(Ecn::L4s).unwrap();
    let mut path = marked(&parameters);
    assert!(path.run_until(ms(500), |path| path.law.state == State::Drain));
    assert!(path.law.bounds.inflight_hi.is_finite(), "marks, not a plateau, ended it");
}

#[test]
fn a_round_with_marks_takes_a_third_of_alpha() {
    let mut path = steady();
    assert!(path.run_until(ms(3000), |path| path.law.state == State::Cruise));
    let law = &mut path.law;
    law.marks.eligible = true;
    law.marks.alpha = 0.6;
    law.bounds.ecn_in_round = true;
    let (max_bw, cwnd) = (law.max_bw.get(), law.cwnd);
    law.adapt_lower_bounds();
    assert!((law.bounds.inflight_lo - 0.8 * cwnd).abs() < 1e-9);
    assert!((law.bounds.bw_lo - 0.8 * max_bw).abs() < 1e-9);

    law.bounds.reset_short_term();
    law.settings.version = Version::V2 { bw_probe_pif_gain: 1.25, ecn_bw_lo: false, ecn_bw_hi: false };
    law.adapt_lower_bounds();
    assert!((law.bounds.inflight_lo - 0.8 * cwnd).abs() < 1e-9);
    assert!(law.bounds.bw_lo.is_infinite());
}

#[test]
fn marks_count_on_short_paths_only() {
    let marks = |text: &str, rtt: u64| {
        let Ok(Law::Bbr2(parameters)) = text.parse() else { panic!() };
        let mut path = marked(&parameters);
        (path.rate, path.rtt) = (path.rate * 4.0 / rtt as f64, ms(rtt));
        path.run(ms(rtt * 100));
        path.run(ms(rtt * 400));
        (path.law.marks.eligible, path.law.marks.alpha)
    };
    let (eligible, alpha) = marks("bbr2:ecn=l4s", 4);
    assert!(eligible && alpha < 0.5, "{alpha}");
    assert!(!marks("bbr2:ecn=l4s", 15).0);
    assert!(marks("bbr2:ecn=l4s,ecn_max_rtt=0s", 15).0);
    assert!(!marks("bbr2", 4).0);
}

#[test]
fn with_marks_the_path_stays_used() {
    let parameters = Parameters::default().ecn(Ecn::L4s).unwrap();
    let mut path = marked(&parameters);
    path.run(ms(1000));
    let throughput = path.throughput(ms(4000));
    assert!(throughput > 150.0, "{throughput}");
    assert!(path.lost == 0);
}

#[test]
fn a_spurious_loss_restores_the_bounds() {
    let mut path = steady();
    assert!(path.run_until(ms(3000), |path| path.law.state == State::Cruise));
    let before = path.law.cwnd;
    let congestion = path.congestion(Signal::Loss);
    path.law.on_congestion(&congestion);
    path.law.adapt_lower_bounds();
    path.law.cwnd = 50.0;
    assert!(path.law.bounds.inflight_lo.is_finite());
    path.law.on_spurious();
    assert!(path.law.bounds.inflight_lo.is_infinite() && path.law.bounds.bw_lo.is_infinite());
    assert_eq!((path.law.state, path.law.cwnd), (State::Cruise, before));
}

#[test]
fn a_timeout_leaves_one_segment_and_recovery_gives_the_window_back() {
    let mut path = steady();
    let before = path.law.cwnd;
    let congestion = path.congestion(Signal::Timeout);
    path.law.on_congestion(&congestion);
    assert_eq!(path.law.window(), 1000);
    path.law.on_recovered(&Recovered { now: path.now, una: 0, nxt: 0 });
    assert_eq!(path.law.cwnd, before);
}

proptest! {
    #[test]
    fn window_and_rate_stay_sane(
        mbps in 0.2f64..300.0, rtt in 1u64..200, buffer in 2u64..600, loss in 0.0f64..0.3, above in 0u64..200,
        seed in any::<u64>(),
    ) {
        let parameters = Parameters::default().ecn(Ecn::L4s).unwrap().ecn_max_rtt(Duration::ZERO).unwrap();
        let mut path = Path::new(parameters.machine(&Flow { seed, ..FLOW }), mbps, rtt, buffer);
        (path.loss, path.mark_above) = (loss, above);
        path.run_until(ms(30 * rtt + 100), |path| {
            let law = &path.law;
            assert!(law.cwnd.is_finite() && law.cwnd >= 4.0, "{}", law.cwnd);
            assert!((0.0..=1.0).contains(&law.marks.alpha));
            assert!(law.bw().is_finite() && law.bw() * f64::from(MSS) <= 1.2 * path.rate + 1.0);
            false
        });
        prop_assert!(path.delivered > 0);
    }
}
