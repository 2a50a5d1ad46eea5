// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections of one transfer that share the law of their path.

use crate::support::{Table, outcome};

/// 20 Mbit/s and 20 ms, of which the last `duration - from` seconds are measured.
fn text((from, duration): (u32, u32), flows: &str) -> String {
    format!(
        "duration = \"{duration}s\"\nmeasure_from = \"{from}s\"\n[bottleneck]\nrate = \"20mbit\"\nrtt = \"20ms\"\nbuffer = \"1bdp\"\n{flows}"
    )
}

fn transfer(law: &str, source: &str) -> String {
    format!("[[flow]]\nname = \"it\"\ncc = \"{law}\"\nsource = \"connections:{source}\"\nstart = \"1s\"\n")
}

const CUBIC: &str = "[[flow]]\nname = \"other\"\ncc = \"cubic\"\n";

/// A program's short connections on an idle link take about what they take without Lowtide.
#[test]
fn short_connections_on_an_idle_link_are_as_fast_as_ordinary_ones() {
    let mut table = Table::default();
    for source in [
        "size=60kB,count=9,parallel=9",
        "size=20kB,count=20",
        "size=50kB,count=60,parallel=4",
        "size=50kB,count=60,parallel=4,think=200ms",
        "size=20kB,count=200,rate=50",
    ] {
        let seconds = |law: &str| {
            let outcome = outcome(&text((0, 120), &transfer(law, source)));
            outcome.flows[0].finished_s.unwrap_or(f64::INFINITY) - 1.0
        };
        let cubic = seconds("cubic");
        for law in ["tide"] {
            table.row(&format!("{law}, {source}: seconds, CUBIC {cubic:.2}"), seconds(law), 0.0..=1.15 * cubic + 0.5);
        }
    }
    table.check();
}

/// Long ones fill the link together, and leave it to a flow that is there.
#[test]
fn long_connections_together_use_an_idle_link_and_leave_one_that_is_used() {
    let mut table = Table::default();
    let alone = outcome(&text((20, 60), CUBIC)).flows[0].mean_bps;
    for count in [1, 8, 32] {
        for law in ["tide"] {
            let it = transfer(law, &format!("size=1GB,count={count},parallel={count}"));
            let idle = outcome(&text((20, 60), &it)).bottlenecks[0].utilisation;
            table.row(&format!("{law}, {count} connections: used of an idle link"), idle, 0.95..=1.001);
            let beside = outcome(&text((20, 60), &format!("{CUBIC}{it}")));
            table.row(
                &format!("{law}, {count} connections: CUBIC keeps"),
                beside.flows[0].mean_bps / alone,
                0.97..=1.02,
            );
        }
    }
    table.check();
}
