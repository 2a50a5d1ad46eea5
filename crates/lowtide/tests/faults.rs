// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make faults`: what can go wrong on the way of a transfer, or be done to it. The data arrive as they were sent, and
//! nothing of ours is left. Minutes, and the machine for itself: ignored unless asked for.

#[path = "support/bpf.rs"]
mod bpf;
#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{collections::BTreeSet, fs, net::SocketAddr, path::Path, process::Command, thread, time::Duration};

use bpf::{bpf_of, leave_the_kernel};
use lifecycle::{
    Ended, Orphan, Running, children, finish, groups_of, inside, is_alive, listed_laws, lowtide, name, needs_kernel,
    own_cgroup, report, sockets_to, until, within,
};
use lowtide_emu::{Config, Emulator};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tempfile::TempDir;

const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/peers.py");
const PORT: u16 = 9000;
/// Longer than any of these transfers takes: where thousands of connections overrun a link, timeouts of the last ones
/// double up to two minutes.
const PATIENCE: Duration = Duration::from_secs(900);

/// A link with a receiver behind it.
struct Scene {
    // before the link, in whose namespace it runs
    receiver: Option<Running>,
    link: Emulator,
    directory: TempDir,
    /// What is mounted that Lowtide could have mounted.
    mounts: BTreeSet<String>,
}

/// A run that has ended, or has been killed, and what the kernel had of it.
struct Past {
    pid: i32,
    held: BTreeSet<(&'static str, u32)>,
}

impl Past {
    fn of(run: &Running) -> Past {
        Past { pid: run.pid(), held: bpf_of(run.pid()) }
    }

    /// Programs, maps, links and groups.
    fn goes(self) {
        assert!(!self.held.is_empty(), "it governed");
        leave_the_kernel(self.held);
        assert!(groups_of(self.pid).is_empty(), "{:?}", groups_of(self.pid));
    }
}

fn mounts() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap();
    text.lines().filter(|line| line.contains(" bpf ") || line.contains(" cgroup2 ")).map(str::to_owned).collect()
}

impl Scene {
    /// 20 Mbit/s and 20 ms, but for what `change` changes.
    fn new(test: &str, change: impl FnOnce(&mut Config)) -> Scene {
        needs_kernel();
        let (a, b) = (name(&format!("{test}-a")), name(&format!("{test}-b")));
        let mut config = Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(20));
        config.realtime = true;
        change(&mut config);
        let link = Emulator::start(config).unwrap();
        let mut scene = Scene { receiver: None, link, directory: tempfile::tempdir().unwrap(), mounts: mounts() };
        scene.receive();
        scene
    }

    fn address(&self) -> SocketAddr {
        (self.link.b4(), PORT).into()
    }

    /// A receiver, after the one that there was has been killed.
    fn receive(&mut self) {
        if let Some(old) = self.receiver.take() {
            old.signal(Signal::SIGKILL);
            old.end();
        }
        let mut command = Command::new("python3");
        command.args([PEERS, "receive", &self.address().ip().to_string(), &PORT.to_string()]);
        let receiver = Running::start(&mut inside(self.link.b(), command));
        receiver.says("listening");
        self.receiver = Some(receiver);
    }

    /// PROGRAM: so many connections of so many bytes, one after the other by so much.
    fn sender(&self, connections: usize, length: u64, pause: f64) -> Vec<String> {
        let address = self.address();
        let words = ["python3", PEERS, "send", &address.ip().to_string(), &PORT.to_string()];
        let numbers = [connections.to_string(), length.to_string(), pause.to_string()];
        words.iter().map(|word| (*word).to_owned()).chain(numbers).collect()
    }

    fn report_file(&self) -> std::path::PathBuf {
        self.directory.path().join("report.json")
    }

    /// `lowtide run OPTIONS -- PROGRAM` on the near side.
    fn run(&self, options: &[&str], program: &[String]) -> Running {
        let mut command = lowtide(["run"]);
        command.args(["--name", self.link.a().name()]).args(options);
        command.arg("--report").arg(self.report_file()).arg("--").args(program);
        Running::start(&mut inside(self.link.a(), command))
    }

    /// Waits until PROGRAM has connections, and so long from then on.
    fn sends_for(&self, seconds: f64) {
        until("a connection", || (!sockets_to(self.link.a(), PORT).is_empty()).then_some(()));
        thread::sleep(Duration::from_secs_f64(seconds));
    }

    /// All connections came through with the bytes that were sent, each at least once.
    fn all_arrived(&self, connections: usize, length: u64) {
        let said = self.receiver.as_ref().map(Running::out).unwrap_or_default();
        let arrived: BTreeSet<_> = said.lines().filter(|line| *line != "listening").collect();
        let mut expect = Command::new("python3");
        let expected = lifecycle::output(expect.args([PEERS, "expect", &connections.to_string(), &length.to_string()]));
        let expected: BTreeSet<_> = expected.lines().collect();
        let (missing, wrong) = (expected.difference(&arrived).count(), arrived.difference(&expected).count());
        assert_eq!((missing, wrong), (0, 0), "of {connections} connections: missing, and with other data");
    }

    /// The run ended well, everything arrived, and nothing is left. No other one goes on.
    fn end(&self, run: Running, connections: usize, length: u64) -> (Ended, Value) {
        let (ended, past) = ended(run);
        assert!(ended.status.success(), "{ended:?}");
        self.all_arrived(connections, length);
        past.goes();
        let control = fs::read_dir("/run/lowtide/control").unwrap().flatten().map(|entry| entry.file_name());
        let sockets: Vec<_> = control.filter(|it| it.to_string_lossy().starts_with(self.link.a().name())).collect();
        assert!(sockets.is_empty(), "{sockets:?}");
        // another test has some for a while
        within(PATIENCE, "the end of mounts", || mounts().is_subset(&self.mounts).then_some(()));
        (ended, report(&self.report_file()))
    }
}

/// A run to its end.
fn ended(run: Running) -> (Ended, Past) {
    let mut past = Past::of(&run);
    within(PATIENCE, "the run's end", || {
        past.held.extend(bpf_of(past.pid));
        (!is_alive(past.pid)).then_some(())
    });
    (run.end(), past)
}

fn part(report: &Value, of: &str) -> f64 {
    report[of].as_f64().unwrap() / report["acknowledged_bytes"].as_f64().unwrap()
}

/// The transfer under this deadline, over two connections, whatever the link does.
fn survives(test: &str, deadline: &str, length: u64, change: impl FnOnce(&mut Config)) -> Value {
    let scene = Scene::new(test, change);
    let size = (2 * length).to_string();
    let run = scene.run(&["--deadline", deadline, "--size", &size], &scene.sender(2, length, 0.0));
    scene.end(run, 2, length).1
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn a_link_that_is_down_for_30_s() {
    let report =
        survives("down", "+80s", 20_000_000, |it| it.schedule = Some("0s:20mbit,8s:0mbit,38s:20mbit".parse().unwrap()));
    let kinds: Vec<_> = report["announcements"].as_array().unwrap().iter().map(|said| &said["outlook"]).collect();
    assert!(kinds.iter().any(|kind| *kind == "stalled"), "{kinds:?}");
    assert_eq!(report["outcome"], "met");
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn a_link_that_is_down_while_the_program_connects() {
    let report = survives("mute", "+100s", 2_000_000, |it| it.schedule = Some("0s:0mbit,30s:20mbit".parse().unwrap()));
    let said = report["announcements"].as_array().unwrap();
    assert_eq!(said[0]["outlook"], "waiting", "it has no connection yet: {said:?}");
    assert_eq!(report["outcome"], "met");
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn capacity_that_falls_to_a_twentieth_and_comes_back() {
    let change = |it: &mut Config| it.schedule = Some("0s:20mbit,3s:1mbit,18s:20mbit".parse().unwrap());
    let report = survives("steps", "+60s", 8_000_000, change);
    assert_eq!(report["outcome"], "met");
    assert!(part(&report, "retransmitted_bytes") < 0.1, "{}", report["retransmitted_bytes"]);
}

/// The route becomes a longer one: 20 ms, then 200 ms.
#[test]
#[ignore = "a battery of its own: make faults"]
fn a_round_trip_that_becomes_ten_times_as_long() {
    let change = |it: &mut Config| it.rtt_schedule = Some("0s:20ms,3s:200ms".parse().unwrap());
    let report = survives("farther", "+60s", 10_000_000, change);
    assert_eq!(report["outcome"], "met");
    let again = part(&report, "retransmitted_bytes");
    println!("{:.1} Mbit/s; sent again: {:.2} %", 1e-6 * report["mean_bps"].as_f64().unwrap(), 100.0 * again);
    assert!(again < 0.1, "{again}");
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn one_packet_of_twenty_lost() {
    let report = survives("loss", "+60s", 2_000_000, |it| it.loss = "5%".parse().unwrap());
    assert_eq!(report["outcome"], "met");
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn packets_that_fall_back() {
    let report = survives("order", "+60s", 4_000_000, |it| it.reordering = "5%:8ms".parse().unwrap());
    assert_eq!(report["outcome"], "met");
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn a_receiver_that_dies_and_is_back() {
    const LENGTH: u64 = 6_000_000;
    let mut scene = Scene::new("peer", |_| {});
    let run = scene.run(&["--deadline", "+60s", "--size", "12MB"], &scene.sender(2, LENGTH, 0.0));
    scene.sends_for(2.0);
    scene.receive();
    let (ended, report) = scene.end(run, 2, LENGTH);
    assert!(ended.err.contains("connection 0: "), "it noticed: {ended:?}");
    assert!(report["acknowledged_bytes"].as_u64().unwrap() > 2 * LENGTH, "what was sent before was sent again");
}

/// The connections become plain TCP once the heartbeat is old, and are governed again when it is back.
#[test]
#[ignore = "a battery of its own: make faults"]
fn a_controller_that_is_stopped_lets_go_gently() {
    const LENGTH: u64 = 8_000_000;
    let scene = Scene::new("stopped", |_| {});
    let run = scene.run(&["--deadline", "+60s", "--size", "32MB", "--w-max", "0.1"], &scene.sender(4, LENGTH, 0.0));
    scene.sends_for(3.0);
    run.signal(Signal::SIGSTOP);
    thread::sleep(Duration::from_secs(8));
    run.signal(Signal::SIGCONT);
    let (_, report) = scene.end(run, 4, LENGTH);
    let again = part(&report, "retransmitted_bytes");
    println!("sent again: {:.2} %", 100.0 * again);
    assert!(again < 0.04, "{again}");
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn a_program_that_is_stopped() {
    const LENGTH: u64 = 5_000_000;
    let scene = Scene::new("paused", |_| {});
    let run = scene.run(&["--deadline", "+60s", "--size", "10MB"], &scene.sender(2, LENGTH, 0.0));
    scene.sends_for(1.0);
    let program = Pid::from_raw(children(run.pid())[0]);
    kill(program, Signal::SIGSTOP).unwrap();
    thread::sleep(Duration::from_secs(8));
    kill(program, Signal::SIGCONT).unwrap();
    let (_, report) = scene.end(run, 2, LENGTH);
    assert_eq!(report["outcome"], "met");
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn lowtide_killed_twice_and_once_more() {
    const LENGTH: u64 = 4_000_000;
    let mut scene = Scene::new("killed", |_| {});
    let mut killed = Vec::new();
    for _ in 0..2 {
        let run = scene.run(&["--quiet"], &scene.sender(2, LENGTH, 0.0));
        scene.sends_for(0.5);
        let program = Orphan(children(run.pid())[0]);
        killed.push(Past::of(&run));
        run.signal(Signal::SIGKILL);
        run.end();
        within(PATIENCE, "PROGRAM's own end", || (!is_alive(program.0)).then_some(()));
        scene.all_arrived(2, LENGTH);
        scene.receive();
    }
    let run = scene.run(&["--quiet"], &scene.sender(2, LENGTH, 0.0));
    scene.end(run, 2, LENGTH);
    // those of the killed ones are gone, too
    killed.into_iter().for_each(Past::goes);
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn two_hundred_connections_a_second() {
    let scene = Scene::new("rate", |_| {});
    let run = scene.run(&["--deadline", "+60s", "--size", "10MB"], &scene.sender(1000, 10_000, 0.005));
    let (_, report) = scene.end(run, 1000, 10_000);
    assert_eq!(report["connections"], 1000);
    assert_eq!(report["outcome"], "met");
}

/// Not more is sent again than without Lowtide, by far.
#[test]
#[ignore = "a battery of its own: make faults"]
fn five_thousand_sockets() {
    const NUMBER: usize = 5000;
    const LENGTH: u64 = 4_000;
    // which a plain program overruns, too, and ends on
    let slow = |it: &mut Config| it.rate = "30mbit".parse().unwrap();
    let plain = Scene::new("many-plain", slow);
    let program = plain.sender(NUMBER, LENGTH, 0.0);
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    let ended = Running::start(&mut inside(plain.link.a(), command)).end_within(PATIENCE);
    assert!(ended.status.success(), "{ended:?}");
    plain.all_arrived(NUMBER, LENGTH);
    let without = segments_sent_again(&plain);
    let scene = Scene::new("many", slow);
    let run = scene.run(&["--deadline", "+290s", "--size", "20MB"], &scene.sender(NUMBER, LENGTH, 0.0));
    scene.end(run, NUMBER, LENGTH);
    let with = segments_sent_again(&scene);
    println!("segments sent again: {with} with Lowtide, {without} without");
    assert!(with <= 2 * without.max(1000), "{with} with Lowtide, {without} without");
}

fn segments_sent_again(scene: &Scene) -> u64 {
    let mut cat = Command::new("cat");
    let text = lifecycle::output(scene.link.a().enter_command(cat.arg("/proc/net/snmp")));
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let position = names.split(' ').position(|name| name == "RetransSegs").unwrap();
    values.split(' ').nth(position).unwrap().parse().unwrap()
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn a_run_within_a_run_and_one_beside_it() {
    const LENGTH: u64 = 2_000_000;
    let scene = Scene::new("nested", |_| {});
    let inner: Vec<String> = [env!("CARGO_BIN_EXE_lowtide"), "run", "--quiet", "--"].map(str::to_owned).into();
    let inner = [inner, scene.sender(2, LENGTH, 0.0)].concat();
    let beside = scene.run(&["--quiet"], &scene.sender(2, LENGTH, 0.0));
    let outer = scene.run(&["--quiet"], &inner);
    let (ended, past) = ended(beside);
    assert!(ended.status.success(), "{ended:?}");
    scene.end(outer, 2, LENGTH);
    past.goes();
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn a_group_that_is_frozen_or_left() {
    const LENGTH: u64 = 5_000_000;
    let scene = Scene::new("frozen", |_| {});
    let run = scene.run(&["--deadline", "+60s", "--size", "10MB"], &scene.sender(2, LENGTH, 0.0));
    scene.sends_for(1.0);
    let group = groups_of(run.pid()).pop().expect("its group");
    let program = children(run.pid())[0];
    fs::write(group.join("cgroup.freeze"), "1").unwrap();
    until("the sentence", || run.err().contains("is frozen").then_some(()));
    thread::sleep(Duration::from_secs(3));
    fs::write(group.join("cgroup.freeze"), "0").unwrap();
    until("the sentence", || run.err().contains("runs in its group again").then_some(()));
    fs::write(own_cgroup().join("cgroup.procs"), program.to_string()).unwrap();
    until("the sentence", || run.err().contains("moved out of its group").then_some(()));
    // connections stay with the group in which they were opened
    let (_, report) = scene.end(run, 2, LENGTH);
    assert_eq!(report["outcome"], "met");
}

#[test]
#[ignore = "a battery of its own: make faults"]
fn pins_that_somebody_removes() {
    needs_kernel();
    let mounts = || fs::read_to_string("/proc/self/mounts").unwrap().lines().filter(|it| it.contains(" bpf ")).count();
    let mounted = mounts();
    let ended = finish(&mut lowtide(["cc", "load", "vegas", "--pin"]));
    assert!(ended.status.success(), "{ended:?}");
    let pins = Path::new("/sys/fs/bpf/lowtide");
    assert!(listed_laws().contains("lt_vegas") && pins.exists());
    fs::remove_dir_all(pins).unwrap();
    within(Duration::from_secs(60), "the law's end", || (!listed_laws().contains("lt_vegas")).then_some(()));
    let unload = finish(&mut lowtide(["cc", "unload", "vegas"]));
    assert!(!unload.status.success() && unload.sentence().contains("vegas"), "{unload:?}");
    assert!(finish(&mut lowtide(["cc", "load", "vegas", "--pin"])).status.success());
    assert!(finish(&mut lowtide(["cc", "unload", "vegas"])).status.success());
    within(Duration::from_secs(60), "the law's end", || (!listed_laws().contains("lt_vegas")).then_some(()));
    assert!(!pins.exists(), "its directory goes with the last law");
    assert_eq!(mounts(), mounted, "a file system that was mounted for pins goes with the last of them");
    // where none is mounted, whatever this machine has
    let script = "while umount -l /sys/fs/bpf 2>/dev/null; do :; done
                  mounts() { grep -c ' /sys/fs/bpf bpf ' /proc/self/mounts; }
                  mounts; \"$0\" cc load vegas --pin >/dev/null; mounts; \"$0\" cc unload vegas >/dev/null; mounts";
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_lowtide")]);
    assert_eq!(finish(&mut elsewhere).out.split_whitespace().collect::<Vec<_>>(), ["0", "1", "0"]);
    within(Duration::from_secs(60), "the law's end", || (!listed_laws().contains("lt_vegas")).then_some(()));
}
