// SPDX-License-Identifier: MIT OR Apache-2.0
//! What PROGRAM sets on its sockets and what Lowtide needs there: over MPTCP as over TCP, and for its own pacing.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{fs, path::Path, process::Command, time::Duration};

use lifecycle::{
    LE, Receiver, Running, Socket, finish, inside, lowtide, name, namespace, needs_kernel, report, sockets,
};
use lowtide_emu::{Config, Emulator, Namespace};
use serde_json::Value;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/held/");

/// Whether this kernel has MPTCP; without it there is nothing to hold. A missing one is a failure where
/// `LOWTIDE_REQUIRE_KERNEL=1`.
fn has_mptcp() -> bool {
    needs_kernel();
    let enabled = fs::read_to_string("/proc/sys/net/mptcp/enabled");
    if enabled.is_ok() {
        return true;
    }
    let required = std::env::var("LOWTIDE_REQUIRE_KERNEL").is_ok_and(|value| value == "1");
    assert!(!required, "the real kernel is required, but this one has no MPTCP (CONFIG_MPTCP)");
    println!("skipped: this kernel has no MPTCP (CONFIG_MPTCP)");
    false
}

/// A namespace in which MPTCP connections within the machine have two subflows.
fn two_paths(test: &str) -> Namespace {
    let space = namespace(test);
    space.run(|| fs::write("/proc/sys/net/mptcp/enabled", "1")).unwrap().unwrap();
    for arguments in ["limits set subflow 2 add_addr_accepted 2", "endpoint add 127.0.0.2 dev lo subflow"] {
        let mut ip = Command::new("ip");
        ip.arg("mptcp").args(arguments.split(' '));
        assert!(space.enter_command(&mut ip).status().unwrap().success(), "ip mptcp {arguments}");
    }
    space
}

/// Runs a connection of two subflows whose ends choose a law and a code point: the sockets as they are then, and the
/// report.
fn over_mptcp(test: &str, options: &[&str], when: &str) -> (Vec<Socket>, Value) {
    let space = two_paths(test);
    let directory = tempfile::tempdir().unwrap();
    let (file, seen_it) = (directory.path().join("report.json"), directory.path().join("seen"));
    let mut command = lowtide(["run", "--quiet", "--report"]);
    command.arg(&file).args(options).args(["--", "python3", &format!("{SCRIPTS}multipath.py"), when]).arg(&seen_it);
    let run = Running::start(&mut inside(&space, command));
    run.says("ready");
    let seen: Vec<_> = sockets(&space).into_iter().filter(|socket| socket.text.contains("tcp-ulp-mptcp")).collect();
    assert_eq!(seen.len(), 4, "two subflows, both ends: {seen:?}");
    fs::write(seen_it, "").unwrap();
    let ended = run.end();
    assert!(ended.status.success(), "{ended:?}");
    (seen, report(&file))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn subflows_of_mptcp_are_kept_on_our_law_and_code_point() {
    if !has_mptcp() {
        return;
    }
    for when in ["before", "after"] {
        let (seen, report) = over_mptcp(&format!("mp-{when}"), &[], when);
        for socket in seen {
            assert!(socket.law().starts_with("lt_tide_"), "{when}: {}", socket.text);
            assert!(socket.text.contains(&format!("tos:{LE:#x}")), "{when}: {}", socket.text);
        }
        assert_eq!(report["not_controlled"]["own_law_requests"], 2, "{when}");
        assert_eq!(report["not_controlled"]["sockets_with_own_law"], 0, "{when}");
        let acknowledged = report["acknowledged_bytes"].as_u64().unwrap();
        assert!(acknowledged >= 2 * 20 * 2000, "{when}: of both subflows, both ends: {acknowledged}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn subflows_of_mptcp_have_the_programs_law_where_that_is_allowed() {
    if !has_mptcp() {
        return;
    }
    for when in ["before", "after"] {
        let (seen, report) = over_mptcp(&format!("mpo-{when}"), &["--allow-own-cc"], when);
        let chosen = seen.iter().filter(|socket| socket.law() == "reno").count();
        assert_eq!(chosen, 4, "{when}: {seen:?}");
        assert_eq!(report["not_controlled"]["own_law_requests"], 2, "{when}");
        let own = report["not_controlled"]["sockets_with_own_law"].as_u64().unwrap();
        assert!((2..=4).contains(&own), "{when}: those that have sent since: {own}");
    }
}

/// On a path of 20 ms, where the law paces: the limit in force is the program's where that is the lesser one.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_pacing_limit_of_the_program_stays_as_it_is_set() {
    needs_kernel();
    let (a, b) = (format!("{}a", name("pacing")), format!("{}b", name("pacing")));
    let emulator = Emulator::start(Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(20))).unwrap();
    let receiver = Receiver::start(emulator.b(), emulator.b4());
    for (law, least) in [("tide", "20000"), ("reno", "0")] {
        let mut command = lowtide(["run", "--quiet", "--cc", law, "--", "python3"]);
        command.arg(Path::new(SCRIPTS).join("pacing.py"));
        command.args([&receiver.address.ip().to_string(), &receiver.port().to_string(), least]);
        let ended = finish(emulator.a().enter_command(&mut command));
        println!("{law}:\n{}", ended.out);
        assert!(ended.status.success(), "{law}: {ended:?}");
    }
}
