// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a recording of a run, in the shape of the simulator's.

use crate::{route::Counts, traffic::Observation};
use lowtide_lab::{Packets, RecordedTransfer, Recording, Track};
use lowtide_net::Time;
use lowtide_sim::scenario::{Bottleneck, Scenario, Source};
use std::{collections::BTreeMap, rc::Rc, time::Duration};

type Columns = BTreeMap<String, Vec<f64>>;

/// What has been recorded so far.
pub(crate) struct Recorder<'a> {
    scenario: &'a Scenario,
    links: Vec<&'a Bottleneck>,
    times: Vec<f64>,
    flow_columns: Vec<Columns>,
    link_columns: Vec<Columns>,
    last: Option<Sample>,
}

/// A look at everything.
pub(crate) struct Sample {
    /// When it was meant to be.
    pub(crate) due: Duration,
    /// When it was.
    pub(crate) at: Duration,
    pub(crate) flows: Vec<Observation>,
    pub(crate) links: [Counts; 2],
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        let links: Vec<&Bottleneck> = scenario.bottlenecks.iter().chain(&scenario.reverse).collect();
        Self {
            times: Vec::new(),
            flow_columns: vec![Columns::new(); scenario.flows.len()],
            link_columns: vec![Columns::new(); links.len()],
            last: None,
            scenario,
            links,
        }
    }

    /// Takes up the next sample; the first is the state before anything began.
    pub(crate) fn record(&mut self, sample: Sample) {
        if let Some(last) = self.last.take() {
            self.times.push(sample.due.as_secs_f64());
            for (index, (seen, before)) in sample.flows.iter().zip(&last.flows).enumerate() {
                self.flow(index, seen, before, (sample.at - last.at).as_secs_f64());
            }
            for (index, (counts, before)) in sample.links.iter().zip(&last.links).take(self.links.len()).enumerate() {
                self.link(index, counts, before, (last.at, sample.at));
            }
        }
        self.last = Some(sample);
    }

    fn flow(&mut self, index: usize, seen: &Observation, before: &Observation, span: f64) {
        let (columns, number) = (&mut self.flow_columns[index], self.times.len());
        let mut put = |name: &str, value: Option<f64>| put(columns, name, number, value);
        put("delivered", Some(seen.delivered as f64));
        put("rate", Some((seen.delivered - before.delivered) as f64 * 8.0 / span));
        if let Some(state) = &seen.state {
            put("cwnd", Some(state.cwnd));
            put("ssthresh", state.ssthresh);
            put("rtt", state.rtt_ms);
            put("in_flight", state.in_flight.map(|bytes| bytes as f64));
            put("retransmits", Some(state.retransmits as f64));
        }
        put("reductions", seen.reductions.map(|number| number as f64));
        for (name, value) in &seen.inner {
            put(&format!("inner:{name}"), Some(*value));
        }
        if let Some(control) = &seen.control {
            put("weight", Some(control.weight));
            put("target", control.target_bps);
            put("achieved", Some(control.achieved_bps));
            put("price_ratio", Some(control.price_ratio));
        }
    }

    fn link(&mut self, index: usize, counts: &Counts, before: &Counts, (from, to): (Duration, Duration)) {
        let capacity = self.links[index].capacity().bytes_between(Time::ZERO + from, Time::ZERO + to) as f64;
        let (columns, number) = (&mut self.link_columns[index], self.times.len());
        let mut put = |name: &str, value: f64| put(columns, name, number, Some(value));
        let packets = (counts.packets - before.packets) as f64;
        let waited = (counts.waited - before.waited).as_secs_f64() * 1e3;
        put("queue", if packets > 0.0 { waited / packets } else { 0.0 });
        put("queue_packets", counts.queued_packets as f64);
        put("queue_bytes", counts.queued_bytes as f64);
        put("packets", packets);
        put("drops", (counts.drops - before.drops) as f64);
        put("marks", (counts.marks - before.marks) as f64);
        let bytes = (counts.bytes - before.bytes) as f64;
        put("utilisation", if capacity > 0.0 { bytes / capacity } else { 0.0 });
    }

    /// The recording, with when each flow had all of its data acknowledged, the datagrams that arrived, and for how
    /// long the machine did not run who should have run.
    pub(crate) fn finish(
        self,
        finished: &[Option<Duration>],
        packets: Vec<Option<Packets>>,
        standstill: Duration,
    ) -> Recording {
        let number = self.times.len();
        let shares = crate::shares::of_spans(self.scenario, finished, &self.times, &self.flow_columns);
        let flows = self.scenario.flows.iter().zip(finished).zip(packets).zip(self.flow_columns).zip(shares);
        let flows = flows.map(|((((flow, finished), packets), columns), spans)| {
            let (start, finish) = (flow.start.as_secs_f64(), finished.map(|at| at.as_secs_f64()));
            let due = flow.deadline.as_ref().map(|deadline| start + deadline.after.as_secs_f64());
            let base_rtt = flow.rtt.as_secs_f64() * 1e3;
            let facts = [("start", Some(start)), ("finish", finish), ("due", due), ("base_rtt", Some(base_rtt))];
            let transfer = match flow.source {
                Source::Sized(bytes) => Some(RecordedTransfer { start, bytes: bytes as f64, finish, due }),
                _ => None,
            };
            Track {
                name: flow.name.clone(),
                columns: shared(columns, number),
                facts: facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
                transfers: transfer.into_iter().collect(),
                spans,
                packets,
            }
        });
        let links = self.links.iter().zip(self.link_columns).map(|(link, columns)| Track {
            name: link.name.clone(),
            columns: shared(columns, number),
            facts: BTreeMap::from([
                ("capacity", link.rate.bits_per_second() as f64),
                ("standstill_ms", standstill.as_secs_f64() * 1e3),
            ]),
            ..Track::default()
        });
        Recording { flows: flows.collect(), links: links.collect(), times: self.times.into(), version: None }
    }
}

/// Sets the last of `number` values of a column; those before it that are not there have no value.
fn put(columns: &mut Columns, name: &str, number: usize, value: Option<f64>) {
    let Some(value) = value else { return };
    let column = columns.entry(name.to_owned()).or_default();
    column.resize(number - 1, f64::NAN);
    column.push(value);
}

fn shared(columns: Columns, number: usize) -> BTreeMap<String, Rc<[f64]>> {
    let fill = |(name, mut column): (String, Vec<f64>)| {
        column.resize(number, f64::NAN);
        (name, column.into())
    };
    columns.into_iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn rates_are_of_the_time_that_went_by() {
        let text = "duration = \"9s\"\nbottleneck = { rate = \"8mbit\", rtt = \"20ms\" }\n[[flow]]\nname = \"a\"\ncc = \"reno\"\nsize = \"1MB\"\n";
        let scenario = Scenario::parse(text, Path::new("test"), &[]).unwrap();
        let mut recorder = Recorder::new(&scenario);
        let ms = Duration::from_millis;
        for (due, at, delivered, waited) in [(0, 0, 0, 0), (100, 100, 50_000, 10), (200, 250, 200_000, 40)] {
            let seen = Observation { delivered, state: None, reductions: None, inner: Vec::new(), control: None };
            let counts =
                Counts { packets: delivered / 1000, bytes: delivered, waited: ms(waited), ..Counts::default() };
            recorder.record(Sample { due: ms(due), at: ms(at), flows: vec![seen], links: [counts, Counts::default()] });
        }
        let recording = recorder.finish(&[Some(ms(8000))], vec![None], ms(3));
        assert_eq!(&*recording.times, [0.1, 0.2]);
        let (flow, link) = (&recording.flows[0], &recording.links[0]);
        assert_eq!(&*flow.columns["rate"], [4e6, 8e6]);
        assert_eq!(&*flow.columns["delivered"], [50_000.0, 200_000.0]);
        assert_eq!(&*link.columns["queue"], [0.2, 0.2]);
        assert_eq!(&*link.columns["utilisation"], [0.5, 1.0]);
        assert_eq!(flow.transfers, [RecordedTransfer { start: 0.0, bytes: 1e6, finish: Some(8.0), due: None }]);
        assert_eq!(link.facts["standstill_ms"], 3.0);
    }
}
