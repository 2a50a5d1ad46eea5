// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that `lowtide run` writes and reads beside PROGRAM's work: whose they are, and what happens where they cannot
//! be.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::ExitStatusExt,
    },
    path::Path,
    process::Command,
};

use lifecycle::{Running, finish, lowtide, lowtide_environment, needs_kernel, public_copy, report, run_script};
use serde_json::json;

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_full_disk_at_the_report_costs_the_report_and_not_the_transfer() {
    needs_kernel();
    let full = tempfile::tempdir().unwrap();
    // in a mount namespace of its own: the tiny file system goes with it
    let script = format!(
        "mount -t tmpfs -o size=4k,mode=755 none {0} && exec {1} run --quiet --report {0}/report.json -- \
         sh -c 'head -c 4096 /dev/zero > {0}/filler; ls {0}; echo ran'",
        full.path().display(),
        env!("CARGO_BIN_EXE_lowtide")
    );
    let ended = finish(Command::new("unshare").args(["-m", "sh", "-c", &script]));
    assert!(ended.out.lines().any(|line| line == "ran"), "{ended:?}");
    assert_eq!(ended.status.code(), Some(125), "{ended:?}");
    assert!(ended.sentence().contains("report.json") && ended.sentence().contains("No space left"), "{ended:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn limits_of_files_are_one_sentence() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let run = |limit: &str, program: &str| {
        let script = format!(
            "{limit}; exec {} run --quiet --report {}/report.json -- {program}",
            env!("CARGO_BIN_EXE_lowtide"),
            directory.path().display()
        );
        finish(lowtide_environment(Command::new("bash").args(["-c", &script])))
    };
    // a block of 1024 bytes; every report is larger
    let large = run("ulimit -f 1", "echo ran");
    assert_eq!((large.status.code(), large.out.as_str()), (Some(125), "ran\n"), "{large:?}");
    assert!(large.sentence().contains("report.json") && large.sentence().contains("File too large"), "{large:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left of it");
    // PROGRAM has the limit's signal
    let shot = run("ulimit -c 0 -f 1", "head -c 2000 /dev/zero");
    assert_eq!(shot.status.signal(), Some(libc::SIGXFSZ), "{shot:?}");
    let few = run("ulimit -n 16", "echo ran");
    assert_eq!((few.status.code(), few.out.as_str()), (Some(125), ""), "{few:?}");
    assert!(few.sentence().contains("raise the limit of open files"), "{few:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_history_that_never_ends_is_one_sentence() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in [pipe.to_str().unwrap(), "/dev/zero"] {
        let options = ["--quiet", "--history", file, "--size", "last", "--deadline", "+1h"];
        let ended = finish(&mut run_script(&options, "echo ran"));
        assert_eq!((ended.status.code(), ended.out.as_str()), (Some(125), ""), "{file}: {ended:?}");
        assert!(ended.sentence().contains("it is a pipe or a device"), "{file}: {ended:?}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_report_has_the_mode_that_the_umask_gives_and_leaves_nothing_beside_it() {
    needs_kernel();
    for (umask, mode) in [("022", 0o644), ("077", 0o600)] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("report.json");
        let script = format!(
            "umask {umask}; exec {} run --quiet --report \"$1\" -- sh -c 'exit 3'",
            env!("CARGO_BIN_EXE_lowtide")
        );
        let ended = finish(lowtide_environment(Command::new("sh").args(["-c", &script, "sh"]).arg(&file)));
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, mode);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing but the report is left");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_report_holds_arguments_only_if_asked() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    for (options, program) in
        [(&[][..], json!(["true"])), (&["--report-arguments"], json!(["true", "--password=secret"]))]
    {
        let mut command = lowtide(["run", "--quiet", "--report"]);
        command.arg(&file).args(options).args(["--", "true", "--password=secret"]);
        assert!(finish(&mut command).status.success());
        assert_eq!(report(&file)["program"], program, "{options:?}");
    }
}

/// Under sudo the report belongs to who called, and goes where that user may write.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_report_is_written_with_the_callers_rights() {
    needs_kernel();
    let (_copy, program) = public_copy();
    let theirs = tempfile::tempdir().unwrap();
    let ours = tempfile::tempdir().unwrap();
    chown(theirs.path(), Some(65534), Some(65534)).unwrap();
    let run = |directory: &Path| {
        let mut command = Command::new(&program);
        command.args(["run", "--quiet", "--report"]).arg(directory.join("report.json")).args(["--", "true"]);
        finish(lowtide_environment(&mut command).env("SUDO_UID", "65534").current_dir("/"))
    };
    assert!(run(theirs.path()).status.success());
    assert_eq!(fs::metadata(theirs.path().join("report.json")).unwrap().uid(), 65534);
    let refused = run(ours.path());
    assert_eq!(refused.status.code(), Some(125), "{refused:?}");
    assert!(refused.sentence().contains("--report") && refused.sentence().contains("Permission denied"), "{refused:?}");
}

/// The caller's rights are not only those on files: no process of root's shows a way around a directory.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_report_takes_no_way_through_other_users_processes() {
    needs_kernel();
    let (_copy, program) = public_copy();
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let open = closed.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let there = Running::start(Command::new("sleep").arg("60").current_dir(&open));
    let path = format!("/proc/{}/cwd/report.json", there.pid());
    let run = |caller: &str| {
        let mut command = Command::new(&program);
        command.args(["run", "--quiet", "--report", &path, "--", "true"]).current_dir("/");
        finish(lowtide_environment(&mut command).env("SUDO_UID", caller))
    };
    let refused = run("65534");
    assert_eq!((refused.status.code(), open.join("report.json").exists()), (Some(125), false), "{refused:?}");
    assert!(refused.sentence().contains("Permission denied"), "{refused:?}");
    assert!(run("0").status.success() && open.join("report.json").exists(), "root may");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_history_that_the_caller_names_is_the_callers() {
    needs_kernel();
    let (_copy, program) = public_copy();
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    chown(theirs.path(), Some(65534), Some(65534)).unwrap();
    fs::set_permissions(ours.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let run = |directory: &Path, options: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["run", "--progress", "never", "--history"]).arg(directory.join("history.json")).args(options);
        finish(lowtide_environment(command.args(["--", "true"])).env("SUDO_UID", "65534").current_dir("/"))
    };
    let kept = |directory: &Path| fs::metadata(directory.join("history.runs.json")).ok().map(|file| file.uid());
    assert!(run(theirs.path(), &[]).status.success());
    assert_eq!(kept(theirs.path()), Some(65534));
    let unkept = run(ours.path(), &[]);
    assert!(unkept.status.success() && unkept.err.contains("Permission denied"), "{unkept:?}");
    assert_eq!(kept(ours.path()), None);
    fs::write(ours.path().join("history.json"), r#"{"schema": "lowtide-history/1", "jobs": []}"#).unwrap();
    let unread = run(ours.path(), &["--size", "last", "--deadline", "1h"]);
    assert!(unread.sentence().contains("Permission denied"), "{unread:?}");
}
