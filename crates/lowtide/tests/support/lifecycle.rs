// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of `lowtide run` on the real kernel share: a run under watch, a receiver, a look at sockets and at
//! the wire.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::{self, Read, Write},
    mem,
    net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::{fs::PermissionsExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use lowtide_emu::Namespace;
use lowtide_kernel::{Need, diagnose};
use nix::{
    sys::{
        signal::{SigHandler, Signal, kill, signal},
        socket::{setsockopt, sockopt},
    },
    unistd::Pid,
};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

/// Longest that anything is waited for; a promise with a tighter bound says so itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// DSCP LE in the octet of the IP header.
pub(crate) const LE: u8 = 1 << 2;

/// Fails with the obstacle where the real kernel cannot be used: the test is ignored unless it is included explicitly.
pub(crate) fn needs_kernel() {
    static OBSTACLE: OnceLock<Option<String>> = OnceLock::new();
    let obstacle = || diagnose().verdict(&[Need::Run, Need::OwnLaws, Need::Emulate]);
    assert_eq!(OBSTACLE.get_or_init(obstacle), &None, "this test needs the real kernel");
}

/// `lowtide` with these arguments.
pub(crate) fn lowtide<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowtide"));
    lowtide_environment(command.args(arguments));
    // a shell lets what it runs in the background ignore them, and so does nohup; a script cannot trap what its caller
    // ignores
    let heed = || {
        for heeded in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP] {
            // SAFETY: the default runs no code of ours.
            unsafe { signal(heeded, SigHandler::SigDfl) }?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made.
    unsafe { command.pre_exec(heed) };
    command
}

/// Without sudo, and without a history.
pub(crate) fn lowtide_environment(command: &mut Command) -> &mut Command {
    command.env_remove("SUDO_UID").env_remove("SUDO_GID");
    command.env("LOWTIDE_HISTORY", "none")
}

/// `lowtide run OPTIONS -- sh -c SCRIPT`.
pub(crate) fn run_script(options: &[&str], script: &str) -> Command {
    let mut command = lowtide(["run"]);
    command.args(options).args(["--", "bash", "-c", script]);
    command
}

/// The command `lowtide` where every user may read it.
pub(crate) fn public_copy() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = directory.path().join("lowtide");
    fs::copy(env!("CARGO_BIN_EXE_lowtide"), &copy).unwrap();
    (directory, copy)
}

/// Asks until there is an answer.
pub(crate) fn until<T>(what: &str, question: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, question)
}

/// Asks until there is an answer, for this long at most.
pub(crate) fn within<T>(limit: Duration, what: &str, mut question: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = question() {
            return answer;
        }
        assert!(started.elapsed() < limit, "{what}: not within {limit:?}");
        thread::sleep(Duration::from_millis(30));
    }
}

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The one sentence of a refusal.
    pub(crate) fn sentence(&self) -> &str {
        let lines: Vec<_> = self.err.lines().collect();
        assert_eq!(lines.len(), 1, "one sentence, not {:?}", self.err);
        assert!(lines[0].starts_with("lowtide: "), "{:?}", self.err);
        lines[0]
    }
}

/// A command under watch; it does not outlive the test.
pub(crate) struct Running {
    child: Child,
    out: NamedTempFile,
    err: NamedTempFile,
    ended: bool,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        let (out, err) = (NamedTempFile::new().unwrap(), NamedTempFile::new().unwrap());
        command.stdout(out.reopen().unwrap()).stderr(err.reopen().unwrap());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Running { child, out, err, ended: false }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub(crate) fn out(&self) -> String {
        fs::read_to_string(self.out.path()).unwrap()
    }

    pub(crate) fn err(&self) -> String {
        fs::read_to_string(self.err.path()).unwrap()
    }

    /// Waits until standard output has this line.
    pub(crate) fn says(&self, line: &str) {
        let limit = Instant::now() + PATIENCE;
        while !self.out().lines().any(|found| found == line) {
            assert!(Instant::now() < limit, "no line {line:?} in {:?}; {:?}", self.out(), self.err());
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    pub(crate) fn end(self) -> Ended {
        self.end_within(PATIENCE)
    }

    pub(crate) fn end_within(mut self, limit: Duration) -> Ended {
        let status = within(limit, "the command's end", || self.child.try_wait().unwrap());
        self.ended = true;
        Ended { status, out: self.out(), err: self.err() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{} said:\n{}{}", self.pid(), self.out(), self.err());
        }
        if self.ended {
            return;
        }
        // SIGTERM first: Lowtide hands it on to its program
        let _ = kill(Pid::from_raw(self.pid()), Signal::SIGTERM);
        for _ in 0..50 {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(40));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Ended {
    Running::start(command).end()
}

/// A process of ours, without a wait: gone with this value.
pub(crate) struct Orphan(pub(crate) i32);

impl Drop for Orphan {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0), Signal::SIGKILL);
    }
}

pub(crate) fn is_alive(pid: i32) -> bool {
    // a zombie has ended
    state(pid).is_some_and(|state| state != 'Z')
}

/// The letter of /proc/PID/stat.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The processes whose parent this one is.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let parent = |child: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|child| parent(*child) == Some(pid)).collect()
}

/// One CUBIC flow, whatever the system's own law is. It does not end by itself.
pub(crate) fn cubic_flow(namespace: &Namespace, to: &Receiver) -> Running {
    let to = to.address.to_string();
    Running::start(&mut inside(namespace, lowtide(["traffic", "send", "--cc", "cubic", "--to", &to])))
}

/// A network namespace with nothing but a loopback device, of this process and test.
pub(crate) fn namespace(test: &str) -> Namespace {
    Namespace::create(&name(test)).unwrap()
}

pub(crate) fn name(test: &str) -> String {
    format!("ltr-{}-{test}", std::process::id())
}

/// The same command, in a namespace.
pub(crate) fn inside(namespace: &Namespace, mut command: Command) -> Command {
    namespace.enter_command(&mut command);
    command
}

/// A command's standard output.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One connection, as `ss` shows it.
#[derive(Debug, Clone)]
pub(crate) struct Socket {
    pub(crate) local_port: u16,
    pub(crate) peer_port: u16,
    pub(crate) text: String,
}

impl Socket {
    /// The control law.
    pub(crate) fn law(&self) -> &str {
        let words = self.text.split_whitespace();
        let law = words.into_iter().find(|word| word.starts_with("lt_") || ["cubic", "reno", "bbr"].contains(word));
        law.unwrap_or("none")
    }

    /// A number after a key, such as `cwnd:`.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        let value = self.text.split_whitespace().find_map(|word| word.strip_prefix(key))?;
        value.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse().ok()
    }

    /// The limit that its pacing has been given, in bits per second; `None`: none.
    pub(crate) fn pacing_limit(&self) -> Option<f64> {
        let (_, rest) = self.text.split_once("pacing_rate ")?;
        let limit = rest.split_whitespace().next()?.split_once('/')?.1;
        limit.strip_suffix("bps")?.parse().ok()
    }
}

/// The established connections in a namespace.
pub(crate) fn sockets(namespace: &Namespace) -> Vec<Socket> {
    let mut ss = Command::new("ss");
    ss.args(["-tinHO", "--tos", "state", "established"]);
    let port = |address: &str| address.rsplit(':').next().and_then(|port| port.parse().ok());
    output(namespace.enter_command(&mut ss))
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(2);
            let (local_port, peer_port) = (port(words.next()?)?, port(words.next()?)?);
            Some(Socket { local_port, peer_port, text: line.to_owned() })
        })
        .collect()
}

/// The connections to a port.
pub(crate) fn sockets_to(namespace: &Namespace, port: u16) -> Vec<Socket> {
    sockets(namespace).into_iter().filter(|socket| socket.peer_port == port).collect()
}

/// The laws that the kernel lists now.
pub(crate) fn listed_laws() -> BTreeSet<String> {
    let list = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    list.split_whitespace().map(str::to_owned).collect()
}

/// The name under which a run that has just been started has registered this law of ours.
pub(crate) fn law_loaded_since(before: &BTreeSet<String>, law: &str) -> String {
    // the law's program, whatever its variant; the rest of the name is the run's own
    let prefix = &lowtide_kernel::KernelLaw::registered(law)[..6];
    until("the law", || listed_laws().difference(before).find(|it| it.starts_with(prefix)).cloned())
}

/// Discards what connections bring, counts it, and gives back `reply` bytes to each first.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    received: Arc<AtomicU64>,
    listener: TcpListener,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    pub(crate) fn start(namespace: &Namespace, address: impl Into<IpAddr>) -> Receiver {
        Receiver::replying(namespace, address, 0)
    }

    pub(crate) fn replying(namespace: &Namespace, address: impl Into<IpAddr>, reply: usize) -> Receiver {
        let address = SocketAddr::new(address.into(), 0);
        let listener = namespace.run(|| TcpListener::bind(address)).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (listener, received, stop) = (listener.try_clone().unwrap(), received.clone(), stop.clone());
            thread::spawn(move || {
                while let Ok((mut stream, _)) = listener.accept() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let received = received.clone();
                    thread::spawn(move || {
                        let _ = stream.write_all(&vec![7; reply]);
                        if reply > 0 {
                            let _ = stream.shutdown(std::net::Shutdown::Write);
                        }
                        let mut buffer = vec![0; 1 << 16];
                        while let Ok(read @ 1..) = stream.read(&mut buffer) {
                            received.fetch_add(read as u64, Ordering::Relaxed);
                        }
                    });
                }
            })
        };
        Receiver { address, received, listener, stop, thread: Some(thread) }
    }

    /// From the next connection on, this law of the kernel's list.
    pub(crate) fn choose(&self, law: &str) {
        setsockopt(&self.listener, sockopt::TcpCongestion, &law.into()).unwrap();
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // SAFETY: a system call with integer arguments; it wakes the thread in accept.
        unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) };
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One TCP packet on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Packet {
    pub(crate) version: u8,
    /// The octet without its two ECN bits.
    pub(crate) traffic_class: u8,
    /// Those: 1 and 2 are ECT, 3 is CE.
    pub(crate) ecn: u8,
    pub(crate) syn: bool,
    pub(crate) source: u16,
    pub(crate) destination: u16,
}

/// Every TCP packet that passes the loopback device of a namespace.
pub(crate) struct Wire {
    socket: Arc<OwnedFd>,
    seen: Arc<Mutex<BTreeSet<Packet>>>,
    /// How often nothing was left to look at.
    emptied: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Wire {
    pub(crate) fn tap(namespace: &Namespace) -> Wire {
        let socket = Arc::new(namespace.run(packet_socket).unwrap().unwrap());
        let (seen, emptied, stop) = <(Arc<Mutex<BTreeSet<_>>>, Arc<AtomicU64>, Arc<AtomicBool>)>::default();
        let thread = {
            let (socket, seen, emptied, stop) = (socket.clone(), seen.clone(), emptied.clone(), stop.clone());
            thread::spawn(move || {
                let mut buffer = [0u8; 256];
                while !stop.load(Ordering::Relaxed) {
                    // SAFETY: the buffer is valid for its length.
                    let read = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
                    if read < 0 {
                        emptied.fetch_add(1, Ordering::Release);
                        thread::sleep(Duration::from_millis(1));
                    } else if let Some(packet) = parse(&buffer[..read as usize]) {
                        seen.lock().unwrap().insert(packet);
                    }
                }
            })
        };
        Wire { socket, seen, emptied, stop, thread: Some(thread) }
    }

    /// The distinct headers of all packets that have passed by now.
    pub(crate) fn seen(&self) -> BTreeSet<Packet> {
        let before = self.emptied.load(Ordering::Acquire);
        // the look that is under way may have begun before now, so the second
        until("a look at every packet", || (self.emptied.load(Ordering::Acquire) >= before + 2).then_some(()));
        assert_eq!(dropped(&self.socket).unwrap(), 0, "packets passed unseen");
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// With room for what passes while its reader does not get a processor.
fn packet_socket() -> io::Result<OwnedFd> {
    let every = (libc::ETH_P_ALL as u16).to_be();
    let room: libc::c_int = 256 << 20;
    // SAFETY: plain system calls; the descriptor is new and ours, the size valid for the call.
    unsafe {
        let fd =
            libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, every.into());
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let length = size_of_val(&room) as libc::socklen_t;
        if libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, (&raw const room).cast(), length) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }
}

/// The packets for which there was no room since the last call.
fn dropped(socket: &OwnedFd) -> io::Result<u32> {
    // SAFETY: the structure is plain numbers, valid for the call and as long as said.
    unsafe {
        let mut statistics: libc::tpacket_stats = mem::zeroed();
        let mut length = size_of_val(&statistics) as libc::socklen_t;
        let to = (&raw mut statistics).cast();
        match libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &raw mut length) {
            0 => Ok(statistics.tp_drops),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn parse(packet: &[u8]) -> Option<Packet> {
    let version = packet.first()? >> 4;
    let (traffic_class, protocol, header) = match version {
        4 => (packet[1], *packet.get(9)?, usize::from(packet[0] & 15) * 4),
        6 => (packet[0] << 4 | packet[1] >> 4, *packet.get(6)?, 40),
        _ => return None,
    };
    let tcp = packet.get(header..header + 14)?;
    let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    (i32::from(protocol) == libc::IPPROTO_TCP).then(|| Packet {
        version,
        traffic_class: traffic_class & !3,
        ecn: traffic_class & 3,
        syn: tcp[13] & 2 != 0,
        source: port(0),
        destination: port(2),
    })
}

/// `/dev/tcp/ADDRESS/PORT` of bash.
pub(crate) fn dev_tcp(address: SocketAddr) -> String {
    format!("/dev/tcp/{}/{}", address.ip(), address.port())
}

/// A script that sends a little every 20 ms over each of these connections, for ever.
pub(crate) fn trickle(to: &[SocketAddr]) -> String {
    let mut script = String::new();
    for (number, address) in to.iter().enumerate() {
        script += &format!("exec {}<>{}; ", number + 10, dev_tcp(*address));
    }
    script += "while :; do ";
    for number in 0..to.len() {
        script += &format!("printf %2000s >&{}; ", number + 10);
    }
    script + "sleep 0.02; done"
}

/// What `lowtide status` says of a transfer, if it answers.
pub(crate) fn transfer_status(transfer: &str) -> Option<Value> {
    let all: Value = serde_json::from_str(&finish(&mut lowtide(["status", transfer, "--json"])).out).ok()?;
    assert_eq!(all["schema"], "lowtide-status/1");
    Some(all["transfers"][0].clone())
}

/// Reads a report.
pub(crate) fn report(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// Each field of what a program may read, and of what is in it, stands on a page of the docs.
pub(crate) fn is_documented(value: &Value, page: &str) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                assert!(page.contains(&format!("`{field}`")), "{field} is not documented");
                is_documented(value, page);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| is_documented(value, page)),
        _ => {}
    }
}

pub(crate) const LOCALHOST6: Ipv6Addr = Ipv6Addr::LOCALHOST;

/// The cgroup v2 hierarchy's mount point and this process's group in it.
pub(crate) fn own_cgroup() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (path, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(path))
    });
    root.expect("cgroup2 is mounted").join(group_of(std::process::id() as i32))
}

/// A process's group, relative to the hierarchy's root.
pub(crate) fn group_of(pid: i32) -> String {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned()
}

/// Groups that runs have made and not yet removed, except those of runs that live.
pub(crate) fn groups_of(pid: i32) -> Vec<PathBuf> {
    let prefix = format!("lowtide-{pid}-");
    let entries = fs::read_dir(own_cgroup()).unwrap();
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect()
}
