// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios of the numerical model as texts: what is read, what is refused and how, what is printed.

use lowtide_deadline::Bounds;
use lowtide_sim::{
    fluid::{Capacity, DueTransfer, Model, Price, Ratio, Role, Source, Window, run},
    output::fluid::{Summary, write},
    scenario::{Control, RatioKind, Scenario, ScenarioFile, Span, Steering},
};
use proptest::prelude::*;
use std::{fs, path::Path, time::Duration};

const SMALL: &str = r#"
model = "fluid"
duration = "60s"

[bottleneck]
capacity = 90

[[flow]]
name = "bg"
"#;

fn parse(text: &str, overrides: &[&str]) -> Result<Model, String> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    match ScenarioFile::parse(text, Path::new("a.toml"), &overrides) {
        Ok(ScenarioFile::Fluid(model)) => Ok(model),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

/// `SMALL` with overrides; what is printed of it reads back as the same.
fn small(overrides: &[&str]) -> Model {
    let model = parse(SMALL, overrides).unwrap();
    assert_eq!(parse(&model.to_toml(), &[]).as_ref(), Ok(&model));
    model
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn defaults_are_those_of_the_paper() {
    let source = Source {
        name: "bg".into(),
        windows: vec![Window { start: Duration::ZERO, stop: None }],
        alpha: 2.0,
        price: Price::Blocking,
        role: Role::Greedy(1.0),
        ratio: None,
    };
    let model = Model {
        seed: 1,
        duration: secs(60),
        measure_from: Duration::ZERO,
        sample_interval: secs(1),
        spans: Vec::new(),
        step: Duration::from_millis(50),
        tracking: 0.02,
        most_rate: 200.0,
        least_price: 1e-12,
        capacity: Capacity { mean: 90.0, spread: 0.0, redraw: secs(5) },
        places: 100,
        sources: vec![source],
    };
    assert_eq!(small(&[]), model);
}

#[test]
fn everything_can_be_written() {
    let model = parse(
        r#"
        model = "fluid"
        seed = 7
        duration = "2000s"
        measure_from = "400s"
        sample = "5s"
        step = "100ms"
        tracking = 0.05
        most_rate = 150
        least_price = 1e-9
        span = [{ from = "1000s", to = "1010s" }]

        [bottleneck]
        capacity = 80
        spread = 20
        redraw = "2s"
        places = 50

        [[flow]]
        name = "tcp"
        windows = [{ stop = "600s" }, { start = "600s", stop = "900s" }, { start = "1010s" }]
        count = 2

        [[flow]]
        name = "transfer"
        start = "400s"
        stop = "1900s"
        eta = 0.1
        deadline = "1300s"
        control = "mbc"
        alpha = 1.2
        price = "exceeds:10"

        [flow.policy]
        interval = "5s"
        w_min = 0.001
        w_max = 0.5
        increase_limit = 0.1
        scale_increase_limit = false
        early_aim = false
        price_ratio = "literal"
        ratio_limit = 0.2
        ratio_interval = "1s"
        "#,
        &[],
    )
    .unwrap();
    assert_eq!((model.seed, model.measure_from, model.sample_interval), (7, secs(400), secs(5)));
    assert_eq!(model.spans, [Span { from: secs(1000), to: secs(1010) }]);
    assert_eq!((model.step, model.tracking), (Duration::from_millis(100), 0.05));
    assert_eq!((model.most_rate, model.least_price, model.places), (150.0, 1e-9, 50));
    assert_eq!(model.capacity, Capacity { mean: 80.0, spread: 20.0, redraw: secs(2) });
    let names: Vec<&str> = model.sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["tcp-1", "tcp-2", "transfer"]);
    let windows = [(0, Some(600)), (600, Some(900)), (1010, None)];
    let windows = windows.map(|(start, stop): (u64, Option<u64>)| Window { start: secs(start), stop: stop.map(secs) });
    assert_eq!(model.sources[1].windows, windows);
    let transfer = &model.sources[2];
    let steering = Steering {
        control: Control::ModelBased,
        interval: secs(5),
        bounds: Bounds::new(0.001, 0.5).unwrap(),
        increase_limit: 0.1,
        scale_increase_limit: false,
        early_aim: false,
    };
    let size = 0.1 * 80.0 * 1300.0;
    assert_eq!(transfer.role, Role::Transfer(DueTransfer { size, deadline: secs(1300), steering }));
    assert_eq!((transfer.alpha, transfer.price), (1.2, Price::Exceeds(10)));
    assert_eq!(transfer.ratio, Some(Ratio { kind: RatioKind::Literal, increase_limit: 0.2, interval: secs(1) }));
    assert_eq!(parse(&model.to_toml(), &[]), Ok(model));
}

#[test]
fn a_source_is_there_in_its_windows() {
    let windows = "flow.windows=[{ stop = '20s' }, { start = '40s' }]";
    let outcome = run(&small(&[windows]));
    let rate = |from: f64, to: f64| outcome.mean_rate(0, from, to);
    assert!(rate(10.0, 20.0) > 80.0 && rate(20.0, 40.0) == 0.0 && rate(50.0, 60.0) > 80.0);
    // it begins anew: 2.5 s of its way from 0, not from where it was
    assert!(rate(40.0, 41.0) < 50.0, "{}", rate(40.0, 41.0));
    let mean = outcome.sources[0].mean_rate;
    assert!((mean - outcome.sources[0].sent / 40.0).abs() < 1e-9, "{mean}: of the time that it was there");
}

#[test]
fn spans_have_means() {
    let spans = "span=[{ from = '10s', to = '30s' }, { from = '30s', to = '50s' }]";
    let outcome = run(&small(&[spans, "flow.count=2", "flow.stop=40s", "flow.weight=0.1"]));
    let [both, half] = &outcome.spans[..] else { panic!("two spans") };
    assert_eq!((both.from_s, both.to_s, both.flows.len()), (10.0, 30.0, 2));
    let source = &both.flows[1];
    assert!((source.mean_rate - outcome.mean_rate(1, 10.0, 30.0)).abs() < 1e-9);
    assert!((source.of_fair_share - source.mean_rate / 45.0).abs() < 1e-9);
    assert!((source.weight - 0.1).abs() < 1e-9 && source.target.is_none());
    // there for half of the time, and that as much as before
    let later = &half.flows[1];
    assert!((later.mean_rate / source.mean_rate - 0.5).abs() < 0.01, "{} {}", later.mean_rate, source.mean_rate);
    assert!((later.of_fair_share / source.of_fair_share - 1.0).abs() < 0.02);
    let table = Summary::new(&outcome, secs(0)).to_string();
    assert!(table.contains("10-30 s  bg-1"), "{table}");
}

const DUE: [&str; 2] = ["flow.size=900", "flow.deadline=30s"];

#[test]
fn what_became_of_a_deadline_is_said() {
    let outcome = |overrides: &[&str]| {
        let outcome = run(&small(&[&DUE[..], overrides].concat()));
        outcome.sources[0].deadlines[0]
    };
    let met = outcome(&[]);
    assert!(met.met == Some(true) && met.late_s.unwrap() < 0.0 && met.finished_s.unwrap() < 30.0, "{met:?}");
    let late = outcome(&["flow.size=3000"]);
    assert!(late.met == Some(false) && late.late_s == late.finished_s.map(|at| at - 30.0), "{late:?}");
    let never = outcome(&["flow.size=9000"]);
    assert_eq!((never.met, never.late_s, never.finished_s), (Some(false), Some(30.0), None));
    let open = outcome(&["flow.size=9000", "flow.deadline=90s"]);
    assert_eq!((open.met, open.late_s, open.finished_s), (None, None, None));
}

#[test]
fn mistakes_have_a_sentence() {
    for (overriding, sentence) in [
        ("model=fluit", "model: unknown model `fluit`; did you mean `fluid`? There are packets and fluid"),
        ("step=0s", "step: it has to be 1ms or more, and no longer than the duration"),
        ("sample=10ms", "sample: it has to be a step of time (50ms) or more, and make at most 200000 samples"),
        ("span=[{ from = '9s', to = '9s' }]", "to: it has to be after `from`, and not after the end of the simulation"),
        ("tracking=0", "tracking: \"0\" is not a number above 0 and at most 1"),
        ("bottleneck.capacity=-1", "capacity: \"-1\" is not a number from 0.001 to 1000000000"),
        ("bottleneck.spread=90", "spread: it has to be less than the capacity"),
        ("bottleneck.redraw=0s", "redraw: it has to be above zero"),
        ("bottleneck.places=0", "places: \"0\" is not a whole number from 1 to 1000000"),
        (
            "bottleneck.placse=9",
            "unknown key `placse`; did you mean `places`? There are capacity, spread, redraw and places",
        ),
        ("bottleneck.rate=1mbit", "`rate` has no meaning in a fluid model; leave it out"),
        ("reverse.rate=1mbit", "`reverse` has no meaning in a fluid model; leave it out"),
        ("flow.cc=reno", "`cc` has no meaning in a fluid model; leave it out"),
        ("flow.gap=10s", "`gap` has no meaning in a fluid model; leave it out"),
        ("flow.policy.ratio_every=2", "`ratio_every` has no meaning in a fluid model; leave it out"),
        (
            "flow.alhpa=2",
            "unknown key `alhpa`; did you mean `alpha`? There are name, windows, start, stop, alpha, price, policy, weight, \
             deadline, size, eta, control and count",
        ),
        ("flow.alpha=nan", "alpha: \"nan\" is not a number from 0.1 to 10"),
        (
            "flow.price=bloking",
            "price: unknown price `bloking`; did you mean `blocking`? There are blocking and exceeds",
        ),
        ("flow.price=blocking:3", "price: blocking has no parameters"),
        ("flow.price=exceeds", "price: exceeds needs a number of packets, like exceeds:10"),
        ("flow.price=exceeds:100", "price: a queue with 100 places never exceeds 100"),
        ("flow.weight=0", "weight: \"0\" is not a number above 0 and at most 1"),
        ("flow.start=60s", "start: the simulation is over by then"),
        ("flow.windows=[]", "windows: at least one has to be in it"),
        (
            "flow.windows=[{ stop = '9s' }, { start = '8s' }]",
            "windows: each has to begin after the end of the one before",
        ),
        ("flow.windows=[{}, { start = '8s' }]", "windows: each has to begin after the end of the one before"),
        ("flow.size=100", "size: it needs a deadline, like deadline = \"600s\""),
        ("flow.control=pid", "control: it needs a deadline, like deadline = \"600s\""),
        ("flow.policy.w_min=0.1", "w_min: it needs a deadline, like deadline = \"600s\""),
        ("flow.deadline=0s", "deadline: it has to be after the start"),
        ("flow.deadline=10s", "deadline: it needs a size, like size = 11700 or eta = 0.1"),
        ("flow.policy.ratio_interval=1ms", "ratio_interval: it has to be a step of time (50ms) or more"),
        (
            "flow.policy.ratio_limt=1",
            "unknown key `ratio_limt`; did you mean `ratio_limit`? There are interval, w_min, w_max, \
         increase_limit, scale_increase_limit, early_aim, price_ratio, ratio_limit and ratio_interval",
        ),
    ] {
        assert_eq!(parse(SMALL, &[overriding]).unwrap_err(), format!("{overriding}: {sentence}"));
    }
    for (overriding, sentence) in [
        ("flow.eta=0.1", "eta: there is a size already; leave out one of the two"),
        ("flow.weight=1", "weight: it follows from the deadline; leave out one of the two"),
        ("flow.windows=[{}]", "deadline: the flow has windows; leave out one of the two"),
        ("flow.control=mcb", "control: unknown control `mcb`; did you mean `mbc`? There are pid and mbc"),
        ("flow.policy.increase_limit=2", "increase_limit: \"2\" is not a number above 0 and at most 1"),
    ] {
        let error = parse(SMALL, &[&DUE[..], &[overriding]].concat()).unwrap_err();
        assert!(error.ends_with(sentence), "{error}");
    }
}

#[test]
fn mistakes_have_a_place() {
    for (from, to, sentence) in [
        ("capacity = 90", "", "a.toml:5:1: `capacity` is missing here; write it like capacity = 90"),
        ("name = \"bg\"", "", "a.toml:8:1: `name` is missing here; write it like name = \"tcp\""),
        (
            "capacity = 90",
            "capacity = 90\nrate = \"1mbit\"",
            "a.toml:7:1: `rate` has no meaning in a fluid model; leave it out",
        ),
        ("[bottleneck]\ncapacity = 90", "", "a.toml:1:1: there is no [bottleneck]"),
        ("[[flow]]\nname = \"bg\"\n", "", "a.toml:1:1: there is no [[flow]]"),
        ("\"bg\"", "\"bg\"\n[[flow]]\nname = \"bg\"", "a.toml:11:8: name: there is a flow `bg` already"),
        ("duration = \"60s\"", "", "a.toml:1:1: `duration` is missing here; write it like duration = \"120s\""),
    ] {
        assert_eq!(parse(&SMALL.replace(from, to), &[]).unwrap_err(), sentence, "{from}");
    }
    let error = Scenario::parse(SMALL, Path::new("a.toml"), &[]).unwrap_err().to_string();
    assert_eq!(error, "a.toml: a scenario of packets is expected here, and this is a fluid model");
}

#[test]
fn a_result_has_these_files_and_keys() {
    let directory = tempfile::tempdir().unwrap();
    let model = small(&[&DUE[..], &["sample=30s"]].concat());
    let outcome = run(&model);
    let summary = Summary::new(&outcome, Duration::from_millis(1500));
    for plot in [true, false] {
        let files = write(directory.path(), &model, &outcome, &summary, plot).unwrap();
        let expected = ["summary.json", "scenario.toml", "flows.csv", "bottlenecks.csv", "plot.svg"];
        assert_eq!(files, expected[..4 + usize::from(plot)], "an earlier result is replaced");
    }
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(parse(&read("scenario.toml"), &[]), Ok(model));
    let json: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&json), "bottleneck flows model seed version wall_s");
    assert_eq!(keys(&json["bottleneck"]), "capacity loss utilisation");
    assert_eq!(keys(&json["flows"][0]), "deadlines mean_rate name sent");
    assert_eq!(keys(&json["flows"][0]["deadlines"][0]), "due_s finished_s late_s met size start_s");
    let lines = |name: &str| read(name).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines("flows.csv")[0], "time_s,flow,rate,weight,target,price_ratio");
    assert!(lines("flows.csv")[2].starts_with("60,bg,") && lines("flows.csv")[2].ends_with(",,,"), "done by then");
    assert_eq!(
        (lines("bottlenecks.csv")[0].as_str(), lines("bottlenecks.csv").len()),
        ("time_s,capacity,utilisation,loss", 3)
    );
    let table = summary.to_string();
    assert!(table.contains("bg        met, ") && table.ends_with("1.50 s; seed 1\n"), "{table}");
}

proptest! {
    #[test]
    fn any_value_is_read_or_refused_in_a_sentence(
        key in prop::sample::select(&[
            "step", "sample", "tracking", "most_rate", "least_price", "bottleneck.capacity", "bottleneck.spread", "bottleneck.redraw",
            "bottleneck.places", "flow.alpha", "flow.price", "flow.weight", "flow.start", "flow.stop", "flow.windows", "flow.size",
            "flow.eta", "flow.deadline", "flow.policy.interval", "flow.policy.price_ratio", "flow.policy.ratio_interval",
        ][..]),
        value in "(-?[0-9]{1,9}(\\.[0-9]{1,3}|e-?[0-9]{1,3})?(s|ms|us)?|exceeds:[0-9]{1,5}|literal|\\[\\{.{0,9}\\}\\]|\\PC{0,9})",
        due: bool,
    ) {
        let overriding = format!("{key}={value}");
        let overrides = [&DUE[..if due { 2 } else { 0 }], &[overriding.as_str()]].concat();
        match parse(SMALL, &overrides) {
            Ok(model) => {
                prop_assert_eq!(parse(&model.to_toml(), &[]), Ok(model.clone()));
                let short = model.step * 3;
                let rate = run(&Model { duration: short, measure_from: Duration::ZERO, ..model }).sources[0].mean_rate;
                prop_assert!(rate.is_finite() && rate >= 0.0, "{}", rate);
            }
            Err(sentence) => prop_assert!(!sentence.contains('\n') && sentence.len() > 5, "{}", sentence),
        }
    }
}
