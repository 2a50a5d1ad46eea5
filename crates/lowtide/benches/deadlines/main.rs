// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make lab`: transfers with a deadline on this machine's kernel, beside the simulator: the framework's Table I, ten
//! times as fast (scenario.toml), under CUBIC by phantom signals and under CDG, each by PID and by model-based control.
//! Root; about half an hour.
//!
//! `cargo bench -p lowtide --bench deadlines -- [CASE ...] [--runs N] [--keep FILE] [--write DOCUMENT]`
//!
//! The kernel's runs take real time. With `--keep` they go to a file, and those that are there already are not made
//! again.

#[path = "../support/kept.rs"]
mod kept;
mod kernel;
mod simulator;
mod spans;
#[path = "../ground_truth/table.rs"]
mod table;

use kept::Kept;
use lowtide_kernel::Need;
use lowtide_sim::scenario::Scenario;
use serde::{Deserialize, Serialize};
use spans::{Span, spans};
use std::{
    env,
    path::{Path, PathBuf},
};
use table::Table;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs on the kernel of each case, one after the other; their median counts.
const KERNEL_RUNS: usize = 2;
/// Runs of the simulator.
const SIMULATOR_RUNS: u64 = 11;

/// CDG as it is in the kernel: it grows as Reno does however near w is to 1, knows that it is paced, and has its losses
/// inflated where delay explains few of the reductions. It ends slow start by delay alone.
const CDG: &[&str] =
    &["flow.background.cc=cdg:blend=off,paced=on,hystart=delay", "flow.background.actuator=native:losses=few"];

/// Noise that a real machine has and the simulator has not: how far apart from a regular beat packets come.
const NOISE: &[&str] = &["bottleneck.jitter=0.2ms", "reverse.jitter=0.2ms"];

/// Name, and what differs from the scenario.
const CASES: [(&str, &[&str], &str); 4] =
    [("cubic-pid", &[], "pid"), ("cubic-mbc", &[], "mbc"), ("cdg-pid", CDG, "pid"), ("cdg-mbc", CDG, "mbc")];

/// What a run gave.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Measured {
    /// What of the transfer had been acknowledged when, and the weight since then.
    course: Vec<Point>,
    /// When all of it had been, in seconds of the scenario, if ever.
    done: Option<f64>,
    /// Part of the time in which a model ruled the weight.
    model: f64,
    /// The longest time for which the machine did not run who should have run, milliseconds.
    stalled_ms: f64,
    /// Tasks that wanted the processor, mean over the last minute of the run.
    load: f64,
}

/// A look at the transfer.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Point {
    /// Seconds of the scenario.
    t: f64,
    bytes: u64,
    weight: f64,
    /// Payload bytes that the other flows of TCP had brought to their receivers.
    others: u64,
    /// Real signals of congestion so far, and phantom ones.
    signals: (u64, u64),
}

struct Arguments {
    cases: Vec<String>,
    runs: usize,
    keep: Option<PathBuf>,
    write: Option<PathBuf>,
}

fn main() -> Result<(), Failure> {
    let arguments = arguments()?;
    if let Some(sentence) = lowtide_kernel::diagnose().verdict(&[Need::Run, Need::OwnLaws, Need::Emulate]) {
        println!("deadlines: skipped: {sentence}");
        return Ok(());
    }
    let spans = spans(&scenario(&[], "pid", &[])?)?;
    let mut table = Table::new(&head(&spans).iter().map(String::as_str).collect::<Vec<_>>());
    for (name, overrides, control) in CASES {
        if !arguments.cases.is_empty() && !arguments.cases.iter().any(|it| it == name) {
            continue;
        }
        let scenarios = [scenario(overrides, control, &[])?, scenario(overrides, control, NOISE)?];
        compare(name, &scenarios, &spans, &arguments, &mut table)?;
    }
    if !table.is_empty() {
        println!("\n{table}");
        arguments.write.iter().try_for_each(|path| table.write(path, "deadlines"))?;
    }
    Ok(())
}

fn scenario(overrides: &[&str], control: &str, noise: &[&str]) -> Result<Scenario, Failure> {
    let control = format!("flow.background.control={control}");
    let overrides: Vec<String> = overrides.iter().chain(noise).map(|it| (*it).to_owned()).chain([control]).collect();
    Ok(Scenario::parse(include_str!("scenario.toml"), Path::new("scenario.toml"), &overrides)?)
}

fn arguments() -> Result<Arguments, Failure> {
    let mut arguments = Arguments { cases: Vec::new(), runs: KERNEL_RUNS, keep: None, write: None };
    let mut words = env::args().skip(1).filter(|word| word != "--bench"); // which cargo adds
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "--runs" => arguments.runs = value()?.parse()?,
            "--keep" => arguments.keep = Some(value()?.into()),
            "--write" => arguments.write = Some(value()?.into()),
            known if CASES.iter().any(|it| it.0 == known) => arguments.cases.push(word),
            _ => return Err(format!("{word}: there is no such case or option").into()),
        }
    }
    Ok(arguments)
}

/// A case on the kernel, and in the simulator without noise and with it.
fn compare(
    name: &str,
    scenarios: &[Scenario; 2],
    spans: &[Span],
    arguments: &Arguments,
    table: &mut Table,
) -> Result<(), Failure> {
    let [scenario, noisy] = scenarios;
    let mut kept = Kept::open(arguments.keep.as_deref())?;
    while kept.runs(name).len() < arguments.runs {
        let measured = kernel::measure(scenario, kept.runs(name).len() as u64)?;
        let Measured { done, stalled_ms, load, .. } = &measured;
        println!("{name}: kernel: done {done:?}, stalled {stalled_ms:.0} ms, load {load:.1}");
        kept.add(name, measured)?;
    }
    let simulate = |scenario| (0..SIMULATOR_RUNS).map(|run| simulator::measure(scenario, run)).collect::<Vec<_>>();
    let (plain, noisy) = (simulate(scenario), simulate(noisy));
    for (side, runs) in [("kernel", kept.runs(name)), ("simulator", &plain), ("… with noise", &noisy)] {
        let signals = |which: fn(&Point) -> u64| {
            let last = runs.iter().map(|run| run.course.last().map_or(0.0, |point| which(point) as f64));
            spread(last, 1.0, 0)
        };
        let mut cells = vec![name.to_owned(), side.to_owned(), done(scenario, runs)];
        cells.extend(spans.iter().map(|span| span.show(runs)));
        cells.extend([
            spread(runs.iter().map(mean_weight), 1.0, 3),
            signals(|point| point.signals.0),
            signals(|point| point.signals.1),
            spread(runs.iter().map(|run| used(scenario, run)), 100.0, 0),
            spread(runs.iter().map(|run| run.model), 100.0, 0),
        ]);
        table.row(&cells.iter().map(String::as_str).collect::<Vec<_>>());
        let weights: Vec<_> = spans.iter().map(|span| span.weights(runs)).collect();
        println!("{name}: {side}: mean weight by span {}", weights.join(", "));
    }
    Ok(())
}

fn head(spans: &[Span]) -> Vec<String> {
    let mut head = vec!["host and control".to_owned(), String::new(), "done, % of the time".to_owned()];
    head.extend(spans.iter().map(Span::head));
    head.extend(
        ["mean w", "real signals", "phantom ones", "link used, %", "by model, % of the time"].map(str::to_owned),
    );
    head
}

/// When it was done, in parts of the time given.
fn done(scenario: &Scenario, runs: &[Measured]) -> String {
    let flow = &scenario.flows[0];
    let (start, after) = (flow.start.as_secs_f64(), flow.deadline.as_ref().expect("it has one").after.as_secs_f64());
    let latest = scenario.duration.as_secs_f64();
    spread(runs.iter().map(|run| (run.done.unwrap_or(latest) - start) / after), 100.0, 1)
}

fn mean_weight(run: &Measured) -> f64 {
    run.course.iter().map(|point| point.weight).sum::<f64>() / run.course.len().max(1) as f64
}

/// Part of what the datagrams leave of the link that was used while the transfer lasted.
fn used(scenario: &Scenario, run: &Measured) -> f64 {
    let (Some(first), Some(last)) = (run.course.first(), run.course.last()) else { return 0.0 };
    let bytes = (last.bytes + last.others) - (first.bytes + first.others);
    bytes as f64 * 8e-6 / (last.t - first.t) / spans::left(scenario)
}

/// The median of some values, and the outermost where there are several.
fn spread(values: impl Iterator<Item = f64>, scale: f64, decimals: usize) -> String {
    let mut values: Vec<f64> = values.map(|value| value * scale).collect();
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    let (least, median, most) = (values[0], (values[last / 2] + values[values.len() / 2]) / 2.0, values[last]);
    match last {
        0 => format!("{median:.decimals$}"),
        _ => format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})"),
    }
}
