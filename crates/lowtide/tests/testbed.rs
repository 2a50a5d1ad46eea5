// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! Scenarios that this kernel runs, and an experiment of the lab that runs on it. What is asserted holds on a busy
//! machine, too.

use lowtide_kernel::Need::{Emulate, OwnLaws, Run};
use lowtide_lab::{Recording, Track};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Fails with the obstacle where the real kernel cannot be used: the test is ignored unless it is included explicitly.
fn needs_kernel() {
    let obstacle = lowtide_kernel::diagnose().verdict(&[Run, OwnLaws, Emulate]);
    assert_eq!(obstacle, None, "this test needs the real kernel");
}

/// What the command says, and whether it succeeded.
fn lowtide(arguments: &[&str]) -> (String, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_lowtide")).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &*String::from_utf8_lossy(&output.stderr);
    (said, output.status.success())
}

fn last(track: &Track, column: &str) -> f64 {
    track.columns[column].last().copied().unwrap()
}

const LINK: &str = "[bottleneck]\nrate = \"8mbit\"\nrtt = \"20ms\"\nbuffer = \"30p\"\n";

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_scenario_becomes_a_recording() {
    needs_kernel();
    let flows = "[[flow]]\nname = \"cdg\"\ncc = \"cdg:g=3,hystart=delay\"\ntcp = { pacing = true }\naccess = \"300mbit\"\nstop = \"6s\"\n\
                 [[flow]]\nname = \"cubic\"\ncc = \"cubic:variant=linux\"\nstart = \"1s\"\nrtt = \"40ms\"\n\
                 [[flow]]\nname = \"sized\"\ncc = \"reno:whole_segments=on\"\nsize = \"200kB\"\nstart = \"1s\"\n\
                 [[flow]]\nname = \"governed\"\ncc = \"cubic:variant=linux,paced=on\"\ntcp = { pacing = true }\nsize = \"300kB\"\ndeadline = \"6s\"\nstart = \"500ms\"\n\
                 [[flow]]\nname = \"download\"\ncc = \"cubic:variant=linux\"\nreceiver = \"tide\"\nweight = 0.5\n\
                 [[flow]]\nname = \"datagrams\"\nsource = \"poisson:rate=500kbit\"\n\
                 [[span]]\nfrom = \"2s\"\nto = \"5s\"\n";
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("a.toml"), format!("duration = \"8s\"\n{LINK}{flows}")).unwrap();
    let (said, well) = lowtide(&["lab", "testbed", &path("a.toml"), "--seed", "3", "-o", &path("a.json")]);
    assert!(well, "{said}");
    let recording = Recording::from_json(&fs::read(path("a.json")).unwrap()).unwrap();
    assert_eq!((recording.times.len(), recording.times.last().copied()), (80, Some(8.0)));
    let names: Vec<&str> = recording.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["cdg", "cubic", "sized", "governed", "download", "datagrams"]);
    // 8 s at 8 Mbit/s: no more than the link carries, and each flow something
    let delivered: Vec<f64> = recording.flows.iter().map(|flow| last(flow, "delivered")).collect();
    assert!(delivered.iter().sum::<f64>() < 8e6 && delivered.iter().all(|bytes| *bytes > 1e5), "{delivered:?}");
    let [cdg, cubic, sized, governed, _download, datagrams] = &recording.flows[..] else { unreachable!() };
    assert_eq!((last(sized, "delivered"), sized.transfers[0].bytes), (2e5, 2e5));
    assert!(sized.facts["finish"] > 1.0 && governed.transfers[0].due == Some(6.5));
    let windows: Vec<f64> = cubic.columns["cwnd"].iter().copied().filter(|cwnd| cwnd.is_finite()).collect();
    assert!(windows.iter().all(|cwnd| (1.0..1000.0).contains(cwnd)), "{windows:?}");
    let round_trips: Vec<f64> = cubic.columns["rtt"].iter().copied().filter(|rtt| rtt.is_finite()).collect();
    assert!(round_trips.iter().all(|rtt| *rtt >= 39.0), "{round_trips:?}");
    assert!(governed.columns["weight"].iter().any(|weight| weight.is_finite()));
    assert!(cdg.columns.contains_key("inner:backoffs"));
    // the path's 10 ms, and no more beside them than a full buffer, twice for a busy machine
    let arrivals = &datagrams.packets.as_ref().unwrap().arrivals;
    let delays = arrivals.iter().map(|packet| packet.arrived - packet.sent);
    assert!(
        arrivals.len() > 100 && delays.clone().all(|delay| (0.01..1.0).contains(&delay)),
        "{:?}",
        delays.collect::<Vec<_>>()
    );
    let shares = cubic.spans.iter().map(|(from, to, share)| (*from, *to, *share > 0.0)).collect::<Vec<_>>();
    assert_eq!(shares, [(2.0, 5.0, true)]);
    let link = &recording.links[0];
    assert!(link.columns["utilisation"].iter().all(|part| (0.0..1.6).contains(part)));
    assert_eq!(link.facts["capacity"], 8e6);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_cannot_run_is_named() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("a.toml"), format!("duration = \"1s\"\n{LINK}[[flow]]\nname = \"a\"\ncc = \"nice\"\n")).unwrap();
    let (said, well) = lowtide(&["lab", "testbed", &path("a.toml"), "-o", &path("a.json")]);
    assert!(!well && said.contains("a: nice is not ported") && !Path::new(&path("a.json")).exists(), "{said}");
}

const EXPERIMENT: &str = r#"
title = "An example"
source = "Nobody's paper"
[scenario]
duration = "20s"
bottleneck = { rate = "8mbit", rtt = "20ms", buffer = "30p" }
[[scenario.flow]]
name = "flow"
count = 2
cc = "{cc}"
[[axis]]
name = "law"
values = [{ label = "Reno", cc = "reno:whole_segments=on" }, { label = "Nice", cc = "nice" }]
[[measure]]
name = "rate"
value = 'mean_rate("flow-*", 1, 20) / 1e6'
[[target]]
id = "E-01"
kind = "quantitative"
claim = "It sends"
band = "more than nothing"
[[target.check]]
what = "rate of {law}"
each = "law"
value = 'typical("rate", here)'
low = 0.1
[on.kernel]
runs = 1
axis = { law = ["Reno"] }
set = ["duration=3s", "flow.flow-*.start=100ms"]
measure = { rate = 'mean_rate("flow-*", 1, 3) / 1e6' }
[on.refused]
place = "kernel"
runs = 1
set = ["duration=3s"]
"#;

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn an_experiment_runs_on_the_kernel() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(directory.path().join("experiments/000")).unwrap();
    fs::write(directory.path().join("experiments/000/example.toml"), EXPERIMENT).unwrap();
    let (experiments, cache, out) = (path("experiments"), path("cache"), path("out"));
    let with = |arguments: &[&str]| {
        let (said, well) = lowtide(&[arguments, &["--experiments", &experiments, "--cache", &cache]].concat());
        assert!(well, "{said}");
        said
    };
    let first = with(&["lab", "run", "E-01", "--on", "kernel"]);
    assert!(first.contains("rate of Reno: ") && first.contains(", simulator "), "{first}");
    assert!(first.contains("not run: flow-1: nice is not ported"), "{first}");
    let again = with(&["lab", "run", "E-01", "--on", "kernel"]);
    assert!(again.contains("0 runs in") && again.contains("rate of Reno: "), "{again}");
    with(&["lab", "run", "E-01"]);
    with(&["lab", "report", "--out", &out]);
    let page = fs::read_to_string(directory.path().join("out/index.html")).unwrap();
    assert!(page.contains("beside the simulator with the same scenario") && page.contains("nice is not ported"));
    let board = fs::read_to_string(directory.path().join("out/scoreboard.json")).unwrap();
    assert!(board.contains("\"elsewhere\"") && board.contains("\"environment\""), "{board}");
}

/// The children of a process, each with its number before its command.
fn children_of(process: u32) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let its = |child: &u32| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        // behind the name: the state, and the parent
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(&process.to_string())
    };
    let named = |child: u32| {
        let command = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
        format!("{child} {}", command.replace('\0', " "))
    };
    all.filter(its).map(named).collect()
}

/// What a process has made and started: its children, and the groups and namespaces that are called after it.
fn things_of(process: u32) -> Vec<String> {
    let mut found = children_of(process);
    let groups = fs::read_to_string("/proc/self/mounts").unwrap();
    let groups = groups.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).unwrap();
    for (directory, name) in
        [(groups.split(' ').nth(1).unwrap(), format!("lowtide-{process}-")), ("/run/netns", format!("lt{process}bed"))]
    {
        let mut all = vec![PathBuf::from(directory)];
        while let Some(directory) = all.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with(&name) {
                    found.push(entry.path().display().to_string());
                } else if entry.file_type().is_ok_and(|it| it.is_dir()) {
                    all.push(entry.path());
                }
            }
        }
    }
    found
}

/// Waits until this holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn nothing_is_left_of_a_run_that_is_ended() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let flow = "[[flow]]\nname = \"cdg\"\ncc = \"cdg:g=3,hystart=delay\"\ntcp = { pacing = true }\n";
    fs::write(path("a.toml"), format!("duration = \"300s\"\n{LINK}{flow}")).unwrap();
    for (signal, all_goes) in [(Signal::SIGTERM, true), (Signal::SIGHUP, true), (Signal::SIGKILL, false)] {
        let testbed = Command::new(env!("CARGO_BIN_EXE_lowtide"))
            .args(["lab", "testbed", &path("a.toml"), "-o", &path("a.json")])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let number = testbed.id();
        // a sender in a group, and two hosts
        wait_until("a sender", || things_of(number).iter().any(|it| it.contains("traffic send")));
        let sender = things_of(number).iter().find_map(|it| it.split(' ').next()?.parse::<u32>().ok()).unwrap();
        assert!(things_of(number).len() >= 4, "{:?}", things_of(number));
        kill(Pid::from_raw(number as i32), signal).unwrap();
        let output = testbed.wait_with_output().unwrap();
        wait_until("the sender has ended", || !Path::new(&format!("/proc/{sender}")).exists());
        if all_goes {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(2) && said.contains("interrupted"), "{signal}: {said}");
            assert_eq!(things_of(number), Vec::<String>::new(), "after {signal}");
        } else {
            clean_up(number);
        }
    }
}

/// What no process can do for itself after SIGKILL.
fn clean_up(process: u32) {
    for thing in things_of(process) {
        match thing.strip_prefix("/run/netns/") {
            Some(name) => drop(Command::new("ip").args(["netns", "delete", name]).status().unwrap()),
            None => fs::remove_dir(&thing).unwrap(),
        }
    }
}

/// A lab that is killed takes along the testbed that runs for it, which ends in order.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_testbed_of_a_lab_ends_with_it() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(directory.path().join("experiments/000")).unwrap();
    let long = EXPERIMENT.replace("duration=3s", "duration=300s");
    fs::write(directory.path().join("experiments/000/example.toml"), long).unwrap();
    let temporary = directory.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut lab = Command::new(env!("CARGO_BIN_EXE_lowtide"))
        .args([
            "lab",
            "run",
            "E-01",
            "--on",
            "kernel",
            "--experiments",
            &path("experiments"),
            "--cache",
            &path("cache"),
        ])
        .env("TMPDIR", &temporary)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let testbed = || {
        let all = things_of(lab.id());
        all.iter().find(|it| it.contains("lab testbed"))?.split(' ').next()?.parse::<u32>().ok()
    };
    wait_until("the testbed, with two hosts", || testbed().is_some_and(|it| things_of(it).len() >= 2));
    let testbed = testbed().unwrap();
    lab.kill().unwrap();
    lab.wait().unwrap();
    wait_until("it has ended in order", || !Path::new(&format!("/proc/{testbed}")).exists());
    assert_eq!(things_of(testbed), Vec::<String>::new());
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}
