// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lowtide run` says at the end is about bytes that it saw, and about PROGRAM itself.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    fs,
    io::Read,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use lifecycle::{
    Ended, Receiver, Running, dev_tcp, finish, inside, lowtide, name, namespace, needs_kernel, report, run_script,
};
use lowtide_emu::{Config, Emulator, Namespace};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A run with its report.
struct Run {
    ended: Ended,
    report: Value,
}

struct Place {
    space: Namespace,
    receiver: Receiver,
    directory: TempDir,
}

impl Place {
    fn new(name: &str) -> Place {
        let space = namespace(name);
        let receiver = Receiver::start(&space, Ipv4Addr::LOCALHOST);
        Place { space, receiver, directory: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A line of a script that sends so many bytes.
    fn send(&self, bytes: u64) -> String {
        format!("head -c {bytes} /dev/zero > {}", dev_tcp(self.receiver.address))
    }

    fn run(&self, options: &[&str], script: &str) -> Run {
        run_in(&self.space, &self.directory, options, script)
    }
}

fn run_in(space: &Namespace, directory: &TempDir, options: &[&str], script: &str) -> Run {
    let file = directory.path().join("report.json");
    let options = [options, &["--report", file.to_str().unwrap()]].concat();
    let ended = finish(&mut inside(space, run_script(&options, script)));
    Run { report: report(&file), ended }
}

impl Run {
    fn has(&self, fields: Value) {
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(&self.report[name], value, "{name}: {} {:?}", self.report["outcome"], self.ended);
        }
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn nothing_sent_is_not_met() {
    needs_kernel();
    let place = Place::new("nothing");
    let options = ["--size", "5GB", "--deadline", "+1h"];
    let run = place.run(&options, "true");
    run.has(json!({"outcome": "not-governed", "met": null, "governed_fraction": 0.0, "exit_code": 0}));
    assert_eq!(run.ended.status.code(), Some(0));
    assert!(run.ended.err.contains("not governed: no bytes of the 5.00 GB announced"), "{:?}", run.ended);
    let required = [&options[..], &["--require-governed"]].concat();
    assert_eq!(place.run(&required, "true").ended.status.code(), Some(3));
    assert_eq!(place.run(&required, "exit 7").ended.status.code(), Some(7), "PROGRAM's own failure comes first");
    let all = ["--size", "200kB", "--deadline", "+1h", "--require-governed"];
    let run = place.run(&all, &place.send(200_000));
    run.has(json!({"outcome": "met", "met": true, "governed_fraction": 1.0}));
    assert_eq!(run.ended.status.code(), Some(0));
}

/// A FIN is acknowledged like a byte.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn bytes_are_those_of_the_program() {
    const BYTES: u64 = 100_000;
    needs_kernel();
    let rtt = Duration::from_millis(80);
    let link = Emulator::start(Config::new(name("fin-a"), name("fin-b"), "20mbit".parse().unwrap(), rtt)).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts/closing.py");
    let python = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(&script).args(arguments);
        command
    };
    let directory = tempfile::tempdir().unwrap();
    let (file, host) = (directory.path().join("report.json"), link.b4().to_string());
    for (how, port) in [("half", "9000"), ("both", "9001")] {
        let mut receive =
            link.b().enter_command(&mut python(&["receive", &host, port, how])).stdout(Stdio::piped()).spawn().unwrap();
        receive.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        let mut run = lowtide(["run", "--quiet", "--report", file.to_str().unwrap(), "--", "python3"]);
        run.arg(&script).args(["send", &host, port, &BYTES.to_string(), how]);
        let ended = finish(link.a().enter_command(&mut run));
        assert!(ended.status.success() && receive.wait().unwrap().success(), "{how}: {ended:?}");
        // and sixteen that say how many
        assert_eq!(report(&file)["acknowledged_bytes"], BYTES + 16, "{how}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_was_not_governed_is_told_once() {
    needs_kernel();
    let place = Place::new("once");
    let datagrams = "python3 -c \"import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(200): s.sendto(bytes(1000), ('127.0.0.1', 9))\"";
    for (script, told, hint) in [
        // long enough to be noticed while it runs
        ("exec sleep 10.5", "no bytes of the 1.00 MB announced passed through governed connections; whether", true),
        (datagrams, "governed connections (205.60 kB sent over UDP); whether the deadline was met is not known", false),
    ] {
        let run = place.run(&["--size", "1MB", "--deadline", "+1h"], script);
        run.has(json!({"outcome": "not-governed"}));
        let last = run.ended.err.lines().last().unwrap();
        assert!(last.contains(told) && last.contains("may hand its work to a daemon") == hint, "{last}");
        assert_eq!(run.ended.err.matches("not governed: ").count(), 1, "{:?}", run.ended);
    }
}

/// As ssh does with ControlPersist: PROGRAM has sent most of what was announced and ends; what it left behind keeps an
/// idle connection.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_end_of_the_group_is_not_the_end_of_the_program() {
    needs_kernel();
    let place = Place::new("end");
    let (late, idle) = (place.file("late"), dev_tcp(place.receiver.address));
    let script = format!(
        "{}; (exec 9<>{idle}; sleep 8; printf %100s >&9; touch {}) </dev/null >/dev/null 2>&1 & exit 0",
        place.send(4_000_000),
        late.display()
    );
    let started = Instant::now();
    let run = place.run(&["--size", "5MB", "--deadline", "+5s"], &script);
    assert!(started.elapsed() < Duration::from_secs(8) && !late.exists(), "PROGRAM's end is the end");
    run.has(json!({"outcome": "ended-early", "met": null, "governed_fraction": 0.8, "acknowledged_bytes": 4_000_000}));
    assert!(run.ended.err.contains("ended after 4.00 MB of 5.00 MB"), "{:?}", run.ended);
    assert!(run.ended.err.contains("--wait-group"), "{:?}", run.ended);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_the_program_sent_before_its_end_is_waited_for_and_no_more() {
    needs_kernel();
    let rtt = Duration::from_millis(40);
    let link = Emulator::start(Config::new(name("drain-a"), name("drain-b"), "2mbit".parse().unwrap(), rtt)).unwrap();
    let receiver = Receiver::start(link.b(), link.b4());
    let directory = tempfile::tempdir().unwrap();
    let ended = directory.path().join("ended");
    // a third of a second of the link is in the socket's buffer when PROGRAM ends
    let send = format!(
        "exec 9<>{}; head -c 400000 /dev/zero >&9; date +%s%N > {}",
        dev_tcp(receiver.address),
        ended.display()
    );
    let seconds = |run: &Run| {
        let finished: jiff::Timestamp = run.report["finished"].as_str().unwrap().parse().unwrap();
        let ended: i128 = fs::read_to_string(&ended).unwrap().trim().parse().unwrap();
        (finished.as_nanosecond() - ended) as f64 / 1e9
    };
    let run = run_in(link.a(), &directory, &["--w-min", "1", "--size", "400kB", "--deadline", "+1h"], &send);
    run.has(json!({"outcome": "met", "acknowledged_bytes": 400_000}));
    assert_eq!(receiver.received(), 400_000);
    assert!(seconds(&run) > 0.1, "{:?} {}", run.ended, seconds(&run));
    // a process that is left behind sends on, over the same connection
    let on = "for n in $(seq 400); do printf %1000s >&9; sleep 0.05; done";
    let run =
        run_in(link.a(), &directory, &["--w-min", "1"], &format!("{send}; ({on}) </dev/null >/dev/null 2>&1 & exit 0"));
    let acknowledged = run.report["acknowledged_bytes"].as_u64().unwrap();
    assert!((400_000..500_000).contains(&acknowledged), "{acknowledged} {:?}", run.ended);
    assert!((0.1..10.0).contains(&seconds(&run)), "{:?} {}", run.ended, seconds(&run));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn wait_group_waits_for_what_the_program_leaves_running() {
    needs_kernel();
    let place = Place::new("group");
    let mark = place.file("mark");
    let script = format!("(sleep 0.7; {}; touch {}) & exit 3", place.send(50_000), mark.display());
    let run = place.run(&["--wait-group"], &script);
    assert!(mark.exists(), "the work in its group was still going on");
    run.has(json!({"exit_code": 3, "acknowledged_bytes": 50_000}));
    assert!(run.ended.err.contains("waiting until its group is empty"), "{:?}", run.ended);
}

/// Nothing of ours holds on to what is left behind.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn processes_left_behind_return_to_the_callers_group() {
    needs_kernel();
    let mark = tempfile::tempdir().unwrap();
    let file = mark.path().join("pid");
    let script = format!("sleep 20 & echo $! > {}", file.display());
    let running = Running::start(&mut run_script(&["--quiet"], &script));
    let pid = running.pid();
    running.end();
    let left: i32 = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    let group = |pid: &str| fs::read_to_string(Path::new("/proc").join(pid).join("cgroup")).unwrap();
    let own = |text: String| text.lines().find(|line| line.starts_with("0::")).map(str::to_owned);
    assert_eq!(own(group(&left.to_string())), own(group("self")));
    assert!(lifecycle::groups_of(pid).is_empty());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(left), nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_job_is_expected_to_send_what_it_sent_last() {
    needs_kernel();
    let place = Place::new("last");
    let history = place.file("history.json");
    let history = ["--history", history.to_str().unwrap(), "--name", "night", "--deadline", "+1h"];
    let last = [&history[..], &["--size", "last"]].concat();
    let first = place.run(&last, &place.send(400_000));
    assert!(first.ended.err.contains("no run of this job is on record"), "{:?}", first.ended);
    first.has(json!({"size_bytes": null, "outcome": "met"}));
    // a failure teaches nothing, and neither does a run that was not governed
    place.run(&history[..4], &format!("{}; exit 1", place.send(90_000)));
    place.run(&history[..4], "true");
    let second = place.run(&last, &place.send(50_000));
    second.has(json!({"size_bytes": 400_000, "outcome": "met", "met": true}));
    // it has shrunk, which is known from now on: it needs an eighth of the rate
    let again = place.run(&last, &format!("sleep 1; {}", place.send(50_000)));
    again.has(json!({"outcome": "met"}));
    let needed = |run: &Run| run.report["series"][0]["target_bps"].as_f64().unwrap();
    let part = needed(&again) / needed(&second);
    assert!((0.1..0.15).contains(&part), "{part}");
    // and then grows while it runs
    let third = place.run(&last, &place.send(300_000));
    let size = third.report["size_bytes"].as_u64().unwrap();
    assert!((300_000..=600_000).contains(&size), "{size}");
    third.has(json!({"outcome": "met"}));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_damaged_history_costs_the_estimate_and_not_the_job() {
    needs_kernel();
    let place = Place::new("damaged");
    let file = place.file("history.json");
    let options = ["--history", file.to_str().unwrap(), "--name", "night", "--size", "last", "--deadline", "+1h"];
    fs::write(&file, r#"{"schema": "lowtide-history/1", "jobs": ["#).unwrap();
    let run = place.run(&options, &place.send(400_000));
    run.has(json!({"size_bytes": null, "outcome": "met"}));
    assert!(run.ended.err.contains("history.json: it is damaged (EOF"), "{:?}", run.ended);
    let again = place.run(&options, &place.send(400_000)).report["size_bytes"].as_u64().unwrap();
    assert!((400_000..600_000).contains(&again), "as the last time, and by the last segment more: {again}");
    // a file of another program is no estimate, and is not touched
    fs::write(&file, "root:x:0:0::/root:/bin/bash\n").unwrap();
    let refused = finish(&mut run_script(&options, "echo ran"));
    assert_eq!((refused.status.code(), refused.out.as_str()), (Some(125), ""));
    assert!(refused.sentence().ends_with("history.json: it is no file of Lowtide's; name another one"), "{refused:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn other_protocols_are_not_seen() {
    needs_kernel();
    let place = Place::new("protocols");
    // 253: for experiments, RFC 3692
    for (kind, bytes) in [("SOCK_RAW, 253", 0), ("SOCK_DGRAM", 102_800)] {
        let script = format!(
            "python3 -c \"import socket
s = socket.socket(socket.AF_INET, socket.{kind})
for _ in range(100): s.sendto(bytes(1000), ('127.0.0.1', 9))\""
        );
        let run = place.run(&["--size", "1MB", "--deadline", "+1h"], &script);
        run.has(json!({"outcome": "not-governed", "acknowledged_bytes": 0}));
        let beside = &run.report["not_controlled"];
        assert_eq!(
            (&beside["udp_sent_bytes"], &beside["group_moved_no_bytes"]),
            (&json!(bytes), &json!(bytes == 0)),
            "{kind}"
        );
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn bytes_that_nobody_governed_are_counted_as_such() {
    needs_kernel();
    let place = Place::new("elsewhere");
    let (host, port) = (place.receiver.address.ip(), place.receiver.address.port());
    let script = format!(
        "python3 -c \"import socket
s = socket.socket()
s.setsockopt(6, 13, b'reno')
s.connect(('{host}', {port}))
s.sendall(bytes(500000))\""
    );
    let run = place.run(&["--allow-own-cc", "--size", "500kB", "--deadline", "+1h"], &script);
    run.has(json!({"outcome": "not-governed", "met": null, "governed_fraction": 0.0, "acknowledged_bytes": 500_000}));
}
