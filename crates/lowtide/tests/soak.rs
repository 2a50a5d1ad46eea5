// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make soak`: thousands of transfers of random size and deadline, with random faults, while one goes on all the time.
//! Every deadline that was feasible is met or explained, and no memory is lost, neither a process's nor the kernel's.
//! `LOWTIDE_SOAK_MINUTES` is how long, 30 unless given.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    env, fs,
    path::Path,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use lifecycle::{Receiver, Running, children, inside, lowtide, name, needs_kernel, report};
use lowtide_emu::{Config, Emulator};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{RngCore, SeedableRng},
};
use serde_json::Value;

/// Bytes per second of the link.
const LINK: f64 = 100e6 / 8.0;
/// Transfers at the same time.
const WORKERS: u64 = 8;
/// A transfer needs at most this part of what each of them may expect: then its deadline is feasible.
const FEASIBLE: f64 = 0.5;
/// A transfer that waits for a processor for this part of the time that it is given is late for that.
const STARVED: f64 = 0.1;
/// Nothing is compared before caches and pools have filled.
const WARM: Duration = Duration::from_secs(120);

/// What is done to a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    StopController,
    KillController,
    StopProgram,
    EndProgram,
}

impl Fault {
    fn draw(random: &mut Xoshiro256PlusPlus) -> Fault {
        match random.next_u32() % 20 {
            0 => Fault::StopController,
            1 => Fault::KillController,
            2 => Fault::StopProgram,
            3 => Fault::EndProgram,
            _ => Fault::None,
        }
    }

    /// PROGRAM may have ended before it.
    fn befall(self, run: &Running) {
        let send = |pid: i32, signal| {
            let _ = kill(Pid::from_raw(pid), signal);
        };
        let program = || children(run.pid()).first().copied();
        match self {
            Fault::None => {}
            Fault::StopController => {
                send(run.pid(), Signal::SIGSTOP);
                thread::sleep(Duration::from_millis(700));
                send(run.pid(), Signal::SIGCONT);
            }
            Fault::KillController => {
                let left = program();
                send(run.pid(), Signal::SIGKILL);
                if let Some(pid) = left {
                    thread::sleep(Duration::from_millis(300));
                    send(pid, Signal::SIGKILL);
                }
            }
            Fault::StopProgram => {
                if let Some(pid) = program() {
                    send(pid, Signal::SIGSTOP);
                    thread::sleep(Duration::from_millis(300));
                    send(pid, Signal::SIGCONT);
                }
            }
            Fault::EndProgram => {
                if let Some(pid) = program() {
                    send(pid, Signal::SIGTERM);
                }
            }
        }
    }
}

fn between(random: &mut Xoshiro256PlusPlus, least: f64, most: f64) -> f64 {
    least + (most - least) * f64::from(random.next_u32()) / f64::from(u32::MAX)
}

/// What the kernel has allocated and cannot take back, in kB; and of BPF how many programs and maps.
#[derive(Debug, Clone, Copy)]
struct Kernel {
    unreclaimable: f64,
    programs: usize,
    maps: usize,
}

impl Kernel {
    fn now() -> Kernel {
        let listed = |kind: &str| {
            let output = Command::new("bpftool").args([kind, "list", "-j"]).output().expect("bpftool");
            serde_json::from_slice::<Value>(&output.stdout)
                .ok()
                .and_then(|list| Some(list.as_array()?.len()))
                .unwrap_or(0)
        };
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
        Kernel { unreclaimable: field(&meminfo, "SUnreclaim:"), programs: listed("prog"), maps: listed("map") }
    }
}

fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name} in {text}"));
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn resident(pid: i32) -> f64 {
    field(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap(), "VmRSS:")
}

/// How long a process has been ready to run, and has waited for a processor; seconds.
fn waited(pid: i32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    text.split(' ').nth(1)?.parse::<f64>().ok().map(|ns| ns / 1e9)
}

/// What there is to say of a transfer that missed its deadline.
enum Miss {
    Unexplained(String),
    /// The machine had too little time for it.
    Starved(String),
}

/// A transfer; what there is to complain of.
fn transfer(link: &Emulator, to: &Receiver, directory: &Path, random: &mut Xoshiro256PlusPlus) -> Option<Miss> {
    let size = libm::pow(10.0, between(random, 4.0, 6.3)) as u64;
    let least = (size as f64 / (FEASIBLE * LINK / WORKERS as f64)).max(4.0);
    let seconds = (least * between(random, 1.0, 3.0)).ceil();
    let fault = Fault::draw(random);
    let file = directory.join(format!("{:?}.json", thread::current().id()));
    let _ = fs::remove_file(&file);
    let mut command = lowtide(["run", "--quiet", "--deadline"]);
    command.args([format!("+{seconds}s"), "--size".to_owned(), size.to_string()]).arg("--report").arg(&file);
    command.args(["--", env!("CARGO_BIN_EXE_lowtide"), "traffic", "send", "--size", &size.to_string()]);
    command.args(["--to", &to.address.to_string()]);
    let run = Running::start(&mut inside(link.a(), command));
    if fault != Fault::None {
        thread::sleep(Duration::from_secs_f64(between(random, 0.0, 1.5)));
        fault.befall(&run);
    }
    // those of Lowtide and of PROGRAM; a process that has ended has none
    let (mut lowtide_waited, mut program_waited) = (0.0, 0.0_f64);
    let begun = Instant::now();
    while lifecycle::is_alive(run.pid()) && begun.elapsed() < Duration::from_secs(120) {
        lowtide_waited = waited(run.pid()).unwrap_or(lowtide_waited);
        let of_program = children(run.pid()).into_iter().filter_map(waited).fold(0.0, f64::max);
        program_waited = program_waited.max(of_program);
        thread::sleep(Duration::from_millis(200));
    }
    let starved = lowtide_waited + program_waited > STARVED * seconds;
    let ended = run.end_within(Duration::from_secs(1));
    let what = || format!("{size} B in {seconds} s, {fault:?}");
    match fault {
        Fault::KillController | Fault::EndProgram => None,
        _ if !ended.status.success() => Some(Miss::Unexplained(format!("{}: {ended:?}", what()))),
        _ => {
            let report = report(&file);
            let complete = report["acknowledged_bytes"] == size;
            let met = report["outcome"] == "met";
            (!met || !complete).then(|| {
                let finished =
                    &report["series"].as_array().and_then(|rows| rows.last().cloned()).unwrap_or_default()["t"];
                let miss = format!(
                    "{}: {} with {} B, at {finished} s, {lowtide_waited:.2} and {program_waited:.2} s of which without a processor: {}",
                    what(),
                    report["outcome"],
                    report["acknowledged_bytes"],
                    report["announcements"]
                );
                if complete && starved { Miss::Starved(miss) } else { Miss::Unexplained(miss) }
            })
        }
    }
}

#[test]
#[ignore = "half an hour: make soak"]
fn nothing_grows_and_feasible_deadlines_are_met() {
    needs_kernel();
    let minutes: u64 = env::var("LOWTIDE_SOAK_MINUTES").map_or(30, |text| text.parse().expect("whole minutes"));
    let mut config = Config::new(name("soak-a"), name("soak-b"), "100mbit".parse().unwrap(), Duration::from_millis(20));
    config.realtime = true;
    let link = Emulator::start(config).unwrap();
    let receiver = Receiver::start(link.b(), link.b4());
    let directory = tempfile::tempdir().unwrap();
    // one that goes on all the time, over many connections
    let script = format!(
        "while :; do {} traffic send --size 300kB --to {} || exit 1; done",
        env!("CARGO_BIN_EXE_lowtide"),
        receiver.address
    );
    let command = lowtide(["run", "--quiet", "--", "sh", "-c", &script]);
    let long = Running::start(&mut inside(link.a(), command));
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let (complaints, starved) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let warm = WARM.min(Duration::from_secs(60 * minutes) / 4);
    let (mut before, mut resident_before) = (None, 0.0);
    let transfers: u64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (link, receiver, directory) = (&link, &receiver, directory.path());
                let (complaints, starved) = (&complaints, &starved);
                scope.spawn(move || {
                    let mut random = Xoshiro256PlusPlus::seed_from_u64(worker);
                    let mut number = 0;
                    while Instant::now() < end {
                        match transfer(link, receiver, directory, &mut random) {
                            None => {}
                            Some(Miss::Starved(miss)) => {
                                println!("the machine was busy: {miss}");
                                starved.fetch_add(1, Ordering::Relaxed);
                            }
                            Some(Miss::Unexplained(miss)) => {
                                println!("{miss}");
                                complaints.lock().unwrap().push(miss);
                            }
                        }
                        number += 1;
                    }
                    number
                })
            })
            .collect();
        thread::sleep(warm);
        before = Some(Kernel::now());
        resident_before = resident(long.pid());
        workers.into_iter().map(|worker| worker.join().expect("a worker failed")).sum()
    });
    let resident_after = resident(long.pid());
    long.signal(Signal::SIGTERM);
    long.end();
    // the kernel frees what it had in its own time
    thread::sleep(Duration::from_secs(20));
    let (before, after) = (before.expect("measured"), Kernel::now());
    println!(
        "{transfers} transfers, {} late as the machine was busy; the long run had {resident_before} kB at the start and {resident_after} kB at the end",
        starved.into_inner()
    );
    println!("the kernel under load {before:?}, at the end {after:?}");
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{} of {transfers}: {complaints:#?}", complaints.len());
    assert!(resident_after <= 1.2 * resident_before + 2048.0, "the long run grew");
    assert!(after.programs <= before.programs && after.maps <= before.maps, "BPF objects are left");
    assert!(after.unreclaimable <= before.unreclaimable + 64.0 * 1024.0, "the kernel's memory grew");
}
