// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording of the numerical model. Its rates are in units; a transfer's bytes are units times seconds.

use super::{RecordedTransfer, Recording, Track};
use lowtide_sim::fluid::{Model, Outcome, Sample, SourceState, TransferOutcome};
use std::{collections::BTreeMap, rc::Rc};

/// What was computed, as a recording.
pub(crate) fn of_fluid(model: &Model, outcome: &Outcome) -> Recording {
    let column = |value: &dyn Fn(&Sample) -> Option<f64>| -> Rc<[f64]> {
        outcome.samples.iter().map(|sample| value(sample).unwrap_or(f64::NAN)).collect()
    };
    let flow = |number: usize| {
        let (source, window) = (&outcome.sources[number], model.sources[number].windows.first());
        let state = |value: fn(&SourceState) -> Option<f64>| {
            column(&|sample| sample.sources[number].state.as_ref().and_then(value))
        };
        let columns = [
            ("rate", column(&|sample| Some(sample.sources[number].rate))),
            ("weight", state(|state| Some(state.weight))),
            ("price_ratio", state(|state| Some(state.price_ratio))),
            ("target", state(|state| state.target)),
        ];
        let first = source.deadlines.first();
        let facts = [
            ("start", window.map(|window| window.start.as_secs_f64())),
            ("finish", first.and_then(|it| it.finished_s)),
            ("due", first.map(|it| it.due_s)),
        ];
        let transfer = |it: &TransferOutcome| RecordedTransfer {
            start: it.start_s,
            bytes: it.size,
            finish: it.finished_s,
            due: Some(it.due_s),
        };
        let shares = outcome.spans.iter().flat_map(|span| {
            let own = span.flows.iter().filter(|it| it.name == source.name);
            own.map(|it| (span.from_s, span.to_s, it.of_fair_share))
        });
        Track {
            name: source.name.clone(),
            columns: named(columns),
            facts: facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
            transfers: source.deadlines.iter().map(transfer).collect(),
            spans: shares.collect(),
            packets: None,
        }
    };
    let link = Track {
        name: "bottleneck".to_owned(),
        columns: named([
            ("utilisation", column(&|sample| Some(sample.link.utilisation))),
            ("loss", column(&|sample| Some(sample.link.loss))),
        ]),
        facts: BTreeMap::from([("capacity", model.capacity.mean)]),
        ..Track::default()
    };
    Recording {
        times: outcome.samples.iter().map(|sample| sample.time_s).collect(),
        flows: (0..outcome.sources.len()).map(flow).collect(),
        links: vec![link],
        version: None,
    }
}

fn named<const N: usize>(columns: [(&str, Rc<[f64]>); N]) -> BTreeMap<String, Rc<[f64]>> {
    columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect()
}
