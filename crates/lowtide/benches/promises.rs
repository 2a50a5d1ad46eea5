// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo bench -p lowtide --bench promises`: what `lowtide run` promises, and what it costs, as a table. Much longer
//! than the tests; root. Names after `--` choose the laws.

#[path = "../tests/support/promises.rs"]
mod promises;
#[path = "../tests/support/mod.rs"]
mod support;

use std::env;

use promises::{deadline, eight_to_one, far, impossible, share};
use support::LINK;

const LAWS: [&str; 3] = ["tide", "cdg", "cubic"];

fn main() {
    support::needs_kernel();
    let named: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let laws: Vec<&str> =
        LAWS.into_iter().filter(|law| named.is_empty() || named.iter().any(|name| name == law)).collect();
    println!("medians of three; {LINK} Mbit/s, 40 ms, one BDP; one CUBIC flow in the foreground");
    for &law in &laws {
        for connections in [1, 8, 32] {
            let far = far(LINK, law, connections, 24);
            println!(
                "far deadline, {law}, {connections} connections: foreground keeps {:.1} %, alone on the link {:.1} %",
                100.0 * far.kept,
                100.0 * far.idle
            );
        }
    }
    for &law in &laws {
        for control in ["pid", "mbc"] {
            if law == "tide" && control == "mbc" {
                continue; // there is no model of it
            }
            let run = deadline(LINK, law, control, 50);
            println!(
                "40 MB in 50 s, {law}, {control}: took {:.1} % of the time, foreground {:.1} % of the link, {} false alarms, the model \
                 ruled for {:.1} % of the time",
                100.0 * run.took,
                100.0 * run.foreground,
                run.false_alarms,
                100.0 * run.model
            );
        }
    }
    for &law in &laws {
        for actuator in match law {
            "tide" => &["native"][..],
            "cubic" => &["phantom"],
            _ => &["native", "phantom", "beta"],
        } {
            let shares = ["1", "0.3", "0.05", "0.004"].map(|weight| share(LINK, law, actuator, weight, 30));
            let shares = shares.map(|share| format!("{:.1} %", 100.0 * share)).join(", ");
            println!("{law} by {actuator} at w = 1, 0.3, 0.05 and 0.004: {shares} of the link");
        }
    }
    let run = impossible(LINK, 3, 50);
    println!(
        "twice a fair share: Mbit/s {:.1?}, of CUBIC in its place {:.1?}: took {:.1} %, announced at {:.1} % of the time",
        run.rates[0],
        run.rates[1],
        100.0 * run.of_one_flow,
        100.0 * run.announced
    );
    for law in laws {
        println!("eight connections at w = 1, {law}: {:.1} % of one", 100.0 * eight_to_one(LINK, law, 24));
    }
}
