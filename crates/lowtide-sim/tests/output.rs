// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a result looks like, with made-up samples.

mod support;

use lowtide_net::Time;
use lowtide_sim::{
    observe::{BottleneckSample, FlowSample, Observer},
    output::{OutputError, Results, Summary, Wanted},
    scenario::Scenario,
};
use std::{fs, path::Path, time::Duration};
use support::{outcome, scenario};

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Writes a result of two samples.
fn result(directory: &Path, scenario: &Scenario, wanted: &Wanted) -> Result<Vec<&'static str>, OutputError> {
    let mut results = Results::create(directory, scenario, wanted)?;
    for n in 1..=2 {
        let now = ms(100 * n);
        for flow in 0..scenario.flows.len() {
            results.flow(&FlowSample {
                now,
                flow,
                delivered: 62_500 * n,
                rate_bps: 5e6 * n as f64,
                cwnd: (flow == 0).then_some(30.5),
                ssthresh: None,
                in_flight: 44_160,
                rtt_ms: Some(40.125),
                one_way_delay_ms: None,
                retransmits: n,
                reductions: 1,
                inner: &[("gradient", -0.25)][..usize::from(flow == 0)],
                control: None,
            });
        }
        results.bottleneck(&BottleneckSample {
            now,
            bottleneck: 0,
            queue_packets: 10,
            queue_bytes: 15_000,
            queue_ms: 12.0,
            packets: 40,
            drops: 0,
            marks: 3,
            utilisation: 0.5,
        });
    }
    let outcome = outcome();
    results.finish(&outcome, &Summary::new(&outcome, Duration::from_millis(1500)))
}

#[test]
fn the_summary_has_these_keys() {
    let json = Summary::new(&outcome(), Duration::from_millis(1500)).to_json();
    let expected = r#"{
  "flows": [
    {
      "name": "bg",
      "cc": "reno",
      "mean_bps": 4500000.0,
      "acked_bytes": 67500000,
      "finished_s": 55.5,
      "retransmits": 12,
      "min_rtt_ms": 40.0,
      "mean_rtt_ms": 61.25,
      "p95_rtt_ms": 80.5,
      "mean_queue_ms": 20.0,
      "p95_queue_ms": 39.0
    },
    {
      "name": "video",
      "cc": "udp",
      "mean_bps": 4000000.0,
      "acked_bytes": 60000000,
      "finished_s": null,
      "retransmits": 0,
      "min_rtt_ms": null,
      "mean_rtt_ms": null,
      "p95_rtt_ms": null,
      "mean_queue_ms": 20.0,
      "p95_queue_ms": 38.0
    }
  ],
  "bottleneck": {
    "name": "bottleneck",
    "utilisation": 0.925,
    "mean_queue_ms": 20.0,
    "p95_queue_ms": 38.5,
    "drops": 77,
    "marks": 5
  },
  "jain": null,
  "packets": 123456,
  "events": 654321,
  "wall_s": 1.5,
  "seed": 7,
  "version": "0.1.0"
}
"#;
    assert_eq!(json, expected);
}

#[test]
fn several_bottlenecks_are_all_there() {
    let mut outcome = outcome();
    let mut other = outcome.bottlenecks[0].clone();
    other.name = "reverse".into();
    outcome.bottlenecks.push(other);
    let json: serde_json::Value =
        serde_json::from_str(&Summary::new(&outcome, Duration::ZERO).to_json()).expect("it is JSON");
    assert_eq!(json["bottleneck"]["name"], "bottleneck");
    assert_eq!(json["bottlenecks"][1]["name"], "reverse");
}

#[test]
fn the_table_is_for_people() {
    let table = Summary::new(&outcome(), Duration::from_millis(1500)).to_string();
    let expected = "\
flow   cc    Mbit/s     MB  done/s  resent  min RTT/ms  mean   p95  queue/ms   p95
bg     reno    4.50  67.50   55.50      12        40.0  61.2  80.5      20.0  39.0
video  udp     4.00  60.00       -       0           -     -     -      20.0  38.0

bottleneck    used  queue/ms   p95  drops  marks
bottleneck  92.5 %      20.0  38.5     77      5

123456 packets, 654321 events, 1.50 s; seed 7
";
    assert_eq!(table, expected);
}

#[test]
fn the_series_have_a_line_for_each_sample() {
    let directory = tempfile::tempdir().unwrap();
    let files = result(directory.path(), &scenario(), &Wanted::default()).unwrap();
    assert_eq!(files, ["summary.json", "scenario.toml", "flows.csv", "inner.csv", "bottlenecks.csv", "transfers.csv"]);
    let read = |name| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(
        read("flows.csv"),
        "time_s,flow,delivered_bytes,rate_bps,cwnd_segments,ssthresh_segments,in_flight_bytes,rtt_ms,one_way_delay_ms,retransmits,reductions\n\
         0.1,bg,62500,5000000,30.500,,44160,40.125000,,1,1\n\
         0.1,video,62500,5000000,,,44160,40.125000,,1,1\n\
         0.2,bg,125000,10000000,30.500,,44160,40.125000,,2,1\n\
         0.2,video,125000,10000000,,,44160,40.125000,,2,1\n"
    );
    assert_eq!(read("inner.csv"), "time_s,flow,name,value\n0.1,bg,gradient,-0.25\n0.2,bg,gradient,-0.25\n");
    assert_eq!(
        read("bottlenecks.csv"),
        "time_s,bottleneck,queue_packets,queue_bytes,queue_ms,packets,drops,marks,utilisation\n\
         0.1,bottleneck,10,15000,12.000000,40,0,3,0.500000\n\
         0.2,bottleneck,10,15000,12.000000,40,0,3,0.500000\n"
    );
    assert_eq!(read("transfers.csv"), "flow,start_s,bytes,completion_s\nbg,0.5,1000,0.25\nbg,1,20000,1.5\n");
    let again = Scenario::read(&directory.path().join("scenario.toml"), &[]).unwrap();
    assert_eq!(again, scenario());
}

#[test]
fn the_plot_names_what_it_shows() {
    let directory = tempfile::tempdir().unwrap();
    let files = result(directory.path(), &scenario(), &Wanted { plot: true, capture: None }).unwrap();
    assert_eq!(files.last(), Some(&"plot.svg"));
    let svg = fs::read_to_string(directory.path().join("plot.svg")).unwrap();
    for text in [
        "10mbit, 40ms, buffer 1bdp, droptail",
        "120s, seed 7",
        "Rate, Mbit/s",
        "Queueing delay, ms",
        "Time, s",
        "bg (reno): 4.50 Mbit/s",
        "video (udp): 4.00 Mbit/s",
        "bottleneck: 20.0 ms, 92 % used",
        "capacity",
        "means from here",
    ] {
        assert!(svg.contains(text), "no {text:?} in {svg}");
    }
}

#[test]
fn a_directory_with_something_else_in_it_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mine = directory.path().join("scenario.toml");
    fs::write(&mine, "duration = \"1s\"\n").unwrap();
    let error = result(directory.path(), &scenario(), &Wanted::default()).unwrap_err();
    assert!(matches!(error, OutputError::Occupied(_)), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("is not empty and not a result of lowtide sim; choose another directory with --out")
    );
    assert_eq!(fs::read_to_string(&mine).unwrap(), "duration = \"1s\"\n");
}

#[test]
fn an_earlier_result_is_replaced_and_what_lies_beside_it_stays() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("new/one");
    result(&directory, &scenario(), &Wanted { plot: true, capture: None }).unwrap();
    fs::write(directory.join("notes.txt"), "mine").unwrap();
    result(&directory, &scenario(), &Wanted::default()).unwrap();
    assert!(!directory.join("plot.svg").exists(), "it belonged to the earlier result");
    assert_eq!(fs::read_to_string(directory.join("notes.txt")).unwrap(), "mine");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let error = result(Path::new("/dev/null/out"), &scenario(), &Wanted::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /dev/null/out: "), "{error}");
}
