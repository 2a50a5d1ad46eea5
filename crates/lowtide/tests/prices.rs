// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lowtide run` counts as real congestion is what happened in the network, and nothing that it made up itself.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{collections::BTreeMap, fs, ops::RangeInclusive, time::Duration};

use lifecycle::{Receiver, finish, inside, lowtide, name, needs_kernel, report};
use lowtide_emu::{Arrived, Config, Emulator};
use lowtide_net::{Ecn, Link, Packet, Time};
use serde_json::Value;

/// After so many packets that overtook it a packet is taken for lost at the latest: on a slow link a timer of RACK may
/// do so after the first (RFC 8985, section 6.2, step 5).
const OVERTAKEN: usize = 3;
/// A packet without data has no more bytes.
const HEADERS: u32 = 120;
/// Runs in which the machine stood still for longer than a timer of TCP, which then took for lost what was not, are
/// made again, so often.
const ATTEMPTS: usize = 4;
/// What counts that in the sender's namespace: timeouts, and what the receiver says to have got twice.
const STALLS: [&str; 2] = ["TCPTimeouts", "TCPDSACKRecv"];

/// A buffer that never overflows: it holds the longest of these transfers.
fn link(test: &str, rate: &str, rtt: u64, loss: &str, queue: &str) -> Config {
    Config {
        buffer: "9000p".parse().unwrap(),
        loss: loss.parse().unwrap(),
        discipline: queue.parse().unwrap(),
        record: true,
        realtime: true,
        ..Config::new(
            name(&format!("{test}-a")),
            name(&format!("{test}-b")),
            rate.parse().unwrap(),
            Duration::from_millis(rtt),
        )
    }
}

/// What the kernel and the emulator saw of one run, and what Lowtide says of it.
struct Seen {
    report: Value,
    /// The namespace's counters of TCP.
    tcp: BTreeMap<String, u64>,
    /// Windows of data in which the link dropped or marked packets: fewest if a drop becomes known late.
    episodes: RangeInclusive<u64>,
    dropped: u64,
    marked: u64,
}

impl Seen {
    fn counted(&self, field: &str) -> u64 {
        self.report[field].as_u64().unwrap()
    }
}

/// `lowtide run OPTIONS -- lowtide traffic send SIZE` over a link, without [`STALLS`].
fn run(config: &Config, options: &[&str], size: &str) -> Seen {
    let attempts = (0..ATTEMPTS).map(|_| attempt(config.clone(), options, size, 1));
    let seen = attempts.into_iter().find(|seen| STALLS.iter().all(|counter| seen.tcp[*counter] == 0));
    seen.unwrap_or_else(|| panic!("{options:?}: one of {STALLS:?} in each of {ATTEMPTS} runs"))
}

/// The same with so many senders at a time, once.
fn attempt(config: Config, options: &[&str], size: &str, senders: usize) -> Seen {
    let forward = config.forward();
    let emulator = Emulator::start(config).unwrap();
    for namespace in [emulator.a(), emulator.b()] {
        namespace.run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")).unwrap().unwrap();
    }
    let receiver = Receiver::start(emulator.b(), emulator.b4());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let mut command = lowtide(["run", "--quiet", "--report"]);
    let send = format!("{} traffic send --size {size} --to {} & ", env!("CARGO_BIN_EXE_lowtide"), receiver.address);
    command.arg(&file).args(options).args(["--", "bash", "-c", &(send.repeat(senders) + "wait")]);
    let ended = finish(&mut inside(emulator.a(), command));
    assert!(ended.status.success(), "{ended:?}");
    let tcp = emulator.a().run(counters).unwrap();
    let arrivals = emulator.arrivals();
    let totals = emulator.totals().forward;
    Seen {
        report: report(&file),
        tcp,
        episodes: {
            let fates = fates(Link::new(&forward), &arrivals);
            let [least, most] = [OVERTAKEN, 1].map(|by| episodes(&arrivals, &fates, forward.delay.least(), by));
            least..=most
        },
        dropped: (totals.lost + totals.dropped()).packets,
        marked: totals.marked.packets,
    }
}

/// `/proc/net/netstat` of the calling thread's namespace.
fn counters() -> BTreeMap<String, u64> {
    let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    names.split(' ').map(str::to_owned).zip(values.split(' ').map(|value| value.parse().unwrap())).collect()
}

/// What became of each packet: when it came out at the far end, and whether with a mark; `None` for those that the link
/// dropped. It does with the same packets in virtual time what it did in real time.
fn fates(mut link: Link<usize>, arrivals: &[Arrived]) -> Vec<Option<(Time, bool)>> {
    for (number, &Arrived { at, bytes, ecn, flow, class }) in arrivals.iter().enumerate() {
        link.arrive(at, Packet { bytes, ecn, flow, class, payload: number });
    }
    let mut fates = vec![None; arrivals.len()];
    while let Some(out) = link.poll(Time::from_nanos(u64::MAX - 1)) {
        fates[out.packet.payload] = Some((out.at, out.packet.ecn == Ecn::Ce));
    }
    fates
}

/// Drops and marks, as events: those of packets that were on their way when the first of them became known are one. A
/// drop is known when so many later packets have been acknowledged (`overtaken`), a mark when its own packet has been,
/// half a round trip (`back`) after they came out. A mark that becomes known after the last data has left is none:
/// nothing is sent any more that could heed it.
fn episodes(arrivals: &[Arrived], fates: &[Option<(Time, bool)>], back: Duration, overtaken: usize) -> u64 {
    let last = arrivals.iter().rfind(|packet| packet.bytes > HEADERS).map_or(Time::ZERO, |packet| packet.at);
    let (mut episodes, mut known) = (0, Time::ZERO);
    for (number, fate) in fates.iter().enumerate() {
        let told_by = match fate {
            Some((_, false)) => continue,
            Some((_, true)) => 1,
            None => overtaken,
        };
        if arrivals[number].at < known {
            continue;
        }
        let telling = fates[number..].iter().flatten().nth(told_by - 1);
        known = telling.map_or(Time::from_nanos(u64::MAX), |(out, _)| *out + back);
        episodes += u64::from(fate.is_none() || known <= last);
    }
    episodes
}

/// What a run is to show: of real and of phantom signals.
enum Signals {
    RealAlone,
    PhantomAlone,
    Both,
}

struct Case {
    test: &'static str,
    /// Rate, base round trip in ms, loss.
    link: (&'static str, u64, &'static str),
    options: &'static [&'static str],
    size: &'static str,
    signals: Signals,
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn losses_are_those_of_the_network_and_phantom_signals_are_none() {
    use Signals::{Both, PhantomAlone, RealAlone};
    let (fast, slow) = ("10mbit", "5mbit");
    let case = |test, link, options, size, signals| Case { test, link, options, size, signals };
    let cases = [
        case("single", (fast, 20, "0.1%"), &["--cc", "cubic", "--w-min", "1"], "12MB", RealAlone),
        case("bursts", (fast, 20, "ge:p=0.1%,r=30%"), &["--cc", "reno", "--w-min", "1"], "8MB", RealAlone),
        case("cubic", (slow, 10, "0.2%"), &["--cc", "cubic", "--w-min", "0.1"], "8MB", Both),
        case("reno", (slow, 10, "ge:p=0.1%,r=50%"), &["--cc", "reno", "--w-min", "0.1"], "8MB", Both),
        case("signals", (slow, 10, "0.2%"), &["--cc", "cdg", "--actuator", "phantom", "--w-min", "0.1"], "8MB", Both),
        case("delay", (fast, 20, "0.1%"), &["--cc", "cdg", "--w-min", "0.1"], "8MB", RealAlone),
        case("tide", (fast, 20, "0.1%"), &["--w-min", "0.1"], "8MB", RealAlone),
        case("clean", (fast, 20, "0"), &["--cc", "cubic"], "8MB", PhantomAlone),
    ];
    for Case { test, link: (rate, rtt, loss), options, size, signals } in cases {
        needs_kernel();
        let seen = run(&link(test, rate, rtt, loss, "droptail"), options, size);
        let (losses, phantoms) = (seen.counted("losses"), seen.counted("phantom_signals"));
        let recoveries = seen.tcp["TCPSackRecovery"];
        println!(
            "{test}: {losses} losses counted, {recoveries} recoveries begun, {} packets dropped in {:?} windows; {phantoms} phantom signals",
            seen.dropped, seen.episodes
        );
        assert_eq!(losses, recoveries, "{test}: recoveries that the kernel began");
        // a retransmission that is lost, too, belongs to the recovery that sent it
        let again = seen.tcp["TCPLostRetransmit"];
        assert!(
            (seen.episodes.start().saturating_sub(again)..=*seen.episodes.end()).contains(&losses),
            "{test}: {losses} losses, {:?} windows in which the emulator dropped; the kernel's counters: {:?}",
            seen.episodes,
            seen.tcp
        );
        assert_eq!(losses > 0, !matches!(signals, PhantomAlone), "{test}");
        assert_eq!(phantoms > 0, !matches!(signals, RealAlone), "{test}");
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn marks_are_counted_once_for_each_window() {
    needs_kernel();
    let config = link("marks", "10mbit", 20, "0", "codel:ecn=on");
    let seen = run(&config, &["--cc", "cubic", "--w-min", "0.3"], "10MB");
    println!("{} counted, {} packets marked in {:?} windows", seen.counted("losses"), seen.marked, seen.episodes);
    let losses = seen.counted("losses");
    assert_eq!((losses..=losses, seen.dropped), (seen.episodes.clone(), 0));
    assert!(*seen.episodes.start() > 3, "{:?}", seen.episodes);
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn sockets_that_share_a_window_pay_for_a_loss_once() {
    for (law, options) in [("cdg", &["--cc", "cdg", "--w-min", "1"][..]), ("cubic", &["--cc", "cubic", "--w-min", "1"])]
    {
        needs_kernel();
        let config =
            Config { buffer: "1bdp".parse().unwrap(), ..link(&format!("share-{law}"), "10mbit", 20, "0", "droptail") };
        let seen = attempt(config, options, "1500kB", 8);
        let (losses, recoveries, timeouts) =
            (seen.counted("losses"), seen.tcp["TCPSackRecovery"], seen.tcp["TCPTimeouts"]);
        println!(
            "{law}: {losses} losses counted, {recoveries} recoveries and {timeouts} timeouts in eight connections"
        );
        if law == "cdg" {
            // each overflow hits several of them
            assert!(losses > 0 && 3 * losses <= 2 * recoveries, "{losses} of {recoveries}");
        } else {
            // a timeout that cuts a recovery short is one event with it
            assert!(losses.abs_diff(recoveries) <= timeouts, "{losses} of {recoveries}");
        }
    }
}
