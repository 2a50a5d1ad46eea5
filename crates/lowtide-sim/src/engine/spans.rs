// SPDX-License-Identifier: MIT OR Apache-2.0
//! Means over the spans that a scenario asks for.

use super::{control::Steered, events::Event, events::Events, flow::FlowState};
use crate::{
    FairShares, SpanFlow, SpanOutcome,
    scenario::{Scenario, Span},
};
use lowtide_net::Time;
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
    pub(super) fn outcome(&self, span: &Span, flows: &[FlowState<'_>], shares: &FairShares<'_>) -> SpanOutcome {
        let at = |bound| self.bounds.binary_search(&bound).ok().and_then(|index| self.sums.get(index));
        let (Some(before), Some(after)) = (at(span.from), at(span.to)) else { unreachable!("bounds are events") };
        let seconds = (span.to - span.from).as_secs_f64();
        let datagrams: Vec<f64> =
            before.iter().zip(after).map(|(before, after)| (after.datagrams - before.datagrams) as f64).collect();
        let mean = |(index, state): (usize, &FlowState<'_>)| {
            let (before, after) = (&before[index], &after[index]);
            let mean_bps = (after.delivered - before.delivered) as f64 * 8.0 / seconds;
            let fair = shares.of(index, span, &datagrams);
            let steered = after.steered.since(&before.steered);
            let while_steered = |sum: f64| (steered.seconds > 0.0).then(|| sum / steered.seconds);
            SpanFlow {
                name: state.flow.name.clone(),
                mean_bps,
                of_fair_share: fair.map(|fair| mean_bps / (fair * 8.0 / seconds)),
                target_bps: while_steered(8.0 * steered.target),
                weight: while_steered(steered.weight),
            }
        };
        let present = flows.iter().enumerate().filter(|(index, _)| shares.is_there(*index, span.from, span.to));
        SpanOutcome { from_s: span.from.as_secs_f64(), to_s: span.to.as_secs_f64(), flows: present.map(mean).collect() }
    }
}
