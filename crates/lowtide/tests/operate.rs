// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! Transfers that run are seen and changed from outside: `lowtide status`, `set`, `pause`, `resume`.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::Ipv4Addr,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
        process::CommandExt,
    },
    path::PathBuf,
    time::{Duration, Instant},
};

use lifecycle::{
    Ended, Receiver, Running, cubic_flow, dev_tcp, finish, inside, is_documented, lowtide, name, namespace,
    needs_kernel, public_copy, report, run_script, sockets_to, transfer_status, trickle, until,
};
use lowtide::operate::directory::Directory;
use lowtide_deadline::{NOMINAL_INTERVAL, update_interval};
use lowtide_emu::{Config, Emulator, Namespace};
use nix::{sys::signal::Signal, unistd::User};
use serde_json::Value;

/// What `--json` has.
const SOCKET_PAGE: &str = include_str!("../../../docs/control-socket.md");

fn ask(words: &[&str]) -> Ended {
    finish(&mut lowtide(words))
}

/// A transfer's status, once it answers.
fn status(transfer: &str) -> Value {
    until("the transfer's status", || transfer_status(transfer))
}

fn number(status: &Value, field: &str) -> f64 {
    status[field].as_f64().unwrap_or_else(|| panic!("{field} of {status}"))
}

fn socket_of(transfer: &str) -> PathBuf {
    format!("/run/lowtide/control/{transfer}.sock").into()
}

/// A transfer of some kB/s that lasts until it is ended.
fn long(space: &Namespace, receiver: &Receiver, options: &[&str]) -> Running {
    Running::start(&mut inside(space, run_script(options, &trickle(&[receiver.address]))))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_transfer_is_seen_and_changed_while_it_runs() {
    needs_kernel();
    let space = namespace("operate");
    let receiver = Receiver::start(&space, Ipv4Addr::LOCALHOST);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let job = name("operate");
    let run = long(&space, &receiver, &["--name", &job, "--report", file.to_str().unwrap()]);

    let first = status(&job);
    assert_eq!((first["kind"].as_str(), first["law"].as_str()), (Some("run"), Some("tide")));
    assert_eq!((&first["pid"], &first["program"]), (&Value::from(run.pid()), &Value::from("bash")));
    assert_eq!(first["deadline"], Value::Null);
    is_documented(&first, SOCKET_PAGE);
    until("bytes", || (number(&status(&job), "acknowledged_bytes") > 1e5).then_some(()));
    assert!(ask(&["status"]).out.contains(&format!("{job}: ")), "it is among all of them");
    let watch = Running::start(&mut lowtide(["status", &job, "--watch", "--json"]));
    until("a line each second", || (watch.out().lines().count() >= 2).then_some(()));
    let seen = watch.out();
    let seen = seen.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let seen: Vec<_> = seen.map(|all| number(&all["transfers"][0], "acknowledged_bytes")).collect();
    assert!(seen[1] > seen[0], "{seen:?}");
    drop(watch);
    let metrics = ask(&["status", &job, "--openmetrics"]).out;
    assert!(metrics.contains(&format!("lowtide_connections{{name=\"{job}\"}} 1\n")), "{metrics}");

    for (options, part) in [
        (&["--deadline", "+2h"][..], "a deadline needs a size"),
        (&["--size", "1kB"], "have arrived already"),
        (&["--w-max", "3"], "--w-max above 1 needs --cc cdg"),
        (&["--w-max", "0.001"], "--w-max"),
        (&["--max-rate", "1mbit", "--min-rate", "2mbit"], "is above the limit"),
        (&["--deadline", "2020-01-01T00:00:00Z"], "in the past"),
        (&[], "nothing to set"),
    ] {
        let refused = ask(&[&["set", &job][..], options].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(refused.sentence().contains(part), "{options:?}: {refused:?}");
    }
    assert_eq!(status(&job)["size_bytes"], Value::Null, "what is refused changes nothing");

    let set = ask(&["set", &job, "--deadline", "+2h", "--remaining", "80GB", "--w-max", "0.5", "--min-rate", "2mbit"]);
    assert!(set.status.success() && set.out.contains("at least 2.00 Mbit/s"), "{set:?}");
    let changed = status(&job);
    let left = number(&changed, "size_bytes") - number(&changed, "acknowledged_bytes");
    assert!((left - 80e9).abs() < 1e7, "{changed}");
    let due: jiff::Timestamp = changed["deadline"].as_str().unwrap().parse().unwrap();
    let away = due.duration_since(jiff::Timestamp::now()).as_secs_f64();
    assert!((7000.0..7200.0).contains(&away), "{away}");
    assert_eq!((number(&changed, "w_max"), number(&changed, "min_rate_bps")), (0.5, 2e6));
    // 80 GB in two hours, less what the aim lies before them
    assert!((88e6..110e6).contains(&number(&changed, "needed_bps")), "{changed}");
    assert!(ask(&["set", &job, "--deadline", "none", "--min-rate", "none"]).status.success());
    assert_eq!(status(&job)["needed_bps"], Value::Null);

    assert!(ask(&["detach", &job]).sentence().contains("started by lowtide run"));
    run.signal(Signal::SIGTERM);
    let ended = run.end();
    let report = report(&file);
    is_documented(&report, include_str!("../../../docs/report.md"));
    let seconds = |field: &str| report[field].as_f64();
    let started: jiff::Timestamp = report["started"].as_str().unwrap().parse().unwrap();
    assert!((seconds("started_unix_s").unwrap() - started.as_millisecond() as f64 / 1e3).abs() < 0.01);
    assert!(seconds("finished_unix_s") >= seconds("started_unix_s") && seconds("deadline_unix_s").is_none());
    let told: Vec<_> = report["changes"].as_array().unwrap().iter().map(|it| it["what"].clone()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].as_str().unwrap().contains("least rate 2.00 Mbit/s, greatest weight 0.5"), "{told:?}");
    assert!(ended.err.contains("changed while it runs: no deadline, no least rate"), "{ended:?}");
    assert!(!socket_of(&job).exists(), "its socket goes with it");
    let gone = ask(&["status", &job]);
    let others = format!("there is no transfer named \"{job}\"; there are: ");
    let none = format!("no transfer is running; so there is none named \"{job}\"");
    assert!([others, none].iter().any(|part| gone.sentence().contains(part)), "{gone:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn frames_that_are_none_are_refused_and_others_may_not_ask() {
    needs_kernel();
    let space = namespace("frames");
    let receiver = Receiver::start(&space, Ipv4Addr::LOCALHOST);
    let job = name("frames");
    let run = long(&space, &receiver, &["--name", &job, "--cc", "cubic"]);
    status(&job);

    let say = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(socket_of(&job)).unwrap();
        let _ = stream.write_all(bytes); // it may be refused before it is all there
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line); // one that was refused in the middle may be reset
        line
    };
    let huge = vec![b'{'; 1 << 20];
    for bytes in [&b"\n"[..], b"GET / HTTP/1.1\r\n\r\n", b"{\"lowtide\":9}\n", b"\xff\xfe\n", &huge] {
        let answer = say(bytes);
        let answer: Value =
            if bytes.len() > 9999 && answer.is_empty() { continue } else { serde_json::from_str(&answer).unwrap() };
        assert_eq!(answer["ok"], false, "{answer}");
        assert!(!answer["error"].as_str().unwrap().is_empty() && answer["status"].is_null());
    }
    // a client that sends nothing delays no other client, and neither do many
    let idle: Vec<_> = (0..40).map(|_| UnixStream::connect(socket_of(&job)).unwrap()).collect();
    let asked = Instant::now();
    status(&job);
    assert!(asked.elapsed() < Duration::from_secs(10));
    drop(idle);

    let about = |path: &str| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(about("/run/lowtide/control"), 0o700);
    assert_eq!(about(socket_of(&job).to_str().unwrap()), 0o600);
    let nobody = User::from_name("nobody").unwrap().unwrap();
    let (_place, copy) = public_copy();
    let as_nobody = |words: &[&str]| {
        let mut command = std::process::Command::new(&copy);
        command.args(words).env_remove("XDG_RUNTIME_DIR").uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw());
        finish(&mut command)
    };
    for words in [&["status", &job][..], &["pause", &job], &["set", &job, "--w-max", "1"]] {
        let refused = as_nobody(words);
        assert!(!refused.status.success() && refused.out.is_empty(), "{words:?}: {refused:?}");
    }
    // and not with the path itself, if the directory can be entered
    let moved = tempfile::tempdir().unwrap();
    fs::set_permissions(moved.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let open = moved.path().join("open.sock");
    fs::hard_link(socket_of(&job), &open).ok();
    if open.exists() {
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        // the answer first: what is sent to a connection that is refused may come too late for it
        let script = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                      print(s.makefile().readline(), flush=True); \
                      s.sendall(b'{\"lowtide\":1,\"command\":\"pause\"}\\n')";
        let mut python = std::process::Command::new("python3");
        python.args(["-c", script, open.to_str().unwrap()]);
        let answer = finish(python.uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw())).out;
        assert!(answer.contains("only the owner of a transfer, and root, may ask"), "{answer}");
    }
    assert_eq!(status(&job)["paused"], false);
    drop(run);
}

/// How many descriptors a process may have from now on; as many as it ever could unless given.
fn limit_files(pid: i32, files: Option<u64>) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a system call that writes a structure of ours.
    assert_eq!(unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit) }, 0);
    limit.rlim_cur = files.unwrap_or(limit.rlim_max);
    // SAFETY: one that reads it.
    assert_eq!(unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()) }, 0);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_transfer_that_had_no_descriptor_left_answers_again() {
    needs_kernel();
    let job = name("files");
    let run = Running::start(&mut run_script(&["--name", &job, "--cc", "reno"], "sleep 600"));
    status(&job);
    limit_files(run.pid(), Some(3));
    let mut waiting = UnixStream::connect(socket_of(&job)).unwrap();
    waiting.write_all(b"{\"lowtide\":1,\"command\":\"status\"}\n").unwrap();
    std::thread::sleep(Duration::from_millis(500));
    limit_files(run.pid(), None);
    let mut line = String::new();
    BufReader::new(waiting).read_line(&mut line).unwrap();
    assert!(line.contains("\"ok\":true"), "{line:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn one_that_is_stopped_keeps_no_other_from_beginning() {
    needs_kernel();
    let job = name("stopped");
    let run = Running::start(&mut run_script(&["--name", &job, "--cc", "reno"], "sleep 600"));
    status(&job);
    run.signal(Signal::SIGSTOP);
    // those who asked and went
    let sockets = Directory::at("/run/lowtide/control");
    let waiting: Vec<_> = std::iter::from_fn(|| sockets.connect(&job).ok()).collect();
    assert!(!waiting.is_empty());
    assert!(ask(&["status", &job]).sentence().contains("its process may be stopped"));
    assert!(finish(&mut run_script(&["--cc", "reno"], "true")).status.success());
    run.signal(Signal::SIGCONT);
    drop(waiting);
    status(&job);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_killed_transfers_name_is_free() {
    needs_kernel();
    let space = namespace("stale");
    let receiver = Receiver::start(&space, Ipv4Addr::LOCALHOST);
    let job = name("stale");
    let first = long(&space, &receiver, &["--name", &job, "--cc", "cubic"]);
    status(&job);
    let second = long(&space, &receiver, &["--name", &job, "--cc", "cubic"]);
    assert_eq!(status(&format!("{job}-2"))["pid"], second.pid());
    let program = lifecycle::children(first.pid());
    first.signal(Signal::SIGKILL);
    drop(first);
    let _orphans: Vec<_> = program.into_iter().map(lifecycle::Orphan).collect();
    assert!(!ask(&["status"]).out.contains(&format!("{job}: ")), "a dead one is not shown");
    let third = long(&space, &receiver, &["--name", &job, "--cc", "cubic"]);
    assert_eq!(status(&job)["pid"], third.pid());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn many_transfers_are_told_of_at_once() {
    needs_kernel();
    let job = name("many");
    let script = |_| Running::start(&mut run_script(&["--name", &job, "--cc", "reno"], "sleep 600"));
    let runs: Vec<_> = (0..20).map(script).collect();
    let ours = || {
        let all: Value = serde_json::from_str(&ask(&["status", "--json"]).out).unwrap();
        let all = all["transfers"].as_array().unwrap().clone();
        all.iter().filter(|it| it["name"].as_str().unwrap().starts_with(&job)).count()
    };
    until("all of them", || (ours() == runs.len()).then_some(()));
    let asked = Instant::now();
    assert_eq!(ours(), 20);
    println!("status of 20 transfers took {:?}", asked.elapsed());
    assert!(asked.elapsed() < Duration::from_secs(5));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_ran_is_on_record() {
    needs_kernel();
    let space = namespace("record");
    let receiver = Receiver::start(&space, Ipv4Addr::LOCALHOST);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history.json");
    let history = |words: &[&str]| finish(lowtide([&["history"], words].concat()).env("LOWTIDE_HISTORY", &file));
    assert_eq!(history(&[]).out, "no run is on record\n");
    for (script, options) in [
        (
            format!("head -c 200000 /dev/zero > {}", dev_tcp(receiver.address)),
            &["--size", "200kB", "--deadline", "+1h"][..],
        ),
        ("exit 7".to_owned(), &[]),
    ] {
        let options = [&["--name", "job of a test", "--cc", "reno"], options].concat();
        finish(inside(&space, run_script(&options, &script)).env("LOWTIDE_HISTORY", &file));
    }
    let lines = history(&[]).out;
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("job-of-a-test: 200.00 kB in ") && lines[0].contains("before its deadline"), "{lines:?}");
    assert!(lines[1].contains("0 B in ") && lines[1].ends_with("not governed, exit status 7"), "{lines:?}");
    assert_eq!(history(&["another"]).out, "no run of another is on record\n");
    let all: Value = serde_json::from_str(&history(&["job of a test", "--json"]).out).unwrap();
    assert_eq!((&all["schema"], &all["runs"][1]["exit_code"]), (&"lowtide-runs/1".into(), &7.into()));
    is_documented(&all["runs"], SOCKET_PAGE);
    assert_eq!(fs::metadata(directory.path().join("history.runs.json")).unwrap().mode() & 0o777, 0o600);
}

/// A link of 20 Mbit/s and 40 ms, with a receiver at its end.
fn link(test: &str) -> (Emulator, Receiver) {
    let (a, b) = (format!("{}a", name(test)), format!("{}b", name(test)));
    let config = Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(40));
    let emulator = Emulator::start(config).unwrap();
    let receiver = Receiver::start(emulator.b(), emulator.b4());
    (emulator, receiver)
}

/// Sends zeros over so many connections at once.
fn senders(receiver: &Receiver, connections: u32, bytes: u64) -> String {
    // the receiver is gone once they have to end, and they would wait for minutes
    let send = format!("head -c {bytes} /dev/zero > {}", dev_tcp(receiver.address));
    format!("trap 'kill $(jobs -p)' EXIT; trap exit TERM; for i in $(seq {connections}); do {send} & done; wait")
}

/// The mean rate since the first look, after two stretches of ten seconds, three, and so on, until it is within 3 % of
/// a limit, in Mbit/s. It never exceeds the limit. On a busy machine some stretches carry less, and those after them
/// make up for it; where the limit itself is missed no mean is near it.
fn rates_until_it_holds(job: &str, limit: f64) -> Vec<f64> {
    const STRETCHES: usize = 9;
    /// What was left before, and is made up for.
    const SAVED_S: f64 = 2.0;
    let look = || {
        let status = status(job);
        let at: jiff::Timestamp = status["now"].as_str().unwrap().parse().unwrap();
        (at, 8.0 * number(&status, "acknowledged_bytes"))
    };
    let ((begin, before), mut rates) = (look(), Vec::new());
    for stretch in 0..STRETCHES {
        std::thread::sleep(Duration::from_secs(10));
        let (now, after) = look();
        let (bits, seconds) = (after - before, now.duration_since(begin).as_secs_f64());
        assert!(bits <= 1.03 * limit * (seconds + SAVED_S), "{:.2} Mbit/s since {seconds} s", bits / seconds / 1e6);
        rates.push(bits / seconds / 1e6);
        if stretch > 0 && (bits / seconds / limit - 1.0).abs() <= 0.03 {
            return rates;
        }
    }
    panic!("the mean rate was never within 3 % of its limit: {rates:.2?} Mbit/s")
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_limit_holds_over_all_connections() {
    needs_kernel();
    for law in ["tide", "cubic"] {
        let (emulator, receiver) = link(law);
        let job = name(&format!("limit-{law}"));
        let script = senders(&receiver, 8, 1 << 40);
        let run = Running::start(&mut inside(emulator.a(), run_script(&["--name", &job, "--cc", law], &script)));
        until("all connections", || (number(&status(&job), "sending") >= 8.0).then_some(()));
        assert!(ask(&["set", &job, "--max-rate", "5mbit"]).status.success());
        std::thread::sleep(Duration::from_secs(4));
        let rates = rates_until_it_holds(&job, 5e6);
        println!("{law}: {rates:.2?} Mbit/s of 5");
        assert!(ask(&["set", &job, "--max-rate", "none"]).status.success());
        until("the link's rate again", || (number(&status(&job), "rate_bps") > 10e6).then_some(()));
        drop(run);
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_pause_keeps_connections_and_loses_nothing() {
    needs_kernel();
    let (emulator, receiver) = link("pause");
    let job = name("pause");
    let bytes = 3_000_000;
    let script = senders(&receiver, 4, bytes);
    let run = Running::start(&mut inside(emulator.a(), run_script(&["--name", &job], &script)));
    until("bytes", || (number(&status(&job), "acknowledged_bytes") > 1e6).then_some(()));
    assert!(ask(&["pause", &job]).out.contains("paused"));
    std::thread::sleep(Duration::from_secs(3)); // what was under way arrives
    let before = receiver.received();
    std::thread::sleep(Duration::from_secs(6));
    let moved = receiver.received() - before;
    assert!((1_000..300_000).contains(&moved), "{moved} bytes in six seconds are no trickle");
    assert_eq!(sockets_to(emulator.a(), receiver.port()).len(), 4, "all connections live");
    assert_eq!(status(&job)["paused"], true);
    assert!(ask(&["resume", &job]).status.success());
    let ended = run.end_within(Duration::from_secs(120));
    assert!(ended.status.success(), "{ended:?}");
    until("all bytes", || (receiver.received() == 4 * bytes).then_some(()));
}

/// The report of 8 MB beside one CUBIC flow, whose deadline is moved from an hour to 40 s away: a sixth of their link.
fn moved_deadline(test: &str) -> Value {
    let (emulator, receiver) = link(test);
    let job = name(test);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let options = ["--name", &job, "--deadline", "+1h", "--size", "8MB", "--report", file.to_str().unwrap()];
    let other = Receiver::start(emulator.b(), emulator.b4());
    let _foreground = cubic_flow(emulator.a(), &other);
    let script = senders(&receiver, 1, 8_000_000);
    let run = Running::start(&mut inside(emulator.a(), run_script(&options, &script)));
    until("bytes", || (number(&status(&job), "acknowledged_bytes") > 1e5).then_some(()));
    assert!(ask(&["set", &job, "--deadline", "+40s"]).status.success());
    let ended = run.end_within(Duration::from_secs(300));
    assert!(ended.status.success(), "{ended:?}");
    report(&file)
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_deadline_that_is_moved_is_met() {
    needs_kernel();
    // where the machine is busy its link may carry less than the deadline needs
    for attempt in 0..3 {
        let report = moved_deadline(&format!("moved{attempt}"));
        // the new rate in the first row, and a greater weight within two update intervals, by the rows that there are:
        // a busy machine makes fewer
        let changed = number(&report["changes"][0], "t");
        let interval =
            update_interval(NOMINAL_INTERVAL, Some(Duration::from_secs(40)), Some(Duration::from_millis(80)));
        let rows = report["series"].as_array().unwrap().iter();
        let (before, after): (Vec<_>, Vec<_>) = rows.partition(|row| number(row, "t") < changed);
        let last = before.last().unwrap();
        assert!(number(last, "target_bps") < 1e5 && number(after[0], "target_bps") > 1e6, "{}", after[0]);
        let rises = after.iter().position(|row| number(row, "w") > number(last, "w")).expect("it presses");
        assert!(rises as f64 <= 2.0 * interval.as_secs_f64() / 0.25, "{rises} rows of 250 ms: {interval:?}");
        let at = |field: &str| report[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let due = at("deadline").duration_since(at("started")).as_secs_f64();
        assert!(due < 3600.0, "it is the new one");
        if report["met"] == true {
            return;
        }
        // all that a deadline can have is the share of an ordinary flow
        let pressed = after.iter().rfind(|row| number(row, "t") < due).unwrap();
        assert_eq!(number(pressed, "w"), 1.0, "{pressed}");
        println!("missed as an ordinary flow: {report:.300}");
    }
    panic!("missed in each of three runs, beside one CUBIC flow");
}
