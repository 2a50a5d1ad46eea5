// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow at work: who sends, who receives, and what is seen of both.

use crate::{
    board::{Board, Control, Ends, Work, on_host},
    clock::{Clock, PATIENCE},
    datagrams, governed,
    hosts::tcp,
    laws::{self, Host},
    receiver,
    route::Route,
    sink::{address, listen, sink},
    socket::{self, Kind, State},
};
use anyhow::{Context, Result, anyhow};
use lowtide_lab::Arrival;
use lowtide_net::Class;
use lowtide_sim::scenario::{Flow, Source};
use std::{
    io::{ErrorKind, Write},
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::AsFd,
    thread::{self, JoinHandle},
    time::Duration,
};

/// Between two looks whether the last byte has been acknowledged.
const LOOK: Duration = Duration::from_millis(2);

/// Its receivers tell of each mark, and not of the first until an answer comes.
const ECHOES_EACH_MARK: &str = "dctcp";

/// The octet of the class "lower effort" (RFC 8622).
const LOWER_EFFORT: u8 = 1 << 2;

/// One flow at work.
pub(crate) struct Traffic {
    board: Board,
    threads: Vec<Work>,
}

/// What is seen of a flow at one moment.
pub(crate) struct Observation {
    pub(crate) delivered: u64,
    pub(crate) state: Option<State>,
    pub(crate) reductions: Option<u64>,
    pub(crate) inner: Vec<(&'static str, f64)>,
    pub(crate) control: Option<Control>,
}

impl Traffic {
    /// Makes the flow of this index ready; it begins by the clock. `seed` is for what it leaves to chance, `priority`
    /// that of its access link, `program` Lowtide itself.
    pub(crate) fn start(
        route: &dyn Route,
        (index, flow, host): (usize, &Flow, &Host),
        seed: u64,
        priority: Option<u32>,
        program: &std::path::Path,
        clock: &Clock,
    ) -> Result<Self> {
        let (ends, board) = (Ends::of(flow, index, route), Board::default());
        let tos = if flow.class == Class::Background { LOWER_EFFORT } else { 0 };
        let clock = clock.clone();
        let threads = match host {
            Host::Nobody => datagrams::start(&ends, flow, (tos, priority, seed), clock, &board),
            Host::Kernel(law, _) => {
                let pacing = tcp(flow).is_some_and(|tcp| tcp.pacing);
                greedy(&ends, flow, Kind { law: law.clone(), pacing, tos, priority }, clock, &board)
            }
            Host::Own(_) | Host::Governed(..) => governed::start(&ends, flow, host, priority, program, clock, &board),
        };
        let threads = threads.with_context(|| format!("the flow {}", flow.name))?;
        Ok(Self { board, threads })
    }

    /// What is there to see now.
    pub(crate) fn see(&self) -> Observation {
        let shown = self.board.shown();
        Observation {
            delivered: self.board.received(),
            state: shown.socket.as_ref().and_then(socket::state).or(shown.state),
            reductions: shown.reductions,
            inner: shown.inner.clone(),
            control: shown.control,
        }
    }

    /// When all of its data had been acknowledged, if it was.
    pub(crate) fn finished(&self) -> Option<Duration> {
        self.board.shown().finished
    }

    /// The datagrams that have arrived so far.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.board.arrivals()
    }

    /// Whether its threads that have ended did so well.
    pub(crate) fn check(&mut self) -> Result<()> {
        let (ended, at_work) = self.threads.drain(..).partition(JoinHandle::is_finished);
        self.threads = at_work;
        join(ended)
    }

    /// Waits for its threads, which the end of the clock ends.
    pub(crate) fn join(&mut self) -> Result<()> {
        join(self.threads.drain(..).collect())
    }
}

/// Waits for all of them, and says what the first one that failed said.
fn join(threads: Vec<Work>) -> Result<()> {
    let panicked = |_| Err(anyhow!("a thread of the traffic panicked"));
    let outcomes: Vec<Result<()>> = threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect();
    outcomes.into_iter().collect()
}

/// All flows. When this goes they end, and whatever they have started is gone before the route goes.
pub(crate) struct Flows<'a> {
    clock: &'a Clock,
    pub(crate) flows: Vec<Traffic>,
}

impl<'a> Flows<'a> {
    /// No connection yet.
    pub(crate) fn new(clock: &'a Clock) -> Self {
        Self { clock, flows: Vec::new() }
    }

    /// Whether no flow has failed so far.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.flows.iter_mut().try_for_each(Traffic::check)
    }

    /// Ends all flows, and waits for them.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.clock.end();
        let outcomes: Vec<Result<()>> = self.flows.iter_mut().map(Traffic::join).collect();
        outcomes.into_iter().collect()
    }
}

impl Drop for Flows<'_> {
    fn drop(&mut self) {
        let _why_it_ended_was_said = self.end();
    }
}

/// A sender in this process.
fn greedy(ends: &Ends<'_>, flow: &Flow, kind: Kind, clock: Clock, board: &Board) -> Result<Vec<Work>> {
    let size = match flow.source {
        Source::Sized(size) => Some(size),
        _ => None,
    };
    let (listener, governed) = match laws::receiver(flow).map_err(|why| anyhow!(why))? {
        Some(law) => {
            let (listener, work) = receiver::listen(ends, law, flow.weight, clock.clone())?;
            (listener, Some(work))
        }
        None => (listen(ends)?, None),
    };
    let to = address(&listener)?;
    let echoes = (kind.law == ECHOES_EACH_MARK).then_some(ECHOES_EACH_MARK);
    let sink = sink(listener, echoes, clock.clone(), board)?;
    let (from, start, stop, board) = (ends.from, flow.start, flow.stop, board.clone());
    let name = flow.name.clone();
    let source = on_host(ends.sender, move || {
        let sent = clock.sleep_until(start).then(|| send(&kind, (from, to), size, stop, &clock, &board));
        sent.unwrap_or(Ok(())).with_context(|| format!("the sender of {name}"))
    })?;
    Ok([sink, source].into_iter().chain(governed).collect())
}

/// Sends until the flow ends or, of a known size, all has been acknowledged.
fn send(
    kind: &Kind,
    (from, to): (Ipv4Addr, SocketAddrV4),
    size: Option<u64>,
    stop: Option<Duration>,
    clock: &Clock,
    board: &Board,
) -> Result<()> {
    let mut stream = socket::connect(kind, from, to)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    board.shown().socket = Some(stream.as_fd().try_clone_to_owned()?);
    let (piece, mut left) = (vec![0; 1 << 16], size.unwrap_or(u64::MAX));
    while clock.goes_on(stop) && left > 0 {
        match stream.write(&piece[..left.min(piece.len() as u64) as usize]) {
            Ok(bytes) => left -= bytes as u64,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    while size.is_some() && left == 0 && clock.goes_on(stop) {
        if socket::unacknowledged(&stream)? == 0 {
            board.shown().finished = Some(clock.now());
            break;
        }
        thread::sleep(LOOK);
    }
    board.shown().socket = None;
    Ok(())
}
