// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! `lowtide attach`: connections of what runs already, from its law to ours and back, without being interrupted.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{fs, io::Write, os::unix::process::CommandExt, path::PathBuf, process::Command, thread, time::Duration};

use lifecycle::{
    Ended, Receiver, Running, dev_tcp, finish, is_alive, kernel, lowtide, name, own_cgroup, report, sockets_to,
    trickle, until,
};
use lowtide_emu::{Config, Emulator};
use nix::sys::signal::Signal;
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
        let (a, b) = (format!("{}a", name(test)), format!("{}b", name(test)));
        let config = Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(40));
        let emulator = Emulator::start(config).unwrap();
        emulator.a().run(|| fs::write("/proc/sys/net/ipv4/tcp_congestion_control", FORMER)).unwrap().unwrap();
        let receivers: Vec<_> = (0..receivers).map(|_| Receiver::start(emulator.b(), emulator.b4())).collect();
        let group = own_cgroup().join(name(test));
        fs::create_dir(&group).unwrap();
        let mut service = Command::new("bash");
        service.args(["-c", &script(&receivers)]);
        let entrance = group.join("cgroup.procs");
        let enter = move || fs::OpenOptions::new().write(true).open(&entrance)?.write_all(b"0");
        // SAFETY: the child has one thread, and what it allocates it frees.
        unsafe { service.pre_exec(enter) };
        let service = Some(Running::start(&mut inside(&emulator, service)));
        Scene { service, group, receivers, emulator, job: name(test) }
    }

    fn attach(&self, options: &[&str]) -> Running {
        let group = self.group.to_str().unwrap();
        let running = Running::start(lowtide(["attach", "--cgroup", group, "--name", &self.job]).args(options));
        until("attached", || running.err().contains("attached to").then_some(()));
        running
    }

    /// The laws of the service's connections to a receiver.
    fn laws(&self, receiver: usize) -> Vec<String> {
        let sockets = sockets_to(self.emulator.a(), self.receivers[receiver].port());
        sockets.iter().map(|socket| socket.law().to_owned()).collect()
    }

    /// Until all of its connections to a receiver have a law like this; how many there are.
    fn has(&self, receiver: usize, law: &str) -> usize {
        until(law, || {
            let laws = self.laws(receiver);
            (!laws.is_empty() && laws.iter().all(|it| it.starts_with(law))).then_some(laws.len())
        })
    }

    fn status(&self) -> Value {
        let all: Value = serde_json::from_str(&ask(&["status", &self.job, "--json"]).out).unwrap();
        all["transfers"][0].clone()
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

fn ask(words: &[&str]) -> Ended {
    finish(&mut lowtide(words))
}

fn bulk(receiver: &Receiver) -> String {
    format!("cat /dev/zero > {}", dev_tcp(receiver.address))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn open_connections_get_the_law_and_have_their_own_back() {
    if !kernel() {
        return;
    }
    let two = |receivers: &[Receiver]| format!("{} & {} & wait", bulk(&receivers[0]), bulk(&receivers[0]));
    let scene = Scene::new("attach", 1, two);
    let pid = scene.service.as_ref().unwrap().pid();
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
    if !kernel() {
        return;
    }
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
    // another network is nobody's
    let attached = scene.attach(&["--to", "198.51.100.0/24"]);
    assert!(attached.err().contains("0 open connections"), "{}", attached.err());
    thread::sleep(Duration::from_secs(1));
    assert!(scene.laws(0).iter().chain(&scene.laws(1)).all(|law| law == FORMER));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn it_ends_with_the_group_and_killed_it_leaves_ordinary_connections() {
    if !kernel() {
        return;
    }
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

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_cannot_be_attached_to_is_a_sentence() {
    if !kernel() {
        return;
    }
    let root = own_cgroup();
    for (options, part) in [
        (&["--pid", "2147483647"][..], "there is no such process"),
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
