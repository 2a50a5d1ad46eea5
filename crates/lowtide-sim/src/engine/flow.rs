// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flow at work, and what is measured of it.

use super::{
    connection::Connection,
    control::{Control, Steered},
    events::Wake,
    measure::Times,
    network::Traveller,
    traffic::Application,
};
use crate::{
    CompletedTransfer, DeadlineOutcome, FlowOutcome,
    scenario::{Flow, Tcp, Transport},
    tcp::{self, Sender},
};
use lowtide_cc::{Actuator, CongestionControl, Random, SharedLaw};
use lowtide_net::Time;
use lowtide_port::{Download, Downloads, Ported};
use std::time::Duration;

/// Counts of connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// Payload bytes delivered.
    pub(super) delivered: u64,
    pub(super) retransmits: u64,
    pub(super) reductions: u64,
    pub(super) timeouts: u64,
}

impl Totals {
    pub(super) fn add(&mut self, sender: &Sender) {
        let statistics = sender.statistics();
        self.delivered += sender.acked_bytes();
        self.retransmits += statistics.retransmits;
        self.reductions += statistics.reductions;
        self.timeouts += statistics.timeouts;
    }

    pub(super) fn with<'c>(mut self, connections: impl Iterator<Item = &'c Connection>) -> Self {
        connections.for_each(|it| self.add(&it.sender));
        self
    }
}

/// A flow of the scenario.
pub(super) struct FlowState<'a> {
    pub(super) flow: &'a Flow,
    pub(super) application: Application,
    pub(super) wake: Wake,
    /// Seeds of its connections.
    pub(super) seeds: Random,
    pub(super) data_route: u32,
    pub(super) ack_route: u32,
    /// Bytes of header on its TCP packets.
    pub(super) header: u32,
    /// The connection that it has for all its time.
    pub(super) connection: Option<u32>,
    /// How its law takes a weight.
    pub(super) actuator: Option<Actuator>,
    /// What its connections know of the path, under a law that they share.
    shared: Option<SharedLaw>,
    /// What its connections share at the receiver.
    downloads: Option<Downloads>,
    /// What steers the transfer that is under way towards its deadline.
    pub(super) control: Option<Control>,
    pub(super) control_wake: Wake,
    /// What that has added up to.
    pub(super) steered: Steered,
    /// Transfers with a deadline that are over.
    pub(super) deadlines: Vec<DeadlineOutcome>,
    /// Connections opened.
    pub(super) connections: u32,
    /// What connections that are over have done.
    pub(super) past: Totals,
    /// Datagrams sent.
    pub(super) datagrams: u64,
    /// Payload bytes of datagrams received.
    pub(super) delivered: u64,
    /// The same with their headers.
    pub(super) received: u64,
    /// Payload bytes delivered when the measured span began.
    pub(super) delivered_before: u64,
    /// Payload bytes delivered at the latest sample.
    pub(super) sampled: u64,
    /// Round-trip samples of the measured span.
    pub(super) rtt: Times,
    /// Time in queues of the packets of the measured span.
    queue: Times,
    /// One-way delay of the newest packet received.
    pub(super) latest_delay: Option<Duration>,
    pub(super) finished: Option<Time>,
    /// Transfers that are complete.
    pub(super) transfers: Vec<CompletedTransfer>,
    /// Room for the law's inner values.
    pub(super) inner: Vec<(&'static str, f64)>,
}

impl<'a> FlowState<'a> {
    pub(super) fn new(flow: &'a Flow, data_route: u32, ack_route: u32, seed: u64) -> Self {
        let mut seeds = Random::new(seed);
        let header = match &flow.transport {
            Transport::Tcp(tcp) => tcp.header,
            Transport::Udp => 0,
        };
        Self {
            flow,
            application: Application::new(&flow.source, Time::ZERO + flow.start, seeds.bits()),
            wake: Wake::default(),
            seeds,
            data_route,
            ack_route,
            header,
            connection: None,
            actuator: flow.steered_by(),
            shared: None,
            downloads: None,
            control: None,
            control_wake: Wake::default(),
            steered: Steered::default(),
            deadlines: Vec::new(),
            connections: 0,
            past: Totals::default(),
            datagrams: 0,
            delivered: 0,
            received: 0,
            delivered_before: 0,
            sampled: 0,
            rtt: Times::new(),
            queue: Times::new(),
            latest_delay: None,
            finished: None,
            transfers: Vec::new(),
            inner: Vec::new(),
        }
    }

    /// Payload bytes of a full segment; 1 for UDP, which has no window.
    pub(super) fn mss(&self) -> f64 {
        match &self.flow.transport {
            Transport::Tcp(tcp) => f64::from(tcp.mss),
            Transport::Udp => 1.0,
        }
    }

    /// When all of its data had been acknowledged.
    pub(super) fn finished(&self) -> Option<Duration> {
        self.finished.map(|at| at - Time::ZERO)
    }

    /// A data packet has arrived.
    pub(super) fn record_delay(&mut self, traveller: &Traveller, now: Time, measure_from: Time) {
        self.latest_delay = Some(now - traveller.sent);
        if now >= measure_from {
            self.queue.record(traveller.queued);
        }
    }

    /// The law of its next connection, with the weight that it has now. All connections get theirs here.
    pub(super) fn law(&mut self, tcp: &Tcp) -> Box<dyn CongestionControl> {
        let seed = self.seeds.bits();
        let actuator = self.actuator.as_ref();
        let mut law = if self.flow.source.opens_connections() && tcp::is_shared(tcp) {
            self.shared.get_or_insert_with(|| tcp::shared_law(tcp, actuator, seed)).connect()
        } else {
            tcp::law(tcp, actuator, seed)
        };
        let fixed = self.flow.weight.filter(|_| self.flow.receiver.is_none()).map(|weight| (weight, 1.0));
        let steered = self.control.as_ref().map(|control| (control.state().weight, control.state().price_ratio));
        if let (Some((weight, ratio)), Some(law)) = (fixed.or(steered), law.weighted()) {
            law.set_weight_and_ratio(weight, ratio);
        }
        law
    }

    /// What governs the window of its next connection at the receiver.
    pub(super) fn download(&mut self) -> Option<Download> {
        let law = self.flow.receiver.as_ref()?;
        let (weight, seed) = (self.flow.weight, self.seeds.bits());
        let new = || Downloads::new(&Ported::new(law).expect("the scenario was checked"), weight, seed);
        Some(self.downloads.get_or_insert_with(new).connect())
    }

    /// What it sent is through, or it was stopped: there is no connection any more. Gives whether the flow goes on,
    /// with another transfer.
    pub(super) fn goes_on(&mut self, now: Time) -> bool {
        let Some(control) = self.control.take() else { return false };
        self.deadlines.push(control.outcome(control.is_complete(), now));
        let stopped = self.flow.stop.is_some_and(|stop| now >= Time::ZERO + stop);
        let Some(gap) = self.flow.deadline.as_ref().and_then(|deadline| deadline.gap).filter(|_| !stopped) else {
            return false;
        };
        self.connection = None;
        self.shared = None;
        self.downloads = None;
        self.application = Application::new(&self.flow.source, now + gap, self.seeds.bits());
        true
    }

    /// The end of a flow whose source opens connections of its own, once all of them are over and no other will come.
    pub(super) fn end_if_over(&mut self, now: Time) {
        if self.finished.is_none() && self.application.is_over() && !self.goes_on(now) {
            self.finished = Some(now);
        }
    }

    /// What became of it, with `delivered` payload bytes in all.
    pub(super) fn outcome<'c>(
        &self,
        delivered: u64,
        live: impl Iterator<Item = &'c Connection>,
        measure_from: Time,
        end: Time,
    ) -> FlowOutcome {
        let totals = self.past.with(live);
        let from = measure_from.max(Time::ZERO + self.flow.start);
        let stop = self.flow.stop.map_or(end, |stop| Time::ZERO + stop);
        let active = (self.finished.unwrap_or(stop).min(end) - from).as_secs_f64();
        let cc = match &self.flow.transport {
            Transport::Tcp(tcp) => tcp.law.to_string(),
            Transport::Udp => "udp".to_owned(),
        };
        let under_way = self.control.as_ref().map(|control| control.outcome(false, end));
        let deadlines = self.deadlines.iter().cloned().chain(under_way).collect();
        FlowOutcome {
            name: self.flow.name.clone(),
            cc,
            mean_bps: if active > 0.0 { (delivered - self.delivered_before) as f64 * 8.0 / active } else { 0.0 },
            acked_bytes: delivered,
            finished_s: self.finished.map(|at| (at - Time::ZERO).as_secs_f64()),
            retransmits: totals.retransmits,
            reductions: totals.reductions,
            timeouts: totals.timeouts,
            min_rtt_ms: self.rtt.min_ms(),
            mean_rtt_ms: self.rtt.mean_ms(),
            p95_rtt_ms: self.rtt.p95_ms(),
            mean_queue_ms: self.queue.mean_ms(),
            p95_queue_ms: self.queue.p95_ms(),
            transfers: self.transfers.clone(),
            deadlines,
        }
    }
}
