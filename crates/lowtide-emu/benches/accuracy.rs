// SPDX-License-Identifier: MIT OR Apache-2.0
//! How punctual the emulator is, and how much it carries. Needs root; takes less than 40 s.
//!
//! Punctuality: packets cross a link of 100 Mbit/s and 20 ms (10 ms each way). Their send times,
//! replayed through an ideal link of the same kind, give the times at which they should arrive; the
//! error is how much later the receiving program gets them. It includes the waking of that program.
//!
//! Reach: one TCP connection over a link that is faster than the machine, and the processor time of
//! the emulator's thread.

use lowtide_emu::{Config, Emulator, Error, Totals};
use lowtide_net::units::parse_duration;
use lowtide_net::{Class, Ecn, Link, Packet, Time};
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// UDP payload that makes an IPv4 packet of 1500 bytes.
const PAYLOAD: usize = 1472;
const WIRE_BYTES: u32 = 1500;

fn main() -> Result<(), Failure> {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: {}", Error::NotRoot);
        return Ok(());
    }
    println!("error of the one-way delay at 100 Mbit/s, 20 ms round trip\n");
    println!("load          thread      packets   lost    median       p99       max");
    for (load, gap, packets) in
        [("half the rate", Duration::from_micros(240), 25_000), ("idle", Duration::from_millis(10), 600)]
    {
        for (thread, realtime) in [("ordinary", false), ("SCHED_FIFO", true)] {
            let errors = delay_errors(gap, packets, realtime)?;
            let at = |share: f64| errors[((errors.len() - 1) as f64 * share) as usize];
            println!(
                "{load:13} {thread:10} {:>8} {:>6} {:>6.3} ms {:>6.3} ms {:>6.3} ms",
                errors.len(),
                packets - errors.len(),
                at(0.5),
                at(0.99),
                at(1.0),
            );
        }
    }
    println!("\nTCP over a link of 10 Gbit/s, 2 ms round trip, packets of {WIRE_BYTES} bytes\n");
    println!("Mbit/s   packets/s   thread's share of a core   Mbit/s per core");
    let (carried, time) = reach(Duration::from_secs(5))?;
    let mbit = |bytes: u64| bytes as f64 * 8e-6;
    let packets = carried.forward.delivered.packets + carried.reverse.delivered.packets;
    println!(
        "{:>6.0} {:>11.0} {:>24.0} % {:>17.0}",
        mbit(carried.forward.delivered.bytes) / time.as_secs_f64(),
        packets as f64 / time.as_secs_f64(),
        100.0 * carried.cpu.as_secs_f64() / time.as_secs_f64(),
        mbit(carried.forward.delivered.bytes) / carried.cpu.as_secs_f64(),
    );
    Ok(())
}

fn config(rate: &str, rtt: &str, buffer: &str) -> Result<Config, Failure> {
    let name = |side| format!("lt-{}-bench-{side}", std::process::id());
    Ok(Config { buffer: buffer.parse()?, ..Config::new(name("a"), name("b"), rate.parse()?, parse_duration(rtt)?) })
}

fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Time::ZERO + Duration::from(now)
}

/// Sends packets, `gap` apart, and returns the errors of their delays in milliseconds, sorted.
fn delay_errors(gap: Duration, packets: usize, realtime: bool) -> Result<Vec<f64>, Failure> {
    let emulator = Emulator::start(Config { realtime, ..config("100mbit", "20ms", "1bdp")? })?;
    let (a, b) = (emulator.a4(), emulator.b4());
    let sender = emulator.a().run(|| UdpSocket::bind((a, 0)))??;
    let receiver = emulator.b().run(|| UdpSocket::bind((b, 0)))??;
    receiver.set_read_timeout(Some(Duration::from_millis(300)))?;
    sender.connect(receiver.local_addr()?)?;
    let receiving = thread::spawn(move || {
        let mut buffer = [0; PAYLOAD];
        let mut arrivals = BTreeMap::new();
        while receiver.recv(&mut buffer).is_ok() {
            let number = u64::from_le_bytes(buffer[..8].try_into().expect("8 bytes"));
            arrivals.insert(number, now());
        }
        arrivals
    });

    let mut ideal = Link::new(&emulator.config().forward());
    let mut payload = [0; PAYLOAD];
    let begin = now();
    for number in 0..packets as u64 {
        let due = begin + gap * number as u32;
        thread::sleep(due - now());
        payload[..8].copy_from_slice(&number.to_le_bytes());
        let sent = now();
        sender.send(&payload)?;
        let packet = Packet { bytes: WIRE_BYTES, ecn: Ecn::NotEct, class: Class::Foreground, flow: 0, payload: number };
        ideal.arrive(sent, packet);
    }
    let arrivals = receiving.join().map_err(|_| "the receiver panicked")?;
    emulator.stop()?;

    let expected = std::iter::from_fn(|| ideal.poll(Time::from_nanos(u64::MAX)));
    let mut errors: Vec<f64> = expected
        .filter_map(|delivery| {
            let arrived = arrivals.get(&delivery.packet.payload)?;
            Some((arrived.as_nanos() as f64 - delivery.at.as_nanos() as f64) * 1e-6)
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    if errors.is_empty() {
        return Err("no packet arrived".into());
    }
    Ok(errors)
}

/// Fills a very fast link, and returns what it carried from the second second on, and for how long.
fn reach(time: Duration) -> Result<(Totals, Duration), Failure> {
    let emulator = Emulator::start(config("10gbit", "2ms", "16MB")?)?;
    let b = emulator.b4();
    let listener = emulator.b().run(|| TcpListener::bind((b, 0)))??;
    let address = listener.local_addr()?;
    let receiving = thread::spawn(move || -> std::io::Result<()> {
        let mut stream = listener.accept()?.0;
        let mut buffer = vec![0; 1 << 18];
        while stream.read(&mut buffer)? > 0 {}
        Ok(())
    });
    let mut stream = emulator.a().run(|| TcpStream::connect(address))??;
    setsockopt(&stream, sockopt::TcpCongestion, &OsString::from("cubic"))?;
    let sending = thread::spawn(move || -> std::io::Result<()> {
        let piece = vec![0; 1 << 18];
        let end = now() + time;
        while now() < end {
            stream.write_all(&piece)?;
        }
        Ok(())
    });
    let sample = || (now(), emulator.totals());
    thread::sleep(Duration::from_secs(1));
    let (begin, before) = sample();
    thread::sleep(time - Duration::from_millis(1500));
    let (end, mut carried) = sample();
    carried.cpu -= before.cpu;
    carried.forward.delivered -= before.forward.delivered;
    carried.reverse.delivered -= before.reverse.delivered;
    sending.join().map_err(|_| "the sender panicked")??;
    receiving.join().map_err(|_| "the receiver panicked")??;
    emulator.stop()?;
    Ok((carried, end - begin))
}
