// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several connections as one flow: `law/aggregate.h` beside its reference, driven by the same events.

use lowtide_cc::{
    Ack, Time,
    part::{Aggregate, Member, Usage},
};
use proptest::prelude::*;
use std::time::Duration;

/// The ACK of a connection: `struct native_aggregate_event` of `native.c`.
#[repr(C)]
struct Delivered {
    now_us: u64,
    packets: u32,
    bytes: u32,
    mss: u32,
    rtt_us: u32,
    number: u64,
}

/// What the law receives of an ACK: `struct native_aggregate_heard` of `native.c`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Heard {
    una: u32,
    nxt: u32,
    srtt_us: u32,
    senders: u32,
    burst: u32,
    beside: u32,
    rate_delivered: u32,
    rate_interval_us: u32,
    rate_app_limited: u32,
}

unsafe extern "C" {
    fn native_aggregate_size() -> u64;
    fn native_aggregate_member_size() -> u64;
    fn native_aggregate_begin(g: *mut u64, now_us: u64, srtt_us: u32);
    fn native_aggregate_ack(g: *mut u64, event: *const Delivered, heard: *mut Heard);
    fn native_aggregate_beside(g: *mut u64);
    fn native_aggregate_has_no_data(g: *mut u64, mss: u32);
    fn native_aggregate_reduces(g: *mut u64, m: *const u64, now_us: u64) -> bool;
    fn native_aggregate_flight(m: *mut u64, in_flight: u32);
    fn native_aggregate_is_full(g: *const u64, window_q16: u64) -> bool;
    fn native_aggregate_join(g: *mut u64, m: *mut u64, window_q16: u64);
    fn native_aggregate_grant(g: *mut u64, m: *mut u64, window_q16: u64, packets: u32, usage: u32);
    fn native_aggregate_scale(g: *mut u64, m: *mut u64, from_q16: u64, to_q16: u64);
    fn native_aggregate_leave(g: *mut u64, m: *mut u64);
    fn native_aggregate_grant_q16(m: *const u64) -> u64;
    fn native_aggregate_granted_q16(g: *const u64) -> u64;
}

const MSS: u64 = 1448;
const CONNECTIONS: usize = 5;

/// Both, side by side.
struct Pair {
    now_us: u64,
    rtt_us: u32,
    reference: Aggregate,
    members: [Member; CONNECTIONS],
    c: Vec<u64>,
    c_members: Vec<Vec<u64>>,
}

/// A structure in C, in words so that its fields are aligned.
fn zeroed(bytes: u64) -> Vec<u64> {
    vec![0; bytes.div_ceil(8) as usize]
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Wait(u64),
    Join,
    Ack { packets: u32, short: u32, in_flight: u32, usage: u8, sampled: bool },
    Loss(u64),
    Beside,
    NoData,
    Leave,
}

impl Pair {
    fn new(rtt_us: u32) -> Self {
        let now_us = 5_000_000;
        let mut reference = Aggregate::default();
        reference.begin(at(now_us), Duration::from_micros(rtt_us.into()));
        // SAFETY of all calls in this file: the structures are as long as C says and ours alone, and the functions keep
        // no pointer.
        let (size, member_size) = unsafe { (native_aggregate_size(), native_aggregate_member_size()) };
        let mut c = zeroed(size);
        unsafe { native_aggregate_begin(c.as_mut_ptr(), now_us, rtt_us) };
        let c_members = vec![zeroed(member_size); CONNECTIONS];
        Self { now_us, rtt_us, reference, members: Default::default(), c, c_members }
    }

    /// Something happens to a connection while all of them have a window of so many segments.
    fn happen(&mut self, which: usize, window: u64, event: Event) -> Result<(), TestCaseError> {
        let (window_q16, real) = (window << 16, window as f64);
        let (all, member) = (&mut self.reference, &mut self.members[which]);
        let (g, m) = (self.c.as_mut_ptr(), self.c_members[which].as_mut_ptr());
        match event {
            Event::Wait(us) => self.now_us += us,
            Event::Join => {
                all.join(member, real);
                unsafe { native_aggregate_join(g, m, window_q16) };
            }
            Event::Ack { packets, short, in_flight, usage, sampled } => {
                let usage = usage as usize % 4;
                let rtt = sampled.then(|| Duration::from_micros(self.rtt_us.into()));
                member.in_flight = in_flight;
                // the last segment may be short
                let bytes = (packets * MSS as u32).saturating_sub(short);
                let ack = Ack { now: at(self.now_us), packets, bytes: bytes.into(), rtt, ..Ack::default() };
                let number = which as u64 + 1;
                let heard = all.on_ack(&ack, number);
                all.grant(
                    member,
                    real,
                    packets,
                    [Usage::Modest, Usage::Wants, Usage::Yields, Usage::HoldsToken][usage],
                );
                let rate = heard.rate.unwrap_or_default();
                let reference = Heard {
                    una: heard.una as u32, // sequence numbers wrap
                    nxt: heard.nxt as u32,
                    srtt_us: heard.srtt.as_micros() as u32,
                    senders: heard.senders,
                    burst: heard.burst,
                    beside: heard.beside,
                    rate_delivered: (rate.delivered / MSS) as u32,
                    rate_interval_us: rate.interval.as_micros() as u32,
                    rate_app_limited: rate.app_limited.into(),
                };
                let mut port = Heard::default();
                let full = unsafe {
                    native_aggregate_flight(m, in_flight);
                    let rtt_us = if sampled { self.rtt_us } else { 0 };
                    let event = Delivered { now_us: self.now_us, packets, bytes, mss: MSS as u32, rtt_us, number };
                    native_aggregate_ack(g, &raw const event, &raw mut port);
                    native_aggregate_grant(g, m, window_q16, packets, usage as u32);
                    native_aggregate_is_full(g, window_q16)
                };
                prop_assert_eq!(reference, port);
                // where they are a rounding apart from it they may differ
                if (self.reference.granted() + 2.0 - real * 15.0 / 16.0).abs() > 1e-2 {
                    prop_assert_eq!(self.reference.is_full(real), full);
                }
            }
            Event::Loss(left) => {
                let left = left.clamp(1, window);
                let reduces = all.reduces(member, at(self.now_us));
                prop_assert_eq!(reduces, unsafe { native_aggregate_reduces(g, m, self.now_us) });
                if reduces {
                    all.scale(member, real, left as f64);
                    unsafe { native_aggregate_scale(g, m, window_q16, left << 16) };
                }
            }
            Event::Beside => {
                all.on_beside();
                unsafe { native_aggregate_beside(g) };
            }
            // it counts whole segments, and C may have lost a little of the last one
            Event::NoData if all.granted().ceil() - all.granted() < 1e-2 && all.granted().fract() > 1e-9 => {}
            Event::NoData => {
                all.has_no_data(MSS);
                unsafe { native_aggregate_has_no_data(g, MSS as u32) };
            }
            Event::Leave => {
                all.leave(member);
                unsafe { native_aggregate_leave(g, m) };
            }
        }
        self.compare()
    }

    /// C loses less than 2^-16 segments at each event: a hundredth is more than those of a life together.
    fn compare(&self) -> Result<(), TestCaseError> {
        let segments = |q16: u64| q16 as f64 / 65_536.0;
        for (member, c) in self.members.iter().zip(&self.c_members) {
            let grant = segments(unsafe { native_aggregate_grant_q16(c.as_ptr()) });
            prop_assert!((member.grant - grant).abs() < 1e-2, "{} and {grant}", member.grant);
        }
        let granted = segments(unsafe { native_aggregate_granted_q16(self.c.as_ptr()) });
        prop_assert!((self.reference.granted() - granted).abs() < 1e-2, "{} and {granted}", self.reference.granted());
        Ok(())
    }
}

fn at(us: u64) -> Time {
    Time::from_nanos(1000 * us)
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (1u64..20_000).prop_map(Event::Wait),
        2 => Just(Event::Join),
        8 => (0u32..12, prop_oneof![3 => Just(0), 1 => 1u32..1448], 0u32..40, 0u8..4, any::<bool>()).prop_map(
            |(packets, short, in_flight, usage, sampled)| Event::Ack { packets, short, in_flight, usage, sampled },
        ),
        1 => (1u64..100).prop_map(Event::Loss),
        1 => Just(Event::Beside),
        1 => Just(Event::NoData),
        1 => Just(Event::Leave),
    ]
}

proptest! {
    /// The same grants within rounding, and the law receives the same. The round trip stands and is a multiple of 8 us,
    /// as marks are set at eighths of the smoothed one: C has these in whole microseconds, and would set one an ACK
    /// apart.
    #[test]
    fn port_and_reference_divide_a_window_alike(
        rtt_8 in 60u32..25_000, events in prop::collection::vec((0..CONNECTIONS, 2u64..100, event()), 1..150),
    ) {
        let mut pair = Pair::new(8 * rtt_8);
        for (which, window, event) in events {
            pair.happen(which, window, event)?;
        }
    }

    #[test]
    fn the_smoothed_round_trip_is_the_same_but_for_whole_microseconds(
        rtts in prop::collection::vec(500u32..200_000, 1..100),
    ) {
        let mut pair = Pair::new(rtts[0]);
        for (n, rtt_us) in (1..).zip(rtts) {
            let (now_us, rtt) = (pair.now_us + 1000 * n, Some(Duration::from_micros(rtt_us.into())));
            let heard = pair.reference.on_ack(&Ack { now: at(now_us), packets: 1, rtt, ..Ack::default() }, 1);
            let mut port = Heard::default();
            let event = Delivered { now_us, packets: 1, bytes: 0, mss: MSS as u32, rtt_us, number: 1 };
            unsafe { native_aggregate_ack(pair.c.as_mut_ptr(), &raw const event, &raw mut port) };
            prop_assert!((heard.srtt.as_micros() as i64 - i64::from(port.srtt_us)).abs() <= 1, "{heard:?} {port:?}");
            prop_assert_eq!((heard.una as u32, heard.nxt as u32), (port.una, port.nxt));
        }
    }
}
