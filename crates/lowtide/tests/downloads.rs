// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide run --direction down` on an emulated link of 20 Mbit/s and 40 ms: what comes in yields, arrives whole, and
//! is let go whatever happens to Lowtide. The servers know nothing of it.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{fs, path::PathBuf, process::Command, thread, time::Duration};

use lifecycle::{
    Ended, Orphan, PATIENCE, Running, children, finish, inside, is_alive, lowtide, name, needs_kernel, report,
    transfer_status, until, within,
};
use lowtide_emu::{Config, Emulator};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

const FILES_PORT: u16 = 8000;
const FOREGROUND_PORT: u16 = 5201;
/// Mbit/s of payload that the link carries.
const LINK: f64 = 20.0 * 1448.0 / 1500.0;
/// A window, as the sender knows it, of a download that yields, and of one that does not: the path holds 100 kB. Bytes.
const HELD: f64 = 12_000.0;
const LET_GO: f64 = 60_000.0;

/// A link with a server of files and one of iperf3 behind it.
struct Scene {
    // before the link, in whose namespace they run
    _servers: [Running; 2],
    link: Emulator,
    /// What is served, and what has been received.
    directory: TempDir,
}

impl Scene {
    fn new(test: &str) -> Scene {
        needs_kernel();
        let (a, b) = (name(&format!("{test}-a")), name(&format!("{test}-b")));
        let mut config = Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(40));
        config.realtime = true;
        let link = Emulator::start(config).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let address = link.b4().to_string();
        let mut files = Command::new("python3");
        files.args(["-m", "http.server", &FILES_PORT.to_string(), "--bind", &address, "--directory"]);
        files.arg(directory.path());
        let mut iperf = Command::new("iperf3");
        iperf.args(["-s", "-p", &FOREGROUND_PORT.to_string()]);
        let servers = [files, iperf].map(|server| Running::start(&mut inside(link.b(), server)));
        let scene = Scene { _servers: servers, link, directory };
        for port in [FILES_PORT, FOREGROUND_PORT] {
            // without a connection, which iperf3 would take for a client
            let listens = || {
                let mut ss = Command::new("ss");
                ss.args(["-tlnH", "sport", "=", &format!(":{port}")]);
                !lifecycle::output(scene.link.b().enter_command(&mut ss)).is_empty()
            };
            until("the server", || listens().then_some(()));
        }
        scene
    }

    /// A file of so many bytes that do not repeat; its name.
    fn serves(&self, length: usize) -> &'static str {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        fs::write(self.directory.path().join("served"), (0..length).map(|_| next()).collect::<Vec<u8>>()).unwrap();
        "served"
    }

    /// Connections from now on have no TCP timestamps.
    fn without_timestamps(&self) {
        let set = || fs::write("/proc/sys/net/ipv4/tcp_timestamps", "0");
        self.link.a().run(set).unwrap().unwrap();
    }

    fn received(&self) -> PathBuf {
        self.directory.path().join("received")
    }

    /// PROGRAM: fetches the file.
    fn curl(&self, file: &str) -> Vec<String> {
        let url = format!("http://{}:{FILES_PORT}/{file}", self.link.b4());
        ["curl", "-sSf", "-o", self.received().to_str().unwrap(), &url].map(str::to_owned).to_vec()
    }

    fn report_file(&self) -> PathBuf {
        self.directory.path().join("report.json")
    }

    /// `lowtide run --direction down OPTIONS -- PROGRAM` on the near side.
    fn run(&self, options: &[&str], program: &[String]) -> Running {
        let mut command = lowtide(["run", "--direction", "down"]);
        command.args(options).arg("--report").arg(self.report_file()).arg("--").args(program);
        Running::start(&mut inside(self.link.a(), command))
    }

    /// The same, to its end.
    fn runs(&self, options: &[&str], program: &[String]) -> (Ended, Value) {
        let ended = self.run(options, program).end_within(Duration::from_secs(120));
        assert!(ended.status.success(), "{ended:?}");
        (ended, report(&self.report_file()))
    }

    fn arrived_whole(&self) {
        let read = |file: PathBuf| fs::read(file).unwrap();
        assert!(read(self.received()) == read(self.directory.path().join("served")), "the data differ");
    }

    /// A CUBIC flow to us.
    fn foreground(&self, seconds: u32) -> Running {
        let mut command = Command::new("iperf3");
        let (address, port, seconds) = (self.link.b4().to_string(), FOREGROUND_PORT.to_string(), seconds.to_string());
        command.args(["-c", &address, "-p", &port, "-R", "-C", "cubic", "-J", "-t", &seconds]);
        Running::start(&mut inside(self.link.a(), command))
    }

    /// The window that curl's connection offers, as the sender knows it; bytes.
    fn window(&self) -> Option<f64> {
        let mut ss = Command::new("ss");
        ss.args(["-tinHO", "state", "established", "sport", "=", &format!(":{FILES_PORT}")]);
        let text = lifecycle::output(self.link.b().enter_command(&mut ss));
        let value = text.split_whitespace().find_map(|word| word.strip_prefix("snd_wnd:"))?;
        value.parse().ok()
    }

    /// Waits until it yields to the foreground.
    fn yields(&self) {
        within(PATIENCE, "a small window", || self.window().filter(|window| *window < HELD));
    }

    fn is_let_go(&self, limit: Duration) {
        within(limit, "a full window", || self.window().filter(|window| *window > LET_GO));
    }
}

/// Mbit/s that iperf3 received.
fn rate(iperf: Running) -> f64 {
    let ended = iperf.end_within(Duration::from_secs(90));
    let result: Value = serde_json::from_str(&ended.out).unwrap();
    let received = &result["end"]["sum_received"]["bits_per_second"];
    received.as_f64().unwrap_or_else(|| panic!("iperf3 failed: {result}")) / 1e6
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_file_arrives_whole_and_the_size_and_the_deadline_are_about_what_is_received() {
    let scene = Scene::new("whole");
    let length = 6_000_000;
    let program = scene.curl(scene.serves(length));
    let (ended, report) = scene.runs(&["--size", "6MB", "--deadline", "40s"], &program);
    scene.arrived_whole();
    let number = |key: &str| report[key].as_u64().unwrap();
    assert_eq!((report["direction"].as_str(), report["outcome"].as_str()), (Some("down"), Some("met")), "{report}");
    assert!((length as u64..length as u64 + 1_000).contains(&number("received_bytes")), "with the head: {report}");
    assert!(number("acknowledged_bytes") < 1_000, "the request: {report}");
    assert!(report["mean_bps"].as_f64().unwrap() > 1e6, "of what was received: {report}");
    assert!(ended.err.contains("before the deadline") && ended.err.contains("6.00 MB in"), "{}", ended.err);
    assert!(!ended.err.contains("not governed"), "{}", ended.err);
    let windows = report["series"].as_array().unwrap().iter().map(|row| row["download_window_bytes"].as_u64().unwrap());
    assert!(windows.max().unwrap() > 60_000, "an idle link is used: {report}");
}

/// Each of them limits the window to what the link holds with a full buffer, which the stack does not.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn other_laws_govern_downloads_too() {
    let scene = Scene::new("laws");
    let program = scene.curl(scene.serves(6_000_000));
    let largest_window = |options: &[&str]| {
        let (ended, report) = scene.runs(options, &program);
        scene.arrived_whole();
        assert!(!ended.err.contains("not governed"), "{options:?}: {}", ended.err);
        let rows = report["series"].as_array().unwrap().iter();
        rows.map(|row| row["download_window_bytes"].as_u64().unwrap()).max().unwrap()
    };
    let ordinary = largest_window(&["--w-min", "1"]);
    for law in ["cdg", "cdg_cubic", "vegas", "eclipse", "ledbat", "ledbatpp", "lt_cubic"] {
        let governed = largest_window(&["--cc", law]);
        println!("{law}: at most {governed} bytes, {ordinary} without a law");
        assert!((10_000..ordinary / 2).contains(&governed), "{law}: {governed} of {ordinary} bytes");
    }
}

/// A trace has the rounds of a download, and when its law leaves the link.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_trace_shows_what_the_law_does_with_a_download() {
    let scene = Scene::new("trace");
    let program = scene.curl(scene.serves(100_000_000));
    for law in ["tide", "cdg_cubic"] {
        let _of_the_law_before = fs::remove_file(scene.received());
        let run = scene.run(&["--cc", law], &program);
        // until the first ACK after the first data the window is the stack's
        until("data", || fs::metadata(scene.received()).ok().filter(|file| file.len() > 100_000));
        let foreground = scene.foreground(3);
        let file = scene.directory.path().join(law);
        let mut trace = lowtide(["trace", "--for", "4s", "--law", law, "--pid", &run.pid().to_string(), "-o"]);
        let ended = finish(trace.arg(&file));
        assert!(ended.status.success() && ended.err.contains(" of 1 connection in "), "{law}: {ended:?}");
        let text = fs::read_to_string(&file).unwrap();
        let records: Vec<Value> = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        for record in &records {
            assert_eq!(record["direction"], "down", "{record}");
            assert!(["fills", "yields"].contains(&record["state"].as_str().unwrap()), "{record}");
            assert!(record["srtt_us"].as_f64() > Some(40_000.0) && record["cwnd"].as_f64() > Some(0.0), "{record}");
            assert!(record["values"].as_object().is_some_and(|values| !values.is_empty()), "{record}");
        }
        // 100 round trips of 40 ms, or half of them where the queue is full; while Tide yields it has one per second
        let least = if law == "tide" { 3 } else { 20 };
        let rounds = records.iter().filter(|record| record["event"] == "round");
        assert!((least..=150).contains(&rounds.clone().count()), "{law}: {} rounds", rounds.count());
        let delivered: u64 = rounds.filter_map(|round| round["delivered"].as_u64()).sum();
        assert!((50..10_000).contains(&delivered), "{law}: {delivered} segments");
        let left = records.iter().any(|record| record["event"] == "backoff" && record["state"] == "yields");
        assert_eq!(left, law == "tide", "{law} leaves the link: {left}");
        rate(foreground);
        run.signal(Signal::SIGTERM);
        run.end();
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn its_status_is_about_what_is_received() {
    let scene = Scene::new("status");
    let job = name("down");
    let run = scene.run(&["--name", &job], &scene.curl(scene.serves(100_000_000)));
    let status = until("data", || {
        transfer_status(&job).filter(|status| status["acknowledged_bytes"].as_u64() > Some(1_000_000))
    });
    assert_eq!((status["direction"].as_str(), &status["sending"]), (Some("down"), &1.into()), "{status}");
    assert!(status["srtt_s"].as_f64() > Some(0.03), "of the connection that receives: {status}");
    assert!(status["queueing_delay_s"].is_number() && status["rate_bps"].as_f64() > Some(0.0), "{status}");
    let set = finish(&mut lowtide(["set", &job, "--deadline", "+1h", "--remaining", "90MB"]));
    assert!(set.status.success() && set.out.contains("of 9"), "{set:?}");
    run.signal(Signal::SIGTERM);
    run.end();
}

/// Medians of three, measured at once.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_download_yields_to_another_one_and_uses_an_idle_link() {
    needs_kernel();
    const SECONDS: u32 = 20;
    let measure = |number: usize| {
        let scene = Scene::new(&format!("yields{number}"));
        let solo = rate(scene.foreground(10));
        let program = scene.curl(scene.serves(150_000_000));
        let run = scene.run(&[], &program);
        thread::sleep(Duration::from_secs(12));
        let kept = rate(scene.foreground(SECONDS)) / solo;
        run.signal(Signal::SIGTERM);
        run.end();
        let report = report(&scene.report_file());
        let rows = report["series"].as_array().unwrap();
        let at = |t: f64| rows.iter().take_while(|row| row["t"].as_f64().unwrap() <= t).last().unwrap();
        let (from, to) = (at(6.0), at(12.0));
        let difference = |key: &str| to[key].as_f64().unwrap() - from[key].as_f64().unwrap();
        (kept, difference("received_bytes") * 8e-6 / difference("t") / LINK)
    };
    let mut results: [(f64, f64); 3] = thread::scope(|scope| {
        let threads = [0, 1, 2].map(|number| scope.spawn(move || measure(number)));
        threads.map(|thread| thread.join().expect("a measurement failed"))
    });
    println!("kept, idle link used: {results:.3?}");
    results.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(results[1].0 > 0.90, "the foreground keeps {results:?}");
    results.sort_by(|a, b| a.1.total_cmp(&b.1));
    // three at once on two processors use 0.68 to 0.95; docs/downloads.md has what one alone uses
    assert!(results[1].1 > 0.6, "of an idle link it uses {results:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn killed_it_leaves_no_slow_socket() {
    let scene = Scene::new("killed");
    let program = scene.curl(scene.serves(300_000_000));
    let foreground = scene.foreground(60);
    let job = name("killed");
    let run = scene.run(&["--name", &job, "--size", "300MB", "--deadline", "1h", "--w-max", "0.004"], &program);
    scene.yields();
    until("the reason", || {
        let told = finish(&mut lowtide(["status", &job])).out;
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        words.contains("held back, as the link is in use").then_some(())
    });
    let refused = finish(&mut lowtide(["set", &job, "--max-rate", "1mbit"]));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(refused.sentence().contains("only what is sent"), "{refused:?}");
    let program =
        Orphan(*until("curl", || Some(children(run.pid())).filter(|found| !found.is_empty())).first().unwrap());
    run.signal(Signal::SIGKILL);
    run.end();
    // T_w is 10 s
    scene.is_let_go(Duration::from_secs(25));
    drop(program);
    foreground.signal(Signal::SIGTERM);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_download_is_paused_and_goes_on() {
    is_paused_and_goes_on(&Scene::new("paused"), &name("paused"));
}

/// A pause holds it, though it is not governed otherwise.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_download_without_timestamps_is_paused_and_goes_on() {
    let scene = Scene::new("unstampedpause");
    scene.without_timestamps();
    is_paused_and_goes_on(&scene, &name("unstampedpause"));
}

fn is_paused_and_goes_on(scene: &Scene, job: &str) {
    let program = scene.curl(scene.serves(300_000_000));
    let run = scene.run(&["--name", job], &program);
    scene.is_let_go(PATIENCE);
    assert!(finish(&mut lowtide(["pause", job])).status.success());
    within(PATIENCE, "less than a segment", || scene.window().filter(|window| *window < 1448.0));
    assert!(finish(&mut lowtide(["resume", job])).status.success());
    scene.is_let_go(PATIENCE);
    run.signal(Signal::SIGTERM);
    run.end();
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn both_ways_are_governed_and_the_words_are_about_one() {
    let scene = Scene::new("both");
    let length = 3_000_000;
    let program = scene.curl(scene.serves(length));
    let text = |report: &Value, key: &str| report[key].as_str().unwrap_or_default().to_owned();
    let run = |options: &[&str]| {
        let mut command = lowtide(["run"]);
        command.args(options).arg("--report").arg(scene.report_file()).arg("--").args(&program);
        let ended = Running::start(&mut inside(scene.link.a(), command)).end_within(Duration::from_secs(60));
        assert!(ended.status.success(), "{ended:?}");
        scene.arrived_whole();
        (ended.err, report(&scene.report_file()))
    };
    let (told, report) = run(&["--direction", "both"]);
    assert_eq!((text(&report, "direction"), text(&report, "about")), ("both".into(), "down".into()), "{report}");
    assert!(told.contains("3.00 MB in") && !told.contains("not governed"), "{told}");
    let (told, report) = run(&["--download-size", "3MB", "--deadline", "40s"]);
    assert_eq!((text(&report, "direction"), text(&report, "about")), ("both".into(), "down".into()), "{report}");
    assert_eq!(text(&report, "outcome"), "met", "{report}");
    assert!(report["size_bytes"] == 3_000_000 && told.contains("before the deadline"), "{told}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn at_the_end_what_the_program_leaves_behind_is_let_go() {
    let scene = Scene::new("left");
    let curl = scene.curl(scene.serves(300_000_000)).join(" ");
    let foreground = scene.foreground(60);
    let script = format!("{curl} & echo $!; sleep 8");
    let run = scene.run(&[], &["bash".to_owned(), "-c".to_owned(), script]);
    let pid = until("curl", || run.out().lines().next().map(|line| line.parse().unwrap()));
    let _left = Orphan(pid);
    scene.yields();
    run.end();
    scene.is_let_go(Duration::from_secs(10));
    foreground.signal(Signal::SIGTERM);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn without_timestamps_a_connection_is_left_alone_and_named() {
    let scene = Scene::new("unstamped");
    let doctor = || finish(&mut inside(scene.link.a(), lowtide(["doctor"]))).out;
    assert!(doctor().contains("ok       downloads: "));
    scene.without_timestamps();
    assert!(doctor().contains("missing  downloads: /proc/sys/net/ipv4/tcp_timestamps is 0"));
    let program = scene.curl(scene.serves(2_000_000));
    let (ended, report) = scene.runs(&[], &program);
    scene.arrived_whole();
    assert_eq!(report["not_controlled"]["downloads_without_timestamps"], 1, "{report}");
    assert_eq!((&report["outcome"], &report["governed_fraction"]), (&"not-governed".into(), &0.0.into()), "{report}");
    assert!(ended.err.contains("a connection without timestamps, whose windows are left alone"), "{}", ended.err);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn at_weight_1_the_window_is_the_stacks() {
    let scene = Scene::new("ordinary");
    let program = scene.curl(scene.serves(20_000_000));
    let foreground = scene.foreground(20);
    let run = scene.run(&["--w-min", "1"], &program);
    // it would not grow so beside another one
    scene.is_let_go(PATIENCE);
    drop(run);
    foreground.signal(Signal::SIGTERM);
}

const DEMAND_PORT: u16 = 8001;

/// Sends as long as the file is there, and then keeps the connection.
const SENDS_ON_DEMAND: &str = r#"
import os, socket, sys, time
address, port, file = sys.argv[1:]
listener = socket.create_server((address, int(port)))
print("listens", flush=True)
connection = listener.accept()[0]
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 4096)
while True:
    if os.path.exists(file):
        connection.sendall(bytes(1448))
    else:
        time.sleep(0.01)
"#;

/// Receives, and writes to the file what it has received and the most that its window may be, bytes.
const TELLS_ITS_WINDOW: &str = r#"
import os, socket, sys
address, port, file = sys.argv[1:]
connection = socket.create_connection((address, int(port)))
connection.settimeout(0.1)
received = 0
while True:
    try:
        received += len(connection.recv(1 << 16))
    except TimeoutError:
        pass
    with open(file + ".new", "w") as told:
        print(received, connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP), file=told)
    os.rename(file + ".new", file)
"#;

/// A connection on which nothing comes any more, whose window was held when the last data came.
struct IdleConnection<'a> {
    scene: &'a Scene,
    run: Running,
    _program: Orphan,
    _server: Running,
}

impl IdleConnection<'_> {
    /// PROGRAM is a shell that ends once the file `stays` is gone, and leaves the receiver behind.
    fn new<'a>(scene: &'a Scene, job: &str) -> IdleConnection<'a> {
        let (address, port) = (scene.link.b4().to_string(), DEMAND_PORT.to_string());
        let file = |name: &str| scene.directory.path().join(name).to_str().unwrap().to_owned();
        let mut server = Command::new("python3");
        server.args(["-c", SENDS_ON_DEMAND, &address, &port, &file("demand")]);
        let server = Running::start(&mut inside(scene.link.b(), server));
        server.says("listens");
        fs::write(file("demand"), "").unwrap();
        fs::write(file("program"), TELLS_ITS_WINDOW).unwrap();
        fs::write(file("stays"), "").unwrap();
        let (program, told, stays) = (file("program"), file("told"), file("stays"));
        let script =
            format!("python3 {program} {address} {port} {told} & echo $!; while [ -e {stays} ]; do sleep 0.1; done");
        let run = scene.run(&["--name", job], &["bash".to_owned(), "-c".to_owned(), script]);
        let _program = Orphan(until("its pid", || run.out().lines().next().map(|line| line.parse().unwrap())));
        let idle = IdleConnection { scene, run, _program, _server: server };
        until("data", || (idle.told().is_some_and(|(received, _)| received > 500_000)).then_some(()));
        assert!(finish(&mut lowtide(["pause", job])).status.success());
        until("a small window", || idle.is_held().then_some(()));
        fs::remove_file(file("demand")).unwrap();
        until("the end of the data", || {
            let mut ss = Command::new("ss");
            ss.args(["-tnHO", "state", "established", "sport", "=", &format!(":{port}")]);
            let text = lifecycle::output(scene.link.b().enter_command(&mut ss));
            (text.split_whitespace().nth(1) == Some("0")).then_some(())
        });
        thread::sleep(Duration::from_secs(1)); // its last ACK is there
        assert!(idle.is_held(), "{:?}", idle.told());
        idle
    }

    /// Bytes received, and the most that the window may be.
    fn told(&self) -> Option<(u64, f64)> {
        let text = fs::read_to_string(self.scene.directory.path().join("told")).ok()?;
        let (received, window) = text.trim().split_once(' ').unwrap();
        Some((received.parse().unwrap(), window.parse().unwrap()))
    }

    fn is_held(&self) -> bool {
        self.told().unwrap().1 < HELD
    }

    /// Though no more data have come.
    fn is_let_go(&self, received: u64) {
        within(PATIENCE, "a full window", || self.told().filter(|(_, window)| *window > 1e9));
        assert_eq!(self.told().unwrap().0, received);
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn an_idle_connection_of_a_killed_run_is_let_go_by_the_next_one() {
    let scene = Scene::new("idle");
    let idle = IdleConnection::new(&scene, &name("idle"));
    let (received, _) = idle.told().unwrap();
    idle.run.signal(Signal::SIGKILL);
    until("its end", || (!is_alive(idle.run.pid())).then_some(()));
    // The group's own programs wait for a segment that leaves. Other tests start runs, too, so there is no time here in
    // which it surely is held.
    let next = finish(&mut lowtide(["run", "--", "true"]));
    assert!(next.status.success(), "{next:?}");
    idle.is_let_go(received);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn an_idle_connection_that_is_left_behind_is_let_go_at_the_end() {
    let scene = Scene::new("idleleft");
    let idle = IdleConnection::new(&scene, &name("idleleft"));
    let (received, _) = idle.told().unwrap();
    fs::remove_file(scene.directory.path().join("stays")).unwrap();
    until("its end", || (!is_alive(idle.run.pid())).then_some(()));
    idle.is_let_go(received);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    for (arguments, sentence) in [
        (
            &["--direction", "down", "--cc", "cubic"][..],
            "--direction down: --cc cubic governs only what is sent; leave --cc out, as tide governs what is received, too",
        ),
        (
            &["--direction", "both", "--cc", "dctcp"],
            "--direction both: --cc dctcp governs only what is sent; leave --cc out, as tide governs what is received, too",
        ),
        (
            &["--direction", "down", "--size-of", "/etc", "--deadline", "1h"],
            "--direction down: --size-of counts files that are here already; say with --size how much is to be received",
        ),
        (
            &["--cc", "cubic", "--download-size", "1GB"],
            "--download-size: --cc cubic governs only what is sent; leave --cc out, as tide governs what is received, too",
        ),
        (
            &["--direction", "down", "--cc", "ledbatpp", "--size", "1GB", "--deadline", "1h"],
            "--deadline: --cc ledbatpp knows no weight, which is how a deadline presses for what is received; leave --cc out, or take cdg, vegas or eclipse",
        ),
        (
            &["--direction", "down", "--cc", "vegas", "--control", "mbc"],
            "--control mbc: there is no model of what is received; take --control pid",
        ),
        (
            &["--direction", "up", "--download-size", "1GB"],
            "--download-size is about what is received, and --direction up governs only what is sent; give --direction both",
        ),
    ] {
        let mut command = lowtide(["run"]);
        let ended = finish(command.args(arguments).args(["--", "true"]));
        assert_eq!(ended.status.code(), Some(125), "{ended:?}");
        assert_eq!(ended.sentence(), format!("lowtide: {sentence}"));
    }
}
