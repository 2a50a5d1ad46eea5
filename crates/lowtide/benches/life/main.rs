// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make life`: the programs that people send and download with, over emulated links on this machine's kernel, with
//! Lowtide and without. Root.
//!
//! `cargo bench -p lowtide --bench life -- [WORD ...] [--runs N] [--jobs N] [--quick] [--write DOCUMENT]`
//!
//! A word is the name of a program, path, law or condition, or `uploads` or `downloads` (axes.rs, programs.rs,
//! pulls.rs); of each of these what is named is run, or all. `--quick` is one path and four programs. So many `--jobs`
//! run at once, each a program on a link of its own.

mod axes;
mod calls;
mod flow;
mod foreground;
mod job;
mod measure;
mod one_flow;
mod page;
mod process;
mod programs;
mod pulls;
mod site;
mod tree;
mod verdict;

use axes::{CONDITIONS, LAWS, Law, ONE_FLOW, PATHS, PLAIN, Path, WAYS, chosen};
use job::{DATA, Job};
use lowtide_kernel::Need;
use measure::Terms;
use page::{Cell, Results};
use programs::{PROGRAMS, Program};
use pulls::PULLS;
use site::Site;
use std::{
    env, fs,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};
use verdict::{Condition, Run, carried, seconds};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const QUICK: [&str; 5] = ["20mbit", "rclone-small", "rsync", "per-second", "in-turn"];

struct Arguments {
    words: Vec<String>,
    runs: usize,
    jobs: usize,
    write: Option<PathBuf>,
}

/// A program on a path, which shares no link with another.
struct Unit {
    program: &'static Program,
    path: &'static Path,
    /// Bytes per second of the foreground alone.
    solo: f64,
}

fn main() -> Result<(), Failure> {
    let arguments = arguments()?;
    if let Some(sentence) = lowtide_kernel::diagnose().verdict(&[Need::Run, Need::OwnLaws, Need::Emulate]) {
        println!("life: skipped: {sentence}");
        return Ok(());
    }
    let (began, words) = (Instant::now(), &arguments.words);
    let mut units = Vec::new();
    let mut solos = String::new();
    let paths = chosen(&PATHS, |path| path.name, words);
    for path in paths {
        let solo = measure::solo(path)?;
        let line = format!("{} ({}): the foreground alone has {:.2} Mbit/s", path.name, path.about, solo * 8e-6);
        println!("{line}");
        solos += &format!("- {line}\n");
        units.extend(programs(words).into_iter().map(|program| Unit { program, path, solo }));
    }
    // neighbours in the queue run at the same time: not all of them on the fastest path
    units.sort_by_key(|unit| all_programs().position(|program| program.name == unit.program.name));
    let results = battery(&units, &arguments)?;
    let page = page(&results, &arguments, &solos, began);
    println!("\n{page}");
    if let Some(path) = &arguments.write {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Both directions.
fn all_programs() -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter().chain(&PULLS)
}

/// Those that have been asked for.
fn programs(words: &[String]) -> Vec<&'static Program> {
    let ways = chosen(&WAYS, |it| it.1, words);
    let all: Vec<&Program> = all_programs().filter(|it| ways.iter().any(|way| way.0 == it.way)).collect();
    chosen(&all, |it| it.name, words).into_iter().copied().collect()
}

fn arguments() -> Result<Arguments, Failure> {
    let mut arguments = Arguments { words: Vec::new(), runs: 1, jobs: 3, write: None };
    let mut words = env::args().skip(1).filter(|word| word != "--bench"); // which cargo adds
    let names =
        all_programs().map(|it| it.name).chain(PATHS.iter().map(|it| it.name)).chain(WAYS.iter().map(|it| it.1));
    let names = names.chain(LAWS.iter().map(|it| it.name)).chain(CONDITIONS.iter().map(|it| it.1));
    let names: Vec<&str> = names.collect();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--runs" => arguments.runs = value()?.parse::<usize>()?.max(1),
            "--jobs" => arguments.jobs = value()?.parse::<usize>()?.max(1),
            // cargo runs this in the crate's directory; people say it from the repository's
            "--write" => arguments.write = Some(PathBuf::from(REPOSITORY).join(value()?)),
            "--quick" => arguments.words.extend(QUICK.map(str::to_owned)),
            known if names.contains(&known) => arguments.words.push(word),
            _ => return Err(format!("{word}: no such option; names are {}", names.join(", ")).into()),
        }
    }
    Ok(arguments)
}

/// All units, so many at once, in their order in the results.
fn battery(units: &[Unit], arguments: &Arguments) -> Result<Results, Failure> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let work = || -> Result<(), Failure> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(unit) = units.get(number) else { return Ok(()) };
                let cells = measure_unit(unit, arguments).map_err(|error| {
                    next.store(units.len(), Ordering::Relaxed); // the others stop after what they are at
                    format!("{} on {}: {error}", unit.program.name, unit.path.name)
                })?;
                done.lock().map_err(|_| "another thread failed")?.push((number, cells));
                println!("[{} of {} programs begun]", (number + arguments.jobs).min(units.len()), units.len());
            }
        };
        let threads: Vec<_> = (0..arguments.jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a measurement failed")?)
    })?;
    let mut done = done.into_inner().map_err(|_| "a measurement failed")?;
    done.sort_by_key(|(number, _)| *number);
    Ok(Results(done.into_iter().flat_map(|(_, cells)| cells).collect()))
}

/// One program on one path: first the yardsticks, which are without Lowtide.
fn measure_unit(unit: &Unit, arguments: &Arguments) -> Result<Vec<Cell>, Failure> {
    let way = unit.program.way;
    let site = Site::start(unit.path, way, unit.program.far)?;
    let shape = (unit.program.shape)(unit.path);
    let data = site.sent(DATA);
    shape.write(&data)?;
    let bytes = tree::size(&data)?;
    let laws: Vec<&Law> =
        chosen(&LAWS, |law| law.name, &arguments.words).into_iter().filter(|it| it.goes(way)).collect();
    let conditions = chosen(&CONDITIONS, |it| it.1, &arguments.words);
    let mut number = 0;
    let mut runs = |condition, law: &Law, plain| {
        let terms = Terms { condition, solo: unit.solo, plain };
        let all: Result<Vec<Run>, Failure> = (0..arguments.runs)
            .map(|_| {
                number += 1;
                let job = Job { name: format!("run-{number}"), shape, bytes };
                let (run, said) = measure::run(&site, unit.path, unit.program, law, &job, &terms)?;
                println!("{}", progress(unit, condition, law, &run, &said));
                Ok(run)
            })
            .collect();
        all
    };
    let alone = runs(Condition::Idle, PLAIN, None)?;
    let plain = Some(seconds(&alone));
    let is_beside = |condition: &Condition| *condition != Condition::Idle;
    let beside = match conditions.iter().any(|(condition, _)| is_beside(condition)) {
        true => runs(Condition::Third, PLAIN, plain)?,
        false => Vec::new(),
    };
    let mut cells = Vec::new();
    for &&(condition, _) in &conditions {
        let cell = |law, runs| Cell { program: unit.program, path: unit.path, condition, law, runs };
        cells.push(cell(PLAIN, if is_beside(&condition) { beside.clone() } else { alone.clone() }));
        if condition == Condition::Third && unit.program.connections > 1 {
            let terms = Terms { condition, solo: unit.solo, plain };
            let limit = terms.limit(unit.path, unit.program, bytes);
            let run = one_flow::run(&site.link, carried(&alone).unwrap_or(bytes), limit, unit.solo)?;
            println!("{}", progress(unit, condition, ONE_FLOW, &run, ""));
            cells.push(cell(ONE_FLOW, vec![run]));
        }
        for &law in laws.iter().filter(|law| law.options.is_some()) {
            cells.push(cell(law, runs(condition, law, plain)?));
        }
    }
    Ok(cells)
}

fn progress(unit: &Unit, condition: Condition, law: &Law, run: &Run, said: &str) -> String {
    let condition = CONDITIONS.iter().find(|it| it.0 == condition).map_or("", |it| it.1);
    let (program, path, law) = (unit.program.name, unit.path.name, law.name);
    let mut line = format!("{program} {path} {condition} {law}: {:?} after {:.1} s", run.end, run.seconds);
    if let Some(kept) = run.kept {
        line += &format!(", the foreground kept {:.1} %", 100.0 * kept);
    }
    if let Some(carried) = run.carried {
        line += &format!(", {carried} bytes over the link");
    }
    if let Some(due) = run.due {
        line += &format!(", {:.1} of {:.0} s", due.took, due.given);
    }
    if said.is_empty() { line } else { format!("{line}: {said}") }
}

fn page(results: &Results, arguments: &Arguments, solos: &str, began: Instant) -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_else(|_| "unknown".to_owned());
    let (kernel, load) = (read("/proc/sys/kernel/osrelease"), read("/proc/loadavg"));
    let words: Vec<String> = arguments.words.iter().map(|word| format!(" {word}")).collect();
    let programs: Vec<String> = programs(&arguments.words)
        .iter()
        .map(|it| format!("- `{}`: {}; connections: {}\n", it.name, it.about, it.connections))
        .collect();
    format!(
        "# Programs\n\n`sudo cargo bench -p lowtide --bench life --{} --runs {} --jobs {}` measured this.\n\n{}, kernel {}, {} processors, load {} at the end; {:.0} minutes; runs of each cell: {}, of which the median \
         is shown.\n\nWhat arrived is compared with what was sent by its SHA-256. A run that takes longer than ten times its time without \
         Lowtide and 10 s, or 120 s, is ended. `plain` is the kernel's CUBIC without Lowtide, `default` what `lowtide run` takes unless told, \
         `bbr-server` the same with a server that sends with BBR (else it has \
         CUBIC), the others are of `--cc`. Cells that break a rule are in bold.\n\n{}\n{}\n{} runs did not do their work.\n\n{}\nPrograms:\n\n{}\n\
         Paths, each with a droptail buffer of one BDP:\n\n{solos}",
        words.concat(),
        arguments.runs,
        arguments.jobs,
        jiff::Zoned::now().date(),
        kernel.trim(),
        thread::available_parallelism().map_or(0, usize::from),
        load.split(' ').next().unwrap_or_default(),
        began.elapsed().as_secs_f64() / 60.0,
        arguments.runs,
        RULES,
        results.verdicts(),
        results.failures(),
        results.tables(),
        programs.concat(),
    )
}

const RULES: &str = "Rules. *Programs*: on an idle link at most 1.15 times the seconds of `plain` and 0.5 s; none gives up there. \
Beside a CUBIC flow with a far deadline, with at most 16 connections at one time: that flow keeps at least 96 %, and none gives up; for more \
connections there is no rule. *Deadlines*: where they are feasible, met in the median \
and no run later than 3 %; no \"on course\" in the last tenth of one that is missed. A transfer is at most one ordinary flow, over however many \
connections. So a deadline is feasible where both are done in 85 % of the time, beside the same foreground: the program without Lowtide, and one \
plain CUBIC connection that carries as many bytes as the program put on the idle link. For a program of one connection the two are the same.\n";
