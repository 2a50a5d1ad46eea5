// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is fixed for the life of a transfer, and what its controller sets as it learns.

use std::time::Duration;

use crate::{
    Flows, KernelActuator, KernelLaw, Pressure,
    ceiling::SocketLimit,
    release::{LINKS_SINCE, release},
};

/// The code point that marks the transfer's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dscp {
    /// Lower effort, RFC 8622.
    Le,
    /// Class selector 1, the older convention.
    Cs1,
    /// Leave it alone.
    None,
}

impl Dscp {
    /// The octet of the IP header, `None` to leave it alone.
    pub(crate) fn octet(self) -> Option<u32> {
        match self {
            Dscp::Le => Some(1 << 2),
            Dscp::Cs1 => Some(8 << 2),
            Dscp::None => None,
        }
    }
}

/// Which way data go that are governed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// What the program sends.
    #[default]
    Up,
    /// What it receives.
    Down,
    /// Both, each by a law of its own; the transfer's progress is what is sent.
    Both,
}

impl Direction {
    /// Whether what is sent is governed.
    pub fn has_up(self) -> bool {
        self != Direction::Down
    }

    /// Whether what is received is governed.
    pub fn has_down(self) -> bool {
        self != Direction::Up
    }

    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
            Direction::Both => "both",
        }
    }
}

/// What is fixed for the life of a transfer.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Which way data go that are governed.
    pub direction: Direction,
    /// The control law of its sockets.
    pub law: KernelLaw,
    /// How that law takes the weight.
    pub actuator: KernelActuator,
    /// The code point of its packets.
    pub dscp: Dscp,
    /// Keep sockets on our law when the program asks for another one.
    pub keep_law: bool,
    /// How the kernel comes to know our own law.
    pub registration: Registration,
    /// State per path of another transfer with the same law, to share; `None`: this one has its own.
    pub flows: Option<Flows>,
}

impl Setup {
    /// The usual one: with the law's usual actuator, in the lower-effort class, without laws of the program's choice.
    pub fn new(direction: Direction, law: KernelLaw) -> Setup {
        let actuator = KernelActuator::usual(&law);
        let (dscp, registration) = (Dscp::Le, Registration::Link);
        Setup { direction, law, actuator, dscp, keep_law: true, registration, flows: None }
    }
}

/// How the kernel comes to know a law of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Registration {
    /// By a link: the law leaves the kernel with the process, however that ends. From 6.4 on.
    #[default]
    Link,
    /// By itself, as kernels before 6.4 have it: the law stays if the process is killed, until a process deletes its
    /// map. Only for a machine that ends with the transfer.
    Plain,
}

impl Registration {
    /// What this machine's kernel has.
    pub fn of_this_kernel() -> Registration {
        if release() >= LINKS_SINCE { Registration::Link } else { Registration::Plain }
    }
}

/// What the controller sets as it learns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Steering {
    /// On the sockets without a goal of their own.
    pub pressure: Pressure,
    /// w, for programs that ask.
    pub weight: f64,
    /// w of what is received; 1: the windows are left to the stack.
    pub download_weight: f64,
    /// What is received is held to a trickle that keeps connections alive.
    pub download_held: bool,
    /// Sockets that share the budget.
    pub sockets: u32,
    /// Sum of the sending sockets' windows, in segments: newcomers start with their share of it.
    pub window: f64,
    /// Age of the heartbeat from which the programs behave as plain TCP.
    pub stale: Duration,
    /// What each socket may send, whatever its law lets it.
    pub limit: Option<SocketLimit>,
}
