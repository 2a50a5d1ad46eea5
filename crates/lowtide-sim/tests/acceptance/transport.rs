// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transport and law together.

use crate::support::{Link, Samples, Table, flows_text, outcome, scenario};
use lowtide_sim::{observe::FlowSample, run, scenario::Scenario};

#[test]
fn a_paced_flow_grows_into_its_link() {
    // A pace of one window in each round trip keeps the flight just below the window; it is in use all the same
    // (RFC 9002, section 7.8). From slow start's end at the latest the window has to grow by this alone.
    let mut table = Table::default();
    for (law, more) in [
        ("prague", "queue = \"step:at=3ms\"\nbuffer = \"100ms\""),
        ("prague:accel=on,overload=on", "queue = \"step:at=3ms\"\nbuffer = \"100ms\""),
        ("dctcp:pacing=1", "queue = \"step:at=3ms\"\nbuffer = \"100ms\""),
        ("reno", "buffer = \"1bdp\""),
        ("cubic", "buffer = \"1bdp\""),
        ("cdg:g=120", "buffer = \"1bdp\""),
    ] {
        let text = flows_text(Link { rate: "100mbit", rtt: "15ms", more }, &[law], 20, 40);
        let result = outcome(&format!("tcp = {{ pacing = true }}\n{text}"));
        table.row(&format!("{law}, paced: utilisation"), result.bottlenecks[0].utilisation, 0.95..=1.001);
    }
    table.check();
}

#[test]
fn a_paced_window_that_the_application_does_not_fill_does_not_grow() {
    // Four segments in each 50 ms, spread by the pace: with a late ACK never more than half of the initial window.
    for law in ["prague", "dctcp:pacing=1", "reno"] {
        let text = format!(
            "duration = \"20s\"\nsample = \"1s\"\ntcp = {{ pacing = true }}\n[bottleneck]\nrate = \"100mbit\"\nrtt = \"15ms\"\n\
             [[flow]]\nname = \"a\"\ncc = \"{law}\"\nsource = \"cbr:bytes=5792B,interval=50ms\"\n"
        );
        let mut largest = 0.0_f64;
        run(
            &scenario(&text),
            &mut Samples(|sample: &FlowSample<'_>| largest = largest.max(sample.cwnd.unwrap_or(0.0))),
        );
        assert!((9.9..10.1).contains(&largest), "{law}: {largest} segments");
    }
}

#[test]
fn acceleration_and_overload_mode_shorten_the_transients() {
    // Targets: DCTCP at 15 ms and a step of 3 ms; what the trial simulation had is in parentheses.
    let mut table = Table::default();
    let times = |law: &str, schedule: &str| {
        let text = format!(
            "duration = \"60s\"\nsample = \"50ms\"\n[bottleneck]\nrate = \"200mbit\"\nrtt = \"15ms\"\nbuffer = \"250ms\"\n\
             queue = \"step:at=3ms\"\nburst = \"3080B\"\nschedule = \"{schedule}\"\n[[flow]]\nname = \"a\"\ncc = \"{law}\"\n"
        );
        let mut watch = Transients::default();
        run(&scenario(&text), &mut watch);
        (watch.drained - 30.0, watch.filled - 45.0)
    };
    let accelerated = "dctcp:accel=on,overload=on";
    let (plain, fast) =
        (times("dctcp", "0s:100mbit,30s:50mbit,45s:100mbit"), times(accelerated, "0s:100mbit,30s:50mbit,45s:100mbit"));
    table.row("100 to 50 Mbit/s: drained after, plain (0.20 s)", plain.0, 0.15..=0.30);
    table.row("100 to 50 Mbit/s: drained after, overload (0.10 s)", fast.0, 0.05..=0.12);
    table.row("50 to 100 Mbit/s: 95 % after, plain (0.65 s)", plain.1, 0.5..=0.8);
    table.row("50 to 100 Mbit/s: 95 % after, accelerated (0.10 s)", fast.1, 0.05..=0.30);
    let (plain, fast) =
        (times("dctcp", "0s:200mbit,30s:20mbit,45s:200mbit"), times(accelerated, "0s:200mbit,30s:20mbit,45s:200mbit"));
    table.row("200 to 20 Mbit/s: drained after, plain (1.3 s)", plain.0, 1.0..=1.7);
    table.row("200 to 20 Mbit/s: drained after, overload (0.55 s)", fast.0, 0.4..=0.7);
    table.row("20 to 200 Mbit/s: 95 % after, plain (3.15 s)", plain.1, 2.6..=3.7);
    table.row("20 to 200 Mbit/s: 95 % after, accelerated (0.50 s)", fast.1, 0.4..=0.7);
    table.check();
}

/// When the queue was last above 5 ms after 30 s, and when the link was first used to 95 % after 45 s.
#[derive(Default)]
struct Transients {
    drained: f64,
    filled: f64,
}

impl lowtide_sim::observe::Observer for Transients {
    fn wants_samples(&self) -> bool {
        true
    }

    fn bottleneck(&mut self, sample: &lowtide_sim::observe::BottleneckSample) {
        let now = sample.now.as_nanos() as f64 / 1e9;
        if (30.0..45.0).contains(&now) && sample.queue_ms > 5.0 {
            self.drained = now;
        }
        if now > 45.001 && self.filled == 0.0 && sample.utilisation >= 0.95 {
            self.filled = now;
        }
    }
}

#[test]
fn cubics_clock_stands_still_while_the_application_pauses() {
    // RFC 9438, section 5.8: pauses, however short, do not let the window jump along the cubic. A transfer ends after
    // some losses; then small frames 150 ms apart for 15 s, and no validation of the window; then the next transfer.
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = String::from("time_s,bytes\n0,40000000\n");
    for n in 0..100 {
        trace += &format!("{},8000\n", 10.0 + 0.15 * f64::from(n));
    }
    std::fs::write(folder.path().join("trace.csv"), trace + "25,20000000\n").expect("it can be written");
    let text = "duration = \"26s\"\nsample = \"20ms\"\ntcp = { validate_window = false, pacing = true }\n[bottleneck]\nrate = \"100mbit\"\nrtt = \"20ms\"\nbuffer = \"60p\"\n\
                [[flow]]\nname = \"a\"\ncc = \"cubic\"\nsource = \"trace:trace.csv\"\n";
    let scenario = Scenario::parse(text, &folder.path().join("a.toml"), &[]).expect("a scenario");
    let mut windows = Vec::new();
    run(
        &scenario,
        &mut Samples(|sample: &FlowSample<'_>| windows.push((sample.now.as_nanos() / 1_000_000, sample.cwnd))),
    );
    let at = |ms: u64| windows.iter().find(|it| it.0 == ms).and_then(|it| it.1).expect("it has a window");
    let mut table = Table::default();
    table.row("CUBIC's window before the pauses", at(9900), 100.0..=230.0);
    table.row("after them", at(24_980) / at(9900), 0.99..=1.1);
    // The frames' own round trips count, 2 s in all. With the pauses it would be 83 %.
    let next = windows.iter().filter(|it| (25_000..25_120).contains(&it.0)).filter_map(|it| it.1).fold(0.0, f64::max);
    table.row("at most, in six round trips of the next transfer", next / at(9900), 0.99..=1.35);
    table.check();
}
