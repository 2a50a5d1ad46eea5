// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::queue::testing::ecn_packet;

const LIMIT: Limit = Limit::Packets(1_000_000);

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn queue(parameters: DualPi2) -> DualPi2Queue<u64> {
    DualPi2Queue::new(parameters, LIMIT, 1)
}

fn fill(queue: &mut DualPi2Queue<u64>, packets: usize, at: Time, bytes: u32, ecn: Ecn) {
    for _ in 0..packets {
        let arrival = queue.enqueue(ecn_packet(at, bytes, ecn), Amount::ZERO, &mut Drops::default());
        assert_eq!(arrival, Arrival::Accepted);
    }
}

#[test]
fn constants_follow_from_the_largest_round_trip_time() {
    // RFC 9332, appendix A.1, with RTT_max = 100 ms.
    let (rfc, linux) = (DualPi2::rfc(), DualPi2::linux());
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert_eq!(rfc.update, rfc.target.min(Duration::from_millis(100) / 3));
    assert!(close(rfc.alpha, 0.1 * rfc.update.as_secs_f64() / 0.01));
    assert!(close(rfc.beta, 0.3 / 0.1));
    // Linux rounds to 1/256, with 16 ms.
    assert_eq!(linux.alpha, (0.1 * 0.016 / 0.01 * 256.0_f64).round() / 256.0);
    assert_eq!(linux.beta, ((0.3 / 0.1 + 0.2) * 256.0_f64).round() / 256.0);
}

#[test]
fn the_base_probability_follows_the_classic_queue() {
    // A packet that comes at 20 ms and never leaves: at the ticks it is as old as this, in ms.
    let mut queue = queue(DualPi2::rfc());
    fill(&mut queue, 1, ms(20), 1500, Ecn::NotEct);
    let mut expected: f64 = 0.0;
    let mut old = 0.0;
    for (tick, age) in [(30, 10.0), (45, 25.0), (60, 40.0), (75, 55.0)] {
        queue.update_until(ms(tick));
        expected = (expected + 0.15e-3 * (age - 15.0) + 3e-3 * (age - old)).clamp(0.0, 1.0);
        old = age;
        assert!((queue.base - expected).abs() < 1e-12, "at {tick} ms: {} not {expected}", queue.base);
    }
    // By hand: -0.00075 + 0.03, + 0.0015 + 0.045, + 0.00375 + 0.045, + 0.006 + 0.045.
    assert!((queue.base - 0.1755).abs() < 1e-12);
    // Once it is gone, the probability sinks to zero and stays there, however long it takes.
    queue.dequeue(ms(76), &mut Drops::default());
    queue.update_until(ms(1_000_000_000_000));
    assert_eq!(queue.base, 0.0);
}

#[test]
fn linux_looks_at_the_longer_delay() {
    for (parameters, rises) in [(DualPi2::rfc(), false), (DualPi2::linux(), true)] {
        let mut queue = queue(parameters);
        fill(&mut queue, 1, ms(0), 1500, Ecn::Ect1);
        queue.update_until(ms(100));
        assert_eq!(queue.base > 0.0, rises);
    }
}

/// Sends packets with this field through a queue with this base probability, all within one update
/// period and none with any waiting time; returns how many were marked and dropped.
fn signals(parameters: DualPi2, base: f64, ecn: Ecn) -> (u64, u64) {
    const N: usize = 10_000;
    let mut queue = queue(parameters);
    let drops = &mut Drops::default();
    fill(&mut queue, N, Time::ZERO, 1500, ecn);
    queue.base = base;
    let sent = std::iter::from_fn(|| queue.dequeue(Time::ZERO, drops));
    let marked = sent.filter(|packet| packet.marked).count();
    (marked as u64, drops.count(Cause::Aqm).packets)
}

#[test]
fn classic_signals_are_the_square_and_l4s_signals_the_double() {
    let near = |(marked, dropped): (u64, u64), marks: u64, losses: u64, band: u64| {
        assert!(marked.abs_diff(marks) <= band, "{marked} marked, not {marks}");
        assert!(dropped.abs_diff(losses) <= band, "{dropped} dropped, not {losses}");
    };
    let rfc = |base, ecn| signals(DualPi2::rfc(), base, ecn);
    // p' = 0.3: p_C = 0.09, p_CL = 0.6. Spread evenly, so exact to a packet.
    near(rfc(0.3, Ecn::Ect0), 900, 0, 1);
    near(rfc(0.3, Ecn::NotEct), 0, 900, 1);
    near(rfc(0.3, Ecn::Ect1), 6000, 0, 1);
    near(rfc(0.0, Ecn::Ect1), 0, 0, 0);
    // Linux's is random: five standard deviations of the binomial distribution are 250 at most.
    let linux = |base, ecn| signals(DualPi2::linux(), base, ecn);
    near(linux(0.3, Ecn::Ect0), 900, 0, 150);
    near(linux(0.3, Ecn::NotEct), 0, 900, 150);
    near(linux(0.3, Ecn::Ect1), 6000, 0, 250);
}

#[test]
fn in_overload_everything_is_dropped_alike() {
    // p' = 0.6: p_CL would be 1.2, so that all L4S packets are marked or, with p_C = 0.36, dropped.
    for (parameters, band) in [(DualPi2::rfc(), 1), (DualPi2::linux(), 250)] {
        for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ect1] {
            let (marked, dropped) = signals(parameters, 0.6, ecn);
            assert!(dropped.abs_diff(3600) <= band, "{dropped} of {ecn:?} dropped");
            // Linux spares the last packets, those below two full ones.
            let unmarked = if parameters.variant == DualPi2Variant::Linux { 2 } else { 1 };
            let all = if ecn == Ecn::Ect1 { 10_000 - dropped } else { 0 };
            assert!(all - marked <= unmarked, "{marked} of {all} marked");
        }
    }
}

#[test]
fn the_ramp_rises_from_800_to_1200_us_and_spares_a_packet_alone() {
    let rfc = queue(DualPi2::rfc());
    for (sojourn, probability) in [(0, 0.0), (800, 0.0), (900, 0.25), (1000, 0.5), (1200, 1.0), (9000, 1.0)] {
        assert!((rfc.native_probability(us(sojourn), false) - probability).abs() < 1e-12, "{sojourn} us");
        assert_eq!(rfc.native_probability(us(sojourn), true), 0.0);
    }
    let linux = queue(DualPi2::linux());
    for (sojourn, probability) in [(0, 0.0), (1000, 0.0), (1001, 1.0)] {
        assert_eq!(linux.native_probability(us(sojourn), false), probability, "{sojourn} us");
    }
}

#[test]
fn native_marks_come_without_a_classic_queue() {
    for parameters in [DualPi2::rfc(), DualPi2::linux()] {
        let mut queue = queue(parameters);
        let drops = &mut Drops::default();
        fill(&mut queue, 10, ms(0), 1500, Ecn::Ect1);
        let marked = |queue: &mut DualPi2Queue<u64>, at: Time, drops: &mut _| queue.dequeue(at, drops).unwrap().marked;
        assert!(!marked(&mut queue, ms(0) + us(700), drops));
        // With a likelihood of one the RFC's even spreading marks from the second on.
        marked(&mut queue, ms(2), drops);
        assert!((0..5).all(|_| marked(&mut queue, ms(2), drops)));
    }
}

#[test]
fn ect1_and_ce_go_to_the_low_latency_queue() {
    let mut queue = queue(DualPi2::rfc());
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        fill(&mut queue, 1, Time::ZERO, 1500, ecn);
    }
    let drops = &mut Drops::default();
    let order: Vec<Ecn> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, drops)).map(|p| p.packet.ecn).collect();
    assert_eq!(order, [Ecn::Ect1, Ecn::Ce, Ecn::NotEct, Ecn::Ect0]);
}

#[test]
fn the_classic_queue_keeps_its_share_in_bytes() {
    for (parameters, share) in [(DualPi2::rfc(), 1.0 / 16.0), (DualPi2::linux(), 0.1)] {
        let mut queue = queue(parameters);
        fill(&mut queue, 20_000, Time::ZERO, 1500, Ecn::Ect1);
        fill(&mut queue, 20_000, Time::ZERO, 500, Ecn::Ect0);
        let (mut low, mut classic) = (0.0, 0.0);
        for _ in 0..10_000 {
            let packet = queue.dequeue(Time::ZERO, &mut Drops::default()).unwrap().packet;
            let sum = if packet.ecn == Ecn::Ect0 { &mut classic } else { &mut low };
            *sum += f64::from(packet.bytes);
        }
        let part = classic / (low + classic);
        assert!((part - share).abs() < 0.001, "{part} not {share}");
    }
}

#[test]
fn turns_do_not_outlive_an_idle_time() {
    let mut queue = queue(DualPi2 { classic: "0.5".parse().unwrap(), ..DualPi2::rfc() });
    for _ in 0..3 {
        // Now it would be the Classic queue's turn, had there not been an idle time.
        fill(&mut queue, 1, Time::ZERO, 1500, Ecn::Ect0);
        fill(&mut queue, 1, Time::ZERO, 1500, Ecn::Ect1);
        let drops = &mut Drops::default();
        let order: Vec<Ecn> =
            std::iter::from_fn(|| queue.dequeue(Time::ZERO, drops)).map(|sent| sent.packet.ecn).collect();
        assert_eq!(order, [Ecn::Ect1, Ecn::Ect0]);
    }
}

#[test]
fn linux_leaves_a_nearly_empty_buffer_alone() {
    let sent = |parameters, packets| {
        let mut queue = queue(parameters);
        let drops = &mut Drops::default();
        fill(&mut queue, packets, Time::ZERO, 1500, Ecn::NotEct);
        queue.base = 1.0;
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, drops)).count()
    };
    // Of those behind it two full packets must be waiting for one to be dropped.
    assert_eq!(sent(DualPi2::linux(), 2), 2);
    assert_eq!(sent(DualPi2::linux(), 10), 2);
    assert_eq!(sent(DualPi2::rfc(), 10), 1, "with the RFC's even spreading the first one passes");
}
