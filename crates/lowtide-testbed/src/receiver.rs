// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receiver that governs what it receives, as `lowtide run --direction down` does.

use crate::{
    board::{Ends, Work},
    clock::{Clock, PATIENCE},
    governed::ALIVE,
    priority::raise_priority,
};
use anyhow::{Context, Result, bail};
use lowtide_kernel::{Cgroup, Direction, KernelLaw, Setup, Steering, Transfer};
use nix::{
    sched::{CloneFlags, setns},
    sys::socket::{Backlog, SockaddrIn, bind, listen as listen_at},
};
use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    os::fd::AsRawFd,
    sync::mpsc,
    thread,
};

/// A listener at a port of its own whose connections are governed under this law and weight, and what governs them
/// until the clock ends.
pub(crate) fn listen(
    ends: &Ends<'_>,
    law: KernelLaw,
    weight: Option<f64>,
    clock: Clock,
) -> Result<(TcpListener, Work)> {
    let (to, path) = (ends.to, ends.receiver.path());
    let namespace = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
    // without a weight the law is as published; 1 would leave the windows alone
    let steering = Steering { download_weight: weight.unwrap_or(0.0), stale: ALIVE, ..Steering::default() };
    let (ready, wait) = mpsc::channel();
    // BPF objects stay on the thread that loaded them
    let work = thread::spawn(move || {
        raise_priority();
        let (_group, mut transfer, listener) = prepare(law, &steering, &namespace, to)?;
        let _waits = ready.send(listener);
        while !clock.is_over() {
            transfer.beat();
            thread::sleep(PATIENCE);
        }
        Ok(())
    });
    match (wait.recv(), work) {
        (Ok(listener), work) => Ok((listener, work)),
        (Err(_), work) => match work.join() {
            Ok(Err(error)) => Err(error.context("the receiver")),
            _ => bail!("the thread of the receiver panicked"),
        },
    }
}

fn prepare(
    law: KernelLaw,
    steering: &Steering,
    namespace: &File,
    to: Ipv4Addr,
) -> Result<(Cgroup, Transfer, TcpListener)> {
    let group = Cgroup::create()?;
    let mut transfer = Transfer::start(&Setup::new(Direction::Down, law), steering, &group)?;
    transfer.beat();
    setns(namespace, CloneFlags::CLONE_NEWNET).context("entering the receiver's host")?;
    let socket = group.socket()?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(to, 0)))?;
    listen_at(&socket, Backlog::new(1)?)?;
    Ok((group, transfer, TcpListener::from(socket)))
}
