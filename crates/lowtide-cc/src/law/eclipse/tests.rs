// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::Law;
use proptest::prelude::*;

const MSS: u64 = 1000;
/// The clocks differ by this, ms.
const OFFSET: f64 = -5e8;

struct Driver {
    law: Eclipse,
    now: Time,
    offset: f64,
    rtt: Duration,
}

impl Driver {
    fn new(text: &str) -> Self {
        let parameters = crate::text::read::<Parameters>(text).unwrap();
        let law = Eclipse::new(&parameters, &Flow { mss: MSS as u32, initial_window: 20, seed: 0 });
        Self { law, now: Time::from_nanos(1_000_000_000), offset: OFFSET, rtt: Duration::from_millis(20) }
    }

    /// Beyond slow start, with a window of 20 segments and a range of delays from 0 to 100 ms.
    fn steady(text: &str) -> Self {
        let mut driver = Self::new(format!("mu=fixed,mu_initial=3600s,{text}").trim_end_matches(','));
        driver.law.window.ssthresh = 20.0;
        for tau in [0.0, 100.0] {
            driver.ack(tau, 0, 1);
        }
        driver
    }

    /// An ACK for `packets` segments with this one-way delay (ms), so many ms after the last.
    fn ack(&mut self, tau: f64, packets: u32, after_ms: u64) {
        self.now = self.now + Duration::from_millis(after_ms);
        self.ack_with(Some(tau), packets);
    }

    /// The same now, perhaps without one-way delays.
    fn ack_with(&mut self, tau: Option<f64>, packets: u32) {
        let _ = self.law.on_ack(&Ack {
            now: self.now,
            packets,
            bytes: u64::from(packets) * MSS,
            rtt: Some(self.rtt),
            srtt: self.rtt,
            one_way_delay: tau.map(|tau| ((tau + self.offset) * 1e6) as i64),
            window_limited: true,
            ..Ack::default()
        });
    }

    /// The growth of the window in an RTT with this delay, if all of the window is acknowledged.
    fn round(&mut self, tau: f64) -> f64 {
        let before = self.law.window.cwnd;
        self.ack(tau, before.round() as u32, 20);
        self.law.window.cwnd - before
    }

    fn congestion(&mut self, signal: Signal) {
        self.law.on_congestion(&Congestion { now: self.now, signal, una: 0, nxt: 0, in_flight: 0 });
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn texts_and_defaults() {
    let law: Law = "eclipse".parse().unwrap();
    assert_eq!(law.to_string(), "eclipse");
    let p = Parameters::default();
    assert_eq!((p.beta, p.alpha, p.cwnd_min, p.beta_loss), (0.15, 1.0 / 8.0, 4.0, 0.5));
    assert_eq!((p.mu_initial, p.mu_min, p.mu_rtts), (Duration::from_secs(1), Duration::from_millis(200), 4.0));
    assert_eq!((p.mu_max, p.delta_min), (Duration::from_secs(30), Duration::from_micros(100)));
    assert_eq!((p.delta_floor, p.guard, p.drain), (0.0, false, Duration::ZERO));
}

#[test]
fn the_law() {
    // δ = 15 ms: full growth at s_min, none at s_min + δ, and at s_max -(1/β - 1).
    assert!(near(Driver::steady("").round(0.0), 1.0));
    assert!(near(Driver::steady("").round(7.5), 0.5));
    assert!(near(Driver::steady("").round(15.0), 0.0));
    assert!(near(Driver::steady("").round(30.0), -1.0));
    assert!(near(Driver::steady("").round(100.0), -85.0 / 15.0));
    assert!(near(Driver::steady("beta=0.5").round(100.0), -1.0));
}

#[test]
fn without_one_way_delays_the_round_trip_is_steered_by() {
    let mut driver = Driver::new("slow_start=loss");
    driver.law.window.ssthresh = 20.0;
    let mut grow = |rtt_ms| {
        let before = driver.law.window.cwnd;
        let rtt = Duration::from_millis(rtt_ms);
        driver.now = driver.now + rtt;
        let ack = Ack { now: driver.now, packets: 10, bytes: 10 * MSS, rtt: Some(rtt), srtt: rtt, ..Ack::default() };
        let _ = driver.law.on_ack(&Ack { window_limited: true, ..ack });
        driver.law.window.cwnd - before
    };
    assert_eq!(grow(20), 0.5);
    assert!(grow(60) < 0.0);
}

#[test]
fn extremes_are_taken_at_once_and_given_up_slowly() {
    let mut driver = Driver::new("mu=fixed,mu_initial=1s");
    for (tau, after) in [(10.0, 0), (0.0, 1), (30.0, 1)] {
        driver.ack(tau, 1, after);
    }
    // Delays are relative to the first, which was 10.
    assert_eq!((driver.law.s_min, driver.law.s_max), (-10.0, 20.0));
    driver.ack(20.0, 1, 1000); // ends the interval that has both extremes
    assert_eq!((driver.law.s_min, driver.law.s_max), (-10.0, 20.0));
    driver.ack(16.0, 1, 1); // begins one in which the delay lies between 2 and 10
    driver.ack(12.0, 1, 500);
    driver.ack(20.0, 1, 500);
    assert_eq!(driver.law.s_min, -10.0 + (2.0 + 10.0) / 8.0);
    assert_eq!(driver.law.s_max, 20.0 - (20.0 - 10.0) / 8.0);
    driver.ack(-5.0, 1, 1);
    assert_eq!(driver.law.s_min, -15.0);
}

#[test]
fn the_guard_holds_s_min_where_its_own_queue_explains_the_delay() {
    let after = |text: &str, tau: f64| {
        let mut driver = Driver::new(&format!("mu=fixed,mu_initial=1s,{text}"));
        driver.ack(0.0, 1, 0);
        driver.ack(100.0, 1, 1000); // ends the first interval; δ = 15
        driver.ack(tau, 1, 1);
        driver.ack(tau, 1, 1000);
        driver.law.s_min
    };
    assert!(near(after("guard=off", 10.0), 10.0 / 8.0));
    assert_eq!(after("guard=on", 10.0), 0.0);
    assert_eq!(after("guard=on", 18.7), 0.0); // 1.25 δ = 18.75
    assert!(near(after("guard=on", 20.0), 20.0 / 8.0));
}

#[test]
fn a_range_of_zero_means_growth() {
    let mut driver = Driver::new("");
    driver.law.window.ssthresh = 20.0;
    assert!(near(driver.round(7.0), 1.0));
    assert_eq!(driver.law.delta, 0.1);
    // A floor of one packet: 20 ms over 21 segments.
    let mut driver = Driver::new("delta_floor=1");
    driver.law.window.ssthresh = 20.0;
    let _ = driver.round(7.0);
    assert!(near(driver.law.delta, 1.0));
}

#[test]
fn slow_start_ends_when_the_delay_rises_after_eight_samples() {
    let grow = |text: &str, at: usize| {
        let mut driver = Driver::new(text);
        for n in 0..20 {
            driver.ack(if n >= at { 5.0 } else { 0.0 }, 1, 1);
            if !driver.law.window.in_slow_start() {
                break;
            }
        }
        driver.law.window.ssthresh
    };
    assert_eq!(grow("", 12), 32.0);
    assert_eq!(grow("", 2), 27.0); // the eighth sample ends it
    assert_eq!(grow("", 20), f64::INFINITY);
    assert_eq!(grow("slow_start=loss", 12), f64::INFINITY);
}

#[test]
fn the_minimum_is_four_segments_but_after_a_timeout() {
    let mut driver = Driver::steady("");
    for _ in 0..10 {
        let _ = driver.round(100.0);
    }
    assert_eq!(driver.law.window.cwnd, 4.0);
    driver.congestion(Signal::Loss);
    assert_eq!(driver.law.window.cwnd, 4.0);
    driver.congestion(Signal::Timeout);
    assert_eq!((driver.law.window.cwnd, driver.law.window.ssthresh), (1.0, 4.0));
    driver.congestion(Signal::Loss);
    assert_eq!(driver.law.window.cwnd, 1.0);
    for _ in 0..4 {
        driver.ack(0.0, 1, 1);
    }
    assert!(driver.law.window.cwnd >= 4.0);
}

#[test]
fn a_loss_halves() {
    let mut driver = Driver::steady("");
    driver.congestion(Signal::Loss);
    assert_eq!((driver.law.window.cwnd, driver.law.window.ssthresh), (10.0, 10.0));
    driver.law.on_spurious();
    assert_eq!(driver.law.window.cwnd, 20.0);
}

#[test]
fn retransmitted_segments_give_no_sample() {
    let mut driver = Driver::steady("");
    let late = Ack { now: driver.now, one_way_delay: Some(i64::MAX), packets: 1, bytes: MSS, ..Ack::default() };
    let _ = driver.law.on_ack(&late);
    assert_eq!((driver.law.s_max, driver.law.window.cwnd), (100.0, 20.0));
}

#[test]
fn a_long_idle_time_forgets_the_range_and_keeps_the_base() {
    for (idle, s_max) in [(3_600_001, 0.0), (1000, 100.0)] {
        let mut driver = Driver::steady("");
        let idle = Duration::from_millis(idle);
        driver.law.on_restart(&Restart { now: driver.now + idle, idle, nxt: 0, window: Some(10 * MSS) });
        assert_eq!((driver.law.s_min, driver.law.s_max), (0.0, s_max));
        assert_eq!(driver.law.window.cwnd, 10.0);
    }
}

#[test]
fn the_interval_follows_the_delay_within_its_bounds() {
    let mu_after = |text: &str, delay: &dyn Fn(u64) -> f64| {
        let mut driver = Driver::new(text);
        for ms in (0..120_000).step_by(20) {
            driver.ack(delay(ms), 1, 20);
        }
        driver.law.mu
    };
    let stable = |_: u64| 5.0;
    let sawtooth = |ms: u64| (ms % 3000) as f64 / 30.0;
    let drift = |ms: u64| ms as f64 / 100.0;
    assert_eq!(mu_after("", &stable), 200.0);
    assert_eq!(mu_after("mu_min=0s", &stable), 80.0); // four RTTs
    assert_eq!(mu_after("mu=fixed", &stable), 1000.0);
    assert_eq!(mu_after("mu=literal", &stable), 0.0);
    assert_eq!(mu_after("", &drift), 30_000.0);
    assert_eq!(mu_after("mu_max=7s", &drift), 7000.0);
    // One rise of the sawtooth, seen from 20 ms samples.
    let mu = mu_after("", &sawtooth);
    assert!((2500.0..=6000.0).contains(&mu), "{mu}");
    assert!(mu_after("mu=literal", &sawtooth) < 1000.0); // it never grows
}

#[test]
fn compressed_acks_make_no_ripple_of_ones_own_a_variation() {
    // Alone on a link with a packet time of 12 ms, and a ripple of less; ACKs of some rounds wait and arrive in pairs.
    let mu_after = |held_up: &dyn Fn(u64) -> bool, one_way: bool| {
        let mut driver = Driver::new("");
        driver.law.window.ssthresh = 4.0;
        driver.law.window.cwnd = 4.0;
        for segment in 0..10_000 {
            let late = if held_up(segment / 4) && segment % 2 == 0 { 12 } else { 0 };
            let ripple = (12 * segment % 3000) as f64 / 300.0;
            driver.now = Time::from_nanos((1000 + 12 * segment + late) * 1_000_000);
            driver.rtt = Duration::from_millis(48 + late);
            if !one_way {
                driver.rtt += Duration::from_secs_f64(ripple / 1e3);
            }
            driver.ack_with(one_way.then_some(ripple), 1);
        }
        driver.law.mu
    };
    let (never, always, once) = (|_: u64| false, |_: u64| true, |round: u64| round == 1000);
    for (held_up, one_way) in
        [(&never as &dyn Fn(u64) -> bool, true), (&never, false), (&always, true), (&once, true), (&once, false)]
    {
        let mu = mu_after(held_up, one_way);
        assert!(mu <= 240.0, "{mu} with one-way delays: {one_way}");
    }
}

#[test]
fn the_interval_grows_to_the_period_of_what_has_most_of_the_link() {
    // The paper's figure 2: four own segments per RTT of 180 ms, and a sawtooth of 9.4 s that is Reno's.
    let mut driver = Driver::new("");
    driver.rtt = Duration::from_millis(180);
    driver.law.window.ssthresh = 4.0;
    driver.law.window.cwnd = 4.0;
    let (mut least, mut most) = (Vec::new(), Vec::new());
    for round in 0..700 {
        let delay = 125.0 + 115.0 * f64::from(180 * round % 9400) / 9400.0;
        driver.ack(delay, 1, 174);
        for _ in 1..4 {
            driver.ack(delay, 1, 2); // arrives as the queue drains: the same delay
        }
        if round > 300 {
            least.push(driver.law.s_min);
            most.push(driver.law.s_max);
        }
    }
    assert!((4700.0..=30_000.0).contains(&driver.law.mu), "{}", driver.law.mu);
    let swing = |values: &[f64]| {
        values.iter().fold(f64::MIN, |a, b| a.max(*b)) - values.iter().fold(f64::MAX, |a, b| a.min(*b))
    };
    assert!(swing(&least) < 0.15 * 115.0 && swing(&most) < 0.15 * 115.0, "{} and {}", swing(&least), swing(&most));
}

#[test]
fn a_drain_empties_the_queue_and_slow_start_leads_back() {
    let mut driver = Driver::steady("drain=2s");
    driver.ack(15.0, 1, 1998);
    assert!(!driver.law.draining);
    driver.ack(15.0, 1, 1);
    assert!(driver.law.draining);
    assert_eq!(driver.law.window(), 4 * MSS);
    driver.ack(0.0, 2, 49);
    assert_eq!(driver.law.window(), 4 * MSS);
    driver.ack(0.0, 2, 1); // 2.5 RTTs
    driver.ack(0.0, 4, 1);
    assert_eq!(driver.law.window(), 10 * MSS);
    driver.ack(0.0, 100, 1);
    assert!((19.9..=20.1).contains(&driver.law.window.cwnd), "{}", driver.law.window.cwnd);
    let mut never = Driver::steady("");
    never.ack(15.0, 1, 100_000);
    assert!(!never.law.draining);
}

#[test]
fn alone_without_propagation_delay_it_keeps_about_four_packets() {
    // The paper's figure 7: 5 Mbit/s, 2.4 ms a packet, a mean delay of about 9.7 ms. The first packets find no queue.
    let mut driver = Driver::new("");
    let mut sum = 0.0;
    for n in 0..100_000 {
        let packets = if n < 20 { f64::from(n + 1) } else { driver.law.window.cwnd.floor() };
        driver.now = driver.now + Duration::from_micros(400);
        driver.ack(0.1 + 2.4 * packets, 1, 2);
        sum += if n >= 50_000 { 0.1 + 2.4 * packets } else { 0.0 };
    }
    let mean = sum / 50_000.0;
    assert!((9.7 - 1e-6..10.7).contains(&mean), "{mean}");
}

proptest! {
    #[test]
    fn bounded_per_round_and_blind_to_the_offset(
        taus in prop::collection::vec((0.0..200.0f64, 1u64..400), 1..80), offset in -1e9..1e9f64,
    ) {
        let (mut a, mut b) = (Driver::new(""), Driver::new(""));
        b.offset = offset.round();
        for driver in [&mut a, &mut b] {
            driver.law.window.ssthresh = 20.0;
        }
        for (tau, after) in taus {
            let before = a.law.window.cwnd;
            for driver in [&mut a, &mut b] {
                driver.ack(tau.round(), before.round() as u32, after);
            }
            let change = a.law.window.cwnd - before;
            let one = before.round() / before;
            prop_assert!(change <= one + 1e-9 && change >= -(1.0 / 0.15 - 1.0) * one - 1e-9, "{change}");
            prop_assert!(a.law.window.cwnd >= 4.0 && a.law.s_min <= a.law.s_max && a.law.delta >= 0.1);
            prop_assert_eq!(a.law.window(), b.law.window());
        }
    }
}
