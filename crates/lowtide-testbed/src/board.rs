// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the threads of a flow share: their hosts, what has arrived, and what the sender shows.

use crate::{priority::raise_priority, route::Route, socket::State};
use anyhow::{Result, anyhow};
use lowtide_emu::Namespace;
use lowtide_lab::Arrival;
use lowtide_sim::scenario::{Direction, Flow};
use std::{
    net::Ipv4Addr,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// What steers a transfer, as of the latest look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Control {
    /// w.
    pub(crate) weight: f64,
    /// ζ, bit/s; `None` past the deadline.
    pub(crate) target_bps: Option<f64>,
    /// The rate over the latest update interval, bit/s.
    pub(crate) achieved_bps: f64,
    /// φ.
    pub(crate) price_ratio: f64,
    /// Whether a model gave the weight.
    pub(crate) by_model: bool,
}

/// What a sender shows.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Its socket, to ask the kernel about.
    pub(crate) socket: Option<OwnedFd>,
    /// In place of a socket: what another part has recorded of it.
    pub(crate) state: Option<State>,
    /// Window reductions so far, where they are counted.
    pub(crate) reductions: Option<u64>,
    /// Further values.
    pub(crate) inner: Vec<(&'static str, f64)>,
    /// What steers it.
    pub(crate) control: Option<Control>,
    /// When all of its data had been acknowledged.
    pub(crate) finished: Option<Duration>,
}

/// What the threads of a flow share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    received: Arc<AtomicU64>,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    shown: Arc<Mutex<Shown>>,
}

impl Board {
    /// Payload has arrived.
    pub(crate) fn receive(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A datagram has arrived that was sent then.
    pub(crate) fn arrive(&self, sent: Duration, arrived: Duration) {
        let arrival = Arrival { sent: sent.as_secs_f64(), arrived: arrived.as_secs_f64() };
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push(arrival);
    }

    /// Payload bytes that have arrived so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The datagrams that have arrived so far.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the sender shows, to change it.
    pub(crate) fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sender and receiver.
pub(crate) struct Ends<'a> {
    pub(crate) sender: &'a Namespace,
    pub(crate) receiver: &'a Namespace,
    pub(crate) from: Ipv4Addr,
    pub(crate) to: Ipv4Addr,
}

impl<'a> Ends<'a> {
    pub(crate) fn of(flow: &Flow, index: usize, route: &'a dyn Route) -> Self {
        let (a, b) = (route.a4(), route.b4(index));
        match flow.direction {
            Direction::Forward => Self { sender: route.a(), receiver: route.b(), from: a, to: b },
            Direction::Reverse => Self { sender: route.b(), receiver: route.a(), from: b, to: a },
        }
    }
}

/// What a thread of a flow ends with.
pub(crate) type Work = JoinHandle<Result<()>>;

/// A thread of its own on a host, which runs before ordinary ones.
pub(crate) fn on_host(host: &Namespace, work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<Work> {
    let entered = host.spawn(move || {
        raise_priority();
        work()
    })?;
    Ok(thread::spawn(move || entered.join().map_err(|_| anyhow!("a thread of the traffic panicked"))??))
}
