// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests on the real kernel share.

#![allow(dead_code, reason = "each test file uses its part")]

use lowtide_emu::{Config, Emulator, Namespace};
use lowtide_net::units::parse_duration;
use nix::sys::socket::{setsockopt, sockopt};
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

/// Why the kernel cannot be used here, if so.
fn obstacle() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("this is not root".to_owned());
    }
    let tun = fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    if let Err(error) = tun {
        return Some(format!("/dev/net/tun cannot be opened: {error}"));
    }
    let unshare = || nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET);
    let unshared = std::thread::spawn(unshare).join().expect("no panic");
    unshared.err().map(|error| format!("network namespaces cannot be made: {error}"))
}

/// Fails with the obstacle where the real kernel cannot be used: the test is ignored unless it is included explicitly.
pub(crate) fn needs_kernel() {
    assert_eq!(obstacle(), None, "this test needs the real kernel");
}

/// The name of a namespace of this process and test.
pub(crate) fn name(test: &str, side: &str) -> String {
    format!("lt-{}-{test}-{side}", std::process::id())
}

/// A configuration with names of its own.
pub(crate) fn config(test: &str, rate: &str, rtt: &str) -> Config {
    Config::new(name(test, "a"), name(test, "b"), rate.parse().unwrap(), parse_duration(rtt).unwrap())
}

/// Whether a namespace of this name exists.
pub(crate) fn exists(name: &str) -> bool {
    let list = Command::new("ip").args(["netns", "list"]).output().expect("ip runs");
    let list = String::from_utf8(list.stdout).unwrap();
    list.lines().any(|line| line.split_whitespace().next() == Some(name))
}

/// Whether there is a record of a namespace of this name.
pub(crate) fn recorded(name: &str) -> bool {
    fs::exists(format!("/run/lowtide/emulate/{name}")).unwrap()
}

/// A UDP socket in a namespace that gives up reading after two seconds.
pub(crate) fn udp(namespace: &Namespace, address: impl Into<IpAddr>) -> UdpSocket {
    let address = SocketAddr::new(address.into(), 0);
    let socket = namespace.run(|| UdpSocket::bind(address)).unwrap().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    socket
}

/// Starts to accept one TCP connection in B and to count what it brings.
pub(crate) fn sink(emulator: &Emulator, address: IpAddr) -> (SocketAddr, JoinHandle<u64>) {
    let listen = || TcpListener::bind((address, 0));
    let listener = emulator.b().run(listen).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let count = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 1 << 18];
        let mut bytes = 0;
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => return bytes,
                read => bytes += read as u64,
            }
        }
    };
    (address, std::thread::spawn(count))
}

/// A TCP connection from A under CUBIC.
pub(crate) fn connect(emulator: &Emulator, to: SocketAddr) -> TcpStream {
    let connect = || TcpStream::connect(to);
    let stream = emulator.a().run(connect).unwrap().unwrap();
    setsockopt(&stream, sockopt::TcpCongestion, &OsString::from("cubic")).unwrap();
    stream
}

/// Sends this many bytes in large pieces, then the end.
pub(crate) fn send(stream: &mut TcpStream, bytes: usize) {
    let piece = vec![0x5a; 1 << 18];
    let mut left = bytes;
    while left > 0 {
        let length = left.min(piece.len());
        stream.write_all(&piece[..length]).unwrap();
        left -= length;
    }
    stream.shutdown(Shutdown::Write).unwrap();
}
