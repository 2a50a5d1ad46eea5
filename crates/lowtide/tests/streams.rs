// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of Lowtide's output may end at any time: `lowtide … | head -1`. Nothing panics, and nothing is left.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    fs,
    io::{self, BufRead, BufReader},
    path::Path,
    process::Command,
    time::Duration,
};

use lifecycle::{Ended, Running, finish, listed_laws, lowtide, name, needs_kernel, run_script, until, within};

/// How a command ends whose standard output is closed, from the start or from its first line on; and that line.
fn unread(mut command: Command, first_line: bool) -> (Ended, String) {
    let errors = tempfile::NamedTempFile::new().unwrap();
    let (reader, writer) = io::pipe().unwrap();
    let mut reader = Some(reader).filter(|_| first_line);
    let mut child = command.stdout(writer).stderr(errors.reopen().unwrap()).spawn().unwrap();
    drop(command); // which holds the pipe's other end
    let mut line = String::new();
    if let Some(reader) = reader.take() {
        BufReader::new(reader).read_line(&mut line).unwrap();
    }
    let status = within(Duration::from_secs(10), "its end", || child.try_wait().unwrap());
    (Ended { status, out: String::new(), err: fs::read_to_string(errors.path()).unwrap() }, line)
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_only_prints_ends_well_where_nobody_reads_it() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("a.jsonl");
    fs::write(&trace, "{\"lowtide_trace\":1}\n").unwrap();
    let scenario = directory.path().join("a.toml");
    let text = "duration = \"1s\"\nbottleneck = { rate = \"1mbit\", rtt = \"40ms\" }\n\
                [[flow]]\nname = \"a\"\ncc = \"cubic\"\n";
    fs::write(&scenario, text).unwrap();
    let none = directory.path().join("history.json");
    let (trace, scenario, none) = (trace.to_str().unwrap(), scenario.to_str().unwrap(), none.to_str().unwrap());
    for (arguments, first) in [
        (&["--help"][..], "Bulk transfers"),
        (&["--version"], "lowtide "),
        (&["run", "--help"], "Run a program"),
        (&["doctor"], "ok       kernel: "),
        (&["cc", "list"], "cdg"),
        (&["cc", "show"], "none of Lowtide's laws is loaded"),
        // others may be running
        (&["status"], ""),
        (&["history", "--history", none], "no run is on record"),
        (&["trace", "plot", trace], "a.svg"),
        (&["lab", "list"], "("),
        (&["lab", "check", "C-01"], "nothing wrong"),
        (&["sim", scenario], "flow"),
    ] {
        for first_line in [false, true] {
            let (ended, line) = unread(lowtide(arguments), first_line);
            assert!(ended.status.success() && ended.err.is_empty(), "{arguments:?}: {ended:?}");
            assert!(!first_line || line.contains(first), "{arguments:?}: {line}");
        }
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn an_emulator_that_nobody_reads_takes_its_namespaces_down() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("cell.up"), "1\n2\n").unwrap();
    let trace = format!("mahimahi:{}", directory.path().join("cell.up").display());
    // a trace is a capacity of its own
    for (capacity, first_line) in [(["--rate", "20mbit"], false), (["--schedule", &trace], true)] {
        let (a, b) = (name("ua"), name("ub"));
        let mut command = lowtide(["emulate", "--rtt", "40ms", "--rtt-schedule", "0s:40ms,1s:80ms", "--between"]);
        command.arg(format!("{a},{b}")).args(capacity);
        let (ended, line) = unread(command, first_line);
        assert!(ended.status.success() && ended.err.is_empty(), "{ended:?}");
        assert!(!first_line || line.starts_with(&a), "{line}");
        for namespace in [a, b] {
            assert!(!Path::new("/run/netns").join(&namespace).exists(), "{namespace} is left");
        }
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn laws_that_nobody_reads_of_go_and_pinned_ones_stay() {
    needs_kernel();
    let listed = |law: &str| listed_laws().contains(law);
    for first_line in [false, true] {
        let (ended, line) = unread(lowtide(["cc", "load", "ledbat", "eclipse"]), first_line);
        assert!(ended.status.success() && ended.err.is_empty(), "{ended:?}");
        assert!(!first_line || line.starts_with("lt_ledbat is loaded"), "{line}");
        until("the laws' end", || (!listed("lt_ledbat") && !listed("lt_eclipse")).then_some(()));
    }
    let (ended, _) = unread(lowtide(["cc", "load", "eclipse", "--pin"]), false);
    let kept = listed("lt_eclipse");
    assert!(finish(&mut lowtide(["cc", "unload", "eclipse"])).status.success());
    assert!(ended.status.success() && ended.err.is_empty() && kept, "{ended:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_trace_that_nobody_reads_ends_and_a_refused_one_leaves_the_file_of_an_earlier_one() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.jsonl");
    fs::write(&old, "an earlier trace\n").unwrap();
    let law = Running::start(&mut lowtide(["cc", "load", "cdg_cubic"]));
    until("the law", || law.out().contains("lt_cdg_cubic is loaded").then_some(()));
    for first_line in [false, true] {
        let (ended, line) = unread(lowtide(["trace", "--law", "cdg_cubic"]), first_line);
        assert!(ended.status.success() && !ended.err.contains("panicked"), "{ended:?}");
        assert!(!first_line || line.starts_with("{\"lowtide_trace\":1"), "{line}");
    }
    // there is one trace at a time: the second is refused after all else is right
    let mut command = lowtide(["trace", "--law", "cdg_cubic", "-o"]);
    let new = directory.path().join("new.jsonl");
    let first = Running::start(command.arg(&new));
    until("a trace", || new.exists().then_some(()));
    let mut command = lowtide(["trace", "--law", "cdg_cubic", "-o"]);
    let ended = finish(command.arg(&old));
    assert!(ended.sentence().contains("being traced already") && ended.status.code() == Some(2), "{ended:?}");
    assert_eq!(fs::read_to_string(&old).unwrap(), "an earlier trace\n");
    assert!(fs::read_to_string(&new).unwrap().starts_with("{\"lowtide_trace\":1"));
    first.signal(nix::sys::signal::Signal::SIGINT);
    assert!(first.end().status.success());
    // and one that starts takes its place
    let mut command = lowtide(["trace", "--law", "cdg_cubic", "--for", "100ms", "-o"]);
    assert!(finish(command.arg(&old)).status.success());
    assert!(fs::read_to_string(&old).unwrap().starts_with("{\"lowtide_trace\":1"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing but the traces is left");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_run_whose_words_nobody_reads_goes_on_to_its_end() {
    needs_kernel();
    let out = tempfile::NamedTempFile::new().unwrap();
    // a size that is small and a deadline that passes, so that there is something to say
    let mut command = run_script(&["--size", "1kB", "--deadline", "+1s"], "sleep 2; echo ran; exit 7");
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut child = command.stdout(out.reopen().unwrap()).stderr(writer).spawn().unwrap();
    let status = within(Duration::from_secs(10), "its end", || child.try_wait().unwrap());
    assert_eq!((status.code(), fs::read_to_string(out.path()).unwrap().as_str()), (Some(7), "ran\n"));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_program_has_the_dispositions_that_lowtide_was_started_with() {
    needs_kernel();
    let seen = |ignored: &str, wrapped: bool| {
        let mut command = lowtide([""; 0]);
        let lowtide = command.get_program().to_str().unwrap().to_owned();
        let run = if wrapped { format!("{lowtide} run --quiet --") } else { String::new() };
        // a shell passes on what it ignores, and else what it was started with: of Rust's programs the default
        let script = format!("trap '' {ignored}; exec {run} grep -E 'SigBlk|SigIgn|SigCgt' /proc/self/status");
        command = Command::new("bash");
        command.args(["-c", &script]);
        let ended = finish(&mut command);
        assert!(ended.status.success(), "{ended:?}");
        ended.out
    };
    for ignored in ["USR1", "PIPE", "PIPE USR1 TERM"] {
        assert_eq!(seen(ignored, true), seen(ignored, false), "{ignored}");
    }
    assert_ne!(seen("PIPE", true), seen("USR1", true));
}
