// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::{
    Law, Lost, Parameters as _, Recovered, Signal, Time,
    law::bbr::{Sample, State},
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

/// 20 Mbit/s, 40 ms: 100 segments; with four times that as buffer.
fn path() -> Path<Bbr> {
    Path::new(law(), 20.0, 40, 400)
}

/// The same, once it has left Startup and Drain.
fn steady() -> Path<Bbr> {
    let mut path = path();
    path.run(ms(1500));
    assert!(path.law.state.is_probe_bw());
    path
}

#[test]
fn the_constants() {
    let entries = Parameters::default().entries();
    let value = |key| entries.iter().find(|entry| entry.0 == key).unwrap().1.as_str();
    for (key, expected) in [
        ("startup_pacing_gain", "2.77"),
        ("startup_cwnd_gain", "2"),
        ("drain_pacing_gain", "0.5"),
        ("drain_rounds", "3"),
        ("probe_up_pacing_gain", "1.25"),
        ("probe_down_pacing_gain", "0.9"),
        ("cwnd_gain", "2"),
        ("probe_up_cwnd_gain", "2.25"),
        ("full_bw_thresh", "1.25"),
        ("full_bw_count", "3"),
        ("full_loss_count", "6"),
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
        ("pacing_margin", "0.01"),
        ("ecn", "off"),
        ("ecn_max_rtt", "5ms"),
        ("ecn_alpha_gain", "0.0625"),
        ("ecn_thresh", "0.5"),
        ("ecn_reprobe_gain", "0.5"),
    ] {
        assert_eq!(value(key), expected, "{key}");
    }
    assert!((4.0 * std::f64::consts::LN_2 - Parameters::default().startup_pacing_gain).abs() < 3e-3);
    let ecn_use = |text: &str| text.parse::<Law>().unwrap().ecn_use();
    assert_eq!(ecn_use("bbr3"), EcnUse::Off);
    assert_eq!(ecn_use("bbr3:ecn=on"), EcnUse::Accurate);
    assert_eq!(ecn_use("bbr3:ecn=l4s"), EcnUse::L4s);
}

#[test]
fn gains_of_the_states() {
    let mut law = law();
    let gains = [
        (State::Startup, 2.77, 2.0),
        (State::Drain, 0.5, 2.0),
        (State::Down, 0.9, 2.0),
        (State::Cruise, 1.0, 2.0),
        (State::Refill, 1.0, 2.0),
        (State::Up, 1.25, 2.25),
        (State::ProbeRtt, 1.0, 1.0),
    ];
    for (state, pacing, cwnd) in gains {
        law.state = state;
        assert_eq!((law.pacing_gain(), law.cwnd_gain()), (pacing, cwnd), "{state:?}");
    }
}

#[test]
fn startup_ends_on_a_plateau_and_drain_on_the_bdp() {
    let mut path = path();
    assert!(path.run_until(ms(2000), |path| path.law.state == State::Drain));
    let bw = path.show("max_bw_mbps");
    assert!((19.6..20.4).contains(&bw), "{bw}");
    assert!(path.law.full.reached && path.law.full.now);
    assert!(path.run_until(ms(400), |path| path.law.state == State::Down));
    assert_eq!(path.show("min_rtt").round(), 40.0);
}

#[test]
fn drain_ends_after_three_rounds_at_the_latest() {
    let parameters = Parameters::default().drain_pacing_gain(1.0).unwrap(); // so that nothing drains
    let mut path = Path::new(parameters.machine(&FLOW), 20.0, 40, 400);
    assert!(path.run_until(ms(2000), |path| path.law.state == State::Drain));
    let begin = path.law.rounds.count;
    assert!(path.run_until(ms(1000), |path| path.law.state != State::Drain));
    assert_eq!(path.law.rounds.count, begin + 4);
}

#[test]
fn startup_ends_when_much_is_lost() {
    let mut path = Path::new(law(), 20.0, 40, 20); // a fifth of the BDP
    assert!(path.run_until(ms(1000), |path| path.law.state == State::Drain));
    assert!(!path.law.full.now, "losses, not a plateau, ended it");
    assert!(path.law.bounds.inflight_hi.is_finite());
    let bdp = path.law.inflight(path.law.max_bw.get(), 1.0);
    assert!(path.law.bounds.inflight_hi >= bdp);
}

#[test]
fn the_states_of_probe_bw_follow_each_other() {
    let mut path = steady();
    let mut order = Vec::new();
    let mut last = path.law.state;
    path.run_until(ms(9000), |path| {
        let state = path.law.state;
        if state != last && state != State::ProbeRtt && last != State::ProbeRtt {
            order.push((last, state));
        }
        last = state;
        false
    });
    assert!(order.len() >= 8, "{order:?}");
    for pair in order {
        let expected = [
            (State::Down, State::Cruise),
            (State::Down, State::Refill),
            (State::Cruise, State::Refill),
            (State::Refill, State::Up),
            (State::Up, State::Down),
        ];
        assert!(expected.contains(&pair), "{pair:?}");
    }
}

#[test]
fn probes_are_two_to_three_seconds_apart_at_random() {
    let parameters = Parameters::default().probe_rtt_interval(HOUR).unwrap().min_rtt_window(HOUR).unwrap();
    let starts = |seed| {
        let mut path = Path::new(parameters.machine(&Flow { seed, ..FLOW }), 20.0, 40, 400);
        let mut starts = Vec::new();
        let mut last = State::Startup;
        path.run_until(ms(30_000), |path| {
            if path.law.state == State::Down && last != State::Down {
                starts.push(path.now);
            }
            if path.law.state == State::Refill && last != State::Refill {
                let wait = path.now - *starts.last().unwrap();
                assert!((ms(2000)..ms(3050)).contains(&wait), "{wait:?}");
            }
            last = path.law.state;
            false
        });
        starts
    };
    assert!(starts(1).len() >= 8);
    assert_ne!(starts(1), starts(2));
    assert_eq!(starts(1), starts(1));
}

#[test]
fn on_a_small_path_probes_come_with_its_bdp() {
    // 2 Mbit/s, 40 ms: ten segments, so a Reno flow would lose one about every ten rounds.
    let parameters = Parameters::default().probe_rtt_interval(HOUR).unwrap().min_rtt_window(HOUR).unwrap();
    let mut path = Path::new(parameters.machine(&FLOW), 2.0, 40, 100);
    path.run(ms(3000));
    let mut rounds = Vec::new();
    let mut last = path.law.state;
    let mut down = None;
    path.run_until(ms(4000), |path| {
        match path.law.state {
            State::Down if last == State::Up => down = Some(path.law.rounds.count),
            State::Refill if last != State::Refill => rounds.extend(down.map(|down| path.law.rounds.count - down)),
            _ => {}
        }
        last = path.law.state;
        false
    });
    assert!(!rounds.is_empty());
    assert!(rounds.iter().all(|rounds| (9..=14).contains(rounds)), "{rounds:?}");
}

#[test]
fn the_rate_is_the_bandwidth_and_the_queue_is_bounded() {
    let mut path = steady();
    path.peak_queue = 0;
    let throughput = path.throughput(ms(4000));
    assert!(throughput > 18.8, "{throughput}");
    assert!(path.peak_queue <= 130, "{}", path.peak_queue); // the window is 2.25 BDP in Up
}

#[test]
fn probe_rtt_every_five_seconds_for_200_ms_with_half_a_bdp() {
    let mut path = steady();
    let mut times = Vec::new();
    let mut last = State::Down;
    path.run_until(ms(13_000), |path| {
        let state = path.law.state;
        if (state == State::ProbeRtt) != (last == State::ProbeRtt) {
            times.push(path.now);
        }
        if state == State::ProbeRtt {
            assert!((45.0..56.0).contains(&path.law.cwnd), "{}", path.law.cwnd);
        } else if last == State::ProbeRtt {
            assert_eq!(state, State::Cruise);
        }
        last = state;
        false
    });
    let [enter, leave, again, ..] = times[..] else { panic!("{times:?}") };
    assert!((ms(200)..ms(400)).contains(&(leave - enter)), "{times:?}");
    assert!((ms(4900)..ms(5200)).contains(&(again - leave)), "{times:?}");
    let bw = path.show("max_bw_mbps");
    assert!(bw > 19.0, "ProbeRTT lowered the rate to {bw}");
}

#[test]
fn loss_beyond_two_percent_of_a_probe_sets_the_bound() {
    for tells_losses in [true, false] {
        let mut path = Path::new(law(), 20.0, 40, 20);
        path.tells_losses = tells_losses;
        path.run(ms(10_000));
        let hi = path.law.bounds.inflight_hi;
        // The BDP is 120 segments.
        assert!((85.0..150.0).contains(&hi), "{hi}");
        let (lost, delivered) = (path.lost, path.delivered);
        let throughput = path.throughput(ms(10_000));
        let share = (path.lost - lost) as f64 / (path.delivered - delivered) as f64;
        assert!(share < 0.02, "{share}");
        assert!(throughput > 16.0, "{throughput}");
    }
}

#[test]
fn random_loss_is_borne_below_two_percent_and_not_far_beyond() {
    let throughput = |loss| {
        let mut path = path();
        path.loss = loss;
        path.run(ms(3000));
        path.throughput(ms(12_000))
    };
    let (one, five) = (throughput(0.01), throughput(0.05));
    assert!(one > 14.0 && five < 5.0, "{one} {five}");
}

#[test]
fn cruise_leaves_headroom() {
    let mut law = law();
    law.bounds.inflight_hi = 100.0;
    assert_eq!(law.inflight_with_headroom(), 85.0);
    law.bounds.inflight_hi = 4.5;
    assert_eq!(law.inflight_with_headroom(), 4.0);
    law.bounds.inflight_hi = f64::INFINITY;
    assert_eq!(law.inflight_with_headroom(), f64::INFINITY);

    let mut path = Path::new(self::law(), 20.0, 40, 20);
    let mut cruised = false;
    path.run_until(ms(10_000), |path| {
        if path.law.state == State::Cruise {
            cruised = true;
            assert!(path.law.cwnd <= path.law.inflight_with_headroom() + 1e-9);
        }
        false
    });
    assert!(cruised);
}

#[test]
fn a_round_with_losses_lowers_the_short_term_bounds_by_at_most_beta() {
    let mut path = steady();
    assert!(path.run_until(ms(3000), |path| path.law.state == State::Cruise));
    let (max_bw, cwnd) = (path.law.max_bw.get(), path.law.cwnd);
    path.law.note_loss();
    path.law.bounds.bw_latest = 0.0;
    path.law.bounds.inflight_latest = 0.0;
    path.law.adapt_lower_bounds();
    assert_eq!((path.law.bounds.bw_lo, path.law.bounds.inflight_lo), (0.7 * max_bw, 0.7 * cwnd));
    path.law.bounds.bw_latest = max_bw;
    path.law.bounds.inflight_latest = cwnd;
    path.law.adapt_lower_bounds(); // and by no more than was delivered
    assert_eq!((path.law.bounds.bw_lo, path.law.bounds.inflight_lo), (max_bw, cwnd));
    // The next probe forgets them.
    assert!(path.run_until(ms(4000), |path| path.law.state == State::Refill));
    assert!(path.law.bounds.bw_lo.is_infinite() && path.law.bounds.inflight_lo.is_infinite());
}

#[test]
fn the_volume_at_which_losses_crossed_the_threshold() {
    let law = law();
    let at = |tx_in_flight, lost| law.inflight_at_loss(&Sample { tx_in_flight, lost, ..Sample::default() }, 1.0);
    // (0.02·100 - 0)/0.98 of the lost segment fitted.
    assert!((at(101.0, 1.0) - (100.0 + 2.0 / 0.98)).abs() < 1e-9);
    assert_eq!(at(101.0, 4.0), 100.0); // crossed before
}

#[test]
fn a_lost_segment_of_a_probe_ends_the_probe() {
    let mut path = steady();
    assert!(path.run_until(ms(4000), |path| path.law.state == State::Up));
    let lost = |lost_since_send| Lost {
        now: path.now,
        sent: path.now,
        bytes: 1000,
        in_flight_at_send: 200_000,
        lost_since_send,
        app_limited: false,
    };
    let mut law = path.law.clone();
    law.on_lost(&lost(4000)); // two percent do not count yet
    assert_eq!(law.state, State::Up);
    assert!(law.bounds.inflight_hi.is_infinite());
    law.on_lost(&lost(5000));
    assert_eq!(law.state, State::Down);
    assert_eq!(law.bounds.inflight_hi, 199.0);
    let cwnd = law.cwnd;
    law.on_lost(&lost(50_000)); // once per probe
    assert_eq!((law.bounds.inflight_hi, law.cwnd), (199.0, cwnd));

    // If the loss was spurious, the probe is resumed.
    law.on_spurious();
    assert_eq!(law.state, State::Refill);
    assert!(law.bounds.inflight_hi.is_infinite());
}

#[test]
fn a_spurious_end_of_startup_is_undone() {
    let mut path = Path::new(law(), 20.0, 40, 20);
    assert!(path.run_until(ms(1000), |path| path.law.state == State::Drain));
    path.law.on_spurious();
    assert_eq!(path.law.state, State::Startup);
    assert!(!path.law.full.reached);
    assert!(path.law.bounds.inflight_hi.is_infinite());
}

#[test]
fn the_bound_grows_by_one_then_two_then_four() {
    let mut path = steady();
    let law = &mut path.law;
    law.cycle.up_rounds = 0;
    law.cwnd = 64.0;
    law.bounds.inflight_hi = 64.0;
    law.raise_slope();
    let ack = crate::Ack { packets: 1, window_limited: true, ..crate::Ack::default() };
    let mut hi = vec![64.0];
    for _ in 0..3 {
        for n in 1..=64 {
            law.cwnd = law.bounds.inflight_hi;
            law.rounds.start = n == 64;
            law.probe_upward(&ack);
        }
        hi.push(law.bounds.inflight_hi);
    }
    let unused = crate::Ack { window_limited: false, ..ack };
    law.probe_upward(&unused);
    assert_eq!(law.bounds.inflight_hi, hi[3]);
    let steps: Vec<f64> = hi.windows(2).map(|pair| (pair[1] - pair[0]).round()).collect();
    assert_eq!(steps, [1.0, 2.0, 4.0]);
}

#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut path = steady();
    path.rate *= 10.0;
    path.buffer *= 10;
    path.run(ms(12_000));
    let throughput = path.throughput(ms(3000));
    assert!(throughput > 170.0, "{throughput}");
}

#[test]
fn half_the_bandwidth_is_found_in_two_cycles() {
    let mut path = steady();
    path.rate /= 2.0;
    path.run(ms(9000));
    let bw = path.show("max_bw_mbps");
    assert!((9.5..10.5).contains(&bw), "{bw}");
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
    path.run(ms(200));
    assert!(path.law.cwnd > 4.0);
}

#[test]
fn marks_change_nothing_without_ecn() {
    let mut path = steady();
    path.mark_above = 0;
    path.run(ms(4000));
    assert!(path.law.bounds.inflight_lo.is_infinite());
    let congestion = path.congestion(Signal::Ecn);
    let before = path.law.cwnd;
    path.law.on_congestion(&congestion);
    assert_eq!(path.law.cwnd, before);
}

#[test]
fn an_idle_flow_keeps_its_model_and_needs_no_probe_rtt() {
    let mut path = steady();
    path.idle(ms(6000));
    assert!(path.law.idle_restart);
    let rate = path.law.pacing_rate().unwrap();
    assert!((2_400_000..2_525_000).contains(&rate), "{rate}");
    path.run(ms(100));
    assert!(path.law.state.is_probe_bw());
    assert!(!path.law.idle_restart);
}

#[test]
fn a_slow_application_neither_ends_startup_nor_lowers_the_estimate() {
    let mut path = path();
    path.app_rate = 250_000.0;
    path.run(ms(3000));
    assert_eq!(path.law.state, State::Startup);
    let mut path = steady();
    path.app_rate = 250_000.0;
    path.run(ms(4000));
    let bw = path.show("max_bw_mbps");
    assert!(bw > 19.0, "{bw}");
}

#[test]
fn probe_rtt_in_startup_leads_back_to_startup() {
    let mut path = path();
    path.app_rate = 250_000.0;
    path.rtt = ms(40);
    path.run(ms(100));
    path.law.probe_rtt = crate::law::bbr::ProbeRtt::new(ms(10_000), ms(10), ms(200), false);
    assert!(path.run_until(ms(1000), |path| path.law.state == State::ProbeRtt));
    assert!(path.run_until(ms(1000), |path| path.law.state != State::ProbeRtt));
    assert_eq!(path.law.state, State::Startup);
}

#[test]
fn less_than_a_segment_of_bdp_is_paced_with_four_in_flight() {
    let mut path = Path::new(law(), 0.5, 4, 100); // a quarter of a segment
    path.run(ms(4000));
    assert!((4.0..=9.0).contains(&path.law.cwnd), "{}", path.law.cwnd);
    let throughput = path.throughput(ms(4000));
    assert!(throughput > 0.45, "{throughput}");
}

proptest! {
    #[test]
    fn window_and_rate_stay_sane(
        mbps in 0.2f64..300.0, rtt in 1u64..200, buffer in 2u64..600, loss in 0.0f64..0.3, seed in any::<u64>(),
    ) {
        let mut path = Path::new(Parameters::default().machine(&Flow { seed, ..FLOW }), mbps, rtt, buffer);
        path.loss = loss;
        path.run_until(ms(30 * rtt + 100), |path| {
            let law = &path.law;
            assert!(law.cwnd.is_finite() && law.cwnd >= 4.0, "{}", law.cwnd);
            assert!(law.bounds.inflight_hi >= 1.0 && law.bounds.inflight_lo >= 0.0);
            assert!(law.bw().is_finite() && law.bw() * f64::from(MSS) <= 1.2 * path.rate + 1.0);
            false
        });
        prop_assert!(path.delivered > 0);
        prop_assert!(path.now > Time::ZERO);
    }
}
