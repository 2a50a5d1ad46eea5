// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::testing::queue_path::Path;
use std::time::Duration;

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// A queue of competing flows that varies by a quarter of `queue`, as one of loss-based flows does. Whether Tide was in
/// FILL meanwhile.
fn beside_others(path: &mut Path, queue: Duration, time: Duration) -> bool {
    let steps = (time.as_millis() / 100) as u32;
    let mut fills = false;
    for step in 0..steps {
        path.others = queue * 3 / 4 + queue / 4 * (step % 40) / 40;
        path.run(ms(100), |path| fills |= path.value("listens") == 0.0);
    }
    fills
}

#[test]
fn an_idle_link_is_filled_with_a_queue_of_a_millisecond_or_two() {
    let mut path = Path::new("tide", ms(40), 1700);
    path.run(ms(5_000), |_| {});
    let (before, mut queue) = (path.delivered, Duration::ZERO);
    path.run(ms(20_000), |path| queue = queue.max(path.queue()));
    let used = (path.delivered - before) as f64 / (20.0 * 1700.0);
    assert!(used > 0.98, "{used}");
    assert!(queue < ms(6), "{queue:?}");
}

#[test]
fn a_queue_of_others_silences_it_within_three_round_trips_and_it_comes_back() {
    let mut path = Path::new("tide", ms(40), 1700);
    path.run(ms(10_000), |_| {});
    path.others = ms(15);
    path.run(ms(165), |_| {});
    assert_eq!(path.value("listens"), 1.0);
    let before = path.delivered;
    beside_others(&mut path, ms(15), ms(10_000));
    assert!(path.delivered - before < 130, "probes take half a percent: {}", path.delivered - before);
    path.others = Duration::ZERO;
    path.run(ms(1_200), |_| {});
    let before = path.delivered;
    path.run(ms(2_000), |_| {});
    let used = (path.delivered - before) as f64 / (2.0 * 1700.0);
    assert!(used > 0.95, "{used}");
}

/// A ramp past the known BDP would cause a queue for an RTT.
#[test]
fn it_comes_back_to_the_bdp_that_it_knows_and_no_further() {
    let mut path = Path::new("tide", ms(200), 1700);
    path.run(ms(20_000), |_| {});
    beside_others(&mut path, ms(60), ms(4_000));
    path.others = Duration::ZERO;
    let mut queue = Duration::ZERO;
    path.run(ms(1_000), |_| {});
    path.run(ms(5_000), |path| queue = queue.max(path.queue()));
    let before = path.delivered;
    path.run(ms(2_000), |_| {});
    assert!(path.delivered - before > 3_000, "{}", path.delivered - before);
    assert!(queue < ms(10), "{queue:?}");
}

/// On a long path a drain of BDP/20 would hide a much longer queue of cross traffic at its end.
#[test]
fn a_look_at_the_empty_queue_goes_no_deeper_than_what_would_be_somebody_elses() {
    let mut path = Path::new("tide", ms(300), 2000);
    path.run(ms(30_000), |_| {});
    let (mut least, mut empty) = (f64::INFINITY, false);
    path.run(ms(30_000), |path| {
        least = least.min(path.cwnd());
        empty |= path.queue().is_zero();
    });
    assert_eq!(path.value("listens"), 0.0);
    assert!(empty, "it has not looked");
    assert!(least > 590.0, "{least} of 600 packets");
}

/// A standing queue is taken for a part of the base RTT.
#[test]
fn it_probes_and_fills_the_link_in_a_queue_that_was_there_before() {
    let mut path = Path::new("tide", ms(40), 1700);
    path.others = ms(60);
    assert!(beside_others(&mut path, ms(80), ms(30_000)));
    assert!(path.value("base") > 99.0, "{}", path.value("base"));
    assert!(path.delivered < 400, "probes take half a percent: {}", path.delivered);
}

#[test]
fn a_route_that_has_become_longer_it_uses_again_within_fifteen_seconds() {
    for longer in [44, 50, 80, 200] {
        let mut path = Path::new("tide", ms(40), 1700);
        path.run(ms(10_000), |_| {});
        path.base = ms(longer);
        path.run(ms(500), |_| {});
        assert_eq!(path.value("listens"), 1.0, "{longer}");
        path.run(ms(14_500), |_| {});
        let before = path.delivered;
        path.run(ms(5_000), |_| {});
        let used = (path.delivered - before) as f64 / (5.0 * 1700.0);
        assert!(used > 0.95, "{longer}: {used}");
    }
}
