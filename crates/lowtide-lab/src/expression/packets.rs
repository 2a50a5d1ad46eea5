// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of single packets, which are kept of the flows that `[record] packets` names.

use super::{Answer, Language, number, recording, wrong};
use crate::recording::{Packets, matches};
use lowtide_cc::law::cdg::Clock;
use rhai::{Array, Dynamic, ImmutableString as Text, NativeCallContext};

/// A list of numbers from the packets of a span.
type OfPackets = fn(&Packets, f64, f64) -> Vec<f64>;

pub(super) fn register(language: &mut Language) {
    let functions: [(&'static str, &str, OfPackets); 6] = [
        (
            "packet_delays(flow, from, to)",
            "one-way delays of the data packets that arrived in a span of time, ms",
            delays,
        ),
        ("round_trips(flow, from, to)", "round-trip samples, one for each ACK that acknowledged data, ms", round_trips),
        ("round_trip_times(flow, from, to)", "when these were taken, s", |packets, from, to| {
            within(packets, from, to).map(|(time, _)| time).collect()
        }),
        (
            "ertt(flow, from, to)",
            "the same round trips as FreeBSD's ERTT helper would measure them, by clocks of whole milliseconds, ms",
            ertt,
        ),
        (
            "frame_delays(flow, from, to)",
            "of the frames whose last packet arrived in a span of time, from sending to that arrival, ms; a frame is \
             what was sent at one instant",
            |packets, from, to| {
                packets.frames(from, to).iter().map(|frame| (frame.arrived - frame.sent) * 1e3).collect()
            },
        ),
        ("frame_gaps(flow, from, to)", "the times between the arrivals of two such frames, ms", |packets, from, to| {
            let frames = packets.frames(from, to);
            frames.windows(2).map(|pair| (pair[1].arrived - pair[0].arrived) * 1e3).collect()
        }),
    ];
    for (form, about, function) in functions {
        language.add(
            form,
            about,
            move |call: NativeCallContext<'_>, flow: Text, from: Dynamic, to: Dynamic| -> Answer<Array> {
                let (recording, from, to) = (recording(&call)?, number(&from)?, number(&to)?);
                let mut packets = recording
                    .flows
                    .iter()
                    .filter(|track| matches(&flow, &track.name))
                    .filter_map(|track| track.packets.as_ref())
                    .peekable();
                if packets.peek().is_none() {
                    return wrong(format!("no packets of \"{flow}\" were kept; name it in [record] packets"));
                }
                Ok(packets.flat_map(|packets| function(packets, from, to)).map(Dynamic::from).collect())
            },
        );
    }
}

fn delays(packets: &Packets, from: f64, to: f64) -> Vec<f64> {
    packets.between(from, to).map(|it| (it.arrived - it.sent) * 1e3).collect()
}

fn within(packets: &Packets, from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    packets.round_trips.iter().copied().filter(move |(time, _)| *time > from && *time <= to)
}

fn round_trips(packets: &Packets, from: f64, to: f64) -> Vec<f64> {
    within(packets, from, to).map(|(_, rtt)| rtt).collect()
}

fn ertt(packets: &Packets, from: f64, to: f64) -> Vec<f64> {
    let shown = |(time, rtt): (f64, f64)| {
        let nanos = |seconds: f64| libm::round(seconds * 1e9) as i64;
        Clock::Milli.between(nanos(time - rtt / 1e3), nanos(time)) as f64 / 1e3
    };
    within(packets, from, to).map(shown).collect()
}
