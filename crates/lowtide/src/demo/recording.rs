// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured in one act.

use std::process::ExitCode;

use super::acts::{Act, Bulk};

/// One of the two flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// The cross traffic.
    Foreground,
    /// The bulk transfer.
    Bulk,
}

/// What the receivers had at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// Seconds since the start of the act.
    pub(super) t: f64,
    /// Bytes of the foreground since then.
    pub(super) foreground: u64,
    /// Bytes of the bulk transfer since then.
    pub(super) bulk: u64,
}

/// One act, as it went.
#[derive(Debug, Clone)]
pub(super) struct Recording {
    /// Which one.
    pub(super) act: Act,
    /// In the order of time, the first at 0.
    pub(super) samples: Vec<Sample>,
    /// Mean queueing delay of each second in which packets passed, in ms.
    pub(super) queue: Vec<f64>,
    /// When the receiver had the whole bulk transfer, where it is to end.
    pub(super) finished: Option<f64>,
}

impl Recording {
    /// An act that starts now.
    pub(super) fn new(act: &Act) -> Recording {
        let start = Sample { t: 0.0, foreground: 0, bulk: 0 };
        Recording { act: act.clone(), samples: vec![start], queue: Vec::new(), finished: None }
    }

    /// Seconds measured.
    pub(super) fn length(&self) -> f64 {
        self.samples.last().map_or(0.0, |sample| sample.t)
    }

    /// Goodput in Mbit/s between two moments, in seconds; 0 if there is no time between them.
    pub(super) fn rate(&self, flow: Flow, from: f64, to: f64) -> f64 {
        let (from, to) = (from.max(0.0), to.min(self.length()));
        if to <= from {
            return 0.0;
        }
        (self.bytes(flow, to) - self.bytes(flow, from)) * 8e-6 / (to - from)
    }

    /// Goodput in Mbit/s over the act, as far as the bulk transfer lasted.
    pub(super) fn mean(&self, flow: Flow) -> f64 {
        self.rate(flow, 0.0, self.finished.unwrap_or(f64::INFINITY))
    }

    /// Goodput in Mbit/s in intervals of this many seconds, as (middle, rate).
    pub(super) fn series(&self, flow: Flow, interval: f64) -> Vec<(f64, f64)> {
        let count = (self.length() / interval).round() as usize;
        let point = |index: usize| {
            let from = index as f64 * interval;
            let rate = self.rate(flow, from, from + interval);
            (from + interval / 2.0, rate)
        };
        (0..count).map(point).collect()
    }

    /// Goodput in Mbit/s between the last two samples.
    pub(super) fn latest(&self, flow: Flow) -> f64 {
        match self.samples.as_slice() {
            [.., before, last] => self.rate(flow, before.t, last.t),
            _ => 0.0,
        }
    }

    /// Due time and finish, where the act has a deadline.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        (self.act.bulk == Bulk::NearDeadline).then(|| Deadline {
            due: self.act.seconds as f64,
            finished: self.finished,
            size: self.act.due_bytes(),
            received: self.samples.last().map_or(0, |sample| sample.bulk),
        })
    }

    /// Bytes received until then, between samples in proportion.
    fn bytes(&self, flow: Flow, t: f64) -> f64 {
        let of = |sample: &Sample| match flow {
            Flow::Foreground => sample.foreground as f64,
            Flow::Bulk => sample.bulk as f64,
        };
        let after = self.samples.partition_point(|sample| sample.t <= t);
        match (self.samples[..after].last(), self.samples.get(after)) {
            (Some(a), Some(b)) => of(a) + (of(b) - of(a)) * (t - a.t) / (b.t - a.t),
            (Some(a), None) => of(a),
            (None, _) => 0.0,
        }
    }
}

/// A transfer with a deadline; times in seconds since its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Deadline {
    /// When it was to be finished.
    pub(super) due: f64,
    /// When it was.
    pub(super) finished: Option<f64>,
    /// What there was to move.
    pub(super) size: u64,
    /// What was moved in the end.
    pub(super) received: u64,
}

impl Deadline {
    /// `finished 1.2 s before the deadline`.
    pub(super) fn sentence(&self) -> String {
        match self.finished.map(|finished| self.due - finished) {
            Some(spare) if spare >= 0.0 => format!("finished {spare:.1} s before the deadline"),
            Some(spare) => format!("finished {:.1} s after the deadline", -spare),
            None => format!("not finished: {:.1} of {:.1} MB", self.received as f64 / 1e6, self.size as f64 / 1e6),
        }
    }
}

/// Such a part of `rate` as is left of `alone`, in percent.
pub(super) fn percent_of(rate: f64, alone: f64) -> f64 {
    if alone > 0.0 { 100.0 * rate / alone } else { 0.0 }
}

/// The mean; 0 of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The value that this part of all values does not exceed (nearest rank); 0 of nothing.
pub(super) fn percentile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// How the acts went.
pub(super) enum Ended {
    /// To their end.
    Through(Vec<Recording>),
    /// Until a signal came, which gives this status.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only the kernel's stage has to be struck"))]
    Interrupted(ExitCode),
}

/// Recordings for tests, made up.
#[cfg(test)]
pub(super) mod examples {
    use super::*;

    /// Constant rates in Mbit/s over the length of each act.
    pub(crate) fn constant(rates: [(f64, f64); 4], finished: Option<f64>) -> Vec<Recording> {
        let recording = |(act, (foreground, bulk)): (Act, (f64, f64))| {
            let mut recording = Recording::new(&act);
            let bytes = |rate: f64, t: f64| (rate * t * 125_000.0) as u64;
            recording.samples.extend((1..=2 * act.seconds).map(|half| Sample {
                t: half as f64 / 2.0,
                foreground: bytes(foreground, half as f64 / 2.0),
                bulk: bytes(bulk, half as f64 / 2.0),
            }));
            recording.queue = (0..act.seconds).map(|second| second as f64).collect();
            recording.finished = finished.filter(|_| act.bulk == Bulk::NearDeadline);
            recording
        };
        Act::all(20).into_iter().zip(rates).map(recording).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp() -> Recording {
        let mut recording = Recording::new(&Act::all(10)[3]);
        for (t, foreground, bulk) in [(1.0, 1_000_000, 0), (3.0, 2_000_000, 500_000)] {
            recording.samples.push(Sample { t, foreground, bulk });
        }
        recording
    }

    #[test]
    fn rates_follow_from_what_was_received() {
        let recording = ramp();
        assert_eq!(recording.rate(Flow::Foreground, 0.0, 1.0), 8.0);
        assert_eq!(recording.rate(Flow::Foreground, 0.5, 2.0), 16.0 / 3.0);
        assert_eq!(recording.rate(Flow::Bulk, 0.0, 99.0), 4.0 / 3.0);
        assert_eq!(recording.rate(Flow::Bulk, 3.0, 4.0), 0.0);
        assert_eq!(recording.latest(Flow::Bulk), 2.0);
        assert_eq!(recording.mean(Flow::Foreground), 16.0 / 3.0);
        assert_eq!(recording.series(Flow::Foreground, 1.0), [(0.5, 8.0), (1.5, 4.0), (2.5, 4.0)]);
    }

    #[test]
    fn means_end_with_the_transfer() {
        let recording = Recording { finished: Some(1.0), ..ramp() };
        assert_eq!(recording.mean(Flow::Foreground), 8.0);
        assert_eq!(recording.mean(Flow::Bulk), 0.0);
    }

    #[test]
    fn deadlines_in_words() {
        let sentence = |finished| {
            let recording = Recording { finished, ..ramp() };
            recording.deadline().unwrap().sentence()
        };
        assert_eq!(sentence(Some(8.76)), "finished 1.2 s before the deadline");
        assert_eq!(sentence(Some(10.0)), "finished 0.0 s before the deadline");
        assert_eq!(sentence(Some(12.0)), "finished 2.0 s after the deadline");
        assert_eq!(sentence(None), "not finished: 0.5 of 8.0 MB");
        assert_eq!(Recording::new(&Act::all(10)[2]).deadline(), None);
    }

    #[test]
    fn percentages_and_percentiles() {
        assert_eq!(percent_of(9.0, 18.0), 50.0);
        assert_eq!(percent_of(9.0, 0.0), 0.0);
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 0.95), 19.0);
        assert_eq!(percentile(&values, 0.5), 10.0);
        assert_eq!(percentile(&values, 0.0), 1.0);
        assert_eq!(percentile(&values, 1.0), 20.0);
        assert_eq!(percentile(&[], 0.95), 0.0);
        assert_eq!(mean(&values), 10.5);
        assert_eq!(mean(&[]), 0.0);
    }
}
