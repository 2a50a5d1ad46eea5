// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a simulation tells: samples while it runs, and what came out.

use super::{Meter, Simulation};
use crate::{
    BottleneckOutcome, FairShares, Outcome,
    engine::{events::Event, flow::FlowState, measure::jain, spans::Sums},
    observe::{BottleneckSample, FlowSample},
    scenario::Transport,
};
use lowtide_net::{Statistics, Time};

impl Simulation<'_> {
    /// The measured span begins.
    pub(super) fn on_measure(&mut self) {
        for meter in &mut self.meters {
            meter.before = self.network.link(meter.link).statistics();
        }
        for index in 0..self.flows.len() {
            self.flows[index].delivered_before = self.delivered(index);
        }
    }

    /// A span begins or ends.
    pub(super) fn on_bound(&mut self) {
        let sums = |index: usize| {
            let state = &self.flows[index];
            Sums { delivered: self.delivered(index), datagrams: state.received, steered: state.steered }
        };
        self.spans.record((0..self.flows.len()).map(sums).collect());
    }

    pub(super) fn on_sample(&mut self) {
        let span = (self.now - self.sampled_at).as_secs_f64();
        for index in 0..self.flows.len() {
            let delivered = self.delivered(index);
            let mut inner = std::mem::take(&mut self.flows[index].inner);
            inner.clear();
            let state = &self.flows[index];
            let connection = state.connection.map(|place| &self.connections[place as usize]);
            // connections that share a law's state show the same of it
            if let Some(connection) = connection.or_else(|| self.live_connections(index).next()) {
                connection.sender.law().inspect(&mut |name, value| inner.push((name, value)));
            }
            let totals = state.past.with(self.live_connections(index));
            let mss = state.mss();
            let segments = |bytes: u64| bytes as f64 / mss;
            self.observer.flow(&FlowSample {
                now: self.now,
                flow: index,
                delivered,
                rate_bps: (delivered - state.sampled) as f64 * 8.0 / span,
                cwnd: connection.map(|it| segments(it.sender.law().window())),
                ssthresh: connection.and_then(|it| it.sender.ssthresh()).map(segments),
                in_flight: self.live_connections(index).map(|it| it.sender.in_flight()).sum(),
                rtt_ms: connection.and_then(|it| it.sender.latest_rtt()).map(|rtt| rtt.as_secs_f64() * 1e3),
                one_way_delay_ms: state.latest_delay.map(|delay| delay.as_secs_f64() * 1e3),
                retransmits: totals.retransmits,
                reductions: totals.reductions,
                inner: &inner,
                control: state.control.as_ref().map(|control| *control.state()),
            });
            let state = &mut self.flows[index];
            (state.sampled, state.inner) = (delivered, inner);
        }
        for (index, meter) in self.meters.iter_mut().enumerate() {
            let link = self.network.link(meter.link);
            let statistics = link.statistics();
            let since = difference(&statistics, &meter.sampled);
            let capacity = meter.capacity.bytes_between(self.sampled_at, self.now) as f64;
            let queued = link.queued();
            self.observer.bottleneck(&BottleneckSample {
                now: self.now,
                bottleneck: index,
                queue_packets: queued.packets,
                queue_bytes: queued.bytes,
                queue_ms: since.queueing_delay_mean().as_secs_f64() * 1e3,
                packets: since.delivered.packets,
                drops: since.dropped().packets,
                marks: since.marked.packets,
                utilisation: if capacity > 0.0 { since.delivered.bytes as f64 / capacity } else { 0.0 },
            });
            meter.sampled = statistics;
        }
        self.sampled_at = self.now;
        if self.observer.has_seen_enough() {
            self.end = self.now;
        }
        self.events.plan(self.now + self.scenario.sample_interval, Event::Sample);
    }

    pub(super) fn outcome(&self) -> Outcome {
        let flows: Vec<_> = (0..self.flows.len())
            .map(|index| {
                let state = &self.flows[index];
                state.outcome(self.delivered(index), self.live_connections(index), self.measure_from, self.end)
            })
            .collect();
        let tcp = self.flows.iter().zip(&flows).filter(|(state, _)| matches!(state.flow.transport, Transport::Tcp(_)));
        let rates: Vec<f64> = tcp.map(|(_, outcome)| outcome.mean_bps).collect();
        let shares = FairShares::new(self.scenario, self.flows.iter().map(FlowState::finished));
        let spans = self.scenario.spans.iter().map(|span| self.spans.outcome(span, &self.flows, &shares)).collect();
        Outcome {
            jain: jain(&rates),
            flows,
            spans,
            bottlenecks: self.meters.iter().map(|meter| self.bottleneck(meter)).collect(),
            packets: self.packets,
            events: self.events.handled,
            seed: self.scenario.seed,
        }
    }

    fn bottleneck(&self, meter: &Meter<'_>) -> BottleneckOutcome {
        let span = difference(&self.network.link(meter.link).statistics(), &meter.before);
        let after = |time: Time| Time::from_nanos(time.as_nanos().saturating_add(1));
        // what arrives as the span ends belongs to it, and so does the capacity that brought it
        let capacity = meter.capacity.bytes_between(after(self.measure_from), after(self.end)) as f64;
        let used = if capacity > 0.0 { span.delivered.bytes as f64 / capacity } else { 0.0 };
        BottleneckOutcome {
            name: meter.bottleneck.name.clone(),
            // a packet counts when it arrives; one that arrives in the span may have been sent before it
            utilisation: used.min(1.0),
            mean_queue_ms: meter.queue.mean_ms().unwrap_or(0.0),
            p95_queue_ms: meter.queue.p95_ms().unwrap_or(0.0),
            drops: (span.overflow + span.aqm).packets,
            losses: (span.policed + span.lost).packets,
            marks: span.marked.packets,
        }
    }
}

/// What was counted between two moments.
fn difference(after: &Statistics, before: &Statistics) -> Statistics {
    let mut span = *after;
    span.delivered -= before.delivered;
    span.overflow -= before.overflow;
    span.aqm -= before.aqm;
    span.policed -= before.policed;
    span.lost -= before.lost;
    span.marked -= before.marked;
    span.queueing_delay_sum -= before.queueing_delay_sum;
    span
}
