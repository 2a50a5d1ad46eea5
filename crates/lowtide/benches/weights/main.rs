// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make lab-weights`: the table of weights. What a greedy transfer under `lowtide run` has beside one unpaced flow of
//! the kernel's CUBIC, at each weight and under each law, in parts of what a second such flow has in its place; and
//! alone on links with jitter. Root; hours.
//!
//! `cargo bench -p lowtide --bench weights -- [--laws tide] [--weights 0.004,1] [--cells 4] [--measure 20] …`, see
//! `--help`.
//!
//! With `--keep` the runs go to a file. Those that are there already, of the same kernel and the same code, are not
//! made again.

mod cells;
#[path = "../support/kept.rs"]
mod kept;
mod link;
#[path = "../support/options.rs"]
mod options;
mod page;
mod verdicts;
#[path = "../support/workers.rs"]
mod workers;

use cells::Cell;
use clap::Parser;
use kept::Kept;
use lowtide_kernel::Need;
use options::Battery;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt, fs, time::Duration};
use verdicts::{Pair, Row, Share};
use workers::{Work, minutes};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The table of weights, on this machine's kernel.
#[derive(Debug, Parser)]
#[command(name = "weights")]
struct Options {
    /// Control laws, as `lowtide run --cc` has them
    #[arg(long, value_delimiter = ',', default_value = "tide,cdg,cubic")]
    laws: Vec<String>,
    /// Weights
    #[arg(long, value_delimiter = ',', default_value = "0.004,0.1,0.25,0.5,1")]
    weights: Vec<f64>,
    /// How many links of the 48 to take; a smaller sample is the beginning of a larger one
    #[arg(long, default_value_t = 24)]
    cells: usize,
    /// Instead of a sample all links of the 48 whose name begins like this, as in "5 Mbit/s, 10 ms"
    #[arg(long)]
    only: Option<String>,
    /// Jitter in milliseconds of the links on which the transfer is alone, at w = 1; "none" for no such link
    #[arg(long, default_value = "5,20")]
    jitter: String,
    /// Seconds from the start of the second flow to the measurement
    #[arg(long, default_value_t = 20)]
    warm: u64,
    /// Seconds measured
    #[arg(long, default_value_t = 60)]
    measure: u64,
    /// Runs of each order; their median counts
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Connections of the transfer
    #[arg(long, default_value_t = 1)]
    connections: usize,
    #[command(flatten)]
    battery: Battery,
}

/// What is measured beside the CUBIC flow.
#[derive(Clone, Debug, PartialEq)]
enum Subject {
    /// A flow of the kernel's CUBIC, unpaced: the yardstick.
    PlainCubic,
    Transfer {
        law: String,
        weight: f64,
    },
}

/// Who is on the link first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    TransferFirst,
    CubicFirst,
    Alone,
}

/// One measurement.
#[derive(Clone, Debug)]
struct Run {
    cell: Cell,
    subject: Subject,
    order: Order,
    /// Connections of a transfer.
    connections: usize,
    /// Which of several; also the seed of the jitter.
    number: u64,
    warm: Duration,
    measure: Duration,
}

/// What a run gave.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Measured {
    /// Payload received of the transfer, or of the flow in its place, Mbit/s.
    transfer: f64,
    /// Of the CUBIC flow beside it.
    beside: Option<f64>,
    /// Part of the link's capacity that was used, by bytes of IP.
    used: f64,
}

fn main() -> Result<(), Failure> {
    let mut options = Options::parse();
    options.weights.sort_by(f64::total_cmp);
    options.weights.dedup();
    if options.weights.iter().any(|weight| !(*weight > 0.0 && *weight <= 1.0)) {
        return Err("a weight is above 0 and at most 1".into());
    }
    if [options.runs, options.measure, options.battery.parallel as u64, options.connections as u64].contains(&0) {
        return Err("--runs, --measure, --parallel and --connections are at least 1".into());
    }
    let plan = plan(&options)?;
    if options.battery.list {
        plan.iter().for_each(|run| println!("{run}"));
        println!("{} runs, at least {} minutes", plan.len(), minutes(&plan, options.battery.parallel));
        return Ok(());
    }
    if let Some(sentence) = lowtide_kernel::diagnose().verdict(&[Need::Run, Need::OwnLaws, Need::Emulate]) {
        println!("weights: skipped: {sentence}");
        return Ok(());
    }
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
    let mut kept = Kept::open(options.battery.keep.as_deref())?;
    let left: Vec<Run> = plan.iter().filter(|run| kept.runs(&key(run, &kernel)).is_empty()).cloned().collect();
    let (all, mut count) = (left.len(), 0);
    println!(
        "weights: {all} runs of {} are left, at least {} minutes",
        plan.len(),
        minutes(&left, options.battery.parallel)
    );
    workers::work(left, options.battery.parallel, |run, measured| {
        count += 1;
        let beside = measured.beside.map_or(String::new(), |rate| format!(" beside {rate:.2}"));
        let used = 100.0 * measured.used;
        println!("[{count}/{all}] {run}: {:.2}{beside} Mbit/s, {used:.0} % of the link used", measured.transfer);
        kept.add(&key(run, &kernel), measured)
    })?;
    let mut tables = Vec::new();
    for law in &options.laws {
        tables.push((law.as_str(), rows(law, &plan, &options, &|run| kept.runs(&key(run, &kernel)))));
    }
    let body = page::body(&tables, &options.weights);
    println!("\n{body}");
    options.battery.write.iter().try_for_each(|path| page::write(path, &body, &options, &kernel))
}

/// All runs, those of a cell together.
fn plan(options: &Options) -> Result<Vec<Run>, Failure> {
    let mut plan = Vec::new();
    let mut seen = BTreeSet::new();
    for number in 0..options.runs {
        for cell in cells(options)? {
            for subject in subjects(&cell, options) {
                for order in orders(&cell) {
                    let (warm, measure) = (Duration::from_secs(options.warm), Duration::from_secs(options.measure));
                    let connections = options.connections;
                    let run = Run { cell, subject: subject.clone(), order: *order, connections, number, warm, measure };
                    if seen.insert(run.to_string()) {
                        plan.push(run);
                    }
                }
            }
        }
    }
    Ok(plan)
}

fn cells(options: &Options) -> Result<Vec<Cell>, Failure> {
    let mut cells = match &options.only {
        Some(name) => cells::all().into_iter().filter(|cell| cell.to_string().starts_with(name)).collect(),
        None => cells::sample(options.cells),
    };
    if let (Some(name), true) = (&options.only, cells.is_empty()) {
        return Err(
            format!("no link's name begins with {name:?}; the first one is {:?}", cells::all()[0].to_string()).into()
        );
    }
    for jitter in options.jitter.split(',').filter(|jitter| *jitter != "none") {
        let jitter = jitter.parse().map_err(|_| format!("{jitter} is not a whole number of milliseconds"))?;
        cells.push(Cell::noisy(jitter));
    }
    Ok(cells)
}

/// Alone on a link only the greatest weight is of interest.
fn subjects(cell: &Cell, options: &Options) -> Vec<Subject> {
    let weights = if cell.alone() { &[1.0] } else { &options.weights[..] };
    let of_law = |law: &String| {
        let law = law.clone();
        weights.iter().map(move |weight| Subject::Transfer { law: law.clone(), weight: *weight })
    };
    [Subject::PlainCubic].into_iter().chain(options.laws.iter().flat_map(of_law)).collect()
}

fn orders(cell: &Cell) -> &'static [Order] {
    if cell.alone() { &[Order::Alone] } else { &[Order::TransferFirst, Order::CubicFirst] }
}

/// The cells of a law.
fn rows<'a>(law: &str, plan: &[Run], options: &Options, results: &dyn Fn(&Run) -> &'a [Measured]) -> Vec<Row> {
    let mut cells: Vec<Cell> = Vec::new();
    for run in plan {
        if !cells.contains(&run.cell) {
            cells.push(run.cell);
        }
    }
    let share = |cell: &Cell, subject: &Subject| {
        let pairs = (0..options.runs).filter_map(|number| {
            let of_this = |run: &&Run| run.cell == *cell && run.subject == *subject && run.number == number;
            mean(&plan.iter().filter(of_this).flat_map(results).collect::<Vec<_>>())
        });
        Share::of(&pairs.collect::<Vec<_>>())
    };
    let row = |cell: Cell| {
        let plain = share(&cell, &Subject::PlainCubic)?;
        let at = |weight: &f64| {
            let subject = Subject::Transfer { law: law.to_owned(), weight: *weight };
            Some((*weight, share(&cell, &subject)?))
        };
        let weights = if cell.alone() { &[1.0] } else { &options.weights[..] };
        Some(Row { cell, plain, shares: weights.iter().filter_map(at).collect() })
    };
    cells.into_iter().filter_map(row).collect()
}

/// Over the orders: who comes late has less, and who comes first has more.
fn mean(runs: &[&Measured]) -> Option<Pair> {
    let mean = |values: &[f64]| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let transfer = mean(&runs.iter().map(|run| run.transfer).collect::<Vec<_>>())?;
    let beside = mean(&runs.iter().filter_map(|run| run.beside).collect::<Vec<_>>());
    Some(Pair { transfer, beside })
}

/// What a run is kept under: all that its result depends on.
fn key(run: &Run, kernel: &str) -> String {
    // Of the laws, the controller and the emulator, as for recordings of the lab.
    format!("{run}, kernel {kernel}, code {}", lowtide_testbed::VERSION)
}

impl Work for Run {
    type Measured = Measured;

    fn is_heavy(&self) -> bool {
        self.cell.heavy()
    }

    fn time(&self) -> Duration {
        self.warm + self.measure + Duration::from_secs(4)
    }

    fn measure(&self) -> Result<Measured, Failure> {
        link::measure(self)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.cell)?;
        match &self.subject {
            Subject::PlainCubic => write!(f, "plain CUBIC")?,
            Subject::Transfer { law, weight } => write!(f, "{law} at w = {weight}")?,
        }
        if matches!(self.subject, Subject::Transfer { .. }) && self.connections > 1 {
            write!(f, " with {} connections", self.connections)?;
        }
        f.write_str(match self.order {
            Order::TransferFirst => ", started first",
            Order::CubicFirst => ", started second",
            Order::Alone => "",
        })?;
        write!(f, ", {} s after {} s, run {}", self.measure.as_secs(), self.warm.as_secs(), self.number + 1)
    }
}
