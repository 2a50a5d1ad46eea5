// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lowtide run` promises, as measurements on a link of `rate` Mbit/s: tests hold them to their bands in a guest,
//! the bench prints them as medians of three on this machine.

use std::{collections::BTreeMap, sync::Mutex, thread, time::Duration};

use super::support::{Bulk, Lab, at_once, median, runs};

/// A transfer with all the time in the world.
pub(crate) struct Far {
    /// Part of its solo rate that the foreground keeps.
    pub(crate) kept: f64,
    /// Part of the link that the same transfer, same settings, uses alone.
    pub(crate) idle: f64,
}

/// `connections` of one transfer without a deadline, for `seconds` beside a CUBIC flow and for as long alone.
pub(crate) fn far(rate: f64, law: &str, connections: u32, seconds: u32) -> Far {
    thread::scope(|scope| {
        let kept = scope.spawn(|| kept(rate, law, connections, seconds));
        let idle = median(|| far_transfer(&Lab::new(rate), law, connections, seconds).rate(), |got| *got) / rate;
        Far { kept: kept.join().unwrap(), idle }
    })
}

/// Part of its solo rate that a CUBIC flow keeps beside `connections` of one transfer without a deadline. A process
/// measures the solo rate once for each length.
pub(crate) fn kept(rate: f64, law: &str, connections: u32, seconds: u32) -> f64 {
    static SOLO: Mutex<BTreeMap<u32, f64>> = Mutex::new(BTreeMap::new());
    let foreground = || median(|| Lab::new(rate).foreground(seconds), |got| *got);
    thread::scope(|scope| {
        let solo = scope.spawn(|| *SOLO.lock().unwrap().entry(seconds).or_insert_with(foreground));
        let beside = || {
            let lab = Lab::new(rate);
            lab.beside(seconds, || far_transfer(&lab, law, connections, seconds - 2)).0
        };
        median(beside, |got| *got) / solo.join().unwrap()
    })
}

fn far_transfer(lab: &Lab, law: &str, connections: u32, seconds: u32) -> Bulk {
    let arguments = ["-P", &connections.to_string(), "-t", &seconds.to_string()];
    lab.bulk(&["--cc", law], &arguments, patience(seconds))
}

/// 32 % of the link beside a CUBIC flow: on this machine 40 MB in 50 s.
pub(crate) struct Deadline {
    /// Part of the time that the transfer took.
    pub(crate) took: f64,
    /// Part of the link that the foreground had.
    pub(crate) foreground: f64,
    /// The number of runs in which it was said, wrongly, that this cannot be.
    pub(crate) false_alarms: usize,
    /// Part of the time in which a model ruled.
    pub(crate) model: f64,
}

/// The median run by the time taken, under this law and this control of the weight.
pub(crate) fn deadline(rate: f64, law: &str, control: &str, seconds: u32) -> Deadline {
    let (size, time) = (bytes(rate, 0.32, seconds), format!("{seconds}s"));
    let mut sorted = runs(
        || {
            let lab = Lab::new(rate);
            // the foreground outlives the transfer whatever happens
            lab.beside(seconds + 2, || {
                let options = ["--cc", law, "--control", control, "--size", &size, "--deadline", &time];
                lab.bulk(&options, &["-n", &size], patience(seconds + 20))
            })
        },
        |(_, bulk)| bulk.took(),
    );
    let wrong = |bulk: &Bulk| bulk.announced("cannot_finish").is_some() && bulk.took() <= f64::from(seconds);
    let false_alarms = sorted.iter().filter(|(_, bulk)| wrong(bulk)).count();
    let (foreground, bulk) = sorted.swap_remove(sorted.len() / 2);
    Deadline {
        took: bulk.took() / f64::from(seconds),
        foreground: foreground / rate,
        false_alarms,
        model: bulk.model_part(),
    }
}

/// Twice a fair share requested.
pub(crate) struct Impossible {
    /// What the transfer took, relative to an ordinary flow in its place: the kernel's CUBIC, as in the foreground.
    /// Means of all starts.
    pub(crate) of_one_flow: f64,
    /// When, as part of the time, it was said that this cannot be; infinite if never.
    pub(crate) announced: f64,
    /// Mbit/s of the transfer, and of CUBIC in its place, in each start.
    pub(crate) rates: [Vec<f64>; 2],
}

/// All of the link in `seconds`, beside a CUBIC flow. How two equals share a link depends on when they lose packets:
/// single starts of CUBIC differ by a quarter. So the means of several starts are compared.
pub(crate) fn impossible(rate: f64, starts: u64, seconds: u32) -> Impossible {
    let (size, time) = (bytes(rate, 1.0, seconds), format!("{seconds}s"));
    let run = |lab: &Lab| -> Bulk {
        let options = ["--size", &size, "--deadline", &time];
        lab.beside(seconds + 2, || lab.bulk(&options, &["-n", &size], Duration::from_secs(seconds.into()))).1
    };
    let bulks = at_once(starts, |start| run(&Lab::out_of_step(rate, start)));
    let one_flow = at_once(starts, |start| {
        let lab = Lab::out_of_step(rate, start);
        lab.beside(seconds + 2, || lab.in_its_place("cubic", seconds)).1
    });
    let length = f64::from(seconds);
    let took = bulks.iter().map(|bulk| bulk.acknowledged_at(length) * 8e-6 / length).collect();
    let rates: [Vec<f64>; 2] = [took, one_flow];
    let [took, of] = rates.each_ref().map(|rates| rates.iter().sum::<f64>());
    let announced = bulks.iter().map(|bulk| bulk.announced("cannot_finish").map_or(f64::INFINITY, |t| t / length));
    Impossible { of_one_flow: took / of, announced: middle(announced.collect()), rates }
}

/// What this part of the link carries in so many seconds.
fn bytes(rate: f64, part: f64, seconds: u32) -> String {
    format!("{:.0}", part * rate * 1e6 / 8.0 * f64::from(seconds))
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What 8 connections of a transfer take at w = 1, relative to one, each beside a CUBIC flow for `length` seconds.
pub(crate) fn eight_to_one(rate: f64, law: &str, length: u32) -> f64 {
    let taken = |connections: &str| {
        median(
            || {
                let lab = Lab::new(rate);
                let seconds = (length - 2).to_string();
                let arguments = ["-P", connections, "-t", &seconds];
                lab.beside(length, || lab.bulk(&["--cc", law, "--w-min", "1"], &arguments, patience(length))).1.rate()
            },
            |got| *got,
        )
    };
    // one after the other: with six links at once what a small machine has no time for is lost to single connections
    // first
    taken("8") / taken("1")
}

/// Part of the link that a transfer of this weight takes beside a CUBIC flow in `length` seconds.
pub(crate) fn share(rate: f64, law: &str, actuator: &str, weight: &str, length: u32) -> f64 {
    let options = ["--cc", law, "--actuator", actuator, "--w-min", weight, "--w-max", weight];
    let measure = || {
        let lab = Lab::new(rate);
        let seconds = (length - 2).to_string();
        lab.beside(length, || lab.bulk(&options, &["-t", &seconds], patience(length))).1.rate() / rate
    };
    median(measure, |share| *share)
}

/// When a program that should have ended is ended.
fn patience(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds) + 15)
}
