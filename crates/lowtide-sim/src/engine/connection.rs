// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TCP connection between two hosts of the simulation.

use super::events::Wake;
use crate::{
    scenario::Tcp,
    tcp::{Receiver, Sender},
};
use lowtide_cc::Actuator;
use lowtide_net::Time;

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
    /// For a page of a session: how many it will ask for afterwards.
    pub(super) pages_left: Option<u32>,
}

impl Connection {
    pub(super) fn new(
        serial: u32,
        flow: u32,
        number: u32,
        (tcp, actuator): (&Tcp, Option<&Actuator>),
        now: Time,
        seed: u64,
    ) -> Self {
        Self {
            serial,
            flow,
            number,
            sender: Sender::new(tcp, actuator, seed),
            receiver: Receiver::new(tcp, tcp.law.ecn_use()),
            sender_wake: Wake::default(),
            receiver_wake: Wake::default(),
            opened: now,
            pages_left: None,
        }
    }
}
