// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws that need ECN: no packet is ECT but where both ends agreed on it, and every mark is echoed.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    fs,
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use lifecycle::{
    LOCALHOST6, Receiver, Running, Wire, dev_tcp, finish, inside, lowtide, name, namespace, needs_kernel, run_script,
    sockets, sockets_to, trickle, until,
};
use lowtide_emu::{Config, Emulator, Namespace};

const LAWS: [&str; 2] = ["dctcp", "prague"];
const LOCALHOST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const ECT0: u8 = 2;

/// A program under `lowtide run` that takes what comes, at a port of a namespace.
fn listen(namespace: &Namespace, law: &str, port: u16) -> Running {
    let mut command = lowtide(["run", "--quiet", "--cc", law, "--"]);
    command.args([env!("CARGO_BIN_EXE_lowtide"), "traffic", "sink", "--listen", &format!("[::]:{port}")]);
    Running::start(&mut inside(namespace, command))
}

fn free_port(namespace: &Namespace) -> u16 {
    let port = || TcpListener::bind((LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    namespace.run(port).unwrap()
}

/// The laws of the connections from a port, once there are so many.
fn laws_at(namespace: &Namespace, port: u16, number: usize) -> Vec<String> {
    until("the accepted connections", || {
        let found: Vec<_> = sockets(namespace).into_iter().filter(|socket| socket.local_port == port).collect();
        (found.len() == number).then(|| found.iter().map(|socket| socket.law().to_owned()).collect())
    })
}

/// The SYN with ECT is how the kernel asks for ECN under such a law. An ordinary listener does not grant it.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_peer_that_does_not_echo_every_mark_gets_reno_and_no_ect() {
    needs_kernel();
    let space = namespace("plain");
    for ecn in ["0", "1", "2"] {
        space.run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", ecn)).unwrap().unwrap();
        for law in LAWS {
            let receivers =
                [LOCALHOST.into(), IpAddr::from(LOCALHOST6)].map(|address| Receiver::start(&space, address));
            let wire = Wire::tap(&space);
            let send = receivers.each_ref().map(|it| format!("head -c 300000 /dev/zero >{}", dev_tcp(it.address)));
            let ended = finish(&mut inside(&space, run_script(&["--cc", law], &send.join("; "))));
            assert!(ended.err.contains("which the law needs: 2; they ran Reno"), "{law}: {}", ended.err);
            for receiver in &receivers {
                until("all bytes", || (receiver.received() == 300_000).then_some(()));
                let seen = wire.seen();
                let mut sent = seen.iter().filter(|packet| packet.destination == receiver.port()).peekable();
                assert!(sent.peek().is_some());
                assert!(sent.all(|packet| packet.syn || packet.ecn == 0), "{law}, tcp_ecn={ecn}: {seen:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn between_two_of_ours_all_is_ect0() {
    needs_kernel();
    let space = namespace("both");
    for law in LAWS {
        let port = free_port(&space);
        let _server = listen(&space, law, port);
        let to = [LOCALHOST.into(), IpAddr::from(LOCALHOST6)].map(|address| SocketAddr::new(address, port));
        until("the server", || space.run(|| TcpStream::connect(to[0]).ok()).unwrap().map(drop));
        let wire = Wire::tap(&space);
        let _client = Running::start(&mut inside(&space, run_script(&["--quiet", "--cc", law], &trickle(&to))));
        let ours = laws_at(&space, port, 2);
        assert!(ours.iter().all(|it| it.starts_with(&format!("lt_{law}_")[..10.min(law.len() + 4)])), "{ours:?}");
        let clients: Vec<u16> = sockets_to(&space, port).iter().map(|socket| socket.local_port).collect();
        let seen = until("packets both ways", || {
            let seen = wire.seen();
            let both = [4, 6].map(|version| seen.iter().filter(|it| it.version == version && !it.syn).count() >= 2);
            (both == [true, true]).then_some(seen)
        });
        let mut theirs = seen.iter().filter(|it| clients.contains(&it.source) || clients.contains(&it.destination));
        assert!(theirs.all(|packet| packet.ecn == ECT0), "{law}: {seen:?}");
    }
}

/// It asks for ECN without ECT on its SYN, or not at all: it would echo a mark until it saw CWR.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_client_of_classic_ecn_or_of_none_gets_reno() {
    needs_kernel();
    let space = namespace("classic");
    for (ecn, law) in [("1", "dctcp"), ("2", "dctcp"), ("1", "prague")] {
        space.run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", ecn)).unwrap().unwrap();
        let port = free_port(&space);
        let _server = listen(&space, law, port);
        for address in [LOCALHOST.into(), IpAddr::from(LOCALHOST6)] {
            let to = SocketAddr::new(address, port);
            let mut client = until("a connection", || space.run(|| TcpStream::connect(to).ok()).unwrap());
            client.write_all(&[1; 1000]).unwrap();
            assert_eq!(laws_at(&space, port, 1), ["reno"], "{law}, tcp_ecn={ecn}");
            drop(client);
            until("its end", || sockets(&space).iter().all(|socket| socket.local_port != port).then_some(()));
        }
    }
}

/// The sender knows of all marks of the link; a segment may be counted with its neighbours where an ACK was
/// under way already. The sender of a classic receiver counts many times as many.
#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn every_mark_is_echoed() {
    needs_kernel();
    for (law, size) in [("dctcp", 12_000_000), ("prague:accel=on,overload=on", 12_000_000)] {
        let (a, b) = (name(&format!("{}a", &law[..2])), name(&format!("{}b", &law[..2])));
        let discipline = "step:at=3ms".parse().unwrap();
        let link = Config::new(a, b, "50mbit".parse().unwrap(), Duration::from_millis(10));
        let emulator = Emulator::start(Config { discipline, buffer: "1000ms".parse().unwrap(), ..link }).unwrap();
        let port = free_port(emulator.b());
        let _server = listen(emulator.b(), law, port);
        let to = SocketAddr::new(emulator.b4().into(), port);
        until("the server", || emulator.a().run(|| TcpStream::connect(to).ok()).unwrap().map(drop));
        let script = format!("exec 3<>{}; head -c {size} /dev/zero >&3; sleep 600", dev_tcp(to));
        let _client = Running::start(&mut inside(emulator.a(), run_script(&["--quiet", "--cc", law], &script)));
        let socket = until("all bytes", || {
            let found = sockets_to(emulator.a(), port);
            found.into_iter().find(|socket| socket.number("bytes_acked:").is_some_and(|acked| acked >= f64::from(size)))
        });
        let (marked, heard) = (emulator.totals().forward.marked.packets, socket.number("delivered_ce:").unwrap_or(0.0));
        assert!(marked > 20, "{law}: {marked} packets were marked: {}", socket.text);
        assert!((heard - marked as f64).abs() <= 1.0 + 0.02 * marked as f64, "{law}: {marked} marks: {}", socket.text);
    }
}
