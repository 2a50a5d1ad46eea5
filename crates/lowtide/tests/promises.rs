// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! `lowtide run` keeps its promises, on an emulated link of 40 ms and one BDP, with kernel TCP, iperf3 on both sides
//! and one CUBIC flow in the foreground. Each test runs in a guest, in virtual time (`make promises`). If a measurement
//! of one law or number of connections is outside of its band, it is taken twice more, and both must then be inside:
//! so is the median of the three. The bench `promises` measures the same on this machine, in real time.

#[path = "support/promises.rs"]
mod promises;
mod support;

use lowtide_guest::{
    Program,
    testing::{in_guest, in_virtual_time},
};
use promises::{Deadline, deadline, eight_to_one, far, impossible, share};
use std::ops::{Bound, RangeBounds};

use support::{LINK, needs_kernel};

type Verdict = Result<(), String>;

/// Mbit/s of the link where the law does not need [`LINK`]: in a guest each packet takes the host's processor long.
const SLOW: f64 = 10.0;

/// Starts whose mean is compared.
const STARTS: u64 = 8;

/// Runs `body` in the guest, with what it starts there.
fn in_a_guest(body: impl FnOnce()) {
    if in_guest() {
        needs_kernel();
    }
    let lowtide = Program { name: "lowtide".to_owned(), path: env!("CARGO_BIN_EXE_lowtide").into() };
    let tools = ["ip", "tc", "iperf3"].map(|name| Program::of_the_system(name).expect("make promises installs it"));
    in_virtual_time(&[&[lowtide][..], &tools].concat(), body);
}

/// Measures and judges.
fn kept(promise: impl Fn() -> Verdict) {
    if let Err(broken) = promise() {
        println!("{broken}; twice more");
        for _ in 0..2 {
            promise().unwrap_or_else(|again| panic!("{broken}; and again: {again}"));
        }
    }
}

fn within(what: &str, value: f64, band: impl RangeBounds<f64>) -> Verdict {
    let end = |bound: Bound<&f64>| {
        if let Bound::Included(end) | Bound::Excluded(end) = bound { end.to_string() } else { String::new() }
    };
    match band.contains(&value) {
        true => Ok(()),
        false => Err(format!("{what}: {value:.3}, not in {}..{}", end(band.start_bound()), end(band.end_bound()))),
    }
}

#[test]
#[ignore = "boots a guest: make promises"]
fn in_the_background_the_foreground_keeps_its_rate_and_an_idle_link_is_used() {
    // Phantom signals on CUBIC hardly act in its first seconds, which chance decides: the foreground kept 0.78 to 0.86
    // in eight runs of 24 s, and 0.84 to 0.91 in eight of 60 s.
    //              law  seconds  foreground keeps  alone uses
    const BANDS: [(&str, u32, f64, f64); 2] = [("cdg", 24, 0.90, 0.75), ("cubic", 60, 0.78, 0.60)];
    in_a_guest(|| {
        for (law, seconds, keeps, uses) in BANDS {
            kept(|| {
                let far = far(LINK, law, 1, seconds);
                println!("{law}: kept {:.3}, alone {:.3}", far.kept, far.idle);
                within(&format!("what the foreground keeps beside {law}"), far.kept, keeps..)?;
                within(&format!("what {law} uses alone"), far.idle, uses..)
            });
        }
    });
}

#[test]
#[ignore = "boots a guest: make promises"]
fn tide_leaves_more_to_the_foreground_and_uses_more_of_an_idle_link() {
    //   connections  foreground keeps  alone uses
    const BANDS: [(u32, f64, f64); 3] = [(1, 0.93, 0.80), (8, 0.93, 0.75), (32, 0.93, 0.60)];
    in_a_guest(|| {
        for (connections, keeps, uses) in BANDS {
            kept(|| {
                let far = far(SLOW, "tide", connections, 24);
                println!("tide, {connections} connections: kept {:.3}, alone {:.3}", far.kept, far.idle);
                within(
                    &format!("what the foreground keeps beside tide, {connections} connections"),
                    far.kept,
                    keeps..,
                )?;
                within(&format!("what tide uses alone, {connections} connections"), far.idle, uses..)
            });
        }
    });
}

#[test]
#[ignore = "boots a guest: make promises"]
fn many_connections_yield_as_one_does() {
    in_a_guest(|| {
        for connections in [8, 32] {
            kept(|| {
                let kept = promises::kept(LINK, "cdg", connections, 60);
                println!("cdg, {connections} connections: kept {kept:.3}");
                within(&format!("what the foreground keeps beside {connections} connections"), kept, 0.90..)
            });
        }
    });
}

#[test]
#[ignore = "boots a guest: make promises"]
fn a_deadline_that_needs_a_third_of_the_link_is_met() {
    // CUBIC follows its weight slowly (`Law::response_round_trips`): it ends close to the deadline, so chance gets more
    // room there. With a model the losses of slow start make the price look high at first, so that it begins with more
    // than it needs and may be early.
    //    law    control  part of the time, from  to
    const BANDS: [(&str, &str, f64, f64); 4] = [
        ("cdg", "pid", 0.85, 1.05),
        ("cdg", "mbc", 0.75, 1.05),
        ("cubic", "pid", 0.85, 1.10),
        ("cubic", "mbc", 0.75, 1.10),
    ];
    in_a_guest(|| {
        for (law, control, earliest, latest) in BANDS {
            kept(|| {
                let run = deadline(SLOW, law, control, 50);
                is_met(law, control, &run, earliest, latest)?;
                match control {
                    "mbc" => within(&format!("{law}: part of the time in which the model rules"), run.model, 0.5..),
                    _ => Ok(()),
                }
            });
        }
    });
}

#[test]
#[ignore = "boots a guest: make promises"]
fn tide_meets_a_deadline_that_needs_a_third_of_the_link() {
    in_a_guest(|| {
        kept(|| is_met("tide", "pid", &deadline(SLOW, "tide", "pid", 25), 0.85, 1.05));
    });
}

fn is_met(law: &str, control: &str, run: &Deadline, earliest: f64, latest: f64) -> Verdict {
    let what = format!("{law} under {control}");
    println!(
        "{what}: took {:.3} of the time, foreground {:.3} of the link, {} false alarms, model {:.3} of the time",
        run.took, run.foreground, run.false_alarms, run.model
    );
    within(&format!("{what}: part of the time taken"), run.took, earliest..=latest)?;
    within(&format!("{what}: the foreground's part of the link"), run.foreground, 0.55..)?;
    within(&format!("{what}: false alarms"), run.false_alarms as f64, ..=0.0)
}

#[test]
#[ignore = "boots a guest: make promises"]
fn an_impossible_deadline_is_announced_and_pressed_no_harder_than_one_flow() {
    in_a_guest(|| {
        kept(|| {
            // in 25 s the announcement, which takes some ten, comes after 0.41 of the time
            let run = impossible(SLOW, STARTS, 50);
            let [took, one_flow] = &run.rates;
            println!("Mbit/s {took:.1?}, of CUBIC in its place {one_flow:.1?}");
            println!("took {:.3} of one flow's, announced at {:.3} of the time", run.of_one_flow, run.announced);
            // w = 1 is to take 0.85 to 1.15 of what a second CUBIC flow takes. On this link, where CUBIC's unpaced
            // packets meet delays that vary by a packet time, it takes 1.09 to 1.10 times as much. Medians of five
            // starts were up to 1.16 apart.
            within("what it took of what one flow takes", run.of_one_flow, 0.60..=1.15)?;
            within("part of the time before the announcement", run.announced, ..=1.0 / 3.0)
        });
    });
}

#[test]
#[ignore = "boots a guest: make promises"]
fn the_share_falls_with_the_weight_whatever_that_acts_on() {
    in_a_guest(|| {
        // phantom signals follow losses, and these are seconds apart
        for (actuator, seconds) in [("beta", 15), ("phantom", 30)] {
            kept(|| {
                let [full, least] = ["1", "0.05"].map(|weight| share(SLOW, "cdg", actuator, weight, seconds));
                println!("cdg by {actuator}: {full:.3} of the link at w = 1, {least:.3} at 0.05");
                within(&format!("cdg by {actuator}: the share at w = 0.05 over that at 1"), least / full, ..0.7)
            });
        }
    });
}

#[test]
#[ignore = "boots a guest: make promises"]
fn eight_connections_take_what_one_takes() {
    in_a_guest(|| {
        for law in ["tide", "cdg"] {
            kept(|| {
                let ratio = eight_to_one(SLOW, law, 16);
                println!("{law}: eight connections take {ratio:.3} of one");
                // the promise is the upper bound; the lower one only says that they are not starved
                within(&format!("{law}: what eight connections take of what one takes"), ratio, 0.5..=1.25)
            });
        }
    });
}
