// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiving end of one flow: it counts and discards.

use std::{
    io::Read,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use anyhow::{Context, Result};
use lowtide_emu::Namespace;

const CHUNK: usize = 64 * 1024;

/// Receives one connection after the other on a thread of its own, until the process ends.
#[derive(Debug)]
pub(super) struct Sink {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    received: AtomicU64,
    connection: Mutex<Connection>,
}

#[derive(Debug, Default)]
struct Connection {
    open: Option<TcpStream>,
    ended: Option<Instant>,
}

impl Sink {
    /// Listens in this namespace.
    pub(super) fn listen(namespace: &Namespace, address: SocketAddr) -> Result<Sink> {
        let cannot_listen = || format!("cannot listen at {address}");
        let listener = namespace.run(|| TcpListener::bind(address))?.with_context(cannot_listen)?;
        let address = listener.local_addr().with_context(cannot_listen)?;
        let shared = Arc::new(Shared::default());
        let threads = Arc::clone(&shared);
        thread::Builder::new()
            .name("lowtide-sink".to_owned())
            .spawn(move || threads.receive(&listener))
            .context("cannot start a thread")?;
        Ok(Sink { address, shared })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes since the last [`Sink::reset`].
    pub(super) fn received(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }

    /// When the last connection ended, the receiver having everything; `None` before that.
    pub(super) fn ended(&self) -> Option<Instant> {
        self.shared.connection().ended
    }

    /// Refuses what is still on its way.
    pub(super) fn disconnect(&self) {
        if let Some(open) = self.shared.connection().open.take() {
            let _already_closed = open.shutdown(Shutdown::Both);
        }
    }

    /// Starts to count from zero.
    pub(super) fn reset(&self) {
        self.shared.connection().ended = None;
        self.shared.received.store(0, Ordering::Relaxed);
    }
}

impl Shared {
    fn receive(&self, listener: &TcpListener) {
        let mut buffer = vec![0; CHUNK];
        while let Ok((mut stream, _)) = listener.accept() {
            self.connection().open = stream.try_clone().ok();
            while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
                self.received.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            *self.connection() = Connection { open: None, ended: Some(Instant::now()) };
        }
    }

    /// No write can be left half done, so a panic elsewhere does no harm here.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        let locked = self.connection.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}
