// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run, and what is measured of it.

use crate::{
    Failure,
    matrix::{Cell, Place},
};
use lowtide_net::Time;
use lowtide_sim::{
    Outcome,
    observe::{FlowSample, Observer},
    run,
    scenario::Scenario,
};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a run without the transfer's influence came to, second by second: the sums at 0 s, at 1 s, …
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Ideal {
    /// Payload bytes that the foreground has had delivered.
    bytes: Vec<f64>,
    /// Web pages that are complete, and the sum of the logarithms of the seconds that they took.
    pages: Vec<f64>,
    log_seconds: Vec<f64>,
}

/// What became of a cell.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Measured {
    /// From the deadline to the end, in parts of the time that there was; `None`: it was not done within the overtime.
    pub(crate) late: Option<f64>,
    /// The part that was done by the deadline.
    pub(crate) done: f64,
    /// While it ran: the foreground's rate in parts of the ideal one; of web pages their rate of completion. `None`:
    /// there is no foreground.
    pub(crate) kept: Option<f64>,
    /// What the foreground lost beyond what the deadline needs, in parts of what the ideal gives it in the whole time.
    /// `None` as for `kept`, and for web pages.
    pub(crate) beyond: Option<f64>,
    /// While it ran: the part that was used of what the ideal's foreground left; `None`: less than `IDLE` was left.
    pub(crate) idle: Option<f64>,
    /// For how much of its time before the deadline the weight rested on a model.
    pub(crate) modelled: f64,
    /// And for how much of it the weight was 1: the law could not be pressed harder.
    pub(crate) pressed: f64,
}

/// What a plain CUBIC flow in the transfer's place came to.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Plain {
    /// What it took, in parts of the time that there was; `None`: it was not done by the deadline.
    pub(crate) taken: Option<f64>,
}

/// CUBIC meets a deadline if it is done in this part of the time: a transfer that is steered spends some of it in the
/// background before it presses.
const IN_GOOD_TIME: f64 = 0.85;

impl Plain {
    /// Runs a scenario whose last flow is this one; it begins at `begin` and has `time`, seconds.
    pub(crate) fn measure(scenario: &str, begin: f64, time: f64) -> Result<Self, Failure> {
        let scenario = read(scenario)?;
        let transfer = scenario.flows.len() - 1;
        let size = scenario.flows[transfer].source.size().ok_or("the transfer has no size")?;
        let outcome = run(&scenario, &mut Watcher::new(scenario.flows.len(), Some((transfer, size as f64))));
        Ok(Self { taken: outcome.flows[transfer].finished_s.map(|end| (end - begin) / time) })
    }

    /// Whether the deadline is one that CUBIC meets.
    pub(crate) fn meets(&self) -> bool {
        self.taken.is_some_and(|taken| taken <= IN_GOOD_TIME)
    }
}

/// Less than this part of the link is nothing to be used.
const IDLE: f64 = 0.2;

impl Measured {
    pub(crate) fn met(&self) -> bool {
        self.late.is_some_and(|late| late <= 0.0)
    }
}

/// Follows deliveries, until one flow has had enough of them.
pub(crate) struct Watcher {
    /// Sums of each flow at 0 s, at 1 s, …
    pub(crate) delivered: Vec<Vec<f64>>,
    /// The weight of the one that has one at 1 s, at 2 s, …, as long as it has one.
    weights: Vec<f64>,
    /// A flow, and its bytes.
    until: Option<(usize, f64)>,
}

impl Watcher {
    pub(crate) fn new(flows: usize, until: Option<(usize, f64)>) -> Self {
        Self { delivered: vec![vec![0.0]; flows], weights: Vec::new(), until }
    }
}

impl Observer for Watcher {
    fn wants_samples(&self) -> bool {
        true
    }

    fn flow(&mut self, sample: &FlowSample<'_>) {
        debug_assert_eq!(sample.now, Time::from_nanos(self.delivered[sample.flow].len() as u64 * 1_000_000_000));
        self.delivered[sample.flow].push(sample.delivered as f64);
        self.weights.extend(sample.control.map(|control| control.weight));
    }

    fn has_seen_enough(&self) -> bool {
        self.until.is_some_and(|(flow, bytes)| self.delivered[flow].last() >= Some(&bytes))
    }
}

/// The sum at a time, where sums are known at each second.
pub(crate) fn at(sums: &[f64], seconds: f64) -> f64 {
    let last = sums.len().saturating_sub(1);
    let (before, part) = ((seconds as usize).min(last), seconds.fract());
    match (sums.get(before), sums.get(before + 1)) {
        (Some(before), Some(after)) => before + part * (after - before),
        (Some(before), None) => *before,
        _ => 0.0,
    }
}

/// What came between two times.
pub(crate) fn between(sums: &[f64], from: f64, to: f64) -> f64 {
    at(sums, to) - at(sums, from)
}

/// Reads a scenario of this bench.
pub(crate) fn read(text: &str) -> Result<Scenario, Failure> {
    Ok(Scenario::parse(text, Path::new("cell.toml"), &[])?)
}

impl Ideal {
    /// Runs the yardstick. Without competing flows there is nothing to run.
    pub(crate) fn measure(place: &Place) -> Result<Self, Failure> {
        if place.competitors().flows == 0 {
            return Ok(Self::default());
        }
        let scenario = read(&place.ideal())?;
        let mut watcher = Watcher::new(scenario.flows.len(), None);
        let outcome = run(&scenario, &mut watcher);
        Ok(Self::of(&watcher, &outcome))
    }

    /// Of a run whose last flow is the transfer.
    fn of(watcher: &Watcher, outcome: &Outcome) -> Self {
        let flows = watcher.delivered.split_last().map_or(&[][..], |it| it.1);
        let seconds = watcher.delivered[0].len();
        let bytes = (0..seconds).map(|second| flows.iter().map(|flow| flow[second]).sum()).collect();
        let mut ideal = Self { bytes, pages: vec![0.0; seconds], log_seconds: vec![0.0; seconds] };
        for page in outcome.flows.iter().flat_map(|flow| &flow.transfers) {
            // complete by the end of this second
            let second = (page.start_s + page.completion_s) as usize + 1;
            if second < seconds {
                ideal.pages[second] += 1.0;
                ideal.log_seconds[second] += libm::log(page.completion_s);
            }
        }
        for second in 1..seconds {
            ideal.pages[second] += ideal.pages[second - 1];
            ideal.log_seconds[second] += ideal.log_seconds[second - 1];
        }
        ideal
    }

    /// What the foreground leaves of the link while the transfer has its time, bits per second.
    pub(crate) fn left(&self, place: &Place) -> f64 {
        let rate = between(&self.bytes, place.begin(), place.begin() + place.time()) * 8.0 / place.time();
        (place.capacity() - rate).max(0.0)
    }

    /// The feasible bound, bits per second: see the head of `main.rs`.
    pub(crate) fn bound(&self, place: &Place) -> f64 {
        self.left(place).max(place.fair_share())
    }

    /// The geometric mean of the times that pages took, seconds; `None` if there were none.
    fn page_time(&self, from: f64, to: f64) -> Option<f64> {
        let pages = between(&self.pages, from, to);
        (pages > 0.0).then(|| libm::exp(between(&self.log_seconds, from, to) / pages))
    }
}

/// Runs a cell.
pub(crate) fn measure(cell: &Cell, ideal: &Ideal) -> Result<Measured, Failure> {
    let place = &cell.place;
    let scenario = read(&cell.scenario(ideal.bound(place)))?;
    let transfer = scenario.flows.len() - 1;
    let size = scenario.flows[transfer].source.size().ok_or("the transfer has no size")? as f64;
    let mut watcher = Watcher::new(scenario.flows.len(), Some((transfer, size)));
    let outcome = run(&scenario, &mut watcher);
    let it = outcome.flows[transfer].deadlines.first().ok_or("the transfer has no deadline")?;
    let (begin, due) = (place.begin(), place.begin() + place.time());
    let end = it.finished_s.unwrap_or(due).min(due);
    let here = Ideal::of(&watcher, &outcome);
    let foreground = between(&here.bytes, begin, end);
    let ideally = between(&ideal.bytes, begin, end);
    let moved = between(&watcher.delivered[transfer], begin, end);
    let has_rate = ideally > 0.0 && !place.competitors().web;
    let needed = (size - ideal.left(place) * place.time() / 8.0).max(0.0);
    let left = place.capacity() / 8.0 * (end - begin) - ideally;
    let times = &it.basis_s;
    let weights = &watcher.weights[..watcher.weights.len().min(place.time() as usize)];
    let full = weights.iter().filter(|weight| **weight > 0.99).count();
    Ok(Measured {
        late: it.finished_s.map(|at| (at - due) / place.time()),
        done: between(&watcher.delivered[transfer], begin, due) / size,
        kept: match place.competitors().web {
            true => ideal.page_time(begin, end).zip(here.page_time(begin, end)).map(|(ideal, here)| ideal / here),
            false => has_rate.then(|| foreground / ideally),
        },
        beyond: has_rate.then(|| (ideally - foreground - needed) / between(&ideal.bytes, begin, due)),
        idle: (left > IDLE * place.capacity() / 8.0 * (end - begin)).then(|| (foreground + moved - ideally) / left),
        modelled: times.model / (times.model + times.feedback + times.fallback()),
        pressed: full as f64 / weights.len().max(1) as f64,
    })
}
