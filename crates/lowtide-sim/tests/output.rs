// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a result looks like, with made-up samples.

mod support;

use lowtide_net::Time;
use lowtide_sim::{
    BasisTimes, DeadlineOutcome, SpanFlow, SpanOutcome,
    observe::{BottleneckSample, FlowSample, Observer},
    output::{OutputError, Results, Summary, Wanted},
    scenario::Scenario,
};
use std::{collections::BTreeMap, fs, path::Path, time::Duration};
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
fn deadlines_and_spans_are_told() {
    let mut outcome = outcome();
    let transfer = |start: f64, finished: Option<f64>, late: Option<f64>| DeadlineOutcome {
        bytes: 50_000_000,
        start_s: start,
        due_s: start + 30.0,
        finished_s: finished,
        met: late.map(|late| late <= 0.0),
        late_s: late,
        basis_s: BasisTimes { model: 20.0, no_price: 9.5, no_rtt: 0.5, ..BasisTimes::default() },
    };
    outcome.flows[0].deadlines = vec![
        transfer(0.0, Some(28.5), Some(-1.5)),
        transfer(30.0, Some(62.25), Some(2.25)),
        transfer(70.0, None, Some(20.0)),
        transfer(100.0, None, None),
    ];
    let bg = SpanFlow {
        name: "bg".into(),
        mean_bps: 4e6,
        of_fair_share: Some(0.4),
        target_bps: Some(4.5e6),
        weight: Some(0.25),
    };
    let video = SpanFlow { name: "video".into(), mean_bps: 4e6, ..SpanFlow::default() };
    outcome.spans = vec![SpanOutcome { from_s: 60.0, to_s: 90.0, flows: vec![bg, video] }];
    let summary = Summary::new(&outcome, Duration::ZERO);
    let expected = "\
transfer  deadline                       MB  start/s  done/s   due/s  by model/s  feedback/s  fallback/s
bg        met, 1.5 s early            50.00     0.00   28.50   30.00        20.0           -        10.0
bg        missed by 2.2 s             50.00    30.00   62.25   60.00        20.0           -        10.0
bg        missed by more than 20.0 s  50.00    70.00       -  100.00        20.0           -        10.0
bg        open                        50.00   100.00       -  130.00        20.0           -        10.0

span     flow   Mbit/s  of a fair share  target  weight
60-90 s  bg       4.00             40 %    4.50  0.2500
         video    4.00                -       -       -
";
    let table = summary.to_string();
    assert!(table.contains(expected), "{table}");
    let json: serde_json::Value = serde_json::from_str(&summary.to_json()).expect("it is JSON");
    let late = &json["flows"][0]["deadlines"][1];
    assert_eq!((&late["met"], &late["late_s"]), (&false.into(), &2.25.into()));
    assert_eq!(late["basis_s"]["no_price"], 9.5);
    assert_eq!(json["spans"][0]["flows"][0]["of_fair_share"], 0.4);
    assert_eq!(json["spans"][0]["flows"][1].get("weight"), None);
}

#[test]
fn control_has_a_file_where_there_is_a_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let text = "duration = \"2s\"\nsample = \"1s\"\n[bottleneck]\nrate = \"10mbit\"\nrtt = \"40ms\"\n\
                [[flow]]\nname = \"bg\"\ncc = \"dctcp\"\nsize = \"1GB\"\ndeadline = \"60s\"\ncontrol = \"mbc\"\n";
    let scenario = Scenario::parse(text, Path::new("a.toml"), &[]).unwrap();
    let mut results = Results::create(directory.path(), &scenario, &Wanted::default()).unwrap();
    let outcome = lowtide_sim::run(&scenario, &mut results);
    let files = results.finish(&outcome, &Summary::new(&outcome, Duration::ZERO)).unwrap();
    assert!(files.contains(&"control.csv"), "{files:?}");
    let text = fs::read_to_string(directory.path().join("control.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[0], "time_s,flow,weight,target_bps,achieved_bps,price_ratio,basis");
    assert!(lines[1].starts_with("1,bg,0.004,"), "{text}");
    assert!(lines[2].ends_with(",1,fallback:no_model"), "{text}");
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
    assert!(error.to_string().ends_with("is not empty and not a result of lowtide sim; choose another directory"));
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
fn an_earlier_result_stays_until_the_new_one_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    result(directory.path(), &scenario(), &Wanted { plot: true, capture: None }).unwrap();
    let all = || {
        let entries = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        entries
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), fs::read(&path).unwrap()))
            .collect::<BTreeMap<_, _>>()
    };
    let before = all();
    assert_eq!(before.len(), 7);
    let mut other = scenario();
    other.seed += 1;
    // one that is given up half way
    let results = Results::create(directory.path(), &other, &Wanted::default()).unwrap();
    assert_eq!(all(), before);
    drop(results);
    assert_eq!(all(), before);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), before.len(), "nothing of it is left");
    // what a run that was killed leaves does not count
    let killed = tempfile::tempdir().unwrap();
    fs::create_dir(killed.path().join(".unfinished")).unwrap();
    fs::write(killed.path().join(".unfinished/plot.svg"), "half a plo").unwrap();
    let files = result(killed.path(), &scenario(), &Wanted::default()).unwrap();
    assert_eq!(fs::read_dir(killed.path()).unwrap().count(), files.len());
    assert!(!files.contains(&"plot.svg"));
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let error = result(Path::new("/dev/null/out"), &scenario(), &Wanted::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /dev/null/out: "), "{error}");
}
