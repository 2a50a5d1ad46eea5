// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver of a TCP flow.

use crate::{
    board::{Board, Ends, Work},
    clock::{Clock, FAREWELL, PATIENCE},
    priority::raise_priority,
    socket,
};
use anyhow::{Context, Result};
use std::{
    io::{ErrorKind, Read},
    net::{SocketAddr, SocketAddrV4, TcpListener},
    thread,
    time::{Duration, Instant},
};

/// The receiver's end, at a port of its own.
pub(crate) fn listen(ends: &Ends<'_>) -> Result<TcpListener> {
    let to = ends.to;
    Ok(ends.receiver.run(|| TcpListener::bind((to, 0)))??)
}

/// Where it is.
pub(crate) fn address(listener: &TcpListener) -> Result<SocketAddrV4> {
    let SocketAddr::V4(address) = listener.local_addr()? else { unreachable!("it is version 4") };
    Ok(address)
}

/// Takes what one connection brings, under a law that has a part for the receiver.
pub(crate) fn sink(listener: TcpListener, law: Option<&str>, clock: Clock, board: &Board) -> Result<Work> {
    if let Some(law) = law {
        socket::choose(&listener, law)?;
    }
    listener.set_nonblocking(true)?;
    let board = board.clone();
    Ok(thread::spawn(move || {
        raise_priority();
        receive(&listener, &clock, &board).context("a receiver")
    }))
}

fn receive(listener: &TcpListener, clock: &Clock, board: &Board) -> Result<()> {
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if clock.is_over() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; 1 << 18];
    let mut end = None;
    loop {
        // not before the sender, who would take that for a failure; but its last packet may be lost
        if clock.is_over() && end.get_or_insert_with(Instant::now).elapsed() > FAREWELL {
            return Ok(());
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => board.receive(bytes),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
