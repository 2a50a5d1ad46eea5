// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! `--window`, `--cap` and `--group` on this machine's kernel.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{collections::BTreeSet, fs, net::Ipv4Addr, path::Path, time::Duration};

use jiff::{SignedDuration, Zoned};
use lifecycle::{
    Ended, Receiver, Running, children, dev_tcp, finish, inside, lowtide, name, namespace, needs_kernel, run_script,
    transfer_status, trickle, until,
};
use nix::sys::signal::Signal;
use serde_json::Value;

fn ask(words: &[&str]) -> Ended {
    finish(&mut lowtide(words))
}

fn status(transfer: &str) -> Value {
    until("the transfer's status", || transfer_status(transfer))
}

fn number(status: &Value, field: &str) -> f64 {
    status[field].as_f64().unwrap_or_else(|| panic!("{field} of {status}"))
}

/// Hours by the local clock, so far from now.
fn hours(from: i64, until: i64) -> String {
    let at = |hours: i64| (&Zoned::now() + SignedDuration::from_hours(hours)).strftime("%H:%M").to_string();
    format!("{}-{}", at(from), at(until))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn outside_its_window_a_transfer_does_not_press() {
    needs_kernel();
    let space = namespace("windows");
    let receiver = Receiver::start(&space, Ipv4Addr::LOCALHOST);
    let (job, later, now) = (name("windows"), hours(3, 6), hours(-2, 5));
    let options = ["--name", &job, "--deadline", "+8h", "--size", "80GB", "--window", &later];
    let run = Running::start(&mut inside(&space, run_script(&options, &trickle(&[receiver.address]))));
    let closed = until("bytes", || Some(status(&job)).filter(|it| number(it, "acknowledged_bytes") > 1e4));
    assert_eq!((&closed["hold"], &closed["needed_bps"]), (&Value::from("window"), &Value::Null), "{closed}");
    assert_eq!(number(&closed, "w"), number(&closed, "w_min"));
    assert_eq!(closed["windows"][0], later.as_str());
    assert!(closed["sentence"].as_str().unwrap().starts_with("outside its window until "), "{closed}");
    assert!(closed["opens"].is_string() && closed["closes"].is_null());

    for (options, part) in [
        (&["--window", "late"][..], "--window: cannot read the hours"),
        (&["--cap", "08:00-18:00"], "has no rate"),
        (&["--window", "22:00-22:00"], "begin and end at once"),
    ] {
        let refused = ask(&[&["set", &job][..], options].concat());
        assert!(!refused.status.success() && refused.sentence().contains(part), "{options:?}: {refused:?}");
    }
    assert_eq!(status(&job)["windows"][0], later.as_str(), "what is refused changes nothing");

    assert!(ask(&["set", &job, "--window", &now, "--cap", "00:00-24:00=5mbit"]).status.success());
    let open = status(&job);
    assert_eq!((&open["hold"], number(&open, "limit_bps")), (&Value::Null, 5e6), "{open}");
    // 80 GB in the five hours of the window need more than the cap, beyond which nothing is aimed for
    assert_eq!(number(&open, "needed_bps"), 5e6, "{open}");
    assert!(open["closes"].is_string(), "{open}");
    assert!(ask(&["set", &job, "--cap", "none"]).out.contains(&job));
    let free = status(&job);
    assert_eq!((&free["limit_bps"], &free["caps"]), (&Value::Null, &Value::Array(Vec::new())));
    let needed = number(&free, "needed_bps");
    assert!((8.0 * 80e9 / (5.0 * 3600.0)..8.0 * 80e9 / (4.0 * 3600.0)).contains(&needed), "{needed} in five hours");
    run.signal(Signal::SIGTERM);
    let ended = run.end();
    assert!(ended.err.contains("outside its window until "), "{ended:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_cannot_be_is_refused_before_the_program_starts() {
    for (options, part) in [
        (&["--window", "22:00"][..], "--window: cannot read the hours '22:00'"),
        (&["--cap", "8-9=fast"], "--cap"),
        (&["--max-rate", "fast"], "--max-rate"),
        (&["--direction", "down", "--max-rate", "5mbit"], "holds back only what is sent"),
        (&["--direction", "down", "--cap", "8:00-9:00=5mbit"], "holds back only what is sent"),
    ] {
        let refused = finish(&mut run_script(options, "echo it ran"));
        assert_eq!((refused.status.code(), refused.out.as_str()), (Some(125), ""), "{options:?}: {refused:?}");
        assert!(refused.sentence().contains(part), "{options:?}: {refused:?}");
    }
}

/// One of a group, that has so many bytes to send in so long over a connection that carries a trickle.
fn member(space: &lowtide_emu::Namespace, receiver: &Receiver, group: &str, job: &str, due: &str) -> Running {
    let options = ["--name", job, "--group", group, "--deadline", due, "--size", "2GB"];
    let script = format!("exec head -c 2000000000 /dev/zero > {}", dev_tcp(receiver.address));
    Running::start(&mut inside(space, run_script(&options, &script)))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_group_has_one_turn_at_a_time_and_a_killed_one_leaves_its_turn() {
    needs_kernel();
    let (a, b) = (format!("{}a", name("turns")), format!("{}b", name("turns")));
    let config = lowtide_emu::Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(20));
    let emulator = lowtide_emu::Emulator::start(config).unwrap();
    let receiver = Receiver::start(emulator.b(), emulator.b4());
    let group = name("turns");
    let jobs = ["first", "second", "third"].map(|job| name(&format!("turns-{job}")));
    let mut runs: Vec<_> = jobs
        .iter()
        .zip(["+1h", "+2h", "+3h"])
        .map(|(job, due)| member(emulator.a(), &receiver, &group, job, due))
        .collect();
    // who presses, and who waits
    let turns = |jobs: &[String]| -> Vec<Option<String>> {
        let all: Vec<_> = jobs.iter().map(|job| status(job)).collect();
        assert!(all.iter().all(|it| it["budget"] == group.as_str()));
        all.iter().map(|it| it["hold"].as_str().map(str::to_owned)).collect()
    };
    let turn = || Some("turn".to_owned());
    until("the first one's turn", || (turns(&jobs) == [None, turn(), turn()]).then_some(()));
    // as much as all of them need: 6 GB in three hours or 2 GB in the first, less the margin of the aim
    let needed = number(&status(&jobs[0]), "needed_bps");
    assert!((8.0 * 2e9 / 3600.0..1.2 * 8.0 * 2e9 / 3600.0).contains(&needed), "{needed}");
    assert!(status(&jobs[2])["sentence"].as_str().unwrap().contains("another transfer of its group goes first"));

    let first = runs.remove(0);
    let orphans: Vec<_> = children(first.pid()).into_iter().map(lifecycle::Orphan).collect();
    first.signal(Signal::SIGKILL);
    drop(first);
    drop(orphans);
    until("the second one's turn", || (turns(&jobs[1..]) == [None, turn()]).then_some(()));
    assert!(ask(&["pause", &jobs[1]]).status.success());
    until("the third one's turn", || (turns(&jobs[2..]) == [None]).then_some(()));
    assert!(ask(&["resume", &jobs[1]]).status.success());
    until("the second one's turn again", || (turns(&jobs[1..]) == [None, turn()]).then_some(()));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_group_goes_on_without_one_that_was_killed_while_it_began() {
    needs_kernel();
    let group = name("begun");
    let file = Path::new("/run/lowtide/control").join(format!("{group}.group"));
    let begin = |job: &str, options: &[&str]| {
        let job = name(&format!("begun-{job}"));
        let run = Running::start(&mut run_script(&[&["--name", &job][..], options].concat(), "sleep 600"));
        (job, run)
    };
    // its file is there while it loads its programs
    let kill_one = || {
        until("a file that is left", || {
            let (_, killed) = begin("killed", &["--group", &group]);
            let _seen = (0..2000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                file.exists()
            });
            let _orphans: Vec<_> = children(killed.pid()).into_iter().map(lifecycle::Orphan).collect();
            killed.signal(Signal::SIGKILL);
            drop(killed);
            file.exists().then_some(()) // or it came too late
        });
    };
    kill_one();
    let (one, first) = begin("first", &["--group", &group]);
    status(&one);
    until("the end of its beginning", || (!file.exists()).then_some(()));
    kill_one();
    let (other, _another) = begin("other", &["--cc", "reno"]);
    status(&other);
    assert!(!file.exists(), "with a transfer that is of no group");
    first.signal(Signal::SIGTERM);
    let told = first.end().err;
    assert!(!told.contains("control sockets in"), "{told}");
}

/// The numbers of the kernel's maps of which a process has descriptors.
fn maps(pid: i32) -> BTreeSet<u32> {
    let about = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = about.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.filter_map(|text| text.lines().find_map(|line| line.strip_prefix("map_id:")?.trim().parse().ok())).collect()
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_group_has_one_state_per_path_as_long_as_one_of_it_lives() {
    needs_kernel();
    let space = namespace("common");
    let receiver = Receiver::start(&space, Ipv4Addr::LOCALHOST);
    let group = name("common");
    let begin = |job: &str, law: &str| {
        let job = name(&format!("common-{job}"));
        let options = ["--name", &job, "--group", &group, "--cc", law];
        let script = format!("exec sleep 600 > {}", dev_tcp(receiver.address));
        let run = Running::start(&mut inside(&space, run_script(&options, &script)));
        (job, run)
    };
    let common = |a: &Running, b: &Running| maps(a.pid()).intersection(&maps(b.pid())).copied().collect::<Vec<_>>();
    // both at once: one of them makes it, and the other one waits for that
    let [(one, first), (two, second)] = ["first", "second"].map(|job| begin(job, "tide"));
    status(&one);
    status(&two);
    let shared = common(&first, &second);
    assert_eq!(shared.len(), 1, "the state per path, and nothing else");

    let (other, third) = begin("other", "tide:drain=0s");
    status(&other);
    assert!(common(&first, &third).is_empty() && common(&second, &third).is_empty(), "another law has its own");
    third.signal(Signal::SIGTERM);
    let told = third.end().err;
    for job in [&one, &two] {
        let sentence =
            format!("{job} of the group {group} does not share its state per path: its law is tide, not tide:");
        assert!(told.contains(&sentence), "{told}");
    }

    let orphans: Vec<_> = children(first.pid()).into_iter().map(lifecycle::Orphan).collect();
    first.signal(Signal::SIGKILL);
    drop(first);
    drop(orphans);
    let (fourth, latest) = begin("fourth", "tide");
    status(&fourth);
    assert_eq!(common(&second, &latest), shared, "the state outlives the one that made it");

    let orphans: Vec<_> =
        [&second, &latest].into_iter().flat_map(|run| children(run.pid())).map(lifecycle::Orphan).collect();
    for run in [second, latest] {
        run.signal(Signal::SIGKILL);
        drop(run);
    }
    drop(orphans);
    let exists = |id| libbpf_rs::query::MapInfoIter::default().any(|map| map.id == id);
    until("the state's end", || (!exists(shared[0])).then_some(()));
    assert!(!Path::new("/run/lowtide/control").join(format!("{group}.group")).exists(), "the group's lock is left");
}
