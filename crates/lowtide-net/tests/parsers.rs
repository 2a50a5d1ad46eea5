// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever is typed is either read, and printed so that it reads back as the same, or refused.

use lowtide_net::units::parse_duration;
use lowtide_net::{
    BufferSize, DelaySchedule, Discipline, Jitter, LossModel, Police, Probability, Rate, Reordering, Schedule, Time,
};
use proptest::prelude::*;
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// Texts that look like what is asked for, and are wrong in a place or two, or not at all.
fn likely() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        prop::sample::select(vec![
            "droptail", "step", "codel", "pie", "dualpi2", "fq_codel", "priority", "ge", "every", "0s", "1s"
        ])
        .prop_map(str::to_owned),
        value(),
    ];
    let key = prop::sample::select(vec![
        "at",
        "target",
        "interval",
        "ecn",
        "update",
        "alpha",
        "beta",
        "burst",
        "mark",
        "derandomise",
        "variant",
        "coupling",
        "threshold",
        "ramp",
        "classic",
        "flows",
        "quantum",
        "limit",
        "p",
        "r",
        "good",
        "bad",
        "every",
        "0s",
        "5s",
    ]);
    let pair = (key, prop::sample::select(vec!["=", "=", "=", ":", ""]), value())
        .prop_map(|(key, equals, value)| format!("{key}{equals}{value}"));
    let any = (name, prop::sample::select(vec![":", ":", ",", ""]), prop::collection::vec(pair, 0..4))
        .prop_map(|(name, colon, pairs)| format!("{name}{colon}{}", pairs.join(",")));
    prop_oneof![any, right()]
}

/// Texts with the right keys and, mostly, right values.
fn right() -> impl Strategy<Value = String> {
    let ms = || (0..20_000_u64).prop_map(|us| format!("{}ms", us as f64 / 1e3));
    let part = || (0.0..1.001_f64).prop_map(|part| part.to_string());
    let rate = || (0..1_000_000_u64).prop_map(|kbit| format!("{kbit}kbit"));
    let switch = prop::sample::select(vec!["on", "off"]);
    prop_oneof![
        (any::<bool>(), ms(), ms(), switch).prop_map(|(over, a, b, on)| {
            format!("{}codel:interval={a},target={b},ecn={on}", if over { "priority:" } else { "" })
        }),
        (ms(), part(), part()).prop_map(|(a, b, c)| format!("pie:burst={a},alpha={b},mark={c}")),
        (ms(), part()).prop_map(|(a, b)| format!("dualpi2:ramp={a},variant=linux,classic={b}")),
        (part(), part()).prop_map(|(a, b)| format!("ge:p={a},bad={b}")),
        (part(), ms()).prop_map(|(a, b)| format!("{a}:{b}")),
        (rate(), 0..100_u64).prop_map(|(a, b)| format!("{a}:{b}kB")),
        (ms(), any::<bool>()).prop_map(|(a, normal)| format!("{a}{}", if normal { ":normal" } else { "" })),
        (rate(), ms(), rate(), ms()).prop_map(|(a, b, c, d)| format!("0s:{a},{b}:{c},every:{d}")),
    ]
}

fn value() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (0..2000_u64).prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        (0.0..1.0_f64).prop_map(|n| n.to_string()),
    ];
    let unit = prop::sample::select(vec!["", "ms", "us", "s", "ns", "%", "mbit", "bit", "kB", "p", "bdp", ":", "µs"]);
    prop_oneof![
        4 => (number, unit).prop_map(|(number, unit)| number + unit),
        1 => prop::sample::select(vec!["on", "off", "linux", "rfc", "normal", "uniform", ""]).prop_map(str::to_owned),
    ]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![4 => likely(), 1 => any::<String>(), 1 => "[0-9a-z:,=.% ]{0,30}"]
}

/// What can be read reads back as itself; what cannot be is refused in one line that is not empty.
fn holds<T: FromStr<Err: Display> + Display + PartialEq + Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            assert_eq!(printed.parse::<T>().ok().as_ref(), Some(&value), "{text:?} prints as {printed:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_read_or_refused(text in texts()) {
        holds::<Discipline>(&text);
        holds::<Schedule>(&text);
        holds::<DelaySchedule>(&text);
        holds::<LossModel>(&text);
        holds::<Jitter>(&text);
        holds::<Reordering>(&text);
        holds::<Police>(&text);
        holds::<Rate>(&text);
        holds::<Probability>(&text);
        holds::<BufferSize>(&text);
        let _read_or_refused = parse_duration(&text);
    }

    #[test]
    fn any_trace_is_read_or_refused(lines in prop::collection::vec(prop_oneof![
        4 => (0..100_u64).prop_map(|n| n.to_string()),
        1 => any::<u64>().prop_map(|n| n.to_string()),
        1 => any::<String>(),
    ], 0..10), sorted: bool) {
        let mut lines = lines;
        if sorted {
            lines.sort_by_key(|line| line.parse().unwrap_or(0_u64));
        }
        match Schedule::trace("file", &lines.join("\n")) {
            Ok(trace) => {
                let year = Time::from_nanos(366 * 86_400 * 1_000_000_000);
                prop_assert!(trace.bytes_between(Time::ZERO, year) >= 1500);
            }
            Err(error) => prop_assert!(error.to_string().starts_with("file")),
        }
    }
}

#[test]
fn the_texts_of_this_test_are_read_often_enough() {
    // Otherwise the round trip above would be about nothing.
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let texts: Vec<String> = (0..5000).map(|_| texts().new_tree(&mut runner).unwrap().current()).collect();
    let read = |reads: fn(&str) -> bool| texts.iter().filter(|text| reads(text)).count();
    let counts = [
        read(|text| text.parse::<Discipline>().is_ok_and(|it| it.to_string().contains(':'))),
        read(|text| text.parse::<Schedule>().is_ok()),
        read(|text| text.parse::<LossModel>().is_ok()),
        read(|text| text.parse::<Jitter>().is_ok()),
        read(|text| text.parse::<Reordering>().is_ok()),
        read(|text| text.parse::<Police>().is_ok()),
    ];
    assert!(counts.iter().all(|count| *count >= 50), "{counts:?}");
}
