// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! A small scenario in a guest, with our own law beside the kernel's. Skips where QEMU or the image is missing, unless
//! `LOWTIDE_REQUIRE_GUEST=1`.

use lowtide_guest::{Guest, Image, Job, Program};
use lowtide_lab::testbed::{Request, Testbed};
use lowtide_sim::scenario::Scenario;
use lowtide_testbed::GuestTestbed;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{SockaddrIn, connect, getsockopt, setsockopt, sockopt},
};
use serde_json::Value;
use std::{
    env,
    fmt::Write as _,
    net::{SocketAddrV4, TcpStream},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::Path,
};

const SCENARIO: &str = r#"
duration = "12s"
[bottleneck]
rate = "10mbit"
rtt = "20ms"
buffer = "17p"
[[flow]]
name = "ours"
cc = "cdg:g=125,hystart=delay"
tcp = { pacing = true }
[[flow]]
name = "module"
cc = "cdg:g=2,whole_segments=on"
start = "2s"
[[flow]]
name = "cubic"
cc = "cubic:variant=linux"
start = "4s"
[[flow]]
name = "noise"
source = "poisson:bytes=1450B,mean=23.2ms"
"#;

/// Where the guest's image is and what it needs; `None`, with a sentence, where something is missing.
fn usable<T>(made: impl FnOnce(&Path) -> anyhow::Result<T>) -> Option<T> {
    match lowtide_testbed::image_directory().and_then(|place| made(&place)) {
        Ok(made) => Some(made),
        Err(error) => {
            assert!(
                env::var_os("LOWTIDE_REQUIRE_GUEST").is_none_or(|it| it != "1"),
                "the guest is required, but {error}"
            );
            println!("skipped: {error}");
            None
        }
    }
}

/// A guest in which `lowtide lab testbed` works.
fn with_lowtide() -> Option<Guest> {
    usable(|place| {
        let lowtide = Program { name: "lowtide".to_owned(), path: env!("CARGO_BIN_EXE_lowtide").into() };
        let programs = [lowtide, Program::of_the_system("ip")?, Program::of_the_system("tc")?];
        Ok(Guest::new(Image::find(place)?, &programs)?)
    })
}

/// Before 6.4 a law of ours is registered without a link; it goes with its transfer all the same.
#[test]
fn a_law_of_ours_leaves_the_guests_kernel() {
    let Some(guest) = with_lowtide() else { return };
    let listed = "grep -c lt_cdg /proc/sys/net/ipv4/tcp_available_congestion_control >> result";
    let testbed = "lowtide lab testbed scenario.toml -o recording --bottleneck tc";
    let mut job = Job::new(format!(
        "{testbed} && exit 1\n{testbed} --plain-registration &\nsleep 5; {listed}\nwait; {listed}\nuname -r >> result"
    ));
    let flow = "[[flow]]\nname = \"ours\"\ncc = \"cdg:g=125,hystart=delay\"\ntcp = { pacing = true }\n";
    let text = format!("duration = \"8s\"\nbottleneck = {{ rate = \"1mbit\", rtt = \"20ms\" }}\n{flow}");
    job.files.push(("scenario.toml".to_owned(), text.into()));
    let outcome = guest.run(&job).unwrap();
    let result = String::from_utf8(outcome.result).unwrap();
    let lines: Vec<&str> = result.lines().collect();
    assert_eq!(lines[..2], ["1", "0"], "{}", outcome.console);
    assert!(outcome.console.contains("can outlive its process") && lines[2].starts_with("6.1."), "{}", outcome.console);
}

/// Whose verifier keeps less in mind than a newer kernel's.
#[test]
fn laws_of_many_states_load_in_the_guests_kernel() {
    let Some(guest) = with_lowtide() else { return };
    let laws = ["cdg:hystart=delay", "eclipse", "ledbatpp", "tide"];
    let testbed = |law: &str| {
        format!(
            "lowtide lab testbed {law}.toml -o recording --bottleneck tc --plain-registration && echo {law} >> result\n"
        )
    };
    let mut job = Job::new(laws.map(testbed).concat());
    for law in laws {
        let flow = format!("[[flow]]\nname = \"ours\"\ncc = \"{law}\"\ntcp = {{ pacing = true }}\n");
        let text = format!("duration = \"1s\"\nbottleneck = {{ rate = \"1mbit\", rtt = \"20ms\" }}\n{flow}");
        job.files.push((format!("{law}.toml"), text.into()));
    }
    let outcome = guest.run(&job).unwrap();
    let result = String::from_utf8(outcome.result).unwrap();
    assert_eq!(result.lines().collect::<Vec<_>>(), laws, "{}", outcome.console);
}

/// The guest's clock is its own: each run is under way when it is set by an hour.
#[test]
fn a_clock_that_is_set_moves_an_absolute_deadline_and_no_relative_one() {
    let Some(guest) = with_lowtide() else { return };
    // all of it needs 16 s, so a deadline 10 s ahead is missed unless it moves
    let cases = [("relative", 60, 3600), ("relative", 10, -3600), ("absolute", 600, 3600), ("absolute", 10, -3600)];
    let mut script =
        "set -e\n/usr/sbin/ip link set lo mtu 1500\n/usr/sbin/tc qdisc add dev lo root netem rate 1mbit limit 20\n\
                      lowtide traffic sink --listen 127.0.0.1:9000 &\nsleep 1\n"
            .to_owned();
    for (kind, seconds, step) in cases {
        let deadline = match kind {
            "relative" => format!("+{seconds}s"),
            _ => format!("$(date -u -d @$(($(date +%s) + {seconds})) +%Y-%m-%dT%H:%M:%SZ)"),
        };
        writeln!(
            script,
            "lowtide run --quiet --history none --size 2MB --deadline {deadline} --cc cubic --report report.json -- sh -c \
             'lowtide traffic send --size 2MB --to 127.0.0.1:9000 & sleep 3; date -s @$(($(date +%s) + {step})); wait'\n\
             cat report.json >> result; rm report.json"
        )
        .unwrap();
    }
    let outcome = guest.run(&Job::new(script)).unwrap();
    let reports = serde_json::Deserializer::from_slice(&outcome.result).into_iter::<Value>();
    let reports: Vec<Value> = reports.collect::<Result<_, _>>().unwrap();
    let [relative_on, relative_back, absolute_on, absolute_back] = &reports[..] else { panic!("{reports:?}") };
    let time = |report: &Value, field: &str| report[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let seconds =
        |report: &Value, from: &str, to: &str| time(report, to).duration_since(time(report, from)).as_secs_f64();
    let overdue = |report: &Value| {
        let said = report["announcements"].as_array().unwrap();
        said.iter().find(|said| said["outlook"] == "overdue").map(|said| said["t"].as_f64().unwrap())
    };
    for ((kind, length, step), report) in cases.iter().zip(&reports) {
        let rest = seconds(report, "finished", "deadline");
        println!("{kind} +{length} s, clock set by {step} s: {}, {rest:.1} s left", report["outcome"]);
        assert!((16.0..30.0).contains(&seconds(report, "started", "finished")), "{}", outcome.console);
    }
    for (report, length) in [(relative_on, 60.0), (relative_back, 10.0)] {
        assert!((seconds(report, "started", "deadline") - length).abs() < 0.01, "it is as long as it was");
    }
    assert_eq!((&relative_on["outcome"], overdue(relative_on)), (&"met".into(), None));
    assert_eq!(relative_back["outcome"], "missed");
    assert!(overdue(relative_back).is_some_and(|time| (10.0..11.0).contains(&time)), "{:?}", overdue(relative_back));

    assert_eq!(absolute_on["outcome"], "missed");
    let since = overdue(absolute_on).expect("it was told");
    assert!((3.0..5.0).contains(&since), "overdue at once, not after {since} s");
    let late: Vec<&Value> =
        absolute_on["series"].as_array().unwrap().iter().filter(|row| row["t"].as_f64().unwrap() > since).collect();
    assert!(late.len() > 10 && late.iter().all(|row| row["w"] == 1.0), "an ordinary flow from then on");
    assert_eq!(absolute_back["outcome"], "met");
    assert!(seconds(absolute_back, "finished", "deadline") > 3500.0, "an hour more");
    assert_eq!(overdue(absolute_back), None);
    let needed: Vec<f64> =
        absolute_back["series"].as_array().unwrap().iter().filter_map(|row| row["target_bps"].as_f64()).collect();
    assert!(needed[0] > 1e6 && *needed.last().unwrap() < 1e4, "bit/s needed: {needed:?}");
}

/// Not a test of its own: the program of the next one. It connects over SMC and, before the receiver has answered,
/// chooses a law and a code point, once more after the connection is TCP.
#[test]
fn sender_over_smc() {
    let Ok(to) = env::var("LOWTIDE_TEST_SMC_TO") else { return };
    let to = SockaddrIn::from(to.parse::<SocketAddrV4>().unwrap());
    for (name, family, protocol) in [("family", AF_SMC, 0), ("protocol", libc::AF_INET, IPPROTO_SMC)] {
        // SAFETY: a system call with integer arguments; the descriptor is new and ours.
        let socket = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, protocol) };
        if socket < 0 {
            println!("smc:{name} {}", Errno::last());
            continue;
        }
        // SAFETY: the same.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        assert_eq!(connect(socket.as_raw_fd(), &to), Err(Errno::EINPROGRESS));
        let choose = || {
            setsockopt(&socket, sockopt::TcpCongestion, &"cubic".into()).expect("success");
            setsockopt(&socket, sockopt::Ipv4Tos, &CS1).expect("success");
        };
        choose();
        let mut connected = [PollFd::new(std::os::fd::AsFd::as_fd(&socket), PollFlags::POLLOUT)];
        assert_eq!(poll(&mut connected, PollTimeout::from(10_000_u16)), Ok(1));
        let has =
            || (getsockopt(&socket, sockopt::TcpCongestion).unwrap(), getsockopt(&socket, sockopt::Ipv4Tos).unwrap());
        let early = has();
        choose();
        println!("smc:{name} {early:?} {:?}", has());
        // as SMC passes them on to TCP
        std::io::Write::write_all(&mut TcpStream::from(socket), &[0; 1000]).unwrap();
    }
}

const AF_SMC: i32 = 43;
/// `linux/in.h`, since 6.11.
const IPPROTO_SMC: i32 = 256;
const CS1: i32 = 8 << 2;

/// A socket of SMC is a TCP socket where its receiver has no SMC, once it is connected.
#[test]
fn sockets_of_smc_are_kept_on_our_law_and_code_point() {
    let Some(guest) = usable(|place| {
        let lowtide = Program { name: "lowtide".to_owned(), path: env!("CARGO_BIN_EXE_lowtide").into() };
        let sender = Program { name: "sender".to_owned(), path: env::current_exe()? };
        Ok(Guest::new(Image::find(place)?, &[lowtide, sender, Program::of_the_system("tc")?])?)
    }) else {
        return;
    };
    // what it says comes after the words of the test that it is
    let sender = "sender --exact sender_over_smc --nocapture 2>&1 | grep -o smc:.*";
    let script = format!(
        "set -e\n/usr/sbin/tc qdisc add dev lo root netem delay 50ms\n\
         lowtide traffic sink --listen 127.0.0.1:9000 > /dev/null &\nsleep 1\n\
         export LOWTIDE_TEST_SMC_TO=127.0.0.1:9000\n{sender} > without\n\
         for option in '' --allow-own-cc; do\n\
         lowtide run --quiet --history none --cc reno $option --report report.json -- {sender} > with\n\
         tr '\\n' ';' < without >> result; echo >> result; tr '\\n' ';' < with >> result; echo >> result\n\
         tr -d '\\n' < report.json >> result; echo >> result\ndone\n"
    );
    let outcome = guest.run(&Job::new(script)).unwrap();
    let text = String::from_utf8(outcome.result).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [without, with, held, _, allowed, own] = lines[..] else { panic!("{text}\n{}", outcome.console) };
    println!("{without}\n{with}\n{allowed}");
    // before the connection is TCP, and then
    let chosen = without.matches(r#"("cubic", 32) ("cubic", 32)"#).count();
    assert!(chosen > 0 && without.starts_with("smc:family (\"cubic\""), "the sockets are there: {without}");
    assert_eq!(with, without.replace(r#""cubic", 32"#, r#""reno", 4"#));
    assert_eq!(allowed, without.replace(r#""cubic", 32) ("#, r#""reno", 4) ("#).replace(", 32", ", 4"));
    for (report, laws) in [(held, 0), (own, chosen)] {
        let report: Value = serde_json::from_str(report).unwrap();
        assert_eq!(report["acknowledged_bytes"], 1000 * chosen);
        assert_eq!(report["not_controlled"]["own_law_requests"], 2 * chosen);
        assert!(report["not_controlled"]["sockets_with_own_law"].as_u64().unwrap() <= laws as u64);
    }
}

/// The guest's devices take one packet at a time: probes come in pairs all the same, and find the link free again.
#[test]
fn tide_finds_a_free_link_where_a_device_takes_one_packet_at_a_time() {
    let Some(testbed) = usable(|place| GuestTestbed::new(place, env!("CARGO_BIN_EXE_lowtide").as_ref())) else {
        return;
    };
    // whether a probe's pair stays together once it has left must not hang on when that was
    for start in ["4s", "4.2s", "4.4s"] {
        let text = format!(
            "duration = \"16s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"40ms\"\n\
             [[flow]]\nname = \"tide\"\ncc = \"tide\"\ntcp = {{ pacing = true }}\n\
             [[flow]]\nname = \"cubic\"\ncc = \"cubic:variant=linux\"\nstart = \"{start}\"\nstop = \"10s\"\n"
        );
        let scenario = Scenario::parse(&text, Path::new("test"), &[]).unwrap();
        let recording = testbed.run(&Request { scenario, kernel_laws: [].into() }).unwrap();
        let mean = |flow: usize, seconds: std::ops::Range<f64>| {
            let rates = recording.times.iter().zip(recording.flows[flow].columns["rate"].iter());
            let rates: Vec<f64> = rates.filter(|(time, _)| seconds.contains(*time)).map(|(_, rate)| *rate).collect();
            rates.iter().sum::<f64>() / rates.len() as f64
        };
        // it may leave once for nothing (docs/tide.md, where it fails); where pairs were not held together it used half
        // of such a link, or nothing
        assert!(mean(0, 1.0..4.0) > 7e6, "{start}: alone it has {} bit/s", mean(0, 1.0..4.0));
        assert!(mean(1, 6.0..10.0) > 8e6, "{start}: beside it CUBIC has {} bit/s", mean(1, 6.0..10.0));
        assert!(mean(0, 12.0..16.0) > 8e6, "{start}: alone again it has {} bit/s", mean(0, 12.0..16.0));
    }
}

#[test]
fn a_small_scenario_is_played_in_a_guest() {
    let Some(testbed) = usable(|place| GuestTestbed::new(place, env!("CARGO_BIN_EXE_lowtide").as_ref())) else {
        return;
    };
    let scenario = Scenario::parse(SCENARIO, Path::new("test"), &[]).unwrap();
    let request = Request { scenario, kernel_laws: [("module".to_owned(), "cdg".to_owned())].into() };
    assert_eq!(testbed.refusal(&request), None);
    let recording = testbed.run(&request).unwrap();
    assert_eq!(recording.times.len(), 120);
    let delivered = |flow: usize| *recording.flows[flow].columns["delivered"].last().unwrap() * 8.0;
    let total: f64 = (0..4).map(delivered).sum();
    // virtual time: no load of this machine disturbs it
    assert!((0.93..1.0).contains(&(total / (12.0 * 10e6))), "{total} bits came through");
    assert!((0..3).all(|flow| delivered(flow) > 1e6), "{:?}", (0..4).map(delivered).collect::<Vec<_>>());
    let rtt: Vec<f64> = recording.flows[2].columns["rtt"].iter().copied().filter(|rtt| rtt.is_finite()).collect();
    assert!(rtt.iter().all(|rtt| (19.9..60.0).contains(rtt)), "{rtt:?}");
    assert!(recording.links[0].columns["drops"].iter().sum::<f64>() > 0.0);
}
