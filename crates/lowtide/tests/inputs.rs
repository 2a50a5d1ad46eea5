// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lowtide run` makes of what it is given: sizes that are estimates.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    process::Command,
};

use lifecycle::{finish, lowtide_environment, needs_kernel, public_copy, report, run_script};

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_tree_that_cannot_be_read_as_a_whole_is_announced_by_what_could() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    for folder in ["a", "closed", "closed_too"] {
        fs::create_dir_all(tree.join(folder)).unwrap();
        fs::write(tree.join(folder).join("x"), [1; 1000]).unwrap();
    }
    for folder in ["closed", "closed_too"] {
        fs::set_permissions(tree.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
    }
    // root that may not read everything, as with other people's FUSE mounts; nor does it govern, on some systems
    let rights = "-dac_override,-dac_read_search";
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", rights, "--inh-caps", rights, env!("CARGO_BIN_EXE_lowtide"), "run", "--quiet"]);
    command.args(["--best-effort", "--deadline", "+1h"]);
    let ended = finish(command.arg("--size-of").arg(&tree).args(["--", "echo", "ran"]));
    assert_eq!((ended.status.code(), ended.out.as_str()), (Some(0), "ran\n"), "{ended:?}");
    let warning = ended.err.lines().next().unwrap();
    assert!(warning.contains("2 places could not be read") && warning.contains("closed"), "{ended:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_the_caller_may_not_read_does_not_count() {
    needs_kernel();
    let (_copy, program) = public_copy();
    let (tree, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for (folder, mode) in [("open", 0o755), ("closed", 0o700)] {
        fs::create_dir(tree.path().join(folder)).unwrap();
        fs::write(tree.path().join(folder).join("x"), [1; 1000]).unwrap();
        fs::set_permissions(tree.path().join(folder), fs::Permissions::from_mode(mode)).unwrap();
    }
    for (caller, size) in [("65534", 1000), ("0", 2000)] {
        chown(out.path(), Some(caller.parse().unwrap()), None).unwrap();
        let file = out.path().join(caller);
        let mut command = Command::new(&program);
        command.args(["run", "--quiet", "--report"]).arg(&file).arg("--size-of").arg(tree.path()).args(["--", "true"]);
        let ended = finish(lowtide_environment(&mut command).env("SUDO_UID", caller).current_dir("/"));
        assert_eq!((ended.status.code(), report(&file)["size_bytes"].as_u64()), (Some(0), Some(size)), "{ended:?}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn an_empty_tree_runs_the_program_without_a_deadline_that_presses() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let (empty, file) = (directory.path().join("empty"), directory.path().join("report.json"));
    fs::create_dir(&empty).unwrap();
    let (empty, path) = (empty.to_str().unwrap(), file.to_str().unwrap());
    // the deadline passes while the program runs
    let options = ["--quiet", "--deadline", "+1s", "--report", path, "--size-of", empty];
    let ended = finish(&mut run_script(&options, "sleep 2; echo ran"));
    assert_eq!((ended.status.code(), ended.out.as_str()), (Some(0), "ran\n"), "{ended:?}");
    assert!(ended.sentence().contains("nothing to announce"), "{ended:?}");
    let report = report(&file);
    assert!(report["size_bytes"].is_null() && report["deadline"].is_string(), "{report}");
    let weights: Vec<_> = report["series"].as_array().unwrap().iter().map(|row| row["w"].as_f64().unwrap()).collect();
    assert!(weights.iter().all(|weight| *weight == 0.004), "{weights:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn one_file_system_leaves_out_what_is_mounted_below() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("other")).unwrap();
    fs::write(directory.path().join("x"), [1; 1000]).unwrap();
    let size = |option: &str| {
        let file = directory.path().join("report.json");
        // in a mount namespace of its own: what is mounted goes with it
        let script = format!(
            "mount -t tmpfs none {0}/other && head -c 500 /dev/urandom > {0}/other/y && \
             exec {1} run --quiet --report {2} {option} --size-of {0} -- true",
            directory.path().display(),
            env!("CARGO_BIN_EXE_lowtide"),
            file.display()
        );
        let ended = finish(Command::new("unshare").args(["-m", "sh", "-c", &script]));
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let size = report(&file)["size_bytes"].as_u64().unwrap();
        fs::remove_file(file).unwrap();
        size
    };
    assert_eq!((size(""), size("--one-file-system")), (1500, 1000));
}
