// SPDX-License-Identifier: MIT OR Apache-2.0
//! When segments leave: handshake, windows, pacing, applications that pause; and when ACKs do.

use super::{
    path::{MSS, Path, at, millis, settings},
    spy::{Call, Calls, Spy, fixed},
};
use crate::scenario::Tcp;
use lowtide_cc::{EcnUse, Restart};
use lowtide_net::Time;

/// When the data segments left, milliseconds.
fn departures(path: &Path) -> Vec<u64> {
    path.sent
        .iter()
        .filter(|(segment, _)| !segment.syn)
        .map(|(segment, _)| segment.sent.as_nanos() / 1_000_000)
        .collect()
}

fn restarts(calls: &Calls) -> Vec<Restart> {
    let calls = calls.lock().expect("one thread");
    calls.iter().filter_map(|call| if let Call::Restart(restart) = call { Some(*restart) } else { None }).collect()
}

#[test]
fn a_handshake_takes_a_round_trip_and_measures_it() {
    let mut path = Path::new(&settings()).write(at(0), 30);
    path.run(at(41));
    assert_eq!(departures(&path), [40; 10], "the initial window");
    assert_eq!(path.sender.srtt(), Some(millis(40)));
    assert_eq!((path.sender.acked_bytes(), path.sender.unsent()), (0, 20 * MSS));
}

#[test]
fn the_end_of_the_stream_comes_with_the_last_byte_or_alone() {
    let mut path = Path::new(&settings()).write(at(0), 3).close(at(0));
    path.finish();
    assert_eq!(path.sent.iter().filter(|(segment, _)| segment.fin).count(), 1);
    assert_eq!(path.sent.len(), 4);
    let mut path = Path::new(&settings()).write(at(0), 3).close(at(500));
    let finished = path.finish();
    assert_eq!((path.sent.len(), finished), (5, at(540)));
    assert_eq!(path.sent[4].0.bytes, 0);
    assert_eq!((path.receiver.received(), path.sender.acked_bytes()), (3 * MSS, 3 * MSS));
}

#[test]
fn the_receivers_window_is_kept() {
    let mut path = Path::new(&Tcp { receive_window: 5 * MSS + 500, ..settings() }).write(at(0), 200);
    path.run(at(10_000));
    assert_eq!(path.receiver.received(), 200 * MSS);
    assert_eq!(path.peak, 5 * MSS);
    let tiny = Tcp { receive_window: 300, ..settings() };
    let mut path = Path::new(&tiny).write(at(0), 2).close(at(0));
    path.finish();
    assert_eq!(path.sent.iter().map(|(segment, _)| segment.bytes).max(), Some(300));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // Two segments in each 50 ms: the flow never uses more than two of its ten.
    let mut path = (0..40).fold(Path::new(&settings()), |path, i| path.write(at(50 * i), 2));
    path.run(at(3000));
    assert_eq!(path.sender.cwnd(), 10 * MSS);
    assert!(path.sender.latest_rate().expect("measured").app_limited);
    // In slow start it may grow to twice what is used.
    let mut path = (0..40).fold(Path::new(&settings()), |path, i| path.write(at(100 * (i + 1)), 8));
    path.run(at(3000));
    assert_eq!(path.sender.cwnd(), 16 * MSS);
    let mut greedy = Path::new(&settings());
    greedy.sender.write(u64::MAX);
    greedy.run(at(190));
    assert!(greedy.sender.cwnd() > 40 * MSS, "{}", greedy.sender.cwnd());
    assert!(!greedy.sender.latest_rate().expect("measured").app_limited);
}

#[test]
fn the_measured_rate_is_the_bottlenecks() {
    let (path, _) = fixed(60.0);
    let mut path = path.write(at(0), 2000);
    path.run(at(1000));
    let rate = path.sender.latest_rate().expect("measured");
    let bytes_per_second = u128::from(rate.delivered) * 1_000_000_000 / rate.interval.as_nanos();
    assert_eq!(bytes_per_second, u128::from(1000 * MSS));
    assert_eq!(rate.in_flight_at_send, 60 * MSS);
    assert_eq!(path.sender.latest_rtt(), Some(millis(60)), "60 segments at one each millisecond");
    assert_eq!(path.sender.latest_one_way_delay(), Some(40_000_000), "of which the way back is 20 ms");
    assert_eq!(path.sender.min_rtt(), Some(millis(40)), "the handshake's");
}

#[test]
fn after_an_idle_time_the_window_is_validated_if_so_set() {
    for (validate_window, idle, window) in [(true, 5000, Some(10)), (true, 150, None), (false, 5000, None)] {
        let (spy, calls) = Spy::new(64.0);
        let path = spy.path(&Tcp { validate_window, ..settings() }, EcnUse::Off);
        let mut path = path.write(at(0), 100).write(at(187 + idle), 10).close(at(187 + idle));
        path.finish();
        let restarts = restarts(&calls);
        assert_eq!(restarts.len(), 1, "neither at the start nor within a transfer: {restarts:?}");
        assert_eq!(restarts[0].window, window.map(|segments| segments * MSS));
        assert!(restarts[0].idle >= millis(idle - 10) && restarts[0].idle <= millis(idle + 10), "{restarts:?}");
    }
}

#[test]
fn the_unused_window_halves_with_each_timeout() {
    let (spy, calls) = Spy::new(64.0);
    let path = spy.path(&settings(), EcnUse::Off).write(at(0), 100).write(at(187 + 350), 10).close(at(540));
    let mut path = path;
    path.finish();
    assert_eq!(restarts(&calls)[0].window, Some(32 * MSS), "{:?}", restarts(&calls));
}

#[test]
fn a_law_sets_the_pace() {
    let (mut spy, _) = Spy::new(64.0);
    spy.pacing_rate = Some(500 * MSS);
    let mut path = spy.path(&settings(), EcnUse::Off).write(at(0), 100).close(at(0));
    path.finish();
    // The first ten at once, as Linux has it.
    let paced = (0..90).map(|i| 40 + 4 * (i / 2));
    let expected: Vec<u64> = [40; 10].into_iter().chain(paced).collect();
    assert_eq!(departures(&path), expected);
}

#[test]
fn pacing_spreads_the_window_over_the_round_trip() {
    let mut path = Path::new(&Tcp { pacing: true, ..settings() }).write(at(0), 10).write(at(200), 10);
    path.run(at(1000));
    let departures = departures(&path);
    assert_eq!(departures[..10], [40; 10], "Linux does not pace the first ten");
    // The window of twenty segments in 40 ms, at twice that rate in slow start, in pairs.
    assert_eq!(departures[10..], [200, 200, 202, 202, 204, 204, 206, 206, 208, 208]);
    assert_eq!(path.sender.pacing_rate().map(|rate| rate > 500 * MSS), Some(true));
}

#[test]
fn a_window_below_one_segment_is_a_segment_every_few_round_trips() {
    let (path, _) = fixed(0.25);
    let mut path = path.write(at(0), 16).close(at(0));
    path.finish();
    let departures = departures(&path);
    // Linux does not pace the first ten: one in each round trip.
    let gaps: Vec<u64> = departures[10..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The smoothed round trip approaches 41 ms with the segment's own time.
    assert!(gaps.iter().all(|gap| (160..=164).contains(gap)), "{gaps:?}");
    assert_eq!(path.retransmits(), 0);
}

#[test]
fn acks_are_delayed_and_stretched_as_set() {
    let count = |ack_every, quick_acks| {
        let mut path = Path::new(&Tcp { ack_every, quick_acks, ..settings() }).write(at(0), 240).close(at(0));
        path.finish();
        path.acks.len() - 1
    };
    assert_eq!(count(1, 0), 240);
    assert_eq!(count(2, 0), 120);
    assert_eq!(count(2, 20), 20 + 110);
    assert_eq!(count(8, 0), 31, "every eighth of one burst, and the rest by the timer");
}

#[test]
fn a_single_segment_is_acknowledged_by_the_timer() {
    let mut path = Path::new(&Tcp { ack_every: 2, quick_acks: 0, ..settings() }).write(at(0), 1);
    path.run(at(300));
    let acked: Vec<Time> = path.acks.iter().map(|ack| ack.sent).collect();
    assert_eq!(acked, [at(20), at(40 + 21 + 40)]);
    assert_eq!(path.sender.latest_one_way_delay(), Some(61_000_000));
    assert_eq!(path.retransmits(), 0, "a probe waits for the delayed ACK");
}

#[test]
fn what_is_not_sent_can_be_taken_back() {
    let mut path = Path::new(&settings()).write(at(0), 0);
    path.sender.write(u64::MAX);
    path.run(at(100));
    path.sender.discard_unsent();
    path.sender.close();
    path.finish();
    assert!(path.receiver.received() < 100 * MSS);
}

#[test]
fn the_same_run_is_the_same_again() {
    let run = || {
        let mut path = Path::new(&settings()).write(at(0), 500).close(at(0)).dropping([3, 77, 78, 301]);
        path.finish();
        (path.sent, path.acks)
    };
    assert_eq!(run(), run());
}
