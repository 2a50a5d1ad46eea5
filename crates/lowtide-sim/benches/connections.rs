// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs with many connections, in a minute: how long they take on an idle link, and with jitter in both directions,
//! and what they leave to a CUBIC flow. The battery of programs (`make life`) asks the same of real ones on the kernel.
//!
//! `cargo bench -p lowtide-sim --bench connections -- [LAW …] [--starts N] [--write FILE]`
//!
//! LAW is `tide` unless given. A link without jitter gives the same run for each seed. So the N starts of a row (31
//! unless given) differ in size by 2 % each, in round-trip time by 1.3 %, and beside CUBIC in when they begin.

use lowtide_cc::Law;
use lowtide_sim::{observe::Nobody, run, scenario::Scenario};
use std::{env, fmt::Write as _, fs, path::Path};

type Failure = Box<dyn std::error::Error>;

/// What a far deadline is worth.
const WEIGHT: f64 = 0.004;
/// What is not done by then counts as this long, seconds.
const GIVEN_UP: f64 = 60.0;
/// The rule of the battery: at most so many times the seconds of CUBIC, and so many seconds more.
const TIMES: f64 = 1.15;
const MORE: f64 = 0.5;
/// The rule beside CUBIC: what it keeps at least.
const KEEPS: f64 = 0.96;
/// CUBIC is alone at first, and then beside the program for so long, seconds.
const ALONE: f64 = 10.0;
const BESIDE: f64 = 12.0;

#[derive(Clone, Copy)]
struct Link {
    mbit: f64,
    rtt_ms: f64,
    more: &'static str,
}

/// Size of each, bytes on 20 Mbit/s and less; how many, and how many at a time.
#[derive(Clone, Copy)]
struct Program {
    size: f64,
    count: u32,
    parallel: u32,
}

const JITTER: &str = "jitter = \"5ms\"";
const BOTH: &str = "jitter = \"5ms\"\nreverse_jitter = \"5ms\"";

const fn link(mbit: f64, rtt_ms: f64, more: &'static str) -> Link {
    Link { mbit, rtt_ms, more }
}

const fn program(size: f64, count: u32, parallel: u32) -> Program {
    Program { size, count, parallel }
}

const IDLE: [Link; 4] = [link(20.0, 40.0, ""), link(5.0, 30.0, ""), link(100.0, 10.0, ""), link(20.0, 40.0, JITTER)];
const IDLE_PROGRAMS: [Program; 6] = [
    program(50e3, 60, 4),
    program(2e6, 4, 4),
    program(600e3, 16, 16),
    program(150e3, 16, 16),
    program(50e3, 100, 8),
    program(20e3, 20, 1),
];
const BUSY: [Link; 5] = [
    link(5.0, 30.0, ""),
    link(5.0, 40.0, "buffer = \"0.5bdp\""),
    link(20.0, 40.0, ""),
    link(100.0, 10.0, ""),
    link(20.0, 40.0, JITTER),
];
const BUSY_PROGRAMS: [Program; 6] = [
    program(90e6, 1, 1),
    program(9e6, 4, 4),
    program(9e6, 16, 16),
    program(50e3, 900, 4),
    program(50e3, 900, 8),
    program(20e3, 900, 1),
];
const NOISY: [(Link, Program); 4] = [
    (link(20.0, 40.0, BOTH), program(50e3, 60, 4)),
    (link(20.0, 40.0, BOTH), program(20e3, 20, 1)),
    (link(20.0, 40.0, BOTH), program(781e3, 16, 16)),
    (link(5.0, 30.0, BOTH), program(12e3, 60, 4)),
];

struct Arguments {
    laws: Vec<String>,
    starts: u32,
    write: Option<String>,
}

fn arguments() -> Result<Arguments, Failure> {
    let mut arguments = Arguments { laws: Vec::new(), starts: 31, write: None };
    let mut words = env::args().skip(1).filter(|word| word != "--bench"); // which cargo adds
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--starts" => arguments.starts = value()?.parse::<u32>()?.max(1),
            "--write" => arguments.write = Some(value()?),
            law => {
                law.parse::<Law>().map_err(|error| error.to_string())?;
                arguments.laws.push(word);
            }
        }
    }
    if arguments.laws.is_empty() {
        arguments.laws.push("tide".to_owned());
    }
    Ok(arguments)
}

/// How much larger the `start`-th of so many is than the middle one, in parts, if each is by `step`.
fn larger(start: u32, starts: u32, step: f64) -> f64 {
    1.0 + step * (f64::from(start) - f64::from(starts / 2))
}

/// One start: the scenario's head, and the program's flow under `law`.
struct Start<'a> {
    link: Link,
    start: u32,
    starts: u32,
    law: &'a str,
}

impl Start<'_> {
    fn head(&self, from: f64, until: f64) -> String {
        let Link { mbit, rtt_ms, more } = self.link;
        let rtt_ms = rtt_ms * larger(self.start, self.starts, 0.013);
        format!(
            "duration = \"{until:.2}s\"\nmeasure_from = \"{from:.2}s\"\n[bottleneck]\nrate = \"{mbit}mbit\"\n\
             rtt = \"{rtt_ms:.3}ms\"\n{more}\n"
        )
    }

    fn flow(&self, program: Program, at: f64) -> String {
        let Program { size, count, parallel } = program;
        let size = (size * larger(self.start, self.starts, 0.02)) as u64;
        format!(
            "[[flow]]\nname = \"program\"\ncc = \"{}\"\nweight = {WEIGHT}\nstart = \"{at:.2}s\"\n\
             source = \"connections:size={size}B,count={count},parallel={parallel}\"\n",
            self.law
        )
    }

    /// Seconds until the program is done on a link of its own.
    fn alone(&self, program: Program) -> Result<f64, Failure> {
        let text = self.head(0.0, 1.0 + GIVEN_UP) + &self.flow(program, 1.0);
        let outcome = run(&self.scenario(&text)?, &mut Nobody);
        Ok(outcome.flows[0].finished_s.map_or(GIVEN_UP, |at| at - 1.0))
    }

    /// Bits per second of a CUBIC flow, with a program beside it or none.
    fn beside(&self, program: Option<Program>) -> Result<f64, Failure> {
        let at = ALONE + 0.13 * f64::from(self.start);
        let text = self.head(at, at + BESIDE) + "[[flow]]\nname = \"foreground\"\ncc = \"cubic\"\n";
        let text = text + &program.map_or_else(String::new, |program| self.flow(program, at));
        Ok(run(&self.scenario(&text)?, &mut Nobody).flows[0].mean_bps)
    }

    fn scenario(&self, text: &str) -> Result<Scenario, Failure> {
        Ok(Scenario::parse(text, Path::new("connections"), &[format!("seed={}", self.start)])?)
    }
}

/// What the starts of a row, and of a table, gave.
#[derive(Default)]
struct Column {
    values: Vec<f64>,
    broke: usize,
}

impl Column {
    fn add(&mut self, value: f64, breaks: bool) {
        self.values.push(value);
        self.broke += usize::from(breaks);
    }

    /// The median, and the value that is so many parts of the way from the least to the greatest.
    fn at(&self, part: f64) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[((sorted.len() - 1) as f64 * part).round() as usize]
    }

    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// Percent of the starts that broke the rule.
    fn broken(&self) -> f64 {
        100.0 * self.broke as f64 / self.values.len() as f64
    }
}

impl Link {
    fn name(&self) -> String {
        let more = self.more.replace(" = ", " ").replace('\n', ", ").replace('"', "");
        let more = if more.is_empty() { more } else { format!(", {more}") };
        format!("{} Mbit/s, {} ms{more}", self.mbit, self.rtt_ms)
    }

    /// Fast links take four times the data, so that connections last longer than a handshake.
    fn program(&self, program: Program) -> Program {
        Program { size: if self.mbit > 50.0 { 4.0 * program.size } else { program.size }, ..program }
    }
}

impl Program {
    fn name(&self) -> String {
        format!("{} × {} kB, {} at a time", self.count, self.size / 1e3, self.parallel)
    }
}

fn header(laws: &[String], first: &str, of: &str) -> String {
    let (names, lines) = (laws.join(" | "), "--:|".repeat(laws.len()));
    format!("\n{first}\n\n| link | program | {of} | {names} |\n|---|---|--:|{lines}\n")
}

/// Seconds on links of the program's own.
fn alone(arguments: &Arguments, rows: &[(Link, Program)], title: &str) -> Result<String, Failure> {
    let Arguments { laws, starts, .. } = arguments;
    let mut page = header(laws, title, "cubic");
    let mut whole: Vec<Column> = laws.iter().map(|_| Column::default()).collect();
    for (link, program) in rows {
        let start = |start, law| Start { link: *link, start, starts: *starts, law };
        let cubic = (0..*starts).map(|it| start(it, "cubic").alone(*program)).collect::<Result<Vec<_>, _>>()?;
        let mut plain = Column::default();
        cubic.iter().for_each(|seconds| plain.add(*seconds, false));
        write!(page, "| {} | {} | {:.2} |", link.name(), program.name(), plain.at(0.5))?;
        for (law, whole) in laws.iter().zip(&mut whole) {
            let mut column = Column::default();
            for (it, cubic) in (0..*starts).zip(&cubic) {
                let (seconds, most) = (start(it, law).alone(*program)?, TIMES * cubic + MORE);
                column.add(seconds, seconds > most);
                whole.add(seconds / most, seconds > most);
            }
            write!(page, " {:.2} ({:.1}) {:.0} % |", column.at(0.5), column.at(1.0), column.broken())?;
        }
        page += "\n";
    }
    let ends: String = whole.iter().map(|it| format!(" {:.3}, {:.1} % |", it.mean(), it.broken())).collect();
    Ok(page + &format!("| all | | |{ends}\n"))
}

/// Percent that a CUBIC flow keeps of what it has alone.
fn beside(arguments: &Arguments) -> Result<String, Failure> {
    let Arguments { laws, starts, .. } = arguments;
    let title = format!(
        "Beside a CUBIC flow, {BESIDE} s from second {ALONE} on. Percent that this keeps of its rate, the median (the \
         least), and how many starts leave it less than {:.0} %.",
        100.0 * KEEPS
    );
    let mut page = header(laws, &title, "Mbit/s alone");
    let mut whole: Vec<Column> = laws.iter().map(|_| Column::default()).collect();
    for link in BUSY {
        let start = |start, law| Start { link, start, starts: *starts, law };
        let rates = (0..*starts).map(|it| start(it, "cubic").beside(None)).collect::<Result<Vec<_>, _>>()?;
        let mut cubic = Column::default();
        rates.iter().for_each(|rate| cubic.add(rate * 1e-6, false));
        for program in BUSY_PROGRAMS {
            write!(page, "| {} | {} | {:.2} |", link.name(), program.name(), cubic.at(0.5))?;
            for (law, whole) in laws.iter().zip(&mut whole) {
                let mut column = Column::default();
                for (it, rate) in (0..*starts).zip(&rates) {
                    let kept = start(it, law).beside(Some(program))? / rate;
                    column.add(100.0 * kept, kept < KEEPS);
                    whole.add(100.0 * kept, kept < KEEPS);
                }
                write!(page, " {:.1} ({:.0}) {:.0} % |", column.at(0.5), column.at(0.0), column.broken())?;
            }
            page += "\n";
        }
    }
    let ends: String = whole.iter().map(|it| format!(" {:.2}, {:.1} % |", it.mean(), it.broken())).collect();
    Ok(page + &format!("| all | the mean | |{ends}\n"))
}

fn main() -> Result<(), Failure> {
    let arguments = arguments()?;
    let rule = format!(
        "Seconds until a program is done, the median (the longest), and how many starts take more than {TIMES} times \
         those of CUBIC and {MORE} s. The last row: the mean of what they take, in parts of that."
    );
    let idle: Vec<_> =
        IDLE.iter().flat_map(|link| IDLE_PROGRAMS.map(|program| (*link, link.program(program)))).collect();
    let mut page = format!(
        "# Programs with many connections, in the simulator\n\n`cargo bench -p lowtide-sim --bench connections -- {} \
         --starts {}` measured this; its head says what.\n",
        arguments.laws.join(" "),
        arguments.starts
    );
    for table in [
        alone(&arguments, &idle, &format!("On an idle link. {rule}"))?,
        alone(&arguments, &NOISY, &format!("On an idle link with jitter in both directions. {rule}"))?,
        beside(&arguments)?,
    ] {
        print!("{table}");
        page += &table;
    }
    if let Some(path) = &arguments.write {
        fs::write(path, page).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}
