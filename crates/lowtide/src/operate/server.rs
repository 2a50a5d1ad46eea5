// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transfer's side of its control socket. A thread answers status by itself; what changes the transfer waits for its
//! next look at the sockets.

use std::{
    io::ErrorKind,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use lowtide_kernel::Flows;
use nix::{
    sys::socket::{getsockopt, sockopt},
    unistd::geteuid,
};

use super::{
    directory::{Claim, connect},
    frames::Frames,
    protocol::{Command, LONGEST_REQUEST, Reply, Request, Share, Status},
};

/// A frame has to come, or its answer to go, within this.
const PATIENCE: Duration = Duration::from_secs(2);
/// The transfer looks several times a second, but to detach from many connections takes longer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);
/// How often it looks, at the end, whether all requests are answered.
const LOOK: Duration = Duration::from_millis(5);
/// After a client that could not be taken in.
const PAUSE: Duration = Duration::from_millis(100);
/// Clients at a time.
const MOST_CLIENTS: usize = 16;

/// A request that changes the transfer.
#[derive(Debug)]
pub struct Order {
    /// The request.
    pub request: Request,
    answer: SyncSender<Result<()>>,
}

impl Order {
    /// Tells the client what became of it.
    pub fn answer(self, result: Result<()>) {
        let _ = self.answer.try_send(result); // the client may have gone
    }
}

/// The state per path, which other transfers of the group may have, too.
#[derive(Debug)]
pub struct Common {
    /// What they have to have in common.
    pub share: Share,
    /// That state.
    pub flows: Flows,
}

#[derive(Debug)]
struct Shared {
    status: Mutex<Status>,
    common: Option<Common>,
    ends: AtomicBool,
    clients: AtomicUsize,
    /// Requests that have been read, and not answered yet.
    asked: AtomicUsize,
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The socket, answered as long as this value lives.
#[derive(Debug)]
pub struct Server {
    claim: Arc<Claim>,
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to answer. Signals should be blocked by now, as the thread inherits that.
    ///
    /// # Errors
    /// No thread can be made.
    pub fn start(claim: Claim, status: Status, common: Option<Common>) -> Result<Server> {
        let (to, orders) = sync_channel(MOST_CLIENTS);
        let (ends, clients, asked) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        let shared = Arc::new(Shared { status: Mutex::new(status), common, ends, clients, asked });
        let claim = Arc::new(claim);
        let accept = {
            let (claim, shared) = (claim.clone(), shared.clone());
            move || accept(&claim, &shared, &to)
        };
        let thread = thread::Builder::new().name("control".into()).spawn(accept).context("a thread for control")?;
        Ok(Server { claim, shared, orders, thread: Some(thread) })
    }

    /// The transfer's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.claim.name()
    }

    /// What clients get from now on.
    pub fn publish(&self, status: Status) {
        *self.shared.status() = status;
    }

    /// The next request that changes the transfer.
    pub fn order(&self) -> Option<Order> {
        self.orders.try_recv().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        // wakes the thread; where as many wait as can it is awake
        let woken = connect(&self.claim.path).map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |_| true);
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
        // a client whose request ends the transfer (`lowtide detach`) has its answer before this process ends
        let asked_until = Instant::now() + PATIENCE;
        while self.shared.asked.load(Ordering::SeqCst) > 0 && Instant::now() < asked_until {
            while let Some(order) = self.order() {
                order.answer(Err(anyhow!("the transfer has just ended")));
            }
            thread::sleep(LOOK);
        }
    }
}

fn accept(claim: &Claim, shared: &Arc<Shared>, orders: &SyncSender<Order>) {
    loop {
        let accepted = claim.listener.accept();
        if shared.ends.load(Ordering::SeqCst) {
            return;
        }
        let Ok((stream, _)) = accepted else {
            thread::sleep(PAUSE); // there is no descriptor left, perhaps
            continue;
        };
        let mut frames = Frames::new(stream, LONGEST_REQUEST, PATIENCE);
        let refusal = if !is_allowed(&frames) {
            Some(anyhow!("only the owner of a transfer, and root, may ask"))
        } else if shared.clients.load(Ordering::SeqCst) >= MOST_CLIENTS {
            Some(anyhow!("{MOST_CLIENTS} clients are being answered; try again"))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let _ = frames.write(&Reply::refused(&refusal)); // a client that does not listen is none
            continue;
        }
        shared.clients.fetch_add(1, Ordering::SeqCst);
        let (mine, orders) = (shared.clone(), orders.clone());
        let serve = move || {
            serve(&mut frames, &mine, &orders);
            mine.clients.fetch_sub(1, Ordering::SeqCst);
        };
        if thread::Builder::new().name("client".into()).spawn(serve).is_err() {
            shared.clients.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The peer is root or the user who runs this.
fn is_allowed(frames: &Frames) -> bool {
    let peer = getsockopt(frames.stream(), sockopt::PeerCredentials);
    peer.is_ok_and(|peer| peer.uid() == 0 || peer.uid() == geteuid().as_raw())
}

/// One request after the other. What cannot be read ends the connection, as the begin of the next frame is unknown.
fn serve(frames: &mut Frames, shared: &Shared, orders: &SyncSender<Order>) {
    loop {
        let frame = match frames.read() {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(error) => {
                let _ = frames.write(&Reply::refused(&error.into()));
                return;
            }
        };
        shared.asked.fetch_add(1, Ordering::SeqCst);
        let done = Request::parse(&frame).and_then(|request| obey(request, shared, orders));
        let (reply, descriptor) = match done {
            Ok(descriptor) => (Reply::done(Some(shared.status().clone())), descriptor),
            Err(error) => (Reply::refused(&error), None),
        };
        let written = frames.write_with(&reply, descriptor);
        shared.asked.fetch_sub(1, Ordering::SeqCst);
        if written.is_err() {
            return;
        }
    }
}

/// What goes back with the reply.
fn obey<'a>(request: Request, shared: &'a Shared, orders: &SyncSender<Order>) -> Result<Option<BorrowedFd<'a>>> {
    match (&request.command, &request.share) {
        (Command::Status, _) => return Ok(None),
        (Command::Share, Some(share)) => {
            let Some(common) = &shared.common else { bail!("it shares no state with others") };
            common.share.check(share)?;
            return Ok(Some(common.flows.as_fd()));
        }
        _ => {}
    }
    let (answer, answered) = sync_channel(1);
    if orders.try_send(Order { request, answer }).is_err() {
        bail!("the transfer ends, or is busy; try again");
    }
    let late = |_| anyhow!("the transfer has not answered within {} s", ANSWER_PATIENCE.as_secs());
    answered.recv_timeout(ANSWER_PATIENCE).map_err(late)?.map(|()| None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::{directory::Directory, protocol::LONGEST_REPLY, show::tests::example};

    #[test]
    fn the_request_that_ends_a_transfer_is_answered_before_the_server_has_gone() {
        for _ in 0..20 {
            let place = tempfile::tempdir().unwrap();
            let directory = Directory::at(place.path().join("lowtide"));
            let server = Server::start(directory.claim("one").unwrap(), example(), None).unwrap();
            let mut client = Frames::new(directory.connect("one").unwrap(), LONGEST_REPLY, PATIENCE);
            client.write(&Request::new(Command::Detach)).unwrap();
            let order = std::iter::repeat_with(|| server.order()).flatten().next().unwrap();
            order.answer(Ok(()));
            drop(server);
            client.stream().set_nonblocking(true).unwrap();
            assert!(Reply::parse(&client.read().unwrap().unwrap()).unwrap().ok);
        }
    }
}
