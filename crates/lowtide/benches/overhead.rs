// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo bench -p lowtide --bench overhead [-- LAW … [PAIRS]]`: what each law costs where nothing limits the network.
//! iperf3 over a veth pair with 1 and with 100 flows, the kernel's CUBIC plain and the law under `run` at w = 1 in
//! turn, now the one first and now the other, so that the machine's moods meet both. A quarter of an hour for all laws;
//! root.
//!
//! The last column is what the machine does not change: the part of all processor time that our programs in the kernel
//! take themselves, as the kernel counts it (`kernel.bpf_stats_enabled`, which adds to it a little). `kernel:cubic` is
//! the kernel's own under `run`, and `none` is plain CUBIC again: what the machine differs from itself. `down` is the
//! receiving side: iperf3 -R under `run --direction down`, by the receiver's processor time.

#[path = "support/veth.rs"]
mod veth;

use std::{
    env, fs,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use lowtide_emu::Namespace;
use lowtide_kernel::KernelLaw;
use serde_json::Value;

const PAIRS: usize = 5;
const SECONDS: &str = "4";
const NONE: &str = "none";
const DOWN: &str = "down";
const PLAIN: &str = "5201";
const GOVERNED: &str = "5202";

fn main() {
    if let Some(sentence) =
        lowtide_kernel::diagnose().verdict(&[lowtide_kernel::Need::Run, lowtide_kernel::Need::Emulate])
    {
        println!("skipped: {sentence}");
        return;
    }
    let (a, b) = veth::pair("bench");
    let mut server = serve(&b, &[], PLAIN);
    let asked = env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (numbers, laws): (Vec<String>, Vec<String>) = asked.partition(|argument| argument.parse::<usize>().is_ok());
    let pairs = numbers.last().and_then(|number| number.parse().ok()).unwrap_or(PAIRS).max(1);
    let all = || [NONE, "kernel:cubic", DOWN].iter().chain(KernelLaw::OWN).map(|law| (*law).to_owned()).collect();

    println!(
        "{:<14}{:>6}  {:>22}  {:>24}  {:>10}  {:>12}  {:>8}",
        "law", "flows", "plain CUBIC, Gbit/s", "CPU s/GB", "throughput", "CPU per byte", "in BPF"
    );
    for law in if laws.is_empty() { all() } else { laws } {
        compare(&law, pairs, &a, &b);
    }
    stop(&mut server);
}

/// One line for 1 and one for 100 flows: medians, and the medians of the ratios within the pairs.
fn compare(law: &str, pairs: usize, a: &Namespace, b: &Namespace) {
    let how = if law == DOWN { ["--direction", "down"] } else { ["--cc", law] };
    let lowtide = [&[env!("CARGO_BIN_EXE_lowtide"), "run"][..], &how, &["--w-min", "1", "--quiet", "--"]].concat();
    let lowtide: &[&str] = if law == NONE { &[] } else { &lowtide };
    // a law that needs ECN needs it of the receiver, too
    let servers: &[&str] = if law == DOWN { &[] } else { lowtide };
    let mut server = serve(b, servers, GOVERNED);
    let way: &[&str] = if law == DOWN { &["-R"] } else { &[] };
    for flows in ["1", "100"] {
        let plain = || measure(a, &[], PLAIN, flows, way);
        let governed = || measure(a, lowtide, GOVERNED, flows, way);
        // the second of two runs is not always the same, either
        let pair = |number: usize| match number % 2 {
            0 => [plain(), governed()],
            _ => {
                let second = governed();
                [plain(), second]
            }
        };
        let pairs: Vec<[(f64, f64); 2]> = (0..pairs).map(pair).collect();
        let of = |what: fn(&[(f64, f64); 2]) -> f64| median(pairs.iter().map(what).collect());
        println!(
            "{law:<14}{flows:>6}  {:>22.2}  {:>24.2}  {:>10.3}  {:>12.3}  {:>6.1} %",
            of(|[plain, _]| plain.0),
            of(|[plain, _]| plain.1),
            of(|[plain, governed]| governed.0 / plain.0),
            of(|[plain, governed]| governed.1 / plain.1),
            100.0 * in_bpf(a, lowtide, flows, way),
        );
    }
    stop(&mut server);
}

/// iperf3 in the background, under this command.
fn serve(b: &Namespace, prefix: &[&str], port: &str) -> Child {
    let words = [prefix, &["iperf3", "-s", "-p", port]].concat();
    let mut command = Command::new(words[0]);
    let server = b.enter_command(command.args(&words[1..]).stdout(Stdio::null())).spawn().expect("iperf3 is installed");
    thread::sleep(Duration::from_secs(1));
    server
}

/// The part of the processor time of two seconds that BPF programs take.
fn in_bpf(a: &Namespace, prefix: &[&str], flows: &str, way: &[&str]) -> f64 {
    const COUNTED: &str = "/proc/sys/kernel/bpf_stats_enabled";
    let before = fs::read_to_string(COUNTED).expect("Linux 5.1");
    fs::write(COUNTED, "1").expect("root");
    let iperf = ["iperf3", "-c", veth::B, "-p", GOVERNED, "-C", "cubic", "-P", flows, "-t", SECONDS];
    let words = [prefix, &iperf, way].concat();
    let mut command = Command::new(words[0]);
    let mut client = a.enter_command(command.args(&words[1..]).stdout(Stdio::null())).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    let (programs, busy) = (bpf_seconds(), busy_seconds());
    thread::sleep(Duration::from_secs(2));
    let (programs, busy) = (bpf_seconds() - programs, busy_seconds() - busy);
    client.wait().unwrap();
    fs::write(COUNTED, before).unwrap();
    programs / busy
}

/// What all BPF programs of the machine have taken so far.
fn bpf_seconds() -> f64 {
    let output = Command::new("bpftool").args(["prog", "show", "-j"]).output().expect("bpftool is installed");
    let programs: Vec<Value> = serde_json::from_slice(&output.stdout).expect("bpftool prints JSON");
    programs.iter().filter_map(|program| program["run_time_ns"].as_f64()).sum::<f64>() / 1e9
}

/// All processor time but idle time and time waited for devices, since the start of the machine.
fn busy_seconds() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let times = text.lines().next().unwrap().split_whitespace().skip(1).map(|ticks| ticks.parse::<f64>().unwrap());
    times.enumerate().filter(|(at, _)| ![3, 4].contains(at)).map(|(_, ticks)| ticks / 100.0).sum()
}

/// Gbit/s received, and CPU seconds of the program on the near side per GB.
fn measure(a: &Namespace, prefix: &[&str], port: &str, flows: &str, way: &[&str]) -> (f64, f64) {
    let iperf = ["iperf3", "-c", veth::B, "-p", port, "-C", "cubic", "-P", flows, "-t", SECONDS, "-J"];
    let words = [prefix, &iperf, way].concat();
    let mut command = Command::new(words[0]);
    let output = a.enter_command(command.args(&words[1..])).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).expect("iperf3 prints JSON");
    let end = &result["end"];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("iperf3 failed: {result}"));
    let rate = number(&end["sum_received"]["bits_per_second"]);
    let busy = number(&end["cpu_utilization_percent"]["host_total"]) / 100.0 * number(&end["sum_sent"]["seconds"]);
    (rate / 1e9, busy / (number(&end["sum_sent"]["bytes"]) / 1e9))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn stop(server: &mut Child) {
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(server.id() as i32), nix::sys::signal::Signal::SIGTERM);
    let _ = server.wait();
}
