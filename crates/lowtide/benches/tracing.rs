// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo bench -p lowtide --bench tracing [-- OTHER]`: what `lowtide trace` costs the laws in the kernel, off and on;
//! and off compared with another build of lowtide, like one from before a change: its path is OTHER. iperf3 over a veth
//! pair, in turn, so that the machine's moods meet all; the time is what the kernel counts of BPF programs. Two
//! minutes; root.

#[path = "support/veth.rs"]
mod veth;

use std::{
    collections::HashSet,
    env,
    os::fd::{FromRawFd, OwnedFd},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use libbpf_rs::{libbpf_sys, query::ProgInfoIter};
use lowtide_emu::Namespace;
use lowtide_kernel::{Need, trace::Traceable};

const LAWS: [&str; 3] = ["cdg", "eclipse", "cubic"];
const ROUNDS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_secs(3);

/// A build of lowtide, with or without a trace.
struct Way<'a> {
    name: &'static str,
    lowtide: &'a str,
    traced: bool,
}

fn main() {
    if let Some(sentence) = lowtide_kernel::diagnose().verdict(&[Need::Run, Need::OwnLaws, Need::Emulate]) {
        println!("skipped: {sentence}");
        return;
    }
    // SAFETY: a system call with an integer; the descriptor is ours alone, and counting ends with it.
    let _counting = unsafe { OwnedFd::from_raw_fd(libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME)) };
    let (this, other) = (env!("CARGO_BIN_EXE_lowtide"), env::args().skip(1).find(|it| !it.starts_with("--")));
    let mut ways =
        vec![Way { name: "off", lowtide: this, traced: false }, Way { name: "on", lowtide: this, traced: true }];
    if let Some(other) = &other {
        ways.push(Way { name: "other", lowtide: other, traced: false });
    }
    let (a, b) = veth::pair("trace");
    let mut server = Command::new("iperf3");
    let mut server = b
        .enter_command(server.args(["-s"]).stdout(Stdio::null()).stderr(Stdio::null()))
        .spawn()
        .expect("iperf3 is installed");
    thread::sleep(Duration::from_millis(500));
    for law in LAWS {
        let mut costs = vec![Vec::new(); ways.len()];
        for _ in 0..ROUNDS {
            for (way, costs) in ways.iter().zip(&mut costs) {
                costs.push(measure(&a, law, way));
            }
        }
        print!("{law}:");
        for (way, own) in ways.iter().zip(&costs) {
            let ratio = median(own.iter().zip(&costs[0]).map(|(own, off)| own / off).collect());
            print!("  {} {:.0} ns ({ratio:.3})", way.name, median(own.clone()));
        }
        println!("   per segment or ACK seen, median of {ROUNDS}; ratio to off in the same round");
    }
    stop(&mut server);
}

/// Nanoseconds of its programs for each run of the one that sees every ACK, or every segment where the law is the
/// kernel's.
fn measure(a: &Namespace, law: &str, way: &Way<'_>) -> f64 {
    let before: HashSet<u32> = ProgInfoIter::default().map(|program| program.id).collect();
    let mut run = Command::new(way.lowtide);
    run.args(["run", "--cc", law, "--w-min", "1", "--quiet", "--", "iperf3", "-c", veth::B, "-t", "60"]);
    let mut run = a.enter_command(run.stdout(Stdio::null()).stderr(Stdio::null())).spawn().expect("lowtide runs");
    let count = || {
        let ours = ProgInfoIter::default().filter(|program| !before.contains(&program.id));
        ours.fold((0, 0), |(time, runs), program| {
            let name = program.name.to_string_lossy();
            let counts = match law {
                "cubic" => name == "lt_egress",
                _ => name.contains("_acked"), // the kernel cuts names
            };
            (time + program.run_time_ns, runs + if counts { program.run_cnt } else { 0 })
        })
    };
    until(|| count().1 > 100);
    let mut trace = way.traced.then(|| {
        let mut trace = Command::new(way.lowtide);
        trace.arg("trace").stdout(Stdio::null()).stderr(Stdio::null());
        let trace = trace.spawn().expect("lowtide traces");
        until(|| Traceable::all().unwrap().iter().any(|source| source.is_traced().unwrap()));
        trace
    });
    thread::sleep(WARM_UP);
    let start = count();
    thread::sleep(MEASURED);
    let end = count();
    if let Some(trace) = &mut trace {
        assert!(trace.try_wait().expect("it is ours").is_none(), "the trace has ended");
        stop(trace);
    }
    stop(&mut run);
    (end.0 - start.0) as f64 / (end.1 - start.1) as f64
}

fn until(question: impl Fn() -> bool) {
    let started = Instant::now();
    while !question() {
        assert!(started.elapsed() < Duration::from_secs(30), "it does not begin");
        thread::sleep(Duration::from_millis(50));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn stop(process: &mut Child) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(process.id() as i32), nix::sys::signal::Signal::SIGTERM);
    let _ = process.wait();
}
