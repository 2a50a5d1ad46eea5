// SPDX-License-Identifier: MIT OR Apache-2.0
//! PROGRAM lives and dies as if Lowtide were not there; Lowtide tells what happened, and leaves nothing when it is
//! killed.

#[path = "support/bpf.rs"]
mod bpf;
#[path = "support/lifecycle.rs"]
mod lifecycle;
#[path = "support/terminal.rs"]
mod terminal;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::Write,
    net::{IpAddr, Ipv4Addr, TcpStream},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use bpf::{bpf_of, is_in_the_kernel, leave_the_kernel};
use lifecycle::{
    Orphan, Receiver, Running, Socket, children, dev_tcp, finish, group_of, groups_of, inside, is_alive, listed_laws,
    lowtide, name, namespace, needs_kernel, own_cgroup, report, run_script, sockets_to, state, trickle, until, within,
};
use lowtide_emu::{Config, Emulator, Namespace};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, sigprocmask};
use terminal::{STOPS, Terminal};

const LOCALHOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_exit_status_is_the_programs() {
    needs_kernel();
    for code in [0, 7, 255] {
        let ended = finish(&mut run_script(&[], &format!("exit {code}")));
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn death_by_a_signal_is_the_programs() {
    needs_kernel();
    for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGSEGV, Signal::SIGPIPE] {
        let script = format!("ulimit -c 0; kill -{} $$", signal as i32);
        let ended = finish(&mut run_script(&["--quiet"], &script));
        assert_eq!(ended.status.signal(), Some(signal as i32), "{ended:?}");
        assert_eq!((ended.out, ended.err), (String::new(), String::new()), "{signal}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn streams_directory_and_environment_pass_through() {
    needs_kernel();
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input");
    fs::write(&input, "from stdin\n").unwrap();
    let mut command = run_script(&["--quiet"], "cat; pwd -P; echo \"$LOWTIDE_TEST_MARK\"; echo to stderr >&2");
    command.stdin(File::open(&input).unwrap()).current_dir(directory.path()).env("LOWTIDE_TEST_MARK", "a b");
    let ended = finish(&mut command);
    let here = directory.path().canonicalize().unwrap();
    assert_eq!(ended.out, format!("from stdin\n{}\na b\n", here.display()));
    assert_eq!(ended.err, "to stderr\n");
    assert!(ended.status.success());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_pipe_passes_through_to_its_end() {
    needs_kernel();
    let pipe = format!("head -c 1000000 /dev/zero | {} run --quiet -- cat | wc -c", env!("CARGO_BIN_EXE_lowtide"));
    assert_eq!(finish(Command::new("sh").args(["-c", &pipe])).out.trim(), "1000000");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn signal_mask_and_ignored_signals_are_the_callers() {
    needs_kernel();
    let own_signals = |mut command: Command| {
        let prepare = || {
            let blocked = SigSet::from_iter([Signal::SIGUSR1, Signal::SIGALRM, Signal::SIGCHLD]);
            sigprocmask(SigmaskHow::SIG_BLOCK, Some(&blocked), None)?;
            for ignored in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGPIPE] {
                // SAFETY: ignoring a signal runs no code of ours.
                unsafe { nix::sys::signal::signal(ignored, SigHandler::SigIgn) }?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made.
        unsafe { command.pre_exec(prepare) };
        let ended = finish(&mut command);
        let lines = ended.out.lines().filter(|line| line.starts_with("Sig") && !line.starts_with("SigQ"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut direct = Command::new("cat");
    direct.arg("/proc/self/status");
    let expected = own_signals(direct);
    assert_eq!(own_signals(lowtide(["run", "--quiet", "--", "cat", "/proc/self/status"])), expected);
    assert!(expected.iter().any(|line| line.starts_with("SigBlk") && !line.ends_with("0000000000000000")));
    // HUP, INT, QUIT, PIPE: bits 0, 1, 2 and 12
    let ignored = expected.iter().find_map(|line| line.strip_prefix("SigIgn:\t")).expect("they are listed");
    // and what this test was started with
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 0x1007, 0x1007, "{expected:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn signals_sent_to_lowtide_reach_the_program() {
    needs_kernel();
    let script = "for s in TERM INT USR1 USR2 HUP WINCH; do trap \"echo $s\" $s; done; trap 'echo QUIT; exit 5' QUIT; \
                  echo ready; while :; do sleep 0.02; done";
    let run = Running::start(&mut run_script(&["--quiet"], script));
    run.says("ready");
    for (signal, line) in [
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGINT, "INT"),
        (Signal::SIGUSR1, "USR1"),
        (Signal::SIGUSR2, "USR2"),
        (Signal::SIGHUP, "HUP"),
        (Signal::SIGWINCH, "WINCH"),
        (Signal::SIGQUIT, "QUIT"),
    ] {
        run.signal(signal);
        run.says(line);
    }
    let ended = run.end();
    assert_eq!(ended.status.code(), Some(5));
    assert_eq!(ended.out.lines().count(), 8, "each of them once: {}", ended.out);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_signal_that_ends_the_program_ends_lowtide_too() {
    needs_kernel();
    let run = Running::start(&mut lowtide(["run", "--quiet", "--", "sh", "-c", "echo ready; exec sleep 60"]));
    run.says("ready");
    run.signal(Signal::SIGTERM);
    assert_eq!(run.end().status.signal(), Some(Signal::SIGTERM as i32));
}

/// Not a test of its own: the program of those below, which counts the interrupts that it gets.
#[test]
fn interrupt_counter() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    extern "C" fn count(_: libc::c_int) {
        COUNT.fetch_add(1, Ordering::SeqCst);
    }
    if std::env::var_os("LOWTIDE_TEST_COUNT").is_none() {
        return;
    }
    // SAFETY: the handler is async-signal-safe.
    unsafe { nix::sys::signal::signal(Signal::SIGINT, SigHandler::Handler(count)) }.unwrap();
    println!("counting");
    until("an interrupt", || (COUNT.load(Ordering::SeqCst) > 0).then_some(()));
    thread::sleep(Duration::from_millis(500)); // in which a second one would come
    println!("interrupts: {}", COUNT.load(Ordering::SeqCst));
    std::process::exit(4);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn ctrl_c_on_a_terminal_reaches_the_program_once() {
    needs_kernel();
    let counter = format!("{} --exact interrupt_counter --nocapture", std::env::current_exe().unwrap().display());
    let script = format!("LOWTIDE_TEST_COUNT=1 {} run -- {counter}; echo status $?", env!("CARGO_BIN_EXE_lowtide"));
    let mut terminal = Terminal::start(&script);
    terminal.shows("counting");
    terminal.key(3);
    terminal.shows("interrupts: 1");
    let (_, shown) = terminal.end();
    assert!(shown.contains("status 4"), "{shown}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn ctrl_z_stops_the_program_and_fg_continues_it() {
    needs_kernel();
    let lowtide = env!("CARGO_BIN_EXE_lowtide");
    let script = format!("{lowtide} run -- sh -c '{STOPS}'; echo \"stopped $?\"; read -t 20; fg; echo \"status $?\"");
    let mut terminal = Terminal::start(&script);
    terminal.shows("ready");
    let run = *children(terminal.shell()).first().expect("lowtide");
    let leader = *children(run).first().expect("the leader of PROGRAM's session");
    let program = *children(leader).first().expect("PROGRAM");
    terminal.key(26);
    terminal.shows("stopped 148"); // 128 + SIGTSTP
    until("both stopped", || (state(run) == Some('T') && state(program) == Some('T')).then_some(()));
    terminal.key(b'\n');
    terminal.shows("status 6");
    terminal.end();
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn on_a_terminal_there_is_one_line_that_changes() {
    needs_kernel();
    let space = namespace("terminal");
    let receiver = Receiver::start(&space, LOCALHOST);
    let script = format!(
        "nsenter --net={} {} run --size 1GB --deadline +1h -- timeout 3 bash -c '{}'; echo \"status $?\"",
        space.path().display(),
        env!("CARGO_BIN_EXE_lowtide"),
        trickle(&[receiver.address])
    );
    let mut terminal = Terminal::start(&script);
    terminal.shows("status 124");
    let (_, shown) = terminal.end();
    let live = shown.matches('\r').count() - shown.matches("\r\n").count();
    assert!(live > 2 && shown.contains(" needed · "), "{shown:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn quiet_prints_nothing_and_a_pipe_gets_few_lines() {
    needs_kernel();
    let space = namespace("quiet");
    let receiver = Receiver::start(&space, LOCALHOST);
    let script = format!("timeout 2.5 bash -c '{}'; exit 0", trickle(&[receiver.address]));
    let options = ["--size", "1GB", "--deadline", "+1h"];
    let quiet = Running::start(&mut inside(&space, run_script(&[&options[..], &["--quiet"]].concat(), &script)));
    let piped = Running::start(&mut inside(&space, run_script(&options, &script)));
    let (quiet, piped) = (quiet.end(), piped.end());
    assert!(quiet.status.success() && piped.status.success(), "{quiet:?} {piped:?}");
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
    let lines: Vec<_> = piped.err.lines().collect();
    assert!((1..=4).contains(&lines.len()), "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("lowtide: ")), "{lines:?}");
    assert!(!piped.err.contains(['\r', '\x1b']), "{lines:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_report_says_what_the_receiver_got() {
    needs_kernel();
    const SIZE: u64 = 3_000_000;
    let space = namespace("report");
    let receiver = Receiver::start(&space, LOCALHOST);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let size = SIZE.to_string();
    let mut command = lowtide(["run", "--deadline", "+60s", "--size", &size, "--w-min", "0.01", "--report"]);
    command.arg(&file).arg("--").arg(env!("CARGO_BIN_EXE_lowtide"));
    command.args(["traffic", "send", "--size", &size, "--to", &receiver.address.to_string()]);
    let ended = finish(&mut inside(&space, command));
    assert!(ended.status.success(), "{ended:?}");

    let report = report(&file);
    let number = |field: &str| report[field].as_f64().unwrap_or_else(|| panic!("{field}: {report}"));
    let time = |field: &str| {
        let text = report[field].as_str().unwrap_or_else(|| panic!("{field}: {report}"));
        text.parse::<jiff::Timestamp>().unwrap()
    };
    assert_eq!(receiver.received(), SIZE);
    assert_eq!(report["acknowledged_bytes"], SIZE);
    assert_eq!(report["size_bytes"], SIZE);
    // the receiver's FIN is a byte to the kernel
    assert!(number("received_bytes") <= 1.0, "{report}");
    // nothing is lost here, but a receiver that is late for some milliseconds has the stack ask with its latest segment
    // (RFC 8985, section 7)
    assert!(number("retransmitted_bytes") <= 2.0 * 65_536.0, "{report}");
    assert_eq!(report["schema"], "lowtide-report/2");
    assert_eq!((&report["law"], &report["met"], &report["exit_code"]), (&"tide".into(), &true.into(), &0.into()));
    assert!(report["exit_signal"].is_null());
    assert_eq!((number("w_min"), number("w_max")), (0.01, 1.0));
    assert_eq!(report["connections"], 1);
    assert!(time("started") < time("finished") && time("finished") < time("deadline"));
    let seconds = time("finished").duration_since(time("started")).as_secs_f64();
    let mean = 8.0 * SIZE as f64 / seconds;
    assert!((number("mean_bps") / mean - 1.0).abs() < 0.05, "{} against {mean}", number("mean_bps"));
    for field in ["losses", "phantom_signals", "delay_backoffs"] {
        assert!(report[field].is_u64(), "{field}: {report}");
    }
    for field in ["udp_sent_bytes", "sockets_opened_before", "sockets_with_own_law", "sockets_that_refused_the_law"] {
        assert_eq!(report["not_controlled"][field], 0, "{field}");
    }
    for field in ["download", "group_moved_no_bytes"] {
        assert_eq!(report["not_controlled"][field], false, "{field}");
    }
    let series = report["series"].as_array().unwrap();
    let last = series.last().expect("a row at least");
    for field in ["t", "rate_bps", "w", "window_segments"] {
        assert!(series.iter().all(|row| row[field].is_f64()), "{field}: {last}");
    }
    for field in ["sockets", "sending", "acknowledged_bytes", "losses", "phantom_signals", "delay_backoffs"] {
        assert!(series.iter().all(|row| row[field].is_u64()), "{field}: {last}");
    }
    for field in ["target_bps", "srtt_ms", "min_rtt_ms"] {
        assert!(series.iter().all(|row| row[field].is_f64() || row[field].is_null()), "{field}: {last}");
    }
    assert_eq!(last["acknowledged_bytes"], SIZE);
    assert!(!fs::read_to_string(&file).unwrap().contains("-0.0"));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_deadline_that_passes_is_reported_as_missed() {
    needs_kernel();
    let space = namespace("missed");
    let receiver = Receiver::start(&space, LOCALHOST);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let script = format!("timeout 3 bash -c '{}'; exit 0", trickle(&[receiver.address]));
    let options = ["--size", "1GB", "--deadline", "+1s", "--report", file.to_str().unwrap()];
    let ended = finish(&mut inside(&space, run_script(&options, &script)));
    assert!(ended.status.success(), "PROGRAM goes on and its status counts: {ended:?}");
    assert!(ended.err.contains("past the deadline") && ended.err.contains("not done; ended"), "{ended:?}");
    let report = report(&file);
    assert_eq!(report["met"], false);
    let last = report["series"].as_array().unwrap().last().unwrap();
    assert_eq!(last["w"], 1.0, "past the deadline: an ordinary flow");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_download_is_recognised() {
    needs_kernel();
    const SIZE: usize = 3_000_000;
    let space = namespace("download");
    let server = Receiver::replying(&space, LOCALHOST, SIZE);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let script = format!("exec 10<>{}; cat <&10 | wc -c; sleep 1", dev_tcp(server.address));
    let ended = finish(&mut inside(&space, run_script(&["--report", file.to_str().unwrap()], &script)));
    assert_eq!(ended.out.trim(), SIZE.to_string());
    assert!(ended.err.contains("this download is not governed"), "{ended:?}");
    let report = report(&file);
    assert_eq!(report["not_controlled"]["download"], true);
    // the server's FIN is a byte to the kernel
    let received = report["received_bytes"].as_u64().unwrap();
    assert!((SIZE as u64..=SIZE as u64 + 1).contains(&received), "{received}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_download_over_accepted_connections_is_recognised_while_it_runs() {
    needs_kernel();
    let space = namespace("upload-in");
    let port = space.run(|| std::net::TcpListener::bind((LOCALHOST, 0)).unwrap().local_addr().unwrap().port()).unwrap();
    let mut command = lowtide(["run", "--"]);
    let listen = format!("{LOCALHOST}:{port}");
    command.args([env!("CARGO_BIN_EXE_lowtide"), "traffic", "sink", "--listen", &listen]);
    let run = Running::start(&mut inside(&space, command));
    let mut stream =
        until("a connection", || space.run(|| TcpStream::connect((IpAddr::from(LOCALHOST), port)).ok()).unwrap());
    stream.write_all(&vec![0; 3_000_000]).unwrap();
    within(Duration::from_secs(10), "the sentence", || {
        run.err().contains("this download is not governed").then_some(())
    });
}

/// The laws that a namespace's connections to each port run, once each has one.
fn law_of(space: &Namespace, receiver: &Receiver) -> String {
    until("the connection", || sockets_to(space, receiver.port()).first().map(|socket| socket.law().to_owned()))
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn two_runs_side_by_side_do_not_touch_each_other() {
    needs_kernel();
    let space = namespace("two");
    let receivers = [Receiver::start(&space, LOCALHOST), Receiver::start(&space, LOCALHOST)];
    let start = |receiver: &Receiver| {
        Running::start(&mut inside(&space, run_script(&["--quiet"], &trickle(&[receiver.address]))))
    };
    let (one, other) = (start(&receivers[0]), start(&receivers[1]));
    let laws = [law_of(&space, &receivers[0]), law_of(&space, &receivers[1])];
    assert!(laws.iter().all(|law| law.starts_with("lt_tide_") && listed_laws().contains(law)), "{laws:?}");
    assert_ne!(laws[0], laws[1]);

    one.signal(Signal::SIGTERM);
    assert_eq!(one.end().status.signal(), Some(Signal::SIGTERM as i32));
    within(Duration::from_secs(5), "the first law's end", || (!listed_laws().contains(&laws[0])).then_some(()));
    assert!(listed_laws().contains(&laws[1]));
    assert_eq!(law_of(&space, &receivers[1]), laws[1]);
    let before = receivers[1].received();
    until("the other one's bytes", || (receivers[1].received() > before).then_some(()));

    let group = groups_of(other.pid());
    assert_eq!(group.len(), 1);
    other.signal(Signal::SIGTERM);
    other.end();
    within(Duration::from_secs(5), "the second law's end", || (!listed_laws().contains(&laws[1])).then_some(()));
    assert!(!group[0].exists());
}

/// What `ss` shows of a socket whose pacing is switched on without a limit, in bits per second.
const UNLIMITED: f64 = 34e9;

/// What the kernel's settings of a namespace say, but for the list of the laws that there are.
fn settings(space: &Namespace) -> BTreeMap<PathBuf, String> {
    let read = || {
        let mut settings = BTreeMap::new();
        let mut directories = vec![PathBuf::from("/proc/sys/net")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    directories.push(path);
                } else if !path.ends_with("tcp_available_congestion_control") {
                    // some can only be written
                    settings.insert(path.clone(), fs::read_to_string(&path).unwrap_or_default());
                }
            }
        }
        settings
    };
    space.run(read).unwrap()
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn no_setting_of_the_kernel_changes() {
    needs_kernel();
    let space = namespace("settings");
    let before = settings(&space);
    assert!(before.contains_key(Path::new("/proc/sys/net/ipv4/tcp_congestion_control")), "{before:?}");
    let run = Running::start(&mut inside(
        &space,
        run_script(&["--quiet", "--direction", "both"], "echo ready; exec sleep 60"),
    ));
    run.says("ready");
    let during = settings(&space);
    run.signal(Signal::SIGTERM);
    run.end();
    let changed: Vec<_> = before.iter().filter(|(path, value)| during.get(*path) != Some(value)).collect();
    assert!(changed.is_empty(), "{changed:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_killed_lowtide_leaves_plain_reno_behind_and_then_nothing() {
    needs_kernel();
    let (rate, rtt) = ("20mbit".parse().unwrap(), Duration::from_millis(40));
    let config = Config { realtime: true, ..Config::new(name("killed-a"), name("killed-b"), rate, rtt) };
    let link = Emulator::start(config).unwrap();
    let (bulk, foreground) = (Receiver::start(link.b(), link.b4()), Receiver::start(link.b(), link.b4()));
    // a foreground to yield to, for as long as the test goes on
    let mut send = lowtide(["traffic", "send", "--cc", "cubic", "--seconds", "60", "--to"]);
    send.arg(foreground.address.to_string());
    let other = Running::start(&mut inside(link.a(), send));

    // T_w is a sixtieth of the time left: about a second
    let mut command = lowtide(["run", "--quiet", "--deadline", "+70s", "--size", "4MB", "--", "bash", "-c"]);
    let directory = tempfile::tempdir().unwrap();
    let (go, done) = (directory.path().join("go"), directory.path().join("done"));
    command.arg(eight_senders(&bulk, &go, &done));
    let run = Running::start(&mut inside(link.a(), command));
    let bulk_sockets = || sockets_to(link.a(), bulk.port());
    let paced = |socket: &&Socket| socket.pacing_limit().is_some_and(|limit| limit < UNLIMITED);
    let least = within(Duration::from_secs(25), "sockets that are paced below the minimum window", || {
        let found = bulk_sockets();
        let windows = found.iter().filter(paced).map(|socket| socket.number("cwnd:").unwrap());
        (found.len() == 8 && found.iter().filter(paced).count() == 8).then(|| windows.fold(0.0, f64::max))
    });
    let law = bulk_sockets()[0].law().to_owned();
    let ours = bpf_of(run.pid());
    assert!(ours.len() > 10 && ours.iter().all(is_in_the_kernel), "{ours:?}");
    let program = Orphan(children(run.pid())[0]);
    let group = own_cgroup_of(program.0);
    assert!(group.exists() && listed_laws().contains(&law));

    run.signal(Signal::SIGKILL);
    let before = bulk.received();
    within(Duration::from_secs(2), "the law's end", || (!listed_laws().contains(&law)).then_some(()));
    assert!(is_alive(program.0), "PROGRAM goes on");
    drop(run);
    drop(other);
    // 2·T_w, and the round trips in which Reno grows
    within(Duration::from_secs(12), "plain Reno", || {
        let found = bulk_sockets();
        let grown = found.iter().filter(|socket| socket.number("cwnd:") > Some(least)).count();
        (found.len() == 8 && grown >= 6 && !found.iter().any(|socket| paced(&socket))).then_some(())
    });
    until("its bytes", || (bulk.received() > before + 1_000_000).then_some(()));
    assert!(bulk_sockets().iter().all(|socket| socket.law() == law), "until they close");

    fs::write(&go, "").unwrap();
    until("PROGRAM's own end", || done.exists().then_some(()));
    until("the end of its sockets", || bulk_sockets().is_empty().then_some(()));
    leave_the_kernel(ours);
    until("PROGRAM's end", || (!is_alive(program.0)).then_some(()));
    assert!(finish(&mut run_script(&["--quiet"], "true")).status.success());
    assert!(!group.exists(), "the next run removes what a killed one left");
}

/// Some of these moments are before it has begun and some after it has ended.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn killed_at_any_moment_it_leaves_nothing() {
    needs_kernel();
    let space = namespace("moments");
    let receiver = Receiver::start(&space, Ipv4Addr::LOCALHOST);
    let program = format!("head -c 100000 /dev/zero > {}", dev_tcp(receiver.address));
    let (mut killed, mut held) = (Vec::new(), BTreeSet::new());
    // other tests kill runs of theirs at the same time
    let ours = format!("moments-{}", std::process::id());
    for direction in ["up", "both"] {
        for number in 0..20 {
            let options = ["--quiet", "--name", &ours, "--direction", direction];
            let run = Running::start(&mut inside(&space, run_script(&options, &program)));
            thread::sleep(Duration::from_millis(30 * number));
            held.extend(bpf_of(run.pid()));
            let orphans: Vec<_> = children(run.pid()).into_iter().map(Orphan).collect();
            let pid = run.pid();
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL); // it may have ended
            run.end();
            drop(orphans);
            killed.push(pid);
        }
    }
    assert!(held.iter().any(|(kind, _)| *kind == "prog"), "some were killed while they had programs");
    // the next run removes what they left
    until("the groups' end", || {
        assert!(finish(&mut run_script(&["--quiet", "--cc", "reno"], "true")).status.success());
        killed.iter().all(|pid| groups_of(*pid).is_empty()).then_some(())
    });
    leave_the_kernel(held);
    let sockets = fs::read_dir("/run/lowtide/control").unwrap().flatten().map(|entry| entry.file_name());
    let dead: Vec<_> = sockets.filter(|name| name.to_string_lossy().starts_with(&ours)).collect();
    assert!(dead.is_empty(), "sockets of killed runs: {dead:?}");
}

/// A script that sends over eight connections until the first file exists, and then writes the second.
fn eight_senders(receiver: &Receiver, go: &Path, done: &Path) -> String {
    let sender = format!(
        "{} traffic send --seconds 60 --to {} & pids=\"$pids $!\"; ",
        env!("CARGO_BIN_EXE_lowtide"),
        receiver.address
    );
    format!(
        "{}while [ ! -e {} ]; do sleep 0.1; done; kill $pids; wait; echo > {}",
        sender.repeat(8),
        go.display(),
        done.display()
    )
}

fn own_cgroup_of(pid: i32) -> PathBuf {
    let ours = own_cgroup();
    let relative = group_of(pid);
    ours.join(Path::new(&relative).file_name().expect("PROGRAM is in a group of its own"))
}
