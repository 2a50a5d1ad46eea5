// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cannot be done is refused: one sentence, a status of Lowtide's own (of `run` 125), PROGRAM not started, nothing
//! left behind.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{fs, process::Command};

use lifecycle::{
    Ended, Running, finish, groups_of, lowtide, lowtide_environment, needs_kernel, public_copy, report, run_script,
};

/// Runs `lowtide run OPTIONS -- touch MARK`: it has to be refused before PROGRAM starts.
fn refused(options: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    let mut command = lowtide(["run"]);
    command.args(options).args(["--", "touch"]).arg(&mark);
    let running = Running::start(&mut command);
    let pid = running.pid();
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(125), "{options:?}: {ended:?}");
    assert!(!mark.exists(), "{options:?}: PROGRAM was started");
    assert_eq!(ended.out, "", "{options:?}");
    assert_eq!(groups_of(pid), Vec::<std::path::PathBuf>::new(), "{options:?}");
    ended.sentence().to_owned()
}

fn check(options: &[&str], parts: &[&str]) {
    let sentence = refused(options);
    for part in parts {
        assert!(sentence.contains(part), "{options:?}: no {part:?} in {sentence:?}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn deadlines_and_sizes_that_make_no_sense_are_refused() {
    needs_kernel();
    check(&["--size", "1MB", "--deadline", "2020-01-01T00:00:00Z"], &["--deadline", "in the past"]);
    check(&["--deadline", "+1h"], &["--size", "how much is left"]);
    check(&["--size", "0"], &["--size 0", "nothing to send"]);
    check(&["--size", "lots"], &["cannot read the size 'lots'", "120GiB"]);
    check(&["--size", "1MB", "--deadline", "soonish"], &["cannot read the deadline 'soonish'", "06:00"]);
    check(&["--size-of", "/no/such/tree"], &["/no/such/tree"]);
    check(&["--size", "-5"], &["cannot read the size '-5'"]);
    check(&["--size", "1MB", "--deadline", "-5m"], &["cannot read the deadline '-5m'"]);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn laws_and_weights_that_make_no_sense_are_refused() {
    needs_kernel();
    check(&["--cc", "bbr"], &["--cc: bbr", "take tide, cubic or reno"]);
    check(&["--cc", "qubic"], &["--cc: qubic", "cubic"]);
    check(&["--w-min", "0"], &["0"]);
    check(&["--w-min", "0.5", "--w-max", "0.1"], &["0.5", "0.1"]);
    check(&["--cc", "cubic", "--w-max", "2"], &["--w-max", "cubic"]);
    check(&["--cc", "cdg", "--actuator", "beta", "--w-max", "2"], &["--w-max", "native"]);
    check(&["--cc", "cubic", "--actuator", "native"], &["--actuator native", "cubic", "phantom"]);
    check(&["--cc", "reno", "--actuator", "beta"], &["--actuator beta", "reno", "or cdg"]);
    check(&["--actuator", "phantom"], &["--actuator phantom", "law tide", "or cdg"]);
    check(&["--control", "mbc"], &["--control mbc", "no model of --cc tide", "--control pid"]);
    check(
        &["--cc", "cdg", "--control", "mbc", "--actuator", "beta"],
        &["--control mbc", "no model of --cc cdg", "--control pid"],
    );
}

#[test]
fn run_called_wrongly_ends_as_its_other_failures_do() {
    for (arguments, status) in [(vec!["run", "--no-such-option"], 125), (vec!["run"], 125), (vec!["emulate"], 2)] {
        let ended = finish(&mut lowtide(&arguments));
        assert_eq!(ended.status.code(), Some(status), "{arguments:?}: {ended:?}");
        assert!(ended.err.starts_with("error: ") && ended.out.is_empty(), "{ended:?}");
    }
    assert_eq!(finish(&mut lowtide(["run", "--help"])).status.code(), Some(0));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn users_that_do_not_exist_are_refused() {
    needs_kernel();
    check(&["--user", "no-such-user"], &["--user", "no-such-user"]);
    let ended = finish(run_script(&[], "true").env("SUDO_UID", "987654"));
    assert_eq!(ended.status.code(), Some(125));
    assert!(ended.sentence().contains("SUDO_UID"), "{ended:?}");
}

/// As sudo calls it for nobody, with this /etc/lowtide.toml: what PROGRAM says, and why it was not started.
fn restricted(restrictions: &str, options: &str) -> Ended {
    let (copy, program) = public_copy();
    let etc = copy.path().join("etc");
    let script = format!(
        "mkdir {0} && cp /etc/passwd /etc/group /etc/nsswitch.conf {0} && printf '%s' \"$TEXT\" > {0}/lowtide.toml && \
         mount --bind {0} /etc && SUDO_UID=65534 exec {1} run --quiet {options} -- id -un",
        etc.display(),
        program.display()
    );
    let mut command = Command::new("unshare");
    finish(lowtide_environment(command.args(["-m", "sh", "-c", &script])).env("TEXT", restrictions).current_dir("/"))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn callers_by_sudo_become_only_whom_root_allows() {
    needs_kernel();
    for (restrictions, options, said) in [
        ("", "--user daemon", Ok("daemon\n")),
        ("[run]\nusers = [\"daemon\"]\n", "--user daemon", Ok("daemon\n")),
        ("[run]\nusers = [\"daemon\"]\n", "", Ok("nobody\n")),
        ("[run]\nusers = []\n", "--user 65534", Ok("nobody\n")),
        ("[run]\nusers = [\"daemon\"]\n", "--user root", Err("--user root")),
        ("[run]\nusers = [\"daemon\"]\n", "--user 0", Err("--user root")),
        ("[run]\nusres = []\n", "", Err("/etc/lowtide.toml")),
    ] {
        let ended = restricted(restrictions, options);
        match said {
            Ok(user) => assert_eq!(ended.out, user, "{restrictions} {options}: {ended:?}"),
            Err(sentence) => {
                assert!(
                    ended.sentence().contains(sentence) && ended.out.is_empty(),
                    "{restrictions} {options}: {ended:?}"
                );
                assert_eq!(ended.status.code(), Some(125), "{ended:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn programs_that_cannot_run_are_refused() {
    needs_kernel();
    let refused = |program: &str, status: i32| {
        let running = Running::start(&mut lowtide(["run", "--", program]));
        let pid = running.pid();
        let ended = running.end();
        assert_eq!(ended.status.code(), Some(status), "{ended:?}");
        assert!(groups_of(pid).is_empty());
        assert!(ended.sentence().contains(&format!("'{program}'")), "{ended:?}");
        ended.sentence().to_owned()
    };
    assert!(refused("no-such-program-of-lowtide", 127).contains("no such program"));
    assert!(refused("/no/such/program", 127).contains("no such program"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    fs::write(&file, "not a program\n").unwrap();
    assert!(refused(file.to_str().unwrap(), 126).contains("may not be executed"));
    assert!(refused(directory.path().to_str().unwrap(), 126).contains("may not be executed"));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn reports_that_cannot_be_written_are_refused_before_the_program_starts() {
    needs_kernel();
    check(&["--report", "/no/such/directory/report.json"], &["/no/such/directory"]);
    check(&["--report", "/proc/report.json"], &["/proc"]);
    check(&["--report", "/tmp"], &["/tmp", "directory"]);
    check(&["--report", "/tmp/no-such-place-of-lowtide/"], &["--report", "it names a directory; name a file"]);
    check(&["--report", "/dev/null"], &["/dev/null", "device"]);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_cgroup_tree_that_cannot_be_written_is_refused() {
    needs_kernel();
    // every cgroup2 mount read-only, and no right to mount another one
    let script = format!(
        "for path in $(awk '$3 == \"cgroup2\" {{ print $2 }}' /proc/self/mounts); do mount -o remount,bind,ro $path; done; \
         exec setpriv --bounding-set -sys_admin --inh-caps -sys_admin {} run -- touch {{MARK}}",
        env!("CARGO_BIN_EXE_lowtide")
    );
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("mark");
    let script = script.replace("{MARK}", mark.to_str().unwrap());
    let ended = finish(Command::new("unshare").args(["-m", "sh", "-c", &script]));
    assert_eq!(ended.status.code(), Some(125), "{ended:?}");
    assert!(ended.sentence().contains("cgroup"), "{ended:?}");
    assert!(!mark.exists());
}

/// Runs a shell script that sees the command as `$LOWTIDE`, as the user nobody.
fn as_nobody(script: &str) -> Ended {
    let (_directory, copy) = public_copy();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--", "sh", "-c", script]);
    finish(command.env("LOWTIDE", copy).current_dir("/"))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn without_privileges_run_says_what_to_try() {
    needs_kernel();
    let ended = as_nobody("\"$LOWTIDE\" run -- echo ran");
    assert_eq!((ended.status.code(), ended.out.as_str()), (Some(125), ""), "{ended:?}");
    assert_eq!(ended.sentence(), "lowtide: needs root: try `sudo lowtide run …` (`lowtide doctor` has the details)");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn best_effort_runs_the_program_ungoverned_and_says_so() {
    needs_kernel();
    let ended = as_nobody("\"$LOWTIDE\" run --best-effort -- sh -c 'id -u; exit 7'");
    assert_eq!((ended.status.code(), ended.out.as_str()), (Some(7), "65534\n"), "{ended:?}");
    assert!(ended.sentence().contains("not governed, as --best-effort allows"), "{ended:?}");

    // where everything can be governed the flag changes nothing
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let ended = finish(&mut run_script(&["--best-effort", "--report", file.to_str().unwrap()], "exit 7"));
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    assert!(!ended.err.contains("--best-effort"), "{ended:?}");
    assert_eq!(report(&file)["exit_code"], 7);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn doctor_has_a_line_for_every_feature() {
    needs_kernel();
    let features = ["kernel", "kernel type information", "cgroup v2", "cgroup BPF programs", "TUN devices"];
    let well = finish(&mut lowtide(["doctor"]));
    assert_eq!(well.status.code(), Some(0), "{well:?}");
    for feature in features {
        assert!(well.out.contains(&format!("ok       {feature}: ")), "{feature}: {}", well.out);
    }
    assert!(well.out.ends_with("lowtide run works here.\n"), "{}", well.out);

    let ill = as_nobody("\"$LOWTIDE\" doctor");
    assert_eq!(ill.status.code(), Some(1), "{ill:?}");
    for feature in ["cgroup v2", "cgroup BPF programs"] {
        assert!(ill.out.contains(&format!("missing  {feature}: ")), "{}", ill.out);
    }
    assert_eq!(ill.out.matches("missing").count(), ill.out.matches("fix: ").count(), "{}", ill.out);
    assert_eq!(ill.out.matches("missing").count(), ill.out.matches("consequence: ").count(), "{}", ill.out);
}

#[test]
fn emulate_refuses_what_it_cannot_build() {
    let emulate = |arguments: &[&str]| {
        let ended = finish(lowtide(["emulate"]).args(arguments));
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {ended:?}");
        assert_eq!(ended.out, "", "{arguments:?}");
        ended
    };
    let one = emulate(&["--rate", "20mbit", "--rtt", "40ms", "--between", "A"]);
    assert!(one.sentence().contains("--between A,B"), "{one:?}");
    let rateless = emulate(&["--schedule", "0s:2mbit,9s:1mbit", "--rtt", "40ms", "--between", "A,B"]);
    assert!(rateless.sentence().contains("do not repeat"), "{rateless:?}");
    let nothing = emulate(&["--rtt", "40ms", "--between", "A,B"]);
    assert!(nothing.err.contains("--rate"), "{nothing:?}");
    for (arguments, culprit) in [
        (["--rate", "20furlongs", "--rtt", "40ms", "--between", "A,B"], "--rate"),
        (["--rate", "20mbit", "--rtt", "soon", "--between", "A,B"], "--rtt"),
    ] {
        let ended = emulate(&arguments);
        assert!(ended.err.contains(culprit) && ended.err.contains(arguments[if culprit == "--rate" { 1 } else { 3 }]));
    }
}

#[test]
fn emulate_says_what_is_wrong_with_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("cell.up");
    fs::write(&trace, "1\n2\nsoon\n").unwrap();
    let trace = format!("mahimahi:{}", trace.display());
    for (option, value, part) in [
        ("--queue", "codle", "did you mean codel?"),
        ("--queue", "codel:tarket=5ms", "did you mean target?"),
        ("--queue", "codel:target=0s", "it must be from 1us to 10s"),
        ("--schedule", "1s:20mbit", "have to begin at 0s"),
        ("--schedule", "mahimahi:/nowhere", "cannot read the trace /nowhere"),
        ("--schedule", &trace, "cell.up, line 3: \"soon\" is not a time in whole milliseconds"),
        ("--reverse-schedule", "0s:0mbit", "a rate above zero"),
        ("--rtt-schedule", "0s:20mbit,1s:2ms", "\"20mbit\" is not a length of time"),
        ("--rtt-schedule", "1s:20ms", "have to begin at 0s"),
        ("--loss", "200%", "is not a probability"),
        ("--jitter", "2", "is not a length of time"),
        ("--reorder", "5ms", "write it like 1%:5ms"),
        ("--police", "10mbit", "write it like 10mbit:15kB"),
        ("--burst", "3p", "write it like 3080B"),
    ] {
        let ended =
            finish(lowtide(["emulate"]).args(["--rate", "20mbit", "--rtt", "40ms", "--between", "A,B", option, value]));
        assert_eq!(ended.status.code(), Some(2), "{option} {value}: {ended:?}");
        assert!(ended.err.contains(option) && ended.err.contains(part), "{option} {value}: {ended:?}");
    }
}

#[test]
fn files_that_never_end_are_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let scenario = directory.path().join("a.toml");
    let text = "duration = \"1s\"\n[bottleneck]\nrate = \"1mbit\"\nrtt = \"40ms\"\n\
                [[flow]]\nname = \"a\"\ncc = \"cubic\"\n";
    fs::write(&scenario, text).unwrap();
    let experiments = directory.path().join("experiments/000");
    fs::create_dir_all(&experiments).unwrap();
    assert!(Command::new("mkfifo").arg(experiments.join("a.toml")).status().unwrap().success());
    let experiments = experiments.parent().unwrap().to_str().unwrap().to_owned();
    let scenario = scenario.to_str().unwrap();
    let link = ["emulate", "--rate", "20mbit", "--rtt", "40ms", "--between", "A,B"];
    let wrong = [pipe.to_str().unwrap(), "/dev/zero", directory.path().to_str().unwrap()];
    for (number, file) in wrong.into_iter().enumerate() {
        let what = if number == 2 { "it is a directory; name a file" } else { "it is a pipe or a device" };
        let schedule = format!("mahimahi:{file}");
        let (schedule_key, source_key) =
            (format!("bottleneck.schedule={schedule}"), format!("flow.a.source=trace:{file}"));
        for arguments in [
            &[&link[..], &["--schedule", &schedule]].concat()[..],
            &["sim", file],
            &["sim", scenario, "--set", &schedule_key],
            &["sim", scenario, "--set", &source_key],
            &["trace", "plot", file],
            &["lab", "--experiments", &experiments, "list"],
        ] {
            let ended = finish(&mut lowtide(arguments));
            assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {ended:?}");
            let what = if arguments[0] == "lab" { "it is a pipe" } else { what };
            assert!(ended.err.contains(what) && !ended.err.contains("panicked"), "{arguments:?}: {ended:?}");
        }
    }
}
