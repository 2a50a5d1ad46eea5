// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long packets and their ACKs are under way, where that changes.

use crate::support::{Packets, Table, scenario};
use lowtide_sim::{observe::PacketEvent, run};

/// When each packet of the flow left its host and how long it was under way, in seconds: those of the sender, and the
/// ACKs. Nothing is lost and all keep their order.
fn under_way(link: &str, flow: &str) -> [Vec<(f64, f64)>; 2] {
    let text = format!(
        "duration = \"20s\"\n[[bottleneck]]\nname = \"a\"\nrate = \"100mbit\"\nrtt = \"20ms\"\n{link}\n\
         [[flow]]\nname = \"f\"\ncc = \"reno\"\nsource = \"cbr:bytes=1kB,interval=20ms\"\ntcp = {{ ack_every = 1 }}\n{flow}\n"
    );
    let mut packets = Packets::default();
    let outcome = run(&scenario(&text), &mut packets);
    assert_eq!(outcome.bottlenecks[0].drops, 0);
    [true, false].map(|from_sender| {
        let times = |leaving| {
            let of = move |it: &&PacketEvent| it.from_sender == from_sender && it.leaving == leaving;
            packets.0.iter().filter(of).map(|it| it.now.as_nanos() as f64 / 1e9)
        };
        times(true).zip(times(false)).map(|(left, arrived)| (left, arrived - left)).collect()
    })
}

/// The least, the mean and the greatest time under way, in ms, of those that left in this span.
fn within(packets: &[(f64, f64)], from: f64, to: f64) -> [f64; 3] {
    let times: Vec<f64> = packets.iter().filter(|it| (from..to).contains(&it.0)).map(|it| 1e3 * it.1).collect();
    assert!(times.len() > 100, "{} packets", times.len());
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    [least, times.iter().sum::<f64>() / times.len() as f64, times.iter().copied().fold(0.0, f64::max)]
}

/// A round trip of 20 ms is 200 ms from 5 s on and 60 ms from 10 s on. Half of it is that of either way, and what a
/// flow has more than its bottleneck stays.
#[test]
fn both_ways_follow_the_schedule() {
    const SCHEDULE: &str = "rtt_schedule = [{ at = \"5s\", rtt = \"200ms\" }, { at = \"10s\", rtt = \"60ms\" }]";
    let reverse = "[reverse]\nrate = \"100mbit\"\nrtt = \"20ms\"";
    let mut table = Table::default();
    for (name, link, flow, more) in [
        ("without a reverse bottleneck", SCHEDULE.to_owned(), "", 0.0),
        ("with one", format!("{SCHEDULE}\n{reverse}"), "", 0.0),
        ("against the direction", SCHEDULE.to_owned(), "direction = \"reverse\"", 0.0),
        ("farther away", SCHEDULE.to_owned(), "rtt = \"50ms\"", 15.0),
    ] {
        for (way, packets) in ["there", "back"].iter().zip(under_way(&link, flow)) {
            for (from, to, delay) in [(0.0, 4.9, 10.0), (5.0, 9.8, 100.0), (10.1, 20.0, 30.0)] {
                let [least, _, greatest] = within(&packets, from, to);
                let delay = delay + more;
                table.row(&format!("{name}, {way}, from {from} s, least"), least, delay - 0.001..=delay + 0.5);
                table.row(&format!("{name}, {way}, from {from} s, greatest"), greatest, delay - 0.001..=delay + 0.5);
            }
            // what left soon after the fall waits for what was under way
            let arrivals: Vec<f64> = packets.iter().map(|it| it.0 + it.1).collect();
            assert!(arrivals.is_sorted(), "{name}, {way}");
            let waits = |it: &(f64, f64)| (10.0..10.07).contains(&it.0) && 1e3 * it.1 > 30.5 + more;
            assert!(packets.iter().any(waits), "{name}, {way}");
        }
    }
    table.check();
}

/// The distribution is that of `jitter` on the way there, which is the emulator's link: evenly from nothing to 5 ms.
#[test]
fn the_way_back_jitters_as_the_way_there_does() {
    let mut table = Table::default();
    for (key, jittered) in [("jitter", 0), ("reverse_jitter", 1)] {
        let ways = under_way(&format!("{key} = \"5ms\""), "");
        let [least, mean, greatest] = within(&ways[jittered], 0.0, 19.0);
        table.row(&format!("{key}: least"), least, 9.999..=10.2);
        // five standard errors of 900 packets
        table.row(&format!("{key}: mean"), mean, 12.25..=12.85);
        table.row(&format!("{key}: greatest"), greatest, 14.8..=15.1);
        let [least, _, greatest] = within(&ways[1 - jittered], 0.0, 19.0);
        table.row(&format!("{key}: the other way, least"), least, 9.999..=10.2);
        table.row(&format!("{key}: the other way, greatest"), greatest, 9.999..=10.2);
    }
    table.check();
}
