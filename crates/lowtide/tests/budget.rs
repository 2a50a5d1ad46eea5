// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! Three transfers that are due one after the other beside one CUBIC flow, with one budget (`--group`) and each by
//! itself; and three without haste, beside that flow and on the idle link: measured, and printed.
//! `cargo test -p lowtide --test budget -- --include-ignored --show-output`, with nothing else running.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::time::Duration;

use lifecycle::{
    Receiver, Running, cubic_flow, dev_tcp, finish, inside, lowtide, name, needs_kernel, report, run_script,
};
use lowtide_emu::{Config, Emulator};
use serde_json::Value;

/// Bytes of each transfer: three fifths of a fair share until the first deadline.
const SIZE: u64 = 15_000_000;
/// When they are due, in seconds.
const DUE: [u32; 3] = [20, 40, 60];

#[derive(Debug)]
struct Outcome {
    met: [bool; 3],
    /// The most that the three needed together, Mbit/s.
    needed: f64,
    /// The most that they sent together, and the least that the foreground had, over five seconds; and its mean.
    /// Mbit/s.
    most: f64,
    least: f64,
    mean: f64,
}

impl Outcome {
    fn show(&self, how: &str) {
        let Outcome { met, needed, most, least, mean } = self;
        println!(
            "{how}: met {met:?}, needed up to {needed:.2} Mbit/s, sent up to {most:.2}; foreground {mean:.2}, at least {least:.2}"
        );
    }
}

fn needed(jobs: &[String]) -> f64 {
    let all: Value = serde_json::from_str(&finish(&mut lowtide(["status", "--json"])).out).unwrap_or_default();
    let ours = all["transfers"].as_array().into_iter().flatten();
    let ours = ours.filter(|it| jobs.iter().any(|job| it["name"] == job.as_str()));
    ours.filter_map(|it| it["needed_bps"].as_f64()).sum::<f64>() / 1e6
}

fn measure(together: bool) -> Outcome {
    let test = if together { "together" } else { "alone" };
    let (a, b) = (format!("{}a", name(test)), format!("{}b", name(test)));
    let emulator = Emulator::start(Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(40))).unwrap();
    let [bulk, foreground] = [(); 2].map(|()| Receiver::start(emulator.b(), emulator.b4()));
    let _plain = cubic_flow(emulator.a(), &foreground);
    std::thread::sleep(Duration::from_secs(5));

    let directory = tempfile::tempdir().unwrap();
    let jobs = DUE.map(|due| name(&format!("{test}-{due}")));
    let files = DUE.map(|due| directory.path().join(format!("{due}.json")));
    let group = name("budget");
    let mut runs: Vec<Option<Running>> = Vec::new();
    for ((job, due), file) in jobs.iter().zip(DUE).zip(&files) {
        let (due, size) = (format!("+{due}s"), SIZE.to_string());
        let mut options = vec!["--name", job, "--deadline", &due, "--size", &size, "--report", file.to_str().unwrap()];
        options.extend(together.then_some(["--group", group.as_str()]).into_iter().flatten());
        let script = format!("head -c {SIZE} /dev/zero > {}", dev_tcp(bulk.address));
        runs.push(Some(Running::start(&mut inside(emulator.a(), run_script(&options, &script)))));
    }
    let (mut rows, mut most_needed) = (Vec::new(), 0.0f64);
    for _ in 0..DUE[2] {
        std::thread::sleep(Duration::from_secs(1));
        rows.push((bulk.received(), foreground.received()));
        most_needed = most_needed.max(needed(&jobs));
    }
    let met = [0, 1, 2].map(|n| {
        runs[n].take().unwrap().end_within(Duration::from_secs(60));
        report(&files[n])["met"] == true
    });
    let mbit = |bytes: u64, seconds: usize| bytes as f64 * 8e-6 / seconds as f64;
    let five = || rows.windows(6).map(|rows| (mbit(rows[5].0 - rows[0].0, 5), mbit(rows[5].1 - rows[0].1, 5)));
    Outcome {
        met,
        needed: most_needed,
        most: five().map(|(ours, _)| ours).fold(0.0, f64::max),
        least: five().map(|(_, theirs)| theirs).fold(f64::INFINITY, f64::min),
        mean: mbit(rows[rows.len() - 1].1 - rows[0].1, rows.len() - 1),
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn one_budget_meets_deadlines_that_three_by_themselves_press_harder_for() {
    needs_kernel();
    let alone = measure(false);
    alone.show("each by itself");
    // a busy machine's link may carry less than the deadlines need
    for _ in 0..3 {
        let together = measure(true);
        together.show("one budget");
        if together.met == [true; 3] {
            assert!(together.needed < alone.needed, "{together:?} {alone:?}");
            return;
        }
    }
    panic!("with one budget deadlines were missed in each of three runs");
}

/// What three transfers without haste send on the idle link, and beside one CUBIC flow, and what that keeps of what it
/// has alone, in Mbit/s.
#[derive(Debug)]
struct Spare {
    idle: f64,
    each: [f64; 3],
    beside: f64,
    kept: f64,
}

/// They have a group, or not.
fn spare(together: bool) -> Spare {
    let test = if together { "spare" } else { "spares" };
    let (a, b) = (format!("{}a", name(test)), format!("{}b", name(test)));
    let emulator = Emulator::start(Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(40))).unwrap();
    let bulk = [(); 3].map(|()| Receiver::start(emulator.b(), emulator.b4()));
    let foreground = Receiver::start(emulator.b(), emulator.b4());
    let group = name("spare");
    let mbit = |bytes: u64, seconds: u64| bytes as f64 * 8e-6 / seconds as f64;
    let over = |seconds: u64| {
        let now = || (bulk.each_ref().map(Receiver::received), foreground.received());
        let before = now();
        std::thread::sleep(Duration::from_secs(seconds));
        let after = now();
        ([0, 1, 2].map(|n| mbit(after.0[n] - before.0[n], seconds)), mbit(after.1 - before.1, seconds))
    };
    let _runs = [0, 1, 2].map(|n| {
        let job = name(&format!("{test}-{n}"));
        let mut options = vec!["--name", &job, "--deadline", "+100h", "--size", "10GB"];
        options.extend(together.then_some(["--group", group.as_str()]).into_iter().flatten());
        let script = format!("head -c 10000000000 /dev/zero > {}", dev_tcp(bulk[n].address));
        Running::start(&mut inside(emulator.a(), run_script(&options, &script)))
    });
    std::thread::sleep(Duration::from_secs(10));
    let (each, _) = over(10);
    let _plain = cubic_flow(emulator.a(), &foreground);
    std::thread::sleep(Duration::from_secs(10));
    let (beside, kept) = over(15);
    Spare { idle: each.iter().sum(), each, beside: beside.iter().sum(), kept }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_group_without_haste_is_one_flow() {
    needs_kernel();
    for together in [false, true] {
        let Spare { idle, each, beside, kept } = spare(together);
        println!(
            "{}: idle link {idle:.2} Mbit/s, each {each:.2?}; beside CUBIC {beside:.2}, which has {kept:.2}",
            if together { "one group" } else { "each by itself" }
        );
        // the rates depend on what else the machine does, their ratios hardly
        assert!(!together || beside < kept.min(idle) / 4.0, "the group does not leave the link to CUBIC");
    }
}
