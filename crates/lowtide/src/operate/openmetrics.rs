// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide status --openmetrics`: the text format of OpenMetrics 1.0, in Prometheus' base units.

use std::fmt::Write;

use jiff::Timestamp;

use super::protocol::Status;

/// A family of metrics with one sample for each transfer, or none.
struct Family {
    name: &'static str,
    /// `gauge`, or `counter`, whose sample has `_total` at its end.
    kind: &'static str,
    help: &'static str,
    value: fn(&Status) -> Option<f64>,
}

const FAMILIES: [Family; 19] = [
    counter("lowtide_acknowledged_bytes", "Payload that has arrived.", |s| count(s.acknowledged_bytes)),
    counter("lowtide_retransmitted_bytes", "Payload sent again.", |s| count(s.retransmitted_bytes)),
    counter("lowtide_losses", "Congestion events.", |s| count(s.losses)),
    counter("lowtide_phantom_signals", "Congestion signals made up.", |s| count(s.phantom_signals)),
    counter("lowtide_delay_backoffs", "Reductions on account of delay.", |s| count(s.delay_backoffs)),
    counter("lowtide_udp_sent_bytes", "Bytes over UDP, which nobody governs.", |s| count(s.udp_sent_bytes)),
    gauge("lowtide_rate_bytes_per_second", "Payload that has arrived, over two seconds.", |s| Some(s.rate_bps / 8.0)),
    gauge("lowtide_needed_rate_bytes_per_second", "What the deadline needs.", |s| s.needed_bps.map(|bps| bps / 8.0)),
    gauge("lowtide_max_rate_bytes_per_second", "Limit on the rate.", |s| s.max_rate_bps.map(|bps| bps / 8.0)),
    gauge("lowtide_min_rate_bytes_per_second", "Least rate aimed for.", |s| s.min_rate_bps.map(|bps| bps / 8.0)),
    gauge("lowtide_size_bytes", "Size announced.", |s| s.size_bytes.and_then(count)),
    gauge("lowtide_price_weight_ratio", "Price weight: 1 is an ordinary flow.", |s| Some(s.w)),
    gauge("lowtide_round_trip_time_seconds", "Smoothed round-trip time.", |s| s.srtt_s),
    gauge("lowtide_queueing_delay_seconds", "Queueing delay, as a part of the round trip.", |s| s.queueing_delay_s),
    gauge("lowtide_connections", "Connections.", |s| Some(f64::from(s.connections))),
    gauge("lowtide_paused", "1 while paused.", |s| Some(f64::from(u8::from(s.paused)))),
    gauge("lowtide_start_timestamp_seconds", "When it began.", |s| Some(seconds(s.started))),
    gauge("lowtide_deadline_timestamp_seconds", "Its deadline.", |s| s.deadline.map(seconds)),
    gauge("lowtide_expected_timestamp_seconds", "When it is expected to end.", |s| s.expected.map(seconds)),
];

const fn counter(name: &'static str, help: &'static str, value: fn(&Status) -> Option<f64>) -> Family {
    Family { name, kind: "counter", help, value }
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&Status) -> Option<f64>) -> Family {
    Family { name, kind: "gauge", help, value }
}

fn count(number: u64) -> Option<f64> {
    Some(number as f64)
}

fn seconds(at: Timestamp) -> f64 {
    at.as_nanosecond() as f64 / 1e9
}

/// All transfers as metrics.
pub(super) fn exposition(all: &[Status]) -> String {
    let mut text = String::from("# TYPE lowtide_transfer info\n# HELP lowtide_transfer A transfer that runs.\n");
    for Status { name, kind, direction, program, law, outlook, .. } in all {
        let what = [("name", name), ("kind", kind), ("direction", direction)];
        let labels = what.into_iter().chain([("program", program), ("law", law), ("outlook", outlook)]);
        let labels: Vec<_> = labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = labels.join(",");
        let _ = writeln!(text, "lowtide_transfer_info{{{labels}}} 1");
    }
    for Family { name, kind, help, value } in &FAMILIES {
        let _ = writeln!(text, "# TYPE {name} {kind}");
        for (unit, ending) in
            [("bytes_per_second", ""), ("bytes", "_bytes"), ("seconds", "_seconds"), ("ratio", "_ratio")]
        {
            if !ending.is_empty() && name.ends_with(ending) {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
        }
        let _ = writeln!(text, "# HELP {name} {help}");
        let suffix = if *kind == "counter" { "_total" } else { "" };
        for status in all {
            if let Some(value) = value(status) {
                let _ = writeln!(text, "{name}{suffix}{{name=\"{}\"}} {value}", escaped(&status.name));
            }
        }
    }
    text + "# EOF\n"
}

/// As a label's value is written.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{super::show::tests::example, *};

    #[test]
    fn base_units_and_one_sample_for_each_transfer() {
        let second = Status { name: "second".into(), needed_bps: None, ..example() };
        let text = exposition(&[example(), second]);
        for line in [
            "# TYPE lowtide_acknowledged_bytes counter",
            "# UNIT lowtide_acknowledged_bytes bytes",
            "lowtide_acknowledged_bytes_total{name=\"nightly\"} 36100000000",
            "lowtide_rate_bytes_per_second{name=\"nightly\"} 1462500",
            "lowtide_queueing_delay_seconds{name=\"second\"} 0.002",
            "lowtide_needed_rate_bytes_per_second{name=\"nightly\"} 1118750",
            "lowtide_transfer_info{name=\"nightly\",kind=\"run\",direction=\"up\",program=\"restic\",law=\"tide\",outlook=\"on_course\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("needed_rate_bytes_per_second{name=\"second\"}"), "what is unknown has no sample");
        assert!(text.ends_with("# EOF\n"));
    }

    /// The rules of the format that a scraper refuses a page for.
    #[test]
    fn each_sample_belongs_to_the_family_above_it() {
        let text = exposition(&[Status { program: "a\"b\\c\nd".into(), ..example() }]);
        let (mut family, mut seen, mut samples) = ("", BTreeSet::new(), BTreeSet::new());
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap();
                assert!(seen.insert(family), "{family} comes twice");
            } else if line.starts_with("# ") {
                assert_eq!(line.split(' ').nth(2), Some(family), "{line}");
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let name = sample.split('{').next().unwrap();
                assert!(["", "_total", "_info"].iter().any(|end| name == format!("{family}{end}")), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(samples.insert(sample), "{sample} comes twice");
            }
        }
    }
}
