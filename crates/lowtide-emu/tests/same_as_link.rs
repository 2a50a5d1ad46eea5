// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator in real time and the link in virtual time do the same with the same packets.

mod common;

use common::{config, needs_kernel, udp};
use lowtide_emu::{Arrived, Config, Emulator};
use lowtide_net::{Ecn, Link, LossModel, Packet, Statistics, Time};
use nix::sys::socket::sockopt::{IpRecvTos, Ipv4Tos};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

const PACKETS: u32 = 600;
const PAYLOAD: usize = 972;

/// Number of a packet, and whether it came with CE.
type Received = (u32, bool);

/// Reads packets until none come for a second.
fn receive(socket: &UdpSocket) -> Vec<Received> {
    let mut all = Vec::new();
    let mut buffer = [0; 2000];
    let mut control = nix::cmsg_space!(i32);
    loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = MsgFlags::empty();
        let message = match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags) {
            Ok(message) => message,
            Err(nix::errno::Errno::EAGAIN) => return all,
            Err(errno) => panic!("recvmsg: {errno}"),
        };
        let ce = |message| matches!(message, ControlMessageOwned::Ipv4Tos(tos) if tos & 0b11 == 0b11);
        let ce = message.cmsgs().unwrap().any(ce);
        all.push((u32::from_le_bytes(buffer[..4].try_into().unwrap()), ce));
    }
}

/// Sends numbered packets at one and a half times the link's rate, from four sockets with ECN fields
/// of their own. Returns how they arrived at the link, what came out, and what the emulator counted.
fn in_real_time(config: Config) -> (Vec<Arrived>, Vec<Received>, Statistics) {
    let emulator = Emulator::start(config).unwrap();
    let right = udp(emulator.b(), emulator.b4());
    right.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    setsockopt(&right, IpRecvTos, &true).unwrap();
    let to = right.local_addr().unwrap();
    let senders = [0b10, 0b00, 0b01, 0b10].map(|ecn| {
        let socket = udp(emulator.a(), emulator.a4());
        setsockopt(&socket, Ipv4Tos, &ecn).unwrap();
        socket
    });
    let receiving = std::thread::spawn(move || receive(&right));
    let mut payload = [0; PAYLOAD];
    for number in 0..PACKETS {
        payload[..4].copy_from_slice(&number.to_le_bytes());
        // The first flow sends most.
        let sender = if number % 2 == 0 { 0 } else { number as usize / 2 % 4 };
        senders[sender].send_to(&payload, to).unwrap();
        if number % 8 == 0 {
            // 8000 bytes in 4.3 ms.
            std::thread::sleep(Duration::from_micros(4300));
        }
    }
    let received = receiving.join().unwrap();
    let arrivals = emulator.arrivals();
    (arrivals, received, emulator.stop().unwrap().forward)
}

/// Does the same with the same arrivals in virtual time.
fn in_virtual_time(config: &Config, arrivals: &[Arrived]) -> (Vec<Received>, Statistics) {
    let mut link = Link::new(&config.forward());
    for (number, &Arrived { at, bytes, ecn, class, flow }) in (0..).zip(arrivals) {
        link.arrive(at, Packet { bytes, ecn, class, flow, payload: number });
    }
    let end = Time::from_nanos(u64::MAX - 1);
    let out = std::iter::from_fn(|| link.poll(end));
    let received = out.map(|out| (out.packet.payload, out.packet.ecn == Ecn::Ce)).collect();
    (received, link.statistics())
}

/// What a case is there for: it has to happen.
type Effect = fn(&Statistics) -> u64;

#[test]
#[ignore = "needs root, namespaces and TUN: -- --include-ignored"]
fn the_same_packets_have_the_same_fate() {
    needs_kernel();
    let base = |name: &str, queue: &str| Config {
        record: true,
        buffer: "60kB".parse().unwrap(),
        discipline: queue.parse().unwrap(),
        seed: 7,
        ..config(name, "10mbit", "10ms")
    };
    let queue = |name, queue| base(name, queue);
    let (drops, marks): (Effect, Effect) = (|s| s.aqm.packets, |s| s.marked.packets);
    let cases: Vec<(Config, Vec<Effect>)> = vec![
        (Config { buffer: "20kB".parse().unwrap(), ..queue("droptail", "droptail") }, vec![|s| s.overflow.packets]),
        (queue("step", "step:at=3ms"), vec![marks]),
        (queue("codel", "codel:target=1ms,interval=10ms,ecn=on"), vec![drops, marks]),
        (queue("pie", "pie:target=2ms,update=2ms,alpha=20,beta=100,burst=20ms,ecn=on,mark=90%"), vec![drops, marks]),
        (queue("dualpi2", "dualpi2:target=5ms"), vec![drops, marks]),
        (queue("linux", "dualpi2:variant=linux,target=5ms"), vec![drops, marks]),
        (queue("fq", "fq_codel:target=1ms,interval=10ms"), vec![marks, |s| s.overflow.packets]),
        (queue("fq-drop", "fq_codel:target=1ms,interval=10ms,ecn=off"), vec![drops]),
        (
            Config {
                schedule: Some("0s:20mbit,100ms:2mbit,200ms:0mbit,250ms:20mbit,every:400ms".parse().unwrap()),
                burst: 3080,
                ..queue("schedule", "droptail")
            },
            vec![|s| s.overflow.packets],
        ),
        (
            Config {
                loss: "ge:p=5%,r=30%".parse::<LossModel>().unwrap(),
                jitter: "3ms:normal".parse().unwrap(),
                reordering: "10%:5ms".parse().unwrap(),
                police: Some("12mbit:20kB".parse().unwrap()),
                ..queue("chance", "droptail")
            },
            vec![|s| s.lost.packets, |s| s.policed.packets],
        ),
    ];
    for (config, effects) in cases {
        let name = config.a.clone();
        let (arrivals, received, counted) = in_real_time(config.clone());
        assert_eq!(arrivals.len(), PACKETS as usize, "{name}");
        assert!(arrivals.iter().all(|arrived| arrived.bytes as usize == PAYLOAD + 28), "{name}");
        let (expected, statistics) = in_virtual_time(&config, &arrivals);
        assert_eq!(received, expected, "{name}");
        assert_eq!(counted, statistics, "{name}");
        for (number, effect) in effects.iter().enumerate() {
            assert!(effect(&counted) > 0, "{name}: effect {number} is missing: {counted:?}");
        }
    }
}
