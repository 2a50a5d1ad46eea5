// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator: namespaces, devices, addresses, and the thread between them.

use crate::engine::{Clock, Engine};
use crate::error::Doing;
use crate::far::{self, End, Far};
use crate::report::Board;
use crate::tun::Tun;
use crate::{Arrived, Config, Error, Namespace, Second, Totals};
use lowtide_net::Link;
use std::io::{self, PipeWriter, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Name of the device to the bottleneck, in both namespaces.
pub const DEVICE: &str = "lowtide0";

const A4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const B4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const A6: Ipv6Addr = Ipv6Addr::new(0xfd6c, 0x6f77, 0, 0, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0xfd6c, 0x6f77, 0, 0, 0, 0, 0, 2);

/// Packets that may wait between the kernel and the emulator. More than any burst, so that nothing
/// is dropped before it reaches the emulated queue.
const DEVICE_QUEUE: u32 = 10_000;

/// The smallest MTU with which IPv6 works (RFC 8200, section 5).
const IPV6_MINIMUM_MTU: u32 = 1280;

/// A bottleneck between two namespaces, in operation until it is stopped or dropped.
///
/// The addresses are the same for every emulator: as they exist in its namespaces only, emulators
/// run side by side. Nothing outside of the two namespaces is changed.
pub struct Emulator {
    a: Namespace,
    b: Namespace,
    config: Config,
    ipv6: bool,
    board: Arc<Board>,
    clock: Clock,
    stop: PipeWriter,
    thread: Option<JoinHandle<()>>,
}

impl Emulator {
    /// Makes the namespaces, devices and addresses and starts to move packets. First removes
    /// whatever crashed emulators left on this machine.
    ///
    /// # Errors
    /// [`Error::NotRoot`]; [`Error::Config`] for a value out of range; [`Error::ForeignNamespace`]
    /// and [`Error::NamespaceInUse`] for a name that is taken; whatever the system refuses. Nothing
    /// is left behind then.
    pub fn start(config: Config) -> Result<Self, Error> {
        let emulator = Self::start_held(config)?;
        emulator.begin();
        Ok(emulator)
    }

    /// The same, but its time does not pass, and packets wait, until [`Emulator::begin`]: for schedules that begin with
    /// something else.
    ///
    /// # Errors
    /// As for [`Emulator::start`].
    pub fn start_held(config: Config) -> Result<Self, Error> {
        config.check()?;
        if !nix::unistd::geteuid().is_root() {
            return Err(Error::NotRoot);
        }
        let a = Namespace::create(&config.a)?;
        let b = Namespace::create(&config.b)?;
        let tun_a = Tun::create(&a, DEVICE)?;
        let tun_b = Tun::create(&b, DEVICE)?;
        let ipv6 = Path::new("/proc/sys/net/ipv6").exists() && config.mtu >= IPV6_MINIMUM_MTU;
        let places = 0..=config.extra_delays.len();
        let b_addresses: Vec<_> = places.map(|place| (far::address4(B4, place), far::address6(B6, place))).collect();
        for (namespace, addresses) in [(&a, &[(A4, A6)][..]), (&b, &b_addresses)] {
            configure(namespace, config.mtu, addresses, ipv6)?;
        }
        let far = |end, half: fn(&Duration) -> Duration| Far::new(end, B4, B6, config.extra_delays.iter().map(half));
        let board = Arc::new(Board::default());
        let clock = Clock::held();
        let engine = Engine {
            a: tun_a,
            b: tun_b,
            forward: Link::new(&config.forward()),
            reverse: Link::new(&config.reverse()),
            to_far: far(End::Destination, |delay| *delay / 2),
            from_far: far(End::Source, |delay| *delay - *delay / 2),
            mtu: config.mtu,
            realtime: config.realtime,
            record: config.record,
            board: Arc::clone(&board),
            clock: clock.clone(),
        };
        let (stopped, stop) = std::io::pipe().doing(|| "make a pipe".to_owned())?;
        let thread = thread::Builder::new()
            .name("lowtide-emulate".to_owned())
            .spawn(move || engine.run(&stopped))
            .doing(|| "start the emulator's thread".to_owned())?;
        Ok(Self { a, b, config, ipv6, board, clock, stop, thread: Some(thread) })
    }

    /// Its time is zero now, unless it was before.
    pub fn begin(&self) {
        self.clock.begin();
    }

    /// The side of the senders.
    pub fn a(&self) -> &Namespace {
        &self.a
    }

    /// The other side.
    pub fn b(&self) -> &Namespace {
        &self.b
    }

    /// IPv4 address of A.
    pub fn a4(&self) -> Ipv4Addr {
        A4
    }

    /// IPv4 address of B.
    pub fn b4(&self) -> Ipv4Addr {
        B4
    }

    /// IPv6 address of A; `None` if the kernel has no IPv6 or the MTU is too small for it.
    pub fn a6(&self) -> Option<Ipv6Addr> {
        self.ipv6.then_some(A6)
    }

    /// IPv6 address of B; `None` if the kernel has no IPv6 or the MTU is too small for it.
    pub fn b6(&self) -> Option<Ipv6Addr> {
        self.ipv6.then_some(B6)
    }

    /// IPv4 address of B that is farther away by the one of [`Config::extra_delays`] with this index.
    pub fn far4(&self, index: usize) -> Option<Ipv4Addr> {
        (index < self.config.extra_delays.len()).then(|| far::address4(B4, index + 1))
    }

    /// The same for IPv6; `None` also where [`Emulator::b6`] is.
    pub fn far6(&self, index: usize) -> Option<Ipv6Addr> {
        (self.ipv6 && index < self.config.extra_delays.len()).then(|| far::address6(B6, index + 1))
    }

    /// What it was started with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Counts since the start, as of this moment.
    pub fn totals(&self) -> Totals {
        self.board.totals()
    }

    /// The seconds from this number on (the first second has the number 0), as far as they are
    /// over. The last hour is kept.
    pub fn seconds_from(&self, number: u64) -> Vec<Second> {
        self.board.seconds_from(number)
    }

    /// With [`Config::record`]: when each packet from A to B arrived at the link, and what the link knew
    /// of it, in order. A [`Link`] of [`Config::forward`] that is fed with them in virtual time does the
    /// same with them as this emulator did.
    pub fn arrivals(&self) -> Vec<Arrived> {
        self.board.arrivals()
    }

    /// Whether all is well.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the emulation ended by itself (as when its device was deleted),
    /// [`Error::Oversized`] if it had to drop packets above the MTU.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(fault) = self.board.fault() {
            return Err(Error::Stopped(fault));
        }
        match self.totals().oversized {
            0 => Ok(()),
            packets => Err(Error::Oversized { packets, mtu: self.config.mtu }),
        }
    }

    /// Takes everything down, devices and namespaces, and returns the final counts. Packets on
    /// their way are lost.
    ///
    /// # Errors
    /// Those of [`Emulator::check`], and whatever the system refuses.
    pub fn stop(mut self) -> Result<Totals, Error> {
        self.halt()?;
        let deleted = [self.a.delete(), self.b.delete()];
        deleted.into_iter().collect::<Result<(), Error>>()?;
        self.check()?;
        Ok(self.totals())
    }

    /// Ends the thread; the devices go with it.
    fn halt(&mut self) -> Result<(), Error> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        // If the thread is gone already, so is the other end of the pipe.
        let _broken_pipe = self.stop.write_all(b"!");
        let panicked = |_| Error::Stopped("its thread panicked".to_owned());
        thread.join().map_err(panicked)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if self.thread.is_some()
            && let Err(error) = self.halt().and_then(|()| self.check())
        {
            // standard error may be closed
            let _ = writeln!(io::stderr(), "lowtide: {error}");
        }
    }
}

/// Sets up the device in a namespace. It never speaks on its own: no IPv6 link-local address and
/// no duplicate address detection.
fn configure(namespace: &Namespace, mtu: u32, addresses: &[(Ipv4Addr, Ipv6Addr)], ipv6: bool) -> Result<(), Error> {
    let mut commands = vec![format!("link set {DEVICE} mtu {mtu} txqueuelen {DEVICE_QUEUE}")];
    commands.extend(addresses.iter().map(|(v4, _)| format!("addr add {v4}/24 dev {DEVICE}")));
    if ipv6 {
        namespace.set(&format!("net/ipv6/conf/{DEVICE}/disable_ipv6"), "0")?;
        commands.push(format!("link set {DEVICE} addrgenmode none"));
        commands.extend(addresses.iter().map(|(_, v6)| format!("addr add {v6}/64 dev {DEVICE} nodad")));
    }
    commands.push(format!("link set {DEVICE} up"));
    namespace.ip(&commands.join("\n"))?;
    // Whatever the system's default is: a plain FIFO that never fills.
    namespace.tc(&format!("qdisc replace dev {DEVICE} root pfifo limit {DEVICE_QUEUE}"))
}
