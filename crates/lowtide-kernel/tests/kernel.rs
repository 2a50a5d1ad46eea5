// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF programs and the kernel that has to take them: they load and attach, they go with their owner, and a broken
//! variant is refused with the kernel's reason.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    mem,
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd,
    path::Path,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::MapCore;
use lowtide_deadline::{Goal, Governor, Policy, Time};
use lowtide_kernel::{
    Cgroup, Controller, Direction, KernelLaw, Need, Setup, Transfer, diagnose, load_object, open_object,
};
use nix::{
    sched::{CloneFlags, CpuSet, sched_setaffinity, unshare},
    sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt, socket, sockopt,
    },
    unistd::Pid,
};

/// What libbpf says is collected process-wide: one load at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The right to load. Fails with the obstacle where the real kernel cannot be used: the test is ignored unless it is
/// included explicitly.
fn needs_kernel() -> MutexGuard<'static, ()> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let obstacle = diagnose().verdict(&[Need::Run, Need::OwnLaws]);
    assert_eq!(obstacle, None, "this test needs the real kernel");
    guard
}

fn start(law: KernelLaw) -> (Cgroup, Transfer) {
    start_in(Direction::Up, law)
}

fn start_in(direction: Direction, law: KernelLaw) -> (Cgroup, Transfer) {
    let cgroup = Cgroup::create().unwrap();
    let setup = Setup::new(direction, law);
    let first = Controller::first_steering(0.004, &setup.law, setup.actuator);
    let transfer = Transfer::start(&setup, &first, &cgroup).unwrap();
    (cgroup, transfer)
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn groups_of_one_process_do_not_take_each_others_names() {
    let _guard = needs_kernel();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let group = Cgroup::create().unwrap();
                    std::thread::yield_now();
                    assert!(group.entrance().is_ok(), "{} went while it was held", group.path().display());
                }
            });
        }
    });
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_socket_belongs_to_a_group_that_its_process_is_not_in() {
    let _guard = needs_kernel();
    let (cgroup, mut transfer) = start_in(Direction::Down, KernelLaw::parse("tide").unwrap());
    let socket = cgroup.socket().unwrap();
    bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    listen(&socket, Backlog::new(1).unwrap()).unwrap();
    for (listener, governed) in [(TcpListener::bind("127.0.0.1:0").unwrap(), 0), (TcpListener::from(socket), 1)] {
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(b"data").unwrap();
        receiver.read_exact(&mut [0; 4]).unwrap();
        let totals = transfer.observe().unwrap().totals;
        assert_eq!((totals.sockets_opened, totals.received), (governed, 4 * governed));
    }
    assert!(!cgroup.is_populated());
}

fn listed_laws() -> BTreeSet<String> {
    let list = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    list.split_whitespace().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn every_law_of_ours_loads_and_goes() {
    let _guard = needs_kernel();
    let variants =
        ["cdg:variant=thesis,tolerance=on,hystart=on", "dctcp:accel=on,overload=on", "prague:accel=on,overload=on"];
    for text in KernelLaw::OWN.iter().copied().chain(variants) {
        let (_cgroup, transfer) = start(KernelLaw::parse(text).unwrap());
        let name = transfer.law_name();
        assert!(name.starts_with(&KernelLaw::registered(text)[..6]) && listed_laws().contains(&name), "{name}");
        for (program, instructions) in transfer.verified() {
            println!("{text}: {program}: {instructions} instructions verified");
            assert!((1..100_000).contains(&instructions), "{text}: {program}: {instructions}");
        }
        drop(transfer);
        assert!(!listed_laws().contains(&name), "{name}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn what_governs_downloads_loads_with_the_law_of_uploads_or_without() {
    let _guard = needs_kernel();
    for (direction, has_law) in [(Direction::Down, false), (Direction::Both, true)] {
        let (_cgroup, mut transfer) = start_in(direction, KernelLaw::parse("tide").unwrap());
        assert_eq!(listed_laws().contains(&transfer.law_name()), has_law, "{direction:?}");
        let verified = transfer.verified();
        let downloads = verified.iter().filter(|(program, _)| program.starts_with("lt_download_"));
        assert_eq!(downloads.count(), 3, "{verified:?}");
        for (program, instructions) in verified {
            println!("{direction:?}: {program}: {instructions} instructions verified");
            assert!((1..100_000).contains(&instructions), "{direction:?}: {program}: {instructions}");
        }
        assert_eq!(transfer.observe().unwrap().totals, Default::default());
    }
    let verified = start(KernelLaw::parse("tide").unwrap()).1.verified();
    assert!(verified.iter().all(|(program, _)| !program.starts_with("lt_download_")), "{verified:?}");
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_programs_load_and_the_law_lives_as_long_as_its_transfer() {
    let _guard = needs_kernel();
    let (cgroup, mut transfer) = start(KernelLaw::parse("cdg").unwrap());
    let name = transfer.law_name();
    assert!(name.starts_with("lt_cdg_") && listed_laws().contains(&name), "{name}");
    let snapshot = transfer.observe().unwrap();
    assert_eq!((snapshot.sockets, snapshot.totals), (0, Default::default()));

    let path = cgroup.path().to_owned();
    drop((transfer, cgroup));
    assert!(!path.exists());
    let dropped = Instant::now();
    while listed_laws().contains(&name) {
        assert!(dropped.elapsed() < Duration::from_secs(5), "{name} is still listed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn two_transfers_of_one_process_have_laws_of_their_own() {
    let _guard = needs_kernel();
    let (one, other) = (start(KernelLaw::parse("cdg").unwrap()), start(KernelLaw::parse("cdg").unwrap()));
    assert_ne!(one.1.law_name(), other.1.law_name());
    assert_ne!(one.0.path(), other.0.path());
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_law_of_the_kernel_needs_none_of_ours() {
    let _guard = needs_kernel();
    let (_cgroup, transfer) = start(KernelLaw::parse("reno").unwrap());
    assert_eq!(transfer.law_name(), "reno");
}

/// The BPF sources with these changes in one file, compiled.
fn variant(file: &str, changes: &[(&str, &str)]) -> Vec<u8> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(sources).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    let mut text = fs::read_to_string(copy.path().join(file)).unwrap();
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "{file} has {from:?} once");
        text = text.replace(from, to);
    }
    fs::write(copy.path().join(file), text).unwrap();

    let object = copy.path().join("variant.bpf.o");
    let own = format!("-I{}", copy.path().display());
    let includes = [
        own.as_str(), // for the generated headers
        concat!("-I", env!("LOWTIDE_CLANG_INCLUDE")),
        concat!("-I", env!("LOWTIDE_LAWS_INCLUDE")),
        concat!("-I", env!("LOWTIDE_LAWS_GENERATED")),
        concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include"),
    ];
    SkeletonBuilder::new()
        .source(copy.path().join("transfer.bpf.c"))
        .obj(&object)
        .clang(env!("LOWTIDE_CLANG"))
        .clang_args(["-mcpu=v3"].iter().chain(&includes))
        .build()
        .unwrap();
    fs::read(object).unwrap()
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn the_kernel_takes_the_programs_unchanged() {
    let _guard = needs_kernel();
    load_object(&variant("egress.h", &[("if (!s || !tp)", "if (!s || !tp)")])).unwrap();
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_broken_variant_is_refused_with_the_kernels_reason() {
    let _guard = needs_kernel();
    // the record of a socket that may have none, used without a look
    let refusal = load_object(&variant("egress.h", &[("if (!s || !tp)", "if (!tp)")])).unwrap_err().to_string();
    assert!(refusal.starts_with("the kernel refused Lowtide's BPF programs: "), "{refusal}");
    assert!(refusal.contains("'map_value_or_null'"), "the verifier's own words: {refusal}");
    assert!(!refusal.contains('\n'), "one line: {refusal}");
}

/// Sends this many bytes over the loopback device under this law, slowly, so that each two segments are acknowledged
/// before the next leave. How many have come, at the latest when none comes any more.
fn send_paced(law: &str, bytes: usize) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
    setsockopt(&socket, sockopt::TcpCongestion, &law.into()).unwrap();
    setsockopt(&socket, sockopt::TcpMaxSeg, &1448).unwrap();
    let (rate, length) = (20_000_u32, mem::size_of::<u32>() as libc::socklen_t);
    // SAFETY: the value outlives the call
    let paced = unsafe {
        let rate = (&raw const rate).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate, length)
    };
    assert_eq!(paced, 0);
    let port = listener.local_addr().unwrap().port();
    connect(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, port)).unwrap();
    let mut sender = TcpStream::from(socket);
    let mut receiver = listener.accept().unwrap().0;
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || sender.write_all(&vec![0; bytes]));
        let mut come = Vec::new();
        // when it takes too long what has come until then is there
        drop(Read::by_ref(&mut receiver).take(bytes as u64).read_to_end(&mut come));
        drop(receiver);
        drop(sender.join());
        come.len()
    })
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_connection_outlives_an_empty_segment() {
    let _guard = needs_kernel();
    // each seventh call: of those, some come when nothing is in flight that would make the stack ask again
    let changes = [
        (".name = \"lt_tide\"", ".name = \"lt_tide_mute\""),
        (
            "\tburst = tide_burst(",
            "\tstatic u32 asked;\n\n\tif (++asked % 7 == 0)\n\t\treturn 0;\n\tburst = tide_burst(",
        ),
    ];
    let object = variant("tide_ops.h", &changes);
    let mut object = open_object(&object).unwrap().load().unwrap();
    let mut law = object.maps_mut().find(|map| map.name() == "lt_tide").unwrap();
    let _link = law.attach_struct_ops().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
            // else the stack sends as much at once on so short a path as if it were asked to
            fs::write("/proc/sys/net/ipv4/tcp_tso_rtt_log", "0").unwrap();
            assert_eq!(send_paced("lt_tide_mute", 40_000), 40_000);
        });
    });
}

/// What the test below alternates between: bytes, and nanoseconds to send them in.
const GOALS: [[u64; 2]; 2] = [[1_000, 60_000_000_000], [1 << 50, 30_000_000_000_000_000]];

/// A child of this process that ends with this value, or before.
struct Child(libc::pid_t);

impl Child {
    /// Whether it went on until it was killed.
    fn kill(&mut self) -> bool {
        let mut status = 0;
        // SAFETY: a child of this process that has not been waited for; the number is reset once it has been.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(mem::take(&mut self.0), &raw mut status, 0);
        }
        libc::WIFSIGNALED(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.0 > 0 {
            self.kill();
        }
    }
}

/// Sets one goal after the other on a connection, from within `cgroup`, until it is killed.
fn alternate(cgroup: &Cgroup) -> Child {
    let mut entrance = cgroup.entrance().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    // SAFETY: the child makes system calls, and ends without returning.
    match unsafe { libc::fork() } {
        0 => {
            let mut set = || -> std::io::Result<()> {
                entrance.write_all(b"0")?;
                let stream = TcpStream::connect(to)?;
                for goal in GOALS.iter().cycle() {
                    // SAFETY: the value outlives the call.
                    let result = unsafe { libc::setsockopt(stream.as_raw_fd(), 0x4c54, 1, goal.as_ptr().cast(), 16) };
                    if result != 0 {
                        break;
                    }
                }
                Err(std::io::Error::last_os_error())
            };
            let _ = set();
            // SAFETY: ends the process and does nothing else.
            unsafe { libc::_exit(1) }
        }
        child => Child(child),
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn half_a_goal_is_never_seen() {
    let _guard = needs_kernel();
    // on all processors: what is looked at has to change meanwhile
    let mut everywhere = CpuSet::new();
    (0..CpuSet::count()).for_each(|processor| everywhere.set(processor).unwrap());
    sched_setaffinity(Pid::from_raw(0), &everywhere).unwrap();
    let setup = Setup::new(Direction::Up, KernelLaw::parse("reno").unwrap());
    let (cgroup, transfer) = start(setup.law.clone());
    let policy = Policy::default();
    let governor = Governor::new(policy, Goal::default(), Time::ZERO).unwrap();
    let mut controller = Controller::new(transfer, governor, policy, &setup);
    let mut child = alternate(&cgroup);
    let (started, mut seen) = (Instant::now(), [0; 2]);
    while started.elapsed() < Duration::from_secs(2) {
        let now = Time::ZERO + started.elapsed();
        for goal in controller.tick(now).unwrap().goals {
            let left = goal.deadline.since(now).as_nanos() as u64;
            let whole = |[size, within]: &[u64; 2]| goal.size == *size && within.abs_diff(left) < 5_000_000_000;
            let which = GOALS.iter().position(whole);
            seen[which.unwrap_or_else(|| panic!("{goal:?} with {left} ns left is none that was set"))] += 1;
        }
    }
    println!("{seen:?} goals seen whole");
    assert!(child.kill(), "the program was refused a goal");
    assert!(seen.iter().all(|seen| *seen > 20), "{seen:?}");
}
