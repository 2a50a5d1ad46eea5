// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::{
    Law,
    testing::{any_events, rate_path::Path},
};
use proptest::prelude::*;

const FLOW: Flow = Flow { mss: 1000, initial_window: 10, seed: 1 };

fn path(text: &str, mbps: f64, rtt_ms: u64, buffer: u64) -> Path<Proteus> {
    let Ok(Law::Proteus(parameters)) = text.parse() else { panic!("{text} is Proteus") };
    Path::new(Proteus::new(&parameters, &FLOW), mbps, rtt_ms, buffer)
}

const fn secs(time: u64) -> Duration {
    Duration::from_secs(time)
}

#[test]
fn utility_is_the_paper_s() {
    let seen = Measured { gradient: 0.01, loss: 0.02, deviation: 0.001, ..Measured::default() };
    let scavenger = Parameters::default();
    let primary = scavenger.clone().d(0.0).unwrap();
    // 50^0.9 = 33.81; 900·50·0.01 = 450, 11.35·50·0.02 = 11.35, 1500·50·0.001 = 75
    assert!((scavenger.utility(50.0, &Measured::default()) - 33.812).abs() < 1e-3);
    assert!((primary.utility(50.0, &seen) - (33.812 - 450.0 - 11.35)).abs() < 1e-3);
    assert!((scavenger.utility(50.0, &seen) - (33.812 - 450.0 - 11.35 - 75.0)).abs() < 1e-3);
    let falling = Measured { gradient: -1.0, ..Measured::default() };
    assert_eq!(primary.utility(50.0, &falling), primary.utility(50.0, &Measured::default()), "a fall is no merit");
}

#[test]
fn alone_it_fills_the_link_with_a_short_queue() {
    for (text, mbps, rtt) in
        [("proteus", 20.0, 30), ("proteus:d=0", 20.0, 30), ("proteus", 50.0, 10), ("proteus", 5.0, 100)]
    {
        let mut path = path(text, mbps, rtt, 1000);
        path.run(secs(20));
        path.peak_queue = 0;
        let rate = path.throughput(secs(20));
        assert!(rate > 0.85 * mbps, "{text} at {mbps} Mbit/s, {rtt} ms: {rate}");
        let queue = path.peak_queue as f64 * 8e-3 / mbps;
        assert!(queue < 0.3 * rtt as f64, "{text} at {mbps} Mbit/s, {rtt} ms: {queue} ms");
    }
}

#[test]
fn it_begins_with_the_initial_window_in_a_round_trip_and_doubles() {
    let mut path = path("proteus", 1000.0, 20, 10_000);
    assert_eq!(path.law.pacing_rate(), Some(100_000), "ten segments in 100 ms");
    path.run(Duration::from_millis(21));
    assert_eq!(path.law.pacing_rate(), Some(499_800), "ten segments in 20 ms and the 8 µs that one takes");
    assert!(path.run_until(secs(1), |path| path.law.pacing_rate() == Some(2 * 499_800)));
    assert!(path.run_until(secs(1), |path| path.law.pacing_rate() == Some(4 * 499_800)));
}

#[test]
fn it_bears_a_loss_of_one_percent_and_not_of_twenty() {
    // c = 11.35: at 20 Mbit/s utility rises up to a loss of 0.9/(11.35·20^0.1) = 5.9 %. Intervals of 75 packets know
    // theirs to 2 %.
    let rate = |loss| {
        let mut path = path("proteus", 20.0, 30, 1000);
        path.loss = loss;
        path.run(secs(20));
        path.throughput(secs(20))
    };
    let (none, some, much) = (rate(0.0), rate(0.01), rate(0.2));
    assert!(some > 0.8 * none, "{some} of {none}");
    assert!(much < 0.3 * none, "{much} of {none}");
}

#[test]
fn a_rate_that_is_not_used_does_not_grow() {
    let mut path = path("proteus", 50.0, 30, 1000);
    path.run(secs(5));
    path.app_rate = 125_000.0;
    path.run(Duration::from_millis(500));
    let before = path.law.pacing_rate().unwrap();
    path.run(secs(20));
    assert!(path.law.pacing_rate().unwrap() <= before, "{before} to {:?}", path.law.pacing_rate());
}

#[test]
fn an_idle_time_leaves_the_rate_as_it_is() {
    let mut path = path("proteus", 20.0, 30, 1000);
    path.run(secs(20));
    let before = path.show("rate");
    path.idle(secs(3));
    assert!((path.show("rate") - before).abs() < 0.11 * before);
    assert!(path.throughput(secs(2)) > 15.0);
}

#[test]
fn an_outage_is_survived() {
    let mut path = path("proteus", 20.0, 30, 1000);
    path.run(secs(10));
    path.loss = 1.0;
    path.run(secs(5));
    path.loss = 0.0;
    path.run(secs(20));
    assert!(path.throughput(secs(10)) > 16.0);
}

proptest! {
    #[test]
    fn whatever_happens_window_and_rate_are_possible(
        text in prop::sample::select(vec!["proteus", "proteus:d=0", "proteus:pairs=1,theta=100", "proteus:pairs=5,min_rate=0.001"]),
        events in any_events::events(),
    ) {
        let mut law = text.parse::<Law>().unwrap().build(&FLOW);
        let mut now = Time::from_nanos(1);
        for event in &events {
            now = now + Duration::from_millis(7);
            law.on_sent(&Sent { now, bytes: 1000, in_flight: 0, nxt: 0, retransmission: false, app_limited: false, has_data: true });
            law.on_lost(&Lost { now, sent: now, bytes: 1000, in_flight_at_send: 0, lost_since_send: 0, app_limited: false });
            any_events::apply(&mut *law, event);
            prop_assert!(law.window() >= 10_000 && law.window() < 1 << 40);
            prop_assert!(law.pacing_rate().is_some_and(|rate| rate > 0));
            let mut finite = true;
            law.inspect(&mut |_, value| finite &= value.is_finite());
            prop_assert!(finite);
        }
    }
}
