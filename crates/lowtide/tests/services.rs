// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! Programs that are busy while somebody attaches to them, pauses them, or looks at them from another host.

#[path = "cookbook/hosts.rs"]
mod hosts;
#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "cookbook/programs.rs"]
mod programs;
#[path = "support/terminal.rs"]
mod terminal;

use std::{thread, time::Duration};

use hosts::{Host, Site, has};
use lifecycle::{Socket, needs_kernel, sockets, until, within};
use programs::syncthing;
use serde_json::Value;
use terminal::Terminal;

const SSHD: (&str, &str) = ("sshd", "openssh-server");

/// What `lowtide status` on a host says of a transfer, if it answers.
fn status(host: &Host, transfer: &str) -> Option<Value> {
    let ended = lifecycle::finish(&mut host.command(&format!("lowtide status {transfer} --json")));
    let all: Value = serde_json::from_str(&ended.out).ok()?;
    Some(all["transfers"][0].clone())
}

fn acknowledged(host: &Host, transfer: &str) -> u64 {
    status(host, transfer).and_then(|status| status["acknowledged_bytes"].as_u64()).unwrap_or(0)
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn syncthing_is_attached_to_while_it_syncs() {
    needs_kernel();
    if !has(&[("syncthing", "syncthing")]) {
        return;
    }
    const FILES: u32 = 12;
    let site = Site::new("syncing");
    let start = syncthing(&site);
    site.near.fill("/srv/data", FILES, 5_000_000);
    let _unit = site.near.start_unit("syncthing@operated.service", start);
    site.listens(site.link.a4(), 22000);
    let _far = site.far.start(start);
    let sent = || -> Vec<Socket> {
        let all = sockets(site.link.a()).into_iter();
        all.filter(|socket| socket.number("bytes_acked:").is_some_and(|bytes| bytes > 5e6)).collect()
    };
    within(Duration::from_secs(90), "some of the files", || (!sent().is_empty()).then_some(()));
    assert!(!site.has_same("/srv/data", "/srv/data"), "it still syncs");
    let former = sent()[0].law().to_owned();

    let attached = site.near.start("exec lowtide attach --unit syncthing@operated --name syncthing");
    until("attached", || attached.err().contains("attached to").then_some(()));
    assert!(!attached.err().contains(" 0 open connections"), "{}", attached.err());
    assert!(sent()[0].law().starts_with("lt_tide"), "{:?}", sent());
    within(Duration::from_secs(90), "all files", || site.has_same("/srv/data", "/srv/data").then_some(()));
    site.near.run("lowtide detach syncthing");
    assert_eq!(sent()[0].law(), former);
    assert!(attached.end().status.success());
    site.near.has_governed(1_000_000);
}

/// Longer than programs and devices wait that give up a connection without progress.
const PAUSE: Duration = Duration::from_secs(60);

/// curl gives up after half a minute with less than a byte per second, ssh after the third of its questions that has
/// no answer within 15 s, the server too.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn in_a_long_pause_no_program_gives_up() {
    needs_kernel();
    if !has(&[("curl", "curl"), ("rclone", "rclone"), ("rsync", "rsync"), SSHD]) {
        return;
    }
    let (site, _server) = Site::with_ssh("patience");
    let serve = format!("exec rclone --config '' serve webdav --addr {}:8080 /srv/http", site.link.b4());
    site.far.run("mkdir -p /srv/http /srv/data");
    let _server_of_curl = site.far.start(&serve);
    site.listens(site.link.b4(), 8080);
    site.near.fill("/srv/data", 3, 8_000_000);
    let send = "\
        curl -sS --fail --speed-limit 1 --speed-time 30 -T /srv/data/1 http://backup:8080/1 & \
        ssh -o ServerAliveInterval=15 -o ServerAliveCountMax=3 backup 'cat >/srv/data/2' </srv/data/2 & \
        rsync --timeout=30 /srv/data/3 backup:/srv/data/3 & \
        wait -n && wait -n && wait -n";
    let run = site.near.start(&format!("exec lowtide run --name patience -- bash -c {}", quoted(send)));
    until("bytes", || (acknowledged(&site.near, "patience") > 2_000_000).then_some(()));
    site.near.run("lowtide pause patience");
    thread::sleep(PAUSE);
    let during = status(&site.near, "patience").expect("it runs");
    assert_eq!((&during["paused"], &during["connections"]), (&Value::from(true), &Value::from(3)), "{during}");
    site.near.run("lowtide resume patience");
    let ended = run.end_within(Duration::from_secs(90));
    assert!(ended.status.success(), "{ended:?}");
    site.near.run("mv /srv/data/1 /srv/1");
    site.same("/srv/1", "/srv/http/1");
    site.same("/srv/data", "/srv/data");
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', r"'\''"))
}

/// The parameters of what sets colours and other looks, in all that a terminal was sent.
fn looks(shown: &str) -> Vec<&str> {
    let sequences = shown.split("\u{1b}[").skip(1);
    let parts = sequences.filter_map(|rest| Some(rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?)));
    parts.filter(|(_, rest)| rest.starts_with('m')).map(|(parameters, _)| parameters).collect()
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn top_and_status_over_ssh_fit_a_small_terminal_and_do_without_colour() {
    needs_kernel();
    if !has(&[SSHD]) {
        return;
    }
    let (site, _server) = Site::with_ssh("small");
    let run = "lowtide run --name nightly --deadline +2h --size 8GB --window 00:00-24:00 --group night --cc reno -- sleep 600";
    let _run = site.far.start(run);
    until("the transfer", || status(&site.far, "nightly"));

    for words in ["status", "status nightly", "history", "doctor"] {
        let shown = site.near.run(&format!("ssh backup TERM=dumb /mnt/bin/lowtide {words}")).out;
        assert!(!shown.is_empty() && !shown.contains('\u{1b}'), "{words}: {shown}");
        let wide: Vec<_> = shown.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(words == "doctor" || wide.is_empty(), "{words}: {wide:#?}");
    }

    let mut terminal = Terminal::start(&site.near.line("exec ssh -tt backup NO_COLOR=1 /mnt/bin/lowtide top"));
    terminal.has_on_screen("nightly");
    terminal.has_on_screen("q quit");
    terminal.types(b"p");
    until("a pause", || (status(&site.far, "nightly")?["paused"] == true).then_some(()));
    terminal.has_on_screen("paused");
    terminal.types(b"q");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown:?}");
    let looks = looks(&shown);
    // of colours only that there are none: the terminal's own ones
    let allowed = ["", "0", "1", "7", "22", "27", "39", "49", "59"];
    assert!(!looks.is_empty() && looks.iter().all(|look| allowed.contains(look)), "no colours: {looks:?}");
}
