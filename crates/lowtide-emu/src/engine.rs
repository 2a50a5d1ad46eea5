// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that moves the packets: two links, driven by the monotonic clock.

use crate::far::Far;
use crate::report::{Arrived, Board, Second, Totals};
use crate::tun::Tun;
use lowtide_net::{Ecn, Link, Packet, Time, ip};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

/// Packets read or written in a row, so that neither direction keeps the other waiting for long.
const BATCH: usize = 16;

/// One direction: from the TUN device of one side to that of the other.
type Wire = Link<Box<[u8]>>;

/// What the thread works on.
pub(crate) struct Engine {
    pub(crate) a: Tun,
    pub(crate) b: Tun,
    /// From A to B.
    pub(crate) forward: Wire,
    /// From B to A.
    pub(crate) reverse: Wire,
    /// From the link to B's addresses.
    pub(crate) to_far: Far,
    /// From B's addresses to the link, which comes first here: what matters is the sum.
    pub(crate) from_far: Far,
    /// Bytes.
    pub(crate) mtu: u32,
    /// Whether to ask for real-time scheduling.
    pub(crate) realtime: bool,
    /// Whether to record the packets from A to B.
    pub(crate) record: bool,
    /// Where to show what happens.
    pub(crate) board: Arc<Board>,
    pub(crate) clock: Clock,
}

impl Engine {
    /// Moves packets until something can be read from `stop`.
    pub(crate) fn run(mut self, stop: &PipeReader) {
        wake_on_time(self.realtime);
        if let Err(error) = self.move_packets(stop) {
            self.board.set_fault(error.to_string());
        }
    }

    fn move_packets(&mut self, stop: &PipeReader) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut totals = Totals::default();
        let mut seconds = Seconds::from(self.clock.now());
        loop {
            let wake = self.next_event().map_or(seconds.end, |at| at.min(seconds.end));
            let Ready { a, b, stopped } = self.wait(stop, wake - self.clock.now())?;
            if a {
                let record = self.record.then_some(&*self.board);
                totals.oversized += take_in(&self.clock, &self.a, &mut self.forward, self.mtu, &mut buffer, record)?;
            }
            if b {
                totals.oversized += take_in(&self.clock, &self.b, &mut self.reverse, self.mtu, &mut buffer, None)?;
            }
            totals.refused += hand_out(&self.clock, &mut self.forward, &mut self.to_far, &self.b);
            totals.refused += hand_out(&self.clock, &mut self.reverse, &mut self.from_far, &self.a);
            seconds.finish_until(self.clock.now(), self);
            self.show(&mut totals);
            if stopped {
                return Ok(());
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        let links = [self.forward.next_event(), self.reverse.next_event()];
        let events = links.into_iter().chain([self.to_far.next_event(), self.from_far.next_event()]);
        events.flatten().min()
    }

    /// Sleeps until a packet comes, the time is over or it is time to stop.
    fn wait(&self, stop: &PipeReader, timeout: Duration) -> io::Result<Ready> {
        let mut files = [self.a.as_fd(), self.b.as_fd(), stop.as_fd()].map(|file| PollFd::new(file, PollFlags::POLLIN));
        match ppoll(&mut files, Some(TimeSpec::from_duration(timeout)), None) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => return Ok(Ready::default()),
            Err(errno) => return Err(errno.into()),
        }
        // Errors count as readiness: the read will say what is wrong.
        let [a, b, stopped] = files.map(|file| file.any().unwrap_or(true));
        Ok(Ready { a, b, stopped })
    }

    fn show(&self, totals: &mut Totals) {
        totals.forward = self.forward.statistics();
        totals.reverse = self.reverse.statistics();
        totals.forward_queue = self.forward.queued();
        totals.reverse_queue = self.reverse.queued();
        totals.cpu = read_clock(ClockId::CLOCK_THREAD_CPUTIME_ID);
        self.board.set_totals(*totals);
    }
}

/// What there is to do.
#[derive(Default)]
struct Ready {
    a: bool,
    b: bool,
    stopped: bool,
}

/// Takes packets from a device to a link; returns how many were above the MTU.
fn take_in(
    clock: &Clock,
    tun: &Tun,
    link: &mut Wire,
    mtu: u32,
    buffer: &mut [u8],
    record: Option<&Board>,
) -> io::Result<u64> {
    let mut oversized = 0;
    for _ in 0..BATCH {
        let Some(packet) = tun.read(buffer)? else {
            break;
        };
        let bytes = packet.len() as u32; // the buffer has 64 KiB
        if bytes > mtu {
            oversized += 1;
            continue;
        }
        let header = ip::read_header(packet);
        let (ecn, class, flow) = header.map_or_else(Default::default, |it| (it.ecn, it.class, it.flow));
        let at = clock.now();
        if let Some(board) = record {
            board.push_arrival(Arrived { at, bytes, ecn, class, flow });
        }
        link.arrive(at, Packet { bytes, ecn, class, flow, payload: packet.into() });
    }
    Ok(oversized)
}

/// Hands what has come out of a link to a device; returns how many packets it refused.
fn hand_out(clock: &Clock, link: &mut Wire, far: &mut Far, tun: &Tun) -> u64 {
    let mut refused = 0;
    for _ in 0..BATCH {
        let now = clock.now();
        let packet = if let Some(packet) = far.pop(now) {
            packet
        } else if let Some(delivery) = link.poll(now) {
            let mut packet = delivery.packet.payload;
            if delivery.packet.ecn == Ecn::Ce {
                ip::set_ce(&mut packet);
            }
            let Some(packet) = far.pass(delivery.at, packet) else { continue };
            packet
        } else {
            break;
        };
        refused += u64::from(tun.write(&packet).is_err());
    }
    refused
}

/// Cuts the statistics into seconds.
struct Seconds {
    number: u64,
    /// End of the present second.
    end: Time,
}

impl Seconds {
    fn from(start: Time) -> Self {
        let end = start + Duration::from_secs(1);
        Self { number: 0, end }
    }

    /// Publishes all seconds that are over.
    fn finish_until(&mut self, now: Time, engine: &mut Engine) {
        while self.end <= now {
            engine.board.push_second(Second {
                number: self.number,
                forward: engine.forward.take_interval(),
                reverse: engine.reverse.take_interval(),
            });
            self.number += 1;
            self.end = self.end + Duration::from_secs(1);
        }
    }
}

/// The time since the emulator's beginning, as the links count it; zero before that.
#[derive(Clone)]
pub(crate) struct Clock {
    /// Nanoseconds of the monotonic clock.
    begin: Arc<AtomicU64>,
}

impl Clock {
    const NOT_YET: u64 = u64::MAX;

    /// It stays at zero until it begins.
    pub(crate) fn held() -> Self {
        Self { begin: Arc::new(AtomicU64::new(Self::NOT_YET)) }
    }

    /// It is zero now, unless it was before.
    pub(crate) fn begin(&self) {
        let now = nanoseconds();
        let _ = self.begin.compare_exchange(Self::NOT_YET, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn now(&self) -> Time {
        match self.begin.load(Ordering::Relaxed) {
            Self::NOT_YET => Time::ZERO,
            begin => Time::from_nanos(nanoseconds().saturating_sub(begin)),
        }
    }
}

fn nanoseconds() -> u64 {
    u64::try_from(read_clock(ClockId::CLOCK_MONOTONIC).as_nanos()).unwrap_or(Clock::NOT_YET - 1)
}

fn read_clock(clock: ClockId) -> Duration {
    // These clocks exist on every Linux.
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

/// Has the kernel wake this thread exactly when it asked for, and, if wanted and permitted, before
/// all ordinary threads.
fn wake_on_time(realtime: bool) {
    // SAFETY: this sets a number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    if realtime {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        let lowest = libc::sched_param { sched_priority: 1 };
        // SAFETY: 0 is the calling thread, and the parameter lives until the call returns.
        unsafe { libc::sched_setscheduler(0, policy, &raw const lowest) };
    }
}
