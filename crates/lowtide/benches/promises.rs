// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo bench -p lowtide --bench promises`: what `lowtide run` promises, and what it costs, as a table. About eight minutes; root.

#[path = "../tests/support/promises.rs"]
mod promises;
#[path = "../tests/support/mod.rs"]
mod support;

use promises::{deadline, eight_to_one, far, impossible, share};

fn main() {
    if !support::kernel_is_usable() {
        return;
    }
    println!("medians of three; 20 Mbit/s, 40 ms, one BDP; one CUBIC flow in the foreground");
    for (law, connections) in [("cdg", 1), ("cdg", 8), ("cdg", 32), ("cubic", 1), ("cubic", 8), ("cubic", 32)] {
        let far = far(law, connections);
        println!(
            "far deadline, {law}, {connections} connections: foreground keeps {:.1} %, alone on the link {:.1} %",
            100.0 * far.kept,
            100.0 * far.idle
        );
    }
    for (law, control) in [("cdg", "pid"), ("cdg", "mbc"), ("cubic", "pid"), ("cubic", "mbc")] {
        let run = deadline(law, control);
        println!(
            "40 MB in 50 s, {law}, {control}: took {:.1} % of the time, foreground {:.1} % of the link, {} false alarms, the model \
             ruled for {:.1} % of the time",
            100.0 * run.took,
            100.0 * run.foreground,
            run.false_alarms,
            100.0 * run.model
        );
    }
    for actuator in ["native", "phantom", "beta"] {
        let shares =
            ["1", "0.3", "0.05", "0.004"].map(|weight| format!("{:.1} %", 100.0 * share("cdg", actuator, weight)));
        println!("cdg by {actuator} at w = 1, 0.3, 0.05 and 0.004: {} of the link", shares.join(", "));
    }
    let run = impossible();
    println!(
        "twice a fair share: took {:.1} % of a plain Reno flow, announced at {:.1} % of the time",
        100.0 * run.of_reno,
        100.0 * run.announced
    );
    for law in ["cdg", "cubic"] {
        println!("eight connections at w = 1, {law}: {:.1} % of one", 100.0 * eight_to_one(law));
    }
}
