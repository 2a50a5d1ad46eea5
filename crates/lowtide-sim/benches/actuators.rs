// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a price weight does to each law by each actuator: the share that it takes from one best-effort flow, and how
//! much of an idle link it uses. Both together, since to be submissive alone is easy.
//!
//! One bottleneck with tail drop and one bandwidth-delay product of buffer (laws that need marks: a step at 3 ms),
//! medians of five seeds. The share is a fraction of the ordinary flow's rate. Words after `--` choose the lines that
//! contain them.

use lowtide_cc::{Actuator, Law};
use lowtide_net::Rate;
use lowtide_sim::{
    observe::Nobody,
    run,
    scenario::{Bottleneck, Flow, Scenario},
};
use std::{env, time::Duration};

const WEIGHTS: [f64; 6] = [0.001, 0.004, 0.016, 0.06, 0.25, 1.0];
const SEEDS: u64 = 5;
const DURATION: Duration = Duration::from_secs(240);
const MEASURE_FROM: Duration = Duration::from_secs(60);
/// An idle link has to be filled sooner: the part of its capacity used from the fifth second on.
const ALONE_FROM: Duration = Duration::from_secs(5);
const ALONE: Duration = Duration::from_secs(65);

/// Law, actuator, the law beside it, queue, Mbit/s, round-trip times (ms).
type Line = (&'static str, &'static str, &'static str, &'static str, u64, &'static [u64]);

const LINES: &[Line] = &[
    ("cdg", "native", "cubic", "droptail", 10, &[20, 100, 300]),
    ("cdg", "native:losses=off", "cubic", "droptail", 10, &[20, 100, 300]),
    ("cdg", "native:losses=on", "cubic", "droptail", 10, &[20, 100, 300]),
    ("cdg", "native:losses=few", "cubic", "droptail", 10, &[20, 100, 300]),
    ("cdg", "native:floor=0s", "cubic", "droptail", 10, &[20, 100, 300]),
    ("cdg:blend=off", "native", "cubic", "droptail", 10, &[20, 100, 300]),
    ("cdg", "phantom", "cubic", "droptail", 10, &[40]),
    ("vegas", "native", "cubic", "droptail", 20, &[20, 40, 100]),
    ("vegas", "native:losses=share", "cubic", "droptail", 20, &[20, 40, 100]),
    ("vegas", "phantom", "cubic", "droptail", 20, &[40]),
    ("eclipse", "native", "cubic", "droptail", 20, &[20, 40, 100]),
    ("eclipse", "native:losses=off", "cubic", "droptail", 20, &[20, 40, 100]),
    ("eclipse:cwnd_min=2", "native", "cubic", "droptail", 20, &[20, 40, 100]),
    ("tide", "native", "cubic", "droptail", 20, &[10, 40, 150]),
    ("dctcp", "native", "dctcp", "step:at=3ms", 20, &[20, 40]),
    ("dctcp", "phantom", "dctcp", "step:at=3ms", 20, &[20, 40]),
    ("dctcp", "beta", "dctcp", "step:at=3ms", 20, &[20, 40]),
    ("prague", "native", "prague", "step:at=3ms", 20, &[20, 40]),
    ("prague", "phantom", "prague", "step:at=3ms", 20, &[20, 40]),
    ("cubic", "phantom", "cubic", "droptail", 20, &[20, 40, 100]),
    ("cubic", "phantom:floor=0s", "cubic", "droptail", 20, &[40]),
    ("cubic", "beta", "cubic", "droptail", 20, &[20, 40, 100]),
    ("reno", "phantom", "reno", "droptail", 20, &[20, 40, 100]),
    ("reno", "beta", "reno", "droptail", 20, &[20, 40, 100]),
    ("ledbat", "phantom", "cubic", "droptail", 20, &[40]),
];

fn main() {
    let wanted: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    println!("share of the best-effort flow's rate | use of an idle link, percent");
    print!("{:<46}", "law by actuator, beside, rtt");
    WEIGHTS.iter().for_each(|weight| print!("{:>11}", format!("w={weight}")));
    println!();
    for (law, actuator, beside, queue, mbit, rtts) in LINES {
        for rtt in *rtts {
            let name = format!("{law} {actuator} vs {beside} {mbit}M {rtt}ms");
            if !wanted.is_empty() && !wanted.iter().all(|word| name.contains(word.as_str())) {
                continue;
            }
            print!("{name:<46}");
            for weight in WEIGHTS {
                let flow = |seed: u64| {
                    let mut flow = Flow::greedy("bg", law.parse::<Law>().expect("a law"), Duration::from_millis(*rtt));
                    flow.weight = Some(weight);
                    flow.actuator = Some(actuator.parse::<Actuator>().expect("an actuator"));
                    flow.start = Duration::from_millis(137 * seed);
                    flow
                };
                let scenario = |seed: u64| base(seed, *mbit, *rtt, queue);
                let share = median(|seed| {
                    let mut scenario = scenario(seed);
                    let other = Flow::greedy("fg", beside.parse().expect("a law"), Duration::from_millis(*rtt));
                    scenario.flows = vec![other, flow(seed)];
                    let flows = run(&scenario, &mut Nobody).flows;
                    flows[1].mean_bps / flows[0].mean_bps
                });
                let alone = median(|seed| {
                    let mut scenario = Scenario { duration: ALONE, measure_from: ALONE_FROM, ..scenario(seed) };
                    scenario.flows = vec![flow(seed)];
                    run(&scenario, &mut Nobody).bottlenecks[0].utilisation
                });
                print!("{:>11}", format!("{:.1}|{:.0}", 100.0 * share, 100.0 * alone));
            }
            println!();
        }
    }
}

fn median(measure: impl Fn(u64) -> f64) -> f64 {
    let mut values: Vec<f64> = (1..=SEEDS).map(measure).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn base(seed: u64, mbit: u64, rtt: u64, queue: &str) -> Scenario {
    let rate = Rate::from_bits_per_second(mbit * 1_000_000).expect("above zero");
    let mut link = Bottleneck::new("link", rate, Duration::from_millis(rtt));
    link.queue = queue.parse().expect("a queue");
    Scenario {
        seed,
        duration: DURATION,
        measure_from: MEASURE_FROM,
        bottlenecks: vec![link],
        reverse: None,
        flows: Vec::new(),
        sample_interval: Duration::from_secs(1),
        spans: Vec::new(),
    }
}
