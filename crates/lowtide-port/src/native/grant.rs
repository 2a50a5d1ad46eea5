// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a receiver makes of the windows that it grants, `law/grant.h`: beside a path, a sender and clocks that we
//! invent.

use std::{cmp::Reverse, collections::BinaryHeap};

use proptest::prelude::*;

const MSS: u32 = 1448;
/// A packet's time on a link of 20 Mbit/s, microseconds.
const PACKET: u64 = 600;
/// Of the path to us and back, microseconds; queues come on top.
const HERE: u64 = 25_000;
const BACK: u64 = 15_000;

/// `struct segment`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    now_us: u64,
    seq: u32,
    payload: u32,
    size: u32,
    pushed: u32,
    tsval: u32,
    tsecr: u32,
    marked: u32,
}

/// `struct native_grant_heard` of `native.c`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    loop_us: u32,
    rtt_us: u32,
    packets: u32,
    lost: u32,
    marked: u32,
    window_limited: u32,
    in_flight: u32,
    rate_delivered: u32,
    rate_interval_us: u32,
}

unsafe extern "C" {
    fn native_grants_size() -> u64;
    fn native_grant_leaves(g: *mut u64, now_us: u64, tsval: u32, edge: u32);
    fn native_grant_arrives(g: *mut u64, s: *const Segment, heard: *mut Heard) -> bool;
    fn native_grant_unseen(g: *mut u64);
    fn native_grant_stretched(g: *const u64, window: u64) -> u64;
    fn native_grant_whole(part_q16: u64, window_q16: u64, others: u64) -> u64;
    fn native_grant_clamp(want: u32, held: u32, burst: u32, mss: u32) -> u32;
}

// SAFETY of all calls below: plain functions of integers and of a state that is large enough, aligned, and ours alone.

struct Grants(Vec<u64>);

impl Grants {
    fn new() -> Grants {
        Grants(vec![0; unsafe { native_grants_size() }.div_ceil(8) as usize])
    }

    fn leaves(&mut self, now_us: u64, tsval: u32, edge: u32) {
        unsafe { native_grant_leaves(self.0.as_mut_ptr(), now_us, tsval, edge) }
    }

    fn arrives(&mut self, segment: Segment) -> Option<Heard> {
        let mut heard = Heard::default();
        unsafe { native_grant_arrives(self.0.as_mut_ptr(), &raw const segment, &raw mut heard) }.then_some(heard)
    }
}

/// What happens, in the order of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An ACK reaches the sender.
    Acked { tsval: u32, edge: u32 },
    /// A segment reaches us: number, the sender's timestamp, ours, and how long it queued.
    Arrives { number: u32, tsval: u32, tsecr: u32, queued: u64 },
}

/// A world with one connection: it sends what it may, at once, but for `most` segments in flight.
struct World {
    grants: Grants,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    first_seq: u32,
    window: u32,
    most: u32,
    /// An ACK for so many segments.
    ack_every: u32,
    /// The edge moves by so many segments at once.
    burst: u32,
    packet: u64,
    /// Ticks of the sender's clock in us, what it is too slow by in millionths, and what it starts with.
    tick: u64,
    ppm: i64,
    offset: u32,
    left: u64,
    link_free: u64,
    back_free: u64,
    sent: u32,
    acked: u32,
    heard_tsval: u32,
    received: u32,
}

/// A segment that answered, with what was true of it.
struct Told {
    now: u64,
    heard: Heard,
    queued: u64,
    back: u64,
}

impl World {
    fn new(window: u32) -> World {
        World {
            grants: Grants::new(),
            events: BinaryHeap::new(),
            order: 0,
            first_seq: u32::MAX - 70 * MSS,
            window,
            most: u32::MAX,
            ack_every: 2,
            burst: 1,
            packet: PACKET,
            tick: 1000,
            ppm: 0,
            offset: u32::MAX - 500,
            left: 0,
            link_free: 0,
            back_free: 0,
            sent: 0,
            acked: 0,
            heard_tsval: 0,
            received: 0,
        }
    }

    fn seq(&self, number: u32) -> u32 {
        self.first_seq.wrapping_add(number.wrapping_mul(MSS))
    }

    fn push(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn senders_clock(&self, at: u64) -> u32 {
        let drifted = at as i64 - at as i64 * self.ppm / 1_000_000;
        ((drifted as u64 / self.tick) as u32).wrapping_add(self.offset)
    }

    fn acknowledge(&mut self, now: u64, back_queue: u64) {
        let (tsval, edge) = ((now / 1000) as u32, self.received - self.received % self.burst + self.window);
        self.grants.leaves(now, tsval, self.seq(edge));
        self.back_free = self.back_free.max(now + BACK + back_queue); // none overtakes another
        self.push(self.back_free, Event::Acked { tsval, edge });
    }

    /// Until `end` us; queues on the way back, and of others on the way here, in us, follow the time in seconds.
    /// `pause`: of the sender's program, before it gives the next segment, in us.
    fn run(
        &mut self,
        end: u64,
        back: impl Fn(f64) -> f64,
        here: impl Fn(f64) -> f64,
        pause: impl Fn(u32) -> u64,
    ) -> Vec<Told> {
        let mut told = Vec::new();
        if self.order == 0 {
            self.acknowledge(1_000, 0);
        }
        while self.events.peek().is_some_and(|Reverse((at, ..))| *at < end) {
            let Some(Reverse((now, _, event))) = self.events.pop() else { break };
            let seconds = now as f64 / 1e6;
            match event {
                Event::Acked { tsval, edge } => {
                    self.heard_tsval = tsval;
                    self.acked = self.acked.max(edge - self.window);
                    while self.sent < edge && self.sent < self.acked.saturating_add(self.most) {
                        let leaves = self.left.max(now + pause(self.sent)); // in order
                        self.left = leaves;
                        let starts = self.link_free.max(leaves + here(seconds) as u64);
                        self.link_free = starts + self.packet;
                        let tsval = self.senders_clock(leaves);
                        let (number, tsecr, queued) =
                            (self.sent, self.heard_tsval, self.link_free - leaves - self.packet);
                        self.push(self.link_free + HERE, Event::Arrives { number, tsval, tsecr, queued });
                        self.sent += 1;
                    }
                }
                Event::Arrives { number, tsval, tsecr, queued } => {
                    self.received = number + 1;
                    let segment = Segment {
                        now_us: now,
                        seq: self.seq(number),
                        payload: MSS,
                        size: MSS,
                        pushed: 0,
                        tsval,
                        tsecr,
                        marked: 0,
                    };
                    if let Some(heard) = self.grants.arrives(segment) {
                        told.push(Told { now, heard, queued, back: back(seconds) as u64 });
                    }
                    if number % self.ack_every == self.ack_every - 1 {
                        self.acknowledge(now, back(seconds) as u64);
                    }
                }
            }
        }
        told
    }
}

const BASE: u64 = HERE + BACK + PACKET;
fn none(_: f64) -> f64 {
    0.0
}
fn at_once(_: u32) -> u64 {
    0
}

#[test]
fn a_sender_that_the_window_limits_tells_the_round_trip_to_the_microsecond() {
    for window in [4, 20, 60, 100] {
        let told = World::new(window).run(20_000_000, none, none, at_once);
        assert!(told.len() > 500);
        // on a long path not each ACK is remembered, but two of three
        let answers: Vec<_> = told[window as usize..].iter().filter(|told| told.heard.loop_us > 0).collect();
        assert!(3 * answers.len() > 2 * told.len() - 2 * window as usize, "window {window}");
        for told in answers {
            let rtt = u64::from(told.heard.rtt_us);
            // while a queue stands clocks may part by 30 ppm
            assert!(
                rtt.abs_diff(BASE + told.queued) <= 2 + told.now / 32_768,
                "{rtt}, window {window}, at {} us",
                told.now
            );
            assert_eq!(told.heard.window_limited, 1);
            assert!(u64::from(told.heard.loop_us) >= rtt);
        }
        let last = told.last().unwrap().heard;
        assert!((window - 3..=window + 3).contains(&last.in_flight), "{last:?} of {window}");
        let rate = f64::from(last.rate_delivered) / f64::from(last.rate_interval_us);
        let expected = (f64::from(window) / BASE as f64).min(1.0 / PACKET as f64);
        assert!((rate / expected - 1.0).abs() < 0.15, "{rate} of {expected}, window {window}");
    }
}

/// On a fast link many ACKs have the same timestamp.
#[test]
fn so_it_does_where_a_tick_is_many_packets() {
    let mut world = World::new(600);
    world.packet = 24;
    let told = world.run(4_000_000, none, none, at_once);
    for told in &told[5_000..] {
        let rtt = u64::from(told.heard.rtt_us);
        let off = rtt.abs_diff(HERE + BACK + 24 + told.queued);
        assert!(off <= 1_000, "{off} us off, more than a tick, at {}", told.now);
        assert_eq!(told.heard.window_limited, 1);
    }
}

#[test]
fn the_way_back_does_not_count() {
    for (tick, ppm) in [(1, 0), (1000, -20), (1000, 0), (1000, 20), (4000, 0)] {
        let mut world = World::new(20);
        (world.tick, world.ppm) = (tick, ppm);
        let back = |at: f64| if at > 5.0 { 60_000.0 + 20_000.0 * (at % 3.0) / 3.0 } else { 0.0 };
        let others = |at: f64| if at % 7.0 > 5.0 { 30_000.0 } else { 0.0 };
        // a queue of what ACKs let go when they wait less, every three seconds, does not count either
        let counts = |told: &&Told| told.now > 8_000_000 && told.now % 3_000_000 > 500_000;
        for told in world.run(120_000_000, back, others, at_once).iter().filter(counts) {
            let (rtt, true_rtt) = (u64::from(told.heard.rtt_us), BASE + told.queued);
            // with the queue on the way back nothing tells by how much clocks part
            let drift = (told.now as i64 * ppm.abs() / 1_000_000) as u64;
            assert!(
                (true_rtt.saturating_sub(drift + 250)..=true_rtt + tick + drift + 250).contains(&rtt),
                "{rtt} of {true_rtt}, ticks of {tick}, {ppm} ppm, at {}",
                told.now
            );
            // what it is now; an ACK may have left before it grew
            let loop_us = u64::from(told.heard.loop_us);
            assert!(loop_us == 0 || loop_us + 21_000 >= BASE + told.back, "the loop has it");
        }
    }
}

/// ACKs that wait do not make a window carry less, and one that has just ceased to wait counts at once.
#[test]
fn a_window_is_stretched_by_what_acks_wait() {
    let mut world = World::new(20);
    let stretched = |world: &World| unsafe { native_grant_stretched(world.grants.0.as_ptr(), 100_000) };
    world.run(5_000_000, none, none, at_once);
    assert!((100_000..103_000).contains(&stretched(&world)), "nothing waits: {}", stretched(&world));
    let told = world.run(20_000_000, |_| 40_600.0, none, at_once);
    assert!((195_000..205_000).contains(&stretched(&world)), "as long as the empty path: {}", stretched(&world));
    // where not every ACK is remembered, some rates are lower bounds
    let latest = told.iter().rev().map(|told| told.heard).filter(|heard| heard.rate_interval_us > 0).take(20);
    let rates = latest.map(|heard| f64::from(heard.rate_delivered) / f64::from(heard.rate_interval_us));
    let rate = rates.fold(0.0, f64::max);
    let expected = 20.0 / (BASE as f64 + 40_600.0);
    assert!((rate / expected - 1.0).abs() < 0.2, "{rate} of {expected}");
    world.run(20_300_000, none, none, at_once);
    assert!(stretched(&world) < 105_000, "{}", stretched(&world));
}

/// A queue that stands is not taken for clocks that part: a part of it is left after ten minutes, whichever way they
/// do.
#[test]
fn a_queue_that_stands_stays_one() {
    for ppm in [-20, 0, 20] {
        let mut world = World::new(4);
        world.ppm = ppm;
        world.run(10_000_000, none, none, at_once);
        let told = world.run(610_000_000, none, |_| 40_000.0, at_once);
        let last = told.last().unwrap();
        let queue = u64::from(last.heard.rtt_us) - BASE;
        assert!(4 * queue > last.queued, "{queue} us left of {} at {ppm} ppm", last.queued);
    }
}

/// While round trips are long, ACKs that leave soon after each other are not remembered. If it is always the second of
/// two that moves the edge nothing answers the first, and yet a shorter round trip shows.
#[test]
fn after_a_long_queue_a_small_window_tells_the_round_trip() {
    let mut world = World::new(20);
    (world.ack_every, world.burst) = (1, 2);
    world.run(10_000_000, none, |_| 400_000.0, at_once);
    world.window = 2;
    world.run(12_000_000, none, none, at_once);
    let told = world.run(14_000_000, none, none, at_once);
    let loops: Vec<_> = told.iter().map(|told| u64::from(told.heard.loop_us)).filter(|us| *us > 0).collect();
    assert!(2 * loops.len() > told.len(), "{} of {}", loops.len(), told.len());
    assert!(loops.iter().all(|us| *us < BASE + 2 * PACKET), "{loops:?}");
}

/// By round trips it would look like a queue.
#[test]
fn a_sender_with_little_to_send_is_no_queue() {
    let mut world = World::new(20);
    world.run(2_000_000, none, none, at_once);
    world.most = 4;
    let told = world.run(20_000_000, none, none, |number| u64::from(number % 7) * 3_000);
    let (mut limited, mut longer) = (0, 0);
    for told in told.iter().filter(|told| told.now > 3_000_000) {
        let rtt = u64::from(told.heard.rtt_us);
        assert!(rtt <= BASE + told.queued + 1_000, "{rtt} of {}, at {}", BASE + told.queued, told.now);
        limited += told.heard.window_limited;
        longer += usize::from(u64::from(told.heard.loop_us) > rtt + 5_000);
    }
    assert_eq!(limited, 0, "it has the window of twenty");
    assert!(longer > 100, "round trips have the pauses");
}

/// A program that sends now and then, beside a queue that stands: it answers ACKs late, and again in time. These ACKs
/// did not wait on their way, so no data are released, and the queue is seen.
#[test]
fn a_program_that_pauses_hides_no_queue() {
    for (pause, every, window) in [(20_000, 2, 10), (60_000, 4, 4), (60_000, 4, 40), (100_000, 20, 40)] {
        let mut world = World::new(window);
        world.run(5_000_000, none, none, at_once);
        let told = world.run(60_000_000, none, |_| 30_000.0, |number| u64::from(number / 4 % every == 0) * pause);
        let stretched = unsafe { native_grant_stretched(world.grants.0.as_ptr(), 100_000) };
        assert!(stretched < 110_000, "{stretched}: nothing waits");
        for told in told.iter().filter(|told| told.now > 8_000_000 && told.heard.rtt_us > 0) {
            let (rtt, true_rtt) = (u64::from(told.heard.rtt_us), BASE + told.queued);
            assert!(rtt + 2_000 > true_rtt, "{rtt} of {true_rtt}, pauses of {pause} us, window {window}");
        }
    }
}

/// After a scheduling stall a host takes in at once what has come meanwhile, after the first of it has been
/// acknowledged.
#[test]
fn the_rate_is_no_more_than_what_was_sent_in_the_time() {
    let mut world = World::new(100);
    world.run(4_000_000, none, none, at_once);
    // 30 ms of packets stand here; the next ones come as before
    let mut waiting: Vec<_> = world.events.drain().collect();
    waiting.sort_by_key(|Reverse((at, order, _))| (*at, *order));
    for Reverse((at, order, event)) in waiting {
        let stands = matches!(event, Event::Arrives { .. }) && at < 4_030_000;
        world.events.push(Reverse((if stands { 4_030_000 } else { at }, order, event)));
    }
    let told = world.run(4_200_000, none, none, at_once);
    let rates = told
        .iter()
        .filter(|told| told.heard.rate_interval_us > 0)
        .map(|told| f64::from(told.heard.rate_delivered) / f64::from(told.heard.rate_interval_us) * PACKET as f64);
    let most = rates.fold(0.0, f64::max);
    assert!((0.85..1.05).contains(&most), "{most} of the link");
}

/// Segments with these numbers, a packet's time apart, after a grant for a hundred; what was lost, after each.
fn losses(numbers: &[u32], unseen_before: Option<usize>) -> Vec<u32> {
    let mut grants = Grants::new();
    grants.leaves(1_000, 1, 100 * MSS);
    let mut lost = Vec::new();
    for (n, number) in numbers.iter().enumerate() {
        if unseen_before == Some(n) {
            unsafe { native_grant_unseen(grants.0.as_mut_ptr()) };
        }
        let now_us = 41_000 + n as u64 * PACKET;
        let segment =
            Segment { now_us, seq: number * MSS, payload: MSS, size: MSS, tsval: 7, tsecr: 1, ..Segment::default() };
        lost.push(grants.arrives(segment).unwrap().lost);
    }
    lost
}

#[test]
fn what_others_have_overtaken_is_lost() {
    assert_eq!(losses(&[0, 1, 4, 5, 6, 7, 8], None), [0, 0, 0, 0, 0, 2, 0]);
    assert_eq!(losses(&[0, 2, 1, 3, 4, 5, 6, 7], None), [0; 8], "reordered");
    assert_eq!(losses(&[0, 1, 4, 5, 6, 7, 8], Some(2)), [0; 7], "it passed unseen");
}

#[test]
fn before_there_is_a_grant_and_after_it_is_gone_nothing_is_answered() {
    let mut grants = Grants::new();
    let at = |now_us, tsecr, number: u32| Segment {
        now_us,
        seq: number * MSS,
        payload: MSS,
        size: MSS,
        tsval: 7,
        tsecr,
        ..Segment::default()
    };
    assert!(grants.arrives(at(1_000, 1, 0)).is_none());
    for tsval in 0..1_000 {
        grants.leaves(u64::from(tsval) * 1_000, tsval, tsval * MSS);
    }
    assert_eq!(grants.arrives(at(1_000_000, 3, 1)).map(|heard| heard.loop_us), Some(0), "long overwritten");
}

#[test]
fn segments_are_counted_whatever_they_come_in() {
    let mut grants = Grants::new();
    grants.leaves(1_000, 1, 100 * MSS);
    let mut arrives = |payload: u32, seq: u32| {
        let size = payload.min(MSS);
        let segment = Segment { now_us: 41_000, seq, payload, size, tsval: 7, tsecr: 1, marked: 1, pushed: 0 };
        grants.arrives(segment).unwrap()
    };
    let four = arrives(4 * MSS, 0);
    assert_eq!((four.packets, four.marked), (4, 4));
    let halves = [arrives(MSS / 2, 4 * MSS), arrives(MSS / 2, 4 * MSS + MSS / 2)];
    assert_eq!(halves.map(|heard| heard.packets), [0, 1]);
    assert_eq!(halves.map(|heard| heard.rtt_us), [0, 0], "short ones give no RTT");
}

#[test]
fn what_ends_a_message_does_not_tell_how_long_a_full_segment_is() {
    let mut grants = Grants::new();
    grants.leaves(1_000, 1, 100 * MSS);
    let at = |now_us, seq, payload: u32, pushed| Segment {
        now_us,
        seq,
        payload,
        size: payload.min(MSS),
        pushed,
        tsval: 7,
        tsecr: 1,
        ..Segment::default()
    };
    assert!(grants.arrives(at(40_000, 0, 300, 1)).is_none(), "a head alone");
    let full = grants.arrives(at(41_000, 300, MSS, 0)).unwrap();
    assert_eq!((full.packets, full.rtt_us), (1, 40_000));
    assert_eq!(grants.arrives(at(41_500, 300 + MSS, 200, 1)).unwrap().rtt_us, 0, "the end of a body");
    let mut joined = Grants::new();
    joined.leaves(1_000, 1, 100 * MSS);
    assert_eq!(joined.arrives(at(41_000, 0, 2 * MSS + 90, 1)).unwrap().packets, 2, "of two full ones");
}

fn segment_at(now_us: u64, seq: u32, payload: u32, tsval: u32, tsecr: u32) -> Segment {
    Segment { now_us, seq, payload, size: payload.min(MSS), tsval, tsecr, ..Segment::default() }
}

proptest! {
    /// Whatever is wanted: what has been granted stays granted, and a sender always has something to send and an ACK to
    /// come.
    #[test]
    fn no_edge_moves_left(want in 0u32..10_000_000, held in 0u32..10_000_000, burst in 0u32..20_000) {
        let clamp = unsafe { native_grant_clamp(want, held, burst, MSS) };
        prop_assert!(clamp >= held && clamp >= 1152);
        prop_assert!(clamp == want.max(1152) || clamp == held.max(1152));
        prop_assert!(held >= 2 * MSS || clamp >= want);
    }

    /// Equal parts, each rounded in its turn, add up to the window. So it never grows by a segment for each of them.
    #[test]
    fn whole_segments_add_up(connections in 1usize..40, windows in prop::collection::vec(2.0f64..200.0, 1..20)) {
        let mut whole = vec![0; connections];
        for window in windows {
            let window_q16 = (window * 65_536.0) as u64;
            for _ in 0..2 {
                for i in 0..connections {
                    let others = whole.iter().sum::<u64>() - whole[i];
                    whole[i] = unsafe { native_grant_whole(window_q16 / connections as u64, window_q16, others) };
                }
            }
            let (sum, most, least) = (whole.iter().sum::<u64>(), whole.iter().max(), whole.iter().min());
            prop_assert!((sum as f64 - window).abs() <= 0.51, "{sum} of {window}: {whole:?}");
            prop_assert!(most.unwrap() - least.unwrap() <= 1);
        }
    }

    /// Whatever arrives, the results are possible ones.
    #[test]
    fn it_takes_anything(events in prop::collection::vec((0u64..5_000, any::<u32>(), any::<u32>(), any::<u32>(), 1u32..70_000, any::<bool>()), 1..300)) {
        let (mut grants, mut now) = (Grants::new(), 1_000_000);
        for (passed, seq, tsval, tsecr, payload, leaves) in events {
            now += passed;
            if leaves {
                grants.leaves(now, tsval, seq);
            } else if let Some(heard) = grants.arrives(segment_at(now, seq, payload, tsval, tsecr)) {
                prop_assert!(u64::from(heard.loop_us) <= now);
                prop_assert!(heard.rtt_us <= heard.loop_us || heard.loop_us == 0);
            }
        }
    }
}
