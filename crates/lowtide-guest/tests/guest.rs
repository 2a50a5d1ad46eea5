// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that is booted. Skips where QEMU or the image is missing, unless `LOWTIDE_REQUIRE_GUEST=1`.

use lowtide_guest::{Error, Guest, Image, Job};
use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

/// A guest of the image in `LOWTIDE_GUEST`, or in the workspace's `target/lab/guest`.
fn guest() -> Option<Guest> {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/lab/guest");
    let directory = env::var_os("LOWTIDE_GUEST").map_or_else(usual, PathBuf::from);
    match Image::find(&directory).and_then(|image| Guest::new(image, &[])) {
        Ok(guest) => Some(guest),
        Err(error @ (Error::NoQemu | Error::NoImage(_) | Error::OldImage(_))) => {
            assert!(
                env::var_os("LOWTIDE_REQUIRE_GUEST").is_none_or(|it| it != "1"),
                "the guest is required, but {error}"
            );
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_command_runs_and_its_result_comes_back() {
    let Some(guest) = guest() else { return };
    let mut job = Job::new("cat question > result; uname -r >> result; echo done");
    job.files.push(("question".to_owned(), b"which kernel?\n".into()));
    job.modules.push("tcp_cdg backoff_factor=17".to_owned());
    job.command += "; cat /sys/module/tcp_cdg/parameters/backoff_factor >> result";
    let outcome = guest.run(&job).unwrap();
    let text = String::from_utf8(outcome.result.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[2]), ("which kernel?", "17"));
    assert!(guest.image().about().contains(lines[1]), "{text} is of {}", guest.image().about());
    assert!(outcome.console.contains("done"), "{}", outcome.console);
    assert!(outcome.seconds > 0.0 && outcome.seconds < 30.0, "{}", outcome.seconds);

    // the same again, to the nanosecond
    job.command = "cut -d' ' -f1 /proc/schedstat > result; grep -w cpu0 /proc/schedstat >> result".to_owned();
    let [first, second] = [0, 1].map(|_| guest.run(&job).unwrap());
    assert_eq!(first.result, second.result);
}

#[test]
fn what_goes_wrong_is_said() {
    let Some(guest) = guest() else { return };
    match guest.run(&Job::new("echo the reason; exit 7")) {
        Err(Error::Failed { status: 7, said }) => assert!(said.contains("the reason"), "{said}"),
        other => panic!("{other:?}"),
    }
    match guest.run(&Job::new("echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger")) {
        Err(Error::Broken { console }) => assert!(console.contains("panic"), "{console}"),
        other => panic!("{other:?}"),
    }
    let endless = Job { timeout: Duration::from_secs(1), ..Job::new("sleep 1000000") };
    assert!(matches!(guest.run(&endless), Err(Error::TooLong { .. })));
}
