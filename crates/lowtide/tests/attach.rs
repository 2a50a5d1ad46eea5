// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! `lowtide attach`: connections of what runs already, from its law to ours and back, without being interrupted.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    fs,
    io::Write,
    net::Ipv4Addr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use lifecycle::{
    Ended, Receiver, Running, Socket, dev_tcp, finish, is_alive, lowtide, name, needs_kernel, own_cgroup, report,
    sockets_to, transfer_status, trickle, until,
};
use lowtide_emu::{Config, Emulator, Namespace};
use nix::{
    sys::{signal::Signal, stat::Mode},
    unistd::{User, mkfifo},
};
use serde_json::Value;

/// The law that its namespace gives.
const FORMER: &str = "reno";

/// A service in a group of its own, at one end of a link of 20 Mbit/s and 40 ms, with a law of the kernel's.
struct Scene {
    // the service ends before its group
    service: Option<Running>,
    group: PathBuf,
    receivers: Vec<Receiver>,
    emulator: Emulator,
    job: String,
}

impl Scene {
    /// `script` of the receivers' addresses is what the service does.
    fn new(test: &str, receivers: usize, script: impl Fn(&[Receiver]) -> String) -> Scene {
        Scene::on(test, |_| {}, receivers, script)
    }

    /// The same on another link.
    fn on(
        test: &str,
        change: impl FnOnce(&mut Config),
        receivers: usize,
        script: impl Fn(&[Receiver]) -> String,
    ) -> Scene {
        let (a, b) = (format!("{}a", name(test)), format!("{}b", name(test)));
        let mut config = Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(40));
        change(&mut config);
        let emulator = Emulator::start(config).unwrap();
        emulator.a().run(|| fs::write("/proc/sys/net/ipv4/tcp_congestion_control", FORMER)).unwrap().unwrap();
        let receivers: Vec<_> = (0..receivers).map(|_| Receiver::start(emulator.b(), emulator.b4())).collect();
        let group = own_cgroup().join(name(test));
        fs::create_dir(&group).unwrap();
        let service = Some(Running::start(&mut inside(&emulator, in_group(&group, &script(&receivers)))));
        Scene { service, group, receivers, emulator, job: name(test) }
    }

    fn attach(&self, options: &[&str]) -> Running {
        let group = self.group.to_str().unwrap();
        let running = Running::start(lowtide(["attach", "--cgroup", group, "--name", &self.job]).args(options));
        until("attached", || running.err().contains("attached to").then_some(()));
        running
    }

    fn sockets(&self, receiver: usize) -> Vec<Socket> {
        sockets_to(self.emulator.a(), self.receivers[receiver].port())
    }

    /// The laws of the service's connections to a receiver.
    fn laws(&self, receiver: usize) -> Vec<String> {
        self.sockets(receiver).iter().map(|socket| socket.law().to_owned()).collect()
    }

    /// Until all of its connections to a receiver have a law like this; how many there are.
    fn has(&self, receiver: usize, law: &str) -> usize {
        until(law, || {
            let laws = self.laws(receiver);
            (!laws.is_empty() && laws.iter().all(|it| it.starts_with(law))).then_some(laws.len())
        })
    }

    fn status(&self) -> Value {
        transfer_status(&self.job).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        drop(self.service.take());
        for pid in fs::read_to_string(self.group.join("cgroup.procs")).unwrap_or_default().lines() {
            drop(lifecycle::Orphan(pid.parse().unwrap()));
        }
        for _ in 0..100 {
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn inside(emulator: &Emulator, command: Command) -> Command {
    lifecycle::inside(emulator.a(), command)
}

/// A script that enters a group first.
fn in_group(group: &Path, script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", script]);
    let entrance = group.join("cgroup.procs");
    let enter = move || fs::OpenOptions::new().write(true).open(&entrance)?.write_all(b"0");
    // SAFETY: the child has one thread, and what it allocates it frees.
    unsafe { command.pre_exec(enter) };
    command
}

fn ask(words: &[&str]) -> Ended {
    finish(&mut lowtide(words))
}

fn bulk(receiver: &Receiver) -> String {
    format!("cat /dev/zero > {}", dev_tcp(receiver.address))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn open_connections_get_the_law_and_have_their_own_back() {
    needs_kernel();
    let two = |receivers: &[Receiver]| format!("{} & {} & wait", bulk(&receivers[0]), bulk(&receivers[0]));
    let scene = Scene::new("attach", 1, two);
    let pid = scene.service.as_ref().unwrap().pid();
    until("both", || (scene.sockets(0).len() == 2).then_some(()));
    assert_eq!(scene.has(0, FORMER), 2);
    let before = scene.receivers[0].received();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let attached = scene.attach(&["--report", file.to_str().unwrap()]);
    assert!(attached.err().contains("3 processes, 2 open connections"), "{}", attached.err());
    assert_eq!(scene.has(0, "lt_tide"), 2);
    until("bytes under the law", || (scene.status()["acknowledged_bytes"].as_f64()? > 1e6).then_some(()));
    assert_eq!(scene.status()["kind"], "attach");
    assert!(scene.receivers[0].received() > before + 500_000, "the connections go on");

    let again = ask(&["attach", "--cgroup", scene.group.to_str().unwrap()]);
    assert!(again.sentence().contains(&format!("{} (process {}", scene.job, attached.pid())), "{again:?}");
    assert_eq!(again.status.code(), Some(125));
    let child = scene.group.join("child");
    fs::create_dir(&child).unwrap();
    let below = ask(&["attach", "--cgroup", child.to_str().unwrap()]);
    assert!(below.sentence().contains("above or below it"), "{below:?}");
    fs::remove_dir(&child).unwrap();

    assert!(ask(&["set", &scene.job, "--max-rate", "2mbit"]).status.success());
    until("a limit", || sockets_to(scene.emulator.a(), scene.receivers[0].port())[0].pacing_limit().map(drop));
    assert!(ask(&["detach", &scene.job]).status.success());
    assert_eq!(scene.laws(0), [FORMER, FORMER], "at once");
    let limits = sockets_to(scene.emulator.a(), scene.receivers[0].port());
    assert!(limits.iter().all(|socket| socket.pacing_limit().is_none()), "{limits:?}");
    let ended = attached.end();
    assert!(ended.status.success() && ended.err.contains("detached: 2 connections go on as before"), "{ended:?}");
    assert!(report(&file)["acknowledged_bytes"].as_f64().unwrap() > 1e6);
    let then = scene.receivers[0].received();
    until("bytes after it", || (scene.receivers[0].received() > then + 1_000_000).then_some(()));
    assert!(is_alive(pid) && scene.group.exists());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn only_the_connections_that_are_meant() {
    needs_kernel();
    // each new connection is a new process, so there are open ones and new ones
    let both = |receivers: &[Receiver]| {
        let [a, b] = [&receivers[0], &receivers[1]].map(|it| dev_tcp(it.address));
        format!(
            "cat /dev/zero > {a} & cat /dev/zero > {b} & while :; do head -c 20000 /dev/zero > {a}; head -c 20000 /dev/zero > {b}; done"
        )
    };
    let scene = Scene::new("meant", 2, both);
    scene.has(0, FORMER);
    scene.has(1, FORMER);
    let port = scene.receivers[0].port().to_string();
    let attached = scene.attach(&["--port", &port, "--to", &format!("{}/24", scene.emulator.b4())]);
    scene.has(0, "lt_tide");
    for _ in 0..20 {
        let laws = scene.laws(1);
        assert!(laws.iter().all(|law| law == FORMER), "{laws:?}");
        thread::sleep(Duration::from_millis(100));
    }
    attached.signal(Signal::SIGINT);
    assert!(attached.end().status.success());
    scene.has(0, FORMER);
    // no connection is to the other network
    let attached = scene.attach(&["--to", "198.51.100.0/24"]);
    assert!(attached.err().contains("0 open connections"), "{}", attached.err());
    thread::sleep(Duration::from_secs(1));
    assert!(scene.laws(0).iter().chain(&scene.laws(1)).all(|law| law == FORMER));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn connections_in_each_network_namespace_of_the_group() {
    needs_kernel();
    let scene = Scene::new("spaces", 1, |receivers| bulk(&receivers[0]));
    // another process of the group, at the other end of the link; and one that comes later, elsewhere
    let (far, late) = (scene.emulator.b(), lifecycle::namespace("spaces"));
    let [to_far, to_late] = [(scene.emulator.a(), scene.emulator.a4()), (&late, Ipv4Addr::LOCALHOST)]
        .map(|(at, to)| Receiver::start(at, to));
    let law = |space: &Namespace, port: u16| sockets_to(space, port).first().map(|socket| socket.law().to_owned());
    let has = |space: &Namespace, port: u16, wanted: &str| {
        until(wanted, || law(space, port).filter(|law| law.starts_with(wanted)));
    };
    let _far = Running::start(&mut lifecycle::inside(far, in_group(&scene.group, &bulk(&to_far))));
    scene.has(0, FORMER);
    let before = until("the other one", || law(far, to_far.port()));
    let attached = scene.attach(&[]);
    assert!(attached.err().contains("2 open connections"), "{}", attached.err());
    assert_eq!(scene.has(0, "lt_tide"), 1);
    has(far, to_far.port(), "lt_tide");
    // new connections are governed wherever they are
    let trickle = trickle(&[to_late.address]);
    let _late = Running::start(&mut lifecycle::inside(&late, in_group(&scene.group, &trickle)));
    has(&late, to_late.port(), "lt_tide");
    assert!(ask(&["detach", &scene.job]).status.success());
    assert_eq!(scene.laws(0), [FORMER]);
    assert_eq!(law(far, to_far.port()), Some(before));
    assert!(law(&late, to_late.port()).is_some_and(|law| !law.starts_with("lt_")));
    assert!(attached.end().status.success());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn it_ends_with_the_group_and_killed_it_leaves_ordinary_connections() {
    needs_kernel();
    let slow = |receivers: &[Receiver]| trickle(&[receivers[0].address]);
    let mut scene = Scene::new("ends", 1, slow);
    scene.has(0, FORMER);
    let killed = scene.attach(&[]);
    scene.has(0, "lt_tide");
    killed.signal(Signal::SIGKILL);
    drop(killed);
    let before = scene.receivers[0].received();
    until("bytes on the orphaned law", || (scene.receivers[0].received() > before + 100_000).then_some(()));
    // another one takes it over, from the orphan
    let attached = scene.attach(&["--cc", "cubic"]);
    scene.has(0, "cubic");
    drop(scene.service.take());
    let ended = attached.end();
    assert!(ended.status.success() && ended.err.contains("the group's last process has ended"), "{ended:?}");
    let empty = ask(&["attach", "--cgroup", scene.group.to_str().unwrap()]);
    assert!(empty.sentence().contains("no process is in it"), "{empty:?}");
}

/// A connection that sets a law, or an octet with its DSCP, for each file that comes into a directory, and removes
/// that.
const CHOOSER: &str = r#"
import os, socket, sys, time
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    for name in os.listdir(sys.argv[3]):
        kind, value = name.split("=")
        if kind == "law":
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, value.encode())
        else:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(value))
        os.remove(os.path.join(sys.argv[3], name))
    sock.send(bytes(1000))
    time.sleep(0.02)
"#;

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_programs_choice_takes_effect_afterwards_if_it_needs_no_privilege() {
    needs_kernel();
    let laws = |file: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{file}")).unwrap();
        text.split_whitespace().filter(|law| !law.starts_with("lt_")).map(str::to_owned).collect::<Vec<_>>()
    };
    let free = laws("tcp_allowed_congestion_control");
    let restricted = laws("tcp_available_congestion_control").into_iter().find(|law| !free.contains(law));
    let free = free.into_iter().find(|law| law != FORMER);
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display().to_string();
    let chooser = |receivers: &[Receiver]| {
        let to = receivers[0].address;
        format!("exec python3 -c '{CHOOSER}' {} {} {place}", to.ip(), to.port())
    };
    let scene = Scene::new("choice", 1, chooser);
    scene.has(0, FORMER);
    let choose = |what: &str| {
        let file = directory.path().join(what);
        fs::write(&file, "").unwrap();
        until("the choice", || (!file.exists()).then_some(()));
    };
    // a law that the program could not have without us it does not get by us either; nor one that is none
    for law in [restricted.as_deref(), Some("no-such-law")].into_iter().flatten() {
        let attached = scene.attach(&[]);
        scene.has(0, "lt_tide");
        choose(&format!("law={law}"));
        assert!(scene.laws(0)[0].starts_with("lt_tide"), "it is held to the law");
        assert!(ask(&["detach", &scene.job]).status.success());
        assert_eq!(scene.laws(0), [FORMER], "{law}");
        attached.end();
    }
    let Some(free) = free else {
        println!("skipped: no other law is free here");
        return;
    };
    let attached = scene.attach(&[]);
    scene.has(0, "lt_tide");
    choose(&format!("law={free}"));
    choose("tos=72");
    assert!(scene.sockets(0)[0].text.contains("tos:0x4 "), "{:?}", scene.sockets(0));
    assert!(ask(&["detach", &scene.job]).status.success());
    assert_eq!(scene.laws(0), [free]);
    assert!(scene.sockets(0)[0].text.contains("tos:0x48"), "{:?}", scene.sockets(0));
    attached.end();
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_went_before_is_not_counted() {
    needs_kernel();
    const BEFORE: u64 = 2_000_000;
    let script = |receivers: &[Receiver]| {
        format!(
            "exec 10<>{}; head -c {BEFORE} /dev/zero >&10; read -n 1 <&10; sleep 600",
            dev_tcp(receivers[0].address)
        )
    };
    let scene = Scene::on("before", |it| it.loss = "2%".parse().unwrap(), 1, script);
    until("all of it", || (scene.receivers[0].received() == BEFORE).then_some(()));
    let again = scene.sockets(0)[0].number("bytes_retrans:").unwrap();
    assert!(again > 0.0, "some of it was lost");
    let attached = scene.attach(&["--size", "1MB"]);
    let status = until("a status", || Some(scene.status()).filter(|status| status["connections"] == 1));
    for field in ["acknowledged_bytes", "retransmitted_bytes"] {
        assert_eq!(status[field], 0, "{field}: {again} went again before");
    }
    scene.service.as_ref().unwrap().signal(Signal::SIGTERM);
    let ended = attached.end();
    assert!(ended.err.contains("0 B in"), "closed connections, too: {ended:?}");
}

/// A command of a user without rights here.
fn as_nobody(script: &str, argument: &str) -> Running {
    let nobody = User::from_name("nobody").unwrap().unwrap();
    let mut python = Command::new("python3");
    Running::start(python.args(["-c", script, argument]).uid(nobody.uid.as_raw()).gid(nobody.gid.as_raw()))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn others_cannot_keep_a_group_from_us() {
    needs_kernel();
    let lock = "import fcntl, os, sys, time\n\
                fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)\nprint('locked', flush=True)\ntime.sleep(600)";
    let scene = Scene::new("locked", 1, |receivers| trickle(&[receivers[0].address]));
    let locker = as_nobody(lock, scene.group.to_str().unwrap());
    locker.says("locked");
    let attached = scene.attach(&[]);
    // one of ours that cannot see the control socket of the other one finds its programs
    let mut blind = Command::new("unshare");
    blind.args(["-m", "sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_lowtide")]);
    let refused = finish(lifecycle::lowtide_environment(blind.args(["attach", "--cgroup"]).arg(&scene.group)));
    assert!(refused.sentence().contains("another Lowtide governs it"), "{refused:?}");
    scene.has(0, "lt_tide");
    drop(attached);
    // what a run makes they cannot even open
    let run = Running::start(&mut lifecycle::run_script(&["--cc", "reno"], "echo begun; sleep 600"));
    run.says("begun");
    let group = lifecycle::groups_of(run.pid()).remove(0);
    let locker = as_nobody(lock, group.to_str().unwrap());
    let ended = locker.end();
    assert!(ended.err.contains("PermissionError"), "{ended:?}");
}

/// Processes that each are in a network namespace of their own, and then in another one.
const WANDERERS: &str = r#"
import ctypes, os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        ctypes.CDLL(None).unshare(0x40000000)
        time.sleep(600)
print("begun", flush=True)
time.sleep(600)
"#;

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_group_in_very_many_namespaces_does_not_use_up_our_files() {
    needs_kernel();
    let scene = Scene::new("wander", 1, |_| format!("exec python3 -c '{WANDERERS}' 400"));
    scene.service.as_ref().unwrap().says("begun");
    let many = || fs::read_to_string(scene.group.join("cgroup.procs")).unwrap().lines().count() > 400;
    until("the processes", || many().then_some(()));
    let attached = scene.attach(&[]);
    until("a sentence", || attached.err().contains("more network namespaces than are looked at").then_some(()));
    let files = fs::read_dir(format!("/proc/{}/fd", attached.pid())).unwrap().count();
    assert!(files < 400, "{files} files are open");
    assert!(ask(&["detach", &scene.job]).status.success());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_cannot_be_attached_to_is_a_sentence() {
    needs_kernel();
    let root = own_cgroup();
    // a process that reads these files waits
    let fake = tempfile::tempdir().unwrap();
    for file in ["cgroup.procs", "cgroup.type", "cgroup.events"] {
        mkfifo(&fake.path().join(file), Mode::from_bits_truncate(0o600)).unwrap();
    }
    for (options, part) in [
        (&["--cgroup", fake.path().to_str().unwrap()][..], "no group of cgroup v2"),
        (&["--pid", "2147483647"], "there is no such process"),
        (&["--cgroup", "/tmp"], "no group of cgroup v2"),
        (&["--cgroup", "/nowhere"], "No such file"),
        (&["--unit", "no-such-unit"], "no group of this name"),
        (&["--container", "no such container"], "know none of this name"),
        (&["--cgroup", root.to_str().unwrap(), "--to", "here"], "is no network"),
        (&["--cgroup", root.to_str().unwrap(), "--cc", "prague"], "needs ECN from a connection's begin"),
    ] {
        let refused = ask(&[&["attach"][..], options].concat());
        assert!(refused.sentence().contains(part), "{options:?}: {refused:?}");
        assert_eq!(refused.status.code(), Some(125), "{options:?}");
    }
    if root.join("cgroup.type").exists() {
        return; // this process has a group of its own
    }
    let whole = ask(&["attach", "--pid", &std::process::id().to_string()]);
    assert!(whole.sentence().contains("the root group") || whole.sentence().contains("above or below"), "{whole:?}");
}
