// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every link and every arrival pattern.

use lowtide_net::{
    Amount, Arrival, Cause, Class, DelaySchedule, Delivery, Discipline, Ecn, Jitter, Limit, Link, LinkConfig, Packet,
    Rate, Reordering, Schedule, Time,
};
use proptest::prelude::*;
use std::time::Duration;

const END: Time = Time::from_nanos(u64::MAX - 1);

/// A packet that arrives `gap` after the one before it; its payload is its number.
#[derive(Clone, Copy, Debug)]
struct Step {
    gap: Duration,
    bytes: u32,
    ecn: Ecn,
    class: Class,
    flow: u64,
    /// Whether the link is polled at that time.
    poll: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![Just(0), 0..200_000_u64, 0..20_000_000_u64].prop_map(Duration::from_nanos);
    let ecn = (0..4_u8).prop_map(Ecn::from_bits);
    let class = prop::sample::select(vec![Class::Foreground, Class::Background]);
    let step = (gap, 1..3000_u32, ecn, class, 0..4_u64, any::<bool>());
    let step = step.prop_map(|(gap, bytes, ecn, class, flow, poll)| Step { gap, bytes, ecn, class, flow, poll });
    prop::collection::vec(step, 1..80)
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    // With short times, so that the laws have something to do within a few packets.
    let texts = vec![
        "droptail",
        "step:at=1ms",
        "codel:target=100us,interval=1ms",
        "codel:target=100us,interval=1ms,ecn=on",
        "pie:target=100us,update=1ms,alpha=100,beta=1000,burst=0s",
        "pie:target=100us,update=1ms,alpha=100,beta=1000,burst=0s,ecn=on,derandomise=on",
        "dualpi2:target=100us,update=1ms,alpha=100,beta=1000",
        "dualpi2:variant=linux,target=100us,update=1ms,alpha=100,beta=1000",
        "fq_codel:flows=2,target=100us,interval=1ms,limit=20",
        "fq_codel",
        "priority",
        "priority:codel:target=100us,interval=1ms",
    ];
    prop::sample::select(texts).prop_map(|text| text.parse().unwrap())
}

fn capacities() -> impl Strategy<Value = Schedule> {
    let rate = 100_000..10_000_000_000_u64;
    let constant = rate.clone().prop_map(|bits| Rate::from_bits_per_second(bits).unwrap().into());
    let outages = (rate.clone(), rate, 1..30_u64).prop_map(|(a, b, ms)| {
        let rate = Rate::from_bits_per_second;
        let at = |n: u64| Duration::from_millis(n * ms);
        Schedule::steps(&[(at(0), rate(a)), (at(1), None), (at(2), rate(b))], Some(at(3))).unwrap()
    });
    let trace = prop::collection::vec(1..10_u64, 1..20).prop_map(|gaps| {
        let mut ms = 0;
        let lines = gaps.iter().map(|gap| {
            ms += gap - 1; // several opportunities at once, too
            ms.to_string() + "\n"
        });
        Schedule::trace("test", &(lines.collect::<String>() + &1000.to_string())).unwrap()
    });
    prop_oneof![2 => constant, 1 => outages, 1 => trace]
}

/// Delays as they are written down: times and what holds from them on, in ns.
fn delays() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((1..30_000_000_u64, 0..50_000_000_u64), 1..5).prop_map(|steps| {
        let mut at = 0;
        let step = |(length, delay)| {
            at += length;
            (at - length, delay)
        };
        steps.into_iter().map(step).collect()
    })
}

fn delay_schedule(steps: &[(u64, u64)]) -> DelaySchedule {
    let nanos = Duration::from_nanos;
    let steps: Vec<_> = steps.iter().map(|&(at, delay)| (nanos(at), nanos(delay))).collect();
    DelaySchedule::steps(&steps, None).unwrap()
}

/// Links whose packets keep their order, except for the queue.
fn configs() -> impl Strategy<Value = LinkConfig> {
    let limit = prop_oneof![(1..40_u64).prop_map(Limit::Packets), (1..60_000_u64).prop_map(Limit::Bytes)];
    let loss = prop::sample::select(vec!["0", "0", "0.3", "1", "ge:p=20%,r=30%"]);
    let jitter = prop::sample::select(vec!["0s", "0s", "3ms", "1ms:normal"]);
    let police = prop::sample::select(vec![None, None, Some("5mbit:5kB")]);
    let burst = prop::sample::select(vec![0, 0, 3080]);
    let queue = (limit, disciplines(), burst);
    let constant = (0..50_u64).prop_map(|ms| Duration::from_millis(ms).into());
    let delay = prop_oneof![2 => constant, 1 => delays().prop_map(|steps| delay_schedule(&steps))];
    (capacities(), delay, queue, loss, jitter, police, any::<u64>()).prop_map(
        |(capacity, delay, (limit, discipline, burst), loss, jitter, police, seed)| LinkConfig {
            burst,
            discipline,
            loss: loss.parse().unwrap(),
            jitter: jitter.parse().unwrap(),
            police: police.map(|text| text.parse().unwrap()),
            seed,
            ..LinkConfig::new(capacity, delay, limit)
        },
    )
}

/// Links that change the order, too.
fn reordering_configs() -> impl Strategy<Value = LinkConfig> {
    let reordering = prop::sample::select(vec!["30%:5ms", "1:1ms", "50%:100us"]);
    (configs(), prop::option::of(reordering)).prop_map(|(config, reordering)| LinkConfig {
        reordering: reordering.map_or(Reordering::NONE, |text| text.parse().unwrap()),
        ..config
    })
}

/// A queue with one place for all packets.
fn is_fifo(discipline: &Discipline) -> bool {
    !matches!(discipline, Discipline::DualPi2(_) | Discipline::FqCodel(_) | Discipline::Priority(_))
}

fn packet(step: &Step, number: usize) -> Packet<usize> {
    Packet { bytes: step.bytes, ecn: step.ecn, class: step.class, flow: step.flow, payload: number }
}

fn poll_all(link: &mut Link<usize>, now: Time) -> impl Iterator<Item = Delivery<usize>> {
    std::iter::from_fn(move || link.poll(now))
}

/// What came of a pattern.
struct Run {
    link: Link<usize>,
    /// When each packet arrived, and what became of it then.
    arrivals: Vec<(Time, Arrival)>,
    deliveries: Vec<Delivery<usize>>,
    /// Number, cause and time of each drop.
    dropped: Vec<(usize, Cause, Time)>,
}

/// Runs the pattern, with `inspect` after each arrival.
fn run(config: &LinkConfig, steps: &[Step], mut inspect: impl FnMut(&Link<usize>)) -> Run {
    let mut link = Link::new(config);
    link.keep_dropped();
    let (mut arrivals, mut deliveries) = (Vec::new(), Vec::new());
    let mut now = Time::ZERO;
    for (number, step) in steps.iter().enumerate() {
        now = now + step.gap;
        arrivals.push((now, link.arrive(now, packet(step, number))));
        if step.poll {
            deliveries.extend(poll_all(&mut link, now));
        }
        inspect(&link);
    }
    deliveries.extend(poll_all(&mut link, END));
    let dropped = link.take_dropped().map(|it| (it.packet.payload, it.cause, it.at)).collect();
    Run { link, arrivals, deliveries, dropped }
}

proptest! {
    #[test]
    fn no_packet_appears_or_vanishes(config in reordering_configs(), steps in steps()) {
        let holds = |link: &Link<usize>| {
            let s = link.statistics();
            assert_eq!(s.arrived, s.delivered + s.dropped() + s.lost + link.queued() + link.propagating());
        };
        let Run { link, arrivals, deliveries, dropped } = run(&config, &steps, holds);
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
        // Each packet by itself has one fate.
        let mut fates: Vec<usize> = deliveries.iter().map(|out| out.packet.payload).collect();
        fates.extend(dropped.iter().map(|it| it.0));
        fates.sort_unstable();
        prop_assert_eq!(fates, (0..steps.len()).collect::<Vec<_>>());
        // The causes add up, and those of the arrivals are among them.
        for (cause, count) in [
            (Cause::Overflow, s.overflow), (Cause::Aqm, s.aqm), (Cause::Policed, s.policed), (Cause::Lost, s.lost),
        ] {
            prop_assert_eq!(dropped.iter().filter(|it| it.1 == cause).count() as u64, count.packets);
        }
        for (number, (at, arrival)) in arrivals.into_iter().enumerate() {
            if let Arrival::Dropped(cause) = arrival {
                prop_assert!(dropped.contains(&(number, cause, at)));
            }
        }
    }

    #[test]
    fn a_fifo_and_each_flow_of_the_others_keep_their_order(config in configs(), steps in steps()) {
        let deliveries = run(&config, &steps, |_| {}).deliveries;
        prop_assert!(deliveries.is_sorted_by(|a, b| a.at <= b.at));
        let in_order = |class: &dyn Fn(&Packet<usize>) -> bool| {
            let numbers = deliveries.iter().filter(|out| class(&out.packet)).map(|out| out.packet.payload);
            numbers.is_sorted()
        };
        if is_fifo(&config.discipline) {
            prop_assert!(in_order(&|_| true));
        } else if matches!(config.discipline, Discipline::FqCodel(_)) {
            for flow in 0..4 {
                prop_assert!(in_order(&|packet| packet.flow == flow));
            }
        } else if matches!(config.discipline, Discipline::Priority(_)) {
            prop_assert!(in_order(&|packet| packet.class == Class::Foreground));
            prop_assert!(in_order(&|packet| packet.class == Class::Background));
        } else {
            let low = |packet: &Packet<usize>| matches!(steps[packet.payload].ecn, Ecn::Ect1 | Ecn::Ce);
            prop_assert!(in_order(&low));
            prop_assert!(in_order(&|packet| !low(packet)));
        }
    }

    #[test]
    fn deliveries_come_in_the_order_of_their_times(config in reordering_configs(), steps in steps()) {
        let deliveries = run(&config, &steps, |_| {}).deliveries;
        prop_assert!(deliveries.is_sorted_by(|a, b| a.at <= b.at));
    }

    #[test]
    fn a_packet_takes_the_delay_of_its_moment_and_none_overtakes(
        config in configs(),
        delays in delays(),
        steps in steps(),
    ) {
        let without = LinkConfig { jitter: Jitter::NONE, delay: Duration::ZERO.into(), ..config };
        let with = LinkConfig { delay: delay_schedule(&delays), ..without.clone() };
        // without a delay a packet comes out when its last bit is sent
        let sent = run(&without, &steps, |_| {}).deliveries;
        let deliveries = run(&with, &steps, |_| {}).deliveries;
        prop_assert_eq!(sent.len(), deliveries.len());
        let mut latest = 0;
        for (sent, out) in sent.iter().zip(&deliveries) {
            prop_assert_eq!(sent.packet.payload, out.packet.payload);
            let at = sent.at.as_nanos();
            let delay = delays.iter().rev().find(|(from, _)| *from <= at).expect("the first one is at 0").1;
            latest = latest.max(at + delay);
            prop_assert_eq!(out.at.as_nanos(), latest);
        }
    }

    #[test]
    fn no_packet_is_early(config in reordering_configs(), steps in steps()) {
        let Run { arrivals, deliveries, .. } = run(&config, &steps, |_| {});
        for out in deliveries {
            let arrived = arrivals[out.packet.payload].0;
            prop_assert!(out.at >= arrived + out.queueing_delay + config.delay.least());
            // With the time to send it, unless there is a bucket to send it from.
            if config.burst == 0 {
                let start = arrived + out.queueing_delay;
                let carried = config.capacity.bytes_between(start, Time::from_nanos(out.at.as_nanos() + 1));
                prop_assert!(carried + 1 >= u64::from(out.packet.bytes) || config.capacity.to_string().starts_with("mahimahi"));
            }
        }
    }

    #[test]
    fn the_capacity_is_not_exceeded_over_any_window(config in configs(), steps in steps()) {
        let config = LinkConfig { jitter: Jitter::NONE, delay: Duration::ZERO.into(), ..config };
        let deliveries = run(&config, &steps, |_| {}).deliveries;
        for (first, begin) in deliveries.iter().enumerate() {
            let mut bytes = 0;
            for end in &deliveries[first + 1..] {
                bytes += u64::from(end.packet.bytes);
                // Times are rounded down to 1 ns, and so are bytes.
                let until = Time::from_nanos(end.at.as_nanos() + 1);
                let carried = config.capacity.bytes_between(begin.at, until) + 1;
                prop_assert!(bytes <= carried + config.burst, "{bytes} bytes where {carried} fit");
            }
        }
    }

    #[test]
    fn the_limit_is_never_exceeded(config in configs(), steps in steps()) {
        let link = run(&config, &steps, |link| assert!(config.limit.allows(link.queued()))).link;
        prop_assert!(config.limit.allows(link.statistics().queue_max));
    }

    #[test]
    fn it_does_not_matter_when_the_link_is_polled(config in reordering_configs(), steps in steps()) {
        let late: Vec<_> = steps.iter().map(|step| Step { poll: false, ..*step }).collect();
        let (early, late) = (run(&config, &steps, |_| {}), run(&config, &late, |_| {}));
        prop_assert_eq!(early.deliveries, late.deliveries);
        prop_assert_eq!(early.dropped, late.dropped);
    }

    #[test]
    fn an_event_loop_gets_every_packet_at_its_time(config in reordering_configs(), steps in steps()) {
        let expected = run(&config, &steps, |_| {}).deliveries;
        let mut link = Link::new(&config);
        let mut deliveries = Vec::new();
        let mut idle = 0;
        let mut now = Time::ZERO;
        let mut steps = steps.iter().enumerate().peekable();
        let mut due = steps.peek().map(|(_, step)| now + step.gap);
        loop {
            match (due, link.next_event()) {
                (None, None) => break,
                // The link first, as an arrival at the same time would find the place free.
                (arrival, Some(at)) if arrival.is_none_or(|arrival| at <= arrival) => {
                    prop_assert!(at >= now);
                    now = at;
                    let before = deliveries.len();
                    for out in poll_all(&mut link, now) {
                        prop_assert_eq!(out.at, now, "not late");
                        deliveries.push(out);
                    }
                    // A call may be for nothing, but not again and again.
                    idle = if deliveries.len() > before { 0 } else { idle + 1 };
                    prop_assert!(idle <= 2 * 80 + 1);
                    prop_assert!(link.next_event().is_none_or(|next| next > now));
                }
                (Some(arrival), _) => {
                    now = arrival;
                    let (number, step) = steps.next().unwrap();
                    link.arrive(now, packet(step, number));
                    due = steps.peek().map(|(_, step)| now + step.gap);
                }
                _ => unreachable!(),
            }
        }
        prop_assert_eq!(deliveries, expected);
    }

    #[test]
    fn a_busy_link_sends_at_exactly_its_capacity(
        capacity in capacities(),
        delay in 0..50_u64,
        sizes in prop::collection::vec(1..3000_u32, 1..80),
    ) {
        let delay = Duration::from_millis(delay);
        let config = LinkConfig::new(capacity.clone(), delay, Limit::Packets(80));
        let burst = sizes.iter().map(|&bytes| Step {
            gap: Duration::ZERO,
            bytes,
            ecn: Ecn::NotEct,
            class: Class::Foreground,
            flow: 0,
            poll: false,
        });
        let deliveries = run(&config, &burst.collect::<Vec<_>>(), |_| {}).deliveries;
        let bytes: u64 = sizes.iter().map(|&bytes| u64::from(bytes)).sum();
        let end = deliveries.last().unwrap().at.as_nanos() - delay.as_nanos() as u64;
        // It is all sent within the nanosecond that begins then, and was not before.
        prop_assert!(capacity.bytes_between(Time::ZERO, Time::from_nanos(end + 1)) >= bytes);
        prop_assert!(capacity.bytes_between(Time::ZERO, Time::from_nanos(end)) <= bytes);
    }

    #[test]
    fn only_ect_packets_get_marked(config in reordering_configs(), steps in steps()) {
        let Run { link, deliveries, .. } = run(&config, &steps, |_| {});
        let mut marked = Amount::ZERO;
        for out in &deliveries {
            let before = steps[out.packet.payload].ecn;
            let expected = match &config.discipline {
                Discipline::DropTail => Some(false),
                Discipline::Step(step) => Some(out.queueing_delay > step.at),
                _ => None,
            };
            if before.can_be_marked() && out.packet.ecn == Ecn::Ce {
                marked += Amount::one(out.packet.bytes);
                prop_assert!(expected != Some(false));
            } else {
                prop_assert_eq!(out.packet.ecn, before);
                prop_assert!(expected != Some(true) || !before.can_be_marked());
            }
        }
        prop_assert_eq!(link.statistics().marked, marked);
    }

    #[test]
    fn only_a_priority_queue_looks_at_the_class(config in reordering_configs(), steps in steps()) {
        if matches!(config.discipline, Discipline::Priority(_)) {
            return Ok(());
        }
        let alike: Vec<_> = steps.iter().map(|step| Step { class: Class::Foreground, ..*step }).collect();
        let (mixed, alike) = (run(&config, &steps, |_| {}), run(&config, &alike, |_| {}));
        let times = |run: &Run| run.deliveries.iter().map(|out| (out.packet.payload, out.at)).collect::<Vec<_>>();
        prop_assert_eq!(times(&mixed), times(&alike));
        prop_assert_eq!(mixed.dropped, alike.dropped);
    }

    #[test]
    fn the_background_costs_the_foreground_one_packet_at_most(
        capacity in capacities(),
        steps in steps(),
        packets in 1..40_u64,
    ) {
        // Full packets and a limit in packets, so that a place is a place.
        let full = |step: &Step| Step { bytes: 1500, ..*step };
        let both: Vec<_> = steps.iter().map(full).collect();
        let config = |limit| LinkConfig {
            discipline: "priority".parse().unwrap(),
            ..LinkConfig::new(capacity.clone(), Duration::ZERO, Limit::Packets(limit))
        };
        // The foreground alone, at the same times.
        let mut gap = Duration::ZERO;
        let mut numbers = Vec::new();
        let mut alone = Vec::new();
        for (number, step) in both.iter().enumerate() {
            gap += step.gap;
            if step.class == Class::Foreground {
                alone.push(Step { gap, ..*step });
                numbers.push(number);
                gap = Duration::ZERO;
            }
        }
        // One place more, for the packet of the background that may be on the transmitter.
        let (mixed, alone) = (run(&config(packets + 1), &both, |_| {}), run(&config(packets), &alone, |_| {}));
        let lost: Vec<usize> = mixed.dropped.iter().map(|it| it.0).collect();
        let lost_alone: Vec<usize> = alone.dropped.iter().map(|it| numbers[it.0]).collect();
        for number in numbers {
            let until = |lost: &[usize]| lost.iter().filter(|it| **it <= number && both[**it].class == Class::Foreground).count();
            prop_assert!(until(&lost) <= until(&lost_alone), "by packet {number}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_link(config in reordering_configs(), steps in steps()) {
        let (first, second) = (run(&config, &steps, |_| {}), run(&config, &steps, |_| {}));
        prop_assert_eq!(first.deliveries, second.deliveries);
        prop_assert_eq!(first.dropped, second.dropped);
    }
}
