// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transfer over many connections: when it is done, how much is under way at a time, and its weight and its deadline.

use crate::support::{Packets, Samples, Table, outcome, scenario};
use lowtide_sim::{
    FlowOutcome,
    observe::{Content, FlowSample, Nobody},
    run,
};
use std::collections::BTreeSet;

/// 20 Mbit/s and 20 ms, a transfer from 1 s on, whatever is beside it, and more keys of the transfer.
fn text(source: &str, beside: &str, more: &str) -> String {
    format!(
        "duration = \"60s\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"20ms\"\n{beside}\
         [[flow]]\nname = \"it\"\nsource = \"connections:{source}\"\nstart = \"1s\"\n{more}\n"
    )
}

const CUBIC: &str = "cc = \"cubic\"\n";
const BESIDE: &str = "[[flow]]\nname = \"fg\"\ncc = \"cubic\"\n";

/// The most connections that were under way at a time.
fn most_at_once(flow: &FlowOutcome) -> usize {
    let at = |time: f64| {
        flow.transfers.iter().filter(|it| it.start_s <= time && time < it.start_s + it.completion_s).count()
    };
    flow.transfers.iter().map(|it| at(it.start_s)).max().unwrap_or_default()
}

/// On an idle link with a plain law each connection takes a handshake and so many rounds of slow start, and never waits
/// for another one.
#[test]
fn a_transfer_takes_as_long_as_its_connections_do() {
    let mut table = Table::default();
    for (source, at_once, seconds) in [
        // 60 kB are 42 segments: a handshake, then 10, 20 and 12 of them, a round trip each, and the link's time for
        // the last
        ("size=60kB,count=1", 1, 0.08..=0.1),
        ("size=60kB,count=10", 1, 0.8..=1.0),
        ("size=60kB,count=10,think=200ms", 1, 2.6..=2.8),
        // 540 kB take the link 0.22 s; nine initial windows are more than it holds, and a lost tail has a timeout
        ("size=60kB,count=9,parallel=9", 9, 0.24..=0.6),
        ("size=60kB,count=10,parallel=2,think=200ms", 2, 1.2..=1.4),
        ("size=20kB,count=200,rate=50", 4, 4.0..=4.1),
        // the first needs as long as the next nine take to come
        ("size=1MB,count=10,rate=20", 10, 4.1..=5.5),
    ] {
        let outcome = outcome(&text(source, "", CUBIC));
        let it = &outcome.flows[0];
        let bytes = it.transfers.iter().map(|part| part.bytes).sum::<u64>();
        let last = it.transfers.iter().map(|part| part.start_s + part.completion_s).fold(0.0, f64::max);
        assert_eq!(bytes, it.acked_bytes, "{source}");
        assert!(it.finished_s.is_some_and(|at| (at - last).abs() < 1e-9), "{source}: {:?}", it.finished_s);
        table.row(&format!("{source}: connections at a time"), most_at_once(it) as f64, 1.0..=f64::from(at_once));
        table.row(&format!("{source}: seconds"), last - 1.0, seconds);
    }
    table.check();
}

#[test]
fn every_part_has_a_connection_of_its_own() {
    let mut packets = Packets::default();
    let outcome = run(&scenario(&text("size=20kB,count=30,parallel=4", BESIDE, CUBIC)), &mut packets);
    let syns = packets.0.iter().filter(|it| it.flow == 1 && it.leaving);
    let syns = syns.filter(|it| matches!(it.content, Content::Segment(segment) if segment.syn));
    let connections: BTreeSet<u32> = syns.map(|it| it.connection).collect();
    assert_eq!(connections, (0..30).collect());
    assert_eq!((outcome.flows[1].transfers.len(), outcome.flows[1].acked_bytes), (30, 600_000));
    assert!(outcome.flows[1].transfers.iter().all(|part| part.bytes == 20_000));
}

#[test]
fn a_stop_ends_it_between_connections_and_in_one() {
    for (source, stop, finished, parts) in [
        ("size=20kB,count=9,think=5s", "3s", 3.0..=3.0, 1), // while it thinks
        ("size=5MB,count=9", "2s", 2.0..=2.2, 1),           // what is under way arrives
        ("size=20kB,count=99,rate=10", "1950ms", 1.9..=2.1, 10), // 1 s, 1.1 s, …, 1.9 s
    ] {
        let outcome = outcome(&text(source, "", &format!("{CUBIC}stop = \"{stop}\"")));
        let it = &outcome.flows[0];
        assert!(it.finished_s.is_some_and(|at| finished.contains(&at)), "{source}: {:?}", it.finished_s);
        assert_eq!(it.transfers.len(), parts, "{source}");
    }
}

/// Two at a time, without an end, beside one flow: two ordinary flows at weight 1, and at a small one little but their
/// slow starts.
#[test]
fn every_connection_has_the_weight_of_its_flow() {
    let mut table = Table::default();
    let rate = |law: &str, weight: f64| {
        let more = format!("cc = \"{law}\"\nweight = {weight}\n");
        let outcome = outcome(&text("size=2MB,count=1000,parallel=2", BESIDE, &more));
        outcome.flows[1].mean_bps / 1e6
    };
    for law in ["cdg", "cubic"] {
        table.row(&format!("{law} at 0.01, Mbit/s"), rate(law, 0.01), 0.0..=4.0);
        table.row(&format!("{law} at 1, Mbit/s"), rate(law, 1.0), 7.0..=15.0);
    }
    table.check();
}

/// The size is the sum, the weight moves, and every connection that is opened later gets what it is then.
#[test]
fn a_deadline_is_that_of_all_connections_together() {
    let mut table = Table::default();
    for (law, source, least) in [
        ("cdg", "size=1MB,count=24,parallel=4", 0.5),
        // slow start, which has no weight, is most of a short connection: the transfer is early
        ("cdg", "size=250kB,count=96,parallel=6,think=100ms", 0.3),
        ("cdg", "size=200kB,count=120,rate=6", 0.5), // and not before the last one has begun, after 20 s
        ("cubic", "size=1MB,count=24,parallel=2", 0.5),
        ("tide", "size=3MB,count=8,parallel=2", 0.5),
    ] {
        let mut highest = 0.0_f64;
        let mut samples = Samples(|sample: &FlowSample<'_>| {
            highest = sample.control.map_or(highest, |control| control.weight.max(highest));
        });
        let more = format!("cc = \"{law}\"\ndeadline = \"40s\"\n");
        let outcome = run(&scenario(&text(source, BESIDE, &more)), &mut samples);
        let it = &outcome.flows[1];
        let name = format!("{law}, {source}");
        let [due] = &it.deadlines[..] else { panic!("{name}: {:?}", it.deadlines) };
        assert_eq!((due.bytes, due.start_s, due.due_s), (24_000_000, 1.0, 41.0), "{name}");
        assert_eq!((due.finished_s, it.acked_bytes), (it.finished_s, 24_000_000), "{name}");
        // 24 MB in 40 s are a fourth of the link
        table.row(&format!("{name}: taken, of the time"), (due.finished_s.unwrap_or(99.0) - 1.0) / 40.0, least..=1.0);
        table.row(&format!("{name}: highest weight"), highest, 0.1..=1.0);
    }
    table.check();
}

#[test]
fn the_next_transfer_begins_after_the_gap_and_starts_afresh() {
    let more = "cc = \"cdg\"\ndeadline = \"10s\"\ngap = \"2s\"\nstop = \"30s\"\n";
    let outcome = run(&scenario(&text("size=500kB,count=10,parallel=3", "", more)), &mut Nobody);
    let deadlines = &outcome.flows[0].deadlines;
    assert!(deadlines.len() > 2, "{deadlines:?}");
    for pair in deadlines.windows(2) {
        let finished = pair[0].finished_s.expect("the next begins when it is complete");
        assert!((pair[1].start_s - finished - 2.0).abs() < 1e-9, "{pair:?}");
        assert_eq!((pair[0].bytes, pair[0].met), (5_000_000, Some(finished <= pair[0].due_s)), "{pair:?}");
    }
    let whole = deadlines.iter().filter(|it| it.finished_s.is_some()).count() as u64;
    assert!((whole * 5_000_000..(whole + 1) * 5_000_000).contains(&outcome.flows[0].acked_bytes));
    assert!(outcome.flows[0].finished_s.is_some_and(|at| (30.0..31.0).contains(&at)), "{outcome:?}");
}

/// How long a program with such connections takes on an idle link, the shortest time first; with each seed delays are
/// other ones.
fn seconds(starts: usize, law: &str, link: &str, source: &str) -> Vec<f64> {
    let mut seconds: Vec<f64> = (1..=starts)
        .map(|seed| {
            let text = format!(
                "seed = {seed}\nduration = \"60s\"\n[bottleneck]\n{link}\n\
                 [[flow]]\nname = \"it\"\ncc = \"{law}\"\nsource = \"connections:{source}\"\n"
            );
            outcome(&text).flows[0].finished_s.unwrap_or(60.0)
        })
        .collect();
    seconds.sort_unstable_by(f64::total_cmp);
    seconds
}

/// Programs with many short connections, of which the next one begins as one ends, on idle links without jitter: what
/// initial windows do to a queue is neither cross traffic nor noise, and a window that they leave unused is no loss.
#[test]
fn connections_one_after_the_other_are_about_as_fast_as_ordinary_ones() {
    const STARTS: usize = 21;
    let mut table = Table::default();
    for (link, source) in [
        ("rate = \"20mbit\"\nrtt = \"40ms\"", "size=50kB,count=60,parallel=4"),
        ("rate = \"5mbit\"\nrtt = \"30ms\"", "size=50kB,count=30,parallel=4"),
        ("rate = \"10mbit\"\nrtt = \"100ms\"", "size=50kB,count=60,parallel=8"),
    ] {
        let seconds = |law| seconds(STARTS, law, &format!("{link}\njitter = \"0.2ms\""), source)[STARTS / 2];
        let cubic = seconds("cubic");
        for law in ["tide", "tide:port=kernel"] {
            let name = format!("{law}, {link:?}, {source}: seconds, CUBIC {cubic:.2}, the median of {STARTS} starts");
            table.row(&name, seconds(law), 0.8 * cubic..=1.15 * cubic + 0.5);
        }
    }
    table.check();
}

/// Programs with several connections, on idle links with jitter in both directions; with each seed the delays are other
/// ones. Where probes find no spread by chance they measure again only after 16 s.
#[test]
fn no_program_on_a_link_with_jitter_is_stuck() {
    const STARTS: usize = 24;
    let mut table = Table::default();
    for (link, source, median, most) in [
        // CUBIC takes 2.9, 2.8 and 5.6 s
        ("rate = \"20mbit\"\nrtt = \"40ms\"", "size=50kB,count=60,parallel=4", 2.9..=4.5, 2.9..=6.5),
        ("rate = \"20mbit\"\nrtt = \"40ms\"", "size=20kB,count=20", 2.7..=3.5, 2.7..=5.0),
        ("rate = \"20mbit\"\nrtt = \"40ms\"", "size=781kB,count=16,parallel=16", 5.5..=8.5, 5.5..=12.0),
        // CUBIC takes 2.2 s
        ("rate = \"5mbit\"\nrtt = \"30ms\"", "size=12kB,count=60,parallel=4", 2.2..=4.2, 2.2..=6.0),
    ] {
        let jitter = "jitter = \"5ms\"\nreverse_jitter = \"5ms\"";
        let seconds = seconds(STARTS, "tide", &format!("{link}\n{jitter}"), source);
        let name = format!("{link:?}, {source}: seconds, ");
        table.row(&(name.clone() + "the median of 24 starts"), seconds[STARTS / 2], median);
        table.row(&(name.clone() + "nine of ten"), seconds[STARTS * 9 / 10], most);
        table.row(&(name + "the longest"), seconds[STARTS - 1], 2.0..=14.0);
    }
    table.check();
}
