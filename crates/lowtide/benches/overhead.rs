// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo bench -p lowtide --bench overhead`: what `run` costs where nothing limits the network. iperf3 over a veth pair, plain CUBIC and
//! `run --cc cubic` at w = 1 in turn, so that the machine's moods meet both. About a minute; root.

#[path = "support/veth.rs"]
mod veth;

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use lowtide_emu::Namespace;
use serde_json::Value;

const PAIRS: usize = 5;
const SECONDS: &str = "5";

fn main() {
    if let Some(sentence) =
        lowtide_kernel::diagnose().verdict(&[lowtide_kernel::Need::Run, lowtide_kernel::Need::Emulate])
    {
        println!("skipped: {sentence}");
        return;
    }
    let (a, b) = veth::pair("bench");
    let mut server = Command::new("iperf3");
    let mut server = b.enter_command(server.args(["-s"]).stdout(Stdio::null())).spawn().expect("iperf3 is installed");
    thread::sleep(Duration::from_millis(500));

    let mut throughput = Vec::new();
    let mut cpu = Vec::new();
    for pair in 1..=PAIRS {
        let plain = measure(&a, &[]);
        let options = ["run", "--cc", "cubic", "--w-min", "1", "--quiet", "--"];
        let governed = measure(&a, &[&[env!("CARGO_BIN_EXE_lowtide")], &options[..]].concat());
        println!(
            "pair {pair}: plain {:.2} Gbit/s, {:.2} CPU s/GB; run {:.2} Gbit/s, {:.2} CPU s/GB",
            plain.0, plain.1, governed.0, governed.1
        );
        throughput.push(governed.0 / plain.0);
        cpu.push(governed.1 / plain.1);
    }
    println!("median ratios, run to plain: throughput {:.3}, CPU per byte {:.3}", median(throughput), median(cpu));
    stop(&mut server);
}

/// Gbit/s received, and CPU seconds of the sending host per GB.
fn measure(a: &Namespace, prefix: &[&str]) -> (f64, f64) {
    let iperf = ["iperf3", "-c", veth::B, "-C", "cubic", "-t", SECONDS, "-J"];
    let words = [prefix, &iperf].concat();
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
