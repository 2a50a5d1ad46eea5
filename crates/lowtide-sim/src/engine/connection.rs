// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TCP connection between two hosts of the simulation.

use super::{events::Wake, traffic::Task};
use crate::{
    scenario::Tcp,
    tcp::{Receiver, Sender},
};
use lowtide_cc::CongestionControl;
use lowtide_net::Time;
use lowtide_port::Download;

/// Both ends of a connection.
pub(super) struct Connection {
    /// Its number; none before had it.
    pub(super) serial: u32,
    /// Its flow's index.
    pub(super) flow: u32,
    /// Its number within the flow.
    pub(super) number: u32,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) sender_wake: Wake,
    pub(super) receiver_wake: Wake,
    /// When it was opened.
    pub(super) opened: Time,
    /// What it was opened for; `None`: it is the one that its flow has for all its time.
    pub(super) task: Option<Task>,
}

impl Connection {
    pub(super) fn new(
        serial: u32,
        flow: u32,
        number: u32,
        (tcp, law, download): (&Tcp, Box<dyn CongestionControl>, Option<Download>),
        now: Time,
    ) -> Self {
        Self {
            serial,
            flow,
            number,
            sender: Sender::new(tcp, law),
            receiver: Receiver::new(tcp, tcp.law.ecn_use()).governed(download),
            sender_wake: Wake::default(),
            receiver_wake: Wake::default(),
            opened: now,
            task: None,
        }
    }

    /// Whether it still exists: its place may be free.
    pub(super) const fn is_open(&self) -> bool {
        self.serial != RETIRED
    }

    /// Its place is free; late packets and timers are ignored.
    pub(super) const fn retire(&mut self) {
        self.serial = RETIRED;
    }
}

/// No connection has this number.
const RETIRED: u32 = u32::MAX;
