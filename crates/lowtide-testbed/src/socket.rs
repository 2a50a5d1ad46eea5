// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sockets of a flow, and what the kernel says of them.

use anyhow::{Context, Result};
use nix::{
    libc,
    sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn, setsockopt, socket, sockopt},
};
use std::{
    net::{Ipv4Addr, SocketAddrV4, TcpStream},
    os::fd::{AsFd, AsRawFd},
};

/// What a sender's socket is like.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// The law's name in the kernel.
    pub(crate) law: String,
    /// Whether the kernel paces.
    pub(crate) pacing: bool,
    /// The octet of its packets' class.
    pub(crate) tos: u8,
    /// The class of its host's access link: HTB goes by it.
    pub(crate) priority: Option<u32>,
}

/// More than any rate; all ones would switch pacing off.
const PACED_WITHOUT_LIMIT: u32 = u32::MAX - 1;

/// A connection. The law is set before it is made: one that BBR has begun, where that is the system's default, stays
/// paced for ever.
pub(crate) fn connect(kind: &Kind, from: Ipv4Addr, to: SocketAddrV4) -> Result<TcpStream> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    choose(&socket, &kind.law)?;
    mark(&socket, kind.tos, kind.priority)?;
    if kind.pacing {
        set(&socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, PACED_WITHOUT_LIMIT).context("SO_MAX_PACING_RATE")?;
    }
    socket::bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0)))?;
    socket::connect(socket.as_raw_fd(), &SockaddrIn::from(to))?;
    // what waits in the buffer when the flow ends need not arrive
    setsockopt(&socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 })?;
    Ok(TcpStream::from(socket))
}

/// Gives a socket a law of the kernel.
pub(crate) fn choose(socket: &impl AsFd, law: &str) -> Result<()> {
    setsockopt(socket, sockopt::TcpCongestion, &law.into()).with_context(|| format!("the kernel's law {law}"))
}

/// Sets the class of a socket's packets, in the network and on their own host.
pub(crate) fn mark(socket: &impl AsFd, tos: u8, priority: Option<u32>) -> Result<()> {
    setsockopt(socket, sockopt::Ipv4Tos, &i32::from(tos)).context("IP_TOS")?;
    // after the class in the network, which sets this one too
    priority
        .map_or(Ok(()), |priority| set(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, priority))
        .context("SO_PRIORITY")
}

fn set(socket: &impl AsFd, level: libc::c_int, name: libc::c_int, value: u32) -> Result<()> {
    let size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the value is as long as is said, and lives until the call returns.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

/// What the kernel knows of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// Segments.
    pub(crate) cwnd: f64,
    /// Segments; `None`: not set yet.
    pub(crate) ssthresh: Option<f64>,
    /// The smoothed round trip; `None`: no sample yet.
    pub(crate) rtt_ms: Option<f64>,
    /// Bytes, where they are known.
    pub(crate) in_flight: Option<u64>,
    /// Retransmissions so far.
    pub(crate) retransmits: u64,
}

/// Below this `tcpi_snd_ssthresh` is one.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// Asks the kernel.
pub(crate) fn state(socket: &impl AsFd) -> Option<State> {
    // SAFETY: a structure of integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&info) as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes no more than the size.
    let result =
        unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut size) };
    if result != 0 {
        return None;
    }
    let packets = (info.tcpi_unacked + info.tcpi_retrans).saturating_sub(info.tcpi_sacked + info.tcpi_lost);
    Some(State {
        cwnd: info.tcpi_snd_cwnd.into(),
        ssthresh: (info.tcpi_snd_ssthresh < NO_THRESHOLD).then(|| info.tcpi_snd_ssthresh.into()),
        rtt_ms: (info.tcpi_rtt > 0).then(|| f64::from(info.tcpi_rtt) / 1e3),
        in_flight: Some(u64::from(packets) * u64::from(info.tcpi_snd_mss)),
        retransmits: info.tcpi_total_retrans.into(),
    })
}

/// Bytes that were written and not acknowledged.
pub(crate) fn unacknowledged(socket: &impl AsFd) -> std::io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one integer.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { Ok(bytes as u64) } else { Err(std::io::Error::last_os_error()) }
}
