// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever the path does, the stream arrives whole and the accounts are right (see `Sender::check`).

use super::{
    path::{Fate, Path, at, settings},
    spy::Spy,
};
use crate::scenario::Tcp;
use lowtide_cc::EcnUse;
use proptest::prelude::*;
use std::time::Duration;

fn fate() -> impl Strategy<Value = Fate> {
    let time = || (0..300_000u64).prop_map(Duration::from_micros);
    prop_oneof![
        20 => Just(Fate::Pass),
        4 => Just(Fate::Drop),
        2 => Just(Fate::Mark),
        2 => time().prop_map(Fate::Late),
        1 => time().prop_map(Fate::Twice),
        1 => (0..3_000u64).prop_map(|ms| Fate::Hold(at(ms))),
    ]
}

/// Long runs of the same fate make outages and bursts.
fn fates() -> impl Strategy<Value = Vec<Fate>> {
    prop::collection::vec((fate(), prop_oneof![3 => 1..3usize, 1 => 1..30usize]), 0..60)
        .prop_map(|runs| runs.into_iter().flat_map(|(fate, times)| std::iter::repeat_n(fate, times)).collect())
}

fn ecn() -> impl Strategy<Value = EcnUse> {
    prop_oneof![Just(EcnUse::Off), Just(EcnUse::Classic), Just(EcnUse::Accurate), Just(EcnUse::L4s)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_stream_arrives_whole(
        forward in fates(),
        backward in fates(),
        writes in prop::collection::vec((0..2_000u64, 0..40_000u64), 1..8),
        window in prop_oneof![Just(0.3), Just(1.0), Just(4.0), 10.0..60.0],
        ecn in ecn(),
        reno: bool,
        pacing: bool,
        ack_every in 1..9u32,
        receive_window in prop_oneof![3 => Just(1 << 30), 1 => 500..20_000u64],
    ) {
        let settings = Tcp { pacing, ack_every, receive_window, ..settings() };
        let mut path = if reno { Path::new(&settings) } else { Spy::new(window).0.path(&settings, ecn) };
        let written: u64 = writes.iter().map(|write| write.1).sum();
        for (when, bytes) in writes {
            path = path.write_bytes(at(when), bytes);
        }
        let (mut forward, mut backward) = (forward.into_iter(), backward.into_iter());
        let mut path = path
            .close(at(2_000))
            .faults(move |_, _| forward.next().unwrap_or(Fate::Pass))
            .ack_faults(move |_, _| backward.next().unwrap_or(Fate::Pass));
        path.finish();
        prop_assert_eq!(path.receiver.received(), written);
        prop_assert_eq!(path.sender.acked_bytes(), written);
        prop_assert_eq!(path.sender.in_flight(), 0);
    }
}
