// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bottleneck of its own with iperf3 on both sides, for what measures the promises of `lowtide run`: the tests in a
//! guest, in virtual time, and the bench on this machine, in real time.

use std::{
    env, fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use lowtide_emu::{Config, Emulator};
use lowtide_guest::testing::in_guest;
use lowtide_net::Jitter;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

const FOREGROUND_PORT: &str = "5201";
const BULK_PORT: &str = "5202";

/// Mbit/s of the link that the promises of the README are about.
pub(crate) const LINK: f64 = 20.0;

/// Fails with the obstacle where the real kernel cannot be used: the test is ignored unless it is included explicitly.
pub(crate) fn needs_kernel() {
    use lowtide_kernel::Need::{Emulate, OwnLaws, Run};
    let obstacle = lowtide_kernel::diagnose().verdict(&[Run, OwnLaws, Emulate]);
    assert_eq!(obstacle, None, "this test needs the real kernel");
}

/// Runs `measure` `number` times at once, each on a link of its own, with the number of the run, from 0.
pub(crate) fn at_once<T: Send>(number: u64, measure: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let measure = &measure;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..number).map(|run| scope.spawn(move || measure(run))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a measurement failed")).collect()
    })
}

/// Runs `measure` three times at once and sorts the results by `key`. In virtual time there is one run: no load of the
/// machine has to be averaged out.
pub(crate) fn runs<T: Send>(measure: impl Fn() -> T + Sync, key: impl Fn(&T) -> f64) -> Vec<T> {
    let mut results = at_once(if in_guest() { 1 } else { 3 }, |_| measure());
    results.sort_by(|a, b| key(a).total_cmp(&key(b)));
    results
}

/// The one in the middle.
pub(crate) fn median<T: Send>(measure: impl Fn() -> T + Sync, key: impl Fn(&T) -> f64) -> T {
    let mut results = runs(measure, key);
    let middle = results.len() / 2;
    results.swap_remove(middle)
}

/// A process that ends with its owner.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// One emulated link with an iperf3 server for each of two flows.
pub(crate) struct Lab {
    _servers: [Guard; 2],
    emulator: Emulator,
    directory: tempfile::TempDir,
    /// In a guest there is one link at a time: its processor is slow.
    _turn: Option<MutexGuard<'static, ()>>,
}

/// What `lowtide run` did.
pub(crate) struct Bulk {
    /// Its report.
    pub(crate) report: Value,
}

impl Bulk {
    /// Mbit/s acknowledged over the whole run.
    pub(crate) fn rate(&self) -> f64 {
        self.report["mean_bps"].as_f64().unwrap() / 1e6
    }

    /// Seconds from start to the last acknowledged byte.
    pub(crate) fn took(&self) -> f64 {
        let time = |field: &str| self.report[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        time("finished").duration_since(time("started")).as_secs_f64()
    }

    /// Bytes acknowledged until `t` seconds.
    pub(crate) fn acknowledged_at(&self, t: f64) -> f64 {
        let rows = self.report["series"].as_array().unwrap();
        let row = rows.iter().take_while(|row| row["t"].as_f64().unwrap() <= t).last().unwrap();
        row["acknowledged_bytes"].as_f64().unwrap()
    }

    /// Part of the time in which a model ruled the weight.
    pub(crate) fn model_part(&self) -> f64 {
        let bases = self.report["basis_s"].as_object().unwrap();
        let seconds = |basis: &Value| basis.as_f64().unwrap();
        bases.get("model").map_or(0.0, seconds) / bases.values().map(seconds).sum::<f64>()
    }

    /// When an outlook of this kind was first announced.
    pub(crate) fn announced(&self, outlook: &str) -> Option<f64> {
        let said = self.report["announcements"].as_array().unwrap();
        said.iter().find(|said| said["outlook"] == outlook).map(|said| said["t"].as_f64().unwrap())
    }
}

impl Lab {
    /// A link of `rate` Mbit/s, 40 ms, one BDP, tail drop.
    pub(crate) fn new(rate: f64) -> Lab {
        Lab::with(rate, Jitter::NONE, 0)
    }

    /// The same for flows that compete as equals. In virtual time nothing varies, so flows fall into step with the
    /// queue: a paced packet takes the place that each departure frees, and of two packets sent together the second is
    /// dropped. There delays vary by up to a packet time, as Floyd and Jacobson advise ("Traffic Phase Effects in
    /// Packet-Switched Gateways", 1991); on this machine they do by themselves. Each `start` has other delays.
    pub(crate) fn out_of_step(rate: f64, start: u64) -> Lab {
        let amount = Duration::from_secs_f64(1500.0 * 8e-6 / rate);
        Lab::with(rate, if in_guest() { Jitter { amount, ..Jitter::NONE } } else { Jitter::NONE }, start)
    }

    fn with(rate: f64, jitter: Jitter, seed: u64) -> Lab {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static TURN: Mutex<()> = Mutex::new(());
        let turn = in_guest().then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
        let name = format!("lt{}x{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut config = Config::new(
            format!("{name}a"),
            format!("{name}b"),
            format!("{rate}mbit").parse().unwrap(),
            Duration::from_millis(40),
        );
        config.realtime = true;
        config.jitter = jitter;
        config.seed = seed;
        let emulator = Emulator::start(config).unwrap();
        let server = |port| {
            let mut server = Command::new("iperf3");
            server.args(["-s", "-p", port]).stdout(Stdio::null()).stderr(Stdio::null());
            Guard(emulator.b().enter_command(&mut server).spawn().expect("iperf3 is installed"))
        };
        let servers = [server(FOREGROUND_PORT), server(BULK_PORT)];
        let lab = Lab { _servers: servers, emulator, directory: tempfile::tempdir().unwrap(), _turn: turn };
        for port in [FOREGROUND_PORT, BULK_PORT] {
            lab.wait_for_server(port);
        }
        lab
    }

    fn wait_for_server(&self, port: &str) {
        let address = format!("{}:{port}", self.emulator.b4()).parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        // iperf3 answers a connection that says nothing with an error and goes on listening
        while self
            .emulator
            .a()
            .run(|| std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1)))
            .unwrap()
            .is_err()
        {
            assert!(Instant::now() < deadline, "iperf3 does not listen");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn iperf(&self, port: &str, arguments: &[&str]) -> Vec<String> {
        let server = self.emulator.b4().to_string();
        let words = ["iperf3", "-c", &server, "-p", port, "--connect-timeout", "5000", "-J"];
        words.iter().chain(arguments).map(|word| (*word).to_owned()).collect()
    }

    /// A plain flow; Mbit/s received.
    pub(crate) fn plain(&self, port: &str, law: &str, seconds: u32) -> f64 {
        let words = self.iperf(port, &["-C", law, "-t", &seconds.to_string()]);
        let mut command = Command::new(&words[0]);
        let output = self.emulator.a().enter_command(command.args(&words[1..])).output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let received = &result["end"]["sum_received"]["bits_per_second"];
        received.as_f64().unwrap_or_else(|| panic!("iperf3 failed: {result}")) / 1e6
    }

    /// One CUBIC flow in the foreground; Mbit/s received.
    pub(crate) fn foreground(&self, seconds: u32) -> f64 {
        self.plain(FOREGROUND_PORT, "cubic", seconds)
    }

    /// A plain flow where the bulk transfer would be.
    pub(crate) fn in_its_place(&self, law: &str, seconds: u32) -> f64 {
        self.plain(BULK_PORT, law, seconds)
    }

    /// `lowtide run OPTIONS -- iperf3 … ARGUMENTS`, ended after `at_most`.
    pub(crate) fn bulk(&self, options: &[&str], arguments: &[&str], at_most: Duration) -> Bulk {
        let report: PathBuf = self.directory.path().join("report.json");
        let lowtide = if in_guest() { "lowtide" } else { env!("CARGO_BIN_EXE_lowtide") };
        let mut command = Command::new(lowtide);
        command.arg("run").args(options).arg("--report").arg(&report).arg("--quiet").arg("--");
        command.env("LOWTIDE_HISTORY", "none"); // not this machine's
        command.args(self.iperf(BULK_PORT, arguments)).stdout(Stdio::null());
        let mut run = Guard(self.emulator.a().enter_command(&mut command).spawn().unwrap());
        let end = Instant::now() + at_most;
        while Instant::now() < end && run.0.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(50));
        }
        drop(run); // SIGTERM reaches iperf3 through Lowtide, if they still run
        let text = fs::read_to_string(&report).expect("run wrote its report");
        Bulk { report: serde_json::from_str(&text).unwrap() }
    }

    /// The foreground for `seconds`, and one second later `second`, which should end about one second before it.
    pub(crate) fn beside<T: Send>(&self, seconds: u32, second: impl FnOnce() -> T + Send) -> (f64, T) {
        thread::scope(|scope| {
            let foreground = scope.spawn(|| self.foreground(seconds));
            thread::sleep(Duration::from_secs(1));
            let second = second();
            (foreground.join().expect("the foreground failed"), second)
        })
    }
}
