// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recovery from losses, and from what looks like them.

use super::{
    path::{Fate, MSS, Path, at, millis, settings},
    spy::{Call, Spy, fixed},
};
use lowtide_cc::{EcnUse, Signal};

/// A transfer of so many segments under Reno.
fn transfer(segments: u64) -> Path {
    Path::new(&settings()).write(at(0), segments).close(at(0))
}

/// Retransmits, reductions, timeouts, probes, recoveries taken back, milliseconds until all is acknowledged.
fn outcome(mut path: Path) -> [u64; 6] {
    let finished = path.finish().as_nanos() / 1_000_000;
    let counts = path.sender.statistics();
    [counts.retransmits, counts.reductions, counts.timeouts, counts.probes, counts.spurious, finished]
}

#[test]
fn scenarios() {
    let late = |number: u64, by: u64| {
        let mut done = false;
        move |_, segment: &crate::tcp::Segment| {
            let hit = !done && !segment.syn && segment.seq == number * MSS;
            done |= hit;
            if hit { Fate::Late(millis(by)) } else { Fate::Pass }
        }
    };
    let spike = |from: u64, to: u64| {
        move |now, _: &_| if now >= at(from) && now < at(to) { Fate::Hold(at(to)) } else { Fate::Pass }
    };
    let every_ack = |n: u64| {
        let mut count = 0;
        move |_, ack: &crate::tcp::Acknowledgement| {
            count += u64::from(!ack.syn);
            if ack.syn || count.is_multiple_of(n) { Fate::Pass } else { Fate::Drop }
        }
    };
    let twice_lost = |number: u64| {
        let mut left = 2;
        move |_, segment: &crate::tcp::Segment| {
            let hit = left > 0 && !segment.syn && segment.seq == number * MSS;
            left -= u64::from(hit);
            if hit { Fate::Drop } else { Fate::Pass }
        }
    };
    #[rustfmt::skip]
    let table: Vec<(&str, Path, [u64; 6])> = vec![
        // what happens                                                     rtx red rto tlp undo  ms
        ("nothing",               transfer(300),                           [0, 0, 0, 0, 0, 433]),
        ("one loss",              transfer(300).dropping([100]),           [1, 1, 0, 0, 0, 433]),
        ("a burst of losses",     transfer(300).dropping(100..130),        [30, 1, 0, 0, 0, 433]),
        ("every second",          transfer(300).dropping((100..160).step_by(2)), [30, 1, 0, 0, 0, 433]),
        ("the last segment",      transfer(300).dropping([299]),           [1, 0, 0, 1, 0, 823]),
        ("the last three",        transfer(300).dropping(297..300),        [3, 1, 0, 1, 0, 852]),
        ("the SYN twice",         transfer(10).faults({ let mut n = 0; move |_, _| { n += 1; if n <= 2 { Fate::Drop } else { Fate::Pass } } }), [0, 0, 2, 0, 0, 3090]),
        ("a retransmission",      transfer(300).faults(twice_lost(100)),   [2, 1, 0, 0, 0, 433]),
        ("a whole window",        transfer(10).dropping(0..10),            [10, 1, 0, 1, 0, 326]),
        ("one late by 5 ms",      transfer(300).faults(late(100, 5)),      [1, 1, 0, 0, 1, 434]),
        ("one late by 60 ms",     transfer(300).faults(late(100, 60)),     [1, 1, 0, 0, 1, 434]),
        ("three ACKs in four",    transfer(300).ack_faults(every_ack(4)),  [0, 0, 0, 0, 0, 450]),
        ("seven ACKs in eight",   transfer(300).ack_faults(every_ack(8)), [4, 1, 3, 1, 0, 3046]),
        ("half a second's delay", transfer(300).faults(spike(100, 600)),   [1, 1, 1, 1, 1, 911]),
        ("silence for 2 s",       transfer(300).faults(|now, _| if now > at(100) && now < at(2100) { Fate::Drop } else { Fate::Pass }), [44, 1, 4, 1, 0, 4590]),
    ];
    let wrong: Vec<String> = table
        .into_iter()
        .map(|(name, path, expected)| (name, outcome(path), expected))
        .filter(|(_, found, expected)| found != expected)
        .map(|(name, found, expected)| format!("{name}: {found:?}, expected {expected:?}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The calls of the law, without those for sent packets and ACKs.
fn events(calls: &super::spy::Calls) -> Vec<Call> {
    let calls = calls.lock().expect("one thread");
    calls.iter().filter(|call| !matches!(call, Call::Sent | Call::Ack(_) | Call::Lost(_))).cloned().collect()
}

#[test]
fn a_loss_is_one_episode_and_prr_walks_to_its_end() {
    let (path, calls) = fixed(20.0);
    let mut path = path.write(at(0), 400).dropping([100, 105, 109]);
    path.run(at(450));
    let events = events(&calls);
    let [Call::Congestion(loss), Call::Recovered(recovered)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((loss.signal, loss.una, loss.nxt), (Signal::Loss, 100 * MSS, 122 * MSS));
    assert_eq!(loss.in_flight, 20 * MSS, "before the third SACK");
    assert!(recovered.una >= loss.nxt);
    let calls = calls.lock().expect("one thread");
    let episode = calls.iter().filter(|call| match call {
        Call::Ack(ack) => ack.now > loss.now && ack.now < recovered.now,
        _ => false,
    });
    assert!(episode.clone().all(|call| matches!(call, Call::Ack(ack) if ack.reducing)), "up to the ACK that ends it");
    let in_flight: Vec<u64> =
        episode.map(|call| if let Call::Ack(ack) = call { ack.in_flight / MSS } else { 0 }).collect();
    assert!(in_flight.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{in_flight:?}");
    assert_eq!(path.sender.cwnd(), 10 * MSS);
    assert_eq!(path.sender.in_flight(), 10 * MSS, "neither a burst nor a pause is left");
}

#[test]
fn a_needless_timeout_gives_the_window_back() {
    let (path, calls) = fixed(20.0);
    let mut path = path
        .write(at(0), 400)
        .close(at(0))
        .faults(|now, _| if now >= at(165) && now < at(167) { Fate::Hold(at(900)) } else { Fate::Pass });
    path.finish();
    let events = events(&calls);
    assert!(
        matches!(&events[..], [Call::Congestion(loss), Call::Spurious, Call::Recovered(_)] if loss.signal == Signal::Timeout),
        "{events:?}"
    );
    assert_eq!(path.sender.cwnd(), 20 * MSS);
    assert!(path.retransmits() <= 2, "what was taken for lost is not sent again: {}", path.retransmits());
}

#[test]
fn repeated_timeouts_reduce_once_and_back_off() {
    let (path, calls) = fixed(20.0);
    let silent = |now| now >= at(150) && now < at(5000);
    let mut path = path.write(at(0), 400).close(at(0));
    path = path.faults(move |now, _| if silent(now) { Fate::Drop } else { Fate::Pass });
    path.finish();
    assert!(matches!(&events(&calls)[..], [Call::Congestion(_), Call::Recovered(_)]), "{:?}", events(&calls));
    assert_eq!(path.sender.statistics().timeouts, 5, "0.25, 0.5, 1, 2 and 4 seconds");
}

#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window() {
    let (path, calls) = fixed(20.0);
    let mut path = path.write(at(0), 10).write(at(1000), 10).close(at(1000)).dropping([9]);
    path.finish();
    assert_eq!((path.sender.statistics().probes, path.sender.statistics().timeouts), (1, 0));
    let events = events(&calls);
    assert!(
        matches!(&events[..], [Call::Restart(_), Call::Congestion(loss), Call::Recovered(_)] if loss.signal == Signal::Loss),
        "{events:?}"
    );
}

#[test]
fn steady_reordering_is_learnt() {
    // By less than a quarter of the round trip, and by more, which only the DSACKs can tell.
    for by in [8, 25] {
        let (path, _) = fixed(40.0);
        let mut path = path
            .write(at(0), 3000)
            .close(at(0))
            .faults(move |_, segment| if (segment.seq / MSS) % 20 == 7 { Fate::Late(millis(by)) } else { Fate::Pass });
        path.finish();
        let counts = path.sender.statistics();
        assert!(counts.retransmits <= 8, "{by} ms: {counts:?}");
        assert_eq!((counts.reductions, counts.timeouts), (counts.spurious, 0), "{by} ms: what was wrong is taken back");
    }
}

#[test]
fn the_timer_starts_anew_with_each_retransmission_of_the_first_segment() {
    // A round trip of 300 ms: the second retransmission is answered 600 ms after the last progress.
    let (path, _) = fixed(20.0);
    let mut left = 2;
    let mut path = path.write(at(0), 400).close(at(0)).faults(move |_, segment| {
        let hit = left > 0 && segment.seq == 100 * MSS;
        left -= u64::from(hit);
        if hit { Fate::Drop } else { Fate::Pass }
    });
    path.delay = millis(150);
    path.finish();
    assert_eq!((path.retransmits(), path.sender.statistics().timeouts), (2, 0));
}

#[test]
fn a_timeout_sends_even_if_the_window_is_full() {
    // The lone segment of 1000 ms is lost, and its probe; what was sent just before the timeout is still in flight.
    let (path, _) = fixed(20.0);
    let mut path = path.write(at(0), 10).write(at(1000), 1).write(at(1480), 2).close(at(1480));
    path = path.faults(|now, _| if now >= at(1000) && now < at(1400) { Fate::Drop } else { Fate::Pass });
    path.finish();
    let copies = path.sent.iter().filter(|(segment, _)| segment.seq == 10 * MSS && !segment.syn);
    let copies: Vec<u64> = copies.map(|(segment, _)| segment.sent.as_nanos() / 1_000_000).collect();
    assert!(matches!(copies[..], [1000, 1200..1300, 1480..1500]), "{copies:?}");
    assert_eq!(path.sender.statistics().timeouts, 1);
}

#[test]
fn no_sample_is_taken_of_what_was_sent_twice() {
    let rtts = |path: Path, calls: super::spy::Calls| {
        let mut path = path.write(at(0), 400).close(at(0));
        path.finish();
        let calls = calls.lock().expect("one thread");
        calls.iter().filter_map(|call| if let Call::Ack(ack) = call { ack.rtt } else { None }).collect::<Vec<_>>()
    };
    // The second retransmission is acknowledged together with what, the SACKs being lost, had arrived long before it.
    let (path, calls) = fixed(20.0);
    let path = path.dropping([100, 100]).ack_faults(|_, ack| {
        if ack.ack == 100 * MSS && ack.sack.as_slice().first().is_some_and(|block| block.1 > 104 * MSS) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    assert!(rtts(path, calls).into_iter().all(|rtt| rtt <= millis(60)), "the queue holds up to 20 ms");
    // The original arrives after the retransmission has been sent, and is SACKed.
    let (path, calls) = fixed(20.0);
    let mut left = 2;
    let path = path.faults(move |_, segment| match segment.seq / MSS {
        100 if left > 0 => {
            left -= 1;
            Fate::Drop
        }
        103 => Fate::Late(millis(30)),
        _ => Fate::Pass,
    });
    assert!(rtts(path, calls).into_iter().all(|rtt| rtt >= millis(40)), "the base round-trip time");
}

#[test]
fn one_late_segment_does_not_acquit_a_lost_one() {
    let (path, _) = fixed(20.0);
    let mut first = true;
    let mut path = path.write(at(0), 400).close(at(0)).faults(move |_, segment| match segment.seq / MSS {
        100 if std::mem::take(&mut first) => Fate::Late(millis(30)),
        105 if segment.sent < at(280) => Fate::Drop,
        _ => Fate::Pass,
    });
    path.finish();
    let counts = path.sender.statistics();
    assert_eq!((counts.retransmits, counts.reductions, counts.spurious), (2, 1, 0));
}

#[test]
fn duplicates_of_all_retransmissions_take_the_timeout_back() {
    let (path, calls) = fixed(4.0);
    // The ACKs are lost, not the data: the retransmission arrives as a duplicate, and its DSACK says so.
    let mut path = path
        .write(at(0), 4)
        .write(at(3000), 4)
        .close(at(3000))
        .ack_faults(|now, ack| if !ack.syn && now < at(300) { Fate::Drop } else { Fate::Pass });
    path.finish();
    assert!(path.receiver.duplicates() > 0);
    let told = events(&calls);
    let spurious = told.iter().filter(|call| matches!(call, Call::Spurious)).count() as u64;
    assert_eq!(spurious, path.sender.statistics().reductions, "{told:?}");
    assert_eq!(path.sender.cwnd(), 4 * MSS);
}

#[test]
fn reno_keeps_a_bottleneck_with_one_bdp_of_buffer_busy() {
    let mut path = Path::new(&settings());
    path.buffer = millis(40);
    path.sender.write(u64::MAX);
    path.run(at(60_000));
    let counts = path.sender.statistics();
    assert!(path.receiver.received() > 58_000 * MSS, "{} of 60,000 segments", path.receiver.received() / MSS);
    assert_eq!((counts.timeouts, counts.spurious), (0, 0));
    // From 40 to 80 segments by one each round trip of 40 to 80 ms: a loss every 2.4 s.
    assert!((20..=30).contains(&counts.reductions), "{counts:?}");
    // Slow start overshoots once, to twice the 80 segments that fit; afterwards a loss is of one or two.
    assert!(counts.retransmits <= 90 + 2 * counts.reductions, "{counts:?}");
}

#[test]
fn what_flies_again_after_a_needless_timeout_has_a_timer() {
    // Less than a segment of window: what was taken for lost waits for its turn, nothing is in flight, and the timer is
    // off, when a DSACK shows that the retransmissions were needless. `Sender::check` holds.
    let (spy, _) = super::spy::Spy::new(0.3);
    let path = spy.path(&crate::scenario::Tcp { pacing: true, ..settings() }, lowtide_cc::EcnUse::Off);
    let (mut segments, mut acks) = (0, 0);
    let mut path = path
        .write_bytes(at(0), 3_001)
        .write_bytes(at(443), 17_740)
        .write_bytes(at(443), 22_261)
        .close(at(2_000))
        .faults(move |_, _| {
            segments += 1;
            match segments {
                ..=18 => Fate::Twice(millis(0)),
                24..=51 => Fate::Late(std::time::Duration::from_micros(241_001)),
                53 => Fate::Drop,
                _ => Fate::Pass,
            }
        })
        .ack_faults(move |_, _| {
            acks += 1;
            if (38..=45).contains(&acks) { Fate::Drop } else { Fate::Pass }
        });
    path.finish();
    assert!(path.sender.statistics().spurious > 0);
}

#[test]
fn a_law_that_steers_is_left_alone() {
    let (mut spy, _) = super::spy::Spy::new(20.0);
    spy.steers = true;
    let mut path = spy.path(&settings(), lowtide_cc::EcnUse::Off).write(at(0), 400).dropping([100]);
    path.run(at(300));
    assert!(path.sender.is_recovering());
    assert_eq!(path.sender.cwnd(), 10 * MSS, "at once");
}

#[test]
fn each_lost_segment_is_told_before_the_ack_that_tells_it() {
    let (path, calls) = fixed(20.0);
    let mut path = path.write(at(0), 400).dropping([100, 105, 109]);
    path.run(at(450));
    let calls = calls.lock().expect("one thread");
    let mut untold = 0;
    let mut lost = Vec::new();
    for call in calls.iter() {
        match call {
            Call::Lost(it) => {
                untold += it.bytes;
                lost.push(*it);
            }
            Call::Ack(ack) => assert_eq!(ack.lost, std::mem::take(&mut untold), "of this ACK"),
            Call::Congestion(_) => assert!(!lost.is_empty(), "the losses come first"),
            _ => {}
        }
    }
    assert_eq!(lost.iter().map(|it| it.bytes).collect::<Vec<_>>(), [MSS; 3]);
    assert_eq!(lost.iter().map(|it| it.lost_since_send).collect::<Vec<_>>(), [MSS, 2 * MSS, 3 * MSS]);
    assert!(lost.iter().all(|it| it.in_flight_at_send == 20 * MSS), "all were sent into a full window: {lost:?}");
}

#[test]
fn an_episode_ends_before_the_law_hears_of_the_ack_that_ends_it() {
    let (mut spy, calls) = Spy::new(20.0);
    spy.reduces_at = Some(100 * MSS);
    let mut path = spy.path(&settings(), EcnUse::Off).write(at(0), 400).close(at(0));
    path.finish();
    let calls = calls.lock().expect("one thread");
    let end = calls.iter().position(|call| matches!(call, Call::Recovered(_))).expect("it ends");
    let Call::Recovered(recovered) = &calls[end] else { unreachable!("just found") };
    let next = calls[end..].iter().find_map(|call| if let Call::Ack(ack) = call { Some(ack) } else { None });
    let next = next.expect("there is an ACK");
    assert_eq!((next.una, next.reducing), (recovered.una, false));
    assert_eq!(recovered.una, 120 * MSS, "strictly above the 119 segments that had been sent when it began");
}

#[test]
fn a_reduction_with_nothing_outstanding_is_over_at_once() {
    let (mut spy, calls) = Spy::new(20.0);
    spy.reduces_at = Some(MSS);
    let mut path = spy.path(&settings(), EcnUse::Off).write(at(0), 1);
    path.run(at(200));
    assert!(!path.sender.is_recovering());
    assert_eq!(path.sender.statistics().reductions, 1);
    assert!(matches!(&events(&calls)[..], [Call::Recovered(_)]), "{:?}", events(&calls));
}
