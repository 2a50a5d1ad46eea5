// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! `make try-deb`: the package in a Debian whose first process is systemd, booted under QEMU in virtual time, so that
//! its rates do not depend on this machine's. `LOWTIDE_DEB` names the package, `LOWTIDE_GUEST` the Debian.

use std::{collections::BTreeMap, env, fs, path::Path, time::Duration};

use lowtide_guest::{Guest, Image, Job};

/// What the guest does: see there for what each line of its result is.
const SCRIPT: &str = include_str!("debian/try.sh");
/// What the foreground has beside background transport, of what it has alone.
const KEPT: f64 = 0.96;
/// One of two equal flows has about half; nothing that is governed takes that much.
const SHARED: f64 = 0.75;
/// What the name of the law begins with.
const OURS: &str = "lt_tide";

/// A line for each thing that the guest looked at.
struct Findings {
    lines: BTreeMap<String, String>,
    console: String,
}

impl Findings {
    fn of(&self, name: &str) -> &str {
        self.lines.get(name).unwrap_or_else(|| panic!("the guest said nothing of {name}:\n{}", self.console))
    }

    fn is(&self, name: &str, wanted: &str) {
        assert_eq!(self.of(name), wanted, "{name}; the guest printed:\n{}", self.console);
    }

    fn number(&self, name: &str) -> f64 {
        self.of(name).parse().unwrap_or_else(|_| panic!("{name} is no number in\n{}", self.console))
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set; make try-deb sets it"))
}

#[test]
#[ignore = "needs the package and a Debian to boot: make try-deb"]
fn the_package_governs_units_of_systemd_and_leaves_nothing() {
    let package = fs::read(variable("LOWTIDE_DEB")).unwrap();
    let image = Image::find(Path::new(&variable("LOWTIDE_GUEST"))).unwrap();
    let job = Job {
        files: vec![("lowtide.deb".to_owned(), package)],
        memory_mib: 2048,
        timeout: Duration::from_secs(1800),
        ..Job::new(SCRIPT)
    };
    let outcome = Guest::new(image, &[]).unwrap().run(&job).unwrap();
    let result = String::from_utf8(outcome.result).unwrap();
    println!("{result}in {:.0} s of the guest's time", outcome.seconds);
    let lines = result.lines().map(|line| line.split_once(' ').unwrap_or((line, "")));
    let lines = lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    let found = Findings { lines, console: outcome.console };

    assert!(found.of("first").starts_with("systemd "), "{}", found.of("first"));
    found.is("installed", concat!("install ok installed, lowtide ", env!("CARGO_PKG_VERSION")));
    found.is("doctor", "0");

    // attach
    let alone = found.number("alone");
    let share = |name| found.number(name) / alone;
    found.is("law_before", "cubic");
    assert!(share("ungoverned") < SHARED, "without Lowtide: {}", share("ungoverned"));
    assert!(found.of("law_attached").starts_with(OURS), "{}", found.of("law_attached"));
    assert!(share("attached") >= KEPT, "beside the attached service: {}", share("attached"));
    assert!(found.number("upload_sent") > 0.0, "the attached service goes on");
    found.is("law_detached", "cubic");
    found.is("unit_detached", "inactive success 0");
    assert!(share("detached") < SHARED, "detached: {}", share("detached"));

    // the timer's unit
    assert!(found.of("nightly_running").starts_with("activating "), "{}", found.of("nightly_running"));
    found.is("nightly_unit", "inactive success");
    found.is("nightly", "met");
    found.is("received", "all");

    // a container
    found.is("container_law_before", "cubic");
    assert!(found.of("container_law_attached").starts_with(OURS), "{}", found.of("container_law_attached"));
    found.is("container_law_detached", "cubic");

    // the units that the package has
    assert!(found.of("law_enabled").starts_with(OURS), "{}", found.of("law_enabled"));
    assert!(found.number("metrics") > 10.0, "metrics of the transfer");
    found.is("unit_stopped", "inactive success");
    found.is("law_purged", "cubic");
    found.is("service_purged", "active");
    found.is("left", "");
    found.is("failed", "0");
    found.is("failed_after", "");
}
