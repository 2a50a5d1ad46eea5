// SPDX-License-Identifier: MIT OR Apache-2.0
#![cfg(target_os = "linux")]
//! Laws for the whole machine: any program can ask for them, and nothing stays of them.

use lowtide_kernel::{KernelLaw, Need, diagnose};
use std::{
    env, fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd,
    path::Path,
    process::Command,
    thread,
};

/// Fails with the obstacle where the real kernel cannot be used: the test is ignored unless it is included explicitly.
fn needs_kernel() {
    let obstacle = diagnose().verdict(&[Need::OwnLaws]);
    assert_eq!(obstacle, None, "this test needs the real kernel");
}

/// What `lowtide cc` says, and its status.
fn cc(arguments: &[&str]) -> (String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_lowtide")).arg("cc").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &*String::from_utf8_lossy(&output.stderr);
    (said, output.status.code().unwrap())
}

fn listed(law: &str) -> bool {
    let laws = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    laws.split_whitespace().any(|it| it == law)
}

/// A connection over loopback whose sender asked for this law, and the bytes that came through.
fn send(law: &str, bytes: usize) -> (TcpStream, thread::JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    // SAFETY: the name is as long as is said.
    let outcome = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            law.as_ptr().cast(),
            law.len() as u32,
        )
    };
    assert_eq!(outcome, 0, "{law}: {}", std::io::Error::last_os_error());
    let sink = thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap()
    });
    stream.write_all(&vec![7; bytes]).unwrap();
    (stream, sink)
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn a_law_can_be_had_by_any_program_and_goes_without_a_trace() {
    needs_kernel();
    for law in KernelLaw::OWN {
        let name = KernelLaw::registered(law);
        assert!(!listed(&name), "{name} is loaded on this machine already; lowtide cc unload {law}");
        assert_eq!(cc(&["load", law, "--pin"]).1, 0);
        assert!(listed(&name));
        let (said, status) = cc(&["load", law]);
        assert!(status == 2 && said.contains("is loaded already"), "{said}");

        let (stream, sink) = send(&name, 3_000_000);
        let (said, _) = cc(&["list"]);
        assert!(said.contains(&format!("loaded as {name}, 1 socket\n")), "{said}");
        let (said, status) = cc(&["unload", law]);
        assert!(status == 2 && said.contains("1 socket; --force unloads it"), "{said}");
        drop(stream);
        assert_eq!(sink.join().unwrap(), 3_000_000);

        let (said, _) = cc(&["show", law]);
        assert!(said.starts_with(&format!("{name}: {law}")), "{said}");
        assert_eq!(cc(&["unload", law, "--force"]).1, 0);
        assert!(!listed(&name) && !Path::new("/sys/fs/bpf/lowtide").join(&name).exists());
    }
}

#[test]
fn what_is_wrong_is_said_in_a_sentence() {
    for (arguments, part) in [
        (&["load", "vegas:alpha=x"][..], "alpha"),
        (&["load", "vegas:variant=original"], "variant=linux, and not variant=original"),
        (&["load", "cdg:window=5"], "powers of two up to 256 as window"),
        (&["load", "nice"], "is not registered in this kernel; there are cdg"),
        (&["load", "proteus"], "is not registered in this kernel; there are cdg"),
        (&["load", "reno"], "there is nothing to load"),
        (&["load", "vegas", "--weight", "2"], "at most 1"),
        (&["unload", "vegas"], "lt_vegas is not loaded"),
    ] {
        let (said, status) = cc(arguments);
        assert!(status == 2 && said.contains(part), "{arguments:?}: {said}");
    }
}
