// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario's flows on the kernel: greedy ones of TCP, and datagrams that come by chance.

use super::{Failure, link::tcp, punctual::be_punctual};
use lowtide_cc::Random;
use lowtide_emu::Emulator;
use lowtide_sim::scenario::{Flow, Source, Transport};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket, sockopt};
use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket},
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long a thread waits before it looks whether all is over.
const PATIENCE: Duration = Duration::from_millis(100);

/// One flow at work.
pub(crate) struct Traffic {
    received: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

/// When a flow sends.
struct Times {
    begin: Instant,
    start: Duration,
    stop: Option<Duration>,
    over: Arc<AtomicBool>,
}

impl Times {
    fn wait_for_start(&self) {
        thread::sleep(self.start.saturating_sub(self.begin.elapsed()));
    }

    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed) && self.stop.is_none_or(|stop| self.begin.elapsed() < stop)
    }
}

impl Traffic {
    /// Begins the flow of this index, by a clock that began with the scenario.
    pub(crate) fn start(emulator: &Emulator, index: usize, flow: &Flow, begin: Instant) -> Result<Self, Failure> {
        let address = emulator.far4(index).expect("there is one for each flow");
        let (received, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let times = Times { begin, start: flow.start, stop: flow.stop, over: over.clone() };
        let threads = match (&flow.transport, &flow.source) {
            (Transport::Tcp(_), Source::Greedy) => greedy(emulator, address, flow, times, &received)?,
            (Transport::Udp, Source::Poisson { bytes, mean }) => {
                let seed = index as u64;
                poisson(emulator, address, (*bytes as usize, *mean, seed), times, &received)?
            }
            _ => return Err(format!("{}: only greedy TCP and Poisson datagrams can be compared", flow.name).into()),
        };
        Ok(Self { received, over, threads })
    }

    /// Payload bytes so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| "a thread of the traffic panicked")??;
        }
        Ok(())
    }
}

type Threads = Vec<JoinHandle<Result<(), String>>>;

fn greedy(
    emulator: &Emulator,
    address: Ipv4Addr,
    flow: &Flow,
    times: Times,
    received: &Arc<AtomicU64>,
) -> Result<Threads, Failure> {
    let law = tcp(flow).expect("it is one of TCP").law.name();
    let (address, sink) = sink(emulator, address, received)?;
    let source = in_namespace(emulator, move || {
        times.wait_for_start();
        send(law, address, &times).map_err(|error| format!("a {law} sender: {error}"))
    })?;
    Ok(vec![sink, source])
}

/// Takes what one connection brings.
pub(crate) fn sink(
    emulator: &Emulator,
    address: Ipv4Addr,
    received: &Arc<AtomicU64>,
) -> Result<(SocketAddrV4, JoinHandle<Result<(), String>>), Failure> {
    let listener = emulator.b().run(|| TcpListener::bind((address, 0)))??;
    let SocketAddr::V4(address) = listener.local_addr()? else { unreachable!("it is version 4") };
    let count = received.clone();
    let thread = thread::spawn(move || {
        be_punctual();
        receive(&listener, &count).map_err(|error| error.to_string())
    });
    Ok((address, thread))
}

fn receive(listener: &TcpListener, received: &AtomicU64) -> std::io::Result<()> {
    let mut stream = listener.accept()?.0;
    let mut buffer = vec![0; 1 << 18];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => received.fetch_add(bytes as u64, Ordering::Relaxed),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        };
    }
}

/// A thread on the senders' side.
fn in_namespace(
    emulator: &Emulator,
    work: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Result<JoinHandle<Result<(), String>>, Failure> {
    let entered = emulator.a().spawn(move || {
        be_punctual();
        work()
    })?;
    Ok(thread::spawn(move || entered.join().map_err(|_| "panic")?.map_err(|error| error.to_string())?))
}

/// Sends until it is over. The law is set before the connection exists: one that the system's default law has begun
/// may be paced for ever.
fn send(law: &str, to: SocketAddrV4, times: &Times) -> Result<(), Failure> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::TcpCongestion, &law.into())?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(to))?;
    let mut stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(PATIENCE))?;
    let piece = vec![0; 1 << 16];
    while times.goes_on() {
        match stream.write(&piece) {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // what still waits in the buffer need not arrive
    setsockopt(&stream, sockopt::Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 })?;
    Ok(())
}

/// Datagrams of so many bytes with exponentially distributed gaps of this mean, and a seed.
fn poisson(
    emulator: &Emulator,
    address: Ipv4Addr,
    (bytes, mean, seed): (usize, Duration, u64),
    times: Times,
    received: &Arc<AtomicU64>,
) -> Result<Threads, Failure> {
    let socket = emulator.b().run(|| UdpSocket::bind((address, 0)))??;
    let to = socket.local_addr()?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let (count, over) = (received.clone(), times.over.clone());
    let sink = thread::spawn(move || {
        be_punctual();
        let mut buffer = vec![0; 1 << 16];
        while !over.load(Ordering::Relaxed) {
            if let Ok(bytes) = socket.recv(&mut buffer) {
                count.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        }
        Ok(())
    });
    let source = in_namespace(emulator, move || {
        times.wait_for_start();
        let scatter = || -> std::io::Result<()> {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            let (payload, mut random, mut due) = (vec![0; bytes], Random::new(seed), times.begin.elapsed());
            while times.goes_on() {
                due += mean.mul_f64(-libm::log(1.0 - random.uniform()));
                thread::sleep(due.saturating_sub(times.begin.elapsed()));
                socket.send_to(&payload, to)?;
            }
            Ok(())
        };
        scatter().map_err(|error| format!("datagrams: {error}"))
    })?;
    Ok(vec![sink, source])
}
