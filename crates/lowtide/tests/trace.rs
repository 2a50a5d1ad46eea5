// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide trace` records what the laws of a running transfer do, and leaves nothing behind.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use lifecycle::{
    Ended, Receiver, Running, dev_tcp, finish, groups_of, inside, law_loaded_since, listed_laws, lowtide, name,
    needs_kernel, run_script, until,
};
use lowtide_emu::{Config, Emulator};
use lowtide_kernel::{
    Cgroup, KernelLaw,
    trace::{Traceable, names},
};
use nix::sys::{
    signal::Signal,
    socket::{setsockopt, sockopt},
};
use serde_json::Value;

/// There is one trace at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    needs_kernel();
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A transfer that goes on until it is dropped, at 20 Mbit/s and 20 ms, with one loss in 200 packets, or marks where
/// the law wants them.
struct Bulk {
    run: Running,
    receiver: Receiver,
    _emulator: Emulator,
    _directory: tempfile::TempDir,
}

impl Bulk {
    fn start(law: &str) -> Bulk {
        let tag = law.replace([':', '='], "");
        let (a, b) = (name(&format!("{}a", &tag[..3])), name(&format!("{}b", &tag[..3])));
        let mut link = Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(20));
        let marks = KernelLaw::parse(law).unwrap().needs_ecn();
        if marks {
            link.discipline = "step:at=5ms".parse().unwrap();
        } else {
            link.loss = "0.5%".parse().unwrap();
        }
        let emulator = Emulator::start(link).unwrap();
        let receiver = Receiver::start(emulator.b(), emulator.b4());
        let directory = tempfile::tempdir().unwrap();
        let go = directory.path().join("go");
        let script = format!(
            "until [ -e {} ]; do sleep 0.05; done; exec cat /dev/zero >{}",
            go.display(),
            dev_tcp(receiver.address)
        );
        // phantom signals would leave a law of the kernel too little for losses to be sure
        let options = if law.starts_with("kernel:") { vec!["--cc", law, "--w-min", "1"] } else { vec!["--cc", law] };
        let before = listed_laws();
        let run = Running::start(&mut inside(emulator.a(), run_script(&options, &script)));
        if marks {
            // its receiver has to echo every mark
            receiver.choose(&law_loaded_since(&before, law));
        }
        fs::write(go, "").unwrap();
        until("data", || (receiver.received() > 0).then_some(()));
        Bulk { run, receiver, _emulator: emulator, _directory: directory }
    }

    /// What `lowtide trace` writes of it.
    fn trace(&self, options: &[&str]) -> (Vec<Value>, Ended) {
        self.trace_port(self.receiver.port(), options)
    }

    fn trace_port(&self, port: u16, options: &[&str]) -> (Vec<Value>, Ended) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trace.jsonl");
        let port = port.to_string();
        let mut command = lowtide(["trace", "--for", "3s", "--port", &port, "-o"]);
        let ended = finish(command.arg(&file).args(options));
        assert!(ended.status.success(), "{ended:?}");
        let text = fs::read_to_string(&file).unwrap();
        (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), ended)
    }
}

/// No trace is on.
fn is_off() -> bool {
    Traceable::all().unwrap().iter().all(|source| !source.is_traced().unwrap())
}

fn events(records: &[Value]) -> BTreeSet<&str> {
    records.iter().map(|record| record["event"].as_str().unwrap()).collect()
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn every_law_is_heard_each_round_and_at_losses_or_marks() {
    let _alone = alone();
    for law in ["cdg", "vegas", "eclipse", "ledbat", "ledbatpp", "lt_cubic", "kernel:cubic", "dctcp", "prague"] {
        let bulk = Bulk::start(law);
        let (lines, ended) = bulk.trace(&["--law", law]);
        let (header, records) = lines.split_first().unwrap();
        assert_eq!((&header["lowtide_trace"], &header["laws"][0]["law"]), (&1.into(), &law.into()));
        assert!(ended.err.contains(" of 1 connection in ") && ended.err.contains(", 0 dropped"), "{}", ended.err);
        assert!(is_off(), "{law}");

        let names: BTreeSet<_> =
            names::values(law, !law.starts_with("kernel:")).iter().map(|value| value.name).collect();
        let peer = format!("{}", bulk.receiver.address);
        for record in records {
            assert_eq!((&record["connection"], &record["peer"]), (&1.into(), &peer.as_str().into()), "{record}");
            let values: BTreeSet<_> = record["values"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(values, names, "{record}");
            assert!(record["cwnd"].as_f64().unwrap() > 0.0 && record["t_us"].as_f64().unwrap() > -1e6, "{record}");
        }
        let rounds: Vec<_> = records.iter().filter(|record| record["event"] == "round").collect();
        // 150 round trips of 20 ms, or a third of them where the queue is full
        assert!((15..=200).contains(&rounds.len()), "{law}: {}", rounds.len());
        let measured: Vec<_> = rounds.iter().filter(|record| record["rtt_min_us"].is_u64()).collect();
        assert!(measured.len() * 2 > rounds.len(), "{law}: {} of {}", measured.len(), rounds.len());
        for round in measured {
            let [least, most, smoothed] = ["rtt_min_us", "rtt_max_us", "srtt_us"].map(|it| round[it].as_u64().unwrap());
            assert!((20_000..=most).contains(&least) && smoothed >= 20_000, "{law}: {round}");
        }
        let heard = events(records);
        if KernelLaw::parse(law).unwrap().needs_ecn() {
            assert!(heard.contains("mark"), "{law}: {heard:?}");
            assert!(rounds.iter().any(|round| round["marked"].as_u64() > Some(0)), "{law} counts no marks");
            assert!(rounds.iter().any(|round| round["values"]["alpha"].as_f64() > Some(0.0)), "{law} has no alpha");
        } else {
            assert!(heard.contains("loss") || heard.contains("timeout"), "{law}: {heard:?}");
        }
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_does_not_fit_is_counted() {
    let _alone = alone();
    let bulk = Bulk::start("vegas");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.jsonl");
    let port = bulk.receiver.port().to_string();
    let mut command = lowtide(["trace", "--buffer", "1kB", "--port", &port, "-o"]);
    let trace = Running::start(command.arg(&file));
    until("a trace", || (!is_off()).then_some(()));
    // it does not listen for a while, in which there are more round trips than it has room for
    trace.signal(Signal::SIGSTOP);
    thread::sleep(Duration::from_secs(3));
    trace.signal(Signal::SIGCONT);
    until("the word of it", || fs::read_to_string(&file).ok()?.contains("\"event\":\"dropped\"").then_some(()));
    trace.signal(Signal::SIGINT);
    let ended = trace.end();
    assert!(ended.status.success() && ended.err.contains("--buffer"), "{ended:?}");
    let lines = fs::read_to_string(&file).unwrap();
    let dropped = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let dropped: u64 = dropped.filter_map(|record| record["dropped"].as_u64()).sum();
    assert!(dropped > 0 && ended.err.contains(&format!(", {dropped} dropped")), "{dropped}: {}", ended.err);
    assert!(is_off());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_killed_trace_does_not_go_on_for_ever() {
    let _alone = alone();
    let bulk = Bulk::start("cdg");
    let port = bulk.receiver.port().to_string();
    let trace = Running::start(&mut lowtide(["trace", "--port", &port]));
    until("records", || trace.out().contains("\"event\":\"round\"").then_some(()));
    let second = finish(&mut lowtide(["trace"]));
    assert_eq!(second.status.code(), Some(2));
    assert!(second.sentence().contains("being traced already"), "{second:?}");
    trace.signal(Signal::SIGKILL);
    until("its end", || is_off().then_some(()));
    assert!(bulk.trace(&[]).0.len() > 1);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_trace_ends_with_what_it_traces() {
    let _alone = alone();
    let bulk = Bulk::start("ledbat");
    let trace = Running::start(&mut lowtide(["trace", "--law", "ledbat"]));
    until("records", || trace.out().contains("\"event\":\"round\"").then_some(()));
    let Bulk { run, receiver: _receiver, _emulator, _directory } = bulk;
    run.signal(Signal::SIGTERM);
    run.end();
    assert!(trace.end().status.success());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn connections_are_told_by_process_group_and_port() {
    let _alone = alone();
    let bulk = Bulk::start("vegas");
    let stranger = Running::start(Command::new("sleep").arg("60"));
    let (ours, another) = (bulk.run.pid().to_string(), stranger.pid().to_string());
    assert!(bulk.trace(&["--pid", &ours]).0.len() > 1);
    assert_eq!(bulk.trace(&["--pid", &another]).0.len(), 1, "the header");
    let group = groups_of(bulk.run.pid()).into_iter().next().unwrap();
    assert!(bulk.trace(&["--cgroup", group.to_str().unwrap()]).0.len() > 1);
    let empty = Cgroup::create().unwrap();
    assert_eq!(bulk.trace(&["--cgroup", empty.path().to_str().unwrap()]).0.len(), 1);
    assert_eq!(bulk.trace_port(1, &[]).0.len(), 1);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_trace_becomes_a_picture_or_a_table() {
    let _alone = alone();
    let bulk = Bulk::start("eclipse");
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for file in ["a.jsonl", "a.csv"] {
        let ended = finish(lowtide(["trace", "--for", "2s", "-o"]).arg(at(file)));
        assert!(ended.status.success(), "{ended:?}");
    }
    let drawn = finish(lowtide(["trace", "plot"]).arg(at("a.jsonl")));
    assert!(drawn.status.success() && drawn.out.trim_end().ends_with("a.svg"), "{drawn:?}");
    let picture = fs::read_to_string(at("a.svg")).unwrap();
    assert!(picture.contains("Window, segments") && picture.contains(&format!("to {}", bulk.receiver.address)));
    let table = fs::read_to_string(at("a.csv")).unwrap();
    assert!(
        table.starts_with("t_us,connection,law,event,") && table.lines().next().unwrap().contains("eclipse.s_min_us")
    );
    assert!(table.lines().count() > 10, "{table}");
    let refused = finish(lowtide(["trace", "plot"]).arg(at("a.csv")));
    assert!(refused.status.code() == Some(2) && refused.sentence().contains("is no trace in JSON lines"));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_law_of_the_whole_machine_is_heard() {
    let _alone = alone();
    let law = Running::start(&mut lowtide(["cc", "load", "ledbatpp"]));
    until("the law", || law.out().contains("lt_ledbatpp is loaded").then_some(()));
    let trace = Running::start(&mut lowtide(["trace", "--law", "ledbatpp"]));
    until("a trace", || (!is_off()).then_some(()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    setsockopt(&stream, sockopt::TcpCongestion, &"lt_ledbatpp".into()).unwrap();
    let sink = thread::spawn(move || listener.accept().unwrap().0.read_to_end(&mut Vec::new()).unwrap());
    stream.write_all(&vec![7; 20_000_000]).unwrap();
    let peer = format!("\"peer\":\"{}\"", stream.peer_addr().unwrap());
    until("records", || trace.out().contains(&peer).then_some(()));
    drop(stream);
    assert_eq!(sink.join().unwrap(), 20_000_000);
    trace.signal(Signal::SIGTERM);
    assert!(trace.end().status.success() && is_off());
    law.signal(Signal::SIGINT);
    assert!(law.end().status.success());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_is_wrong_is_said_in_a_sentence() {
    let _alone = alone();
    let _bulk = Bulk::start("vegas");
    let directory = tempfile::tempdir().unwrap();
    let garbage = directory.path().join("garbage");
    fs::write(&garbage, "garbage\n").unwrap();
    let (garbage, nowhere) = (garbage.to_str().unwrap(), Path::new("/no/such/place").to_str().unwrap());
    for (arguments, part) in [
        (&["--pid", "4294967295"][..], "--pid 4294967295: there is no such process"),
        (&["--cgroup", nowhere], "this is no cgroup"),
        (&["--law", "nice"], "--law nice"),
        (&["--law", "kernel:vegas"], "--law kernel:vegas"),
        (&["-o", "/no/such/place"], "cannot write the trace /no/such/place"),
        (&["plot", nowhere], "cannot read the trace /no/such/place"),
        (&["plot", garbage], "is no trace in JSON lines"),
    ] {
        let ended = finish(lowtide(["trace"]).args(arguments));
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}");
        assert!(ended.sentence().contains(part), "{arguments:?}: {}", ended.err);
    }
    for arguments in [["--port", "0"], ["--buffer", "0"], ["--buffer", "2bdp"], ["--format", "xml"], ["--for", "long"]]
    {
        let ended = finish(lowtide(["trace"]).args(arguments));
        assert!(ended.status.code() == Some(2) && ended.err.contains(arguments[0]), "{ended:?}");
    }
    assert!(is_off());
}

/// The stack's own idea of an idle time, `tcp_slow_start_after_idle`, decides nothing.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn tide_begins_anew_after_an_idle_time() {
    let _alone = alone();
    for stack in ["0", "1"] {
        let config = Config::new(name("idla"), name("idlb"), "20mbit".parse().unwrap(), Duration::from_millis(20));
        let link = Emulator::start(config).unwrap();
        let receiver = Receiver::start(link.b(), link.b4());
        let mut choose = Command::new("sh");
        choose.args(["-c", &format!("echo {stack} >/proc/sys/net/ipv4/tcp_slow_start_after_idle")]);
        assert!(finish(&mut inside(link.a(), choose)).status.success());
        let script =
            format!("exec 3>{}; while head -c 600000 /dev/zero >&3; do sleep 1.2; done", dev_tcp(receiver.address));
        let run = Running::start(&mut inside(link.a(), run_script(&["--cc", "tide"], &script)));
        until("data", || (receiver.received() > 0).then_some(()));
        let trace = finish(&mut lowtide(["trace", "--for", "4s", "--port", &receiver.port().to_string()]));
        let records: Vec<Value> = trace.out.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        let cwnd = |record: &Value| record["cwnd"].as_f64().unwrap();
        let restarts: Vec<usize> = (1..records.len()).filter(|n| records[*n]["event"] == "restart").collect();
        assert!(!restarts.is_empty(), "{stack}: {:?}", events(&records));
        // the restart window (RFC 5681, section 4.1): an initial window at the most
        assert!(restarts.iter().all(|n| cwnd(&records[*n]) <= 10.0), "{stack}: {records:?}");
        // a scheduling stall may have ended FILL before one of them
        assert!(restarts.iter().any(|n| cwnd(&records[*n - 1]) > 10.0), "{stack}: {records:?}");
        run.signal(Signal::SIGTERM);
        run.end();
    }
}
