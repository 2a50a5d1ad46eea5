// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two hosts and the bottleneck between them.

use anyhow::Result;
use lowtide_emu::Namespace;
use std::{net::Ipv4Addr, time::Duration};

/// Two hosts, each a network namespace, and what lies between them.
pub(crate) trait Route {
    /// The host that flows through the bottleneck start from.
    fn a(&self) -> &Namespace;

    /// The host that they go to.
    fn b(&self) -> &Namespace;

    /// The device of the first host that leads to the other.
    fn a_device(&self) -> &str;

    /// The same of the other host.
    fn b_device(&self) -> &str;

    /// The address of the first host.
    fn a4(&self) -> Ipv4Addr;

    /// The address of the other host for the flow of this index, as far away as that flow's round trip has it.
    fn b4(&self, flow: usize) -> Ipv4Addr;

    /// The scenario begins now, and with it what changes in the course of time.
    fn begin(&self) {}

    /// What was counted so far, through the bottleneck and in the other direction.
    ///
    /// # Errors
    /// It cannot be read, or it has failed.
    fn counts(&self) -> Result<[Counts; 2]>;

    /// Takes it down.
    ///
    /// # Errors
    /// It was not in order to the end.
    fn stop(self: Box<Self>) -> Result<()>;
}

/// What a queue and its link have counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Packets delivered.
    pub(crate) packets: u64,
    /// Bytes of these.
    pub(crate) bytes: u64,
    /// Packets dropped by the queue or the policer.
    pub(crate) drops: u64,
    /// Packets marked.
    pub(crate) marks: u64,
    /// Packets in the buffer now.
    pub(crate) queued_packets: u64,
    /// Bytes in the buffer now.
    pub(crate) queued_bytes: u64,
    /// How long the delivered packets waited, in sum.
    pub(crate) waited: Duration,
}
