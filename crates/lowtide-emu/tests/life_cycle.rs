// SPDX-License-Identifier: MIT OR Apache-2.0
//! What emulators leave behind, and what they do not touch.

mod common;

use common::{config, exists, name, needs_kernel, recorded, udp};
use lowtide_emu::{Config, Emulator, Error};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn after_a_stop_nothing_is_left() {
    needs_kernel();
    let (a, b) = (name("stop", "a"), name("stop", "b"));
    let emulator = Emulator::start(config("stop", "20mbit", "40ms")).unwrap();
    assert!(exists(&a) && exists(&b) && recorded(&a) && recorded(&b));
    emulator.stop().unwrap();
    assert!(!exists(&a) && !exists(&b) && !recorded(&a) && !recorded(&b));

    drop(Emulator::start(config("stop", "20mbit", "40ms")).unwrap());
    assert!(!exists(&a) && !exists(&b) && !recorded(&a) && !recorded(&b));
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn what_a_killed_emulator_left_is_removed() {
    const CHILD: &str = "LOWTIDE_TEST_HOLD";
    const TEST: &str = "what_a_killed_emulator_left_is_removed";
    needs_kernel();
    if let Ok(names) = std::env::var(CHILD) {
        // This is the child: hold an emulator until killed.
        let (a, b) = names.split_once(',').unwrap();
        let rate = "20mbit".parse().unwrap();
        let _held = Emulator::start(Config::new(a, b, rate, Duration::from_millis(40))).unwrap();
        println!("\nholding");
        loop {
            std::thread::park();
        }
    }
    let (a, b) = (name("killed", "a"), name("killed", "b"));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture", "--include-ignored"])
        .env(CHILD, format!("{a},{b}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));

    let in_use = Emulator::start(config("killed", "20mbit", "40ms"));
    assert!(matches!(in_use, Err(Error::NamespaceInUse(name)) if name == a));
    assert!(exists(&a) && exists(&b), "a living owner keeps its namespaces");

    child.kill().unwrap();
    child.wait().unwrap();
    assert!(exists(&a) && exists(&b), "nobody cleaned up yet");
    let emulator = Emulator::start(config("killed", "20mbit", "40ms")).unwrap();
    let (left, right) = (udp(emulator.a(), emulator.a4()), udp(emulator.b(), emulator.b4()));
    left.send_to(b"again", right.local_addr().unwrap()).unwrap();
    assert_eq!(right.recv(&mut [0; 16]).unwrap(), 5);
    emulator.stop().unwrap();
    assert!(!exists(&a) && !exists(&b) && !recorded(&a) && !recorded(&b));
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn a_namespace_of_somebody_else_is_not_touched() {
    needs_kernel();
    let foreign = name("foreign", "b");
    let ip = |verb: &str| {
        let status = Command::new("ip").args(["netns", verb, &foreign]).status();
        assert!(status.unwrap().success());
    };
    ip("add");
    let refused = Emulator::start(config("foreign", "20mbit", "40ms"));
    let message = refused.err().map(|error| error.to_string());
    let still_there = exists(&foreign);
    ip("delete");
    assert_eq!(
        message.unwrap(),
        format!("a network namespace {foreign} exists and was not made by lowtide; choose another name")
    );
    assert!(still_there);
    let a = name("foreign", "a");
    assert!(!exists(&a) && !recorded(&a) && !recorded(&foreign));
}

/// Makes a namespace without our mark, and a record of a dead owner that reads like this. Then
/// starts an emulator that wants the same name; returns what came of it, and whether that namespace
/// survived.
fn start_over(test: &str, record: &str) -> (Result<Emulator, Error>, bool) {
    let taken = name(test, "b");
    let ip = |verb: &str| Command::new("ip").args(["netns", verb, &taken]).status();
    assert!(ip("add").unwrap().success());
    let inode = || std::fs::metadata(format!("/run/netns/{taken}")).map(|file| file.ino()).ok();
    let before = inode();
    // All at once, as tests that run beside this one sweep the records, and remove their directory.
    let draft = format!("/run/{taken}");
    std::fs::write(&draft, record).unwrap();
    while std::fs::rename(&draft, format!("/run/lowtide/emulate/{taken}")).is_err() {
        std::fs::create_dir_all("/run/lowtide/emulate").unwrap();
    }
    let result = Emulator::start(config(test, "20mbit", "40ms"));
    let survived = inode() == before;
    if result.is_err() {
        assert!(ip("delete").unwrap().success());
    }
    assert_eq!(recorded(&taken), result.is_ok());
    (result, survived)
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn a_namespace_that_took_the_place_of_a_crashed_one_is_not_touched() {
    needs_kernel();
    let (result, survived) = start_over("stranger", "1\nready\n");
    assert!(matches!(result, Err(Error::ForeignNamespace(taken)) if taken == name("stranger", "b")));
    assert!(survived);
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn a_crash_between_making_and_marking_a_namespace_is_recognised() {
    needs_kernel();
    let (result, _) = start_over("half-made", "1\n");
    result.unwrap().stop().unwrap();
    assert!(!exists(&name("half-made", "b")));
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn emulators_run_side_by_side() {
    needs_kernel();
    let first = Emulator::start(config("first", "20mbit", "10ms")).unwrap();
    let second = Emulator::start(config("second", "20mbit", "10ms")).unwrap();
    for emulator in [&first, &second] {
        let (left, right) = (udp(emulator.a(), emulator.a4()), udp(emulator.b(), emulator.b4()));
        left.send_to(b"one", right.local_addr().unwrap()).unwrap();
        assert_eq!(right.recv(&mut [0; 16]).unwrap(), 3);
    }
    for emulator in [first, second] {
        assert_eq!(emulator.stop().unwrap().forward.delivered.packets, 1);
    }
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn a_deleted_device_ends_the_emulation_with_an_error() {
    needs_kernel();
    let emulator = Emulator::start(config("deleted", "20mbit", "10ms")).unwrap();
    emulator.check().unwrap();
    let device = ["link", "delete", lowtide_emu::DEVICE];
    let arguments = ["-n", emulator.a().name()].into_iter().chain(device);
    assert!(Command::new("ip").args(arguments).status().unwrap().success());
    assert!(matches!(emulator.stop(), Err(Error::Stopped(_))));
    let (a, b) = (name("deleted", "a"), name("deleted", "b"));
    assert!(!exists(&a) && !exists(&b) && !recorded(&a) && !recorded(&b));
}
