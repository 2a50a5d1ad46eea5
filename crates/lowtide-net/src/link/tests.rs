// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::{Class, Ecn};

fn config(capacity: &str, limit: Limit) -> LinkConfig {
    let capacity: Schedule = capacity.parse().unwrap();
    LinkConfig::new(capacity, Duration::from_millis(10), limit)
}

fn packet(bytes: u32, payload: u32) -> Packet<u32> {
    Packet { bytes, ecn: Ecn::Ect0, class: Class::Foreground, flow: 0, payload }
}

fn drain(link: &mut Link<u32>, now: Time) -> Vec<(u32, Time, Duration)> {
    std::iter::from_fn(|| link.poll(now)).map(|out| (out.packet.payload, out.at, out.queueing_delay)).collect()
}

const FOREVER: Time = Time::from_nanos(u64::MAX);

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

#[test]
fn a_packet_is_sent_then_travels() {
    let mut link = Link::new(&config("12mbit", Limit::Packets(5)));
    assert_eq!(link.next_event(), None);
    link.arrive(ms(3), packet(1500, 1));
    assert_eq!(link.next_event(), Some(ms(14)));
    assert!(link.poll(Time::from_nanos(13_999_999)).is_none());
    assert_eq!(drain(&mut link, ms(14)), [(1, ms(14), Duration::from_millis(0))]);
    assert_eq!(link.next_event(), None);
}

#[test]
fn a_late_caller_loses_no_capacity() {
    let mut link = Link::new(&config("12mbit", Limit::Packets(5)));
    for n in 0..3 {
        link.arrive(ms(0), packet(1500, n));
    }
    link.arrive(ms(500), packet(1500, 3));
    assert_eq!(
        drain(&mut link, ms(900)),
        [
            (0, ms(11), Duration::from_millis(0)),
            (1, ms(12), Duration::from_millis(1)),
            (2, ms(13), Duration::from_millis(2)),
            (3, ms(511), Duration::from_millis(0)),
        ]
    );
}

#[test]
fn the_limit_drops_the_newcomer() {
    let mut link = Link::new(&config("12mbit", Limit::Bytes(3000)));
    assert_eq!(link.arrive(ms(0), packet(1500, 0)), Arrival::Accepted);
    assert_eq!(link.arrive(ms(0), packet(1500, 1)), Arrival::Accepted);
    assert_eq!(link.arrive(ms(0), packet(40, 2)), Arrival::Dropped(Cause::Overflow));
    assert_eq!(link.arrive(ms(1), packet(1500, 3)), Arrival::Accepted);
    let order: Vec<u32> = drain(&mut link, FOREVER).iter().map(|out| out.0).collect();
    assert_eq!(order, [0, 1, 3]);
    let statistics = link.statistics();
    assert_eq!(statistics.overflow, Amount::one(40));
    assert_eq!(statistics.queue_max.bytes, 3000);
    assert_eq!(statistics.queueing_delay_max, Duration::from_millis(1));
    assert_eq!(statistics.queueing_delay_mean(), Duration::from_nanos(666_666));
}

#[test]
fn the_rate_is_exact_in_the_long_run() {
    // 40 bytes at 7 Mbit/s take 45714.28… ns.
    let mut link = Link::new(&config("7mbit", Limit::Packets(7000)));
    for n in 0..7000 {
        link.arrive(ms(0), packet(40, n));
    }
    let last = drain(&mut link, FOREVER).last().unwrap().1;
    assert_eq!(last, ms(10 + 320)); // 7000 × 320 bit / 7 Mbit/s, then 10 ms
}

#[test]
fn a_fraction_of_a_nanosecond_does_not_outlive_an_idle_time() {
    let mut link = Link::new(&config("7mbit", Limit::Packets(1)));
    for n in 0..9 {
        let arrived = ms(100 * u64::from(n));
        link.arrive(arrived, packet(40, n));
        let [(_, at, _)] = drain(&mut link, FOREVER)[..] else {
            panic!("one packet at a time");
        };
        assert_eq!(at - arrived, Duration::from_nanos(10_045_714));
    }
}

#[test]
fn step_marks_what_waited_and_counts_it() {
    let discipline = "step:at=1500us".parse().unwrap();
    let mut link = Link::new(&LinkConfig { discipline, ..config("12mbit", Limit::Packets(9)) });
    for n in 0..4 {
        link.arrive(ms(0), packet(1500, n));
    }
    let marked: Vec<bool> = std::iter::from_fn(|| link.poll(FOREVER)).map(|out| out.packet.ecn == Ecn::Ce).collect();
    assert_eq!(marked, [false, false, true, true]);
    assert_eq!(link.statistics().marked.packets, 2);
    assert_eq!(link.statistics().marked.bytes, 3000);
}

#[test]
fn intervals_add_up_to_the_total() {
    let mut link = Link::new(&config("12mbit", Limit::Packets(2)));
    for n in 0..3 {
        link.arrive(ms(0), packet(1500, n));
    }
    drain(&mut link, ms(11));
    let first = link.take_interval();
    drain(&mut link, ms(12));
    let second = link.take_interval();
    assert_eq!((first.arrived.packets, second.arrived.packets), (3, 0));
    assert_eq!((first.overflow.packets, second.overflow.packets), (1, 0));
    assert_eq!((first.delivered.packets, second.delivered.packets), (1, 1));
    assert_eq!(second.queueing_delay_mean(), Duration::from_millis(1));
    assert_eq!(link.take_interval(), Statistics::default());
    assert_eq!(link.statistics().delivered.packets, 2);
}

#[test]
fn maxima_are_those_of_their_interval() {
    let mut link = Link::new(&config("12mbit", Limit::Packets(9)));
    for n in 0..3 {
        link.arrive(ms(0), packet(1500, n));
    }
    drain(&mut link, ms(20));
    let first = link.take_interval();
    link.arrive(ms(20), packet(40, 3));
    drain(&mut link, ms(40));
    let second = link.take_interval();
    assert_eq!((first.queue_max.packets, second.queue_max.packets), (3, 1));
    assert_eq!((first.largest_packet, second.largest_packet), (1500, 40));
    assert_eq!((first.queueing_delay_max, second.queueing_delay_max), (Duration::from_millis(2), Duration::ZERO));
    assert_eq!(link.statistics().queue_max.packets, 3);
    assert_eq!(link.statistics().largest_packet, 1500);
}

#[test]
fn a_change_of_the_rate_counts_for_the_packet_in_service() {
    // 12,000 bit: 6,000 of them in 0.5 ms at 12 Mbit/s, the others in 1 ms at 6 Mbit/s.
    let mut link = Link::new(&config("0s:12mbit,2500us:6mbit", Limit::Packets(9)));
    for n in 0..2 {
        link.arrive(ms(2), packet(1500, n));
    }
    let at = |us| ms(10) + Duration::from_micros(us);
    assert_eq!(link.next_event(), Some(at(3500)));
    let times: Vec<Time> = drain(&mut link, FOREVER).iter().map(|out| out.1).collect();
    assert_eq!(times, [at(3500), at(5500)]);
}

#[test]
fn nothing_is_sent_in_an_outage_and_nothing_is_lost_by_it() {
    let mut link = Link::new(&config("0s:12mbit,1500us:0mbit,101500us:12mbit", Limit::Packets(9)));
    for n in 0..3 {
        link.arrive(ms(0), packet(1500, n));
    }
    link.arrive(ms(50), packet(1500, 3));
    assert!(link.poll(ms(100)).is_some_and(|out| out.at == ms(11)));
    assert!(link.poll(ms(100)).is_none());
    assert_eq!(link.queued().packets, 3);
    let rest: Vec<_> = drain(&mut link, FOREVER).iter().map(|out| (out.0, out.1, out.2)).collect();
    let ms_ = Duration::from_millis;
    assert_eq!(rest, [(1, ms(112), ms_(1)), (2, ms(113), ms_(102)), (3, ms(114), ms_(53))]);
}

#[test]
fn a_packet_that_arrives_in_an_outage_waits_in_the_queue() {
    let mut link = Link::new(&config("0s:12mbit,1ms:0mbit,31ms:12mbit", Limit::Packets(9)));
    link.arrive(ms(5), packet(1500, 0));
    // Nothing comes out before this time, though it is not the time at which something does.
    let asked = link.next_event().unwrap();
    assert_eq!(asked, ms(41));
    assert!(link.poll(asked).is_none());
    assert_eq!(link.next_event(), Some(ms(42)));
    assert_eq!(drain(&mut link, ms(42)), [(0, ms(42), Duration::from_millis(26))]);
}

#[test]
fn an_outage_without_end_holds_what_it_has() {
    let mut link = Link::new(&config("0s:12mbit,500us:0mbit", Limit::Packets(9)));
    for n in 0..2 {
        link.arrive(ms(0), packet(1500, n));
    }
    assert_eq!(link.next_event(), None);
    assert!(drain(&mut link, FOREVER).is_empty());
    assert_eq!(link.queued().packets, 2);
}

#[test]
fn a_shaper_sends_what_it_saved_at_once() {
    let burst = |burst| LinkConfig { burst, ..config("12mbit", Limit::Packets(9)) };
    let times = |mut link: Link<u32>, from| -> Vec<u64> {
        for n in 0..4 {
            link.arrive(ms(from), packet(1500, n));
        }
        drain(&mut link, FOREVER).iter().map(|out| (out.1 - ms(from + 10)).as_micros() as u64).collect()
    };
    assert_eq!(times(Link::new(&burst(0)), 50), [1000, 2000, 3000, 4000]);
    // 3080 bytes are two packets, and 80 bytes of the third one.
    assert_eq!(times(Link::new(&burst(3080)), 50), [0, 0, 946, 1946]);
    // After a burst the bucket fills at the rate: 1.5 ms later it has 1.5 packets more.
    let mut link = Link::new(&burst(3000));
    for n in 0..2 {
        link.arrive(ms(50), packet(1500, n));
    }
    let later = ms(51) + Duration::from_micros(500);
    for n in 2..5 {
        link.arrive(later, packet(1500, n));
    }
    let out: Vec<u64> = drain(&mut link, FOREVER).iter().map(|out| out.1.as_nanos() / 1000 - 60_000).collect();
    assert_eq!(out, [0, 0, 1500, 2000, 3000]);
}

#[test]
fn a_trace_delivers_at_its_opportunities() {
    // Nine opportunities in 10 ms: at 0, 2, 5, 5, 5, 8, 9, 10, 10 ms.
    let trace = Schedule::trace("test", "0\n2\n5\n5\n5\n8\n9\n10\n10\n").unwrap();
    let mut link =
        Link::new(&LinkConfig { delay: Duration::ZERO.into(), capacity: trace, ..config("1mbit", Limit::Packets(99)) });
    let mut number = 0;
    let mut send = |link: &mut Link<u32>, at, sizes: &[u32]| {
        for &bytes in sizes {
            link.arrive(ms(at), packet(bytes, number));
            number += 1;
        }
    };
    // A full packet takes one, small ones share one, a large one takes two.
    send(&mut link, 1, &[1500, 700, 700, 100, 1500, 100]);
    assert_eq!(link.next_event(), Some(ms(2)));
    let out: Vec<(u32, u64)> =
        drain(&mut link, ms(7)).iter().map(|out| (out.0, out.1.as_nanos() / 1_000_000)).collect();
    assert_eq!(out, [(0, 2), (1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]);
    // The opportunity at 8 ms is lost, the trace begins again at 10 ms.
    send(&mut link, 9, &[1500]);
    drain(&mut link, ms(9));
    send(&mut link, 10, &[1500, 1500, 3000]);
    let out: Vec<(u32, u64)> =
        drain(&mut link, FOREVER).iter().map(|out| (out.0, out.1.as_nanos() / 1_000_000)).collect();
    assert_eq!(out, [(7, 10), (8, 10), (9, 12)]);
}

#[test]
fn a_queue_waits_for_the_opportunity() {
    // The time until the opportunity is time in the queue: there the packet could be marked.
    let trace = Schedule::trace("test", "100\n").unwrap();
    let discipline = "step:at=99ms".parse().unwrap();
    let mut link = Link::new(&LinkConfig { capacity: trace, discipline, ..config("1mbit", Limit::Packets(9)) });
    link.arrive(Time::from_nanos(1), packet(1500, 0));
    link.arrive(ms(2), packet(1500, 1));
    let out: Vec<_> =
        std::iter::from_fn(|| link.poll(FOREVER)).map(|out| (out.queueing_delay, out.packet.ecn)).collect();
    assert_eq!(out, [(Duration::from_nanos(99_999_999), Ecn::Ce), (Duration::from_millis(198), Ecn::Ce)]);
}

#[test]
fn a_delay_that_changes_is_that_of_the_moment() {
    let delay = "0s:10ms,100ms:50ms,200ms:5ms".parse().unwrap();
    let mut link = Link::new(&LinkConfig { delay, ..config("12mbit", Limit::Packets(9)) });
    let mut out = Vec::new();
    for (number, at) in [98, 99, 198, 199, 230, 250].into_iter().enumerate() {
        out.extend(drain(&mut link, ms(at)));
        link.arrive(ms(at), packet(1500, number as u32));
    }
    assert_eq!(link.next_event(), Some(ms(256)));
    out.extend(drain(&mut link, FOREVER));
    let times: Vec<(u32, Time)> = out.iter().map(|out| (out.0, out.1)).collect();
    // it depends on the last bit; what is sent after the fall waits for what is under way
    let expected = [109, 150, 249, 249, 249, 256].into_iter().enumerate();
    assert_eq!(times, expected.map(|(number, at)| (number as u32, ms(at))).collect::<Vec<_>>());
}

#[test]
fn only_what_falls_back_is_not_held_up_by_what_is_under_way() {
    let delay = "0s:100ms,10ms:1ms".parse().unwrap();
    let reordering = "50%:5ms".parse().unwrap();
    let mut link = Link::new(&LinkConfig { delay, reordering, ..config("12mbit", Limit::Packets(99)) });
    for number in 0..50 {
        link.arrive(ms(0), packet(1500, number));
    }
    // the others come out together with the last one that was sent before the step and kept its place
    let (alone, held): (Vec<_>, Vec<_>) =
        drain(&mut link, FOREVER).into_iter().filter(|out| out.0 >= 9).partition(|out| out.1 < ms(101));
    assert!(alone.iter().all(|out| out.1 == ms(u64::from(out.0) + 1 + 1 + 5)), "{alone:?}");
    assert!(held.iter().all(|out| out.1 == held[0].1 && out.1 <= ms(109)), "{held:?}");
    assert!(alone.len() > 10 && held.len() > 10, "{} and {}", alone.len(), held.len());
}

#[test]
fn on_a_wire_nothing_waits() {
    let mut link = Link::new(&LinkConfig::wire(Duration::from_millis(7)));
    for number in 0..1000 {
        link.arrive(ms(3), packet(65_535, number));
    }
    let out = drain(&mut link, ms(10));
    assert!(out.len() == 1000 && out.iter().all(|it| it.1 == ms(10) && it.2.is_zero()), "{out:?}");
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    const N: u32 = 2000;
    let run = |jitter: &str, reordering: &str| {
        let mut link = Link::new(&LinkConfig {
            jitter: jitter.parse().unwrap(),
            reordering: reordering.parse().unwrap(),
            ..config("1gbit", Limit::Packets(9))
        });
        let mut out = Vec::new();
        for n in 0..N {
            let now = ms(u64::from(n));
            out.extend(drain(&mut link, now));
            link.arrive(now, packet(1500, n));
        }
        out.extend(drain(&mut link, FOREVER));
        out
    };
    let sent = |n: u32| ms(u64::from(n)) + Duration::from_micros(10_012);
    let extra: Vec<Duration> = run("5ms", "0:0s").iter().map(|out| out.1 - sent(out.0)).collect();
    assert!(extra.iter().all(|extra| *extra < Duration::from_millis(5)));
    assert!(extra.iter().any(|extra| *extra > Duration::from_millis(4)));
    let order = |out: &[(u32, Time, Duration)]| out.iter().map(|out| out.0).collect::<Vec<_>>();
    assert!(order(&run("5ms", "0:0s")).is_sorted());
    assert!(order(&run("5ms:normal", "0:0s")).is_sorted());

    let out = run("0s", "10%:2500us");
    assert!(out.is_sorted_by_key(|out| out.1));
    let back: Vec<_> = out.iter().filter(|out| out.1 - sent(out.0) == Duration::from_micros(2500)).collect();
    let others = out.iter().filter(|out| out.1 == sent(out.0)).count();
    assert_eq!(back.len() + others, N as usize);
    // Five standard deviations of the binomial distribution are 67.
    assert!((133..=267).contains(&back.len()), "{} fell back", back.len());
    // Packets come 1 ms apart, so who is 2.5 ms late comes behind the next two, but for others.
    let place = |n: u32| out.iter().position(|out| out.0 == n).unwrap();
    let alone = back.iter().filter(|late| {
        let next = [late.0 + 1, late.0 + 2];
        next.iter().all(|n| *n < N && out[place(*n)].1 == sent(*n))
    });
    let mut count = 0;
    for late in alone {
        assert!(place(late.0) > place(late.0 + 2));
        count += 1;
    }
    assert!(count > 100);
}

#[test]
fn a_packet_that_falls_back_does_not_hide_the_next_one() {
    // All packets are set back, so the second could not overtake; but the caller cannot know that.
    let reordering = "1:5ms".parse().unwrap();
    let mut link = Link::new(&LinkConfig { reordering, ..config("12mbit", Limit::Packets(9)) });
    link.arrive(ms(0), packet(1500, 0));
    assert_eq!(link.next_event(), Some(ms(11)));
    assert!(link.poll(ms(11)).is_none());
    assert_eq!(link.next_event(), Some(ms(16)));
    assert_eq!(drain(&mut link, ms(16)), [(0, ms(16), Duration::ZERO)]);
}

#[test]
fn causes_of_drops_are_told_apart_and_dropped_packets_kept() {
    let mut link =
        Link::new(&LinkConfig { police: Some("1mbit:3kB".parse().unwrap()), ..config("12mbit", Limit::Packets(1)) });
    link.keep_dropped();
    let fates: Vec<Arrival> = (0..3).map(|n| link.arrive(ms(0), packet(1500, n))).collect();
    assert_eq!(fates, [Arrival::Accepted, Arrival::Dropped(Cause::Overflow), Arrival::Dropped(Cause::Policed)]);
    let dropped: Vec<_> = link.take_dropped().map(|out| (out.at, out.cause, out.packet.payload)).collect();
    assert_eq!(dropped, [(ms(0), Cause::Overflow, 1), (ms(0), Cause::Policed, 2)]);
    assert_eq!(link.take_dropped().count(), 0);
    let statistics = link.statistics();
    assert_eq!((statistics.overflow.packets, statistics.policed.packets), (1, 1));
    assert_eq!(statistics.dropped().bytes, 3000);

    let mut link = Link::new(&LinkConfig { loss: "1".parse().unwrap(), ..config("12mbit", Limit::Packets(1)) });
    assert_eq!(link.arrive(ms(0), packet(1500, 0)), Arrival::Dropped(Cause::Lost));
    assert_eq!(link.statistics().lost, Amount::one(1500));
    assert_eq!(link.statistics().dropped(), Amount::ZERO);
}

#[test]
fn one_source_of_chance_does_not_disturb_another() {
    let lost = |config: LinkConfig| -> Vec<bool> {
        let mut link = Link::new(&LinkConfig { loss: "30%".parse().unwrap(), seed: 5, ..config });
        (0..500).map(|n| link.arrive(ms(n), packet(100, 0)) != Arrival::Accepted).collect()
    };
    let plain = lost(config("12mbit", Limit::Packets(9)));
    let all = LinkConfig {
        jitter: "1ms".parse().unwrap(),
        reordering: "50%:1ms".parse().unwrap(),
        discipline: "pie".parse().unwrap(),
        ..config("12mbit", Limit::Packets(9))
    };
    assert_eq!(lost(all), plain);
    assert!(plain.contains(&true) && plain.contains(&false));
}

#[test]
fn a_flow_that_was_idle_is_new_again() {
    // FQ-CoDel forgets a flow only when it finds its queue empty. Flow 1 sends a packet alone, and
    // comes back later, when flow 2 has filled the queue: it goes first.
    let discipline = "fq_codel:quantum=100".parse().unwrap();
    let mut link = Link::new(&LinkConfig { discipline, ..config("12mbit", Limit::Packets(99)) });
    link.arrive(ms(0), Packet { flow: 1, ..packet(3000, 0) });
    drain(&mut link, ms(50));
    for n in 1..5 {
        link.arrive(ms(50), Packet { flow: 2, ..packet(1500, n) });
    }
    link.arrive(ms(50), Packet { flow: 1, ..packet(1500, 9) });
    let order: Vec<u32> = drain(&mut link, FOREVER).iter().map(|out| out.0).collect();
    assert_eq!(order, [1, 9, 2, 3, 4]);
}
