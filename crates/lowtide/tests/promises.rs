// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide run` keeps its promises: medians of three, each on an emulated link of 20 Mbit/s, 40 ms and one BDP, real
//! kernel TCP, iperf3 on both sides and one CUBIC flow in the foreground. These are measurements in real time on a
//! machine that others may use, so one that is outside of its band, of one law or number of connections, is taken twice
//! more, and both must then be inside.

#[path = "support/promises.rs"]
mod promises;
mod support;

use promises::{Deadline, deadline, eight_to_one, far, impossible, share};
use std::{
    ops::{Bound, RangeBounds},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
    thread,
};

use support::kernel_is_usable;

type Verdict = Result<(), String>;

/// Measures and judges, while no other promise is measured: the machine is small.
fn kept(promise: impl Fn() -> Verdict) {
    static TURN: Mutex<()> = Mutex::new(());

    if !kernel_is_usable() {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // what measures may fail, too: iperf3 that is not let in for five seconds
    let look =
        || catch_unwind(AssertUnwindSafe(&promise)).unwrap_or_else(|_| Err("it could not be measured".to_owned()));
    if let Err(broken) = look() {
        println!("{broken}; twice more");
        for _ in 0..2 {
            look().unwrap_or_else(|again| panic!("{broken}; and again: {again}"));
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

/// What `measure` gives for each of these, all measured at the same time. A dozen links at once on a small machine are
/// a path with jitter, so it is two or three of what has three runs each.
fn together<A: Copy + Send + Sync, T: Send, const N: usize>(
    of: [A; N],
    measure: impl Fn(A) -> T + Sync,
) -> [(A, T); N] {
    let measure = &measure;
    thread::scope(|scope| {
        let threads = of.map(|it| (it, scope.spawn(move || measure(it))));
        threads.map(|(it, thread)| (it, thread.join().expect("a measurement")))
    })
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn in_the_background_the_foreground_keeps_its_rate_and_an_idle_link_is_used() {
    // With phantom signals on CUBIC the foreground's rate scatters: medians of three had 0.795 to 0.885. The promise is
    // 0.80, and chance gets 0.02. law      foreground keeps  alone uses
    const BANDS: [(&str, f64, f64); 2] = [("cdg", 0.90, 0.75), ("cubic", 0.78, 0.60)];
    for (law, keeps, uses) in BANDS {
        kept(|| {
            let far = far(law, 1);
            println!("{law}: kept {:.3}, alone {:.3}", far.kept, far.idle);
            within(&format!("what the foreground keeps beside {law}"), far.kept, keeps..)?;
            within(&format!("what {law} uses alone"), far.idle, uses..)
        });
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn tide_leaves_more_to_the_foreground_and_uses_more_of_an_idle_link() {
    //   connections  foreground keeps  alone uses
    const BANDS: [(u32, f64, f64); 3] = [(1, 0.93, 0.80), (8, 0.93, 0.75), (32, 0.93, 0.60)];
    for (connections, keeps, uses) in BANDS {
        kept(|| {
            let far = far("tide", connections);
            println!("tide, {connections} connections: kept {:.3}, alone {:.3}", far.kept, far.idle);
            within(&format!("what the foreground keeps beside tide, {connections} connections"), far.kept, keeps..)?;
            within(&format!("what tide uses alone, {connections} connections"), far.idle, uses..)
        });
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn many_connections_yield_as_one_does() {
    for connections in [8, 32] {
        kept(|| {
            let far = far("cdg", connections);
            println!("cdg, {connections} connections: kept {:.3}, alone {:.3}", far.kept, far.idle);
            within(&format!("what the foreground keeps beside {connections} connections"), far.kept, 0.90..)
        });
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_deadline_that_needs_a_third_of_the_link_is_met() {
    // CUBIC follows its weight slowly (`Law::response_round_trips`): it ends close to the deadline, so chance gets more
    // room there. With a model the losses of slow start make the price look high at first, so that it begins with more
    // than it needs and may be early. law     control  part of the time, from  to
    const BANDS: [[(&str, &str, f64, f64); 2]; 2] = [
        [("cdg", "pid", 0.85, 1.05), ("cdg", "mbc", 0.75, 1.05)],
        [("cubic", "pid", 0.85, 1.10), ("cubic", "mbc", 0.75, 1.10)],
    ];
    for of_law in BANDS {
        kept(|| {
            together(of_law, |(law, control, _, _)| deadline(law, control)).iter().try_for_each(
                |((law, control, earliest, latest), run)| {
                    is_met(law, control, run, *earliest, *latest)?;
                    match *control {
                        "mbc" => within(&format!("{law}: part of the time in which the model rules"), run.model, 0.5..),
                        _ => Ok(()),
                    }
                },
            )
        });
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn tide_meets_a_deadline_that_needs_a_third_of_the_link() {
    kept(|| is_met("tide", "pid", &deadline("tide", "pid"), 0.85, 1.05));
}

fn is_met(law: &str, control: &str, run: &Deadline, earliest: f64, latest: f64) -> Verdict {
    let what = format!("{law} under {control}");
    println!(
        "{what}: took {:.3} of the time, foreground {:.3} of the link, {} false alarms, model {:.3} of the time",
        run.took, run.foreground, run.false_alarms, run.model
    );
    within(&format!("{what}: part of the time taken"), run.took, earliest..=latest)?;
    within(&format!("{what}: the foreground's part of the link"), run.foreground, 0.55..)?;
    within(&format!("{what}: false alarms in three runs"), run.false_alarms as f64, ..=1.0)
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn an_impossible_deadline_is_announced_and_pressed_no_harder_than_one_flow() {
    kept(|| {
        let run = impossible();
        println!("took {:.3} of Reno's, announced at {:.3} of the time", run.of_reno, run.announced);
        within("what it took of what Reno takes", run.of_reno, 0.60..=1.10)?;
        within("part of the time before the announcement", run.announced, ..=1.0 / 3.0)
    });
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_share_falls_with_the_weight_whatever_that_acts_on() {
    for actuator in ["beta", "phantom"] {
        kept(|| {
            let [full, least] =
                together(["1", "0.05"], |weight| share("cdg", actuator, weight)).map(|(_, share)| share);
            println!("cdg by {actuator}: {full:.3} of the link at w = 1, {least:.3} at 0.05");
            within(&format!("cdg by {actuator}: the share at w = 0.05 over that at 1"), least / full, ..0.7)
        });
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn eight_connections_take_what_one_takes() {
    for law in ["tide", "cdg"] {
        kept(|| {
            let ratio = eight_to_one(law);
            println!("{law}: eight connections take {ratio:.3} of one");
            // the promise is the upper bound; the lower one only says that they are not starved
            within(&format!("{law}: what eight connections take of what one takes"), ratio, 0.5..=1.25)
        });
    }
}
