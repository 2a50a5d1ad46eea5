// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide lab` as a command: parts of the runs in processes of their own, runs that were interrupted, and refusals.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

const EXPERIMENT: &str = r#"
title = "An example"
source = "Nobody's paper"
runs = 4
[scenario]
duration = "DURATION"
bottleneck = { rate = "2mbit", rtt = "{rtt}ms", buffer = "20p" }
[[scenario.flow]]
name = "flow"
cc = "cdg:g={g}"
[[axis]]
name = "rtt"
values = [10, 40]
[[axis]]
name = "g"
values = [0.5, 5]
quick = [5]
[[measure]]
name = "rate"
value = 'mean_rate("flow", 2, 5) / 1e6'
[[target]]
id = "E-01"
kind = "quantitative"
claim = "it sends"
band = "a guess"
[[target.check]]
what = "rate at {rtt} ms"
each = "rtt"
value = 'typical("rate", here)'
low = 0.01
high = 2
"#;

fn example(directory: &Path, duration: &str) {
    fs::create_dir_all(directory.join("all/000")).unwrap();
    fs::write(directory.join("all/000/example.toml"), EXPERIMENT.replace("DURATION", duration)).unwrap();
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowtide"));
    command.args(["lab", "--experiments", "all", "--cache", "whole"]).args(arguments).current_dir(directory);
    for name in ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "JOB_COMPLETION_INDEX"] {
        command.env_remove(name);
    }
    command
}

fn lab(directory: &Path, arguments: &[&str]) -> String {
    text(&command(directory, arguments).output().unwrap())
}

fn text(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &error
}

/// The names of the results in a cache.
fn kept(directory: &Path) -> Vec<String> {
    let Ok(files) = fs::read_dir(directory.join("example")) else { return Vec::new() };
    let mut names: Vec<String> = files
        .map(|file| file.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|it| it.ends_with(".json"))
        .collect();
    names.sort();
    names
}

#[test]
fn two_processes_do_what_one_does() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    example(here, "5s");
    let whole = lab(here, &["run"]);
    assert!(whole.contains("E-01  pass") && whole.contains("16 runs"), "{whole}");
    let scoreboard = fs::read(here.join("whole/scoreboard.json")).unwrap();
    // the last --cache holds; one part by its own words, the other by a batch system's
    let first = command(here, &["run", "--shard", "1/2"]).args(["--cache", "one"]).stdout(Stdio::piped()).spawn();
    let second = command(here, &["run", "--shards", "2", "--cache", "two"]).env("JOB_COMPLETION_INDEX", "1").output();
    let second = text(&second.unwrap());
    assert!(second.contains("8 runs") && !second.contains("E-01"), "{second}");
    assert!(first.unwrap().wait_with_output().unwrap().status.success());
    assert_eq!(kept(&here.join("one")).len() + kept(&here.join("two")).len(), 16);

    assert!(lab(here, &["merge", "two", "--cache", "one"]).starts_with("8 new results"));
    assert_eq!(kept(&here.join("one")), kept(&here.join("whole")));
    let again = lab(here, &["run", "--cache", "one"]);
    assert!(again.contains("0 runs in") && again.contains("16 were known"), "{again}");
    assert_eq!(fs::read(here.join("one/scoreboard.json")).unwrap(), scoreboard);
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    example(here, "300s");
    let mut child =
        command(here, &["run", "--threads", "1"]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while kept(&here.join("whole")).len() < 2 && started.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(5));
    }
    // as hard as it gets; Ctrl-C is milder
    let _ = child.kill();
    let _ = child.wait();
    let before = kept(&here.join("whole")).len();
    assert!(before >= 2, "{before}");
    let rest = lab(here, &["run"]);
    assert!(rest.contains(&format!("{before} were known")) && rest.contains("E-01  pass"), "{rest}");
    assert_eq!(kept(&here.join("whole")).len(), 16);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let directory = tempfile::tempdir().unwrap();
    example(directory.path(), "5s");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(directory.path(), &["list"]).stdout(writer).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn it_lists_checks_prints_and_reports() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    example(here, "5s");
    let list = lab(here, &["list"]);
    assert!(list.contains("example  (paper 000)") && list.contains("E-01; about"), "{list}");
    assert!(lab(here, &["check"]).contains("nothing wrong"));
    let scenario = lab(here, &["scenario", "E-01", "rtt=40", "--seed", "9"]);
    assert!(
        scenario.contains("rtt = \"40ms\"") && scenario.contains("g=0.5") && scenario.contains("seed = 9"),
        "{scenario}"
    );
    assert!(lab(here, &["report"]).contains("1 not run"));
    let page = |out| fs::read_to_string(here.join(out).join("index.html")).unwrap();
    assert!(page("lab-report").contains("not run"));
    assert!(lab(here, &["run", "--quick"]).contains("pass"));
    assert!(lab(here, &["report", "--out", "out", "--markdown", "docs/example.md"]).contains("1 pass"));
    let text = fs::read_to_string(here.join("docs/example.md")).unwrap();
    assert!(text.contains("# An example") && text.contains("**E-01, pass.**"), "{text}");
    assert!(page("out").contains("quick look") && here.join("out/scoreboard.json").exists());
}

#[test]
fn mistakes_are_refused_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    example(here, "5s");
    for (arguments, part) in [
        (&["run", "C-99"][..], "\"C-99\" is no experiment"),
        (&["run", "exampel"], "Did you mean example?"),
        (&["run", "--on", "kernel"], "none of these experiments has a table [on.kernel]"),
        (&["run", "--on", "moon"], "\"moon\" is none of sim"),
        (&["run", "--shard", "3/2"], "write it like 2/4"),
        (&["run", "--shards", "2"], "--shard I/N"),
        (&["scenario", "example", "rtt=41"], "its axes are rtt, g"),
        (&["merge", "all"], "holds no results"),
        (&["list", "--experiments", "whole"], "whole"),
    ] {
        let output = command(here, arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}
