// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means over the spans that a scenario asks for.

use super::{control::Steered, events::Event, events::Events, flow::FlowState};
use crate::{
    SpanFlow, SpanOutcome,
    scenario::{Direction, Scenario, Span, Transport},
};
use lowtide_net::{Schedule, Time};
use std::time::Duration;

/// What of a flow adds up over time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Payload bytes delivered.
    pub(super) delivered: u64,
    /// Bytes of the datagrams received, with their headers.
    pub(super) datagrams: u64,
    pub(super) steered: Steered,
}

/// The sums of all flows where a span begins or ends.
pub(super) struct Spans {
    /// Ascending.
    bounds: Vec<Duration>,
    sums: Vec<Vec<Sums>>,
}

impl Spans {
    pub(super) fn new(scenario: &Scenario, events: &mut Events) -> Self {
        let mut bounds: Vec<Duration> = scenario.spans.iter().flat_map(|span| [span.from, span.to]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        bounds.iter().for_each(|bound| events.plan(Time::ZERO + *bound, Event::Bound));
        Self { bounds, sums: Vec::new() }
    }

    /// The next bound is reached.
    pub(super) fn record(&mut self, sums: Vec<Sums>) {
        self.sums.push(sums);
    }

    /// The means of a span, of the flows that are there in it.
    pub(super) fn outcome(&self, span: &Span, flows: &[FlowState<'_>], links: &Links<'_>) -> SpanOutcome {
        let at = |bound| self.bounds.binary_search(&bound).ok().and_then(|index| self.sums.get(index));
        let (Some(before), Some(after)) = (at(span.from), at(span.to)) else { unreachable!("bounds are events") };
        let seconds = (span.to - span.from).as_secs_f64();
        let datagrams: Vec<f64> =
            before.iter().zip(after).map(|(before, after)| (after.datagrams - before.datagrams) as f64).collect();
        let mean = |(index, state): (usize, &FlowState<'_>)| {
            let (before, after) = (&before[index], &after[index]);
            let mean_bps = (after.delivered - before.delivered) as f64 * 8.0 / seconds;
            let fair_bps = links.fair_share(index, flows, span, &datagrams) * 8.0 / seconds;
            let steered = after.steered.since(&before.steered);
            let while_steered = |sum: f64| (steered.seconds > 0.0).then(|| sum / steered.seconds);
            SpanFlow {
                name: state.flow.name.clone(),
                mean_bps,
                of_fair_share: (fair_bps > 0.0).then(|| mean_bps / fair_bps),
                target_bps: while_steered(8.0 * steered.target),
                weight: while_steered(steered.weight),
            }
        };
        let present = flows.iter().enumerate().filter(|(_, state)| state.is_there(span.from, span.to));
        SpanOutcome { from_s: span.from.as_secs_f64(), to_s: span.to.as_secs_f64(), flows: present.map(mean).collect() }
    }
}

/// The bottlenecks, and which way the flows pass them.
pub(super) struct Links<'a> {
    pub(super) scenario: &'a Scenario,
    /// In the order of the scenario, the reverse one last.
    pub(super) capacities: Vec<&'a Schedule>,
}

impl Links<'_> {
    /// Payload bytes that a flow would have in a span if at each bottleneck the TCP flows had equal parts of what datagrams
    /// leave: what the narrowest of its bottlenecks gives it. A flow counts while it is there, and as one, however many
    /// connections it has. Zero for datagrams, and without a bottleneck.
    fn fair_share(&self, flow: usize, flows: &[FlowState<'_>], span: &Span, datagrams: &[f64]) -> f64 {
        let Transport::Tcp(tcp) = &flows[flow].flow.transport else { return 0.0 };
        let payload = f64::from(tcp.mss) / f64::from(tcp.mss + tcp.header);
        let whole = (span.to - span.from).as_secs_f64();
        let mut times: Vec<Duration> = flows.iter().flat_map(|it| [it.flow.start, it.end_or(span.to)]).collect();
        times.extend([span.from, span.to]);
        times.retain(|time| (span.from..=span.to).contains(time));
        times.sort_unstable();
        times.dedup();
        let parts = times.windows(2).filter(|part| flows[flow].is_there(part[0], part[1]));
        let share = |part: &[Duration]| {
            let seconds = (part[1] - part[0]).as_secs_f64();
            let of_link = |link: usize| {
                let through = || flows.iter().enumerate().filter(|(_, it)| self.path(it).contains(&link));
                let datagrams: f64 = through().map(|(index, _)| datagrams[index]).sum();
                let number = through().filter(|(_, it)| it.is_tcp() && it.is_there(part[0], part[1])).count();
                let carried = self.capacities[link].bytes_between(Time::ZERO + part[0], Time::ZERO + part[1]) as f64;
                (carried - datagrams * seconds / whole).max(0.0) / number.max(1) as f64
            };
            self.path(&flows[flow]).into_iter().map(of_link).reduce(f64::min).unwrap_or(0.0)
        };
        payload * parts.map(share).sum::<f64>()
    }

    /// The bottlenecks that a flow's data passes.
    fn path(&self, state: &FlowState<'_>) -> Vec<usize> {
        match state.flow.direction {
            Direction::Forward => state.flow.path.clone(),
            Direction::Reverse => self.scenario.reverse.iter().map(|_| self.scenario.bottlenecks.len()).collect(),
        }
    }
}
