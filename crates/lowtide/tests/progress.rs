// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! `--progress-from`: what a program says of its own progress counts, and its output passes unchanged.

#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "support/terminal.rs"]
mod terminal;

use std::{
    fs,
    io::{self, Read},
    net::{Ipv4Addr, TcpStream},
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
    time::Duration,
};

use lifecycle::{
    Receiver, Running, finish, inside, lowtide, name, namespace, needs_kernel, report, run_script, transfer_status,
    trickle, until,
};
use lowtide_emu::{Config, Emulator};
use nix::sys::signal::Signal;
use serde_json::json;
use terminal::Terminal;

const LOWTIDE: &str = env!("CARGO_BIN_EXE_lowtide");

/// A word of restic's.
const STATUS: &str = r#"{"message_type":"status","total_bytes":1000000000,"bytes_done":400000000}"#;

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn rclone_says_how_much_is_left() {
    needs_kernel();
    const FILE: usize = 4_000_000;
    let (a, b) = (format!("{}a", name("rc")), format!("{}b", name("rc")));
    let emulator = Emulator::start(Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(40))).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for folder in ["data", "far"] {
        fs::create_dir(at(folder)).unwrap();
    }
    let mut chance = vec![0; FILE];
    for file in 0..3 {
        fs::File::open("/dev/urandom").unwrap().read_exact(&mut chance).unwrap();
        fs::write(at("data").join(file.to_string()), &chance).unwrap();
    }
    let address = format!("{}:4000", emulator.b4());
    let mut serve = Command::new("rclone");
    serve.args(["--config", "", "serve", "webdav", "--addr", &address]).arg(at("far"));
    let _server = Running::start(&mut inside(emulator.b(), serve));
    until("the server", || emulator.a().run(|| TcpStream::connect(&address)).unwrap().ok());

    let job = name("rclone");
    let mut run =
        lowtide(["run", "--name", &job, "--size", "100GB", "--deadline", "+60s", "--progress-from", "rclone"]);
    run.args(["--report", at("report").to_str().unwrap(), "--", "rclone", "--config", "", "copy", "-v"]);
    run.args(["--stats", "500ms", "--use-json-log", at("data").to_str().unwrap(), ":webdav:"]);
    run.env("RCLONE_WEBDAV_URL", format!("http://{address}/")).env("RCLONE_WEBDAV_VENDOR", "other");
    let run = Running::start(&mut inside(emulator.a(), run));
    let seen =
        until("rclone's word", || transfer_status(&job).filter(|status| status["progress"]["total_bytes"].is_u64()));
    let size = seen["size_bytes"].as_u64().unwrap();
    assert!(size < 30_000_000, "not the 100 GB that were announced: {seen}");
    let ended = run.end_within(Duration::from_secs(90));
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.err.contains("\"totalBytes\":12000000,"), "{ended:?}");
    assert!(ended.err.contains("lowtide: rclone says that "), "{ended:?}");
    let report = report(&at("report"));
    let total = 3 * FILE;
    assert_eq!(report["progress"], json!({"from": "rclone", "done_bytes": total, "total_bytes": total}));
    assert_eq!((&report["outcome"], &report["met"]), (&json!("met"), &json!(true)));
    assert_eq!(report["size_bytes"], report["acknowledged_bytes"]);
    for file in 0..3 {
        let file = file.to_string();
        assert!(fs::read(at("data").join(&file)).unwrap() == fs::read(at("far").join(&file)).unwrap(), "{file}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn its_word_counts_until_somebody_sets_another_size() {
    needs_kernel();
    let space = namespace("told");
    let receiver = Receiver::start(&space, Ipv4Addr::LOCALHOST);
    let job = name("told");
    let script = format!("echo '{STATUS}'; {}", trickle(&[receiver.address]));
    let options = ["--name", &job, "--deadline", "+9h", "--progress-from", "restic"];
    let run = Running::start(&mut inside(&space, run_script(&options, &script)));
    let seen = until("restic's word", || transfer_status(&job).filter(|status| !status["needed_bps"].is_null()));
    assert_eq!(seen["progress"], json!({"from": "restic", "done_bytes": 400_000_000, "total_bytes": 1_000_000_000}));
    // of what it counts as done 160 MiB may still be in its memory
    let left = seen["size_bytes"].as_u64().unwrap() - seen["acknowledged_bytes"].as_u64().unwrap();
    assert!((760_000_000..=770_000_000).contains(&left), "{seen}");

    assert!(finish(&mut lowtide(["set", &job, "--remaining", "5MB"])).status.success());
    let then = transfer_status(&job).unwrap();
    assert!(then["size_bytes"].as_u64().unwrap() < 100_000_000 && then["progress"].is_null(), "{then}");
    run.signal(Signal::SIGTERM);
    assert!(run.end().out.starts_with(STATUS));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn output_passes_unchanged() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    let mut bytes = vec![0; 3_000_000];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    fs::write(&file, &bytes).unwrap();
    for (source, stream) in [("restic", "1"), ("rclone", "2")] {
        let out = directory.path().join(stream);
        let script = format!("cat {} >&{stream}; exit 7", file.display());
        let mut run = run_script(&["--quiet", "--cc", "reno", "--progress-from", source], &script);
        let to = || Stdio::from(fs::File::create(&out).unwrap());
        let run = if stream == "1" { run.stdout(to()) } else { run.stderr(to()) };
        assert_eq!(run.status().unwrap().code(), Some(7));
        assert!(fs::read(&out).unwrap() == bytes, "{source}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn those_who_write_after_lowtides_end_are_heard_where_they_write() {
    needs_kernel();
    let options = ["--cc", "reno", "--progress-from", "restic"];
    // a process that PROGRAM leaves behind
    let run = Running::start(&mut run_script(&options, "(sleep 2; echo late) & echo early"));
    until("Lowtide's end", || run.err().contains("nothing of restic's progress").then_some(()));
    assert_eq!(run.out(), "early\n");
    until("what it writes later", || (run.out() == "early\nlate\n").then_some(()));
    assert!(run.end().status.success());
    // and PROGRAM itself, where Lowtide is killed
    let script = "for n in $(seq 60); do echo $n; sleep 0.05; done";
    let run = Running::start(&mut run_script(&options, script));
    until("its first words", || run.out().contains("3\n").then_some(()));
    run.signal(Signal::SIGKILL);
    until("its last words", || run.out().ends_with("59\n60\n").then_some(()));
    assert!(!run.end().status.success());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_program_that_nobody_reads_ends_by_that() {
    needs_kernel();
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut run = run_script(&["--quiet", "--cc", "reno", "--progress-from", "restic"], "exec yes");
    assert_eq!(run.stdout(writer).status().unwrap().signal(), Some(Signal::SIGPIPE as i32));
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut run = run_script(&["--cc", "reno", "--progress-from", "restic"], "exec yes");
    let ended = run.stdout(full).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("the program's output cannot be written: No space left on device"), "{said}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_terminal_stays_one() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    for (options, pipe, terminal) in
        [("--quiet", "", true), ("--progress line", "", true), ("", "", true), ("", "| cat", false)]
    {
        let file = directory.path().join("report");
        let script = format!("test -t 1 && echo a terminal; echo {};", STATUS.replace('"', "\\\""));
        let run = format!("{LOWTIDE} run {options} --cc reno --report {} --progress-from restic", file.display());
        let shown = Terminal::sized(&format!("{run} -- sh -c '{script}' {pipe}"), 24, 200).end().1;
        assert_eq!(shown.contains("a terminal"), terminal, "{options} {pipe}: {shown}");
        assert!(shown.contains(STATUS), "{options} {pipe}: {shown}");
        assert_eq!(report(&file)["progress"]["total_bytes"], 1_000_000_000, "{options} {pipe}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn one_that_says_nothing_is_told_of() {
    needs_kernel();
    for (source, options) in [("rsync", "--info=progress2"), ("restic", "--json"), ("rclone", "--stats 1s -v")] {
        let ended = finish(&mut run_script(&["--cc", "reno", "--deadline", "+1h", "--progress-from", source], "true"));
        let said = format!("nothing of {source}'s progress in its output, for which it needs {options}");
        assert!(ended.status.success() && ended.err.contains(&said), "{ended:?}");
    }
}
