// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lowtide run` promises, as measurements: tests hold them to their bands, the bench prints them.

use std::{sync::OnceLock, thread, time::Duration};

use super::support::{Bulk, LINK, Lab, median, three};

/// A transfer with all the time in the world.
pub(crate) struct Far {
    /// Part of its solo rate that the foreground keeps.
    pub(crate) kept: f64,
    /// Part of the link that the same transfer, same settings, uses alone.
    pub(crate) idle: f64,
}

/// `connections` of one transfer without a deadline, beside a CUBIC flow and alone.
pub(crate) fn far(law: &str, connections: u32) -> Far {
    const SECONDS: u32 = 24;
    static SOLO: OnceLock<f64> = OnceLock::new();
    let streams = connections.to_string();
    let bulk = |lab: &Lab, seconds: u32| {
        lab.bulk(&["--cc", law], &["-P", &streams, "-t", &seconds.to_string()], patience(seconds))
    };
    thread::scope(|scope| {
        let solo = scope.spawn(|| *SOLO.get_or_init(|| median(|| Lab::new().foreground(SECONDS), |rate| *rate)));
        let beside = scope.spawn(|| {
            let lab = || Lab::new();
            median(
                || {
                    let lab = lab();
                    lab.beside(SECONDS, || bulk(&lab, SECONDS - 2)).0
                },
                |rate| *rate,
            )
        });
        let idle = median(|| bulk(&Lab::new(), SECONDS).rate(), |rate| *rate);
        Far { kept: beside.join().unwrap() / solo.join().unwrap(), idle: idle / LINK }
    })
}

/// 40 MB in 50 s, 32 % of the link, beside a CUBIC flow.
pub(crate) struct Deadline {
    /// Part of the time that the transfer took.
    pub(crate) took: f64,
    /// Part of the link that the foreground had.
    pub(crate) foreground: f64,
    /// Of the three runs, those in which it was said, wrongly, that this cannot be.
    pub(crate) false_alarms: usize,
    /// Part of the time in which a model ruled.
    pub(crate) model: f64,
}

/// The median run by the time taken, under this law and this control of the weight.
pub(crate) fn deadline(law: &str, control: &str) -> Deadline {
    const SECONDS: u32 = 50;
    let runs = three(
        || {
            let lab = Lab::new();
            // the foreground outlives the transfer whatever happens
            lab.beside(SECONDS + 2, || {
                let options = ["--cc", law, "--control", control, "--size", "40MB", "--deadline", "50s"];
                lab.bulk(&options, &["-n", "40000000"], patience(SECONDS + 20))
            })
        },
        |(_, bulk)| bulk.took(),
    );
    let wrong = |bulk: &Bulk| bulk.announced("cannot_finish").is_some() && bulk.took() <= f64::from(SECONDS);
    let (foreground, bulk) = &runs[1];
    Deadline {
        took: bulk.took() / f64::from(SECONDS),
        foreground: foreground / LINK,
        false_alarms: runs.iter().filter(|(_, bulk)| wrong(bulk)).count(),
        model: bulk.model_part(),
    }
}

/// Twice a fair share asked.
pub(crate) struct Impossible {
    /// What the transfer took, relative to a plain Reno flow in its place.
    pub(crate) of_reno: f64,
    /// When, as part of the time, it was said that this cannot be; infinite if never.
    pub(crate) announced: f64,
}

/// 125 MB in 50 s: all of the link, beside a CUBIC flow.
pub(crate) fn impossible() -> Impossible {
    const SECONDS: u32 = 50;
    let time = f64::from(SECONDS);
    let run = |lab: &Lab| -> Bulk {
        let options = ["--size", "125MB", "--deadline", "50s"];
        lab.beside(SECONDS + 2, || lab.bulk(&options, &["-n", "125000000"], Duration::from_secs(SECONDS.into()))).1
    };
    thread::scope(|scope| {
        let reno = scope.spawn(|| {
            let rate = |lab: &Lab| lab.beside(SECONDS + 2, || lab.in_its_place("reno", SECONDS)).1;
            median(|| rate(&Lab::new()), |rate| *rate)
        });
        let bulk = median(|| run(&Lab::new()), |bulk| bulk.acknowledged_at(time));
        Impossible {
            of_reno: bulk.acknowledged_at(time) * 8e-6 / time / reno.join().unwrap(),
            announced: bulk.announced("cannot_finish").map_or(f64::INFINITY, |t| t / time),
        }
    })
}

/// What 8 connections of a transfer take at w = 1, relative to one, beside a CUBIC flow.
pub(crate) fn eight_to_one(law: &str) -> f64 {
    const SECONDS: u32 = 24;
    let rate = |connections: &str| {
        median(
            || {
                let lab = Lab::new();
                let seconds = (SECONDS - 2).to_string();
                let arguments = ["-P", connections, "-t", &seconds];
                lab.beside(SECONDS, || lab.bulk(&["--cc", law, "--w-min", "1"], &arguments, patience(SECONDS))).1.rate()
            },
            |rate| *rate,
        )
    };
    // one after the other: with six links at once what a small machine has no time for is lost to single connections
    // first
    rate("8") / rate("1")
}

/// Part of the link that a transfer of this weight takes beside a CUBIC flow.
pub(crate) fn share(law: &str, actuator: &str, weight: &str) -> f64 {
    const SECONDS: u32 = 30;
    let options = ["--cc", law, "--actuator", actuator, "--w-min", weight, "--w-max", weight];
    let measure = || {
        let lab = Lab::new();
        let seconds = (SECONDS - 2).to_string();
        lab.beside(SECONDS, || lab.bulk(&options, &["-t", &seconds], patience(SECONDS))).1.rate() / LINK
    };
    median(measure, |share| *share)
}

/// When a program that should have ended is ended.
fn patience(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds) + 15)
}
