// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide traffic`: a plain sender and a plain sink, all that the demo needs.

use std::{
    io::{ErrorKind, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::{
    sys::{
        signal::Signal,
        socket::{
            self, AddressFamily, SockFlag, SockType, SockaddrStorage, setsockopt, socket,
            sockopt::{Linger, Priority, TcpCongestion},
        },
    },
    unistd,
};

use crate::cli::{TrafficArguments, TrafficEnd};

const CHUNK: usize = 64 * 1024;

/// The task of a sender.
#[derive(Debug, Default)]
struct Wishes<'a> {
    /// How much; for ever if not given.
    size: Option<u64>,
    /// For how long at most.
    time: Option<Duration>,
    /// Its control law.
    cc: Option<&'a str>,
    /// Its address.
    from: Option<IpAddr>,
    /// Its packets' priority on their own host.
    priority: Option<u32>,
    /// Whether what waits is dropped when it ends.
    abort: bool,
}

/// Runs one end.
///
/// # Errors
/// One sentence: cannot listen, cannot connect, connection lost.
pub fn traffic(arguments: &TrafficArguments) -> Result<ExitCode> {
    match &arguments.end {
        TrafficEnd::Sink { listen } => sink(*listen)?,
        TrafficEnd::Send { to, size, seconds, cc, from, priority, abort, parent } => {
            parent.map_or(Ok(()), end_with)?;
            let (time, cc) = (seconds.map(Duration::from_secs_f64), cc.as_deref());
            send(*to, &Wishes { size: *size, time, cc, from: *from, priority: *priority, abort: *abort })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// From now on this process ends with its parent, which is the one of this number.
fn end_with(parent: u32) -> Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).context("PR_SET_PDEATHSIG")?;
    // it may have ended before
    if unistd::getppid().as_raw() == parent as i32 { Ok(()) } else { bail!("the process that started this has ended") }
}

/// Accepts until killed; one thread a connection.
fn sink(listen: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("cannot listen at {listen}"))?;
    loop {
        let (mut stream, _) = listener.accept().context("accepting a connection")?;
        thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            while !matches!(stream.read(&mut buffer), Ok(0) | Err(_)) {}
        });
    }
}

/// A connection under a control law. The law is chosen before it is made: one that BBR has begun, where that is the
/// system's default, stays paced under every other law.
fn connect(to: SocketAddr, wishes: &Wishes<'_>) -> Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).context("making a socket")?;
    if let Some(cc) = wishes.cc {
        setsockopt(&socket, TcpCongestion, &cc.into())
            .with_context(|| format!("the kernel has no control law {cc}"))?;
    }
    if let Some(from) = wishes.from {
        socket::bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(from, 0)))
            .with_context(|| format!("cannot send from {from}"))?;
    }
    if let Some(priority) = wishes.priority {
        setsockopt(&socket, Priority, &(priority as i32)).context("setting the packets' priority")?;
    }
    if wishes.abort {
        setsockopt(&socket, Linger, &libc::linger { l_onoff: 1, l_linger: 0 }).context("SO_LINGER")?;
    }
    socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(to))
        .with_context(|| format!("cannot connect to {to}"))?;
    Ok(socket.into())
}

/// Sends zeros until size or time is reached, then waits until the receiver has them all.
fn send(to: SocketAddr, wishes: &Wishes<'_>) -> Result<()> {
    let Wishes { size, time, .. } = *wishes;
    let mut stream = connect(to, wishes)?;
    // so that the time limit is looked at even when nothing moves
    stream.set_write_timeout(Some(Duration::from_millis(100)))?;
    let started = Instant::now();
    let chunk = vec![0; CHUNK];
    let mut left = size.unwrap_or(u64::MAX);
    while left > 0 && time.is_none_or(|time| started.elapsed() < time) {
        match stream.write(&chunk[..left.min(CHUNK as u64) as usize]) {
            Ok(sent) => left -= sent as u64,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error).context("sending"),
        }
    }
    if size.is_some() && left == 0 {
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut rest = [0; 1];
        let _end_of_stream = stream.read(&mut rest).context("waiting for the receiver")?;
    }
    Ok(())
}
