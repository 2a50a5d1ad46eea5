// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of laws in the simulator and in ns-3.

use super::{Failure, Measured, Spread, simulator, table::Table, target_directory};
use lowtide_net::{BufferSize, Rate};
use lowtide_sim::scenario::{Bottleneck, Flow, Scenario};
use std::{
    io::Write,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

const DUMBBELL: &str = include_str!("../../../lowtide-sim/benches/ns3/dumbbell.cc");
const MODULES: [&str; 4] = ["ns3-applications", "ns3-internet", "ns3-point-to-point", "ns3-traffic-control"];

const MBIT: u64 = 20;
const RTT: Duration = Duration::from_millis(40);
/// Buffers in packets: a half, one and four bandwidth-delay products.
const BUFFERS: [u64; 3] = [33, 67, 267];
/// The second flow begins here, and means are taken from `FROM` to `END`, seconds.
const LATE: u64 = 10;
const FROM: u64 = 30;
const END: u64 = 90;
const SIMULATOR_RUNS: u64 = 21;

/// A law here and there. Where ns-3's has a setting of its own, ours is set the same.
struct Law {
    ours: &'static str,
    theirs: &'static str,
}

const RIVALS: [Law; 2] = [
    Law { ours: "reno", theirs: "TcpLinuxReno" },
    // ns-3.37 has no Reno-friendly region, and its Hybrid Slow Start waits for a train as long as the round trip
    Law { ours: "cubic:reno_friendly=off,paced=on", theirs: "TcpCubic" },
];
const BACKGROUND: [Law; 3] = [
    Law { ours: "ledbat:slow_start=on,init_cwnd=10", theirs: "TcpLedbat" },
    Law { ours: "lp", theirs: "TcpLp" },
    Law { ours: "vegas", theirs: "TcpVegas" },
];

/// The table, or why there is none.
pub(crate) fn compare() -> Result<Table, Failure> {
    let program = compile()?;
    let mut cases = Vec::new();
    for background in &BACKGROUND {
        for rival in &RIVALS {
            cases.extend(BUFFERS.iter().map(|buffer| (background, rival, *buffer)));
        }
    }
    // two at a time
    let (even, odd): (Vec<_>, Vec<_>) = (0..cases.len()).partition(|index| index % 2 == 0);
    let run_all = |indices: &[usize]| -> Vec<Result<Measured, String>> {
        let one = |&index: &usize| {
            let (background, rival, buffer) = cases[index];
            run(&program, rival, background, buffer).map_err(|error| error.to_string())
        };
        indices.iter().map(one).collect()
    };
    let (even, odd) = thread::scope(|scope| {
        let odd = scope.spawn(|| run_all(&odd));
        (run_all(&even), odd.join().expect("no panic"))
    });
    let (mut even, mut odd) = (even.into_iter(), odd.into_iter());
    let mut table = Table::new(&[
        "laws",
        "buffer",
        "second flow's share: ns-3",
        "simulator",
        "mean queue, ms: ns-3",
        "simulator",
        "link used: ns-3",
        "simulator",
    ]);
    for (index, (background, rival, buffer)) in cases.iter().enumerate() {
        let theirs = if index % 2 == 0 { even.next() } else { odd.next() }.expect("one for each case")?;
        let scenario = scenario(rival, background, *buffer)?;
        let ours: Vec<Measured> = (0..SIMULATOR_RUNS).map(|run| simulator::simulate(&scenario, run)).collect();
        let share = |it: &Measured| 100.0 * it.rates[1] / (it.rates[0] + it.rates[1]);
        let used = |it: &Measured| 100.0 * (it.rates[0] + it.rates[1]) / (MBIT as f64 * 1448.0 / 1500.0);
        let of = |what: &dyn Fn(&Measured) -> f64| Spread::of(ours.iter().map(what));
        let (shares, queues) = (of(&share), of(&|it| it.queue_ms));
        let name = |law: &Law| law.theirs.trim_start_matches("TcpLinux").trim_start_matches("Tcp").to_owned();
        table.row(&[
            &format!("{} beside {}", name(background), name(rival)),
            &format!("{buffer} packets"),
            &format!("{:.1} %", share(&theirs)),
            &format!("{:.1} % ({:.1} to {:.1})", shares.median, shares.least, shares.most),
            &format!("{:.1}", theirs.queue_ms),
            &format!("{:.1}", queues.median),
            &format!("{:.0} %", used(&theirs)),
            &format!("{:.0} %", of(&used).median),
        ]);
    }
    Ok(table)
}

fn scenario(first: &Law, second: &Law, buffer: u64) -> Result<Scenario, Failure> {
    let rate = Rate::from_bits_per_second(MBIT * 1_000_000).expect("above zero");
    let late = Flow { start: Duration::from_secs(LATE), ..Flow::greedy("second", second.ours.parse()?, RTT) };
    Ok(Scenario {
        seed: 1,
        duration: Duration::from_secs(END),
        measure_from: Duration::from_secs(FROM),
        bottlenecks: vec![Bottleneck {
            buffer: BufferSize::Packets(buffer),
            ..Bottleneck::new("bottleneck", rate, RTT)
        }],
        reverse: None,
        flows: vec![Flow::greedy("first", first.ours.parse()?, RTT), late],
        sample_interval: Duration::from_millis(100),
        spans: Vec::new(),
    })
}

fn compile() -> Result<std::path::PathBuf, Failure> {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs"]).args(MODULES).output();
    let flags = flags.ok().filter(|output| output.status.success());
    let flags = flags.ok_or("ns-3 is not installed (Debian: apt-get install libns3-dev libgsl-dev pkg-config g++)")?;
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let program = target_directory().join("ns3-dumbbell");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O2", "-o"]).arg(&program).args(["-x", "c++", "-", "-x", "none"]);
    let mut compiler = compiler.args(flags.split_whitespace()).stdin(Stdio::piped()).spawn()?;
    compiler.stdin.take().expect("a pipe").write_all(DUMBBELL.as_bytes())?;
    if compiler.wait()?.success() { Ok(program) } else { Err("g++ could not compile the dumbbell".into()) }
}

fn run(program: &std::path::Path, first: &Law, second: &Law, buffer: u64) -> Result<Measured, Failure> {
    let output = Command::new(program)
        .args([format!("--rate={MBIT}Mbps"), format!("--rtt={}ms", RTT.as_millis()), format!("--buffer={buffer}")])
        .args([format!("--duration={END}"), format!("--from={FROM}")])
        .arg(format!("--flows={}@0,{}@{LATE}", first.theirs, second.theirs))
        .output()?;
    let result: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("ns-3: {error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let number = |value: &serde_json::Value| value.as_f64().ok_or("ns-3 printed no number");
    let rates: Result<Vec<f64>, _> = (0..2).map(|flow| number(&result["flows"][flow]["mean_bps"])).collect();
    Ok(Measured {
        rates: rates?.iter().map(|rate| rate / 1e6).collect(),
        queue_ms: number(&result["mean_queue_ms"])?,
        dropped: 0,
        marked: 0,
        stalled_ms: 0.0,
    })
}
