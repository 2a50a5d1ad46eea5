// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the laws in a trace follow from their inputs.

use lowtide_cc::{Ack, Congestion, CongestionControl, Flow, Law, Signal, Time};
use lowtide_port::{Port, Ported};
use std::time::Duration;

const MSS: u32 = 1000;
const NOTHING: i64 = i64::MIN;

/// A flow whose window is acknowledged one segment at a time.
struct Path {
    port: Port,
    now: Duration,
    una: u64,
}

impl Path {
    fn new(law: &str) -> Path {
        let ported = Ported::new(&law.parse::<Law>().unwrap()).unwrap();
        let port = ported.port(&Flow { mss: MSS, initial_window: 10, seed: 1 });
        Path { port, now: Duration::from_secs(1), una: 0 }
    }

    /// So many ACKs, 1 ms apart, of round trips of so many milliseconds; every `marked`-th with CE.
    fn acks(&mut self, number: u32, rtt_ms: u64, marked: u32) -> Vec<i64> {
        let (rtt, mss) = (Duration::from_millis(rtt_ms), u64::from(MSS));
        for n in 1..=number {
            self.now += Duration::from_millis(1);
            self.una += mss;
            let _ = self.port.on_ack(&Ack {
                now: Time::from_nanos(self.now.as_nanos() as u64),
                packets: 1,
                bytes: mss,
                marked: u32::from(marked > 0 && n % marked == 0),
                rtt: Some(rtt),
                srtt: rtt,
                una: self.una,
                nxt: self.una + self.port.window(),
                in_flight: self.port.window(),
                window_limited: true,
                ..Ack::default()
            });
        }
        self.port.values()
    }
}

/// A value of which `one` is the unit.
fn of(value: i64, one: u32) -> f64 {
    value as f64 / f64::from(one)
}

const Q8: u32 = 1 << 8;
const Q16: u32 = 1 << 16;
const Q30: u32 = 1 << 30;

#[test]
fn vegas_shows_base_queue_and_alpha() {
    let mut path = Path::new("vegas:alpha=3,beta=5");
    assert_eq!(path.port.values(), [NOTHING, 0, 3 << 16, 1]);
    assert_eq!(path.acks(100, 40, 0)[0], 40_001);
    let [base, diff, _, enabled] = path.acks(400, 60, 0)[..] else { panic!("four values") };
    assert!(base == 40_001 && diff > 2 && enabled == 1, "{diff}");
    let lost = Congestion {
        now: Time::from_nanos(path.now.as_nanos() as u64),
        signal: Signal::Loss,
        una: path.una,
        nxt: path.una + 10,
        in_flight: 10,
    };
    path.port.on_congestion(&lost);
    assert_eq!(path.port.values()[3], 0, "off until it has recovered");
    path.port.weighted().unwrap().set_weight(0.5);
    assert!(path.port.values()[2] > 3 << 16, "alpha follows the weight");
}

#[test]
fn eclipse_shows_the_delays_range() {
    let mut path = Path::new("eclipse");
    assert_eq!(path.port.values()[..3], [NOTHING; 3]);
    path.acks(50, 40, 0);
    let [delay, s_min, s_max, delta, mu, draining] = path.acks(50, 70, 0)[..] else { panic!("six values") };
    assert_eq!((of(delay, Q8), of(s_min, Q8), draining), (30_000.0, 0.0, 0));
    assert!(s_max <= delay && delta > 0 && of(mu, Q16) >= 1.0, "{s_max} {delta} {mu}");
    path.port.weighted().unwrap().set_weight(1.0);
    assert_eq!(path.acks(1, 70, 0)[3], NOTHING, "no bound at w = 1");
}

#[test]
fn ledbat_shows_base_and_queuing_delay() {
    let mut path = Path::new("ledbat:target=25ms");
    assert_eq!(path.port.values(), [NOTHING, NOTHING, 25_000]);
    path.acks(50, 40, 0);
    assert_eq!(path.acks(200, 70, 0), [40_000, 30_000, 25_000]);
}

#[test]
fn ledbatpp_shows_its_gain_and_phase() {
    let mut path = Path::new("ledbatpp:target=60ms");
    assert_eq!(path.port.values()[..2], [NOTHING; 2]);
    path.acks(50, 40, 0);
    let [base, queuing, target, divisor, phase] = path.acks(200, 110, 0)[..] else { panic!("five values") };
    assert_eq!((base, queuing, target, divisor), (40_000, 70_000, 60_000, 3));
    assert_ne!(phase, 0, "slow start has ended");
}

#[test]
fn laws_of_marks_show_alpha_and_acceleration() {
    for law in ["dctcp:accel=on,overload=on", "prague:accel=on,overload=on"] {
        let mut path = Path::new(law);
        let quiet = path.acks(2000, 40, 0);
        let marked = path.acks(10_000, 40, 1);
        let alpha = |values: &[i64]| of(values[0], Q30);
        assert!(alpha(&quiet) < alpha(&marked) && alpha(&marked) <= 1.0, "{law}: {quiet:?} {marked:?}");
        assert!(of(quiet[1], Q16) >= 1.0 && marked[4] == 0, "{law}: {quiet:?} {marked:?}");
    }
    assert_eq!(Path::new("prague").port.values().len(), 8);
}
