// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spans between two changes of the competition.

use super::{Failure, Measured, Point, spread};
use lowtide_sim::scenario::{Flow, Scenario, Source};

/// A time with the same competitors.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    from: f64,
    to: f64,
    competitors: usize,
    /// What an equal share of the link carries, payload in Mbit/s.
    fair: f64,
}

/// Those from the transfer's start to its deadline.
pub(crate) fn spans(scenario: &Scenario) -> Result<Vec<Span>, Failure> {
    let (transfer, others) = scenario.flows.split_first().ok_or("there is no transfer")?;
    let deadline = transfer.deadline.as_ref().ok_or("the first flow is the transfer")?;
    let (start, due) = (transfer.start.as_secs_f64(), (transfer.start + deadline.after).as_secs_f64());
    let left = left(scenario);
    let mut competitors = Vec::new();
    for flow in others.iter().filter(|flow| flow.source == Source::Greedy) {
        competitors.push((flow.start.as_secs_f64(), flow.stop.map_or(f64::INFINITY, |stop| stop.as_secs_f64())));
    }
    let mut changes: Vec<f64> = competitors.iter().flat_map(|(from, to)| [*from, *to]).chain([start, due]).collect();
    changes.retain(|t| (start..=due).contains(t));
    changes.sort_by(f64::total_cmp);
    changes.dedup();
    let span = |ends: &[f64]| {
        let present = competitors.iter().filter(|(from, to)| *from <= ends[0] && ends[0] < *to).count();
        Span { from: ends[0], to: ends[1], competitors: present, fair: left / (present + 1) as f64 }
    };
    Ok(changes.windows(2).map(span).collect())
}

/// What the datagrams leave of the link, payload of TCP in Mbit/s.
pub(crate) fn left(scenario: &Scenario) -> f64 {
    const PAYLOAD: f64 = 1448.0 / 1500.0;
    let datagrams = |flow: &Flow| match flow.source {
        Source::Poisson { bytes, mean } => (bytes + 28) as f64 * 8e-6 / mean.as_secs_f64(),
        _ => 0.0,
    };
    let rate = scenario.bottlenecks[0].rate.bits_per_second() as f64 / 1e6;
    (rate - scenario.flows.iter().map(datagrams).sum::<f64>()) * PAYLOAD
}

impl Span {
    /// The column's head.
    pub(crate) fn head(&self) -> String {
        format!("{}–{} s: {}", self.from, self.to, self.competitors)
    }

    /// The mean rate as part of a fair share, while the transfer lasted.
    pub(crate) fn show(&self, runs: &[Measured]) -> String {
        let rates = runs.iter().filter_map(|run| self.rate(run)).collect::<Vec<_>>();
        if rates.is_empty() {
            "–".to_owned()
        } else {
            spread(rates.into_iter().map(|rate| rate / self.fair), 100.0, 0)
        }
    }

    /// The mean weight.
    pub(crate) fn weights(&self, runs: &[Measured]) -> String {
        let mean = |run: &Measured| {
            let weights: Vec<f64> = self.points(run).map(|point| point.weight).collect();
            (!weights.is_empty()).then(|| weights.iter().sum::<f64>() / weights.len() as f64)
        };
        let means: Vec<f64> = runs.iter().filter_map(mean).collect();
        if means.is_empty() { "–".to_owned() } else { spread(means.into_iter(), 1.0, 3) }
    }

    fn points<'a>(&self, run: &'a Measured) -> impl Iterator<Item = &'a Point> {
        run.course.iter().filter(|point| (self.from..self.to).contains(&point.t))
    }

    /// Mbit/s; `None` if the transfer was done within the first half second.
    fn rate(&self, run: &Measured) -> Option<f64> {
        let to = run.done.map_or(self.to, |done| done.min(self.to));
        (to > self.from + 0.5).then(|| (bytes_at(run, to) - bytes_at(run, self.from)) * 8e-6 / (to - self.from))
    }
}

/// Bytes acknowledged by then, between two looks by interpolation.
fn bytes_at(run: &Measured, t: f64) -> f64 {
    let after = run.course.partition_point(|point| point.t < t);
    match (after.checked_sub(1).map(|before| run.course[before]), run.course.get(after)) {
        (Some(before), Some(next)) => {
            let part = (t - before.t) / (next.t - before.t);
            before.bytes as f64 + part * (next.bytes - before.bytes) as f64
        }
        (Some(last), None) => last.bytes as f64,
        (None, _) => 0.0,
    }
}
