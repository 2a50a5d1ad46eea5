// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::testing::queue_path::Path;
use std::time::Duration;

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
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
    path.run(ms(10_000), |_| {});
    assert!(path.delivered - before < 130, "probes take half a percent: {}", path.delivered - before);
    path.others = Duration::ZERO;
    path.run(ms(1_200), |_| {});
    let before = path.delivered;
    path.run(ms(2_000), |_| {});
    let used = (path.delivered - before) as f64 / (2.0 * 1700.0);
    assert!(used > 0.95, "{used}");
}
