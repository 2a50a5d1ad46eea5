// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lowtide status --openmetrics`: the text format of OpenMetrics 1.0, in Prometheus' base units; `--prometheus`: the
//! same in Prometheus' own text format, which node_exporter's textfile collector reads. The two differ in where the
//! name of a counter has its `_total`.

use std::fmt::Write;

use super::protocol::Status;
use crate::when::unix_seconds;

/// A family of metrics with one sample for each transfer, or none.
struct Family {
    name: &'static str,
    /// `gauge`, or `counter`, whose sample has `_total` at its end.
    kind: &'static str,
    help: &'static str,
    value: fn(&Status) -> Option<f64>,
}

const FAMILIES: [Family; 20] = [
    counter("lowtide_acknowledged_bytes", "Payload that has arrived.", |s| count(s.acknowledged_bytes)),
    counter("lowtide_retransmitted_bytes", "Payload sent again.", |s| count(s.retransmitted_bytes)),
    counter("lowtide_losses", "Congestion events.", |s| count(s.losses)),
    counter("lowtide_phantom_signals", "Phantom congestion signals.", |s| count(s.phantom_signals)),
    counter("lowtide_delay_backoffs", "Window reductions caused by delay.", |s| count(s.delay_backoffs)),
    counter("lowtide_udp_sent_bytes", "Bytes over UDP, which is not governed.", |s| count(s.udp_sent_bytes)),
    gauge("lowtide_rate_bytes_per_second", "Payload that has arrived, over two seconds.", |s| Some(s.rate_bps / 8.0)),
    gauge("lowtide_needed_rate_bytes_per_second", "What the deadline needs.", |s| s.needed_bps.map(|bps| bps / 8.0)),
    gauge("lowtide_limit_rate_bytes_per_second", "Limit in force, with caps.", |s| s.limit_bps.map(|bps| bps / 8.0)),
    gauge("lowtide_max_rate_bytes_per_second", "Limit on the rate.", |s| s.max_rate_bps.map(|bps| bps / 8.0)),
    gauge("lowtide_min_rate_bytes_per_second", "Least rate aimed for.", |s| s.min_rate_bps.map(|bps| bps / 8.0)),
    gauge("lowtide_size_bytes", "Size announced.", |s| s.size_bytes.and_then(count)),
    gauge("lowtide_price_weight_ratio", "Price weight: 1 is an ordinary flow.", |s| Some(s.w)),
    gauge("lowtide_round_trip_time_seconds", "Smoothed round-trip time.", |s| s.srtt_s),
    gauge("lowtide_queueing_delay_seconds", "Queueing delay, as a part of the round trip.", |s| s.queueing_delay_s),
    gauge("lowtide_connections", "Connections.", |s| Some(f64::from(s.connections))),
    gauge("lowtide_paused", "1 while paused.", |s| Some(f64::from(u8::from(s.paused)))),
    gauge("lowtide_start_timestamp_seconds", "When it began.", |s| Some(unix_seconds(s.started))),
    gauge("lowtide_deadline_timestamp_seconds", "Its deadline.", |s| s.deadline.map(unix_seconds)),
    gauge("lowtide_expected_timestamp_seconds", "When it is expected to end.", |s| s.expected.map(unix_seconds)),
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

/// Which of the two text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    Prometheus,
}

/// All transfers as metrics.
pub(super) fn exposition(all: &[Status], format: Format) -> String {
    let open = format == Format::OpenMetrics;
    let info = if open { ("lowtide_transfer", "info") } else { ("lowtide_transfer_info", "gauge") };
    let mut text = format!("# TYPE {0} {1}\n# HELP {0} A transfer that runs.\n", info.0, info.1);
    for Status { name, kind, direction, program, law, outlook, .. } in all {
        let what = [("name", name), ("kind", kind), ("direction", direction)];
        let labels = what.into_iter().chain([("program", program), ("law", law), ("outlook", outlook)]);
        let labels: Vec<_> = labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = labels.join(",");
        let _ = writeln!(text, "lowtide_transfer_info{{{labels}}} 1");
    }
    for Family { name, kind, help, value } in &FAMILIES {
        let suffix = if *kind == "counter" { "_total" } else { "" };
        let family = if open { (*name).to_owned() } else { format!("{name}{suffix}") };
        let _ = writeln!(text, "# TYPE {family} {kind}");
        for (unit, ending) in
            [("bytes_per_second", ""), ("bytes", "_bytes"), ("seconds", "_seconds"), ("ratio", "_ratio")]
        {
            if open && !ending.is_empty() && name.ends_with(ending) {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
        }
        let _ = writeln!(text, "# HELP {family} {help}");
        for status in all {
            if let Some(value) = value(status) {
                let _ = writeln!(text, "{name}{suffix}{{name=\"{}\"}} {value}", escaped(&status.name));
            }
        }
    }
    text + if open { "# EOF\n" } else { "" }
}

/// As a label's value is written.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        io::Write,
        process::{Command, Stdio},
    };

    use super::{super::show::tests::example, *};

    #[test]
    fn base_units_and_one_sample_for_each_transfer() {
        let second = Status { name: "second".into(), needed_bps: None, ..example() };
        let text = exposition(&[example(), second.clone()], Format::OpenMetrics);
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
        let text = exposition(&[example(), second], Format::Prometheus);
        for line in [
            "# TYPE lowtide_acknowledged_bytes_total counter",
            "lowtide_acknowledged_bytes_total{name=\"nightly\"} 36100000000",
            "# TYPE lowtide_transfer_info gauge",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    }

    /// Each metric that the dashboard asks for is one of these.
    #[test]
    fn the_dashboard_asks_for_what_there_is() {
        let dashboard = include_str!("../../../../packaging/grafana-dashboard.json");
        let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        let text = exposition(&[example()], Format::Prometheus);
        let known: BTreeSet<_> =
            text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split('{').next()).collect();
        let mut asked = BTreeSet::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                let expression = target["expr"].as_str().unwrap();
                let words = expression.split(|c: char| !(c.is_alphanumeric() || c == '_'));
                asked.extend(words.filter(|word| word.starts_with("lowtide_")).map(str::to_owned));
            }
        }
        assert!(asked.len() > 8, "{asked:?}");
        // the example has no least rate, and the dashboard does not ask for it
        assert!(asked.iter().all(|name| known.contains(name.as_str())), "{asked:?} {known:?}");
    }

    /// By Prometheus' own tool, which scripts/promtool.sh fetches; skipped where it is missing, unless
    /// `LOWTIDE_REQUIRE_PROMTOOL` requires it.
    #[test]
    fn promtool_finds_nothing_wrong() {
        let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/promtool/promtool");
        let start = |program: &str| {
            let mut command = Command::new(program);
            let command = command.args(["check", "metrics"]).stdin(Stdio::piped());
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
        };
        let check = |text: &str| {
            let mut promtool = match start(fetched).or_else(|_| start("promtool")) {
                Ok(promtool) => promtool,
                Err(error) => {
                    assert!(std::env::var_os("LOWTIDE_REQUIRE_PROMTOOL").is_none(), "promtool: {error}");
                    println!("skipped: there is no promtool; scripts/promtool.sh target/promtool");
                    return None;
                }
            };
            promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let output = promtool.wait_with_output().unwrap();
            Some((output.status.success() && output.stderr.is_empty(), format!("{output:?}")))
        };
        let second = Status { name: "a\"b\\c".into(), size_bytes: None, ..example() };
        let limited = Status { name: "limited".into(), min_rate_bps: Some(1e6), max_rate_bps: Some(2e6), ..example() };
        let Some((fine, said)) = check(&exposition(&[example(), second, limited], Format::Prometheus)) else { return };
        assert!(fine, "{said}");
        let (fine, said) = check("# TYPE lowtide_losses counter\nlowtide_losses 1\n").unwrap();
        assert!(!fine, "it finds what is wrong: {said}");
    }

    /// The rules of the format that a scraper refuses a page for.
    #[test]
    fn each_sample_belongs_to_the_family_above_it() {
        for format in [Format::OpenMetrics, Format::Prometheus] {
            check(&exposition(&[Status { program: "a\"b\\c\nd".into(), ..example() }], format));
        }
    }

    fn check(text: &str) {
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
