// SPDX-License-Identifier: MIT OR Apache-2.0
//! Equal parts of what the bottlenecks of a scenario carry.

use crate::scenario::{Direction, Scenario, Span, Transport};
use lowtide_net::{Schedule, Time};
use std::time::Duration;

/// Which flows are there when, and what of the bottlenecks would be each one's.
#[derive(Clone, Debug)]
pub struct FairShares<'a> {
    scenario: &'a Scenario,
    /// In the order of the scenario, that of the reverse one last.
    capacities: Vec<Schedule>,
    /// When each flow was over, if ever.
    over: Vec<Option<Duration>>,
}

impl<'a> FairShares<'a> {
    /// With when all data of each flow had been acknowledged.
    pub fn new(scenario: &'a Scenario, finished: impl IntoIterator<Item = Option<Duration>>) -> Self {
        let capacities = scenario.bottlenecks.iter().chain(&scenario.reverse).map(|link| link.capacity()).collect();
        let over = scenario.flows.iter().zip(finished).map(|(flow, finished)| finished.or(flow.stop)).collect();
        Self { scenario, capacities, over }
    }

    /// Whether some of this time is the flow's own.
    pub fn is_there(&self, flow: usize, from: Duration, to: Duration) -> bool {
        self.scenario.flows[flow].start < to && self.end_or(flow, to) > from
    }

    /// When it is over, if before `end`.
    fn end_or(&self, flow: usize, end: Duration) -> Duration {
        self.over[flow].map_or(end, |over| over.min(end))
    }

    /// Payload bytes that a flow would have in a span if at each bottleneck the TCP flows had equal parts of what
    /// datagrams leave: what the narrowest of its bottlenecks gives it. A flow counts while it is there, and as one,
    /// however many connections it has. `None` for datagrams, and where there is nothing to share. `datagrams`: the
    /// bytes that each flow had received in them, with their headers.
    pub fn of(&self, flow: usize, span: &Span, datagrams: &[f64]) -> Option<f64> {
        let flows = &self.scenario.flows;
        let Transport::Tcp(tcp) = &flows[flow].transport else { return None };
        let payload = f64::from(tcp.mss) / f64::from(tcp.mss + tcp.header);
        let whole = (span.to - span.from).as_secs_f64();
        let all = 0..flows.len();
        let mut times: Vec<Duration> = all.clone().flat_map(|it| [flows[it].start, self.end_or(it, span.to)]).collect();
        times.extend([span.from, span.to]);
        times.retain(|time| (span.from..=span.to).contains(time));
        times.sort_unstable();
        times.dedup();
        let parts = times.windows(2).filter(|part| self.is_there(flow, part[0], part[1]));
        let is_tcp = |it: &usize| matches!(flows[*it].transport, Transport::Tcp(_));
        let share = |part: &[Duration]| {
            let seconds = (part[1] - part[0]).as_secs_f64();
            let of_link = |link: usize| {
                let through = || all.clone().filter(|it| self.path(*it).contains(&link));
                let datagrams: f64 = through().map(|it| datagrams[it]).sum();
                let number = through().filter(|it| is_tcp(it) && self.is_there(*it, part[0], part[1])).count();
                let carried = self.capacities[link].bytes_between(Time::ZERO + part[0], Time::ZERO + part[1]) as f64;
                (carried - datagrams * seconds / whole).max(0.0) / number.max(1) as f64
            };
            self.path(flow).into_iter().map(of_link).reduce(f64::min).unwrap_or(0.0)
        };
        let fair = payload * parts.map(share).sum::<f64>();
        (fair > 0.0).then_some(fair)
    }

    /// The bottlenecks that a flow's data passes.
    fn path(&self, flow: usize) -> Vec<usize> {
        let flow = &self.scenario.flows[flow];
        match flow.direction {
            Direction::Forward => flow.path.clone(),
            Direction::Reverse => self.scenario.reverse.iter().map(|_| self.scenario.bottlenecks.len()).collect(),
        }
    }
}
