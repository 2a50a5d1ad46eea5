// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections of one transfer that share the law of their path: the reference, and the code that runs in the kernel.

use crate::support::{Packets, Table, outcome, scenario};
use lowtide_sim::{Outcome, run};
use std::collections::BTreeMap;

/// 20 Mbit/s and 20 ms, measured from one second to the other: the middle one of three seeds.
fn middle((from, duration): (u32, u32), buffer: &str, flows: &str, value: impl Fn(&Outcome) -> f64) -> f64 {
    let mut values = [1, 2, 3].map(|seed| {
        value(&outcome(&format!(
            "seed = {seed}\nduration = \"{duration}s\"\nmeasure_from = \"{from}s\"\n\
             [bottleneck]\nrate = \"20mbit\"\nrtt = \"20ms\"\nbuffer = \"{buffer}\"\n{flows}"
        )))
    });
    values.sort_by(f64::total_cmp);
    values[1]
}

fn transfer(law: &str, source: &str) -> String {
    format!("[[flow]]\nname = \"it\"\ncc = \"{law}\"\nsource = \"connections:{source}\"\nstart = \"1s\"\n")
}

/// Seconds that a transfer takes on an idle link.
fn seconds(law: &str, buffer: &str, source: &str) -> f64 {
    middle((0, 120), buffer, &transfer(law, source), |outcome| {
        outcome.flows[0].finished_s.unwrap_or(f64::INFINITY) - 1.0
    })
}

const LAWS: [&str; 2] = ["tide", "tide:port=kernel"];
const CUBIC: &str = "[[flow]]\nname = \"other\"\ncc = \"cubic\"\n";

/// A program's short connections on an idle link take about what they take without Lowtide: more initial windows at
/// once than the buffer holds, too, and workers who always have something new, so that the law's first ramp is that of
/// short connections.
#[test]
fn short_connections_on_an_idle_link_are_about_as_fast_as_ordinary_ones() {
    let mut table = Table::default();
    for (buffer, source) in [
        ("1bdp", "size=60kB,count=9,parallel=9"),
        ("2bdp", "size=60kB,count=9,parallel=9"),
        ("2bdp", "size=50kB,count=60,parallel=4"),
        ("2bdp", "size=20kB,count=20"),
        ("2bdp", "size=50kB,count=60,parallel=4,think=200ms"),
        ("2bdp", "size=20kB,count=200,rate=50"),
    ] {
        let cubic = seconds("cubic", buffer, source);
        for law in LAWS {
            let name = format!("{law}, {buffer}, {source}: seconds, CUBIC {cubic:.2}");
            table.row(&name, seconds(law, buffer, source), 0.0..=1.15 * cubic + 0.5);
        }
    }
    table.check();
}

/// Long ones fill the link together, and leave it to a flow that is there.
#[test]
fn long_connections_together_use_an_idle_link_and_leave_one_that_is_used() {
    let mut table = Table::default();
    let kept = |outcome: &Outcome| outcome.flows[0].mean_bps;
    let alone = middle((20, 60), "1bdp", CUBIC, kept);
    for count in [1, 8, 32] {
        for law in LAWS {
            let it = transfer(law, &format!("size=1GB,count={count},parallel={count}"));
            let used = middle((20, 60), "1bdp", &it, |outcome| outcome.bottlenecks[0].utilisation);
            table.row(&format!("{law}, {count} connections: used of an idle link"), used, 0.92..=1.001);
            let beside = middle((20, 60), "1bdp", &format!("{CUBIC}{it}"), kept);
            table.row(&format!("{law}, {count} connections: CUBIC keeps"), beside / alone, 0.97..=1.02);
        }
    }
    table.check();
}

/// Programs give up a connection without progress for 15 s. Beside another flow each of 32 sends a segment within that
/// time: the slowest pace is one in four seconds, and now and then one is lost.
#[test]
fn no_connection_stands_still_beside_another_flow() {
    let mut table = Table::default();
    for law in LAWS {
        let it = transfer(law, "size=1GB,count=32,parallel=32");
        let link = "[bottleneck]\nrate = \"20mbit\"\nrtt = \"20ms\"\n";
        let mut packets = Packets::default();
        run(&scenario(&format!("duration = \"60s\"\n{link}{CUBIC}{it}")), &mut packets);
        let mut latest = BTreeMap::new();
        let mut longest = 0.0_f64;
        let sent = packets.0.iter().filter(|it| it.flow == 1 && it.leaving && it.from_sender);
        for (connection, at) in sent.map(|it| (it.connection, it.now.as_nanos() as f64 / 1e9)) {
            longest = longest.max(at - latest.insert(connection, at).unwrap_or(1.0));
        }
        longest = latest.values().fold(longest, |longest, at| longest.max(60.0 - at));
        table.row(&format!("{law}: connections"), latest.len() as f64, 32.0..=32.0);
        table.row(&format!("{law}: the longest pause of one, seconds"), longest, 0.0..=15.0);
    }
    table.check();
}
