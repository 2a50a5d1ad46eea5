// SPDX-License-Identifier: MIT OR Apache-2.0
//! One-way delays of a receiver whose clock we invent.

use super::{State, native_owd_delay, native_owd_size, native_owd_use};
use proptest::prelude::*;

const UNKNOWN: u32 = 0;
const ONE_WAY: u32 = 1;
const ROUND_TRIPS: u32 = 2;

/// Of the path, both ways, microseconds; queues come on top.
const FORWARD: u64 = 12_000;
const RETURN: u64 = 8_000;

struct Owd(Box<State>);

impl Owd {
    fn new() -> Owd {
        assert!(unsafe { native_owd_size() } as usize <= size_of::<State>());
        Owd(Box::new(State([0; 4096])))
    }

    fn delay(&mut self, tsval: Option<u32>, now: u64, rtt: u64) -> u64 {
        let (stamped, tsval) = (tsval.is_some(), tsval.unwrap_or(0));
        unsafe { native_owd_delay(&mut *self.0, stamped, tsval, now, rtt as u32) }.into()
    }

    fn use_(&self) -> u32 {
        unsafe { native_owd_use(&*self.0) }
    }
}

/// The receiver's clock: it shows `offset` at time 0 and counts ticks of `tick` microseconds, which are too long by
/// `ppm` millionths.
#[derive(Clone, Copy, Debug)]
struct Clock {
    tick: u64,
    ppm: i64,
    offset: u32,
}

impl Clock {
    const fn of(tick: u64) -> Clock {
        Clock { tick, ppm: 0, offset: 77 }
    }

    fn read(self, at: u64) -> u32 {
        let at = i128::from(at);
        let drifted = at - at * i128::from(self.ppm) / 1_000_000;
        ((drifted / i128::from(self.tick)) as u32).wrapping_add(self.offset)
    }
}

/// An ACK: when it came, with which round trip, what was said of the delay, and what the queues were.
struct Heard {
    now: u64,
    rtt: u64,
    delay: u64,
    forward: u64,
}

/// An ACK every 1.3 ms from `from` to `to` (s); the queues on both ways in microseconds follow the time in seconds.
fn run(owd: &mut Owd, clock: Clock, span: (f64, f64), queues: impl Fn(f64) -> (f64, f64)) -> Vec<Heard> {
    let mut heard = Vec::new();
    let mut sent = (span.0 * 1e6) as u64;
    let (mut arrived, mut now) = (0, 0); // nothing overtakes
    while (sent as f64) < span.1 * 1e6 {
        let (forward, back) = queues(sent as f64 / 1e6);
        arrived = arrived.max(sent + FORWARD + forward as u64);
        now = now.max(arrived + RETURN + back as u64);
        let forward = arrived - sent - FORWARD;
        let rtt = now - sent;
        let delay = owd.delay(Some(clock.read(arrived)), now, rtt);
        heard.push(Heard { now, rtt, delay, forward });
        sent += 1300;
    }
    heard
}

/// A queue that fills with this period in seconds, up to so many microseconds, and stays empty for a fifth of it.
fn saw(at: f64, period: f64, most: f64) -> f64 {
    most * ((at / period).fract() - 0.2).max(0.0) / 0.8
}

/// The delay of an ACK that did not wait for anything.
const fn true_delay(heard: &Heard) -> u64 {
    FORWARD + RETURN + heard.forward
}

#[test]
fn a_quiet_return_path_gives_the_round_trip_to_the_microsecond() {
    for tick in [1, 1000, 4000, 10_000] {
        let mut owd = Owd::new();
        for heard in run(&mut owd, Clock::of(tick), (0.0, 60.0), |at| (saw(at, 0.9, 30_000.0), 0.0)) {
            assert_eq!(heard.delay, heard.rtt, "at {} us, ticks of {tick}", heard.now);
        }
        assert_eq!(owd.use_(), ONE_WAY, "ticks of {tick}");
    }
}

/// What an ACK waits for counts up to a tick, and the rate is found within a few hundredths of a second.
#[test]
fn the_return_path_does_not_count() {
    for tick in [1, 1000, 4000, 10_000] {
        for ppm in [-100, 0, 100] {
            let clock = Clock { ppm, ..Clock::of(tick) };
            let mut owd = Owd::new();
            let queues = |at| (saw(at, 0.9, 30_000.0), saw(at, 3.7, 50_000.0));
            let mut last = 0;
            for heard in run(&mut owd, clock, (0.0, 900.0), queues).iter().filter(|heard| heard.now > 10_000_000) {
                let (least, most) = (true_delay(heard), true_delay(heard) + tick);
                // in two windows a clock drifts by this much
                assert!(
                    (least.saturating_sub(850)..=most + 850).contains(&heard.delay),
                    "{} of {least}..{most}",
                    heard.delay
                );
                last = heard.now;
            }
            assert!(last > 890_000_000);
            assert_eq!(owd.use_(), ONE_WAY);
        }
    }
}

/// The plain difference errs by the drift: a tenth of a second in a quarter of an hour.
#[test]
fn drift_is_removed_while_a_queue_stands() {
    for ppm in [-100, 100] {
        let clock = Clock { ppm, ..Clock::of(1000) };
        let mut owd = Owd::new();
        run(&mut owd, clock, (0.0, 5.0), |_| (0.0, 0.0));
        let heard =
            run(&mut owd, clock, (5.0, 1000.0), |at| (60_000.0 + saw(at, 1.0, 20_000.0), saw(at, 1.7, 15_000.0)));
        let last = &heard[heard.len() - 10_000..];
        for heard in last {
            let off = heard.delay.abs_diff(true_delay(heard));
            assert!(off <= 1000 + 850, "{ppm} ppm: {off} us off");
        }
    }
}

#[test]
fn the_clock_wraps() {
    for tick in [1, 1000] {
        let clock = Clock { tick, ppm: 0, offset: u32::MAX - (20_000_000 / tick) as u32 };
        let mut owd = Owd::new();
        let queues = |at| (saw(at, 0.9, 30_000.0), saw(at, 3.7, 50_000.0));
        for heard in run(&mut owd, clock, (0.0, 40.0), queues).iter().filter(|heard| heard.now > 4_000_000) {
            assert!(heard.delay.abs_diff(true_delay(heard)) <= tick, "at {} us", heard.now);
        }
        assert_eq!(owd.use_(), ONE_WAY);
    }
}

#[test]
fn without_timestamps_there_are_round_trips() {
    let mut owd = Owd::new();
    assert_eq!(owd.use_(), UNKNOWN);
    for n in 1..1000 {
        assert_eq!(owd.delay(None, n * 1000, 20_000 + n), 20_000 + n);
    }
    assert_eq!(owd.use_(), ROUND_TRIPS);
    assert_eq!(owd.delay(Some(5), 1_000_001, 50_000), 50_000, "once and for all");
}

/// A queue that fills while the rate is measured makes ticks of 1 ms seem to be of 4 or 10 ms. Each ACK would then seem
/// to be the one that waited least, and its wait would count.
#[test]
fn a_rate_that_was_measured_in_a_queue_that_fills_is_measured_again() {
    for slope in [3.0, 9.0] {
        let mut owd = Owd::new();
        run(&mut owd, Clock::of(1000), (0.0, 0.1), |at| (0.0, (slope * at * 1e6).min(200_000.0)));
        let queues = |at| (0.0, saw(at, 3.7, 50_000.0));
        for heard in run(&mut owd, Clock::of(1000), (1.0, 20.0), queues).iter().filter(|heard| heard.now > 6_000_000) {
            assert!(
                heard.delay.abs_diff(true_delay(heard)) <= 1000,
                "slope {slope}: {} and {} at {} us",
                heard.delay,
                true_delay(heard),
                heard.now
            );
        }
        assert_eq!(owd.use_(), ONE_WAY);
    }
}

/// A tick of 2, 5 or 100 ms is none that we know.
#[test]
fn a_clock_of_an_odd_rate_is_not_used() {
    for tick in [300, 2000, 5000, 100_000] {
        let mut owd = Owd::new();
        let heard = run(&mut owd, Clock::of(tick), (0.0, 60.0), |at| (saw(at, 0.9, 30_000.0), 0.0));
        assert_eq!(owd.use_(), ROUND_TRIPS, "ticks of {tick}");
        for heard in &heard[10_000..] {
            assert_eq!(heard.delay, heard.rtt);
        }
    }
}

/// Forwards by much, backwards by much: the rate is looked at anew. Never is a delay outside of what the path can have.
#[test]
fn a_clock_steps() {
    for step in [-3_000_000i64, -200, -5, 5, 200, 3_000_000] {
        let mut clock = Clock::of(1000);
        let mut owd = Owd::new();
        let queues = |at| (saw(at, 0.9, 30_000.0), saw(at, 3.7, 20_000.0));
        run(&mut owd, clock, (0.0, 30.0), queues);
        clock.offset = clock.offset.wrapping_add(step as u32);
        for heard in run(&mut owd, clock, (30.0, 60.0), queues) {
            assert!((FORWARD + RETURN..=heard.rtt).contains(&heard.delay));
            let settled = heard.now > 50_000_000;
            assert!(
                !settled || heard.delay.abs_diff(true_delay(&heard)) <= 1000,
                "{step} ticks, {} us: {} and {}",
                heard.now,
                heard.delay,
                true_delay(&heard)
            );
        }
        assert_eq!(owd.use_(), ONE_WAY);
    }
}

/// After an hour without an ACK a clock of microseconds has wrapped.
#[test]
fn a_long_pause() {
    for tick in [1, 1000] {
        let mut owd = Owd::new();
        let queues = |at| (saw(at, 0.9, 30_000.0), saw(at, 3.7, 20_000.0));
        run(&mut owd, Clock::of(tick), (0.0, 30.0), queues);
        for heard in run(&mut owd, Clock::of(tick), (4000.0, 4030.0), queues) {
            assert!((FORWARD + RETURN..=heard.rtt).contains(&heard.delay));
            let settled = heard.now > 4_004_000_000;
            assert!(!settled || heard.delay.abs_diff(true_delay(&heard)) <= tick, "{} us", heard.now);
        }
        assert_eq!(owd.use_(), ONE_WAY);
    }
}

proptest! {
    /// Whatever a receiver says: no delay is above the round trip or below the least one.
    #[test]
    fn any_clock(samples in prop::collection::vec((any::<bool>(), any::<u32>(), 0u64..40_000_000, 0u32..400_000), 1..400)) {
        let mut owd = Owd::new();
        let (mut now, mut least) = (1_000_000, u64::MAX);
        for (stamped, tsval, pause, rtt) in samples {
            now += pause;
            let rtt = u64::from(rtt);
            least = if rtt > 0 { least.min(rtt) } else { least };
            let delay = owd.delay(stamped.then_some(tsval), now, rtt);
            prop_assert!(if rtt == 0 { delay == 0 } else { (least..=rtt).contains(&delay) }, "{delay}");
        }
    }
}
