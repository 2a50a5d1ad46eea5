// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit Congestion Notification, classic and accurate, and reductions that the law makes by itself.

use super::{
    path::{Fate, MSS, Path, at, settings},
    spy::{Call, Calls, Spy},
};
use lowtide_cc::{Ack, Congestion, EcnUse, Signal};
use lowtide_net::{Ecn, Time};

fn path(ecn: EcnUse) -> (Path, Calls) {
    let (spy, calls) = Spy::new(20.0);
    (spy.path(&settings(), ecn).write(at(0), 400).close(at(0)), calls)
}

/// Marks every segment that leaves within this span.
fn marking(from: Time, to: Time) -> impl FnMut(Time, &super::super::Segment) -> Fate {
    move |now, _| if now >= from && now < to { Fate::Mark } else { Fate::Pass }
}

fn acks(calls: &Calls) -> Vec<Ack> {
    let calls = calls.lock().expect("one thread");
    calls.iter().filter_map(|call| if let Call::Ack(ack) = call { Some(*ack) } else { None }).collect()
}

fn congestion(calls: &Calls) -> Vec<Congestion> {
    let calls = calls.lock().expect("one thread");
    calls.iter().filter_map(|call| if let Call::Congestion(it) = call { Some(*it) } else { None }).collect()
}

#[test]
fn classic_marks_count_once_in_a_round_trip_and_cwr_stops_them() {
    let (path, calls) = path(EcnUse::Classic);
    let mut path = path.faults(marking(at(100), at(130)));
    path.finish();
    let told = congestion(&calls);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].signal, Signal::Ecn);
    let cwr: Vec<u64> = path.sent.iter().filter(|(segment, _)| segment.cwr).map(|(segment, _)| segment.seq).collect();
    assert_eq!(cwr, [told[0].nxt], "on the first new segment");
    let first = path.acks.iter().position(|ack| ack.ece).expect("a mark was echoed");
    let last = path.acks.iter().rposition(|ack| ack.ece).expect("a mark was echoed");
    assert!(path.acks[first..=last].iter().all(|ack| ack.ece), "until CWR arrives");
    assert!(path.acks[last].ack <= told[0].nxt, "and no longer");
    assert!(acks(&calls).iter().all(|ack| ack.marked == 0 || ack.marked == ack.packets));
}

#[test]
fn the_echo_of_an_old_mark_is_no_new_one() {
    // The stream pauses, so that CWR cannot be sent before the round trip is over.
    let (spy, calls) = Spy::new(20.0);
    let path = spy.path(&settings(), EcnUse::Classic).write(at(0), 10).write(at(500), 10).close(at(500));
    let mut path = path.faults(marking(at(0), at(100)));
    path.finish();
    assert_eq!(congestion(&calls).len(), 1, "{:?}", congestion(&calls));
    assert!(path.acks.last().is_some_and(|ack| !ack.ece));
}

#[test]
fn lasting_classic_marks_reduce_again_in_the_next_round_trip() {
    let (path, calls) = path(EcnUse::Classic);
    let mut path = path.faults(marking(at(100), at(250)));
    path.finish();
    let told = congestion(&calls);
    assert!((3..=5).contains(&told.len()), "{} in 150 ms", told.len());
    assert!(told.windows(2).all(|pair| pair[1].una > pair[0].nxt), "never twice for the same data");
}

#[test]
fn accurate_marks_are_counted_one_by_one() {
    for (ecn, field) in [(EcnUse::Accurate, Ecn::Ect0), (EcnUse::L4s, Ecn::Ect1)] {
        let (path, calls) = path(ecn);
        let mut path = path.faults(move |_, segment| {
            let marked = !segment.syn && (segment.seq / MSS).is_multiple_of(7);
            if marked { Fate::Mark } else { Fate::Pass }
        });
        path.finish();
        assert!(path.sent.iter().all(|(_, sent)| *sent == field));
        let acks = acks(&calls);
        assert_eq!(acks.iter().map(|ack| ack.marked).sum::<u32>(), 58, "0, 7, … 399");
        assert!(acks.iter().all(|ack| ack.marked <= ack.packets));
        assert!(acks.iter().all(|ack| !ack.reducing || ack.now > congestion(&calls)[0].now));
        let marked = acks.iter().filter_map(|ack| ack.rate).map(|rate| rate.marked_since_send).max();
        assert_eq!(marked, Some(3 * MSS), "of twenty in flight");
        assert!(congestion(&calls).iter().all(|congestion| congestion.signal == Signal::Ecn));
        assert_eq!(path.sender.statistics().marks, 58);
    }
}

#[test]
fn lost_acks_lose_no_marks() {
    let (path, calls) = path(EcnUse::Accurate);
    let mut count = 0;
    let mut path = path.faults(marking(at(100), at(200))).ack_faults(move |_, ack| {
        count += 1;
        if ack.syn || count % 3 == 0 { Fate::Pass } else { Fate::Drop }
    });
    path.finish();
    let marked = path.acks.last().expect("there are ACKs").ce_packets;
    assert!(marked > 20);
    assert_eq!(acks(&calls).iter().map(|ack| u64::from(ack.marked)).sum::<u64>(), marked);
}

#[test]
fn without_ecn_nothing_can_be_marked() {
    let (path, calls) = path(EcnUse::Off);
    let mut path = path.faults(marking(at(0), at(1000)));
    path.finish();
    assert!(path.sent.iter().all(|(_, ecn)| *ecn == Ecn::NotEct));
    assert!(congestion(&calls).is_empty());
}

#[test]
fn what_classic_ecn_sends_again_is_not_ect() {
    let (path, _) = path(EcnUse::Classic);
    let mut path = path.dropping([100]);
    path.finish();
    let copies: Vec<Ecn> =
        path.sent.iter().filter(|(segment, _)| segment.seq == 100 * MSS).map(|sent| sent.1).collect();
    assert_eq!(copies, [Ecn::Ect0, Ecn::NotEct]);
    assert_eq!(path.sent[0].1, Ecn::NotEct, "nor is the SYN");
}

#[test]
fn a_loss_within_a_marked_round_trip_is_told_but_a_mark_within_recovery_is_not() {
    let (path, calls) = path(EcnUse::Accurate);
    let mut dropped = false;
    let mut path = path.faults(move |now, segment| {
        if segment.seq == 125 * MSS && !dropped {
            dropped = true;
            return Fate::Drop;
        }
        if now >= at(160) && now < at(200) { Fate::Mark } else { Fate::Pass }
    });
    path.finish();
    let told: Vec<Signal> = congestion(&calls).iter().map(|congestion| congestion.signal).collect();
    assert_eq!(told[..2], [Signal::Ecn, Signal::Loss], "{told:?}");
    let calls = calls.lock().expect("one thread");
    let loss = calls.iter().position(|call| matches!(call, Call::Congestion(it) if it.signal == Signal::Loss));
    let next = calls[loss.expect("a loss") + 1..]
        .iter()
        .find(|call| !matches!(call, Call::Ack(_) | Call::Lost(_) | Call::Sent));
    assert!(matches!(next, Some(Call::Recovered(_))), "{next:?}");
}

#[test]
fn a_law_that_reduces_by_itself_is_walked_down() {
    let (mut spy, calls) = Spy::new(20.0);
    spy.reduces_at = Some(100 * MSS);
    let mut path = spy.path(&settings(), EcnUse::Off).write(at(0), 400).close(at(0));
    path.finish();
    assert!(congestion(&calls).is_empty(), "it knows");
    assert_eq!(path.sender.statistics().reductions, 1);
    let reducing: Vec<u64> = acks(&calls).iter().filter(|ack| ack.reducing).map(|ack| ack.in_flight / MSS).collect();
    assert_eq!(reducing.len(), 19, "a round trip without the ACK that ends it");
    assert!(reducing.is_sorted_by(|a, b| a >= b), "{reducing:?}");
    assert_eq!(path.sender.cwnd(), 10 * MSS);
}
