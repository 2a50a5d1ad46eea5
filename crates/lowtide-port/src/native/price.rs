// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which reduction episodes of the stack are the network's own events.

use super::{State, native_price_new_event, native_price_size};
use proptest::prelude::*;

const OPEN: u32 = 0;
const DISORDER: u32 = 1;
const CWR: u32 = 2;
const RECOVERY: u32 = 3;
const LOSS: u32 = 4;

/// What a segment that leaves sees: state, `high_seq`, `snd_una`, segments acknowledged with a mark.
type Look = (u32, u32, u32, u32);

/// At which looks a new event is counted.
fn events(looks: &[Look]) -> Vec<bool> {
    assert!(unsafe { native_price_size() } as usize <= size_of::<State>());
    let mut state = State([0; 4096]);
    let look = |&(ca_state, high_seq, una, ce): &Look| unsafe {
        native_price_new_event(&raw mut state, ca_state, high_seq, una, ce)
    };
    looks.iter().map(look).collect()
}

#[test]
fn an_event_is_counted_once() {
    let cases: &[(&str, &[(Look, bool)])] = &[
        ("nothing happens", &[((OPEN, 0, 10, 0), false), ((DISORDER, 20, 15, 0), false), ((OPEN, 20, 30, 0), false)]),
        (
            "a recovery, looked at with each retransmission, and another one later",
            &[
                ((OPEN, 0, 10, 0), false),
                ((RECOVERY, 50, 10, 0), true),
                ((RECOVERY, 50, 30, 0), false),
                ((OPEN, 50, 50, 0), false),
                ((RECOVERY, 90, 60, 0), true),
            ],
        ),
        (
            "a timeout within recovery belongs to it, however long it takes",
            &[
                ((RECOVERY, 50, 10, 0), true),
                ((LOSS, 60, 10, 0), false),
                ((LOSS, 60, 55, 0), false),
                ((OPEN, 60, 60, 0), false),
                ((LOSS, 99, 70, 0), true),
            ],
        ),
        (
            "a recovery that follows the last one without a segment in between",
            &[((RECOVERY, 50, 10, 0), true), ((RECOVERY, 90, 50, 0), true)],
        ),
        (
            "a recovery that was taken back early, and begins again in the same window",
            &[((RECOVERY, 50, 10, 0), true), ((OPEN, 50, 20, 0), false), ((RECOVERY, 55, 20, 0), false)],
        ),
        (
            "an episode of ours",
            &[
                ((OPEN, 0, 10, 0), false),
                ((CWR, 50, 10, 0), false),
                ((CWR, 50, 30, 0), false),
                ((OPEN, 50, 60, 0), false),
            ],
        ),
        (
            "a loss in an episode of ours",
            &[((CWR, 50, 10, 0), false), ((RECOVERY, 50, 20, 0), true), ((RECOVERY, 50, 30, 0), false)],
        ),
        (
            "a mark in an episode of ours",
            &[((CWR, 50, 10, 0), false), ((CWR, 50, 20, 2), true), ((CWR, 50, 30, 4), false)],
        ),
        (
            // a classic receiver echoes it until it sees the reduction (CWR)
            "a mark, its echoes, and the next one",
            &[
                ((CWR, 50, 10, 1), true),
                ((CWR, 50, 40, 9), false),
                ((OPEN, 50, 60, 12), false),
                ((CWR, 90, 60, 14), true),
            ],
        ),
        (
            "marked and lost in one window",
            &[((CWR, 50, 10, 1), true), ((RECOVERY, 50, 20, 1), false), ((OPEN, 50, 51, 1), false)],
        ),
        (
            "an episode of ours after echoes of an old mark",
            &[((CWR, 50, 10, 1), true), ((OPEN, 50, 60, 9), false), ((CWR, 90, 60, 9), false)],
        ),
        (
            "sequence numbers wrap within an event and long after one",
            &[
                ((RECOVERY, 20, u32::MAX - 9, 0), true),
                ((RECOVERY, 20, 5, 0), false),
                ((OPEN, 20, 20, 0), false),
                ((OPEN, 20, (1 << 31) + 100, 0), false),
                ((RECOVERY, (1 << 31) + 300, (1 << 31) + 200, 0), true),
            ],
        ),
    ];
    for (what, looks) in cases {
        let (looks, expected): (Vec<Look>, Vec<bool>) = looks.iter().copied().unzip();
        assert_eq!(events(&looks), expected, "{what}");
    }
}

proptest! {
    /// A stack that goes from one window of data to the next, each with losses or not, and with phantom episodes or
    /// not.
    #[test]
    fn as_many_as_windows_with_losses(windows in prop::collection::vec((any::<bool>(), any::<bool>(), 1usize..5), 1..200), start: u32) {
        let mut looks = Vec::new();
        let mut una = start;
        for (phantom, loss, retransmissions) in &windows {
            looks.push((OPEN, una, una, 0));
            let high = una.wrapping_add(1000);
            if *phantom {
                looks.push((CWR, high, una, 0));
            }
            if *loss {
                looks.extend((0..*retransmissions).map(|n| (RECOVERY, high, una.wrapping_add(n as u32), 0)));
            }
            una = high.wrapping_add(1);
        }
        let counted = events(&looks).iter().filter(|event| **event).count();
        prop_assert_eq!(counted, windows.iter().filter(|(_, loss, _)| *loss).count());
    }
}
