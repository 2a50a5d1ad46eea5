// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide sim`: what it prints, and what it refuses in one sentence with status 2.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

const SCENARIO: &str = r#"seed = 7
duration = "2s"

[bottleneck]
rate = "1mbit"
rtt = "40ms"

[[flow]]
name = "bg"
cc = "reno"
"#;

const FLUID: &str = r#"model = "fluid"
seed = 7
duration = "60s"
bottleneck = { capacity = 90, spread = 10 }

[[flow]]
name = "bg"
deadline = "30s"
eta = 0.5
"#;

/// Runs `lowtide sim s.toml ARGUMENTS` in a directory with that scenario.
fn sim(directory: &Path, arguments: &[&str]) -> Output {
    sim_of(SCENARIO, directory, arguments)
}

fn sim_of(scenario: &str, directory: &Path, arguments: &[&str]) -> Output {
    fs::write(directory.join("s.toml"), scenario).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowtide"));
    command.args(["sim", "s.toml"]).args(arguments).current_dir(directory).output().unwrap()
}

/// The only sentence of a refusal.
fn refused(directory: &Path, arguments: &[&str]) -> String {
    let output = sim(directory, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    error.trim_end().strip_prefix("lowtide: ").expect(&error).to_owned()
}

#[test]
fn the_table_names_the_flows_and_the_seed() {
    let directory = tempfile::tempdir().unwrap();
    let output = sim(directory.path(), &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{text}");
    assert!(text.contains("\nbg  ") && text.contains("\nbottleneck  ") && text.ends_with("; seed 7\n"), "{text}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "without --out nothing is written");
}

#[test]
fn json_goes_to_the_output() {
    let directory = tempfile::tempdir().unwrap();
    let output = sim(directory.path(), &["--json", "--seed", "9"]);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["seed"], &summary["flows"][0]["name"]), (&9.into(), &"bg".into()));
}

#[test]
fn connections_show_the_law_that_they_share() {
    let directory = tempfile::tempdir().unwrap();
    let connections = "cc = \"tide\"\nsource = \"connections:size=20kB,count=9,parallel=3\"\n";
    let scenario = SCENARIO.replace("cc = \"reno\"\n", connections);
    assert!(sim_of(&scenario, directory.path(), &["--out", "o"]).status.success());
    let inner = fs::read_to_string(directory.path().join("o/inner.csv")).unwrap();
    assert!(inner.lines().filter(|line| line.contains(",bg,listens,")).count() > 5, "{inner}");
}

/// A packet each ten seconds: what a span brings and what it could carry are counted by the same bounds.
#[test]
fn a_link_is_never_used_by_more_than_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("slow"), "10000\n").unwrap();
    let used = |duration: &str, rest: &[&str]| {
        let settings = [&["--json", "--set", "bottleneck.schedule=mahimahi:slow", "--set", duration], rest].concat();
        let summary: serde_json::Value = serde_json::from_slice(&sim(directory.path(), &settings).stdout).unwrap();
        summary["bottleneck"]["utilisation"].as_f64().unwrap()
    };
    // the requests to connect, four of 52 bytes, and then a segment of 1500 at each opportunity
    for (duration, used_of) in [("10s", (208.0, 1500.0)), ("20s", (1708.0, 3000.0)), ("100s", (13708.0, 15000.0))] {
        let used = used(&format!("duration={duration}"), &[]);
        assert!((used - used_of.0 / used_of.1).abs() < 1e-3, "{duration}: {used}");
    }
    // one that was on its way when the span began counts whole
    let used = |from: u32| {
        let from = format!("measure_from={from}s");
        used("duration=40s", &["--set", "bottleneck.schedule=0s:1kbit", "--set", &from])
    };
    let most = (20..40).map(used).fold(0.0, f64::max);
    assert_eq!(most, 1.0);
}

#[test]
fn a_result_can_be_repeated_from_its_own_scenario() {
    let directory = tempfile::tempdir().unwrap();
    let output = sim(directory.path(), &["--out", "one", "--plot", "--pcap", "--set", "bottleneck.rate=2mbit"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let files = "summary.json, scenario.toml, flows.csv, inner.csv, bottlenecks.csv, plot.svg, packets.pcapng";
    assert!(text.ends_with(&format!("\nIn one: {files}\n")), "{text}");
    let mut again = Command::new(env!("CARGO_BIN_EXE_lowtide"));
    again.args(["sim", "one/scenario.toml", "--out", "two", "--plot", "--pcap"]).current_dir(directory.path());
    assert!(again.status().unwrap().success());
    let read = |result: &str, name: &str| fs::read(directory.path().join(result).join(name)).unwrap();
    for name in files.split(", ").filter(|name| *name != "summary.json") {
        assert!(read("one", name) == read("two", name), "{name} differs");
    }
    let summary = |result| {
        let mut summary: serde_json::Value = serde_json::from_slice(&read(result, "summary.json")).unwrap();
        assert!(summary["wall_s"].take().is_f64());
        summary
    };
    assert_eq!(summary("one"), summary("two"));
}

#[test]
fn a_fluid_model_goes_the_same_way() {
    let directory = tempfile::tempdir().unwrap();
    let sim = |arguments: &[&str]| sim_of(FLUID, directory.path(), arguments);
    let text = String::from_utf8(sim(&[]).stdout).unwrap();
    assert!(text.contains("\nbg  ") && text.contains("  met, ") && text.ends_with("; seed 7\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_slice(&sim(&["--json", "--seed", "9", "--set", "flow.bg.eta=0.9"]).stdout).unwrap();
    assert_eq!((&json["seed"], &json["flows"][0]["deadlines"][0]["size"]), (&9.into(), &2430.0.into()));

    let text = String::from_utf8(sim(&["--out", "one", "--plot"]).stdout).unwrap();
    let files = "summary.json, scenario.toml, flows.csv, bottlenecks.csv, plot.svg";
    assert!(text.ends_with(&format!("\nIn one: {files}\n")), "{text}");
    let mut again = Command::new(env!("CARGO_BIN_EXE_lowtide"));
    again.args(["sim", "one/scenario.toml", "--out", "two", "--plot"]).current_dir(directory.path());
    assert!(again.status().unwrap().success());
    for name in files.split(", ").filter(|name| *name != "summary.json") {
        let read = |result: &str| fs::read(directory.path().join(result).join(name)).unwrap();
        assert!(read("one") == read("two"), "{name} differs");
    }

    let refused = |arguments: &[&str]| {
        let output = sim(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        refused(&["--set", "flow.bg.cc=cubic"]),
        "lowtide: --set flow.bg.cc=cubic: `cc` has no meaning in a fluid model; leave it out\n"
    );
    assert_eq!(refused(&["--out", "three", "--pcap"]), "lowtide: s.toml: --pcap: a fluid model has no packets\n");
    assert!(!directory.path().join("three").exists());
}

#[test]
fn what_is_wrong_is_said_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| refused(directory.path(), arguments);
    assert_eq!(
        refused(&["--set", "bottleneck.rate=fast"]),
        "--set bottleneck.rate=fast: rate: \"fast\" is not a rate; write it like 20mbit or 1.5gbit"
    );
    assert!(refused(&["--set", "flow.bg.cc=renoo"]).contains("did you mean `reno`?"));
    assert_eq!(
        refused(&["--set", "flow.bg.start=2s"]),
        "--set flow.bg.start=2s: start: the simulation is over by then"
    );
    fs::create_dir(directory.path().join("mine")).unwrap();
    fs::write(directory.path().join("mine/notes.txt"), "").unwrap();
    assert_eq!(
        refused(&["--out", "mine"]),
        "mine is not empty and not a result of lowtide sim; choose another directory"
    );
    assert!(refused(&["--out", "/dev/null/x"]).starts_with("cannot write /dev/null/x: "));
}

#[test]
fn a_broken_file_is_refused_with_the_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broken.toml");
    fs::write(&path, SCENARIO.replace("rtt", "rt")).unwrap();
    let refused = |file: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_lowtide"))
            .args(["sim", file])
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(refused("broken.toml"), "lowtide: broken.toml:6:1: unknown key `rt`; did you mean `rtt`?\n");
    assert!(refused("none.toml").starts_with("lowtide: none.toml: cannot read it: "));
}

#[test]
fn options_that_need_a_directory_say_so() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["--plot"][..], &["--pcap"], &["--pcap=both"]] {
        let output = sim(directory.path(), arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains("--out <DIR>"), "{arguments:?}: {error}");
    }
}
