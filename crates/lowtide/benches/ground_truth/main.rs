// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make lab-truth`: the simulator beside ground truth that is not its own. The scenarios of this folder, in the
//! simulator and on this machine's kernel through the emulator; then pairs of laws in the simulator and in ns-3. Root;
//! about half an hour.
//!
//! `cargo bench -p lowtide --bench ground_truth -- [kernel] [ns3] [SCENARIO ...] [--runs N] [--keep FILE] [--write
//! DOCUMENT]`
//!
//! The kernel's runs take real time. With `--keep` they go to a file, and those that are there already are not made
//! again: after a change of the simulator its side is measured anew in seconds.

#[path = "../support/kept.rs"]
mod kept;
mod kernel;
mod ns3;
mod simulator;
mod table;

use kept::Kept;
use lowtide_sim::scenario::{Flow, Scenario};
use serde::{Deserialize, Serialize};
use std::{
    env,
    path::{Path, PathBuf},
};
use table::Table;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs on the kernel, one after the other; their median counts.
const KERNEL_RUNS: usize = 3;
/// A run in which the machine stood still for longer is made again,
const STALL_MS: f64 = 10.0;
/// so often in a scenario.
const REPETITIONS: usize = 1;
/// Runs of the simulator.
const SIMULATOR_RUNS: u64 = 21;
/// How far apart the two may be.
const BAND: f64 = 0.15;

const SCENARIOS: [(&str, &str); 10] = [
    ("reno-alone", include_str!("scenarios/reno-alone.toml")),
    ("cubic-alone", include_str!("scenarios/cubic-alone.toml")),
    ("cubic-pair", include_str!("scenarios/cubic-pair.toml")),
    ("reno-cubic", include_str!("scenarios/reno-cubic.toml")),
    ("shallow", include_str!("scenarios/shallow.toml")),
    ("rtt-unfairness", include_str!("scenarios/rtt-unfairness.toml")),
    ("loss-0.1", include_str!("scenarios/loss-0.1.toml")),
    ("loss-1", include_str!("scenarios/loss-1.toml")),
    ("codel", include_str!("scenarios/codel.toml")),
    ("step-ecn", include_str!("scenarios/step-ecn.toml")),
];

/// What a run gave, over its measured span.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Measured {
    /// Payload of each flow, Mbit/s.
    rates: Vec<f64>,
    /// Mean queueing delay of all packets, milliseconds.
    queue_ms: f64,
    /// Packets that the queue dropped.
    dropped: u64,
    /// Packets marked.
    marked: u64,
    /// The longest time for which the machine did not run who should have run, milliseconds.
    stalled_ms: f64,
}

struct Arguments {
    words: Vec<String>,
    runs: usize,
    keep: Option<PathBuf>,
    write: Option<PathBuf>,
}

fn main() -> Result<(), Failure> {
    let arguments = arguments()?;
    let wanted = |word: &str| arguments.words.is_empty() || arguments.words.iter().any(|it| it == word);
    if let Some(sentence) = obstacle() {
        println!("kernel: skipped: {sentence}");
    } else {
        let scenarios = SCENARIOS.iter().filter(|(name, _)| wanted("kernel") || wanted(name));
        let mut table = Table::new(&["scenario", "", "kernel", "simulator", "sim/kernel", "within 15 %"]);
        for (name, text) in scenarios {
            compare(name, text, &arguments, &mut table)?;
        }
        if !table.is_empty() {
            println!("\n{table}");
            arguments.write.iter().try_for_each(|path| table.write(path, "kernel"))?;
        }
    }
    if wanted("ns3") {
        match ns3::compare() {
            Ok(table) => {
                println!("\n{table}");
                arguments.write.iter().try_for_each(|path| table.write(path, "ns3"))?;
            }
            Err(why) => println!("ns-3: skipped: {why}"),
        }
    }
    Ok(())
}

fn arguments() -> Result<Arguments, Failure> {
    let mut arguments = Arguments { words: Vec::new(), runs: KERNEL_RUNS, keep: None, write: None };
    let mut words = env::args().skip(1).filter(|word| word != "--bench"); // which cargo adds
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "--runs" => arguments.runs = value()?.parse()?,
            "--keep" => arguments.keep = Some(value()?.into()),
            "--write" => arguments.write = Some(value()?.into()),
            known if ["kernel", "ns3"].contains(&known) || SCENARIOS.iter().any(|it| it.0 == known) => {
                arguments.words.push(word);
            }
            _ => return Err(format!("{word}: there is no such scenario or option").into()),
        }
    }
    Ok(arguments)
}

/// Why the kernel cannot be measured here, if so.
fn obstacle() -> Option<String> {
    let root = nix::unistd::geteuid().is_root();
    let tun = Path::new("/dev/net/tun").exists();
    (!root || !tun).then(|| "it needs root and /dev/net/tun".to_owned())
}

/// A scenario on both sides.
fn compare(name: &str, text: &str, arguments: &Arguments, table: &mut Table) -> Result<(), Failure> {
    let scenario = Scenario::parse(text, Path::new(name), &[])?;
    let mut kept = Kept::open(arguments.keep.as_deref())?;
    let mut again = REPETITIONS;
    while kept.runs(name).len() < arguments.runs {
        let run = kept.runs(name).len();
        let measured = kernel::measure(&scenario, run as u64)?;
        println!("{name}: kernel, run {}: {measured:.3?}", run + 1);
        if measured.stalled_ms > STALL_MS && again > 0 {
            println!("{name}: the machine stood still for {:.0} ms, once more", measured.stalled_ms);
            again -= 1;
        } else {
            kept.add(name, measured)?;
        }
    }
    let labels = labels(&scenario);
    let real: Vec<Measured> = kept.runs(name).iter().map(|run| ranked(&scenario, run)).collect();
    let simulated = (0..SIMULATOR_RUNS).map(|run| ranked(&scenario, &simulator::simulate(&scenario, run)));
    let simulated: Vec<Measured> = simulated.collect();
    let mut first = name;
    let mut row = |what: &str, unit: &str, of: &dyn Fn(&Measured) -> f64| {
        let (real, simulated) = (Spread::of(real.iter().map(of)), Spread::of(simulated.iter().map(of)));
        let ratio = simulated.median / real.median;
        let verdict = if (1.0 / (1.0 + BAND)..=1.0 + BAND).contains(&ratio) { "yes" } else { "**no**" };
        let cells = [first, what, &real.show(unit), &simulated.show(unit), &format!("{ratio:.2}"), verdict];
        println!("{}", cells.join("  "));
        table.row(&cells);
        first = "";
    };
    for (index, label) in labels.iter().enumerate() {
        row(label, "Mbit/s", &|it| it.rates[index]);
    }
    row("queue", "ms", &|it| it.queue_ms);
    let mean = |of: fn(&Measured) -> u64, all: &[Measured]| all.iter().map(of).sum::<u64>() / all.len().max(1) as u64;
    println!(
        "{name}: packets dropped: kernel {}, simulator {}; marked: kernel {}, simulator {}",
        mean(|it| it.dropped, &real),
        mean(|it| it.dropped, &simulated),
        mean(|it| it.marked, &real),
        mean(|it| it.marked, &simulated),
    );
    Ok(())
}

/// Whether two flows differ in nothing but their names and starts.
fn equal(a: &Flow, b: &Flow) -> bool {
    a.transport == b.transport && a.rtt == b.rtt && a.path == b.path
}

/// Which of equal flows gets more is chance; so they go by the rank of their rates.
fn ranked(scenario: &Scenario, run: &Measured) -> Measured {
    let flows = &scenario.flows;
    let mut rates = run.rates.clone();
    for (index, flow) in flows.iter().enumerate() {
        let mut group: Vec<f64> =
            flows.iter().zip(&run.rates).filter(|(other, _)| equal(flow, other)).map(|(_, rate)| *rate).collect();
        group.sort_by(|a, b| b.total_cmp(a));
        rates[index] = group[flows[..index].iter().filter(|other| equal(flow, other)).count()];
    }
    Measured { rates, ..run.clone() }
}

/// What the rates of [`ranked`] are those of.
fn labels(scenario: &Scenario) -> Vec<String> {
    let flows = &scenario.flows;
    let label = |(index, flow): (usize, &Flow)| {
        let same = |flows: &[Flow]| flows.iter().filter(|other| equal(flow, other)).count();
        match (same(&flows[..index]) + 1, same(flows)) {
            (_, 1) => flow.name.clone(),
            (1, _) => "largest rate".to_owned(),
            (rank, of) if rank == of => "smallest rate".to_owned(),
            (rank, _) => format!("rate no. {rank}"),
        }
    };
    flows.iter().enumerate().map(label).collect()
}

/// Where what is built for the comparison goes.
fn target_directory() -> PathBuf {
    option_env!("CARGO_TARGET_TMPDIR").map_or_else(env::temp_dir, PathBuf::from)
}

/// The middle one of some values, and the outermost.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self { least: values[0], median: values[values.len() / 2], most: values[values.len() - 1] }
    }

    fn show(&self, unit: &str) -> String {
        format!("{:.2} {unit} ({:.2} to {:.2})", self.median, self.least, self.most)
    }
}
