// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates and delays of the emulated link, as programs of a kernel measure them. Each test runs in a guest, in virtual
//! time: `make promises`. The bench `accuracy` measures delays on this machine, in real time.

mod common;

use common::{config, connect, needs_kernel, sink, udp};
use lowtide_emu::{Config, Emulator};
use lowtide_guest::{Program, testing::in_virtual_time};
use lowtide_net::Limit;
use std::io::Write;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// What a round trip may take beyond that of the link, in milliseconds: the guest's processor is slow.
const LATE_MS: u128 = 5;

/// Runs `body` in the guest, with what it starts there.
fn in_a_guest(body: impl FnOnce()) {
    let tools = ["ip", "tc"].map(|name| Program::of_the_system(name).expect("make promises installs iproute2"));
    in_virtual_time(&tools, body);
}

#[test]
#[ignore = "boots a guest: make promises"]
fn the_round_trip_follows_its_schedule() {
    in_a_guest(|| {
        needs_kernel();
        let rtt_schedule = Some("0s:20ms,500ms:200ms,1500ms:20ms".parse().unwrap());
        let emulator = Emulator::start(Config { rtt_schedule, ..config("schedule", "20mbit", "20ms") }).unwrap();
        let (left, right) = (udp(emulator.a(), emulator.a4()), udp(emulator.b(), emulator.b4()));
        let to = right.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 16];
            while let Ok((length, from)) = right.recv_from(&mut buffer) {
                right.send_to(&buffer[..length], from).unwrap();
            }
        });
        let begin = Instant::now();
        let mut buffer = [0; 16];
        // one after the other, so that none is under way when the round trip falls
        for (at, rtt) in [(100, 20), (600, 200), (1700, 20)] {
            std::thread::sleep(Duration::from_millis(at).saturating_sub(begin.elapsed()));
            let sent = Instant::now();
            left.send_to(b"tide", to).unwrap();
            assert_eq!(left.recv(&mut buffer).unwrap(), 4);
            let took = sent.elapsed().as_millis();
            println!("after {at} ms: {took} ms");
            assert!((rtt..rtt + LATE_MS).contains(&took), "{took} ms where {rtt} ms are due");
        }
        emulator.stop().unwrap();
    });
}

#[test]
#[ignore = "boots a guest: make promises"]
fn some_addresses_are_farther_away() {
    in_a_guest(|| {
        needs_kernel();
        let extra_delays = [0, 60].map(Duration::from_millis).to_vec();
        let emulator = Emulator::start(Config { extra_delays, ..config("far", "20mbit", "20ms") }).unwrap();
        let far6 = |index| emulator.far6(index).expect("the kernel has IPv6").into();
        let places: [(IpAddr, IpAddr, u64); 5] = [
            (emulator.a4().into(), emulator.b4().into(), 20),
            (emulator.a4().into(), emulator.far4(0).unwrap().into(), 20),
            (emulator.a4().into(), emulator.far4(1).unwrap().into(), 80),
            (emulator.a6().unwrap().into(), far6(0), 20),
            (emulator.a6().unwrap().into(), far6(1), 80),
        ];
        assert_eq!(emulator.far4(2), None);
        for (a, b, rtt) in places {
            let (left, right) = (udp(emulator.a(), a), udp(emulator.b(), b));
            let mut buffer = [0; 16];
            let begin = Instant::now();
            left.send_to(b"far", right.local_addr().unwrap()).unwrap();
            let (length, from) = right.recv_from(&mut buffer).unwrap();
            right.send_to(&buffer[..length], from).unwrap();
            left.recv_from(&mut buffer).unwrap();
            let took = begin.elapsed();
            let late = took.saturating_sub(Duration::from_millis(rtt));
            println!("{b}: {took:?}");
            assert!(Duration::from_millis(rtt) <= took && late.as_millis() < LATE_MS, "{b}: {took:?}");
        }
        emulator.stop().unwrap();
    });
}

#[test]
#[ignore = "boots a guest: make promises"]
fn tcp_gets_the_rate_and_the_queue_keeps_its_limit() {
    in_a_guest(|| {
        needs_kernel();
        let emulator = Emulator::start(config("rate", "20mbit", "40ms")).unwrap();
        let (address, received) = sink(&emulator, emulator.b4().into());
        let mut stream = connect(&emulator, address);
        let piece = vec![0; 1 << 16];
        let sending = std::thread::spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(6500) {
                stream.write_all(&piece).unwrap();
            }
        });
        sending.join().unwrap();
        received.join().unwrap();
        let limit = emulator.config().forward().limit;
        let seconds = emulator.seconds_from(1);
        let totals = emulator.stop().unwrap();
        // Seconds 1 to 5: the slow start is over, and the end has not come.
        let headers = 52.0 / 1500.0;
        let steady = seconds.iter().take(5).map(|second| second.forward.delivered.bytes);
        let goodput = steady.sum::<u64>() as f64 * 8.0 / 5.0 * (1.0 - headers);
        let share = goodput / 20e6;
        assert!((0.85..=1.0).contains(&share), "{share:.3} of the rate");
        assert_eq!(limit, Limit::Bytes(100_000));
        assert!(limit.allows(totals.forward.queue_max), "{totals:?}");
        assert!(totals.forward.dropped().packets > 0, "CUBIC fills a buffer");
    });
}
