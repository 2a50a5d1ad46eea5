// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each law in the kernel moves what it is given over a bad link, and leaves nothing behind.

#[path = "support/lifecycle.rs"]
mod lifecycle;

use std::{
    fs::File,
    io::{self, Write},
    net::{IpAddr, TcpListener},
    thread,
    time::Duration,
};

use lifecycle::{Running, dev_tcp, inside, law_loaded_since, listed_laws, name, needs_kernel, run_script};
use lowtide_cc::Random;
use lowtide_emu::{Config, Emulator};
use nix::sys::socket::{setsockopt, sockopt};

/// The laws, with what else of theirs is worth a transfer. Prague as it is by default takes its time where losses come
/// by chance: it is as fast as Reno at a round trip of 25 ms.
const LAWS: &[&str] = &[
    "cdg",
    "cdg:variant=thesis",
    "cdg_cubic",
    "vegas",
    "eclipse",
    "ledbat",
    "ledbatpp",
    "lt_cubic",
    "dctcp:accel=on,overload=on",
    "prague:mode=none,accel=on,overload=on",
    "tide",
];

/// So many bytes that repeat nowhere.
fn content(bytes: usize) -> Vec<u8> {
    let mut random = Random::new(1);
    (0..bytes / 4).flat_map(|_| ((random.uniform() * 4_294_967_296.0) as u32).to_le_bytes()).collect()
}

#[test]
#[ignore = "needs root and a kernel with struct_ops: -- --include-ignored"]
fn four_megabytes_arrive_whole_over_a_lossy_and_reordering_link() {
    arrive_whole(4_000_000);
}

#[test]
#[ignore = "ten minutes"]
fn a_hundred_megabytes_arrive_whole_over_a_lossy_and_reordering_link() {
    arrive_whole(100_000_000);
}

fn arrive_whole(bytes: usize) {
    needs_kernel();
    let content = content(bytes);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("content");
    File::create(&file).unwrap().write_all(&content).unwrap();
    for law in LAWS {
        for version in [4, 6] {
            let go = directory.path().join(format!("go-{law}-{version}"));
            let [a, b] = ["a", "b"].map(|end| name(&format!("law{version}{end}")));
            let link = Config::new(a, b, "1gbit".parse().unwrap(), Duration::from_millis(2));
            let (loss, reordering) = ("0.5%".parse().unwrap(), "1%:5ms".parse().unwrap());
            let emulator = Emulator::start(Config { loss, reordering, ..link }).unwrap();
            let address: IpAddr = if version == 4 { emulator.b4().into() } else { emulator.b6().unwrap().into() };
            let listener = emulator.b().run(|| TcpListener::bind((address, 0))).unwrap().unwrap();
            let to = dev_tcp(listener.local_addr().unwrap());
            let script = format!("until [ -e {} ]; do sleep 0.05; done; cat {} >{to}", go.display(), file.display());
            let before = listed_laws();
            let run = Running::start(&mut inside(emulator.a(), run_script(&["--cc", law], &script)));
            // a law that needs ECN needs it of the receiver, too
            let ours = law_loaded_since(&before, law);
            setsockopt(&listener, sockopt::TcpCongestion, &ours.as_str().into()).unwrap();
            File::create(&go).unwrap();
            let receiver = thread::spawn(move || {
                let mut received = Vec::with_capacity(bytes);
                io::copy(&mut listener.accept().unwrap().0, &mut received).map(|_| received)
            });
            let ended = run.end_within(Duration::from_secs(300));
            assert!(ended.status.success() && !ended.err.contains("ran Reno"), "{law}: {}", ended.err);
            let received = receiver.join().unwrap().unwrap();
            assert!(received == content, "{law}, IPv{version}: {} bytes arrived, or not the same", received.len());
            assert!(!listed_laws().contains(&ours), "{ours} is still there");
        }
    }
}
