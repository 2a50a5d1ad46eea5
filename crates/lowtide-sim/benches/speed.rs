// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast the simulator is: delivered data packets per second of one core, instructions per packet, and ns-3 beside
//! it.
//!
//! Four CUBIC flows, 100 Mbit/s, 20 ms, one bandwidth-delay product of buffer, 100 s simulated, without an observer.
//! ns-3 runs the same dumbbell (`benches/ns3/dumbbell.cc`) right after.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use lowtide_cc::Law;
use lowtide_net::Rate;
use lowtide_sim::{
    Outcome,
    observe::Nobody,
    run,
    scenario::{Bottleneck, Flow, Scenario},
};

/// Simulated seconds of a measured run.
const SECONDS: u64 = 100;
/// Runs of ours; their median counts.
const RUNS: usize = 5;
const RTT: Duration = Duration::from_millis(20);
const MBIT: u64 = 100;
/// Packets of 1500 bytes in one bandwidth-delay product.
const BUFFER: u64 = MBIT * 1_000_000 * 20 / 1000 / 12_000;

fn main() {
    // under valgrind: one run of that many seconds, and nothing else
    if let Some(seconds) = env::var("LOWTIDE_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()) {
        println!("{}", run(&dumbbell(seconds), &mut Nobody).packets);
        return;
    }
    let mut rates: Vec<f64> = (0..RUNS).map(|_| packets_per_second()).collect();
    rates.sort_by(f64::total_cmp);
    let ours = rates[RUNS / 2];
    println!("lowtide-sim: {:.2} million delivered data packets per second of one core", ours / 1e6);
    println!("             (median of {RUNS} runs, {:.2} to {:.2})", rates[0] / 1e6, rates[RUNS - 1] / 1e6);
    match instructions_per_packet() {
        Ok(instructions) => println!("             {instructions:.0} instructions per packet (valgrind)"),
        Err(why) => println!("             instructions not counted: {why}"),
    }
    match ns3_packets_per_second() {
        Ok(theirs) => {
            println!(
                "ns-3:        {theirs:.0} packets per second on the same dumbbell; ours is {:.0} times that",
                ours / theirs
            );
        }
        Err(why) => println!("ns-3:        skipped: {why}"),
    }
}

fn dumbbell(seconds: u64) -> Scenario {
    let law: Law = "cubic".parse().expect("a law");
    let flow = |number| Flow::greedy(&format!("cubic-{number}"), law.clone(), RTT);
    let rate = Rate::from_bits_per_second(MBIT * 1_000_000).expect("above zero");
    Scenario {
        seed: 1,
        duration: Duration::from_secs(seconds),
        measure_from: Duration::ZERO,
        bottlenecks: vec![Bottleneck::new("bottleneck", rate, RTT)],
        reverse: None,
        flows: (1..=4).map(flow).collect(),
        sample_interval: Duration::from_millis(100),
        spans: Vec::new(),
    }
}

fn packets_per_second() -> f64 {
    let scenario = dumbbell(SECONDS);
    let begin = Instant::now();
    let Outcome { packets, .. } = run(&scenario, &mut Nobody);
    packets as f64 / begin.elapsed().as_secs_f64()
}

/// From the difference of two runs, so that the start of the program does not count.
fn instructions_per_packet() -> Result<f64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let count = |seconds: u64| -> Result<(f64, f64), String> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(&program);
        let output = command.env("LOWTIDE_BENCH_SECONDS", seconds.to_string()).output();
        let output = output.map_err(|_| "valgrind is not installed".to_owned())?;
        let said = String::from_utf8_lossy(&output.stderr);
        let collected = said.lines().find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok());
        let packets = String::from_utf8_lossy(&output.stdout).trim().parse().ok();
        collected.zip(packets).ok_or_else(|| format!("valgrind said: {}", said.lines().last().unwrap_or_default()))
    };
    let (short, long) = (count(2)?, count(6)?);
    Ok((long.0 - short.0) / (long.1 - short.1))
}

/// Compiles and runs the same dumbbell in ns-3.
fn ns3_packets_per_second() -> Result<f64, String> {
    let modules = ["ns3-applications", "ns3-internet", "ns3-point-to-point", "ns3-traffic-control"];
    let flags = Command::new("pkg-config").args(["--cflags", "--libs"]).args(modules).output();
    let flags = flags.ok().filter(|output| output.status.success());
    let flags = flags.ok_or("ns-3 is not installed (Debian: apt-get install libns3-dev libgsl-dev pkg-config)")?;
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let program = target_directory().join("ns3-dumbbell");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O2", "-o"]).arg(&program);
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ns3/dumbbell.cc")).args(flags.split_whitespace());
    let compiled = compiler.output().map_err(|error| format!("g++: {error}"))?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    let output = Command::new(&program)
        .args([&format!("--rate={MBIT}Mbps"), "--rtt=20ms", &format!("--buffer={BUFFER}")])
        .args([&format!("--duration={SECONDS}"), "--flows=TcpCubic@0,TcpCubic@0,TcpCubic@0,TcpCubic@0"])
        .output()
        .map_err(|error| error.to_string())?;
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("ns-3: {error}"))?;
    let number = |key: &str| result[key].as_f64().ok_or_else(|| format!("ns-3 printed no {key}"));
    Ok(number("packets")? / number("wall_s")?)
}

fn target_directory() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned();
    fs::create_dir_all(&directory).expect("the target directory");
    directory
}
