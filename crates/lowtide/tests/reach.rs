// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose sockets a run governs: every TCP socket of its group, however it came to be, and no other; as whom and where
//! it runs.

#[path = "support/bpf.rs"]
mod bpf;
#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    collections::BTreeMap,
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream},
    os::{fd::AsRawFd, unix::process::CommandExt},
    process::Command,
    time::Duration,
};

use bpf::bpf_of;
use lifecycle::{
    LE, LOCALHOST6, Receiver, Running, Wire, dev_tcp, finish, group_of, inside, listed_laws, lowtide,
    lowtide_environment, name, namespace, needs_kernel, output, public_copy, report, run_script, sockets, sockets_to,
    trickle, until,
};
use lowtide_emu::{Config, Emulator, Namespace};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket, sockopt};

const LOCALHOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The laws of a namespace's connections to a port, once there are so many.
fn laws(namespace: &Namespace, port: u16, number: usize) -> Vec<String> {
    until("the connections", || {
        let found = sockets_to(namespace, port);
        (found.len() == number).then(|| found.iter().map(|socket| socket.law().to_owned()).collect())
    })
}

/// A port without a listener.
fn free_port(namespace: &Namespace) -> u16 {
    let port = || TcpListener::bind((LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    namespace.run(port).unwrap()
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn connections_of_the_program_and_its_children_run_the_law_and_send_le_over_ipv4_and_ipv6() {
    needs_kernel();
    let space = namespace("opened");
    let (four, six) = (Receiver::start(&space, LOCALHOST), Receiver::start(&space, LOCALHOST6));
    let wire = Wire::tap(&space);
    let script =
        format!("({}) & ({}) & wait", trickle(&[four.address, six.address]), trickle(&[six.address, four.address]));
    let _run = Running::start(&mut inside(&space, run_script(&["--quiet"], &script)));
    for port in [four.port(), six.port()] {
        for law in laws(&space, port, 2) {
            assert!(law.starts_with("lt_tide_") && listed_laws().contains(&law), "{law}");
        }
    }
    until("bytes", || (four.received() > 20_000 && six.received() > 20_000).then_some(()));
    for (version, port) in [(4, four.port()), (6, six.port())] {
        let seen = wire.seen();
        let mut sent = seen.iter().filter(|packet| packet.version == version && packet.destination == port).peekable();
        assert!(sent.peek().is_some());
        assert!(sent.all(|packet| packet.traffic_class == LE), "every packet, the first too: {seen:?}");
        let mut back = seen.iter().filter(|packet| packet.version == version && packet.source == port);
        assert!(back.all(|packet| packet.traffic_class == 0), "the receiver is not ours: {seen:?}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn connections_that_the_program_accepts_run_the_law_and_send_le() {
    needs_kernel();
    let space = namespace("accepted");
    let port = free_port(&space);
    let wire = Wire::tap(&space);
    let listen = format!("[::]:{port}");
    let mut command = lowtide(["run", "--quiet", "--"]);
    command.args([env!("CARGO_BIN_EXE_lowtide"), "traffic", "sink", "--listen", &listen]);
    let _run = Running::start(&mut inside(&space, command));
    let six = SocketAddr::new(LOCALHOST6.into(), port);
    let join = |to: SocketAddr| until("a connection", || space.run(|| TcpStream::connect(to).ok()).unwrap());
    let mut streams = [join(six), join(SocketAddr::new(LOCALHOST.into(), port))];
    let ours = streams.each_ref().map(|stream| stream.local_addr().unwrap().port());
    for stream in &mut streams {
        stream.write_all(&[1; 100_000]).unwrap();
    }
    let accepted = until("the accepted connections", || {
        let found: Vec<_> = sockets(&space).into_iter().filter(|socket| socket.local_port == port).collect();
        (found.len() == 2).then_some(found)
    });
    for socket in accepted {
        assert!(socket.law().starts_with("lt_tide_"), "{}", socket.text);
    }
    for (version, client) in [(6, ours[0]), (4, ours[1])] {
        let seen = wire.seen();
        let mut answers = seen.iter().filter(|packet| packet.source == port && packet.destination == client).peekable();
        assert!(answers.peek().is_some());
        assert!(answers.all(|packet| packet.version == version && packet.traffic_class == LE), "{seen:?}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_law_of_the_kernel_and_other_code_points_can_be_chosen() {
    needs_kernel();
    let space = namespace("chosen");
    for (options, law, traffic_class) in [
        (["--cc", "cubic", "--dscp", "cs1"], "cubic", 8 << 2),
        (["--cc", "reno", "--dscp", "none"], "reno", 0),
        (["--cc", "cubic", "--dscp", "le"], "cubic", LE),
    ] {
        let (four, six) = (Receiver::start(&space, LOCALHOST), Receiver::start(&space, LOCALHOST6));
        let wire = Wire::tap(&space);
        let script = trickle(&[four.address, six.address]);
        let _run = Running::start(&mut inside(&space, run_script(&options, &script)));
        for port in [four.port(), six.port()] {
            assert_eq!(laws(&space, port, 1), [law], "{options:?}");
            let seen = until("packets", || {
                let seen = wire.seen();
                seen.iter().any(|packet| packet.destination == port).then_some(seen)
            });
            let mut sent = seen.iter().filter(|packet| packet.destination == port);
            assert!(sent.all(|packet| packet.traffic_class == traffic_class), "{options:?}: {seen:?}");
        }
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn sockets_outside_the_group_are_left_alone() {
    needs_kernel();
    let space = namespace("outside");
    let (ours, others) = (Receiver::start(&space, LOCALHOST), Receiver::start(&space, LOCALHOST));
    let _run = Running::start(&mut inside(&space, run_script(&["--quiet"], &trickle(&[ours.address]))));
    assert!(laws(&space, ours.port(), 1)[0].starts_with("lt_tide_"));
    let _stream = space.run(|| TcpStream::connect(others.address)).unwrap().unwrap();
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    assert_eq!(laws(&space, others.port(), 1), [default.trim()]);
}

/// Not a test of its own: the program of those below, which wants Reno, before it connects or once it is connected.
#[test]
fn sender_with_a_law_of_its_own() {
    let Ok(to) = std::env::var("LOWTIDE_TEST_SEND_TO") else { return };
    let to: SocketAddrV4 = to.parse().unwrap();
    let before = std::env::var_os("LOWTIDE_TEST_BEFORE").is_some();
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
    let choose = || setsockopt(&socket, sockopt::TcpCongestion, &"reno".into()).expect("success");
    if before {
        choose();
    }
    connect(socket.as_raw_fd(), &SockaddrIn::from(to)).unwrap();
    if !before {
        choose();
    }
    let mut stream = TcpStream::from(socket);
    for _ in 0..50 {
        stream.write_all(&[0; 2000]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Runs that sender; gives the report and the law that its connection had in the end.
fn with_own_law(test: &str, options: &[&str], before: bool) -> (serde_json::Value, String) {
    let space = namespace(test);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let receiver = Receiver::start(&space, LOCALHOST);
    let mut command = lowtide(["run", "--quiet", "--report"]);
    command.arg(&file).args(options).arg("--").arg(std::env::current_exe().unwrap());
    command.args(["--exact", "sender_with_a_law_of_its_own"]).env("LOWTIDE_TEST_SEND_TO", receiver.address.to_string());
    if before {
        command.env("LOWTIDE_TEST_BEFORE", "1");
    }
    let run = Running::start(&mut inside(&space, command));
    until("some bytes", || (receiver.received() > 20_000).then_some(()));
    let law = laws(&space, receiver.port(), 1).remove(0);
    let ended = run.end();
    assert!(ended.status.success(), "the program sees success: {ended:?}");
    (report(&file), law)
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_program_that_chooses_a_law_itself_is_kept_on_ours_and_sees_success() {
    needs_kernel();
    for (test, before) in [("kept-after", false), ("kept-before", true)] {
        let (report, law) = with_own_law(test, &[], before);
        assert!(law.starts_with("lt_tide_"), "{test}: {law}");
        assert_eq!(report["not_controlled"]["own_law_requests"], 1, "{test}");
        assert_eq!(report["not_controlled"]["sockets_with_own_law"], 0, "{test}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_program_may_keep_a_law_of_its_own_where_that_is_allowed_and_the_report_says_so() {
    needs_kernel();
    for (test, before) in [("own-after", false), ("own-before", true)] {
        let (report, law) = with_own_law(test, &["--allow-own-cc"], before);
        assert_eq!(law, "reno", "{test}");
        assert_eq!(report["not_controlled"]["own_law_requests"], 1, "{test}");
        assert_eq!(report["not_controlled"]["sockets_with_own_law"], 1, "{test}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn udp_and_sockets_opened_before_are_reported_as_not_governed() {
    needs_kernel();
    let space = namespace("before");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let receiver = Receiver::start(&space, LOCALHOST);
    let earlier = space.run(|| TcpStream::connect(receiver.address)).unwrap().unwrap();
    let fd = earlier.as_raw_fd();
    let script = "for i in 1 2 3; do printf %1000s > /dev/udp/127.0.0.1/9; done";
    let mut command = inside(&space, run_script(&["--report", file.to_str().unwrap()], script));
    // SAFETY: between fork and exec one system call on a descriptor that the child has too.
    unsafe {
        command.pre_exec(move || {
            libc::fcntl(fd, libc::F_SETFD, 0);
            Ok(())
        });
    }
    let ended = finish(&mut command);
    assert!(ended.status.success(), "{ended:?}");
    let not_controlled = &report(&file)["not_controlled"];
    assert_eq!(not_controlled["sockets_opened_before"], 1);
    assert_eq!(not_controlled["udp_sent_bytes"], 3 * 1028, "three datagrams with their headers");
    let last = ended.err.lines().last().unwrap();
    assert!(last.contains("not governed: ") && last.contains("UDP") && last.contains("opened before"), "{last}");
}

/// `/proc/self/status` and the environment, as PROGRAM sees itself.
const WHO: &str = "id -u; id -g; id -G; echo \"$HOME $USER\"; cat /proc/self/status";

fn fields(status: &str) -> BTreeMap<String, String> {
    let pairs = status.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(key, value)| (key.to_owned(), value.trim().to_owned())).collect()
}

fn is_nobody(out: &str) {
    let mut lines = out.lines();
    assert_eq!([lines.next(), lines.next(), lines.next()], [Some("65534"); 3], "{out}");
    assert_eq!(lines.next(), Some("/nonexistent nobody"), "{out}");
    let status = fields(out);
    for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn under_sudo_the_program_is_the_invoking_user_without_capabilities() {
    needs_kernel();
    let options = ["--quiet"];
    let under_sudo =
        finish(run_script(&options, WHO).env("SUDO_UID", "65534").env("SUDO_GID", "65534").env("HOME", "/root"));
    assert!(under_sudo.status.success(), "{under_sudo:?}");
    is_nobody(&under_sudo.out);
    for user in ["nobody", "65534"] {
        is_nobody(&finish(&mut run_script(&["--quiet", "--user", user], WHO)).out);
    }
    let root = finish(&mut run_script(&options, "id -u"));
    assert_eq!(root.out, "0\n", "without sudo nothing changes");
    let chosen = finish(run_script(&["--quiet", "--user", "root"], "id -u").env("SUDO_UID", "65534"));
    assert_eq!(chosen.out, "0\n", "--user goes before sudo");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn capabilities_that_lowtide_was_given_are_not_the_programs() {
    needs_kernel();
    let (_directory, copy) = public_copy();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args(["--inh-caps", "+net_admin", "--ambient-caps", "+net_admin", "--"]);
    command.arg(copy).args(["run", "--best-effort", "--", "cat", "/proc/self/status"]);
    let ended = finish(command.current_dir("/"));
    assert!(ended.status.success(), "{ended:?}");
    let status = fields(&ended.out);
    for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
    // as root has them, whose programs start with all that they may inherit
    let mut command = Command::new("setpriv");
    command.args(["--inh-caps", "+net_admin,+sys_time", "--"]).arg(env!("CARGO_BIN_EXE_lowtide"));
    command.args(["run", "--quiet", "--user", "root", "--", "cat", "/proc/self/status"]);
    let ended = finish(&mut command);
    let status = fields(&ended.out);
    for set in ["CapInh", "CapAmb"] {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
    assert_ne!(status["CapEff"], "0000000000000000", "root's own rights stay: {ended:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn it_works_with_the_capabilities_that_the_page_on_security_names() {
    needs_kernel();
    // the hierarchy of this machine may be another user's, or nobody's to write
    let fewest = ["-all", "+bpf", "+net_admin", "+perfmon", "+dac_override"];
    let others = ["+setuid", "+setgid", "+kill"];
    let space = namespace("capabilities");
    let run = |capabilities: &[&str], options: &[&str]| {
        let receiver = Receiver::start(&space, LOCALHOST);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("report.json");
        let mut command = Command::new("setpriv");
        command.arg("--bounding-set").arg(capabilities.join(",")).args(["--inh-caps=-all", "--"]);
        command.args([env!("CARGO_BIN_EXE_lowtide"), "run", "--quiet", "--report"]).arg(&file).args(options);
        command.args(["--", "bash", "-c", &trickle(&[receiver.address])]);
        command.env_remove("SUDO_UID").env("LOWTIDE_HISTORY", "none");
        let run = Running::start(&mut inside(&space, command));
        let law = laws(&space, receiver.port(), 1).remove(0);
        until("some bytes", || (receiver.received() > 0).then_some(()));
        run.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(run.end().err, "");
        (law, report(&file)["acknowledged_bytes"].as_u64())
    };
    let all = [&fewest[..], &others[..]].concat();
    for (capabilities, options) in [(&fewest[..], &[][..]), (&all[..], &["--user", "nobody"][..])] {
        let (law, bytes) = run(capabilities, options);
        assert!(law.starts_with("lt_tide_"), "{law}");
        assert!(bytes > Some(0), "{bytes:?}");
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", &fewest.join(","), "--inh-caps=-all", "--", env!("CARGO_BIN_EXE_lowtide")]);
    let refused = finish(command.args(["run", "--user", "nobody", "--", "true"]).env_remove("SUDO_UID"));
    assert!(refused.status.code() == Some(125) && refused.sentence().contains("CAP_SETUID"), "{refused:?}");
}

/// Has PROGRAM connect to a receiver in a namespace by a command line that leads there; it has to be governed.
fn is_governed_by(space: &Namespace, mut wrapper: Command) {
    let receiver = Receiver::start(space, LOCALHOST);
    wrapper.args([env!("CARGO_BIN_EXE_lowtide"), "run", "--quiet", "--", "bash", "-c", &trickle(&[receiver.address])]);
    wrapper.env_remove("SUDO_UID").env("LOWTIDE_HISTORY", "none");
    let run = Running::start(&mut wrapper);
    let laws = laws(space, receiver.port(), 1);
    assert!(laws[0].starts_with("lt_tide_"), "{laws:?}");
    run.signal(nix::sys::signal::Signal::SIGTERM);
    let ended = run.end();
    assert_eq!(ended.err, "");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn it_works_inside_ip_netns_exec() {
    needs_kernel();
    let space = namespace("exec");
    let mut wrapper = Command::new("ip");
    wrapper.args(["netns", "exec", space.name()]);
    is_governed_by(&space, wrapper);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn it_works_through_nsenter() {
    needs_kernel();
    let space = namespace("nsenter");
    let mut wrapper = Command::new("nsenter");
    wrapper.arg(format!("--net={}", space.path().display()));
    is_governed_by(&space, wrapper);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn it_works_where_no_cgroup_hierarchy_is_in_sight() {
    needs_kernel();
    let space = namespace("unseen");
    let mut wrapper = Command::new("unshare");
    let hide = "for path in $(awk '$3 == \"cgroup2\" { print $2 }' /proc/self/mounts); do umount -l $path; done; \
                ! grep -q ' cgroup2 ' /proc/self/mounts && exec \"$@\"";
    wrapper.args(["-m", "sh", "-c", hide, "sh"]);
    is_governed_by(&space, inside(&space, wrapper));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn it_works_in_a_cgroup_namespace() {
    needs_kernel();
    let space = namespace("cgroupns");
    let mut wrapper = Command::new("unshare");
    wrapper.args(["-C", "-m"]);
    is_governed_by(&space, inside(&space, wrapper));
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_program_is_in_a_group_of_its_own() {
    needs_kernel();
    let run = Running::start(&mut run_script(&["--quiet"], "echo ready; sleep 20"));
    run.says("ready");
    let child = until("PROGRAM", || lifecycle::children(run.pid()).first().copied());
    assert!(group_of(child).contains(&format!("lowtide-{}-", run.pid())), "{}", group_of(child));
    assert_eq!(group_of(run.pid()), group_of(std::process::id() as i32), "Lowtide itself stays where it was");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn dual_stack_sockets_carry_the_code_point_over_ipv4_too() {
    needs_kernel();
    let space = namespace("mapped");
    let receiver = Receiver::start(&space, LOCALHOST);
    let wire = Wire::tap(&space);
    let mapped = SocketAddr::new(IpAddr::V6(LOCALHOST.to_ipv6_mapped()), receiver.port());
    let _run = Running::start(&mut inside(&space, run_script(&["--quiet"], &trickle(&[mapped]))));
    assert!(laws(&space, receiver.port(), 1)[0].starts_with("lt_tide_"), "{}", dev_tcp(mapped));
    let sent = until("packets", || {
        let sent: Vec<_> = wire.seen().into_iter().filter(|packet| packet.destination == receiver.port()).collect();
        (!sent.is_empty() && receiver.received() > 10_000).then_some(sent)
    });
    assert!(sent.iter().all(|packet| packet.version == 4 && packet.traffic_class == LE), "{sent:?}");
}

fn bpftool(words: &[&str]) -> Option<serde_json::Value> {
    serde_json::from_str(&output(Command::new("bpftool").args(["-j", "map"]).args(words))).ok()
}

/// The number of a BPF map that a process holds, by its name.
fn map_of(pid: i32, wanted: &str) -> Option<String> {
    let held = bpf_of(pid).into_iter();
    let mut ids = held.filter(|(kind, _)| *kind == "map").map(|(_, id)| id.to_string());
    ids.find(|id| bpftool(&["show", "id", id]).is_some_and(|map| map["name"] == wanted))
}

/// What the kernel has of a run is for root.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_program_of_another_user_reads_nothing_of_what_lowtide_measures() {
    needs_kernel();
    let (directory, copy) = public_copy();
    for (user, reads) in [("nobody", false), ("root", true)] {
        let id = directory.path().join(user);
        let script = format!(
            "echo ready; until read id 2>/dev/null <{}; do sleep 0.05; done; bpftool map dump id $id >/dev/null && echo read",
            id.display()
        );
        let mut command = Command::new(&copy);
        lowtide_environment(&mut command).args(["run", "--quiet", "--user", user, "--", "sh", "-c", &script]);
        let run = Running::start(command.current_dir("/"));
        run.says("ready");
        let map = map_of(run.pid(), "flows").expect("the map of what is known of paths");
        std::fs::write(&id, format!("{map}\n")).unwrap();
        let ended = run.end();
        assert_eq!(ended.out.contains("read\n"), reads, "{user}: {ended:?}");
        assert_eq!(ended.err.contains("Operation not permitted"), !reads, "{user}: {ended:?}");
    }
}

/// Connects to so many networks, without waiting, and then sends on.
const TRAVELLER: &str = r#"
import socket, sys, time
sockets = []
for number in range(int(sys.argv[3])):
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((f"11.{number >> 8}.{number & 255}.1", 9))
    sockets.append(sock)
    if len(sockets) > 100:
        sockets.pop(0).close()
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("begun", flush=True)
while True:
    sock.send(bytes(2000))
    time.sleep(0.02)
"#;

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn connections_beyond_so_many_networks_share_a_flow() {
    needs_kernel();
    let (a, b) = (name("travel-a"), name("travel-b"));
    let link = Emulator::start(Config::new(a, b, "20mbit".parse().unwrap(), Duration::from_millis(10))).unwrap();
    output(Command::new("ip").args(["-n", link.a().name(), "route", "add", "default", "via", &link.b4().to_string()]));
    let receiver = Receiver::start(link.b(), link.b4());
    let (address, port) = (receiver.address.ip().to_string(), receiver.port().to_string());
    let program = ["run", "--quiet", "--", "python3", "-c", TRAVELLER, &address, &port, "1100"];
    let run = Running::start(&mut inside(link.a(), lowtide(program)));
    run.says("begun");
    until("a flow of all others", || {
        let flows = bpftool(&["dump", "id", &map_of(run.pid(), "flows")?])?;
        let flows = flows.as_array()?;
        let is_it = |flow: &&serde_json::Value| flow["key"].as_array().unwrap().iter().all(|byte| byte == "0x00");
        let begun = |flow: &&serde_json::Value| flow["formatted"]["value"]["begun"] != 0;
        (flows.len() == 1024 && flows.iter().filter(is_it).any(|flow| begun(&flow))).then_some(())
    });
}
