// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real traffic of the real kernel through the emulated link.

mod common;

use common::{config, connect, needs_kernel, send, sink, udp};
use lowtide_emu::{Config, DEVICE, Emulator, Error};
use nix::sys::socket::sockopt::{IpRecvTos, Ipv4Tos, Ipv6RecvTClass, Ipv6TClass};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use std::io::{ErrorKind, IoSliceMut};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

/// Addresses of A and B in both families.
fn families(emulator: &Emulator) -> [(IpAddr, IpAddr); 2] {
    let a6 = emulator.a6().expect("the kernel has IPv6");
    let b6 = emulator.b6().expect("the kernel has IPv6");
    [(emulator.a4().into(), emulator.b4().into()), (a6.into(), b6.into())]
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn both_families_pass_in_both_directions() {
    needs_kernel();
    let emulator = Emulator::start(config("echo", "20mbit", "10ms")).unwrap();
    for (a, b) in families(&emulator) {
        let (left, right) = (udp(emulator.a(), a), udp(emulator.b(), b));
        left.send_to(b"ebb", right.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 16];
        let (length, from) = right.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], from.ip()), (&b"ebb"[..], a));
        right.send_to(b"flow", from).unwrap();
        let (length, from) = left.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], from.ip()), (&b"flow"[..], b));
    }
    let totals = emulator.stop().unwrap();
    // Nothing but these packets.
    assert_eq!(totals.forward.delivered.packets, 2);
    assert_eq!(totals.reverse.delivered.packets, 2);
    assert_eq!(totals.forward.delivered.bytes, (20 + 8 + 3) + (40 + 8 + 3));
    assert_eq!(totals.refused, 0);
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn nothing_passes_before_time_begins() {
    needs_kernel();
    let emulator = Emulator::start_held(config("held", "20mbit", "10ms")).unwrap();
    let (left, right) = (udp(emulator.a(), emulator.a4()), udp(emulator.b(), emulator.b4()));
    left.send_to(b"ebb", right.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 16];
    right.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert_eq!(right.recv_from(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    emulator.begin();
    right.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(right.recv_from(&mut buffer).unwrap().0, 3);
    emulator.stop().unwrap();
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn the_devices_do_not_speak_on_their_own() {
    needs_kernel();
    let emulator = Emulator::start(config("silence", "20mbit", "10ms")).unwrap();
    // Router solicitations and multicast listener reports would come within a second.
    std::thread::sleep(Duration::from_millis(1500));
    let totals = emulator.stop().unwrap();
    assert_eq!(totals.forward.arrived.packets, 0);
    assert_eq!(totals.reverse.arrived.packets, 0);
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn a_command_runs_in_the_namespace_and_keeps_its_sys() {
    needs_kernel();
    let metrics = "/proc/sys/net/ipv4/tcp_no_metrics_save";
    let outside = std::fs::read_to_string(metrics).unwrap();
    let emulator = Emulator::start(config("enter", "20mbit", "10ms")).unwrap();
    let output = |script: &str, enter: bool| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        if enter {
            emulator.a().enter_command(&mut command);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let address = emulator.a4().to_string();
    assert!(output("ip -o address", true).contains(&address));
    assert!(!output("ip -o address", false).contains(&address));
    let mount = "stat -c %d:%i /sys";
    assert_eq!(output(mount, true), output(mount, false));
    let cat = format!("cat {metrics}");
    assert_eq!(output(&cat, true), "1\n");
    assert_eq!(output(&cat, false), outside, "nothing global changes");
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn large_sends_are_cut_to_wire_packets_before_the_queue() {
    needs_kernel();
    const BYTES: usize = 4_000_000;
    // Payload of a packet with timestamps: the MTU less IP, TCP and 12 bytes of options.
    for (ipv6, payload) in [(false, 1448), (true, 1428)] {
        let emulator =
            Emulator::start(Config { buffer: "100MB".parse().unwrap(), ..config("gso", "500mbit", "10ms") }).unwrap();
        let to = families(&emulator)[usize::from(ipv6)].1;
        let (address, received) = sink(&emulator, to);
        let mut stream = connect(&emulator, address);
        send(&mut stream, BYTES);
        assert_eq!(received.join().unwrap(), BYTES as u64);
        drop(stream);
        let device =
            Command::new("ip").args(["-n", emulator.a().name(), "-s", "-o", "link", "show", DEVICE]).output().unwrap();
        let totals = emulator.stop().unwrap();
        let forward = totals.forward;
        assert_eq!(forward.largest_packet, 1500);
        assert_eq!(forward.dropped().packets, 0);
        let data = (BYTES as u64).div_ceil(payload);
        // A large send may end in a short packet; then SYN, two ACKs and FIN.
        let most = data + (BYTES as u64).div_ceil(1 << 14) + 20;
        let packets = forward.arrived.packets;
        assert!((data..=most).contains(&packets), "{packets} packets, not {data} to {most}");
        let counters = String::from_utf8(device.stdout).unwrap();
        let sent = counters.split("TX:").nth(1).expect("counters").split('\\').nth(1);
        let sent: Vec<u64> = sent.unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
        let [_bytes, device_packets, errors, dropped, ..] = sent[..] else {
            panic!("no counters in {counters}");
        };
        assert_eq!((errors, dropped), (0, 0), "the device drops nothing before the queue");
        assert!(device_packets <= packets);
    }
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn packets_above_the_mtu_are_refused_loudly() {
    needs_kernel();
    let emulator = Emulator::start(config("mtu", "20mbit", "10ms")).unwrap();
    let raised =
        Command::new("ip").args(["-n", emulator.a().name(), "link", "set", DEVICE, "mtu", "9000"]).status().unwrap();
    assert!(raised.success());
    let [(a, b), _] = families(&emulator);
    let (left, right) = (udp(emulator.a(), a), udp(emulator.b(), b));
    let to = right.local_addr().unwrap();
    left.send_to(&[0; 1473], to).unwrap();
    left.send_to(&[0; 1472], to).unwrap();
    let mut buffer = [0; 2000];
    assert_eq!(right.recv(&mut buffer).unwrap(), 1472);
    assert_eq!(emulator.totals().oversized, 1);
    let error = emulator.stop().unwrap_err();
    assert!(matches!(error, Error::Oversized { packets: 1, mtu: 1500 }), "{error}");
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn loss_is_as_frequent_as_asked() {
    needs_kernel();
    const SENT: u64 = 4000;
    let emulator = Emulator::start(Config { loss: "5%".parse().unwrap(), ..config("loss", "1gbit", "10ms") }).unwrap();
    let [(a, b), _] = families(&emulator);
    let (left, right) = (udp(emulator.a(), a), udp(emulator.b(), b));
    right.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let to = right.local_addr().unwrap();
    let receive = move || {
        let mut buffer = [0; 100];
        let packets = std::iter::from_fn(|| right.recv(&mut buffer).ok());
        packets.count() as u64
    };
    let receiving = std::thread::spawn(receive);
    for n in 0..SENT {
        left.send_to(&[0; 100], to).unwrap();
        if n % 50 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let received = receiving.join().unwrap();
    let forward = emulator.stop().unwrap().forward;
    assert_eq!(forward.arrived.packets, SENT);
    assert_eq!(forward.delivered.packets, received);
    assert_eq!(forward.lost.packets + received, SENT);
    // 200 expected; five standard deviations of the binomial distribution are 69.
    assert!((131..=269).contains(&forward.lost.packets), "{} lost", forward.lost.packets);
}

/// Reads packets until none come; returns how many there were, and how many were CE.
fn count_marks(socket: &UdpSocket) -> (u64, u64) {
    let (mut packets, mut marked) = (0, 0);
    let mut buffer = [0; 2000];
    let mut control = nix::cmsg_space!(i32);
    loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = MsgFlags::empty();
        let message = match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags) {
            Ok(message) => message,
            Err(nix::errno::Errno::EAGAIN) => return (packets, marked),
            Err(errno) => panic!("recvmsg: {errno}"),
        };
        packets += 1;
        let ce = |message| match message {
            ControlMessageOwned::Ipv4Tos(tos) => tos & 0b11 == 0b11,
            ControlMessageOwned::Ipv6TClass(class) => class & 0b11 == 0b11,
            other => panic!("unexpected {other:?}"),
        };
        marked += u64::from(message.cmsgs().unwrap().any(ce));
    }
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn step_marks_ect_packets_and_no_others() {
    needs_kernel();
    // 40 packets at once at 10 Mbit/s: the last one waits for almost 48 ms.
    const BURST: u64 = 40;
    for (ect, any_marked) in [(0b10, true), (0b01, true), (0b00, false)] {
        let emulator = Emulator::start(Config {
            discipline: "step:at=10ms".parse().unwrap(),
            buffer: "1MB".parse().unwrap(),
            ..config("step", "10mbit", "10ms")
        })
        .unwrap();
        for (a, b) in families(&emulator) {
            let (left, right) = (udp(emulator.a(), a), udp(emulator.b(), b));
            right.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            if a.is_ipv4() {
                setsockopt(&left, Ipv4Tos, &ect).unwrap();
                setsockopt(&right, IpRecvTos, &true).unwrap();
            } else {
                setsockopt(&left, Ipv6TClass, &ect).unwrap();
                setsockopt(&right, Ipv6RecvTClass, &true).unwrap();
            }
            let before = emulator.totals().forward.marked.packets;
            for _ in 0..BURST {
                let to = right.local_addr().unwrap();
                left.send_to(&[0; 1400], to).unwrap();
            }
            // A wrong header checksum would have the kernel drop the packet.
            let (packets, marked) = count_marks(&right);
            assert_eq!(packets, BURST);
            assert_eq!(marked, emulator.totals().forward.marked.packets - before);
            assert_eq!(marked > 0, any_marked, "{marked} marked with ECN bits {ect:02b}");
            assert!(marked < BURST, "the first packet does not wait");
        }
    }
}

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn directions_have_rates_of_their_own() {
    needs_kernel();
    let emulator = Emulator::start(Config {
        reverse_rate: Some("100kbit".parse().unwrap()),
        buffer: "2p".parse().unwrap(),
        ..config("asymmetry", "1gbit", "10ms")
    })
    .unwrap();
    let [(a, b), _] = families(&emulator);
    let (left, right) = (udp(emulator.a(), a), udp(emulator.b(), b));
    // 1500 bytes take 120 ms at 100 kbit/s, so of five in a row the third one is too many.
    for _ in 0..5 {
        right.send_to(&[0; 1472], left.local_addr().unwrap()).unwrap();
    }
    left.set_read_timeout(Some(Duration::from_millis(800))).unwrap();
    let mut buffer = [0; 2000];
    let received = std::iter::from_fn(|| match left.recv(&mut buffer) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    });
    let received = received.count() as u64;
    let reverse = emulator.stop().unwrap().reverse;
    assert_eq!(reverse.delivered.packets, received);
    assert_eq!(reverse.dropped().packets, 5 - received);
    assert!(reverse.dropped().packets > 0);
    assert!(reverse.queue_max.packets <= 2);
}
