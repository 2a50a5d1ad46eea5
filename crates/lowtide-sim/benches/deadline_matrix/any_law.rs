// SPDX-License-Identifier: MIT OR Apache-2.0
//! The framework's claim, "any law", on the schedule of its Table I with a tenth of the link (η = 0.1): 100 Mbit/s, 24
//! ms, 200 packets of buffer, 10 Mbit/s of datagrams beside. Deadlines are to be met within 2 %, and while the transfer
//! is on schedule it is to take at most 60 % of a fair share where two or three others are there.
//!
//! Competitors are CUBIC flows. Beside DCTCP they are DCTCP flows, and the queue marks above 3 ms: a DCTCP flow beside
//! CUBIC on such a queue would be another experiment.

use crate::{
    Failure,
    journal::Journal,
    matrix::CONTROLS,
    measure::{Plain, Watcher, at, between, read},
    workers,
};
use lowtide_sim::run;
use serde::{Deserialize, Serialize};
use std::{fmt::Write, sync::Mutex};

/// Host, competitors, queue.
const LAWS: [(&str, &str, &str); 6] = [
    ("cubic", "cubic", "droptail"),
    ("reno", "cubic", "droptail"),
    ("vegas", "cubic", "droptail"),
    ("cdg", "cubic", "droptail"),
    ("dctcp", "dctcp", "step:at=3ms"),
    ("tide", "cubic", "droptail"),
];
const SEEDS: [u64; 3] = [1, 2, 3];
/// Beginning and end of each competitor, seconds: the framework's Table I.
const COMPETITORS: [(f64, f64); 6] =
    [(0.0, 600.0), (200.0, 1000.0), (800.0, 1000.0), (1010.0, 1600.0), (1200.0, 2000.0), (1400.0, 1800.0)];
const BEGIN: f64 = 400.0;
const DUE: f64 = 1700.0;
/// η·c·(1700 − 400), bytes.
const SIZE: f64 = 1.625e9;
/// Beginning, end and number of competitors of the spans with two or three.
const SPANS: [(f64, f64, u32); 5] =
    [(400.0, 600.0, 2), (800.0, 1000.0, 2), (1200.0, 1400.0, 2), (1400.0, 1600.0, 3), (1600.0, 1700.0, 2)];
/// Payload per second that datagrams leave of the link, bits.
const LEFT: f64 = 90e6 * 1448.0 / 1500.0;
/// On schedule: at most this part of the size behind the straight line, and so late at most is in time.
const TOLERANCE: f64 = 0.02;
/// Part of a fair share.
const BAND: f64 = 0.6;
/// A span is looked at in steps of so many seconds.
const STEP: f64 = 10.0;

#[derive(Debug, Deserialize, Serialize)]
struct Measured {
    /// After the deadline, in parts of the time; `None`: not before all ended, a tenth of the time later.
    late: Option<f64>,
    /// For each span the part of a fair share in the steps at whose beginning it was on schedule, if there were any.
    shares: [Option<f64>; SPANS.len()],
    /// Part of the time in which the weight rested on a model.
    modelled: f64,
}

/// Law (index), control, seed.
pub(crate) type Job = (usize, &'static str, u64);

/// All runs, those of a line of the table one after the other.
fn jobs() -> Vec<Job> {
    let lines = (0..LAWS.len()).flat_map(|law| CONTROLS.map(|control| (law, control)));
    lines.flat_map(|(law, control)| SEEDS.map(|seed| (law, control, seed))).collect()
}

fn name(&(law, control, seed): &Job) -> String {
    format!("any-law-{}-{control}-{seed}", LAWS[law].0)
}

/// The yardsticks: one plain CUBIC flow in the transfer's place. Lines with the same competitors and queue have them in
/// common.
fn plain_jobs() -> Vec<Job> {
    let mut plains: Vec<Job> = Vec::new();
    for job in jobs() {
        if !plains.iter().any(|it| plain_name(it) == plain_name(&job)) {
            plains.push(job);
        }
    }
    plains
}

fn plain_name(&(law, _, seed): &Job) -> String {
    let (_, beside, _) = LAWS[law];
    format!("any-law-plain-cubic-beside-{beside}-{seed}")
}

/// The run that is called so.
pub(crate) fn named(wanted: &str) -> Option<Job> {
    jobs().into_iter().find(|job| name(job) == wanted)
}

/// One run, with its scenario.
pub(crate) fn single(job: &Job) -> Result<(), Failure> {
    let text = scenario(job);
    println!("# {}\n{text}\n{:#?}", name(job), measure(&text)?);
    let plain = plain(job);
    println!("# {}\n{plain}\n{:#?}", plain_name(job), Plain::measure(&plain, BEGIN, DUE - BEGIN)?);
    Ok(())
}

fn scenario(job: &Job) -> String {
    let &(law, control, _) = job;
    let transfer = format!(
        "cc = \"{}\"\ncontrol = \"{control}\"\naccess = \"1gbit\"\nsize = \"{SIZE}B\"\nstart = \"{BEGIN}s\"\ndeadline = \"{}s\"\n",
        LAWS[law].0,
        DUE - BEGIN
    );
    with(job, &transfer)
}

/// The same with a plain CUBIC flow in the transfer's place.
fn plain(job: &Job) -> String {
    with(job, &format!("cc = \"cubic\"\naccess = \"1gbit\"\nsize = \"{SIZE}B\"\nstart = \"{BEGIN}s\"\n"))
}

/// The link and all flows on it.
fn with(&(law, _, seed): &Job, transfer: &str) -> String {
    let (_, beside, queue) = LAWS[law];
    let mut text = format!(
        "seed = {seed}\nduration = \"1830s\"\nsample = \"1s\"\n\n[bottleneck]\nrate = \"100mbit\"\nrtt = \"24ms\"\n\
         buffer = \"200p\"\nqueue = \"{queue}\"\n\n\
         [[flow]]\nname = \"datagrams\"\nsource = \"poisson:bytes=1472B,mean=1.2ms\"\n"
    );
    for (number, (start, stop)) in (1..).zip(COMPETITORS) {
        let stop = if stop < DUE { format!("stop = \"{stop}s\"\n") } else { String::new() };
        write!(
            text,
            "\n[[flow]]\nname = \"tcp-{number}\"\ncc = \"{beside}\"\naccess = \"1gbit\"\nstart = \"{start}s\"\n{stop}"
        )
        .expect("a string");
    }
    text + "\n[[flow]]\nname = \"transfer\"\n" + transfer
}

fn measure(text: &str) -> Result<Measured, Failure> {
    let scenario = read(text)?;
    let transfer = scenario.flows.len() - 1;
    let mut watcher = Watcher::new(scenario.flows.len(), Some((transfer, SIZE)));
    let outcome = run(&scenario, &mut watcher);
    let it = outcome.flows[transfer].deadlines.first().ok_or("the transfer has no deadline")?;
    let end = it.finished_s.unwrap_or(DUE);
    let moved = &watcher.delivered[transfer];
    let on_schedule = |time: f64| at(moved, time) >= SIZE * ((time - BEGIN) / (DUE - BEGIN) - TOLERANCE);
    let share = |(from, to, others): (f64, f64, u32)| {
        let steps = (0..).map(|n| from + STEP * f64::from(n)).take_while(|begin| begin + STEP <= to.min(end));
        let (mut bytes, mut seconds) = (0.0, 0.0);
        for begin in steps.filter(|begin| on_schedule(*begin)) {
            bytes += between(moved, begin, begin + STEP);
            seconds += STEP;
        }
        (seconds > 0.0).then(|| 8.0 * bytes / seconds / (LEFT / f64::from(others + 1)))
    };
    let times = &it.basis_s;
    Ok(Measured {
        late: it.finished_s.map(|end| (end - DUE) / (DUE - BEGIN)),
        shares: SPANS.map(share),
        modelled: times.model / (times.model + times.feedback + times.fallback()),
    })
}

/// The table, and what it says.
pub(crate) fn table(journal: &Mutex<Journal>) -> Result<String, Failure> {
    let plain_jobs = plain_jobs();
    let plains = workers::all(&plain_jobs, |job| {
        let text = plain(job);
        workers::once(journal, &text, &plain_name(job), || Plain::measure(&text, BEGIN, DUE - BEGIN))
    })?;
    let cubic_meets = |job: &Job| {
        let mut plains = plain_jobs.iter().zip(&plains);
        plains.any(|(plain, result)| plain_name(plain) == plain_name(job) && result.meets())
    };
    let jobs = jobs();
    let results = workers::all(&jobs, |job| {
        let text = scenario(job);
        workers::once(journal, &text, &name(job), || measure(&text))
    })?;
    let mut text = String::from(HEAD);
    for (jobs, results) in jobs.chunks(SEEDS.len()).zip(results.chunks(SEEDS.len())) {
        let (law, control, _) = jobs[0];
        let percent = |part: f64| format!("{:.1} %", 100.0 * part);
        let late = results.iter().map(|it| it.late.map_or("> 10 %".into(), percent)).collect::<Vec<_>>().join(", ");
        let spans = (0..SPANS.len()).map(|span| {
            let mut shares: Vec<f64> = results.iter().filter_map(|it| it.shares[span]).collect();
            shares.sort_by(f64::total_cmp);
            match shares.last() {
                None => "–".to_owned(),
                Some(most) if *most > BAND => format!("**{:.0} %**", 100.0 * most),
                Some(most) => format!("{:.0} %", 100.0 * most),
            }
        });
        let is_met = |it: &Measured| it.late.is_some_and(|late| late <= TOLERANCE);
        let met = results.iter().all(is_met);
        let by_cubic: Vec<&Measured> =
            jobs.iter().zip(results).filter(|(job, _)| cubic_meets(job)).map(|(_, it)| it).collect();
        let of_those = by_cubic.iter().filter(|it| is_met(it)).count();
        let modest = results.iter().flat_map(|it| it.shares).flatten().all(|share| share <= BAND);
        let modelled = results.iter().map(|it| it.modelled).sum::<f64>() / results.len() as f64;
        let yes = |is: bool| if is { "yes" } else { "**no**" };
        let cells: Vec<String> = spans.collect();
        writeln!(
            text,
            "| {} | {control} | {late} | {} | {of_those} of {} | {} | {} | {:.0} % |",
            LAWS[law].0,
            yes(met),
            by_cubic.len(),
            cells.join(" | "),
            yes(modest),
            100.0 * modelled
        )
        .expect("a string");
    }
    Ok(text)
}

const HEAD: &str = "## Any law\n\n\
The framework's schedule (its Table I) with a tenth of the link: 100 Mbit/s, 24 ms, a buffer of 200 packets, 10 Mbit/s of datagrams; the transfer\n\
begins at 400 s, is due at 1700 s and has 1.625 GB. Competitors are CUBIC flows; for DCTCP they are DCTCP flows, and the queue marks above 3 ms, since a DCTCP\n\
flow beside CUBIC on such a queue would be another experiment. Three seeds. **done**: after the deadline, in parts of the 1300 s. **of what CUBIC meets**: of the\n\
seeds in which a plain CUBIC flow in the transfer's place is done in 85 % of the time, those within 2 %. **share**: the largest part of a fair share that\n\
the transfer took in spans with two or three competitors, while it was no more than 2 % behind schedule; \"–\" where it never was on schedule.\n\n\
| host | control | done | within 2 % | of what CUBIC meets | 400–600 s, two others | 800–1000 s, two | 1200–1400 s, two | 1400–1600 s, three | 1600–1700 s, two | all at most 60 % | model |\n\
|---|---|---|---|---|---|---|---|---|---|---|---|\n";
