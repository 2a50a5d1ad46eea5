// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that measure rates and delays, in virtual time: the load of this machine does not change what they measure.
//! A test program is itself one of the guest's programs, and runs the same test there.

use crate::{Guest, Image, Job, Program};
use std::{any::type_name, env, fs, path::PathBuf, time::Duration};

/// Set in the guest.
const INSIDE: &str = "LOWTIDE_TEST_IN_GUEST";
/// What the test program is called there.
const PROGRAM: &str = "lowtide-test";
/// Of the host's time: some minutes where nothing else runs.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// The programs under development are large.
const MEMORY_MIB: u32 = 1024;
/// The result of a test that was run to its end.
const DONE: &[u8] = b"done\n";

/// Whether this process is a test program in a guest that [`in_virtual_time`] booted.
pub fn in_guest() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Runs `body`, a closure that a test function has, in the guest whose image the variable `LOWTIDE_GUEST` names.
/// `programs` are those that it starts. What it prints there is printed here.
///
/// # Panics
/// There is no image or no QEMU, a program is missing, or the test fails in the guest.
pub fn in_virtual_time<F: FnOnce()>(programs: &[Program], body: F) {
    if in_guest() {
        body();
        fs::write("result", DONE).expect("the job's directory can be written");
        return;
    }
    let test = test_of(type_name::<F>());
    let place = env::var_os("LOWTIDE_GUEST").map(PathBuf::from);
    let place = place.expect("LOWTIDE_GUEST names no image; make promises makes one, and runs this test with it");
    let this = Program { name: PROGRAM.to_owned(), path: env::current_exe().expect("this program has a path") };
    let job = Job {
        modules: vec!["tun".to_owned()],
        memory_mib: MEMORY_MIB,
        timeout: TIMEOUT,
        ..Job::new(format!("exec env {INSIDE}=1 {PROGRAM} --exact {test} --include-ignored --nocapture"))
    };
    let guest = Image::find(&place).and_then(|image| Guest::new(image, &[programs, &[this]].concat()));
    let outcome = guest.and_then(|guest| guest.run(&job)).unwrap_or_else(|error| panic!("{test}: {error}"));
    println!("{}in {:.0} s of the guest's time", outcome.console, outcome.seconds);
    assert_eq!(outcome.result, DONE, "the test program has no test {test}");
}

/// The path of a test in its program, by the name of the type of a closure in it: "program::path::{{closure}}".
fn test_of(closure: &str) -> &str {
    let path = closure.split_once("::").map_or(closure, |(_, path)| path);
    path.split_once("::{{").map_or(path, |(test, _)| test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_name_of<F: FnOnce()>(_: F) -> &'static str {
        type_name::<F>()
    }

    #[test]
    fn a_closure_knows_its_test() {
        assert_eq!(test_of(type_name_of(|| ())), "testing::tests::a_closure_knows_its_test");
        assert_eq!(test_of("promises::a_deadline_is_met::{{closure}}"), "a_deadline_is_met");
    }
}
