// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of what was seen of a run. Flows and bottlenecks go by their names; `flows` may be a pattern like `cdg-*`,
//! several with commas between them.

use super::{Answer, Language, Series, number, numbers::optional, recording, wrong};
use crate::{
    recording::{RecordedTransfer, Recording, Track, matches},
    statistics,
};
use rhai::{Array, Dynamic, ImmutableString as Text, Map, NativeCallContext};

/// How a function is called, the column or fact that it gives, and what that is.
type Of = (&'static str, &'static str, &'static str);

pub(super) fn register(language: &mut Language) {
    flow_series(language);
    link_series(language);
    spans(language);
    transfers(language);
}

/// What has a column of its own.
fn flow_series(language: &mut Language) {
    let sums: [Of; 5] = [
        ("rate(flows)", "rate", "payload delivered, bit/s, of all these flows together, as a time series"),
        ("delivered(flows)", "delivered", "payload bytes delivered so far, together"),
        ("in_flight(flows)", "in_flight", "bytes in flight, together"),
        ("retransmits(flows)", "retransmits", "retransmissions so far, together"),
        ("reductions(flows)", "reductions", "window reductions so far, together"),
    ];
    for (form, column, about) in sums {
        language.add(form, about, move |call: NativeCallContext<'_>, flows: Text| sum(&call, &flows, column));
    }
    let singles: [Of; 8] = [
        ("cwnd(flow)", "cwnd", "its window in segments"),
        ("ssthresh(flow)", "ssthresh", "its slow-start threshold in segments, once it is set"),
        ("rtt(flow)", "rtt", "its newest round-trip sample, ms"),
        ("owd(flow)", "owd", "its newest one-way delay, ms"),
        ("weight(flow)", "weight", "its price weight w, while a deadline moves it"),
        ("target(flow)", "target", "the rate ζ that its deadline calls for, bit/s"),
        ("achieved(flow)", "achieved", "its rate over the latest update interval of the control, bit/s"),
        ("price_ratio(flow)", "price_ratio", "its φ"),
    ];
    for (form, column, about) in singles {
        language.add(form, about, move |call: NativeCallContext<'_>, flow: Text| one_flow(&call, &flow, column));
    }
    language.add(
        "inner(flow, name)",
        "an inner value of its control law, by the name that it has in inner.csv of `lowtide sim --out`",
        |call: NativeCallContext<'_>, flow: Text, name: Text| one_flow(&call, &flow, &format!("inner:{name}")),
    );
    language.add("duration()", "how long the run is by its own clock, s", |call: NativeCallContext<'_>| {
        Answer::Ok(optional(recording(&call)?.times.last().copied()))
    });
    language.add(
        "flow_names(flows)",
        "the names of the flows that go with a pattern, as a list",
        |call: NativeCallContext<'_>, flows: Text| {
            let recording = recording(&call)?;
            let names = found(&recording.flows, &flows)?.map(|track| Dynamic::from(track.name.clone()));
            Answer::Ok(names.collect::<Array>())
        },
    );
}

fn link_series(language: &mut Language) {
    let columns: [Of; 8] = [
        (
            "queue(link)",
            "queue",
            "mean queueing delay of the packets that left in the sample interval, ms; `link` may be left out",
        ),
        ("queue_packets(link)", "queue_packets", "packets in the buffer"),
        ("queue_bytes(link)", "queue_bytes", "bytes in the buffer"),
        ("packets(link)", "packets", "packets delivered in the sample interval"),
        ("drops(link)", "drops", "packets dropped in the sample interval"),
        ("marks(link)", "marks", "packets marked in the sample interval"),
        ("utilisation(link)", "utilisation", "the part of the capacity used"),
        ("loss(link)", "loss", "the probability of loss; only of fluid models"),
    ];
    for (form, column, about) in columns {
        language.add(form, about, move |call: NativeCallContext<'_>, link: Text| one_link(&call, Some(&link), column));
        language.also(form, move |call: NativeCallContext<'_>| one_link(&call, None, column));
    }
    let capacity = |call: NativeCallContext<'_>, link: Option<&str>| {
        let recording = recording(&call)?;
        Answer::Ok(optional(the_link(&recording, link)?.facts.get("capacity").copied()))
    };
    language.add("capacity(link)", "its nominal capacity, bit/s; `link` may be left out", {
        move |call: NativeCallContext<'_>, link: Text| capacity(call, Some(&link))
    });
    language.also("capacity(link)", move |call: NativeCallContext<'_>| capacity(call, None));
}

/// Means over a span of time.
fn spans(language: &mut Language) {
    language.add(
        "mean_rate(flows, from, to)",
        "payload delivered to these flows together in a span of time, bit/s",
        |call: NativeCallContext<'_>, flows: Text, from: Dynamic, to: Dynamic| {
            let rate = sum(&call, &flows, "rate")?.between(number(&from)?, number(&to)?);
            let values: Vec<f64> = rate.present().map(|(_, value)| value).collect();
            Answer::Ok(optional(statistics::mean(&values)))
        },
    );
    language.add(
        "mean_rates(flows, from, to)",
        "the same of each of them, as a list",
        |call: NativeCallContext<'_>, flows: Text, from: Dynamic, to: Dynamic| {
            let rates = mean_rates(&call, &flows, number(&from)?, number(&to)?)?;
            Answer::Ok(rates.into_iter().map(Dynamic::from).collect::<Array>())
        },
    );
    language.add(
        "of_fair_share(flow, from, to)",
        "the part of a fair share that it had in this span, which has to be a [[span]] of the scenario",
        |call: NativeCallContext<'_>, flow: Text, from: Dynamic, to: Dynamic| {
            let (recording, from, to) = (recording(&call)?, number(&from)?, number(&to)?);
            let same = |(a, b, _): &&(f64, f64, f64)| (a - from).abs() < 1e-9 && (b - to).abs() < 1e-9;
            match the_flow(&recording, &flow)?.spans.iter().find(same) {
                Some((_, _, share)) => Ok(*share),
                None => wrong(format!("the scenario has no [[span]] from {from} to {to} s in which {flow} was there")),
            }
        },
    );
    language.add(
        "jain_of(flows, from, to)",
        "Jain's index of the mean rates of these flows in a span of time",
        |call: NativeCallContext<'_>, flows: Text, from: Dynamic, to: Dynamic| {
            let rates = mean_rates(&call, &flows, number(&from)?, number(&to)?)?;
            Answer::Ok(optional(statistics::jain(&rates)))
        },
    );
    language.add(
        "jain_bins(flows, width)",
        "Jain's index of their mean rates in bins of so many seconds, as a time series",
        |call: NativeCallContext<'_>, flows: Text, width: Dynamic| {
            let (recording, width) = (recording(&call)?, number(&width)?);
            jain_bins(&recording, &flows, width)
        },
    );
}

/// Transfers and single facts.
fn transfers(language: &mut Language) {
    let facts: [Of; 5] = [
        ("started(flow)", "start", "when it began, s"),
        ("finished(flow)", "finish", "when all its data had been acknowledged, s; nothing if never"),
        ("due(flow)", "due", "when its first transfer was due, s; nothing without a deadline"),
        ("timeouts(flow)", "timeouts", "its retransmission timeouts"),
        ("base_rtt(flow)", "base_rtt", "its round trip without queues, ms"),
    ];
    for (form, fact, about) in facts {
        language.add(form, about, move |call: NativeCallContext<'_>, flow: Text| {
            let recording = recording(&call)?;
            Answer::Ok(optional(the_flow(&recording, &flow)?.facts.get(fact).copied()))
        });
    }
    language.add(
        "transfers(flow)",
        "its transfers as a list of #{start, bytes, finish, due}: s, bytes, s or nothing, s or nothing",
        |call: NativeCallContext<'_>, flow: Text| {
            let recording = recording(&call)?;
            let map = |it: &RecordedTransfer| {
                let (start, bytes) = (Some(it.start), Some(it.bytes));
                let fields = [("start", start), ("bytes", bytes), ("finish", it.finish), ("due", it.due)];
                let fields = fields.into_iter().map(|(name, value)| (name.into(), optional(value)));
                Dynamic::from(fields.collect::<Map>())
            };
            Answer::Ok(the_flow(&recording, &flow)?.transfers.iter().map(map).collect::<Array>())
        },
    );
    language.add(
        "completion_times(flow)",
        "how long each of its transfers that is complete took, s",
        |call: NativeCallContext<'_>, flow: Text| {
            let recording = recording(&call)?;
            let took = |it: &RecordedTransfer| it.finish.map(|finish| Dynamic::from(finish - it.start));
            Answer::Ok(the_flow(&recording, &flow)?.transfers.iter().filter_map(took).collect::<Array>())
        },
    );
    language.add(
        "lateness(flow)",
        "from its (first) deadline to the end of that transfer, s: negative if it was early; nothing if it never ended",
        |call: NativeCallContext<'_>, flow: Text| {
            let recording = recording(&call)?;
            let first = the_flow(&recording, &flow)?.transfers.first().copied();
            Answer::Ok(optional(first.and_then(|it| Some(it.finish? - it.due?))))
        },
    );
}

/// The tracks whose names go with a pattern; at least one.
fn found<'a>(tracks: &'a [Track], pattern: &'a str) -> Answer<impl Iterator<Item = &'a Track>> {
    let mut found = tracks.iter().filter(move |track| matches(pattern, &track.name)).peekable();
    if found.peek().is_none() {
        return wrong(format!("nothing is called \"{pattern}\"; there are {}", names(tracks)));
    }
    Ok(found)
}

fn names(tracks: &[Track]) -> String {
    tracks.iter().map(|track| track.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn the_flow<'a>(recording: &'a Recording, name: &str) -> Answer<&'a Track> {
    single(&recording.flows, name)
}

fn the_link<'a>(recording: &'a Recording, name: Option<&str>) -> Answer<&'a Track> {
    match (name, recording.links.first()) {
        (Some(name), _) => single(&recording.links, name),
        (None, Some(first)) => Ok(first),
        (None, None) => wrong("there is no bottleneck"),
    }
}

/// The track of this name, or the only one that goes with this pattern.
fn single<'a>(tracks: &'a [Track], pattern: &str) -> Answer<&'a Track> {
    let mut found = tracks.iter().filter(|track| matches(pattern, &track.name));
    match (found.next(), found.next()) {
        (Some(track), None) => Ok(track),
        (None, _) => wrong(format!("nothing is called \"{pattern}\"; there are {}", names(tracks))),
        (Some(_), Some(_)) => wrong(format!("more than one goes by \"{pattern}\": {}", names(tracks))),
    }
}

fn column(recording: &Recording, track: &Track, column: &str) -> Series {
    let missing = || recording.times.iter().map(|_| f64::NAN).collect();
    let values = track.columns.get(column).cloned().unwrap_or_else(missing);
    Series { times: recording.times.clone(), values }
}

fn one_flow(call: &NativeCallContext<'_>, flow: &str, name: &str) -> Answer<Series> {
    let recording = recording(call)?;
    let track = the_flow(&recording, flow)?;
    if let (Some(inner), false) = (name.strip_prefix("inner:"), track.columns.contains_key(name)) {
        let known: Vec<&str> = track.columns.keys().filter_map(|key| key.strip_prefix("inner:")).collect();
        return wrong(format!("the law of {} has no inner value \"{inner}\"; it has {}", track.name, known.join(", ")));
    }
    Ok(column(&recording, track, name))
}

fn one_link(call: &NativeCallContext<'_>, link: Option<&str>, name: &str) -> Answer<Series> {
    let recording = recording(call)?;
    Ok(column(&recording, the_link(&recording, link)?, name))
}

fn sum(call: &NativeCallContext<'_>, flows: &str, name: &str) -> Answer<Series> {
    let recording = recording(call)?;
    let mut columns = found(&recording.flows, flows)?.map(|track| column(&recording, track, name));
    let first = columns.next().expect("at least one was found");
    columns.try_fold(first, |sum, next| sum.with(&next, |a, b| a + b))
}

fn mean_rates(call: &NativeCallContext<'_>, flows: &str, from: f64, to: f64) -> Answer<Vec<f64>> {
    let recording = recording(call)?;
    let mean = |track: &Track| {
        let span = column(&recording, track, "rate").between(from, to);
        let values: Vec<f64> = span.present().map(|(_, value)| value).collect();
        statistics::mean(&values).unwrap_or(0.0)
    };
    Ok(found(&recording.flows, flows)?.map(mean).collect())
}

fn jain_bins(recording: &Recording, flows: &str, width: f64) -> Answer<Series> {
    if width <= 0.0 {
        return wrong("jain_bins: a width above 0 is needed");
    }
    let bins: Vec<Series> =
        found(&recording.flows, flows)?.map(|track| column(recording, track, "rate").bins(width)).collect();
    let times = bins[0].times.clone();
    let index = |at: usize| {
        let rates: Vec<f64> = bins.iter().map(|bins| bins.values[at]).collect();
        statistics::jain(&rates).unwrap_or(f64::NAN)
    };
    Ok(Series { values: (0..times.len()).map(index).collect(), times })
}
