// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario on this machine's kernel, through the emulator.

use super::{
    Failure, Measured,
    punctual::{Watch, be_punctual},
};
use lowtide_cc::EcnUse;
use lowtide_emu::{Config, Emulator, Namespace};
use lowtide_net::Statistics;
use lowtide_sim::scenario::{Flow, Scenario, Tcp, Transport};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket, sockopt};
use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{SocketAddrV4, TcpListener, TcpStream},
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Plays it in real time. `run` is part of the seed.
pub(crate) fn measure(scenario: &Scenario, run: u64) -> Result<Measured, Failure> {
    let emulator = Emulator::start(configuration(scenario, run)?)?;
    for namespace in [emulator.a(), emulator.b()] {
        prepare(namespace, scenario)?;
    }
    let begin = Instant::now();
    let flows = scenario.flows.iter().enumerate().map(|(index, flow)| Traffic::start(&emulator, index, flow));
    let mut flows: Vec<Traffic> = flows.collect::<Result<_, _>>()?;
    let sample = |at: Duration, flows: &[Traffic]| {
        thread::sleep(at.saturating_sub(begin.elapsed()));
        (begin.elapsed(), emulator.totals().forward, flows.iter().map(Traffic::received).collect::<Vec<_>>())
    };
    let watch = Watch::start();
    let (from, before, received_before) = sample(scenario.measure_from, &flows);
    let (to, after, received) = sample(scenario.duration, &flows);
    let stalled_ms = watch.stop().as_secs_f64() * 1e3;
    flows.iter_mut().try_for_each(Traffic::finish)?;
    emulator.stop()?;
    let span = (to - from).as_secs_f64();
    let mbit = |bytes: u64| bytes as f64 * 8e-6 / span;
    let delay = after.queueing_delay_sum - before.queueing_delay_sum;
    let delivered = after.delivered - before.delivered;
    let dropped = |counts: &Statistics| counts.dropped().packets + counts.lost.packets;
    Ok(Measured {
        rates: received.iter().zip(&received_before).map(|(after, before)| mbit(after - before)).collect(),
        queue_ms: delay.as_secs_f64() * 1e3 / delivered.packets.max(1) as f64,
        dropped: dropped(&after) - dropped(&before),
        marked: (after.marked - before.marked).packets,
        stalled_ms,
    })
}

/// The same link; what the emulator cannot be is refused.
fn configuration(scenario: &Scenario, run: u64) -> Result<Config, Failure> {
    let [link] = scenario.bottlenecks.as_slice() else { return Err("the emulator has one bottleneck".into()) };
    let Some(reverse) = &scenario.reverse else { return Err("the emulator's reverse direction has a rate".into()) };
    let both = |it: &lowtide_sim::scenario::Bottleneck| {
        (
            it.schedule.clone(),
            it.rtt,
            it.buffer,
            it.queue.clone(),
            it.loss,
            it.jitter,
            it.reordering,
            it.police,
            it.burst,
        )
    };
    if both(link) != both(reverse) {
        return Err("both directions of the emulator have the same queue and the same chance".into());
    }
    let name = |side| format!("lt{}truth{side}", std::process::id());
    Ok(Config {
        reverse_rate: Some(reverse.rate),
        schedule: link.schedule.clone(),
        burst: link.burst,
        extra_delays: scenario.flows.iter().map(|flow| flow.rtt.saturating_sub(link.rtt)).collect(),
        buffer: link.buffer,
        discipline: link.queue.clone(),
        loss: link.loss,
        jitter: link.jitter,
        reordering: link.reordering,
        police: link.police,
        seed: scenario.seed.wrapping_add(run),
        realtime: true,
        ..Config::new(name("a"), name("b"), link.rate, link.rtt)
    })
}

/// What the kernel sets per namespace and the simulator per flow.
fn prepare(namespace: &Namespace, scenario: &Scenario) -> Result<(), Failure> {
    let tcp: Vec<&Tcp> = scenario.flows.iter().filter_map(tcp).collect();
    let ecn = tcp.iter().any(|tcp| tcp.law.ecn_use() == EcnUse::Classic);
    let validate = tcp.iter().all(|tcp| tcp.validate_window);
    let receive = tcp.iter().map(|tcp| tcp.receive_window).max().unwrap_or(6 << 20);
    for (name, value) in [
        ("tcp_ecn", if ecn { "1" } else { "0" }.to_owned()),
        ("tcp_slow_start_after_idle", u8::from(validate).to_string()),
        ("tcp_rmem", format!("4096 131072 {receive}")),
        ("tcp_wmem", format!("4096 16384 {}", 2 * receive)),
    ] {
        namespace
            .run(|| fs::write(format!("/proc/sys/net/ipv4/{name}"), value))?
            .map_err(|it| format!("{name}: {it}"))?;
    }
    Ok(())
}

fn tcp(flow: &Flow) -> Option<&Tcp> {
    match &flow.transport {
        Transport::Tcp(tcp) => Some(tcp),
        Transport::Udp => None,
    }
}

/// One flow at work.
struct Traffic {
    received: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

impl Traffic {
    fn start(emulator: &Emulator, index: usize, flow: &Flow) -> Result<Self, Failure> {
        let law = tcp(flow).ok_or("only flows of TCP can be compared")?.law.name();
        let address = emulator.far4(index).expect("there is one for each flow");
        let listener = emulator.b().run(|| TcpListener::bind((address, 0)))??;
        let std::net::SocketAddr::V4(address) = listener.local_addr()? else { unreachable!("it is version 4") };
        let (received, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let count = received.clone();
        let sink = thread::spawn(move || {
            be_punctual();
            sink(&listener, &count).map_err(|error| error.to_string())
        });
        let (start, stop) = (flow.start, over.clone());
        let entered = emulator.a().spawn(move || {
            be_punctual();
            thread::sleep(start);
            send(law, address, &stop).map_err(|error| format!("a {law} sender: {error}"))
        })?;
        let source = thread::spawn(move || entered.join().map_err(|_| "panic")?.map_err(|error| error.to_string())?);
        Ok(Self { received, over, threads: vec![sink, source] })
    }

    fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| "a thread of the traffic panicked")??;
        }
        Ok(())
    }
}

fn sink(listener: &TcpListener, received: &AtomicU64) -> std::io::Result<()> {
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

/// Sends until it is over. The law is set before the connection exists: one that the system's default law has begun
/// may be paced for ever.
fn send(law: &str, to: SocketAddrV4, over: &AtomicBool) -> Result<(), Failure> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::TcpCongestion, &law.into())?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(to))?;
    let mut stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(Duration::from_millis(100)))?;
    let piece = vec![0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
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
