// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every link and every arrival pattern.

use lowtide_net::{Amount, Delivery, Discipline, Ecn, Limit, Link, LinkConfig, Packet, Probability, Rate, Time};
use proptest::prelude::*;
use std::time::Duration;

const END: Time = Time::from_nanos(u64::MAX);

/// A packet that arrives `gap` after the one before it; its payload is its number.
#[derive(Clone, Copy, Debug)]
struct Step {
    gap: Duration,
    bytes: u32,
    ecn: Ecn,
    /// Whether the link is polled at that time.
    poll: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![Just(0), 0..200_000_u64, 0..20_000_000_u64].prop_map(Duration::from_nanos);
    let ecn = (0..4_u8).prop_map(Ecn::from_bits);
    let step = (gap, 1..3000_u32, ecn, any::<bool>());
    let step = step.prop_map(|(gap, bytes, ecn, poll)| Step { gap, bytes, ecn, poll });
    prop::collection::vec(step, 1..80)
}

fn configs() -> impl Strategy<Value = LinkConfig> {
    let limit = prop_oneof![(1..40_u64).prop_map(Limit::Packets), (1..60_000_u64).prop_map(Limit::Bytes),];
    let step = (0..5_000_u64).prop_map(|us| Discipline::Step { threshold: Duration::from_micros(us) });
    let discipline = prop_oneof![Just(Discipline::TailDrop), step];
    let loss = prop_oneof![Just(0.0), 0.0..=1.0];
    (100_000..10_000_000_000_u64, 0..50_u64, limit, discipline, loss, any::<u64>()).prop_map(
        |(bits, delay, limit, discipline, loss, seed)| LinkConfig {
            rate: Rate::from_bits_per_second(bits).unwrap(),
            delay: Duration::from_millis(delay),
            limit,
            discipline,
            loss: Probability::new(loss).unwrap(),
            seed,
        },
    )
}

fn packet(step: &Step, number: usize) -> Packet<usize> {
    Packet { bytes: step.bytes, ecn: step.ecn, payload: number }
}

fn poll_all(link: &mut Link<usize>, now: Time) -> impl Iterator<Item = Delivery<usize>> {
    std::iter::from_fn(move || link.poll(now))
}

/// Runs the pattern, with `inspect` after each arrival, and returns all deliveries.
fn run(
    config: &LinkConfig,
    steps: &[Step],
    mut inspect: impl FnMut(&Link<usize>),
) -> (Link<usize>, Vec<Delivery<usize>>) {
    let mut link = Link::new(config);
    let mut deliveries = Vec::new();
    let mut now = Time::ZERO;
    for (number, step) in steps.iter().enumerate() {
        now = now + step.gap;
        link.arrive(now, packet(step, number));
        if step.poll {
            deliveries.extend(poll_all(&mut link, now));
        }
        inspect(&link);
    }
    deliveries.extend(poll_all(&mut link, END));
    (link, deliveries)
}

proptest! {
    #[test]
    fn no_packet_appears_or_vanishes(config in configs(), steps in steps()) {
        let holds = |link: &Link<usize>| {
            let s = link.statistics();
            assert_eq!(
                s.arrived,
                s.delivered + s.dropped + s.lost + link.queued() + link.propagating()
            );
        };
        let (link, deliveries) = run(&config, &steps, holds);
        holds(&link);
        prop_assert_eq!(link.queued() + link.propagating(), Amount::ZERO);
        prop_assert_eq!(link.next_event(), None);
        let s = link.statistics();
        prop_assert_eq!(s.arrived.packets, steps.len() as u64);
        prop_assert_eq!(s.delivered.packets, deliveries.len() as u64);
        let bytes: u64 = deliveries.iter().map(|out| u64::from(out.packet.bytes)).sum();
        prop_assert_eq!(s.delivered.bytes, bytes);
        let waited: Duration = deliveries.iter().map(|out| out.queueing_delay).sum();
        prop_assert_eq!(s.queueing_delay_sum, waited);
    }

    #[test]
    fn order_is_preserved(config in configs(), steps in steps()) {
        let (_, deliveries) = run(&config, &steps, |_| {});
        prop_assert!(deliveries.is_sorted_by(|a, b| a.packet.payload < b.packet.payload));
        prop_assert!(deliveries.is_sorted_by(|a, b| a.at <= b.at));
    }

    #[test]
    fn the_rate_is_not_exceeded_over_any_window(config in configs(), steps in steps()) {
        let (_, deliveries) = run(&config, &steps, |_| {});
        let rate = u128::from(config.rate.bits_per_second());
        for (first, begin) in deliveries.iter().enumerate() {
            let mut bits = 0;
            for end in &deliveries[first + 1..] {
                bits += u128::from(end.packet.bytes) * 8;
                let window = (end.at - begin.at).as_nanos() + 1; // times are rounded down to 1 ns
                prop_assert!(bits * 1_000_000_000 <= rate * window);
            }
        }
    }

    #[test]
    fn the_limit_is_never_exceeded(config in configs(), steps in steps()) {
        let (link, _) = run(&config, &steps, |link| assert!(config.limit.allows(link.queued())));
        prop_assert!(config.limit.allows(link.statistics().queue_max));
    }

    #[test]
    fn it_does_not_matter_when_the_link_is_polled(config in configs(), steps in steps()) {
        let late: Vec<_> = steps.iter().map(|step| Step { poll: false, ..*step }).collect();
        let summary = |(_, deliveries): (_, Vec<Delivery<usize>>)| -> Vec<_> {
            let each = |out: Delivery<usize>| (out.packet, out.at, out.queueing_delay);
            deliveries.into_iter().map(each).collect()
        };
        prop_assert_eq!(
            summary(run(&config, &steps, |_| {})),
            summary(run(&config, &late, |_| {}))
        );
    }

    #[test]
    fn a_busy_link_sends_at_exactly_its_rate(
        config in configs(),
        sizes in prop::collection::vec(1..3000_u32, 1..80),
    ) {
        let config = LinkConfig { limit: Limit::Packets(80), loss: Probability::NEVER, ..config };
        let burst = sizes.iter().map(|&bytes| Step {
            gap: Duration::ZERO,
            bytes,
            ecn: Ecn::NotEct,
            poll: false,
        });
        let (_, deliveries) = run(&config, &burst.collect::<Vec<_>>(), |_| {});
        let bits: u128 = sizes.iter().map(|&bytes| u128::from(bytes) * 8).sum();
        let exact = bits * 1_000_000_000 / u128::from(config.rate.bits_per_second());
        let sent = Duration::from_nanos(exact as u64);
        prop_assert_eq!(deliveries.last().unwrap().at, Time::ZERO + config.delay + sent);
    }

    #[test]
    fn only_ect_packets_get_marked(config in configs(), steps in steps()) {
        let (link, deliveries) = run(&config, &steps, |_| {});
        let mut marked = Amount::ZERO;
        for out in &deliveries {
            let before = steps[out.packet.payload].ecn;
            let above = match config.discipline {
                Discipline::TailDrop => false,
                Discipline::Step { threshold } => out.queueing_delay > threshold,
            };
            if above && matches!(before, Ecn::Ect0 | Ecn::Ect1) {
                prop_assert_eq!(out.packet.ecn, Ecn::Ce);
                marked += Amount::one(out.packet.bytes);
            } else {
                prop_assert_eq!(out.packet.ecn, before);
            }
        }
        prop_assert_eq!(link.statistics().marked, marked);
    }
}
