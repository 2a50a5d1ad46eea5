// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios as texts: what is read, what is refused and how, what is printed.

mod deadlines;
mod refused;

use lowtide_deadline::{Bounds, Control as Law, Cubic, Model, RatioPolicy, RatioRule};
use lowtide_net::{BufferSize, Class, Discipline, Jitter, Limit, LossModel, Rate};
use lowtide_sim::scenario::{
    Control, Deadline, Direction, Flow, RatioKind, Scenario, ScenarioFile, Source, Steering, Tcp, Transport,
};
use proptest::prelude::*;
use std::{path::Path, time::Duration};

const SMALL: &str = r#"
duration = "60s"

[bottleneck]
rate = "10mbit"
rtt = "40ms"

[[flow]]
name = "bg"
cc = "reno"
"#;

fn parse(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Scenario::parse(text, Path::new("a.toml"), &overrides).map_err(|error| error.to_string())
}

/// `SMALL` with these overrides.
fn small(overrides: &[&str]) -> Scenario {
    parse(SMALL, overrides).unwrap()
}

/// `SMALL` with a line replaced; its lines are: 2 duration, 4 to 6 bottleneck, 8 to 10 flow.
fn with(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    SMALL.replace(from, to)
}

fn tcp(flow: &Flow) -> &Tcp {
    match &flow.transport {
        Transport::Tcp(tcp) => tcp,
        Transport::Udp => panic!("{} goes by UDP", flow.name),
    }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A flow can run its law as the kernel has it; it is the same but for the rounding of its integers.
#[test]
fn a_law_can_be_the_port_of_the_kernel() {
    let rates = ["vegas", "vegas:port=kernel", "vegas:port=kernel,alpha=6,beta=8"].map(|cc| {
        let scenario = parse(SMALL, &[&format!("flow.cc={cc}")]).unwrap();
        assert_eq!(Scenario::parse(&scenario.to_toml(), Path::new("printed"), &[]).unwrap(), scenario);
        lowtide_sim::run(&scenario, &mut lowtide_sim::observe::Nobody).flows[0].acked_bytes
    });
    assert!(rates.iter().all(|rate| *rate > 0) && rates[0].abs_diff(rates[1]) < rates[0] / 50, "{rates:?}");
    for (cc, sentence) in [
        ("vegas:variant=original,port=kernel", "the kernel's vegas has variant=linux, and not variant=original"),
        ("nice:port=kernel", "nice is not ported to the kernel; there are cdg, vegas"),
        ("proteus:port=kernel", "proteus is not ported to the kernel; there are cdg, vegas"),
        ("vegas:port=moon", "a law has one port, port=kernel"),
    ] {
        let error = parse(SMALL, &[&format!("flow.cc={cc}")]).unwrap_err();
        assert!(error.contains(sentence), "{error}");
    }
}

/// A receiver can govern what it receives; the sender knows nothing of it.
#[test]
fn a_receiver_can_have_a_law() {
    let scenario = parse(SMALL, &["flow.receiver=tide", "flow.weight=0.3"]).unwrap();
    assert_eq!(scenario.flows[0].receiver.as_ref().map(|law| law.name()), Some("tide"));
    assert_eq!(Scenario::parse(&scenario.to_toml(), Path::new("printed"), &[]).unwrap(), scenario);
    let [governed, ordinary] = ["flow.receiver=tide", "seed=1"].map(|it| {
        let overrides = [it, "bottleneck.buffer=10bdp", "duration=20s"];
        lowtide_sim::run(&parse(SMALL, &overrides).unwrap(), &mut lowtide_sim::observe::Nobody)
    });
    let queue = |outcome: &lowtide_sim::Outcome| outcome.bottlenecks[0].mean_queue_ms;
    assert!(queue(&governed) < 40.0 && queue(&ordinary) > 100.0, "{} {}", queue(&governed), queue(&ordinary));
    assert!(governed.bottlenecks[0].utilisation > 0.9);
    let sized = with("cc = \"reno\"", "cc = \"cubic\"\nsize = \"1MB\"\ndeadline = \"30s\"\nreceiver = \"tide\"");
    let datagrams = with("cc = \"reno\"", "source = \"cbr:rate=1mbit\"\nreceiver = \"tide\"");
    let reno = with("cc = \"reno\"", "cc = \"reno\"\nreceiver = \"dctcp\"");
    let unweighted = with("cc = \"reno\"", "cc = \"reno\"\nreceiver = \"ledbat\"\nweight = 0.5");
    for (text, sentence) in [
        (reno, "receiver: dctcp does not govern what is received; tide does"),
        (unweighted, "weight: ledbat takes none at the receiver; tide does"),
        (sized, "receiver: a deadline steers the sender; give this flow a weight instead"),
        (datagrams, "receiver: it needs TCP; name the sender's law, like cc = \"cubic\""),
    ] {
        let error = parse(&text, &[]).unwrap_err();
        assert!(error.contains(sentence), "{error}");
    }
}

#[test]
fn what_is_not_written_has_a_usual_value() {
    let scenario = small(&[]);
    assert_eq!((scenario.seed, scenario.measure_from), (1, secs(0)));
    assert_eq!(scenario.sample_interval, Duration::from_millis(100));
    assert_eq!(scenario.reverse, None);
    let [link] = &scenario.bottlenecks[..] else { panic!("one bottleneck") };
    assert_eq!(
        (link.name.as_str(), link.buffer, &link.queue),
        ("bottleneck", BufferSize::Bdp(1.0), &Discipline::DropTail)
    );
    assert_eq!((link.schedule.clone(), link.loss, link.police, link.burst), (None, LossModel::NONE, None, 0));
    let [flow] = &scenario.flows[..] else { panic!("one flow") };
    assert_eq!((flow.start, flow.stop, flow.access), (secs(0), None, None));
    assert_eq!((flow.rtt, &flow.path[..], flow.direction), (Duration::from_millis(40), &[0][..], Direction::Forward));
    assert_eq!(flow.source, Source::Greedy);
    // a full packet has 1500 bytes
    assert_eq!((tcp(flow).mss, tcp(flow).header, tcp(flow).ack_every), (1448, 52, 2));
}

#[test]
fn everything_can_be_written() {
    let scenario = parse(
        r#"
        seed = 7
        duration = "120s"
        measure_from = "60s"
        sample = "20ms"
        tcp = { mss = "1452B", header = "48B", pacing = true }

        [[bottleneck]]
        name = "a"
        rate = "10mbit"
        rtt = "30ms"
        buffer = "100p"
        queue = "codel:target=2ms"
        schedule = [{ at = "20s", rate = "5mbit" }, { at = "21s", rate = "0mbit" }, { at = "22s", rate = "1mbit" }]
        loss = 0.001
        jitter = "2ms"
        reordering = "1%:5ms"
        police = "8mbit:15kB"
        burst = "3080B"

        [[bottleneck]]
        name = "b"
        rate = "20mbit"
        rtt = "10ms"

        [reverse]
        rate = "1mbit"
        rtt = "40ms"

        [[flow]]
        name = "fg"
        cc = "reno:beta=0.7"
        count = 2
        tcp = { ack_every = 1, pacing = false }

        [[flow]]
        name = "up"
        cc = "reno"
        size = "10MB"
        direction = "reverse"
        class = "background"
        path = ["b"]
        access = "2mbit"
        start = "5s"
        stop = "9s"

        [[flow]]
        name = "video"
        source = "cbr:bytes=20kB,interval=40ms"
        rtt = "80ms"
        "#,
        &[],
    )
    .unwrap();
    assert_eq!(scenario.bottlenecks[0].capacity().to_string(), "0s:10mbit,20s:5mbit,21s:0bit,22s:1mbit");
    assert_eq!(scenario.bottlenecks[0].loss.to_string(), "0.001");
    assert_eq!(scenario.bottlenecks[0].link(secs(0), 1).burst, 3080);
    assert_eq!(scenario.reverse.as_ref().map(|link| link.name.as_str()), Some("reverse"));
    let names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["fg-1", "fg-2", "up", "video"]);
    let [first, second, up, video] = &scenario.flows[..] else { panic!("four flows") };
    assert_eq!((tcp(first).ack_every, tcp(first).pacing, tcp(first).mss), (1, false, 1452));
    assert_eq!((tcp(up).ack_every, tcp(up).pacing, tcp(up).header), (2, true, 48));
    assert_eq!(second.rtt, Duration::from_millis(40), "what both bottlenecks add");
    assert_eq!((up.rtt, &up.path[..], up.direction), (Duration::from_millis(10), &[1][..], Direction::Reverse));
    assert_eq!((up.source.clone(), up.start, up.stop), (Source::Sized(10_000_000), secs(5), Some(secs(9))));
    assert_eq!((&video.transport, video.rtt), (&Transport::Udp, Duration::from_millis(80)));
    assert_eq!((up.class, video.class), (Class::Background, Class::Foreground));
    let printed = scenario.to_toml();
    assert_eq!(parse(&printed, &[]), Ok(scenario), "{printed}");
}

#[test]
fn a_flow_may_have_a_weight_and_an_actuator() {
    let scenario = small(&["flow.weight=0.1", "flow.actuator=phantom:floor=0s"]);
    let flow = &scenario.flows[0];
    assert_eq!(
        (flow.weight, flow.actuator.as_ref().map(ToString::to_string)),
        (Some(0.1), Some("phantom:floor=0s".into()))
    );
    assert_eq!(flow.steered_by(), flow.actuator);
    assert_eq!(parse(&scenario.to_toml(), &[]), Ok(scenario));
    let steered = |overrides: &[&str]| small(overrides).flows[0].steered_by().map(|actuator| actuator.to_string());
    assert_eq!(steered(&[]), None, "the law as published");
    assert_eq!(steered(&["flow.weight=1"]), Some("phantom".into()));
    assert_eq!(steered(&["flow.size=1MB", "flow.deadline=5s", "flow.cc=cdg"]), Some("native".into()));
    for (overrides, sentence) in [
        (&["flow.weight=0"][..], "weight: \"0\" is not a weight; it has to be above 0 and at most 1, or none"),
        (&["flow.cc=bbr3", "flow.weight=1"], "weight: bbr3 takes none; cdg and cubic do"),
        (
            &["flow.actuator=native"],
            "actuator: reno cannot be steered by `native`: it has no weight of its own; take `phantom` or `beta`",
        ),
        (
            &["flow.actuator=fantom"],
            "actuator: unknown actuator `fantom`; did you mean `phantom`? There are native, phantom and beta",
        ),
        (
            &["flow.size=1MB", "flow.deadline=5s", "flow.weight=1"],
            "weight: it follows from the deadline; leave out one of the two",
        ),
    ] {
        let error = parse(SMALL, overrides).unwrap_err();
        assert!(error.ends_with(sentence), "{error}");
    }
}

#[test]
fn schedules_may_repeat() {
    let scenario = small(&["bottleneck.schedule=0s:200mbit,10s:100mbit,every:20s"]);
    assert_eq!(scenario.bottlenecks[0].capacity().to_string(), "0s:200mbit,10s:100mbit,every:20s");
}

#[test]
fn round_trips_may_change_and_the_way_back_may_jitter() {
    let text = with(
        "rtt",
        "rtt_schedule = [{ at = \"20s\", rtt = \"200ms\" }, { at = \"30s\", rtt = \"25ms\" }]\nreverse_jitter = \"5ms\"\nrtt",
    );
    let scenario = parse(&text, &[]).unwrap();
    let link = &scenario.bottlenecks[0];
    assert_eq!(link.rtt_schedule.as_ref().unwrap().to_string(), "0s:40ms,20s:200ms,30s:25ms");
    assert_eq!((link.jitter, link.reverse_jitter), (Jitter::NONE, "5ms".parse().unwrap()));
    assert_eq!(parse(&scenario.to_toml(), &[]).as_ref(), Ok(&scenario));
    let [there, back] = link.wires(7).map(Option::unwrap);
    assert_eq!(there.delay.to_string(), "0s:20ms,20s:100ms,30s:12.5ms");
    assert_eq!((back.delay, back.jitter), (there.delay, link.reverse_jitter));
    assert_eq!(link.link(secs(0), 1).limit, Limit::Bytes(50_000), "of the rtt");
    assert_eq!(small(&[]).bottlenecks[0].wires(1), [None, None]);
    let again = small(&["bottleneck.rtt_schedule=0s:10ms,5s:1ms,every:9s", "flow.rtt=40ms"]);
    assert_eq!(again.bottlenecks[0].rtt_schedule.as_ref().unwrap().to_string(), "0s:10ms,5s:1ms,every:9s");
    for (overrides, sentence) in [
        (&["bottleneck.rtt_schedule=5s:1ms"][..], "rtt_schedule: the steps of a schedule have to begin at 0s"),
        (&["bottleneck.rtt_schedule=[{at=\"5s\"}]"], "`rtt` is missing here; write it like rtt = \"200ms\""),
        (
            &["bottleneck.rtt_schedule=0s:1ms", "flow.rtt=39ms"],
            "rtt: the bottlenecks with an `rtt_schedule` on its path have more; it has to be 40ms or more",
        ),
        (
            &["reverse.rate=1mbit", "reverse.rtt=1ms", "bottleneck.reverse_jitter=1ms"],
            "reverse_jitter of `bottleneck`: with [reverse] write it there, as `jitter`",
        ),
        (
            &["reverse.rate=1mbit", "reverse.rtt=1ms", "reverse.reverse_jitter=1ms"],
            "reverse_jitter: here it is called `jitter`",
        ),
        (
            &["reverse.rate=1mbit", "reverse.rtt=1ms", "reverse.rtt_schedule=0s:1ms"],
            "rtt_schedule: a round trip is both ways; write it in [bottleneck]",
        ),
    ] {
        let error = parse(SMALL, overrides).unwrap_err();
        assert!(error.ends_with(sentence), "{error}");
    }
}

#[test]
fn traces_are_found_beside_the_file_and_travel_with_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "time_s,bytes\n0,1500\n2.5,3000\n").unwrap();
    std::fs::write(folder.path().join("m.txt"), "1\n2\n").unwrap();
    let file = folder.path().join("s.toml");
    std::fs::write(&file, SMALL).unwrap();
    let overrides = ["flow.source=trace:t.csv", "bottleneck.schedule=mahimahi:m.txt"].map(str::to_owned);
    let scenario = Scenario::read(&file, &overrides).unwrap();
    assert_eq!(scenario.flows[0].source, Source::Trace([(secs(0), 1500), (Duration::from_millis(2500), 3000)].into()));
    std::fs::remove_file(folder.path().join("t.csv")).unwrap();
    assert_eq!(parse(&scenario.to_toml(), &[]), Ok(scenario));
}

#[test]
fn several_bottlenecks_have_names_and_an_order() {
    let two = |names: [&str; 2], path: &str| {
        let link = |name: &str| format!("[[bottleneck]]\n{name}\nrate = \"1mbit\"\nrtt = \"1ms\"\n");
        let [a, b] = names.map(link);
        parse(&format!("duration = \"1s\"\n{a}{b}[[flow]]\nname = \"x\"\ncc = \"reno\"\n{path}"), &[]).unwrap_err()
    };
    let (a, b) = ("name = \"a\"", "name = \"b\"");
    assert_eq!(two([a, a], ""), "a.toml:7:8: name: there is a bottleneck `a` already");
    assert_eq!(two([a, ""], ""), "a.toml:6:1: `name` is missing here; with several bottlenecks each needs one");
    let order = "a.toml:13:8: path: bottlenecks are passed once each, in the order in which the file has them";
    assert_eq!(two([a, b], "path = [\"b\", \"a\"]"), order);
    assert_eq!(two([a, b], "path = [\"a\", \"a\"]"), order);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Scenario::read(Path::new("/no/such.toml"), &[]).unwrap_err().to_string();
    assert_eq!(error, "/no/such.toml: cannot read it: No such file or directory (os error 2)");
}

#[test]
fn the_scenarios_that_come_along_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut number = 0;
    let entries = ["", "deadline"].map(|part| std::fs::read_dir(folder.join(part)).unwrap());
    for entry in entries.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines = text.lines();
            assert!(lines.next().unwrap().starts_with("# SPDX-License-Identifier: "), "{}", path.display());
            assert!(lines.next().unwrap().starts_with("# "), "{}: what it shows", path.display());
            let experiment = ScenarioFile::read(&path, &[]).unwrap();
            assert_eq!(ScenarioFile::parse(&experiment.to_toml(), &path, &[]), Ok(experiment));
            number += 1;
        }
    }
    assert_eq!(number, 35);
}

/// Texts that come near to a scenario.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[bottleneck]".to_owned()),
        Just("[[bottleneck]]".to_owned()),
        Just("[[flow]]".to_owned()),
        Just("[tcp]".to_owned()),
        "(duration|rate|rtt|buffer|queue|loss|schedule|source|start|size|mss|path|tcp) = \"?(1|20)?(s|mbit|p|B|:|%)?\"?",
        "\\PC{0,20}",
        Just("duration = \"1s\"".to_owned()),
        Just("[bottleneck]\nrate = \"1mbit\"\nrtt = \"1ms\"".to_owned()),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.join("\n"))
}

proptest! {
    #[test]
    fn any_text_is_a_scenario_or_a_sentence(text in fragments(), overriding in "[a-z.]{0,20}=?\\PC{0,10}") {
        for overrides in [&[][..], &[overriding.as_str()]] {
            match parse(&text, overrides) {
                Ok(scenario) => prop_assert_eq!(parse(&scenario.to_toml(), &[]), Ok(scenario)),
                Err(sentence) => prop_assert!(!sentence.contains('\n') && sentence.len() > 5, "{}", sentence),
            }
        }
    }

    #[test]
    fn what_is_printed_reads_back(
        seed: u64,
        nanos in 1u64..1_000_000_000_000_000,
        bits in 1u64..1_000_000_000_000,
        buffer in prop_oneof![(0u64..9_000_000).prop_map(BufferSize::Bytes), (0.0..9.0).prop_map(BufferSize::Bdp)],
        queue in prop::sample::select(&Discipline::NAMES[..]),
        loss in 0.0..1.0,
        source in prop_oneof![
            Just("greedy".to_owned()), (1u64..1 << 60).prop_map(|bytes| format!("sized:{bytes}B")),
            (1u64..99_999_999).prop_map(|us| format!("onoff:on={us}us,off=7ns")),
            (1u64..100_000).prop_map(|bytes| format!("poisson:bytes={bytes}B,rate=3mbit")),
            (1.0..100.0).prop_map(|pages| format!("web:load=3mbit,pages={pages},alpha=1.1,mean=7kB,max=77kB")),
        ],
        count in 1u64..4,
        pacing: bool,
    ) {
        let text = format!(
            "seed = \"{seed}\"\nduration = \"{}ns\"\nmeasure_from = \"{nanos}ns\"\nflow = [{{ name = \"x\", cc = \"reno\", \
             source = \"{source}\", count = {count} }}]\ntcp.pacing = {pacing}\n[bottleneck]\nrate = \"{bits}bit\"\n\
             rtt = \"{nanos}ns\"\nbuffer = \"{buffer}\"\nqueue = \"{queue}\"\nloss = {loss:?}",
            nanos + 1,
        );
        let scenario = parse(&text, &[]).unwrap();
        prop_assert_eq!(scenario.flows.len() as u64, count);
        prop_assert_eq!(parse(&scenario.to_toml(), &[]), Ok(scenario));
    }
}
