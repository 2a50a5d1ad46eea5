// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run: an emulated link, the transfer or a CUBIC flow in its place, and the CUBIC flow beside it.

use super::{Failure, Measured, Order, Run, Subject};
use lowtide_emu::{Config, Emulator, Namespace};
use lowtide_net::{BufferSize, Jitter, JitterShape, Rate};
use nix::{
    sys::{prctl::set_pdeathsig, signal::Signal, signal::kill},
    unistd::Pid,
};
use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Ports of the receivers.
const CUBIC: u16 = 5201;
const TRANSFER: u16 = 5202;

/// How far apart the two flows start.
const APART: Duration = Duration::from_secs(2);
/// For a server to listen, and for the flows to connect.
const PATIENCE: Duration = Duration::from_secs(10);
/// What flows are given beyond the measurement, so that none ends before it. They end by themselves even if no process
/// ends them.
const SPARE: Duration = Duration::from_secs(20);
/// Most memory of a socket. With the usual 4 MB a sender's buffer would limit the window where the link holds 6 MB.
const SOCKET_MEMORY: u32 = 64 << 20;

/// Makes the link, lets both flows warm up, and measures them.
pub(crate) fn measure(run: &Run) -> Result<Measured, Failure> {
    let emulator = emulator(run)?;
    let directory = tempfile::tempdir()?;
    let place = Place { emulator: &emulator, directory: directory.path(), run };
    let cubic_ports: &[u16] = if run.order == Order::Alone { &[] } else { &[CUBIC] };
    let ports = [cubic_ports, &[TRANSFER]].concat();
    let _servers = ports.iter().map(|port| place.server(*port)).collect::<Result<Vec<_>, _>>()?;
    place.wait_until_listening(&ports)?;
    let mut flows = match run.order {
        Order::Alone => vec![place.transfer()?],
        Order::TransferFirst => vec![place.transfer()?, place.late(|| place.cubic(CUBIC))?],
        Order::CubicFirst => vec![place.cubic(CUBIC)?, place.late(|| place.transfer())?],
    };
    // The receivers have one connection for control beside those for data.
    let connections = [(CUBIC, 2), (TRANSFER, place.connections() + 1)];
    let expected = |port| connections.iter().find(|it| it.0 == port).map_or(0, |it| it.1);
    thread::sleep(run.warm);
    let before = Look::at(&emulator)?;
    thread::sleep(run.measure);
    let after = Look::at(&emulator)?;
    for flow in &mut flows {
        flow.still_runs()?;
    }
    emulator.check()?;
    let seconds = (after.at - before.at).as_secs_f64();
    let rate = |port: u16| -> Result<f64, Failure> {
        for look in [&before, &after] {
            let (found, expected) = (look.connections(port), expected(port));
            if found != expected {
                return Err(format!("port {port} has {found} connections, not {expected}").into());
            }
        }
        Ok((after.bytes(port) - before.bytes(port)) as f64 * 8e-6 / seconds)
    };
    Ok(Measured {
        transfer: rate(TRANSFER)?,
        beside: cubic_ports.first().map(|port| rate(*port)).transpose()?,
        used: (after.delivered - before.delivered) as f64 * 8e-6 / seconds / f64::from(run.cell.rate_mbit),
    })
}

fn emulator(run: &Run) -> Result<Emulator, Failure> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("wt{}x{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let cell = &run.cell;
    let (rate, rtt) = (format!("{}mbit", cell.rate_mbit).parse::<Rate>()?, Duration::from_millis(cell.rtt_ms.into()));
    let jitter = Duration::from_millis(cell.jitter_ms.unwrap_or(0).into());
    let emulator = Emulator::start(Config {
        buffer: BufferSize::Bdp(cell.buffer_bdp),
        jitter: Jitter { amount: jitter, shape: JitterShape::Uniform },
        seed: 1 + run.number,
        realtime: true,
        ..Config::new(format!("{name}a"), format!("{name}b"), rate, rtt)
    })?;
    for namespace in [emulator.a(), emulator.b()] {
        let set = |name: &str, usual| {
            fs::write(format!("/proc/sys/net/ipv4/{name}"), format!("4096 {usual} {SOCKET_MEMORY}"))
        };
        namespace.run(|| set("tcp_rmem", 131_072).and_then(|()| set("tcp_wmem", 16_384)))??;
    }
    Ok(emulator)
}

/// Where a run takes place.
struct Place<'a> {
    emulator: &'a Emulator,
    directory: &'a Path,
    run: &'a Run,
}

impl Place<'_> {
    /// Waits, and then starts a flow.
    fn late(&self, start: impl FnOnce() -> Result<Process, Failure>) -> Result<Process, Failure> {
        thread::sleep(APART);
        start()
    }

    /// A receiver of one test.
    fn server(&self, port: u16) -> Result<Process, Failure> {
        let mut command = Command::new("iperf3");
        command.args(["-s", "-1", "-p", &port.to_string()]);
        self.start(self.emulator.b(), command, &format!("server-{port}"))
    }

    fn wait_until_listening(&self, ports: &[u16]) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        loop {
            let sockets = ss(self.emulator.b(), "listening")?;
            if ports.iter().all(|port| sockets.iter().any(|socket| socket.port == *port)) {
                return Ok(());
            }
            if Instant::now() > end {
                return Err("iperf3 does not listen".into());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// An unpaced flow of the kernel's CUBIC.
    fn cubic(&self, port: u16) -> Result<Process, Failure> {
        let mut command = Command::new("iperf3");
        command.args(self.client(port)).args(["-C", "cubic"]);
        self.start(self.emulator.a(), command, &format!("cubic-{port}"))
    }

    /// What is measured.
    fn transfer(&self) -> Result<Process, Failure> {
        let Subject::Transfer { law, weight } = &self.run.subject else { return self.cubic(TRANSFER) };
        let weight = weight.to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowtide"));
        command.args(["run", "--quiet", "--cc", law, "--w-min", &weight, "--w-max", &weight, "--", "iperf3"]);
        command.args(self.client(TRANSFER)).args(["-P", &self.connections().to_string()]);
        command.env("LOWTIDE_HISTORY", "none"); // nothing of this stays on the machine
        self.start(self.emulator.a(), command, "transfer")
    }

    /// For data, of the transfer. The yardstick has one: its share is what a transfer may have, however many
    /// connections it has.
    fn connections(&self) -> usize {
        if self.run.subject == Subject::PlainCubic { 1 } else { self.run.connections }
    }

    fn client(&self, port: u16) -> Vec<String> {
        let seconds = (APART + self.run.warm + self.run.measure + SPARE).as_secs();
        let server = self.emulator.b4().to_string();
        ["-c", &server, "-p", &port.to_string(), "-t", &seconds.to_string()].map(str::to_owned).to_vec()
    }

    fn start(&self, namespace: &Namespace, mut command: Command, name: &str) -> Result<Process, Failure> {
        let log = self.directory.join(name);
        let output = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // SAFETY: between fork and exec, prctl is one system call; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGTERM)?)) };
        let child = namespace.enter_command(&mut command).spawn();
        let child = child.map_err(|error| format!("cannot start {}: {error}", command.get_program().display()))?;
        Ok(Process { child, name: name.to_owned(), log })
    }
}

/// A process that ends with its owner.
struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Refuses a process that has ended, with what it said.
    fn still_runs(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                let said = fs::read_to_string(&self.log)?;
                Err(format!("{} ended early ({status}): {}", self.name, said.trim()).into())
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended; then there is no process to signal, and `wait` has its status.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

/// What the receivers and the link had got at a moment.
struct Look {
    at: Instant,
    sockets: Vec<Socket>,
    /// Bytes of IP that left the link.
    delivered: u64,
}

impl Look {
    fn at(emulator: &Emulator) -> Result<Self, Failure> {
        let sockets = ss(emulator.b(), "established")?;
        Ok(Self { at: Instant::now(), sockets, delivered: emulator.totals().forward.delivered.bytes })
    }

    fn connections(&self, port: u16) -> usize {
        self.sockets.iter().filter(|socket| socket.port == port).count()
    }

    fn bytes(&self, port: u16) -> u64 {
        self.sockets.iter().filter(|socket| socket.port == port).map(|socket| socket.received).sum()
    }
}

/// A socket of TCP.
struct Socket {
    /// Its own port.
    port: u16,
    /// Payload that has come in, in order.
    received: u64,
}

/// The sockets of a namespace in this state: exact counts of payload, with all flows in one look.
fn ss(namespace: &Namespace, state: &str) -> Result<Vec<Socket>, Failure> {
    let mut command = Command::new("ss");
    command.args(["--tcp", "--info", "--numeric", "--oneline", "--no-header", "state", state]);
    let output = namespace.enter_command(&mut command).output().map_err(|error| format!("cannot start ss: {error}"))?;
    if !output.status.success() {
        return Err(format!("ss failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| socket(line).ok_or_else(|| format!("ss wrote {line:?}").into())).collect()
}

/// Reads `RECV-Q SEND-Q LOCAL:PORT PEER:PORT … bytes_received:NUMBER …`. The number is missing until something has
/// come in.
fn socket(line: &str) -> Option<Socket> {
    let mut words = line.split_whitespace();
    let port = words.nth(2)?.rsplit_once(':')?.1.parse().ok()?;
    let received = match words.find_map(|word| word.strip_prefix("bytes_received:")) {
        Some(number) => number.parse().ok()?,
        None => 0,
    };
    Some(Socket { port, received })
}
