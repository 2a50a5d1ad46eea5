// SPDX-License-Identifier: MIT OR Apache-2.0
//! A size and a deadline for one TCP socket, in a program that runs under `lowtide run`.
//!
//! The options of `crates/lowtide-kernel/include/lowtide.h`, served by a BPF program of Lowtide's; nothing of Lowtide
//! is linked in. Where there is no Lowtide every call answers [`Error::Absent`], and the socket works as ever:
//!
//! ```
//! use std::{net::TcpListener, time::Duration};
//!
//! # let listener = TcpListener::bind("127.0.0.1:0")?;
//! # let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
//! match lowtide_socket::set_goal(&stream, 40_000_000, Duration::from_secs(60)) {
//!     Ok(()) => println!("40 MB in the background, done within a minute"),
//!     Err(lowtide_socket::Error::Absent) => println!("an ordinary connection"),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A goal belongs to the connection. It may be set before `connect` and on an accepted socket; a listener does not hand
//! it on.

mod option;

use std::{fmt, io, os::fd::AsFd, time::Duration};

/// Asks for `size` more bytes of payload to be acknowledged `within` a time from now. Framing of the program's own
/// (TLS, HTTP) counts. A later call replaces the goal. A goal that is met ends at its deadline, or once 2 % more than
/// `size` was sent; past its deadline a goal that is not met makes the socket an ordinary flow.
///
/// # Errors
/// [`Error::Value`]: a size of 0 or above 2⁶⁰, a time below 1 ms or above 366 days. [`Error::Absent`],
/// [`Error::Unsuitable`], [`Error::TooMany`].
pub fn set_goal(socket: &impl AsFd, size: u64, within: Duration) -> Result<(), Error> {
    let within_ns = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
    if size == 0 && within_ns == 0 {
        return Err(Error::Value); // as an option, it would clear
    }
    option::set(socket.as_fd(), option::GOAL, &option::Goal { size, within_ns })
}

/// Takes the goal back: the socket shares the weight of the run again.
///
/// # Errors
/// [`Error::Absent`].
pub fn clear_goal(socket: &impl AsFd) -> Result<(), Error> {
    option::set(socket.as_fd(), option::GOAL, &option::Goal::default())
}

/// How the socket is doing.
///
/// # Errors
/// [`Error::Absent`].
pub fn status(socket: &impl AsFd) -> Result<Status, Error> {
    option::get::<option::Status>(socket.as_fd(), option::STATUS).map(Status::from)
}

/// Whether this socket can be given a goal by this Lowtide: it runs, and governs the socket.
pub fn is_available(socket: &impl AsFd) -> bool {
    status(socket).is_ok_and(|status| !status.own_law)
}

/// How much queueing delay the program is willing to cause others when it looks for more capacity: Q of a control law
/// with acceleration. In steps of a microsecond; zero: as the law would. Laws without acceleration keep the value, and
/// nothing changes.
///
/// # Errors
/// [`Error::Value`]: more than a second. [`Error::Absent`].
pub fn set_latency(socket: &impl AsFd, latency: Duration) -> Result<(), Error> {
    let us = u32::try_from(latency.as_micros()).map_err(|_| Error::Value)?;
    option::set(socket.as_fd(), option::LATENCY, &us)
}

/// What [`set_latency`] set; `None`: as the law would.
///
/// # Errors
/// [`Error::Absent`].
pub fn latency(socket: &impl AsFd) -> Result<Option<Duration>, Error> {
    let us: u32 = option::get(socket.as_fd(), option::LATENCY)?;
    Ok((us > 0).then(|| Duration::from_micros(us.into())))
}

/// Sets a parameter of the run's control law for this socket alone, under its name in `--cc LAW:NAME=VALUE`. A time is
/// in seconds, a switch 0 or 1, a word its place in the list of what is possible, from 0. Laws of the kernel and
/// Lowtide's CDG have no parameters of single sockets.
///
/// # Errors
/// [`Error::Value`]: the law has no such parameter, or this is no value of it. [`Error::Absent`],
/// [`Error::Unsuitable`].
pub fn set_parameter(socket: &impl AsFd, name: &str, value: f64) -> Result<(), Error> {
    let mut parameter = option::Parameter { value, ..option::Parameter::default() };
    if name.len() >= parameter.name.len() {
        return Err(Error::Value);
    }
    parameter.name[..name.len()].copy_from_slice(name.as_bytes());
    option::set(socket.as_fd(), option::PARAMETER, &parameter)
}

/// A socket as Lowtide sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Status {
    /// w: 1 is an ordinary flow, less is more submissive. The run's, unless the goal is [governed](Goal::governed).
    pub weight: f64,
    /// The program chose the socket's control law itself: no weight has an effect.
    pub own_law: bool,
    /// The goal, if the socket has one.
    pub goal: Option<Goal>,
}

/// A goal and how it is doing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Bytes, as they were asked for.
    pub size: u64,
    /// Of them acknowledged so far; may exceed the size.
    pub acknowledged: u64,
    /// Until the deadline; zero past it.
    pub left: Duration,
    /// Weight, outlook and rates are the socket's own: from the first look at it, within a quarter of a second, until
    /// the goal ends.
    pub governed: bool,
    /// ζ: bytes per second needed from now on; `None` past the deadline, or when all is done.
    pub target_rate: Option<u64>,
    /// Bytes per second over the last update interval.
    pub achieved_rate: u64,
    /// Until it is expected to be done, where that is known.
    pub expected: Option<Duration>,
    /// Will it be done in time?
    pub outlook: Outlook,
}

/// What Lowtide makes of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outlook {
    /// Nothing can be said yet.
    TooEarly,
    /// It will be done in time.
    OnCourse,
    /// It cannot be done in time at what the network gives now.
    CannotFinish,
    /// The program itself sends too slowly.
    ProgramLimited,
    /// Nothing gets through.
    Stalled,
    /// The deadline has passed; the socket is an ordinary flow.
    Overdue,
    /// All of it is acknowledged.
    Done,
    /// And over 2 % more.
    SizeExceeded,
    /// The rate so far does not suffice; the weight rises as far as it may.
    Behind,
    /// Nothing is to be sent: the program works, or waits for its peer.
    Waiting,
    /// One that this crate does not know.
    Unknown,
}

/// Why an option was refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No Lowtide governs this socket: the program does not run under `lowtide run` (any more), is a 32-bit one, or the
    /// socket is not TCP or was opened outside. Nothing is wrong: go on without.
    Absent,
    /// A value out of its range.
    Value,
    /// The socket listens, or the program chose its control law itself: it cannot have a goal. Or the law has no
    /// parameters of single sockets.
    Unsuitable,
    /// As many sockets as can have a goal (4096 in one run) have one.
    TooMany,
    /// Any other refusal, such as a descriptor that is no socket.
    Other(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Absent => f.write_str("no Lowtide governs this socket; run the program under `lowtide run`"),
            Error::Value => f.write_str(
                "a value is out of its range: sizes from 1 to 2^60 bytes, times from 1 ms to 366 days, latencies up to 1 s, parameters as the law has them",
            ),
            Error::Unsuitable => f.write_str(
                "this socket cannot have that: it listens, the program chose its control law itself, or the law has no parameters of single sockets",
            ),
            Error::TooMany => f.write_str("too many sockets of this run have goals of their own; clear some"),
            Error::Other(error) => write!(f, "the socket refused the option: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Other(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn without_lowtide_everything_is_absent() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert!(matches!(set_goal(&stream, 1, Duration::from_secs(1)), Err(Error::Absent)), "{address}");
            assert!(matches!(clear_goal(&stream), Err(Error::Absent)));
            assert!(matches!(status(&stream), Err(Error::Absent)));
            assert!(matches!(set_latency(&stream, Duration::ZERO), Err(Error::Absent)));
            assert!(matches!(latency(&stream), Err(Error::Absent)));
            assert!(matches!(set_parameter(&stream, "target", 0.05), Err(Error::Absent)));
            assert!(!is_available(&stream));
            let datagrams = UdpSocket::bind(address).unwrap();
            assert!(matches!(set_goal(&datagrams, 1, Duration::from_secs(1)), Err(Error::Absent)), "{address}");
            assert!(matches!(status(&datagrams), Err(Error::Absent)));
        }
    }

    #[test]
    fn what_would_clear_is_no_goal() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(matches!(set_goal(&socket, 0, Duration::ZERO), Err(Error::Value)));
        assert!(matches!(set_latency(&socket, Duration::MAX), Err(Error::Value)));
        assert!(matches!(set_parameter(&socket, "a_name_longer_than_any_is", 1.0), Err(Error::Value)));
    }

    #[test]
    fn what_is_no_socket_says_so() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let error = set_goal(&file, 1, Duration::from_secs(1)).unwrap_err();
        assert!(matches!(error, Error::Other(_)) && error.to_string().contains("ocket"), "{error}");
    }
}
