// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make lab-paths`: laws on the paths that people have, on this machine's kernel and in the simulator, each in percent
//! of what the kernel's CUBIC has in its place. Root; hours. With `--simulator` only the simulator's side: minutes.
//!
//! `cargo bench -p lowtide --bench paths -- [--only TEXT] [--laws tide] [--traffic comes] …`, see `--help`.
//!
//! With `--keep` the runs go to a file. Those that are there already, of the same kernel and the same code, are not
//! made again.

#[path = "../support/kept.rs"]
mod kept;
mod kernel;
mod links;
#[path = "../support/options.rs"]
mod options;
mod page;
mod simulator;
mod traces;
mod traffic;
#[path = "../support/workers.rs"]
mod workers;

use clap::Parser;
use kept::Kept;
use links::Link;
use lowtide_kernel::Need;
use options::Battery;
use page::{Cells, Results};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, fs, thread, time::Duration};
use traffic::{Quantity, REFERENCE, Traffic};
use workers::{Work, minutes};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Laws on many paths, on this machine's kernel and in the simulator.
#[derive(Debug, Parser)]
#[command(name = "paths")]
struct Options {
    /// Laws in place of CUBIC
    #[arg(long, value_delimiter = ',', default_value = "cdg,ledbatpp,tide")]
    laws: Vec<String>,
    /// What happens on a path
    #[arg(long, value_delimiter = ',', default_value = "comes,short,three")]
    traffic: Vec<Traffic>,
    /// Only paths whose name contains one of these, as in "jitter"
    #[arg(long)]
    only: Vec<String>,
    /// Runs of each cell on the kernel; their median counts
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// The same in the simulator
    #[arg(long, default_value_t = 5)]
    simulator_runs: u64,
    /// No runs on the kernel
    #[arg(long)]
    simulator: bool,
    #[command(flatten)]
    battery: Battery,
}

/// What is compared.
#[derive(Clone, Debug)]
struct Cell {
    link: Link,
    traffic: Traffic,
    /// Of the transfer.
    law: String,
    /// Of the flow that comes.
    foreground: &'static str,
}

/// One run on the kernel.
#[derive(Clone, Debug)]
struct Run {
    cell: Cell,
    /// Which of several; also the seed.
    number: u64,
}

/// What a run gave.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Measured {
    values: BTreeMap<Quantity, f64>,
    /// The longest time for which the machine did not run a thread that was to run, milliseconds.
    stalled_ms: f64,
}

fn main() -> Result<(), Failure> {
    let options = Options::parse();
    if [options.runs, options.simulator_runs, options.battery.parallel as u64].contains(&0) {
        return Err("--runs, --simulator-runs and --parallel are at least 1".into());
    }
    let cells = cells(&options)?;
    let runs = (0..options.runs).flat_map(|number| cells.iter().map(move |cell| Run { cell: cell.clone(), number }));
    let runs: Vec<Run> = runs.collect();
    if options.battery.list {
        cells.iter().for_each(|cell| println!("{cell}"));
        println!("{} runs on the kernel, at least {} minutes", runs.len(), minutes(&runs, options.battery.parallel));
        return Ok(());
    }
    let simulator = simulate(&cells, &options)?;
    let kernel = if options.simulator { None } else { run_on_kernel(&runs, &cells, &options)? };
    let page = page::body(&Results { kernel, simulator });
    println!("\n{page}");
    options.battery.write.iter().try_for_each(|path| page::write(path, &page, options.runs, options.simulator_runs))
}

/// The reference first, as all others are compared with it.
fn cells(options: &Options) -> Result<Vec<Cell>, Failure> {
    let wanted = |link: &Link| options.only.is_empty() || options.only.iter().any(|text| link.name().contains(text));
    let links: Vec<Link> = links::all().into_iter().filter(wanted).collect();
    if links.is_empty() {
        return Err(format!("no path's name contains {}", options.only.join(" or ")).into());
    }
    let mut cells = Vec::new();
    for (traffic, link) in options.traffic.iter().flat_map(|traffic| links.iter().map(move |link| (*traffic, link))) {
        let foregrounds: &[&str] =
            if traffic == Traffic::Comes && link.is_usual() { &["cubic", "reno", "bbr"] } else { &["cubic"] };
        for foreground in foregrounds {
            let laws = [REFERENCE].into_iter().chain(options.laws.iter().map(String::as_str));
            cells.extend(laws.map(|law| Cell { link: link.clone(), traffic, law: law.to_owned(), foreground }));
        }
    }
    Ok(cells)
}

/// Makes the runs on the kernel that are not kept. `None`: it cannot run here.
fn run_on_kernel(runs: &[Run], cells: &[Cell], options: &Options) -> Result<Option<Cells>, Failure> {
    if let Some(sentence) = lowtide_kernel::diagnose().verdict(&[Need::Run, Need::OwnLaws, Need::Emulate]) {
        println!("paths: the kernel is skipped: {sentence}");
        return Ok(None);
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
    // Of the laws and the emulator, as for recordings of the lab.
    let key = |run: &Run| format!("{run}, kernel {release}, code {}", lowtide_testbed::VERSION);
    let mut kept = Kept::open(options.battery.keep.as_deref())?;
    let left: Vec<Run> = runs.iter().filter(|run| kept.runs(&key(run)).is_empty()).cloned().collect();
    let (all, mut count) = (left.len(), 0);
    let least = minutes(&left, options.battery.parallel);
    println!("paths: {all} runs of {} are left on the kernel, at least {least} minutes", runs.len());
    workers::work(left, options.battery.parallel, |run, measured| {
        count += 1;
        println!("[{count}/{all}] {run}: {}, stalled for {:.0} ms", page::show(&measured.values), measured.stalled_ms);
        kept.add(&key(run), measured)
    })?;
    let of_cell = |cell: &Cell| {
        let numbers = (0..options.runs).map(|number| key(&Run { cell: cell.clone(), number }));
        (cell.clone(), numbers.flat_map(|key| kept.runs(&key).to_vec()).map(|run| run.values).collect())
    };
    Ok(Some(Cells(cells.iter().map(of_cell).collect())))
}

/// All cells in the simulator, as many at a time as there are processors.
fn simulate(cells: &[Cell], options: &Options) -> Result<Cells, Failure> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let part = cells.len().div_ceil(workers).max(1);
    let simulate = |cells: &[Cell]| -> Result<Vec<_>, Failure> {
        let folder = tempfile::tempdir()?;
        let run = |cell: &Cell, number| -> Result<_, Failure> {
            let scenario = cell.scenario(folder.path(), number).map_err(|error| format!("{cell}: {error}"))?;
            Ok(cell.traffic.measure(&cell.link, &simulator::course_of(scenario)))
        };
        let all = |cell: &Cell| -> Result<_, Failure> {
            let runs = (0..options.simulator_runs).map(|number| run(cell, number));
            Ok((cell.clone(), runs.collect::<Result<_, _>>()?))
        };
        cells.iter().map(all).collect()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = cells.chunks(part).map(|cells| scope.spawn(move || simulate(cells))).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a simulation panicked")??);
        }
        Ok(Cells(all))
    })
}

impl Cell {
    fn scenario(&self, folder: &std::path::Path, number: u64) -> Result<lowtide_sim::scenario::Scenario, Failure> {
        self.traffic.scenario(&self.link, &self.law, self.foreground, folder, number)
    }
}

impl Work for Run {
    type Measured = Measured;

    fn is_heavy(&self) -> bool {
        self.cell.link.is_heavy()
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.cell.traffic.duration(&self.cell.link) + 3.0)
    }

    fn measure(&self) -> Result<Measured, Failure> {
        let (folder, cell) = (tempfile::tempdir()?, &self.cell);
        // the model of BBR is not the kernel's
        let laws = (cell.foreground == "bbr").then(|| ("flow".to_owned(), "bbr".to_owned()));
        let laws = laws.into_iter().collect();
        let (course, stalled_ms) = kernel::course_of(cell.scenario(folder.path(), self.number)?, laws, cell.link.busy)?;
        Ok(Measured { values: cell.traffic.measure(&cell.link, &course), stalled_ms })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}, {}", self.link.name(), self.traffic, self.law)?;
        if self.foreground == "cubic" { Ok(()) } else { write!(f, " beside {}", self.foreground) }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, run {}", self.cell, self.number + 1)
    }
}
